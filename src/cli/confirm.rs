//! Asks for confirmation before a run that is larger than the user may have intended.

use super::cell_times::CellTimes;
use super::outcome::Failure;
use super::shard::Cells;
use exactfed_core::words::count;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::cost::operations;
use std::io::{BufRead, IsTerminal, Write};

/// The largest number of cells that runs without confirmation.
const MOST_CELLS: usize = 100_000;
/// The longest estimated time that runs without confirmation: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// The seconds that runs which follow from results may take without confirmation even where less was
/// planned.
const SHORT_SECONDS: f64 = 600.0;
/// The seconds of an operation on a machine slower than any: an upper bound. Cells whose time by this
/// bound needs no question are not measured, since measuring takes seconds itself.
const SLOWEST_OPERATION: f64 = 1e-7;

/// A run was not confirmed: the answer is no, or there is no terminal to ask on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{question}; {outcome}{hint}")]
pub struct NotConfirmed {
    /// What was asked, without the words "Run them?".
    question: String,
    /// What became of the cells, or what runs them.
    outcome: &'static str,
    /// What else a user can do, with a comma before it, or empty.
    hint: &'static str,
}

/// Asks on the terminal whether to run these missing cells, if they are more than [`MOST_CELLS`] or take longer than
/// [`MOST_SECONDS`] on so many threads; else it returns without a question. The caller has found that `--yes` is not
/// given.
///
/// # Errors
/// If an instance cannot be built, to be measured; if the answer is no; or if there is no terminal to
/// ask on, with a message that names the flag `--yes`.
pub fn confirm(missing: &[Cells<'_>], threads: usize) -> Result<(), Failure> {
    let cells = || missing.iter().flat_map(|(_, cells)| cells);
    let mut seconds = 0.0;
    if may_exceed(cells().copied(), MOST_SECONDS, threads) {
        for (plan, cells) in missing {
            let times = CellTimes::of_cells(plan, cells)?.or_counted();
            seconds += times.total(cells.iter().copied(), threads).unwrap_or(0.0);
        }
    }
    let Some(question) = question(cells().count(), seconds, threads) else { return Ok(()) };
    asked(&question, "nothing was run").map_err(|why| Failure::input(format!("error: {why}")))
}

/// Whether cells could take longer than so many seconds on any machine, judged by their operations
/// without measuring anything.
pub fn may_exceed<'c>(cells: impl Iterator<Item = &'c Cell>, seconds: f64, threads: usize) -> bool {
    let all = cells.map(|cell| operations(&cell.identity)).fold(0, u64::saturating_add);
    all as f64 * SLOWEST_OPERATION / threads as f64 > seconds
}

/// Whether all cells that `following` lists, which follow from results, may take long enough for a question, so that
/// it is worth measuring them; where not, no question is needed.
pub fn may_need_question(following: &[Cell], threads: usize) -> bool {
    may_exceed(following.iter(), SHORT_SECONDS, threads)
}

/// The time of a tuned experiment that its manifest implies before there are results: of the candidates
/// that it lists and of fresh runs of what is selected among them. Cells that follow from results, such
/// as further candidates, may take as long again without confirmation.
pub struct PlannedTime {
    /// The seconds of the candidates in the manifest, of those that race with all their runs.
    pub candidates: f64,
    /// The most seconds of the fresh runs of what is selected.
    pub fresh: f64,
    /// The number of threads on which all these times are to be spent.
    threads: usize,
}

impl PlannedTime {
    /// The time of a plan's listed candidates, whether they were run or not, and of the fresh runs, on so many threads;
    /// `None` if `times` has no time of one of these cells, since no cell could be measured.
    pub fn new(plan: &Plan, times: &CellTimes, threads: usize) -> Option<Self> {
        let groups = plan.possible_evaluations();
        // A group is an algorithm at a grid point. Its best candidate is run afresh and, where several
        // algorithms share a grid point, also the candidate that is best for all of them together.
        let cells_of_group = if groups.len() > 1 { 2.0 } else { 1.0 };
        let mut fresh = 0.0;
        for cells in &groups {
            let mut dearest: f64 = 0.0;
            for cell in cells {
                dearest = dearest.max(times.total(std::iter::once(cell), threads)?);
            }
            fresh += cells_of_group * dearest;
        }
        // Of candidates that race, all may go on to the end.
        let candidates = plan.tuning.as_ref().map_or(&plan.cells, |tuning| &tuning.listed);
        let candidates = times.total(candidates.iter(), threads)?;
        Some(Self { candidates, fresh, threads })
    }

    /// The seconds that all cells that follow from results may take without a question.
    pub fn unasked(&self) -> f64 {
        (self.candidates + self.fresh).max(SHORT_SECONDS)
    }

    /// Asks on the terminal whether to run these missing cells, if all cells that have followed from results so far,
    /// `follows`, take longer than [may be without a question](Self::unasked), by `times`, which has to have times of
    /// them. `missing` are the cells among them that have no results yet; without any, nothing is asked.
    ///
    /// # Errors
    /// If the answer is no or there is no terminal to ask on; the message says what runs them.
    pub fn confirm(
        &self,
        missing: &[&Cell],
        follows: &[Cell],
        times: &CellTimes,
    ) -> Result<(), NotConfirmed> {
        let seconds = times.total(follows.iter(), self.threads).unwrap_or(0.0);
        if missing.is_empty() || seconds <= self.unasked() {
            return Ok(());
        }
        let planned = duration(self.candidates + self.fresh);
        let time = times.total(missing.iter().copied(), self.threads).unwrap_or(0.0);
        let time = duration(time);
        let cells = count(missing.len(), "cell");
        let threads = count(self.threads, "thread");
        let question = format!(
            "{cells} that follow from the candidates to run, about {time} on {threads}, where {planned} were planned"
        );
        asked(&question, "they were not run: pass --yes to run them").map_err(|not| NotConfirmed {
            hint: ", or add no candidates (`extend = 0` in [tune]); all others are stored",
            ..not
        })
    }
}

/// A time of so many seconds in words with the unit that suits it, to two digits or more: `1.4 s`, `2.5 min`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 597.0 => format!("{:.1} min", s / 60.0),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Asks a question on the terminal; `refused` is what became of the cells if the answer is no, for the message.
///
/// # Errors
/// If the answer is no, or there is no terminal to ask on.
fn asked(question: &str, refused: &'static str) -> Result<(), NotConfirmed> {
    let stdin = std::io::stdin();
    let mut stderr = std::io::stderr();
    let is_terminal = stdin.is_terminal() && stderr.is_terminal();
    if is_terminal && is_confirmed(question, &mut stdin.lock(), &mut stderr) {
        return Ok(());
    }
    let outcome = if is_terminal { refused } else { "pass --yes to run them" };
    Err(NotConfirmed { question: question.to_owned(), outcome, hint: "" })
}

/// The question about this many cells, which take so many seconds on so many threads, without the words "Run them?";
/// `None` if no confirmation is needed.
fn question(cells: usize, seconds: f64, threads: usize) -> Option<String> {
    let long = seconds > MOST_SECONDS;
    let time = if long {
        format!(", about {} on {}", duration(seconds), count(threads, "thread"))
    } else {
        String::new()
    };
    (long || cells > MOST_CELLS).then(|| format!("{} to run{time}", count(cells, "cell")))
}

/// Asks the question on `to` and reads a line of `from`: whether the answer is yes. No answer is no.
fn is_confirmed(question: &str, from: &mut dyn BufRead, to: &mut dyn Write) -> bool {
    ask(&format!("{question}. Run them? [y/N]"), from, to).is_some_and(|answer| is_yes(&answer))
}

/// Writes a question to `to` and returns the line of `from` that answers it, trimmed; `None` at the end
/// of `from` or if it cannot be read.
pub fn ask(question: &str, from: &mut dyn BufRead, to: &mut dyn Write) -> Option<String> {
    let _ = write!(to, "{question} ");
    let _ = to.flush();
    let mut line = String::new();
    let read = from.read_line(&mut line);
    matches!(read, Ok(1..)).then(|| line.trim().to_owned())
}

/// Whether an answer is yes.
pub fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_or_a_hundred_thousand_cells_need_no_question() {
        assert_eq!(question(100_000, 86_400.0, 2), None);
        assert_eq!(question(100_001, 0.0, 2).unwrap(), "100001 cells to run");
        let long = question(3, 86_401.0 * 30.0, 2).unwrap();
        assert_eq!(long, "3 cells to run, about 720.0 h on 2 threads");
    }

    #[test]
    fn durations_have_two_digits() {
        let words = [0.0123, 0.9994, 0.9996, 1.449, 9.96, 119.0, 150.0, 599.0, 7300.0];
        let words = words.map(duration);
        let expected =
            ["12 ms", "999 ms", "1.0 s", "1.4 s", "10 s", "119 s", "2.5 min", "10 min", "2.0 h"];
        assert_eq!(words, expected);
    }

    #[test]
    fn only_yes_is_yes() {
        for answer in ["y\n", "Yes\n", "\n", "", "n\n", "yep\n"] {
            let mut prompt = Vec::new();
            let confirmed = is_confirmed("2 cells to run", &mut answer.as_bytes(), &mut prompt);
            assert_eq!(confirmed, ["y\n", "Yes\n"].contains(&answer));
            assert_eq!(prompt, b"2 cells to run. Run them? [y/N] ");
        }
        let broken = &mut std::io::BufReader::new(&b"\xff\n"[..]);
        assert!(!is_confirmed("?", broken, &mut Vec::new()), "input that is not UTF-8");
    }
}
