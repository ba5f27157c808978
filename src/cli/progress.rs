//! Progress on standard error: a bar on a terminal that can draw it, otherwise at most one line every
//! five seconds, and nothing with `--quiet`.

use exactfed_core::words::count;
use exactfed_runner::runner::{Observer, RunWork, RunWorkCount};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Least time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// Least time between two updates of the bar.
const BETWEEN_STATES: Duration = Duration::from_millis(200);

/// The bars of everything that is in progress at the same time, below each other.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// How far one experiment is: a bar, or lines of text where bars are hidden.
struct ProgressLine {
    /// The name of the experiment, at the end of the bar or the beginning of lines.
    name: String,
    /// Counts the work; hidden if the terminal cannot draw it, there is none, or nothing is printed.
    bar: ProgressBar,
    /// Least time between two reports; `None` if nothing is printed.
    between: Option<Duration>,
    /// When the state was last printed.
    last: Mutex<Instant>,
}

impl ProgressLine {
    /// The progress of an experiment over so much work, in the unit in which the caller advances the bar; nothing is
    /// printed if it is `quiet`.
    fn new(name: &str, work: u64, quiet: bool) -> Self {
        // Bars are hidden too on a terminal that cannot move its cursor, where TERM is dumb or not set.
        let has_bar = !quiet && !BARS.is_hidden();
        let bar = if has_bar { BARS.add(ProgressBar::no_length()) } else { ProgressBar::hidden() };
        bar.set_length(work);
        if has_bar {
            // A message is truncated to the terminal's width: wrapped lines would not be cleared.
            let style = ProgressStyle::with_template("{bar:10} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(BETWEEN_STATES);
        }
        Self {
            name: name.to_owned(),
            bar,
            between: (!quiet).then_some(if has_bar { BETWEEN_STATES } else { BETWEEN_LINES }),
            last: Mutex::new(Instant::now()),
        }
    }

    /// Seconds since the work began.
    fn seconds(&self) -> f64 {
        self.bar.elapsed().as_secs_f64()
    }

    /// The share of the work that is done, the text `between`, and the time that is left: `12 %`,
    /// `between`, `, 40 s left`. The percentage comes first, since a narrow terminal truncates the end.
    fn state(&self, between: &str) -> String {
        let work = self.bar.position();
        let total = self.bar.length().unwrap_or(0);
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

    /// Prints the state that the function returns. Nothing is done, and the function not called, if the last
    /// state is more recent than `between` or another thread is printing one.
    fn report(&self, state: impl FnOnce() -> String) {
        let Some(between) = self.between else { return };
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        self.show(&state());
    }

    /// Shows a state next to the bar, or prints it where the bar is hidden.
    fn show(&self, state: &str) {
        if self.bar.is_hidden() {
            self.print(state);
        } else {
            self.bar.set_message(format!("{state}  {}", self.name));
        }
    }

    /// Clears the bar and, unless it is quiet, prints the summary that the function returns.
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

/// Counts the cells and the work of one experiment, and prints the progress.
pub struct Progress {
    line: ProgressLine,
    /// The number of cells that were done before.
    before: u64,
    /// The number of cells that the command is for.
    all: u64,
    /// The number of cells that have ended since.
    done: AtomicU64,
    /// The number of these in which runs diverged.
    diverged: AtomicU64,
    /// The work so far.
    work: RunWorkCount,
    /// Whether the work is to stop, as those who do it ask through [`Observer::interrupted`].
    stop: Arc<AtomicBool>,
}

impl Progress {
    /// The progress of the experiment `name` over the work `total` on the cells that are to be run: `before` of the
    /// `all` cells of the command are done. Those who do the work are asked to stop once `stop` is true. Nothing is
    /// printed if it is `quiet`.
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

    /// Clears the bar and prints a summary: the cells that ended since the beginning, the local steps of all clients,
    /// and the time.
    pub fn finish(&self) {
        self.line.finish(|| {
            let done = self.done.load(Ordering::Relaxed);
            let steps = self.work.get().steps;
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

    /// The state in words: `12 %, 3/80 cells, 2.20e10 steps/s, 40 s left`. Steps are local steps of all clients; the
    /// percentage is of operations, since cells differ in length.
    fn state(&self) -> String {
        let cells = self.before + self.done.load(Ordering::Relaxed);
        let rate = steps_text(self.work.get().steps as f64 / self.line.seconds().max(1e-9));
        self.line.state(&format!(", {cells}/{} cells, {rate} steps/s", self.all))
    }
}

/// Calls `compute`, which computes the frontiers of an experiment and keeps them in the results, as the summary that is
/// printed says, and prints how far it is, unless `quiet`. `compute` calls the function that it gets, from any thread,
/// with each share of its work that is done; the shares add up to 1. Returns what `compute` returns.
pub fn of_frontiers<T, E>(
    experiment: &str,
    quiet: bool,
    compute: impl FnOnce(&(dyn Fn(f64) + Sync)) -> Result<T, E>,
) -> Result<T, E> {
    // A bar counts whole numbers.
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

/// A count of steps in three digits, or below a million as it is: `2.20e10`, `1500`.
fn steps_text(count: f64) -> String {
    if count < 1e6 { format!("{count:.0}") } else { format!("{count:.2e}") }
}

impl Observer for Progress {
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts work that was done since the last call, and reports the state if that is due.
    fn worked(&self, work: RunWork) {
        self.work.add(work);
        self.line.bar.inc(work.operations);
        self.line.report(|| self.state());
    }

    /// Shortens the bar by work that will not be done.
    fn skipped(&self, work: RunWork) {
        self.line.bar.dec_length(work.operations);
    }

    /// Counts a cell that has ended, of which `diverged` runs diverged.
    fn cell(&self, diverged: usize) {
        self.diverged.fetch_add(u64::from(diverged > 0), Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.line.report(|| self.state());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::IsTerminal;

    /// The tests themselves may run on a terminal or not.
    #[test]
    fn lines_are_further_apart_than_states_of_a_bar() {
        for quiet in [false, true] {
            let line = ProgressLine::new("e", 1, quiet);
            let is_hidden = line.bar.is_hidden();
            assert!(is_hidden || !quiet && stderr().is_terminal());
            let between = if is_hidden { BETWEEN_LINES } else { BETWEEN_STATES };
            assert_eq!(line.between, (!quiet).then_some(between));
            line.bar.finish_and_clear();
        }
    }
}
