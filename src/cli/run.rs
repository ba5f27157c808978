//! `run`: what is missing of some experiments.

use super::interrupt::Interrupt;
use super::{Code, Failure, Manifests, pool, prepared};
use crate::files::Error;
use crate::plan::{Cell, Plan};
use crate::runner::progress::Progress;
use crate::runner::{self, Failed, Prepared};
use crate::store::provenance::Provenance;
use crate::store::{Keeper, Lock, Status, Store};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench run experiments/scafflsa/fig1-high.toml --threads 2")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
    #[command(flatten)]
    how: How,
}

/// How cells are run.
#[derive(clap::Args)]
pub struct How {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Run share I of N of the cells
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u64, u64)>,
    /// Run cells again that are done
    #[arg(long)]
    pub force: bool,
    /// Run cells again that failed
    #[arg(long)]
    pub rerun_failed: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("a share is I/N with I from 1 to N, such as 2/8".into()),
    }
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    execute(&plans, &args.how)
}

/// Runs what is missing of these plans.
pub fn execute(plans: &[Plan], how: &How) -> Result<Code, Failure> {
    let store = Store::open(&how.out)?;
    let pool = pool(how.threads)?;
    // Every instance is built before anything is written, so that bad input
    // costs nothing.
    let mut waiting: Vec<Task<'_>> = plans
        .iter()
        .map(|plan| pool.install(|| Task::new(plan, &store, how)))
        .collect::<Result<_, Failure>>()?;
    store.create()?;
    let interrupt = Interrupt::listen()?;
    let session = Session { store: &store, how, pool: &pool, by: Provenance::now(), interrupt };
    let mut code = Code::Done;
    let mut told = false;
    while !waiting.is_empty() {
        let mut busy = Vec::new();
        for task in waiting {
            // Another run's experiments come last: by then it may have done them.
            match store.try_lock(&task.plan.experiment)? {
                Some(lock) if !session.interrupt.came() => {
                    code = code.and(session.experiment(task, &lock)?);
                }
                Some(_) => return Ok(Code::Interrupted),
                None => busy.push(task),
            }
            if session.interrupt.came() {
                return Ok(Code::Interrupted);
            }
        }
        waiting = busy;
        if let Some(task) = waiting.first() {
            if !std::mem::replace(&mut told, true) && !how.quiet {
                let name = &task.plan.experiment;
                eprintln!("{name}: another run is at work on it: waiting until it ends");
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
    Ok(code)
}

/// Time between two looks whether another run has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// An experiment and what seems to be missing of it.
struct Task<'a> {
    plan: &'a Plan,
    /// The cells that are asked for.
    share: Vec<&'a Cell>,
    /// Those of them that have no results.
    missing: Vec<Prepared<'a>>,
}

impl<'a> Task<'a> {
    fn new(plan: &'a Plan, store: &Store, how: &How) -> Result<Self, Failure> {
        let share = share(plan, how.shard);
        let status = statuses(store, plan, &share);
        let missing = share.iter().zip(&status).filter(|(_, status)| how.wants(status));
        let missing: Vec<&Cell> = missing.map(|(cell, _)| *cell).collect();
        Ok(Self { plan, share, missing: prepared(plan, &missing)? })
    }
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

/// What all experiments of a command are run with.
struct Session<'a> {
    store: &'a Store,
    how: &'a How,
    pool: &'a rayon::ThreadPool,
    by: Provenance,
    interrupt: Interrupt,
}

impl Session<'_> {
    /// Runs what is missing of an experiment whose lock is held.
    fn experiment(&self, task: Task<'_>, _lock: &Lock) -> Result<Code, Failure> {
        let Task { plan, share, missing } = task;
        let (store, name) = (self.store, &plan.experiment);
        store.keep_experiment(plan)?;
        for (e, aside) in store.mend(name)? {
            eprintln!("{name}: {e}; moved to {} and run again", aside.display());
        }
        self.tell_others(plan);
        let found = self.pool.install(|| statuses(store, plan, &share));
        let mut kept = Vec::new();
        let mut failed = 0;
        for (cell, status) in share.iter().zip(&found) {
            match status {
                Status::Damaged(reason) => {
                    let aside = store.set_aside(name, &cell.id)?;
                    eprintln!("{name}: {reason}; moved to {} and run again", aside.display());
                }
                Status::Done => kept.push(*cell),
                Status::Failed(reason) if !self.how.wants(status) => {
                    failed += 1;
                    eprintln!("{name}: cell {} failed before: {reason}", cell.id);
                }
                Status::Failed(_) | Status::Missing => {}
            }
        }
        store.relabel(plan, &kept)?;
        if failed > 0 {
            eprintln!("{name}: --rerun-failed runs the {failed} cells again that failed before");
        }
        let wanted = share.iter().zip(&found).filter(|(_, status)| self.how.wants(status));
        let wanted: HashSet<&str> = wanted.map(|(cell, _)| &*cell.id).collect();
        let cells = missing.into_iter().filter(|p| wanted.contains(&*p.cell.id));
        let cells: Vec<Prepared<'_>> = cells.collect();
        let code = if failed > 0 { Code::SomeFailed } else { Code::Done };
        if cells.is_empty() {
            if !self.how.quiet && failed == 0 {
                eprintln!("{name}: all {} cells are done", share.len());
            }
            return Ok(code);
        }
        Ok(code.and(self.cells(plan, &cells)?))
    }

    /// Runs these cells.
    fn cells<'a>(&'a self, plan: &'a Plan, cells: &'a [Prepared<'a>]) -> Result<Code, Failure> {
        let (name, quiet) = (&plan.experiment, self.how.quiet);
        let clients: HashMap<&str, usize> =
            cells.iter().map(|p| (&*p.cell.id, p.clients())).collect();
        let total = cells.iter().map(Prepared::client_steps).sum();
        let progress = Progress::new(name, cells.len(), total, quiet, self.interrupt.flag());
        let keeper = Keeper::new(self.store, plan, &self.by)?;
        let keep = |done: runner::Done<'a>| {
            let clients = clients[&*done.cell.id];
            keeper.keep(done, clients)
        };
        let threads = self.pool.current_num_threads();
        let run = || self.pool.install(|| runner::run(cells, threads, &progress, keep));
        let result = keeper.during(run);
        progress.finish();
        let stored = keeper.stored();
        let failed = result.map_err(|e| stopped(name, &e, stored, cells.len()))?;
        for failed in &failed {
            self.tell_failed(plan, cells, &keeper, failed)?;
        }
        if self.interrupt.came() {
            eprintln!(
                "{name}: interrupted: {stored} of {} cells are stored, the rest is run when you run it again",
                cells.len()
            );
            return Ok(Code::Interrupted);
        }
        Ok(if failed.is_empty() { Code::Done } else { Code::SomeFailed })
    }

    fn tell_failed(
        &self,
        plan: &Plan,
        cells: &[Prepared<'_>],
        keeper: &Keeper<'_>,
        failed: &Failed,
    ) -> Result<(), Failure> {
        eprintln!("{}: cell {} failed: {}", plan.experiment, failed.cell, failed.reason);
        if let Some(prepared) = cells.iter().find(|p| p.cell.id == failed.cell) {
            keeper.fail(prepared.cell, failed)?;
        }
        Ok(())
    }

    fn tell_others(&self, plan: &Plan) {
        let name = &plan.experiment;
        let known: HashSet<&str> = plan.cells.iter().map(|cell| &*cell.id).collect();
        let others = self.store.others(name, &known);
        if others > 0 && !self.how.quiet {
            eprintln!(
                "{name}: {others} cells of other settings stay in {}; reports leave them out",
                self.how.out.join(name).display()
            );
        }
    }
}

/// A run that could not write what it found.
fn stopped(name: &str, e: &Error, stored: usize, cells: usize) -> Failure {
    let message = format!(
        "error: {e}\n{name}: {stored} of {cells} cells are stored; run it again when there is room for the rest"
    );
    Failure { message, code: Code::SomeFailed }
}

/// The cells of a shard: by id, so that every share is the same on any machine.
fn share(plan: &Plan, shard: Option<(u64, u64)>) -> Vec<&Cell> {
    let Some((i, n)) = shard else { return plan.cells.iter().collect() };
    let mut cells: Vec<&Cell> = plan.cells.iter().collect();
    cells.sort_by(|a, b| a.id.cmp(&b.id));
    cells.into_iter().zip((0..n).cycle()).filter(|(_, k)| k + 1 == i).map(|(c, _)| c).collect()
}
