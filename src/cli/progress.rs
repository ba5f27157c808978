//! Progress of a run on standard error: a bar on a terminal, otherwise at most one line
//! every five seconds, and nothing with `--quiet`.

use exactfed_core::words::count;
use exactfed_runner::runner::{Observer, RunWork, RunWorkCount};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Counts cells and work, and prints the progress.
pub struct Progress {
    name: String,
    /// Number of cells that were done before.
    before: u64,
    /// Number of requested cells.
    all: u64,
    done: AtomicU64,
    diverged: AtomicU64,
    /// The work so far.
    work: RunWorkCount,
    /// Counts its expected cost; hidden if there is no terminal or nothing is printed.
    bar: ProgressBar,
    /// Least time between two reports; `None` if nothing is printed.
    between: Option<Duration>,
    /// When the state was last printed.
    last: Mutex<Instant>,
    stop: Arc<AtomicBool>,
}

/// Least time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Least time between two updates of the bar.
const BETWEEN_STATES: Duration = Duration::from_millis(200);

impl Progress {
    /// Progress over all of `total` until `stop` is true. `cells` is the number of the
    /// requested cells that were done before, and of all requested cells.
    pub fn new(
        name: &str,
        cells: (usize, usize),
        total: RunWork,
        quiet: bool,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let on_terminal = !quiet && stderr().is_terminal();
        let bar = ProgressBar::hidden();
        bar.set_length(total.nanoseconds);
        let progress = Self {
            name: name.to_owned(),
            before: cells.0 as u64,
            all: cells.1 as u64,
            done: AtomicU64::default(),
            diverged: AtomicU64::default(),
            work: RunWorkCount::default(),
            bar,
            between: (!quiet).then_some(if on_terminal { BETWEEN_STATES } else { BETWEEN_LINES }),
            last: Mutex::new(Instant::now()),
            stop,
        };
        if on_terminal {
            // A message is truncated to the terminal's width: wrapped lines would not be cleared.
            let style = ProgressStyle::with_template("{bar:10} {wide_msg}");
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
            progress.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            progress.bar.set_message(progress.state());
            progress.bar.enable_steady_tick(BETWEEN_STATES);
        }
        progress
    }

    /// Clears the bar and prints a summary.
    pub fn finish(&self) {
        let (done, steps) = (self.done.load(Ordering::Relaxed), self.work.get().steps);
        self.bar.finish_and_clear();
        if self.between.is_some() {
            let seconds = self.bar.elapsed().as_secs_f64();
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
        let (work, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let share = 100.0 * work as f64 / total.max(1) as f64;
        let seconds = self.bar.elapsed().as_secs_f64();
        let rate = steps_text(self.work.get().steps as f64 / seconds.max(1e-9));
        let left = match work {
            0 => String::new(),
            _ => {
                let left = seconds * total.saturating_sub(work) as f64 / work as f64;
                format!(", {left:.0} s left")
            }
        };
        // The percentage comes first, since a narrow terminal truncates the end.
        let all = self.all;
        format!("{:.0} %, {cells}/{all} cells, {rate} steps/s{left}", share.min(100.0).floor())
    }

    /// Prints the state, unless it was printed a moment ago.
    fn report(&self) {
        let Some(between) = self.between else { return };
        // Another thread is printing.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        match self.bar.is_hidden() {
            false => self.bar.set_message(format!("{}  {}", self.state(), self.name)),
            true => self.print_line(&self.state()),
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

    fn worked(&self, work: RunWork) {
        self.work.add(work);
        self.bar.inc(work.nanoseconds);
        self.report();
    }

    fn skipped(&self, work: RunWork) {
        self.bar.dec_length(work.nanoseconds);
    }

    fn cell(&self, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.report();
    }
}
