//! Progress of a run on standard error: a bar on a terminal, otherwise at most one line
//! every five seconds, and nothing with `--quiet`.

use driftbench_core::words::count;
use driftbench_runner::runner::Observer;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Counts cells and client steps, and prints the progress.
pub struct Progress {
    name: String,
    /// Number of cells that were done before.
    before: u64,
    /// Number of requested cells.
    all: u64,
    done: AtomicU64,
    steps: AtomicU64,
    skipped: AtomicU64,
    diverged: AtomicU64,
    total: u64,
    begin: Instant,
    /// When the state was last printed.
    last: Mutex<Instant>,
    stop: Arc<AtomicBool>,
    out: Out,
}

/// Least time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Least time between two updates of the bar.
const BETWEEN_STATES: Duration = Duration::from_millis(200);

enum Out {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Progress over `total` client steps until `stop` is true. `cells` is the number of the
    /// requested cells that were done before, and of all requested cells.
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
            // A message is truncated to the terminal's width: wrapped lines would not be cleared.
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

    /// Clears the bar and prints a summary.
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
            self.print_line(&format!(
                "{}, {} steps in {seconds:.1} s, {} steps/s{diverged}",
                count(done as usize, "cell"),
                steps_text(steps as f64),
                steps_text(steps as f64 / seconds.max(1e-9)),
            ));
        }
    }

    /// The state: `12 %, 3/80 cells, 2.20e10 steps/s, 40 s left`.
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
        // The percentage comes first, since a narrow terminal truncates the end.
        let all = self.all;
        format!("{:.0} %, {cells}/{all} cells, {rate} steps/s{left}", share.min(100.0).floor())
    }

    /// Prints the state, unless it was printed a moment ago.
    fn report(&self) {
        let between = match &self.out {
            Out::Quiet => return,
            Out::Lines => BETWEEN_LINES,
            Out::Bar(_) => BETWEEN_STATES,
        };
        // Another thread is printing.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        match &self.out {
            Out::Bar(bar) => bar.set_message(format!("{}  {}", self.state(), self.name)),
            _ => self.print_line(&self.state()),
        }
    }

    /// Writes a line to standard error; a closed standard error is ignored.
    fn print_line(&self, text: &str) {
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

    fn cell(&self, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.report();
    }
}
