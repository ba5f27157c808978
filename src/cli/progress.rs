//! What a run reports while it works: a bar on a terminal, a line every five
//! seconds at most elsewhere, nothing when it is asked to be quiet.

use driftbench_core::words::count;
use driftbench_runner::plan::Cell;
use driftbench_runner::runner::Observer;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Cells, share of the steps, steps per second and time left.
pub struct Progress {
    name: String,
    /// Cells that were done before.
    before: u64,
    /// Cells that are asked for.
    all: u64,
    done: AtomicU64,
    steps: AtomicU64,
    skipped: AtomicU64,
    diverged: AtomicU64,
    total: u64,
    begin: Instant,
    /// When the state was last reported.
    last: Mutex<Instant>,
    stop: Arc<AtomicBool>,
    out: Out,
}

/// Time between two plain lines, at least.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Time between two states of the bar, at least.
const BETWEEN_STATES: Duration = Duration::from_millis(200);

enum Out {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Progress until `stop` says so, over `total` client steps. Of the cells that are asked
    /// for some were done before: `cells` is the number of these, and of all.
    pub fn new(
        name: &str,
        cells: (usize, usize),
        total: u64,
        quiet: bool,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let out = if quiet {
            Out::Quiet
        } else if stderr().is_terminal() {
            let bar = ProgressBar::new(total);
            // What is wide is cut to the terminal's width: a line that wraps is not cleared.
            let style = ProgressStyle::with_template("{bar:10} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            Out::Bar(bar)
        } else {
            Out::Lines
        };
        let [done, steps, skipped, diverged] = std::array::from_fn(|_| AtomicU64::new(0));
        let (name, begin, last) = (name.to_owned(), Instant::now(), Mutex::new(Instant::now()));
        let (before, all) = (cells.0 as u64, cells.1 as u64);
        let progress = Self {
            name,
            before,
            all,
            done,
            steps,
            skipped,
            diverged,
            total,
            begin,
            last,
            stop,
            out,
        };
        if let Out::Bar(bar) = &progress.out {
            bar.set_message(progress.state());
            bar.enable_steady_tick(BETWEEN_STATES);
        }
        progress
    }

    /// Reports what was done, and clears the bar.
    pub fn finish(&self) {
        if let Out::Bar(bar) = &self.out {
            bar.finish_and_clear();
        }
        if !matches!(self.out, Out::Quiet) {
            let (done, steps) =
                (self.done.load(Ordering::Relaxed), self.steps.load(Ordering::Relaxed));
            let seconds = self.begin.elapsed().as_secs_f64();
            let diverged = match self.diverged.load(Ordering::Relaxed) {
                0 => String::new(),
                count => format!("; runs diverged in {count} of them"),
            };
            self.line(&format!(
                "{}, {} steps in {seconds:.1} s, {} steps/s{diverged}",
                count(done as usize, "cell"),
                steps_text(steps as f64),
                steps_text(steps as f64 / seconds.max(1e-9)),
            ));
        }
    }

    /// How far the work is: `12 %, 3/80 cells, 2.20e10 steps/s, 40 s left`.
    fn state(&self) -> String {
        let cells = self.before + self.done.load(Ordering::Relaxed);
        let steps = self.steps.load(Ordering::Relaxed);
        let total = self.total.saturating_sub(self.skipped.load(Ordering::Relaxed));
        let share = 100.0 * steps as f64 / total.max(1) as f64;
        let seconds = self.begin.elapsed().as_secs_f64();
        let rate = steps_text(steps as f64 / seconds.max(1e-9));
        let left = match steps {
            0 => String::new(),
            _ => {
                let left = seconds * total.saturating_sub(steps) as f64 / steps as f64;
                format!(", {left:.0} s left")
            }
        };
        // The share comes first, and the name last: a narrow terminal cuts the end.
        let all = self.all;
        format!("{:.0} %, {cells}/{all} cells, {rate} steps/s{left}", share.min(100.0).floor())
    }

    /// Reports the state, unless it was reported a moment ago.
    fn report(&self) {
        let between = match &self.out {
            Out::Quiet => return,
            Out::Lines => BETWEEN_LINES,
            Out::Bar(_) => BETWEEN_STATES,
        };
        // Another thread reports now.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        match &self.out {
            Out::Bar(bar) => bar.set_message(format!("{}  {}", self.state(), self.name)),
            _ => self.line(&self.state()),
        }
    }

    /// A line on standard error; that nobody reads it is no reason to fail.
    fn line(&self, text: &str) {
        let _ = writeln!(stderr(), "{}: {text}", self.name);
    }
}

/// A count of steps in three digits: `2.20e10`.
fn steps_text(count: f64) -> String {
    if count < 1e6 { format!("{count:.0}") } else { format!("{count:.2e}") }
}

impl Observer for Progress {
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn steps(&self, count: u64) {
        self.steps.fetch_add(count, Ordering::Relaxed);
        if let Out::Bar(bar) = &self.out {
            bar.inc(count);
        }
        self.report();
    }

    fn skipped(&self, count: u64) {
        self.skipped.fetch_add(count, Ordering::Relaxed);
        if let Out::Bar(bar) = &self.out {
            bar.set_length(bar.length().unwrap_or(0).saturating_sub(count));
        }
    }

    fn cell(&self, _cell: &Cell, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.report();
    }
}
