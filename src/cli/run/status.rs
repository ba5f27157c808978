//! How far a run is, for the pages of the run and for programs.

use super::follower::{Follower, Workload};
use crate::cli::memory;
use crate::cli::outcome::Code;
use crate::cli::pages::{Changes, ChangingResults};
use exactfed_runner::panics::lock;
use exactfed_runner::runner::{Failed, Observer, RunWork, RunWorkCount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The stage of a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Cells are run.
    #[default]
    Running,
    /// Another process is at work on the experiments.
    Waiting,
    /// The last cell is stored, and the final reports are being written.
    Reporting,
    /// Everything is done.
    Finished,
    /// The run was interrupted.
    Stopped,
}

/// The most failed cells that are listed with their reasons; the others are counted alone.
const MOST_FAILURES: usize = 100;
/// Least time between two lines of the log while cells are run.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// How far a run is, counted from the events of which it is told as a [`Follower`], and read as a JSON
/// object by the pages of `run --live` and by the log of `run --log json`.
pub struct RunStatus {
    state: Mutex<State>,
    /// The work that was done.
    done: RunWorkCount,
    /// The work that is not done, because a run diverged.
    skipped: RunWorkCount,
    /// Called when the process is about to end during a round, to write the last pages.
    leave: Box<dyn Fn(&Self) + Send + Sync>,
    /// When the last line of the log was written; `None` if there is no log.
    log: Option<Mutex<Instant>>,
}

/// The part of the status that changes with cells and experiments, and not with each round.
#[derive(Default)]
struct State {
    phase: Phase,
    /// The counts of each experiment of the run, by its name.
    experiments: BTreeMap<String, Counts>,
    /// The name of the experiment whose cells are run; the last one once none is.
    current: String,
    /// When the first cell began; `None` before it.
    begin: Option<Instant>,
    /// How long cells were run, once no more are.
    took: Option<Duration>,
    /// The number of cells that this run stored.
    stored: u64,
    /// The first [`MOST_FAILURES`] failed cells as JSON objects, with their reasons.
    failures: Vec<Value>,
    /// The messages of errors that ended a part of the run.
    errors: Vec<String>,
    /// Why the last report of the running experiments could not be written.
    report_error: Option<String>,
}

/// The cells of an experiment for which the command is, and what became of them.
struct Counts {
    all: usize,
    /// The cells that are done or failed.
    handled: usize,
    failed: usize,
    /// Whether the first part of its cells began in this run.
    has_begun: bool,
    /// The work on the cells that were missing when the parts of its cells began that have; before the first one the
    /// work on all missing cells.
    work: RunWork,
    /// How often its results changed: the pages of the run write its report again when this has grown
    /// ([`ChangingResults`]).
    changes: u64,
}

impl Counts {
    /// The cells that are done.
    fn done(&self) -> usize {
        self.handled.saturating_sub(self.failed)
    }
}

impl RunStatus {
    /// The status of a run of these workloads before its first cell; `leave` is called with it if the
    /// process ends during a round.
    pub fn new<'a>(
        workloads: impl Iterator<Item = Workload<'a>>,
        leave: impl Fn(&Self) + Send + Sync + 'static,
    ) -> Self {
        let experiments = workloads.map(|work| {
            let Workload { experiment, cells: all, handled, work } = work;
            let counts = Counts { all, handled, failed: 0, has_begun: false, work, changes: 0 };
            (experiment.to_owned(), counts)
        });
        let state = State { experiments: experiments.collect(), ..State::default() };
        let done = RunWorkCount::default();
        let skipped = RunWorkCount::default();
        Self { state: Mutex::new(state), done, skipped, leave: Box::new(leave), log: None }
    }

    /// The same status with a log on standard error for programs: a line of JSON for the status at most
    /// every [`BETWEEN_LINES`], and one for each message and warning.
    pub fn logged(self) -> Self {
        Self { log: Some(Mutex::new(Instant::now())), ..self }
    }

    /// Enters a stage after the last cell, which ends the time during which cells are run.
    pub fn enter(&self, phase: Phase) {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.took = state.took.or(state.begin.map(|begin| begin.elapsed()));
    }

    /// Enters the last stage of a run that ended with this code, also if cells failed, and writes the last status to
    /// the log, if there is one.
    pub fn end(&self, code: Code) {
        self.enter(if code == Code::Interrupted { Phase::Stopped } else { Phase::Finished });
        self.log_now();
    }

    /// Writes the status to the log, if there is one.
    fn log_now(&self) {
        if let Some(last) = &self.log {
            self.write_status(&mut lock(last));
        }
    }

    /// Writes the status to the log, if there is one, unless the last line is more recent than [`BETWEEN_LINES`], or
    /// another thread is writing one.
    fn log_if_due(&self) {
        let Some(Ok(mut last)) = self.log.as_ref().map(Mutex::try_lock) else { return };
        if last.elapsed() >= BETWEEN_LINES {
            self.write_status(&mut last);
        }
    }

    /// Writes the status to the log, whose time of the last line is `last`.
    fn write_status(&self, last: &mut Instant) {
        *last = Instant::now();
        write_line(&self.read());
    }

    /// Writes a text of this kind (`message` or `warning`) as a JSON object to the log or, if there is none,
    /// as it is to standard error.
    fn say(&self, kind: &str, text: &str) {
        match self.log {
            Some(_) => write_line(&json!({ kind: text })),
            None => eprintln!("{text}"),
        }
    }

    /// Adds the message of an error that ended a part of the run.
    pub fn add_error(&self, message: String) {
        lock(&self.state).errors.push(message);
    }

    /// The status as a JSON object, whose keys the script of the pages reads: cells and local steps (of all clients)
    /// over all experiments, the share of the work that is done, in operations, and `seconds_left`, which is null while
    /// no cells are run and before any work is done. `seconds` is the time during which cells were run, and
    /// `peak_memory` is in bytes, or null where the system does not count them.
    pub fn read(&self) -> Value {
        let state = lock(&self.state);
        let counts = || state.experiments.values();
        let RunWork { steps, operations: work } = self.done.get();
        let total = counts().map(|c| c.work).sum::<RunWork>() - self.skipped.get();
        let total = total.operations.max(work);
        let seconds = state.took.or(state.begin.map(|begin| begin.elapsed()));
        let seconds = seconds.unwrap_or_default().as_secs_f64();
        let is_running = state.phase == Phase::Running;
        let left = (is_running && work > 0).then(|| seconds * (total - work) as f64 / work as f64);
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let errors: Vec<&String> = state.errors.iter().chain(&state.report_error).collect();
        json!({
            "phase": state.phase,
            "experiment": is_running.then_some(&state.current),
            "cells": counts().map(|c| c.all).sum::<usize>(),
            "done": counts().map(Counts::done).sum::<usize>(),
            "failed": counts().map(|c| c.failed).sum::<usize>(),
            "failures": state.failures,
            "errors": errors,
            "steps": steps,
            "share": if total > 0 { work as f64 / total as f64 } else { 0.0 },
            "steps_per_second": per_second(steps),
            "cells_per_second": per_second(state.stored),
            "seconds": seconds,
            "seconds_left": left,
            "peak_memory": memory::peak(),
        })
    }

    /// Changes the counts of the experiment whose cells are run, and notes that its results changed, so that its page
    /// is written again; a `change` that does nothing only notes this. Before the first experiment begins, nothing is
    /// done.
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let state = &mut *lock(&self.state);
        if let Some(counts) = state.experiments.get_mut(&state.current) {
            change(counts);
            counts.changes += 1;
        }
    }
}

/// Writes a JSON value as a line of standard error; a closed standard error is ignored.
fn write_line(value: &Value) {
    let _ = writeln!(stderr(), "{value}");
}

impl ChangingResults for RunStatus {
    /// How often the results of each experiment of the run have changed so far: 0 until it begins, once as it begins,
    /// and with each cell.
    fn changes(&self) -> Changes {
        let state = lock(&self.state);
        let counts = state.experiments.iter();
        counts.map(|(name, counts)| (name.clone(), counts.changes)).collect()
    }

    fn reported(&self, error: Option<String>) {
        lock(&self.state).report_error = error;
    }
}

impl Observer for RunStatus {
    /// Counts work that was done since the last call, and writes a line of the log if one is due.
    fn worked(&self, work: RunWork) {
        self.done.add(work);
        self.log_if_due();
    }

    /// Takes work that will not be done off the total, of which the status says how much is done.
    fn skipped(&self, work: RunWork) {
        self.skipped.add(work);
    }

    /// Counts a cell that is complete, whether its runs diverged or not.
    fn cell(&self, _diverged: usize) {
        self.count(|counts| counts.handled += 1);
        lock(&self.state).stored += 1;
    }

    /// Counts a failed cell of the current experiment, and lists it with its reason if it is among the first.
    fn failed(&self, failed: &Failed<'_>) {
        self.count(|counts| {
            counts.handled += 1;
            counts.failed += 1;
        });
        let state = &mut *lock(&self.state);
        if state.failures.len() < MOST_FAILURES {
            let Failed { cell, reason } = failed;
            state.failures.push(json!({
                "experiment": state.current,
                "cell": cell.id.as_str(),
                "label": cell.label,
                "reason": reason,
            }));
        }
    }
}

impl Follower for RunStatus {
    /// Replaces what was known of the experiment before its lock was held by what is known now. Where a later part of
    /// its cells begins, its work is added, since the work that is done is counted over all parts, and failed cells
    /// stay counted.
    fn begins(&self, workload: Workload<'_>) {
        let mut state = lock(&self.state);
        let Workload { experiment, cells: all, handled, work } = workload;
        state.phase = Phase::Running;
        state.current = experiment.to_owned();
        state.begin.get_or_insert_with(Instant::now);
        let before = state.experiments.get(experiment);
        let earlier_part = before.filter(|counts| counts.has_begun);
        let counts = Counts {
            all,
            handled,
            failed: earlier_part.map_or(0, |counts| counts.failed),
            has_begun: true,
            work: earlier_part.map_or(work, |counts| counts.work + work),
            changes: before.map_or(0, |counts| counts.changes) + 1,
        };
        state.experiments.insert(experiment.to_owned(), counts);
        drop(state);
        self.log_now();
    }

    /// Notes that the results of the experiment, which is still the current one, have changed: cells of a large
    /// experiment are written together, the last of them after they were counted.
    fn ends(&self, _experiment: &str) {
        self.count(|_| ());
    }

    /// Notes that the run waits for another process, until an experiment begins.
    fn waits(&self, _experiment: &str) {
        lock(&self.state).phase = Phase::Waiting;
        self.log_now();
    }

    fn leaves(&self) {
        (self.leave)(self);
    }

    fn message(&self, text: &str) {
        self.say("message", text);
    }

    fn warning(&self, text: &str) {
        self.say("warning", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::manifest::Source;

    /// Five cells of the experiment `t`, so many of which are handled, and operations on those that are run from now
    /// on.
    fn workload(handled: usize, operations: u64) -> Workload<'static> {
        let work = RunWork { steps: operations, operations };
        Workload { experiment: "t", cells: 5, handled, work }
    }

    /// The second part of the cells of an experiment, as a stage that follows from the first one, adds to the work of
    /// the first and keeps its failures.
    #[test]
    fn a_later_part_adds_to_the_counts_of_the_earlier_ones() {
        let text = include_str!("../../../experiments/smoke/diverging.toml").to_owned();
        let source = Source { name: "t".into(), text, ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let status = RunStatus::new(std::iter::once(workload(0, 900)), |_| ());
        let counts = || {
            let read = status.read();
            ["done", "failed", "share"].map(|key| read[key].as_f64().unwrap())
        };
        // What was known before the lock was held is replaced.
        status.begins(workload(1, 100));
        assert_eq!(counts(), [1.0, 0.0, 0.0]);
        status.worked(RunWork { steps: 100, operations: 100 });
        status.cell(0);
        status.failed(&Failed { cell: &plan.cells[0], reason: "x".into() });
        assert_eq!(counts(), [2.0, 1.0, 1.0]);
        status.begins(workload(3, 300));
        assert_eq!(counts(), [2.0, 1.0, 0.25]);
        status.worked(RunWork { steps: 100, operations: 100 });
        status.cell(0);
        assert_eq!(counts(), [3.0, 1.0, 0.5]);
    }
}
