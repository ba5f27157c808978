//! `submit --wait`: follows the jobs of a submission and exits with the code of their merge.
//!
//! *Invariant*: it only observes. However it ends, the jobs continue.

use super::slurm::{Id, TaskState, commands, states};
use crate::cli::interrupt::Interrupt;
use crate::cli::outcome::{Code, Failure};
use crate::store::Store;
use exactfed_core::words::quoted;
use exactfed_runner::files::read_regular_text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time before the second query of Slurm; intervals grow from it.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time between two queries of Slurm.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);
/// Time between two checks for Ctrl-C.
const TICK: Duration = Duration::from_millis(100);
/// How long a network file system may take to show the files of the last job.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most lines of the merge's log that are printed.
const LOG_LINES: usize = 30;

/// Shows the state of the jobs of a submission (`ids`: the array, the merge) until the merge has ended, and
/// returns the code of the merge, which the merge writes into the file `ended` of `folder`. `cells` is the number of
/// submitted cells. After Ctrl-C it returns [`Code::Interrupted`], and the jobs continue.
///
/// # Errors
/// If the jobs are gone and the merge has left no code, [`PATIENCE`] after they were seen last.
pub fn follow(folder: &Path, ids: [&Id; 2], cells: usize) -> Result<Code, Failure> {
    eprintln!("waiting for the jobs; Ctrl-C stops waiting and does not affect them");
    let interrupt = Interrupt::listen()?;
    let bar = status_bar(cells);
    let mut last = String::new();
    let mut between = FIRST_INTERVAL;
    let mut gone = None;
    loop {
        if let Ok(text) = read_regular_text(&folder.join("ended")) {
            bar.finish_and_clear();
            print_log(&folder.join("merge.log"));
            return Ok(parse_code(text.trim()));
        }
        match states(ids) {
            Some(states) if states.is_empty() => {
                let since = *gone.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    bar.finish_and_clear();
                    print_log(&folder.join("merge.log"));
                    return Err(unmerged(folder, ids));
                }
                between = FIRST_INTERVAL;
            }
            Some(states) => {
                gone = None;
                show(&bar, &mut last, finished_cells(folder), &describe(&states, ids[0]));
            }
            None => show(&bar, &mut last, finished_cells(folder), "Slurm does not answer"),
        }
        let until = Instant::now() + between;
        while Instant::now() < until {
            if interrupt.is_requested() {
                bar.finish_and_clear();
                let [watch, cancel] = commands(ids);
                eprintln!("the jobs continue; {watch} shows them, {cancel} cancels them");
                return Ok(Code::Interrupted);
            }
            sleep(TICK);
        }
        between = (between * 5 / 4).min(LONGEST_INTERVAL);
    }
}

/// The failure that both jobs are gone and nothing was merged, with the command that merges.
fn unmerged(folder: &Path, ids: [&Id; 2]) -> Failure {
    let message = format!(
        "error: jobs {} and {} are gone and nothing was merged: see {}; to merge the finished cells: sh {}",
        ids[0].number,
        ids[1].number,
        folder.join("*.log").display(),
        quoted(&folder.join("merge.sh").to_string_lossy())
    );
    Failure { code: Code::SomeFailed, ..Failure::input(message) }
}

/// The exit code that the merge wrote as a number; [`Code::BadInput`] if it is none of the known ones.
fn parse_code(text: &str) -> Code {
    use Code::{BadInput, Done, Interrupted, NotComparable, Refuted, SomeFailed};
    let mut all = [Done, Refuted, NotComparable, SomeFailed, Interrupted].into_iter();
    all.find(|code| (*code as u8).to_string() == text).unwrap_or(BadInput)
}

/// The number of cells in the results folders of the tasks, which grow while they run. A folder that cannot be read
/// counts as empty.
fn finished_cells(folder: &Path) -> usize {
    let tasks = fs::read_dir(folder.join("tasks")).into_iter().flatten().flatten();
    let tasks = tasks.filter(|entry| entry.path().is_dir());
    tasks.filter_map(|task| Some(Store::open(&task.path()).ok()?.count())).sum()
}

/// How many tasks of the array (`tasks` is its identifier) are in which state, in words. `states` has the
/// state of the merge too, which waits for the tasks.
fn describe(states: &[TaskState], tasks: &Id) -> String {
    let mine = || states.iter().filter(|task| task.job == tasks.number);
    let count = |wanted: &str| mine().filter(|task| task.state == wanted && !task.is_held).count();
    let running = count("RUNNING");
    let waiting = count("PENDING");
    let held = mine().filter(|task| task.is_held).count();
    let others = mine().count() - running - waiting - held;
    if mine().next().is_none() {
        return "all tasks have ended, merging".into();
    }
    let mut text = format!("tasks: {running} running, {waiting} waiting");
    if held > 0 {
        text += &format!(", {held} held until `scontrol release`");
    }
    if others > 0 {
        text += &format!(", {others} ending");
    }
    text
}

/// Prints the last [`LOG_LINES`] lines of a log on standard error, or nothing if it cannot be read.
fn print_log(file: &Path) {
    let text = read_regular_text(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
        eprintln!("{line}");
    }
}

/// Shows the number of finished cells and the text on the tasks: in the bar on a terminal, otherwise as a line
/// unless it is the same as `last`, which becomes this line.
fn show(bar: &ProgressBar, last: &mut String, finished: usize, tasks: &str) {
    bar.set_position(finished as u64);
    bar.set_message(tasks.to_owned());
    let line = format!("{finished}/{} cells; {tasks}", bar.length().unwrap_or(0));
    if bar.is_hidden() && *last != line {
        eprintln!("{line}");
        *last = line;
    }
}

/// A bar of so many cells, hidden without a terminal.
fn status_bar(cells: usize) -> ProgressBar {
    let bar = ProgressBar::hidden();
    bar.set_length(cells as u64);
    if stderr().is_terminal() {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} cells, {msg}, {elapsed}");
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_held_are_not_those_that_wait() {
        let tasks = Id::parse("41").unwrap();
        let said = |lines: &[&str]| {
            let states: Vec<_> = lines.iter().filter_map(|line| TaskState::read(line)).collect();
            describe(&states, &tasks)
        };
        let lines = [
            "41 RUNNING None",
            "41 PENDING Resources",
            "41 PENDING launch failed requeued held",
            "41 PENDING JobHeldUser",
            "41 COMPLETING None",
            "42 PENDING Dependency",
        ];
        let expected = "tasks: 1 running, 1 waiting, 2 held until `scontrol release`, 1 ending";
        assert_eq!(said(&lines), expected);
        assert_eq!(said(&lines[..2]), "tasks: 1 running, 1 waiting");
        assert_eq!(said(&lines[5..]), "all tasks have ended, merging");
    }
}
