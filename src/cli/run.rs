//! `run`: runs the missing cells of experiments.

mod following;

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::reuse::EarlierReplicates;
use super::{
    Code, Failure, Manifests, confirm, memory, names, pool, prepared, require_code, shard,
};
use crate::analysis::frontier::are_known;
use crate::analysis::tuned;
use crate::store::provenance;
use crate::store::{BatchWriter, Lock, Provenance, Status, Store, work_for};
use exactfed_core::words::count;
use exactfed_runner::files::Error;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{self, Failed, Observer, Prepared, RunWork, Silent};
use rayon::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Once;

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed run experiments/scafflsa/fig1-high.toml --threads 2")]
pub struct Args {
    #[command(flatten)]
    pub(super) manifests: Manifests,
    #[command(flatten)]
    pub how: How,
    /// Add replicates until every claim is supported or refuted: the claims are judged at the
    /// manifest's replicates, at twice as many, and so on, at levels that add up to 5 %
    #[arg(long, conflicts_with_all = ["only", "shard"])]
    pub until_decided: bool,
    /// The most replicates of --until-decided [default: 16 times the manifest's]
    #[arg(long, value_name = "R", requires = "until_decided")]
    pub max_replicates: Option<u64>,
}

/// Options of `run`, which `reproduce` has too.
#[derive(clap::Args, Default)]
pub struct How {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Number of threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Run only the cells listed in this file, one id per line (- for standard input)
    #[arg(long, value_name = "FILE")]
    pub only: Option<PathBuf>,
    /// Run shard I of N of the cells; shards are balanced by expected cost
    #[arg(long, value_name = "I/N", value_parser = shard::parse)]
    pub shard: Option<(u64, u64)>,
    /// Also run cells that are done
    #[arg(long)]
    pub force: bool,
    /// Also run cells that failed before
    #[arg(long)]
    pub rerun_failed: bool,
    /// Do not ask for confirmation before large runs
    #[arg(long)]
    pub yes: bool,
    /// Memory that runs may use, such as 64G; by default the available memory
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_size)]
    pub memory: Option<f64>,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let mut plans = args.manifests.plans()?;
    if args.how.only.is_some() {
        // A list may name cells that follow from results.
        let store = Store::open(&args.how.out)?;
        let all = plans.into_iter().map(|plan| tuned::all_stages(plan, &store));
        plans = all.collect::<Result<_, _>>()?;
    }
    execute(&plans, &args.how)
}

/// Runs the missing cells of these plans.
pub fn execute(plans: &[Plan], how: &How) -> Result<Code, Failure> {
    PreparedRun::prepare(plans, how)?.execute(&Silent)
}

/// The same, until `interrupt` is requested.
pub fn execute_until(
    plans: &[Plan],
    how: &How,
    interrupt: Interrupt,
    follower: &dyn Follower,
) -> Result<Code, Failure> {
    PreparedRun::prepare_with(plans, how, Some(interrupt))?.execute(follower)
}

/// Follows a run from its first experiment on.
pub trait Follower: Observer {
    /// The cells of an experiment are run from now on, after those of the experiment before.
    fn begins(&self, _workload: Workload<'_>) {}
    /// No more cells of an experiment are run, and those that were run are stored.
    fn ends(&self, _experiment: &str) {}
    /// Another process is at work on all remaining experiments, of which this is the first.
    fn waits(&self, _experiment: &str) {}
    /// The process ends as soon as this returns, since a round has no end in sight. No cell is
    /// stored any more.
    fn leaves(&self) {}
    /// What the other methods say, and how the run goes on: a line, by default for standard error.
    fn message(&self, text: &str) {
        eprintln!("{text}");
    }
    /// Stored results are not as they were written: a line, by default for standard error.
    fn warning(&self, text: &str) {
        eprintln!("{text}");
    }
}

impl Follower for Silent {}

/// The work on an experiment.
pub struct Workload<'a> {
    /// The name of the experiment.
    pub experiment: &'a str,
    /// Number of requested cells.
    pub cells: usize,
    /// Number of those that are done. Before the experiment begins, it includes cells that failed
    /// in an earlier run and are not run again.
    pub done: usize,
    /// The work on the others.
    pub work: RunWork,
}

/// A valid run of which nothing is written yet.
pub struct PreparedRun<'a> {
    session: Session<'a>,
    waiting: VecDeque<Task<'a>>,
}

impl<'a> PreparedRun<'a> {
    /// Builds every instance before anything is written, so that bad input costs nothing.
    pub fn prepare(plans: &'a [Plan], how: &'a How) -> Result<Self, Failure> {
        Self::prepare_with(plans, how, None)
    }

    /// The same where an earlier run of the command handles signals already.
    pub fn prepare_with(
        plans: &'a [Plan],
        how: &'a How,
        interrupt: Option<Interrupt>,
    ) -> Result<Self, Failure> {
        let store = Store::open(&how.out)?;
        check_names(plans, &store, &how.out)?;
        let pool = pool(how.threads)?;
        let threads = pool.current_num_threads();
        let chosen = shard::chosen(plans, how.only.as_deref(), how.shard)?;
        let missing: Vec<memory::Cells<'_>> = pool.install(|| {
            let missing = |(plan, share): (_, &Vec<_>)| (plan, missing(plan, share, &store, how));
            plans.iter().zip(&chosen).map(missing).collect()
        });
        for (plan, cells) in &missing {
            require_code(plan, cells)?;
        }
        memory::fits(&missing, threads, how.memory)?;
        let confirm = || if how.yes { Ok(()) } else { confirm::confirm(&missing, threads) };
        let interrupt = match interrupt {
            Some(interrupt) => interrupt.immediately(confirm).map(|()| interrupt)?,
            None => confirm().and_then(|()| Interrupt::listen())?,
        };
        let mut waiting: Vec<Task<'_>> = interrupt.immediately(|| {
            let build = missing.into_iter().zip(chosen).map(|((plan, missing), share)| {
                let missing = pool.install(|| prepared(plan, &missing))?;
                Ok(Task { plan, share, missing })
            });
            build.collect::<Result<_, Failure>>()
        })?;
        // Pages are written as experiments end: those that take least time come first, so that
        // there is something to read soon, and last those whose frontiers have to be computed for
        // their pages, which takes a time that is not known.
        let place =
            |task: &Task<'_>| (!are_known(task.plan, &store), work_on(&task.missing).nanoseconds);
        waiting.sort_by_cached_key(place);
        let (by, earlier) = (provenance::now(), EarlierReplicates::default());
        let session = Session { store, how, pool, by, interrupt, earlier };
        Ok(Self { session, waiting: waiting.into() })
    }

    /// The same run, in which runs of earlier cells are not run again, unless it is forced.
    pub fn reusing(mut self, earlier: EarlierReplicates) -> Self {
        if !self.session.how.force {
            self.session.earlier = earlier;
        }
        self
    }

    /// The work on each experiment, as far as it is known before their locks are held.
    pub fn workloads(&self) -> impl Iterator<Item = Workload<'_>> {
        self.waiting.iter().map(|task| Workload {
            experiment: &task.plan.experiment,
            cells: task.share.len(),
            done: task.share.len() - task.missing.len(),
            work: work_on(&task.missing),
        })
    }

    /// Handles signals as long as the run exists.
    pub fn interrupt(&self) -> &Interrupt {
        &self.session.interrupt
    }

    /// Hands over the handling of signals.
    pub fn into_interrupt(self) -> Interrupt {
        self.session.interrupt
    }

    /// Runs the cells.
    pub fn execute(&mut self, follower: &dyn Follower) -> Result<Code, Failure> {
        let Self { session, waiting } = self;
        let store = &session.store;
        store.create()?;
        let mut code = Code::Done;
        let reported = Once::new();
        let busy = |name: &str| {
            follower.waits(name);
            reported.call_once(|| {
                if !session.how.quiet {
                    follower.message(&super::waiting(name));
                }
            });
        };
        while !waiting.is_empty() {
            let names: Vec<&str> =
                waiting.iter().map(|task| task.plan.experiment.as_str()).collect();
            let lock = store.lock_first(&names, &|| session.interrupt.is_requested(), &busy)?;
            let Some((place, lock)) = lock else { return Ok(Code::Interrupted) };
            // Another run's experiments come last: it may have completed them by then.
            waiting.rotate_left(place);
            let Some(task) = waiting.pop_front() else { break };
            let (plan, share) = (task.plan, task.share.len());
            code = code.and(session.experiment(task, &lock, 0, follower)?);
            code = code.and(session.following(plan, share, &lock, follower)?);
            follower.ends(&plan.experiment);
        }
        Ok(if session.interrupt.is_requested() { Code::Interrupted } else { code })
    }
}

/// The work on the runs of these cells.
fn work_on(cells: &[Prepared<'_>]) -> RunWork {
    cells.iter().map(Prepared::work).sum()
}

/// Refuses a name that differs only in upper and lower case from one that has results.
fn check_names(plans: &[Plan], store: &Store, out: &Path) -> Result<(), Failure> {
    let stored = if Store::schema(out).is_some() { store.listing()? } else { Vec::new() };
    for (stored, _) in &stored {
        for Plan { experiment, source, .. } in plans {
            if stored != experiment && names::folded(stored) == names::folded(experiment) {
                return Err(Failure::input(format!(
                    "error: {}: the experiments \"{experiment}\" and \"{stored}\", which has results in {}, differ only in upper and lower case, which not every file system tells apart",
                    source.name,
                    out.display()
                )));
            }
        }
    }
    Ok(())
}

/// An experiment and its cells that seem to be missing.
struct Task<'a> {
    plan: &'a Plan,
    /// The cells of this command.
    share: Vec<&'a Cell>,
    /// Those of them that have no results.
    missing: Vec<Prepared<'a>>,
}

/// The cells of a share that have no results.
fn missing<'a>(plan: &Plan, share: &[&'a Cell], store: &Store, how: &How) -> Vec<&'a Cell> {
    let status = statuses(store, plan, share);
    let missing = share.iter().zip(&status).filter(|(_, status)| how.wants(status));
    missing.map(|(cell, _)| *cell).collect()
}

impl How {
    /// Whether a cell in this state is run.
    fn wants(&self, status: &Status) -> bool {
        match status {
            Status::Missing | Status::Damaged(_) => true,
            Status::Failed(_) => self.rerun_failed || self.force,
            Status::Done => self.force,
        }
    }
}

fn statuses(store: &Store, plan: &Plan, cells: &[&Cell]) -> Vec<Status> {
    cells.par_iter().map(|cell| store.status(&plan.experiment, &cell.id)).collect()
}

/// The context in which all experiments of a command are run.
struct Session<'a> {
    store: Store,
    how: &'a How,
    pool: rayon::ThreadPool,
    by: Provenance,
    interrupt: Interrupt,
    earlier: EarlierReplicates,
}

impl Session<'_> {
    /// Runs the missing cells of an experiment whose lock is held, when `before` others of the
    /// command were handled.
    fn experiment(
        &self,
        task: Task<'_>,
        lock: &Lock,
        before: usize,
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let Task { plan, share, missing } = task;
        let (store, name) = (&self.store, &plan.experiment);
        store.write_experiment(plan)?;
        store.keep_optima(&missing);
        for (e, moved) in store.recover(name)? {
            follower.warning(&format!("{name}: {e}; moved to {} and run again", moved.display()));
        }
        self.report_others(plan, follower);
        let found = self.pool.install(|| statuses(store, plan, &share));
        let (done, failed) = self.stored(plan, &share, &found, follower)?;
        let wanted = share.iter().zip(&found).filter(|(_, status)| self.how.wants(status));
        let wanted: HashSet<&str> = wanted.map(|(cell, _)| &*cell.id).collect();
        let cells = missing.into_iter().filter(|p| wanted.contains(&*p.cell.id));
        let mut cells: Vec<Prepared<'_>> = cells.collect();
        if cells.len() < wanted.len() {
            // Results that existed when the command began are gone.
            let ready: HashSet<&str> = cells.iter().map(|p| &*p.cell.id).collect();
            let is_gone = |c: &&&Cell| wanted.contains(&*c.id) && !ready.contains(&*c.id);
            let gone: Vec<&Cell> = share.iter().filter(is_gone).copied().collect();
            cells.extend(self.interrupt.immediately(|| prepared(plan, &gone))?);
        }
        self.earlier.leave_out(plan, store, &mut cells);
        follower.begins(Workload {
            experiment: name,
            cells: before + share.len(),
            done: before + share.len() - cells.len() - failed.len(),
            work: work_on(&cells),
        });
        failed.iter().for_each(|failed| follower.failed(failed));
        let code = if failed.is_empty() { Code::Done } else { Code::SomeFailed };
        if cells.is_empty() {
            if !self.how.quiet && failed.is_empty() && before == 0 {
                match share.len() {
                    0 => {}
                    1 => follower.message(&format!("{name}: the one cell is done")),
                    all => follower.message(&format!("{name}: all {all} cells are done")),
                }
            }
            return Ok(code);
        }
        let locks = lock.with_locks_of_thread();
        self.pool.broadcast(|_| work_for(locks.clone()));
        Ok(code.and(self.cells(plan, &cells, (done, share.len()), follower)?))
    }

    /// The number of cells that are done, and those that failed before and are not run again.
    /// Damaged cells are quarantined.
    fn stored<'a>(
        &self,
        plan: &Plan,
        share: &[&'a Cell],
        found: &[Status],
        follower: &dyn Follower,
    ) -> Result<(usize, Vec<Failed<'a>>), Failure> {
        let name = &plan.experiment;
        let (mut done, mut failed) = (0, Vec::new());
        for (cell, status) in share.iter().copied().zip(found) {
            match status {
                Status::Damaged(reason) => {
                    let moved = self.store.quarantine(name, &cell.id)?;
                    let moved = moved.display();
                    follower.warning(&format!("{name}: {reason}; moved to {moved} and run again"));
                }
                Status::Done => done += 1,
                Status::Failed(reason) if !self.how.wants(status) => {
                    let id = &cell.id;
                    follower.message(&format!("{name}: cell {id} failed before: {reason}"));
                    failed.push(Failed { cell, reason: reason.clone() });
                }
                Status::Failed(_) | Status::Missing => {}
            }
        }
        if !failed.is_empty() {
            let failed = count(failed.len(), "cell");
            let text = format!("{name}: --rerun-failed runs the {failed} again that failed before");
            follower.message(&text);
        }
        Ok((done, failed))
    }

    /// Runs these cells, when `before` of `all` cells of the command are done.
    fn cells<'a>(
        &'a self,
        plan: &'a Plan,
        cells: &'a [Prepared<'a>],
        (before, all): (usize, usize),
        follower: &dyn Follower,
    ) -> Result<Code, Failure> {
        let (name, quiet) = (&plan.experiment, self.how.quiet);
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
        if self.earlier.has(name) {
            // The cells of earlier looks are not left out: claims are judged on them too.
            return;
        }
        if plan.tuning.as_ref().is_some_and(|tuning| tuning.groups.is_empty()) {
            // Which cells follow from the candidates is not known yet.
            return;
        }
        let known: HashSet<&str> = plan.all_cells().map(|cell| &*cell.id).collect();
        let others = self.store.count_others(name, &known);
        if others > 0 && !self.how.quiet {
            follower.message(&format!(
                "{name}: stored, and left out of reports: {} of other settings in {}",
                count(others, "cell"),
                self.how.out.join(name).display()
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

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::manifest::Source;
    use exactfed_runner::runner::fault;

    /// A panic in one cell: its reason is stored, the others are stored, and it is not
    /// run again unless that is asked for.
    #[test]
    fn a_failed_cell_is_remembered_until_it_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            include_str!("../../experiments/smoke/diverging.toml").replace("seed = ", "seed = 77");
        let source = Source { name: "t".into(), text, ..Source::default() };
        let plan = Plan::new("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let id = plan.cells[1].id.clone();
        let (total, plans) = (plan.cells.len(), vec![plan]);
        let run = |rerun_failed| {
            let (out, threads) = (folder.path().join("r"), Some(2));
            let how = How { out, threads, rerun_failed, quiet: true, ..How::default() };
            execute(&plans, &how).unwrap_or_else(|e| panic!("{}", e.message))
        };
        let status = || Store::open(&folder.path().join("r")).unwrap().status("t", &id);
        let stored = || Store::open(&folder.path().join("r")).unwrap().ids("t").unwrap().len();
        fault::set(Some(&id));
        assert_eq!(run(false), Code::SomeFailed);
        assert_eq!(stored(), total - 1);
        let Status::Failed(reason) = status() else { panic!("{:?}", status()) };
        assert!(reason.starts_with("replicate "), "{reason}");
        assert!(reason.contains("struck by a test (crates/runner/src/runner/mod.rs:"), "{reason}");
        fault::set(None);
        assert_eq!(run(false), Code::SomeFailed, "it failed before, and is left alone");
        assert_eq!(stored(), total - 1);
        assert_eq!(run(true), Code::Done);
        assert_eq!((stored(), status()), (total, Status::Done));
        assert_eq!(run(false), Code::Done);
    }
}
