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

/// The work on the runs of these cells.
pub fn work_on(cells: &[Prepared<'_>]) -> RunWork {
    cells.iter().map(Prepared::work).sum()
}

/// An experiment and its cells that seem to be missing.
pub struct Task<'a> {
    pub plan: &'a Plan,
    /// The cells of this command.
    pub cells: Vec<&'a Cell>,
    /// How many of them have no results, and the work on those.
    pub missing: usize,
    pub work: RunWork,
    /// Those, if they are not too many to be prepared at a time.
    ready: Vec<Prepared<'a>>,
}

/// Cells whose instances, starts and limits are in memory at a time.
const AT_ONCE: usize = 1 << 16;

impl<'a> Task<'a> {
    /// The missing ones among the cells of a command, each prepared once to see that it can be.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(
        plan: &'a Plan,
        cells: Vec<&'a Cell>,
        missing: &[&'a Cell],
    ) -> Result<Self, Failure> {
        let (first, others) = missing.split_at(missing.len().min(AT_ONCE));
        let mut ready = prepared(plan, first)?;
        let mut work = work_on(&ready);
        for some in others.chunks(AT_ONCE) {
            ready = Vec::new();
            work = work + work_on(&prepared(plan, some)?);
        }
        Ok(Self { plan, cells, missing: missing.len(), work, ready })
    }
}

/// Those of these cells that are to be run.
pub fn missing<'a>(
    plan: &Plan,
    cells: &[&'a Cell],
    store: &Store,
    options: &RunOptions,
) -> Vec<&'a Cell> {
    let status = statuses(store, plan, cells);
    let missing = cells.iter().zip(&status).filter(|(_, status)| options.wants(status));
    missing.map(|(cell, _)| *cell).collect()
}

fn statuses(store: &Store, plan: &Plan, cells: &[&Cell]) -> Vec<Status> {
    cells.par_iter().map(|cell| store.status(&plan.experiment, &cell.id)).collect()
}

/// The context in which all experiments of a command are run.
pub struct Session<'a> {
    pub store: Store,
    pub options: &'a RunOptions,
    pub pool: rayon::ThreadPool,
    pub by: Provenance,
    pub interrupt: Interrupt,
    pub earlier: EarlierRuns,
}

impl Session<'_> {
    /// Runs the missing cells of an experiment whose lock is held, when `before` others of the
    /// command were handled.
    pub fn experiment(
        &self,
        task: Task<'_>,
        lock: &Lock,
        before: usize,
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let Task { plan, cells: all, ready, .. } = task;
        let (store, name) = (&self.store, &plan.experiment);
        store.write_experiment(plan)?;
        for (e, moved) in store.recover(name)? {
            follower.warning(&format!("{name}: {e}; moved to {} and run again", moved.display()));
        }
        self.report_others(plan, follower);
        let found = self.pool.install(|| statuses(store, plan, &all));
        if found.iter().any(|status| matches!(status, Status::Missing | Status::Damaged(_))) {
            // From now on they are cells that are still to be run, and pages show them as such.
            store.set_complete(plan, false)?;
        }
        let (done, failed) = self.stored(plan, &all, &found, follower);
        let wanted = all.iter().zip(&found).filter(|(_, status)| self.options.wants(status));
        let wanted: HashSet<CellId> = wanted.map(|(cell, _)| cell.id).collect();
        let ready = ready.into_iter().filter(|p| wanted.contains(&p.cell.id));
        let mut ready: Vec<Prepared<'_>> = ready.collect();
        let known: HashSet<CellId> = ready.iter().map(|p| p.cell.id).collect();
        let is_open = |c: &&&Cell| wanted.contains(&c.id) && !known.contains(&c.id);
        // Too many to be prepared at a time, or results that existed when the command began are gone.
        let open: Vec<&Cell> = all.iter().filter(is_open).copied().collect();
        let mut parts = open.chunks(AT_ONCE);
        let mut code = if failed.is_empty() { Code::Done } else { Code::SomeFailed };
        let mut left = wanted.len();
        let locks = lock.with_locks_of_thread();
        self.pool.broadcast(|_| work_for(locks.clone()));
        loop {
            let mut cells = std::mem::take(&mut ready);
            if cells.is_empty() && left > 0 {
                let some = parts.next().unwrap_or_default();
                cells = self.interrupt.immediately(|| prepared(plan, some))?;
            }
            let handled = cells.len();
            store.keep_optima(&cells);
            self.earlier.leave_out(plan, store, &mut cells);
            follower.begins(Workload {
                experiment: name,
                cells: before + all.len(),
                done: before + all.len() - left - failed.len(),
                work: work_on(&cells),
            });
            if left == wanted.len() {
                failed.iter().for_each(|failed| follower.failed(failed));
            }
            if cells.is_empty() {
                if !self.options.quiet && failed.is_empty() && before == 0 {
                    all_done(plan, all.len(), follower);
                }
                return Ok(code);
            }
            let before = done + wanted.len() - left;
            code = code.and(self.cells(plan, &cells, (before, all.len()), follower)?);
            left -= handled;
            if left == 0 || self.interrupt.is_requested() {
                return Ok(code);
            }
        }
    }

    /// The number of cells that are done, and those that failed before and are not run again.
    fn stored<'a>(
        &self,
        plan: &Plan,
        cells: &[&'a Cell],
        found: &[Status],
        follower: &dyn Follower,
    ) -> (usize, Vec<Failed<'a>>) {
        let name = &plan.experiment;
        let (mut done, mut failed) = (0, Vec::new());
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
            let failed = count(failed.len(), "cell");
            let text = format!("{name}: --rerun-failed runs the {failed} again that failed before");
            follower.message(&text);
        }
        (done, failed)
    }

    /// Runs these cells, when `before` of `all` cells of the command are done.
    fn cells<'a>(
        &'a self,
        plan: &'a Plan,
        cells: &'a [Prepared<'a>],
        (before, all): (usize, usize),
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let (name, quiet) = (&plan.experiment, self.options.quiet);
        let flag = self.interrupt.stop.clone();
        let progress = Progress::new(name, (before, all), work_on(cells), quiet, flag);
        let writer = BatchWriter::new(&self.store, plan, &self.by)?;
        let observer = Observers { progress: &progress, follower, writer: &writer };
        let threads = self.pool.current_num_threads();
        let store_cell = |done| writer.add(self.earlier.complete(plan, &self.store, done)?);
        let run = || self.pool.install(|| runner::run(cells, threads, &observer, store_cell));
        let done = || before + writer.stored();
        let last = || {
            let closed = writer.close();
            progress.finish();
            match closed {
                Ok(()) => follower.message(&interrupted(name, done(), all)),
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
            follower.message(&interrupted(name, done(), all));
            return Ok(Code::Interrupted);
        }
        Ok(if failed.is_empty() { Code::Done } else { Code::SomeFailed })
    }

    fn report_others(&self, plan: &Plan, follower: &dyn Follower) {
        let name = &plan.experiment;
        if self.earlier.replicates.contains_key(name) {
            // The cells of earlier looks are not left out: claims are judged on them too.
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

/// Those who observe the cells of an experiment.
struct Observers<'a> {
    progress: &'a Progress,
    follower: &'a dyn Follower,
    writer: &'a BatchWriter<'a>,
}

impl Observer for Observers<'_> {
    fn worked(&self, work: RunWork) {
        self.progress.worked(work);
        self.follower.worked(work);
    }

    fn skipped(&self, work: RunWork) {
        self.progress.skipped(work);
        self.follower.skipped(work);
    }

    fn cell(&self, diverged: usize) {
        self.progress.cell(diverged);
        self.follower.cell(diverged);
    }

    fn not_finite(&self, cell: &Cell, run: u64, round: u64) {
        self.follower.not_finite(cell, run, round);
    }

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

/// Says that there is nothing to do.
fn all_done(plan: &Plan, cells: usize, follower: &dyn Follower) {
    let name = &plan.experiment;
    match cells {
        0 if plan.manifest.frontier.is_empty() => {}
        0 => follower.message(&format!("{name}: {}", frontiers(plan).trim_end())),
        1 => follower.message(&format!("{name}: the one cell is done")),
        all => follower.message(&format!("{name}: all {all} cells are done")),
    }
}

/// The message of a run that was interrupted.
fn interrupted(name: &str, stored: usize, all: usize) -> String {
    let stored = stored_of(stored, all);
    format!("{name}: interrupted: {stored}, the rest is run when you run it again")
}

fn stored_of(stored: usize, all: usize) -> String {
    let cells = count(all, "cell");
    let are = if all == 1 { "is" } else { "are" };
    format!("{stored} of {cells} {are} stored")
}

/// The failure of a run that could not write its results.
fn stopped(name: &str, e: &Error, stored: usize, all: usize) -> Failure {
    let stored = stored_of(stored, all);
    let message =
        format!("error: {e}\n{name}: {stored}; run it again when there is room for the rest");
    Failure { code: Code::SomeFailed, ..Failure::input(message) }
}
