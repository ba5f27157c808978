//! Asking before a run that is larger than it was perhaps meant to be.

use super::Failure;
use super::memory::Cells;
use super::plan::duration;
use driftbench_core::words::count;
use driftbench_runner::runner::cost::expected_nanoseconds;
use std::io::{BufRead, IsTerminal, Write};

/// So many cells are run without a question.
const CELLS: usize = 100_000;
/// So many seconds too: a day.
const SECONDS: f64 = 86_400.0;

/// Asks whether these cells, which are missing, are to be run, if they are much.
///
/// # Errors
/// That they are not; or, without somebody to ask, how to say that they are.
pub fn before(missing: &[Cells<'_>], threads: usize) -> Result<(), Failure> {
    let cells = || missing.iter().flat_map(|(_, cells)| cells);
    let costs = cells().map(|cell| expected_nanoseconds(&cell.identity));
    let nanoseconds = costs.fold(0, u64::saturating_add);
    let (count, seconds) = (cells().count(), nanoseconds as f64 * 1e-9 / threads as f64);
    let Some(question) = question(count, seconds, threads) else { return Ok(()) };
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    let somebody = stdin.is_terminal() && stderr.is_terminal();
    if somebody && answer(&question, &mut stdin.lock(), &mut stderr) {
        return Ok(());
    }
    let how = if somebody { "nothing was run" } else { "to run them, say --yes" };
    Err(Failure::input(format!("error: {question}; {how}")))
}

/// What there is to ask about so many cells and seconds; nothing if they are few.
fn question(cells: usize, seconds: f64, threads: usize) -> Option<String> {
    let long = seconds > SECONDS;
    let time = if long {
        format!(", about {} on {}", duration(seconds), count(threads, "thread"))
    } else {
        String::new()
    };
    (long || cells > CELLS).then(|| format!("{} to run{time}", count(cells, "cell")))
}

/// Whether the answer to the question is yes.
fn answer(question: &str, from: &mut impl BufRead, to: &mut impl Write) -> bool {
    let _ = write!(to, "{question}. Run them? [y/N] ");
    let _ = to.flush();
    let mut line = String::new();
    let said = from.read_line(&mut line).is_ok();
    said && ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
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
        for (said, meant) in [
            ("y\n", true),
            ("Yes\n", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yep\n", false),
        ] {
            let mut told = Vec::new();
            assert_eq!(answer("2 cells are to be run", &mut said.as_bytes(), &mut told), meant);
            assert_eq!(told, b"2 cells are to be run. Run them? [y/N] ");
        }
        let broken = &mut std::io::BufReader::new(&b"\xff\n"[..]);
        assert!(!answer("?", broken, &mut Vec::new()), "what is not text is no yes");
    }
}
