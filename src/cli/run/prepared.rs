//! A run of several experiments.

use super::follower::{Follower, Workload};
use super::options::RunOptions;
use super::session::{Session, Task, missing};
use crate::cli::code::require_code;
use crate::cli::interrupt::Interrupt;
use crate::cli::outcome::{self, Code, Failure};
use crate::cli::prepare::pool;
use crate::cli::reuse::EarlierRuns;
use crate::cli::shard::Cells;
use crate::cli::{confirm, memory, shard};
use crate::evidence::frontier::are_known;
use crate::store::{Store, provenance};
use exactfed_runner::plan::Plan;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Once;

/// A run of the cells of several experiments which has been checked, and has written nothing yet.
pub struct PreparedRun<'a> {
    session: Session<'a>,
    /// The experiments that are still to be run, in their order.
    waiting: VecDeque<Task<'a>>,
}

impl<'a> PreparedRun<'a> {
    /// Finds the missing cells of these plans, asks for confirmation of a large run, and builds every
    /// instance before anything is written, so that bad input costs nothing. Signals are handled from
    /// then on, by `interrupt` if there is one: a caller passes it that handled them before, or that
    /// leaves them to the process (Python).
    ///
    /// # Errors
    /// What is wrong with the plans, that they do not fit in memory, or that the run was not confirmed.
    pub fn new(
        plans: &'a [Plan],
        options: &'a RunOptions,
        interrupt: Option<Interrupt>,
    ) -> Result<Self, Failure> {
        let store = Store::open(&options.out)?;
        check_names(plans, &store, &options.out)?;
        let pool = pool(options.threads)?;
        let threads = pool.current_num_threads();
        let chosen = shard::chosen(plans, options.only.as_deref(), options.shard)?;
        let missing = |(plan, cells): &Cells<'a>| (*plan, missing(plan, cells, &store, options));
        let missing: Vec<Cells<'_>> = pool.install(|| chosen.iter().map(missing).collect());
        for (plan, cells) in &missing {
            require_code(plan, cells)?;
        }
        memory::fits(&missing, threads, options.memory)?;
        let confirm = || if options.yes { Ok(()) } else { confirm::confirm(&missing, threads) };
        let interrupt = match interrupt {
            Some(interrupt) => interrupt.immediately(confirm).map(|()| interrupt)?,
            None => confirm().and_then(|()| Interrupt::listen())?,
        };
        pool.broadcast(|_| interrupt.cover_thread());
        let mut waiting: Vec<Task<'_>> = interrupt.immediately(|| {
            let build = missing.into_iter().zip(chosen).map(|((plan, missing), (_, cells))| {
                pool.install(|| Task::new(plan, cells, &missing))
            });
            build.collect::<Result<_, Failure>>()
        })?;
        // Pages are written as experiments end: those that take least time come first, so that
        // there is something to read soon, and last those whose frontiers have to be computed for
        // their pages, which takes a time that is not known.
        let place = |task: &Task<'_>| (!are_known(task.plan, &store), task.work.operations);
        waiting.sort_by_cached_key(place);
        let by = provenance();
        let earlier = EarlierRuns { is_forced: options.force, ..EarlierRuns::default() };
        let session = Session { store, options, pool, by, interrupt, earlier };
        Ok(Self { session, waiting: waiting.into() })
    }

    /// The same run, in which the experiments with these names come first, as `reproduce --first` asks.
    pub fn beginning_with(mut self, names: &[String]) -> Self {
        let comes_first = |task: &Task<'_>| names.contains(&task.plan.experiment);
        self.waiting.make_contiguous().sort_by_key(|task| !comes_first(task));
        self
    }

    /// The same run, in which the first runs of cells are taken from `earlier` results and not run again,
    /// unless `--force` asks to run everything. For `--until-decided`, which adds replicates.
    pub fn reusing(mut self, earlier: EarlierRuns) -> Self {
        if !self.session.options.force {
            self.session.earlier = earlier;
        }
        self
    }

    /// The work on each experiment that waits, as far as it is known before their locks are held: cells that failed in
    /// an earlier run count as handled.
    pub fn workloads(&self) -> impl Iterator<Item = Workload<'_>> {
        self.waiting.iter().map(|task| Workload {
            experiment: &task.plan.experiment,
            cells: task.cells.len(),
            handled: task.cells.len() - task.missing,
            work: task.work,
        })
    }

    /// Handles signals as long as the run exists.
    pub fn interrupt(&self) -> &Interrupt {
        &self.session.interrupt
    }

    /// Ends the run and hands over the handling of signals, so that no signal is lost before the caller's
    /// next run, which it passes the value to.
    pub fn into_interrupt(self) -> Interrupt {
        self.session.interrupt
    }

    /// Runs the cells, experiment by experiment, and what follows from their results. Where another process
    /// holds the lock of an experiment, the others come first. [`Code::SomeFailed`] if a cell failed; the
    /// others are stored.
    ///
    /// # Errors
    /// If results cannot be read or written, or a cell that follows from results cannot be run.
    pub fn execute(&mut self, follower: &dyn Follower) -> Result<Code, Failure> {
        let Self { session, waiting } = self;
        let store = &session.store;
        store.create()?;
        let mut code = Code::Done;
        let reported = Once::new();
        // Called each time the run begins to wait, since other processes hold the locks of all
        // experiments that are left; the message comes once.
        let busy = |name: &str| {
            follower.waits(name);
            reported.call_once(|| {
                if !session.options.quiet {
                    follower.message(&outcome::waiting(name));
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
            let plan = task.plan;
            let cells = task.cells.len();
            let run = session.experiment(task, &lock, 0, follower)?;
            let run = run.and(session.following(plan, cells, &lock, follower)?);
            // Reports refuse results from which cells are removed after this. A list of cells or a shard has fewer
            // cells than the plan; an experiment of frontiers alone has none that could be removed.
            if run == Code::Done && cells == plan.cells.len() && cells > 0 {
                session.store.record_complete(plan)?;
            }
            code = code.and(run);
            follower.ends(&plan.experiment);
        }
        Ok(if session.interrupt.is_requested() { Code::Interrupted } else { code })
    }
}

/// Refuses plans of experiments whose names differ only in upper and lower case from one that has
/// results in the folder `out`, which `store` is. Where the plans contradict each other in this way, they were refused
/// before.
fn check_names(plans: &[Plan], store: &Store, out: &Path) -> Result<(), Failure> {
    // Before the first run there is no results folder.
    let stored = if Store::schema(out).is_some() { store.listing()? } else { Vec::new() };
    for (stored, _) in &stored {
        for Plan { experiment, source, .. } in plans {
            if stored != experiment && stored.eq_ignore_ascii_case(experiment) {
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
