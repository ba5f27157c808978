//! What runs of cells need: instances and threads.

use super::outcome::Failure;
use crate::store::Store;
use exactfed_core::problem::Fault;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::cautions::cautions;
use exactfed_runner::runner::{Prepared, Scenario, prepare_frontiers, prepare_knowing};
use std::sync::Arc;

/// The most threads of a command.
const MOST_THREADS: usize = 1024;

/// Builds the instances of these cells, or reports errors at their places in the manifest: all errors of its frontiers
/// or, if these have none, all errors of the cells.
pub fn prepared<'a>(plan: &'a Plan, cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Failure> {
    let prepared = prepare_frontiers(plan)
        .and_then(|_| prepare_knowing(&plan.folder(), &Store::known_optima(plan), cells));
    prepared.map_err(|bad| {
        let found = bad.into_iter().map(|Fault { key: path, message }| {
            let named = |part: &&str| part.parse::<usize>().is_err();
            let key = path.rsplit('.').find(named).unwrap_or_default();
            let text = format!("`{key}`: {message}");
            (path.into_owned(), text)
        });
        Failure::of_plan(plan, found)
    })
}

/// Warns of what is allowed in a plan, but may not be meant.
pub fn warn_of(plan: &Plan, prepared: &[Prepared<'_>]) {
    for caution in cautions(prepared, &plan.folder()) {
        eprintln!("warning: {}: {caution}", plan.source.name);
    }
}

/// What a run of a cell runs on.
///
/// # Errors
/// If its instance cannot be built.
pub fn scenario(plan: &Plan, cell: &Cell, run: u64) -> Result<Arc<Scenario>, Failure> {
    let prepared = prepared(plan, &[cell])?;
    Ok(prepared[0].scenarios[cell.identity.instance_of(run) as usize].clone())
}

/// A pool of so many threads; by default as many as the machine has.
pub fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, Failure> {
    let there = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let threads = threads.unwrap_or_else(there);
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(Failure::input(format!(
            "error: --threads must be from 1 to {MOST_THREADS}, not {threads}"
        )));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Failure::input(format!("error: {threads} threads cannot be started: {e}")))
}
