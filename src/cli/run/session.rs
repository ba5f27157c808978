//! The cells of one experiment of a run.

use super::follower::{Follower, Workload};
use super::options::RunOptions;
use crate::cli::interrupt::Interrupt;
use crate::cli::outcome::{Code, Failure};
use crate::cli::plan::frontiers;
use crate::cli::prepare::prepared;
use crate::cli::progress::Progress;
use crate::cli::reuse::EarlierRuns;
use crate::store::{BatchWriter, Lock, Provenance, Status, Store, work_for};
use exactfed_core::words::count;
use exactfed_runner::files::Error;
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::{self, Failed, Observer, Prepared, RunWork};
use rayon::prelude::*;
use std::collections::HashSet;

/// The work on the runs of these cells that are missing, for the progress: first runs of a cell that
/// [`EarlierRuns::leave_out`] has marked are not part of it.
pub fn work_on(cells: &[Prepared<'_>]) -> RunWork {
    cells.iter().map(Prepared::work).sum()
}

/// An experiment of a run, with the cells that lacked results before its lock was held: another process
/// may store some of them until then.
pub struct Task<'a> {
    pub plan: &'a Plan,
    /// The cells that the command is for, with results or without.
    pub cells: Vec<&'a Cell>,
    /// The number of them that are to be run.
    pub missing: usize,
    /// The work on the missing cells.
    pub work: RunWork,
    /// The missing cells, prepared; empty if they are more than [`AT_ONCE`].
    ready: Vec<Prepared<'a>>,
}

/// The most cells whose instances, starts and limits are in memory at a time.
const AT_ONCE: usize = 1 << 16;

impl<'a> Task<'a> {
    /// The task of running the `missing` ones among these cells of a plan. Each missing cell is prepared,
    /// so that whatever is wrong with one is reported before the first cell of the command runs.
    ///
    /// # Errors
    /// What is wrong with the missing cells.
    pub fn new(
        plan: &'a Plan,
        cells: Vec<&'a Cell>,
        missing: &[&'a Cell],
    ) -> Result<Self, Failure> {
        let (first, others) = missing.split_at(missing.len().min(AT_ONCE));
        let mut ready = prepared(plan, first)?;
        let mut work = work_on(&ready);
        for some in others.chunks(AT_ONCE) {
            // Each part is dropped before the next is prepared, and prepared again when it is run.
            ready = Vec::new();
            work = work + work_on(&prepared(plan, some)?);
        }
        Ok(Self { plan, cells, missing: missing.len(), work, ready })
    }
}

/// The cells among these that are to be run, by what is stored of them, which is read and checked, and by the options:
/// with `--force` also those that are done, and those that failed before only with `--rerun-failed` or `--force`.
pub fn missing<'a>(
    plan: &Plan,
    cells: &[&'a Cell],
    store: &Store,
    options: &RunOptions,
) -> Vec<&'a Cell> {
    let found = statuses(store, plan, cells);
    let missing = cells.iter().zip(&found).filter(|(_, status)| options.wants(status));
    missing.map(|(cell, _)| *cell).collect()
}

/// What is stored of each of these cells, in their order. Their files are read and checked, on all threads of the pool
/// in which this is called.
fn statuses(store: &Store, plan: &Plan, cells: &[&Cell]) -> Vec<Status> {
    cells.par_iter().map(|cell| store.status(&plan.experiment, &cell.id)).collect()
}

/// What is stored of the cells of an experiment.
struct StoredCells<'a> {
    /// The number of cells that are done.
    done: usize,
    /// The cells that failed before and are not run again.
    failed: Vec<Failed<'a>>,
}

/// The cells of an experiment that are still to be run. At most [`AT_ONCE`] are prepared at a time, since each may hold
/// an instance.
struct RemainingCells<'a> {
    plan: &'a Plan,
    /// The cells that the command prepared before its first cell ran.
    ready: Vec<Prepared<'a>>,
    /// All others: they were too many to stay prepared, or their results existed when the command began.
    unprepared: Vec<&'a Cell>,
}

impl<'a> RemainingCells<'a> {
    /// The cells `wanted`, which are prepared already where they are among `ready`. Cells of `ready` that
    /// are not wanted are dropped: another process has stored them.
    fn new(plan: &'a Plan, wanted: Vec<&'a Cell>, mut ready: Vec<Prepared<'a>>) -> Self {
        let wanted_ids: HashSet<CellId> = wanted.iter().map(|cell| cell.id).collect();
        ready.retain(|prepared| wanted_ids.contains(&prepared.cell.id));
        let ready_ids: HashSet<CellId> = ready.iter().map(|prepared| prepared.cell.id).collect();
        let mut unprepared = wanted;
        unprepared.retain(|cell| !ready_ids.contains(&cell.id));
        Self { plan, ready, unprepared }
    }

    fn count(&self) -> usize {
        self.ready.len() + self.unprepared.len()
    }

    /// Takes the next part of the cells, prepared: those that are ready, and then up to [`AT_ONCE`] at a time; none if
    /// no cell is left. An interruption ends the process at once only while cells are prepared: otherwise the run
    /// notices it and reports what is stored.
    ///
    /// # Errors
    /// What is wrong with a cell of the part.
    fn next_part(&mut self, interrupt: &Interrupt) -> Result<Vec<Prepared<'a>>, Failure> {
        if !self.ready.is_empty() || self.unprepared.is_empty() {
            return Ok(std::mem::take(&mut self.ready));
        }
        let size = self.unprepared.len().min(AT_ONCE);
        let part: Vec<&Cell> = self.unprepared.drain(..size).collect();
        interrupt.immediately(|| prepared(self.plan, &part))
    }
}

/// The context in which all experiments of a command are run.
pub struct Session<'a> {
    pub store: Store,
    pub options: &'a RunOptions,
    pub pool: rayon::ThreadPool,
    /// What is stored with each cell as the program that computed it.
    pub by: Provenance,
    pub interrupt: Interrupt,
    /// Results from which cells take their first runs.
    pub earlier: EarlierRuns,
}

impl Session<'_> {
    /// Runs the missing cells of an experiment whose `lock` is held, stores them, and tells the follower. Before the
    /// first cell, it writes the experiment of the plan into the results, which reports follow from then on, and
    /// quarantines damaged files. `before` cells of the experiment were handled by earlier calls of the command, as
    /// where fresh runs follow from candidates; the follower's counts include them. Returns how it ended:
    /// [`Code::SomeFailed`] if some cells failed, now or in an earlier run, and [`Code::Interrupted`] if it was
    /// interrupted.
    ///
    /// # Errors
    /// If a cell cannot be prepared, or results cannot be read or written.
    pub fn experiment(
        &self,
        task: Task<'_>,
        lock: &Lock,
        before: usize,
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let Task { plan, cells: all, ready, .. } = task;
        let store = &self.store;
        let name = &plan.experiment;
        store.write_experiment(plan)?;
        for (e, moved) in store.recover(name)? {
            follower.warning(&format!("{name}: {e}; moved to {} and run again", moved.display()));
        }
        self.report_others(plan, follower);
        let found = self.pool.install(|| statuses(store, plan, &all));
        if found.iter().any(|status| matches!(status, Status::Missing | Status::Damaged(_))) {
            // From now on they are cells that are still to be run, and pages show them as such.
            store.record_incomplete(plan)?;
        }
        let stored = self.stored(plan, &all, &found, follower);
        let mut remaining = RemainingCells::new(plan, self.wanted(&all, &found), ready);
        let wanted = remaining.count();
        let mut code = if stored.failed.is_empty() { Code::Done } else { Code::SomeFailed };
        // Code of an algorithm may start runs by itself. Such a run fails where it would wait for a lock
        // of this run, which waits for it.
        let locks = lock.with_locks_of_thread();
        self.pool.broadcast(|_| work_for(locks.clone()));
        loop {
            let left = remaining.count();
            let mut cells = remaining.next_part(&self.interrupt)?;
            // Later commands need not search for θ* again.
            store.keep_optima(&cells);
            self.earlier.leave_out(plan, store, &mut cells);
            let is_first_part = left == wanted;
            // The follower is told next of the cells that failed before.
            let untold = if is_first_part { stored.failed.len() } else { 0 };
            follower.begins(Workload {
                experiment: name,
                cells: before + all.len(),
                handled: before + all.len() - left - untold,
                work: work_on(&cells),
            });
            if is_first_part {
                stored.failed.iter().for_each(|failed| follower.failed(failed));
            }
            if cells.is_empty() {
                if !self.options.quiet && stored.failed.is_empty() && before == 0 {
                    all_done(plan, all.len(), follower);
                }
                return Ok(code);
            }
            // Parts before this one are done too.
            let done = stored.done + wanted - left;
            code = code.and(self.cells(plan, &cells, done, all.len(), follower)?);
            if remaining.count() == 0 || self.interrupt.is_requested() {
                return Ok(code);
            }
        }
    }

    /// The cells among these that are to be run, where `found` is what is stored of each.
    fn wanted<'a>(&self, cells: &[&'a Cell], found: &[Status]) -> Vec<&'a Cell> {
        let wanted = cells.iter().zip(found).filter(|(_, status)| self.options.wants(status));
        wanted.map(|(cell, _)| *cell).collect()
    }

    /// Sorts these cells of a plan by what is stored of each (`found`), and tells the follower which failed
    /// before and are not run again.
    fn stored<'a>(
        &self,
        plan: &Plan,
        cells: &[&'a Cell],
        found: &[Status],
        follower: &dyn Follower,
    ) -> StoredCells<'a> {
        let name = &plan.experiment;
        let mut done = 0;
        let mut failed = Vec::new();
        for (cell, status) in cells.iter().copied().zip(found) {
            match status {
                Status::Done => done += 1,
                Status::Failed(reason) if !self.options.wants(status) => {
                    let id = &cell.id;
                    follower.message(&format!("{name}: cell {id} failed before: {reason}"));
                    failed.push(Failed { cell, reason: reason.clone() });
                }
                Status::Failed(_) | Status::Missing | Status::Damaged(_) => {}
            }
        }
        if !failed.is_empty() {
            let cells = count(failed.len(), "cell");
            let text = format!("{name}: --rerun-failed runs the {cells} again that failed before");
            follower.message(&text);
        }
        StoredCells { done, failed }
    }

    /// Runs these cells and stores each as it ends, when `before` of the `all` cells that the command is for
    /// are done. After an interruption the cells that have ended are stored, and the result is [`Code::Interrupted`];
    /// if a round goes on for too long then, the process ends here.
    ///
    /// # Errors
    /// If results cannot be written; the message says how many cells are stored.
    fn cells<'a>(
        &'a self,
        plan: &'a Plan,
        cells: &'a [Prepared<'a>],
        before: usize,
        all: usize,
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let name = &plan.experiment;
        let quiet = self.options.quiet;
        let stop = self.interrupt.stop.clone();
        let progress = Progress::new(name, before, all, work_on(cells), quiet, stop);
        let writer = BatchWriter::new(&self.store, plan, &self.by)?;
        let observer = Observers { progress: &progress, follower, writer: &writer };
        let threads = self.pool.current_num_threads();
        let store_cell = |done| writer.add(self.earlier.complete(plan, &self.store, done)?);
        let run = || self.pool.install(|| runner::run(cells, threads, &observer, store_cell));
        let done = || before + writer.stored();
        // What is left to do if a round has no end in sight after an interruption, before the process ends.
        let last = || {
            let closed = writer.close();
            progress.finish();
            match closed {
                Ok(()) => follower.message(&interrupted_message(name, done(), all)),
                Err(e) => follower.message(&stopped(name, &e, done(), all).message),
            }
            follower.leaves();
        };
        let result = self.interrupt.in_time(last, || writer.during(run));
        progress.finish();
        let failed = result.map_err(|e| stopped(name, &e, done(), all))?;
        for failed in &failed {
            let Failed { cell, reason } = failed;
            follower.message(&format!("{name}: cell {} failed: {reason}", cell.id));
            writer.fail(failed)?;
        }
        if self.interrupt.is_requested() {
            follower.message(&interrupted_message(name, done(), all));
            return Ok(Code::Interrupted);
        }
        Ok(if failed.is_empty() { Code::Done } else { Code::SomeFailed })
    }

    /// Tells the follower how many stored cells of the experiment are none of its plan, since the manifest
    /// was changed after they were run: reports leave them out.
    fn report_others(&self, plan: &Plan, follower: &dyn Follower) {
        let name = &plan.experiment;
        if self.earlier.replicates.contains_key(name) {
            // `--until-decided` adds replicates. The cells of earlier looks are not left out: claims are judged on
            // them too.
            return;
        }
        if plan.tuning.as_ref().is_some_and(|tuning| tuning.groups.is_empty()) {
            // Which cells follow from the candidates is not known yet.
            return;
        }
        let known: HashSet<&str> = plan.all_cells().map(|cell| &*cell.id).collect();
        let others = self.store.count_others(name, &known);
        if others > 0 && !self.options.quiet {
            let have = if others == 1 { "has" } else { "have" };
            let are = if others == 1 { "is" } else { "are" };
            follower.message(&format!(
                "{name}: {} {have} other settings and {are} left out of reports",
                count(others, "stored cell"),
            ));
        }
    }
}

/// Passes what happens to the cells of an experiment on to all that observe it.
struct Observers<'a> {
    progress: &'a Progress,
    follower: &'a dyn Follower,
    writer: &'a BatchWriter<'a>,
}

impl Observer for Observers<'_> {
    /// Passes on that work was done since the last call.
    fn worked(&self, work: RunWork) {
        self.progress.worked(work);
        self.follower.worked(work);
    }

    /// Takes work that will not be done ([`Observer::skipped`]) off the totals of the progress and of the follower.
    fn skipped(&self, work: RunWork) {
        self.progress.skipped(work);
        self.follower.skipped(work);
    }

    /// Passes on that a cell is complete, of which `diverged` runs diverged.
    fn cell(&self, diverged: usize) {
        self.progress.cell(diverged);
        self.follower.cell(diverged);
    }

    fn not_finite(&self, cell: &Cell, run: u64, round: u64) {
        self.follower.not_finite(cell, run, round);
    }

    /// Records in the results that a cell failed, and passes it on to the follower.
    fn failed(&self, failed: &Failed<'_>) {
        // Whoever reads the results meanwhile sees the reason. At the end it is written again, and
        // an error is reported.
        let _ = self.writer.fail(failed);
        self.follower.failed(failed);
    }

    fn interrupted(&self) -> bool {
        self.progress.interrupted()
    }
}

/// Tells the follower that there is nothing to do, since all cells of the command are done; of an
/// experiment with frontiers alone, what `report` computes.
fn all_done(plan: &Plan, cells: usize, follower: &dyn Follower) {
    let name = &plan.experiment;
    match cells {
        0 if plan.manifest.frontier.is_empty() => {}
        0 => follower.message(&format!("{name}: {}", frontiers(plan).trim_end())),
        1 => follower.message(&format!("{name}: the one cell is done")),
        all => follower.message(&format!("{name}: all {all} cells are done")),
    }
}

/// The message of a run that was interrupted when `stored` of `all` cells of the experiment `name` were stored.
fn interrupted_message(name: &str, stored: usize, all: usize) -> String {
    let stored = stored_in_words(stored, all);
    format!("{name}: interrupted: {stored}, the rest is run when you run it again")
}

/// How many of all cells are stored, in words: `3 of 80 cells are stored`.
fn stored_in_words(stored: usize, all: usize) -> String {
    let cells = count(all, "cell");
    let are = if all == 1 { "is" } else { "are" };
    format!("{stored} of {cells} {are} stored")
}

/// The failure of a run that could not write its results, mostly since the disk is full, when `stored` of `all` cells
/// were stored.
fn stopped(name: &str, e: &Error, stored: usize, all: usize) -> Failure {
    let stored = stored_in_words(stored, all);
    let message =
        format!("error: {e}\n{name}: {stored}; run it again when there is room for the rest");
    Failure { code: Code::SomeFailed, ..Failure::input(message) }
}
