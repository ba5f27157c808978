//! Progress on standard error: a bar on a terminal, otherwise at most one line every five
//! seconds, and nothing with `--quiet`.

use exactfed_core::words::count;
use exactfed_runner::runner::{Observer, RunWork, RunWorkCount};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Least time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Least time between two updates of the bar.
const BETWEEN_STATES: Duration = Duration::from_millis(200);

/// The bars of all that goes on at the same time, below each other.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// How far something is, in a line of its own.
struct ProgressLine {
    name: String,
    /// Counts the work; hidden if there is no terminal or nothing is printed.
    bar: ProgressBar,
    /// Least time between two reports; `None` if nothing is printed.
    between: Option<Duration>,
    /// When the state was last printed.
    last: Mutex<Instant>,
}

impl ProgressLine {
    fn new(name: &str, work: u64, quiet: bool) -> Self {
        let on_terminal = !quiet && stderr().is_terminal();
        let bar = match on_terminal {
            true => BARS.add(ProgressBar::no_length()),
            false => ProgressBar::hidden(),
        };
        bar.set_length(work);
        if on_terminal {
            // A message is truncated to the terminal's width: wrapped lines would not be cleared.
            let style = ProgressStyle::with_template("{bar:10} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(BETWEEN_STATES);
        }
        Self {
            name: name.to_owned(),
            bar,
            between: (!quiet).then_some(if on_terminal { BETWEEN_STATES } else { BETWEEN_LINES }),
            last: Mutex::new(Instant::now()),
        }
    }

    /// Seconds since the begin.
    fn seconds(&self) -> f64 {
        self.bar.elapsed().as_secs_f64()
    }

    /// `12 %`, what else there is to say, and `, 40 s left`. The percentage comes first, since a
    /// narrow terminal truncates the end.
    fn state(&self, between: &str) -> String {
        let (work, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let share = 100.0 * work as f64 / total.max(1) as f64;
        let left = match work {
            0 => String::new(),
            _ => {
                let left = self.seconds() * total.saturating_sub(work) as f64 / work as f64;
                format!(", {left:.0} s left")
            }
        };
        format!("{:.0} %{between}{left}", share.min(100.0).floor())
    }

    /// Prints the state, unless it was printed a moment ago.
    fn report(&self, state: impl FnOnce() -> String) {
        let Some(between) = self.between else { return };
        // Another thread is printing.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        self.show(&state());
    }

    fn show(&self, state: &str) {
        match self.bar.is_hidden() {
            false => self.bar.set_message(format!("{state}  {}", self.name)),
            true => self.print(state),
        }
    }

    /// Clears the bar and prints a summary.
    fn finish(&self, summary: impl FnOnce() -> String) {
        self.bar.finish_and_clear();
        if self.between.is_some() {
            self.print(&summary());
        }
    }

    /// Writes a line to standard error; a closed standard error is ignored.
    fn print(&self, text: &str) {
        let _ = writeln!(stderr(), "{}: {text}", self.name);
    }
}

/// Counts cells and work, and prints the progress.
pub struct Progress {
    line: ProgressLine,
    /// Number of cells that were done before.
    before: u64,
    /// Number of requested cells.
    all: u64,
    done: AtomicU64,
    diverged: AtomicU64,
    /// The work so far.
    work: RunWorkCount,
    stop: Arc<AtomicBool>,
}

impl Progress {
    /// Progress over all of `total` until `stop` is true, of which `before` of `all` requested cells
    /// were done before.
    pub fn new(
        name: &str,
        before: usize,
        all: usize,
        total: RunWork,
        quiet: bool,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let progress = Self {
            line: ProgressLine::new(name, total.operations, quiet),
            before: before as u64,
            all: all as u64,
            done: AtomicU64::default(),
            diverged: AtomicU64::default(),
            work: RunWorkCount::default(),
            stop,
        };
        if !progress.line.bar.is_hidden() {
            progress.line.show(&progress.state());
        }
        progress
    }

    /// Clears the bar and prints a summary.
    pub fn finish(&self) {
        self.line.finish(|| {
            let (done, steps) = (self.done.load(Ordering::Relaxed), self.work.get().steps);
            let seconds = self.line.seconds();
            let diverged = match self.diverged.load(Ordering::Relaxed) {
                0 => String::new(),
                count => format!("; runs diverged in {count} of them"),
            };
            format!(
                "{}, {} steps in {seconds:.1} s, {} steps/s{diverged}",
                count(done as usize, "cell"),
                steps_text(steps as f64),
                steps_text(steps as f64 / seconds.max(1e-9)),
            )
        });
    }

    /// The state: `12 %, 3/80 cells, 2.20e10 steps/s, 40 s left`.
    fn state(&self) -> String {
        let cells = self.before + self.done.load(Ordering::Relaxed);
        let rate = steps_text(self.work.get().steps as f64 / self.line.seconds().max(1e-9));
        self.line.state(&format!(", {cells}/{} cells, {rate} steps/s", self.all))
    }
}

/// Computes the frontiers of an experiment, of which `compute` reports each share that is done, and
/// prints how far they are.
pub fn of_frontiers<T, E>(
    experiment: &str,
    quiet: bool,
    compute: impl FnOnce(&(dyn Fn(f64) + Sync)) -> Result<T, E>,
) -> Result<T, E> {
    const ALL: f64 = 1e9;
    let line = ProgressLine::new(experiment, ALL as u64, quiet);
    let computed = compute(&|share| {
        line.bar.inc((share * ALL) as u64);
        line.report(|| line.state(" of the frontiers"));
    })?;
    let seconds = line.seconds();
    line.finish(|| format!("its frontiers took {seconds:.1} s, and are kept for later reports"));
    Ok(computed)
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
        self.line.bar.inc(work.operations);
        self.line.report(|| self.state());
    }

    fn skipped(&self, work: RunWork) {
        self.line.bar.dec_length(work.operations);
    }

    fn cell(&self, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.line.report(|| self.state());
    }
}
