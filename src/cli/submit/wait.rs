//! `submit --wait`: follows the jobs of a submission and ends as their merge does.
//!
//! *Invariant*: it only looks. However it ends, the jobs go on.

use super::slurm::{Id, commands, states};
use super::{Code, Failure};
use crate::cli::interrupt::Interrupt;
use crate::store::Store;
use driftbench_core::words::quoted;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two looks, at the beginning and at most.
const BETWEEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Time between two looks whether the waiting is to end.
const TICK: Duration = Duration::from_millis(100);
/// How long a network's file system may take to show what the last job wrote.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines of the last job's log that are shown.
const LINES: usize = 30;

/// Follows the jobs until the second, which merges, has ended.
///
/// # Errors
/// If it ended without having merged.
pub fn follow(folder: &Path, ids: [&Id; 2], cells: usize) -> Result<Code, Failure> {
    eprintln!("waiting for them; Ctrl-C ends the waiting and leaves the jobs alone");
    let interrupt = Interrupt::listen()?;
    let shown = Shown::new(cells);
    let (mut between, mut gone) = (BETWEEN.0, None);
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("ended")) {
            shown.clear();
            log(&folder.join("merge.log"));
            return Ok(code(text.trim()));
        }
        match states(ids) {
            Some(states) if states.is_empty() => {
                let since = *gone.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    shown.clear();
                    log(&folder.join("merge.log"));
                    return Err(unmerged(folder, ids));
                }
                between = BETWEEN.0;
            }
            Some(states) => {
                gone = None;
                shown.update(finished(folder), &words(&states, ids[0]));
            }
            None => shown.update(finished(folder), "Slurm does not answer"),
        }
        let until = Instant::now() + between;
        while Instant::now() < until {
            if interrupt.came() {
                shown.clear();
                let [watch, cancel] = commands(ids);
                eprintln!("the jobs go on; {watch} shows them, {cancel} ends them");
                return Ok(Code::Interrupted);
            }
            sleep(TICK);
        }
        between = (between * 5 / 4).min(BETWEEN.1);
    }
}

fn unmerged(folder: &Path, ids: [&Id; 2]) -> Failure {
    let message = format!(
        "error: jobs {} and {} are gone and nothing was merged: see {}; what is finished is merged by: sh {}",
        ids[0].number(),
        ids[1].number(),
        folder.join("*.log").display(),
        quoted(&folder.join("merge.sh").to_string_lossy())
    );
    Failure { message, code: Code::SomeFailed }
}

fn code(text: &str) -> Code {
    match text {
        "0" => Code::Done,
        "1" => Code::Refuted,
        "3" => Code::NotComparable,
        "4" => Code::SomeFailed,
        "130" => Code::Interrupted,
        _ => Code::BadInput,
    }
}

/// Cells that tasks have finished.
fn finished(folder: &Path) -> usize {
    let tasks = fs::read_dir(folder.join("tasks")).into_iter().flatten().flatten();
    let tasks = tasks.filter(|entry| entry.path().is_dir());
    tasks.filter_map(|task| Some(Store::open(&task.path()).ok()?.count())).sum()
}

/// How many tasks are in which state.
fn words(states: &[(String, String)], tasks: &Id) -> String {
    let of = |wanted: &str| {
        let mine = states.iter().filter(|(number, _)| number == tasks.number());
        mine.filter(|(_, state)| state == wanted).count()
    };
    let (running, waiting) = (of("RUNNING"), of("PENDING"));
    let all = states.iter().filter(|(number, _)| number == tasks.number()).count();
    match (all, all - running - waiting) {
        (0, _) => "all tasks have ended, merging".into(),
        (_, 0) => format!("tasks: {running} running, {waiting} waiting"),
        (_, others) => format!("tasks: {running} running, {waiting} waiting, {others} ending"),
    }
}

fn log(file: &Path) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        eprintln!("{line}");
    }
}

/// A bar on a terminal, a line for each change elsewhere.
struct Shown {
    cells: usize,
    bar: Option<ProgressBar>,
    last: std::cell::RefCell<String>,
}

impl Shown {
    fn new(cells: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(cells as u64);
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} cells, {msg}, {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { cells, bar, last: std::cell::RefCell::default() }
    }

    fn update(&self, finished: usize, words: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(finished as u64);
            bar.set_message(words.to_owned());
            return;
        }
        let line = format!("{finished}/{} cells; {words}", self.cells);
        if *self.last.borrow() != line {
            eprintln!("{line}");
            *self.last.borrow_mut() = line;
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
