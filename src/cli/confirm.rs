//! Asks for confirmation before a run that is larger than the user may have intended.

use super::Failure;
use super::memory::Cells;
use super::plan::duration;
use exactfed_core::words::count;
use exactfed_runner::runner::cost::expected_nanoseconds;
use std::io::{BufRead, IsTerminal, Write};

/// The largest number of cells that runs without confirmation.
const MOST_CELLS: usize = 100_000;
/// The longest estimated time that runs without confirmation: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// Asks whether to run these missing cells, if they are many or take long.
///
/// # Errors
/// If the answer is no; or, without a terminal to ask on, with the flag that confirms.
pub fn confirm(missing: &[Cells<'_>], threads: usize) -> Result<(), Failure> {
    let cells = || missing.iter().flat_map(|(_, cells)| cells);
    let costs = cells().map(|cell| expected_nanoseconds(&cell.identity));
    let nanoseconds = costs.fold(0, u64::saturating_add);
    let (count, seconds) = (cells().count(), nanoseconds as f64 * 1e-9 / threads as f64);
    let Some(question) = question(count, seconds, threads) else { return Ok(()) };
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    let interactive = stdin.is_terminal() && stderr.is_terminal();
    if interactive && is_confirmed(&question, &mut stdin.lock(), &mut stderr) {
        return Ok(());
    }
    let outcome = if interactive { "nothing was run" } else { "pass --yes to run them" };
    Err(Failure::input(format!("error: {question}; {outcome}")))
}

/// The question about this many cells and seconds; `None` if no confirmation is needed.
fn question(cells: usize, seconds: f64, threads: usize) -> Option<String> {
    let long = seconds > MOST_SECONDS;
    let time = if long {
        format!(", about {} on {}", duration(seconds), count(threads, "thread"))
    } else {
        String::new()
    };
    (long || cells > MOST_CELLS).then(|| format!("{} to run{time}", count(cells, "cell")))
}

/// Asks the question; whether the answer is yes.
fn is_confirmed(question: &str, from: &mut impl BufRead, to: &mut impl Write) -> bool {
    ask(&format!("{question}. Run them? [y/N]"), from, to).is_some_and(|answer| is_yes(&answer))
}

/// The line that answers a question, trimmed; `None` if there is none.
pub fn ask(question: &str, from: &mut impl BufRead, to: &mut impl Write) -> Option<String> {
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
