//! What a run says while it works: a bar on a terminal, a line every five
//! seconds at most elsewhere, nothing when it is asked to be quiet.

use super::Observer;
use crate::plan::Cell;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{IsTerminal, Write as _, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Cells, steps per second and time left.
pub struct Progress {
    name: String,
    cells: u64,
    done: AtomicU64,
    steps: AtomicU64,
    skipped: AtomicU64,
    diverged: AtomicU64,
    total: u64,
    begin: Instant,
    stop: Arc<AtomicBool>,
    out: Out,
}

/// Time between two plain lines, at least.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

enum Out {
    Quiet,
    Lines(Mutex<Instant>),
    Bar(ProgressBar),
}

impl Progress {
    /// Progress over `cells` cells and `total` client steps, until `stop` says so.
    pub fn new(name: &str, cells: usize, total: u64, quiet: bool, stop: Arc<AtomicBool>) -> Self {
        let out = if quiet {
            Out::Quiet
        } else if stderr().is_terminal() {
            let bar = ProgressBar::new(total);
            let style =
                ProgressStyle::with_template("{prefix} {bar:30} {msg}, {rate} steps/s, {eta} left");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let rate = |state: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&steps_text(state.per_sec()));
            };
            bar.set_style(style.with_key("rate", rate));
            bar.set_prefix(name.to_owned());
            bar.set_message(format!("0/{cells} cells"));
            bar.enable_steady_tick(Duration::from_millis(200));
            Out::Bar(bar)
        } else {
            Out::Lines(Mutex::new(Instant::now()))
        };
        let [done, steps, skipped, diverged] = std::array::from_fn(|_| AtomicU64::new(0));
        let (name, cells, begin) = (name.to_owned(), cells as u64, Instant::now());
        Self { name, cells, done, steps, skipped, diverged, total, begin, stop, out }
    }

    /// Says what was done, and clears the bar.
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
                "{done} cells, {} steps in {seconds:.1} s, {} steps/s{diverged}",
                steps_text(steps as f64),
                steps_text(steps as f64 / seconds.max(1e-9)),
            ));
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
    }

    fn skipped(&self, count: u64) {
        self.skipped.fetch_add(count, Ordering::Relaxed);
        if let Out::Bar(bar) = &self.out {
            bar.set_length(bar.length().unwrap_or(0).saturating_sub(count));
        }
    }

    fn cell(&self, _cell: &Cell, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.out {
            Out::Quiet => {}
            Out::Bar(bar) => bar.set_message(format!("{done}/{} cells", self.cells)),
            Out::Lines(last) => {
                let mut last = super::lock(last);
                if last.elapsed() >= BETWEEN_LINES && done < self.cells {
                    let steps = self.steps.load(Ordering::Relaxed);
                    let seconds = self.begin.elapsed().as_secs_f64();
                    let total = self.total.saturating_sub(self.skipped.load(Ordering::Relaxed));
                    let left = seconds * (total.saturating_sub(steps)) as f64 / steps.max(1) as f64;
                    let rate = steps_text(steps as f64 / seconds);
                    self.line(&format!(
                        "{done}/{} cells, {rate} steps/s, {left:.0} s left",
                        self.cells
                    ));
                    *last = Instant::now();
                }
            }
        }
    }
}
