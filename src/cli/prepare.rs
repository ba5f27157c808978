//! What runs of cells need: instances and threads.

use super::outcome::Failure;
use crate::store::Store;
use exactfed_core::problem::Fault;
use exactfed_core::problem::arrays::Files;
use exactfed_runner::manifest::InstanceMode;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::cautions::cautions;
use exactfed_runner::runner::{
    KnownOptima, Prepared, Scenario, check_evaluations, check_instances, prepare_frontiers,
    prepare_knowing, prepare_to_check,
};
use std::sync::Arc;

/// The most threads of a command.
const MOST_THREADS: usize = 1024;

/// Builds the instances of these cells of a plan, which commands need to run, measure or check the
/// cells. For a plan that was read from results, optima that the results cache are not searched for again.
///
/// # Errors
/// All that is wrong with these cells, with the instances of the fresh runs that follow candidates, and with the
/// frontiers of the plan, at the places in the manifest. `report` computes the frontiers only after the run, and fresh
/// runs follow the last candidate, so their errors would come late.
pub fn prepared<'a>(plan: &'a Plan, cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Failure> {
    prepared_by(prepare_knowing, plan, cells)
}

/// Checks that [`prepared`] would find nothing wrong with these cells, and builds what `check` looks at: of a cell on
/// whose instances the search for θ* takes long, the first instance alone.
///
/// # Errors
/// As for [`prepared`], but for searches that fail on the instances that are left out.
pub fn prepared_to_check<'a>(
    plan: &'a Plan,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Failure> {
    prepared_by(prepare_to_check, plan, cells)
}

/// A function of the runner that builds instances of cells.
type Prepare<'a> =
    fn(&dyn Files, KnownOptima<'_>, &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Vec<Fault>>;

/// [`prepared`], with the function that builds the instances of the cells.
fn prepared_by<'a>(
    prepare: Prepare<'a>,
    plan: &'a Plan,
    cells: &[&'a Cell],
) -> Result<Vec<Prepared<'a>>, Failure> {
    let folder = plan.folder();
    let frontiers = prepare_frontiers(plan);
    let prepared = prepare(&folder, &Store::known_optima(plan), cells);
    let follows = cells.iter().any(|cell| !cell.identity.fresh);
    let evaluations = if follows { check_evaluations(&folder, plan) } else { Ok(()) };
    match (frontiers, prepared, evaluations) {
        (Ok(_), Ok(prepared), Ok(())) => Ok(prepared),
        (frontiers, prepared, evaluations) => {
            let faults = [frontiers.err(), prepared.err(), evaluations.err()];
            Err(Failure::of_plan(plan, faults.into_iter().flatten().flatten().map(diagnostic)))
        }
    }
}

/// Checks that the instances of all replicates of a plan can be built, if each replicate has its own. It is asked of
/// the plan with the most replicates that a command may come to. An instance that replicates share is built anyway
/// before the first run.
///
/// # Errors
/// All that is wrong with these instances, at the places in the manifest.
pub fn check_instances_of_replicates(plan: &Plan) -> Result<(), Failure> {
    if plan.manifest.instance == InstanceMode::Fixed {
        return Ok(());
    }
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    check_instances(&plan.folder(), &cells)
        .map_err(|faults| Failure::of_plan(plan, faults.into_iter().map(diagnostic)))
}

/// The path of the setting at fault, and the message, which begins with the name of the last key in
/// the path; the last part of a path may be the number of an entry.
fn diagnostic(Fault { key: path, message }: Fault) -> (String, String) {
    let key = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let text = format!("`{key}`: {message}");
    (path.into_owned(), text)
}

/// Prints a warning on standard error for each thing in a plan that is allowed but may not be meant, as
/// far as its prepared cells show it.
pub fn warn_of(plan: &Plan, prepared: &[Prepared<'_>]) {
    for caution in cautions(plan, prepared) {
        eprintln!("warning: {}: {caution}", plan.source.name);
    }
}

/// What the run with this number of a cell runs on: the instance, the start and the limit. For Python's
/// `Plan.clients`, which steps through a run by itself. Runs are numbered from 0 over all instances of the cell.
///
/// # Errors
/// If an instance of the cell cannot be built, or a frontier of the plan is wrong.
///
/// # Panics
/// If the cell has no run of this number.
pub fn scenario(plan: &Plan, cell: &Cell, run: u64) -> Result<Arc<Scenario>, Failure> {
    let prepared = prepared(plan, &[cell])?;
    Ok(prepared[0].scenarios[cell.identity.instance_of(run) as usize].clone())
}

/// The size of the stack of a thread of the pool: a problem in Python may call libraries that need much, such as
/// OpenBLAS, whose products of matrices end the process with 2 MiB.
pub const STACK: usize = 64 << 20;

/// A pool of so many threads; by default as many as the machine has, up to [`MOST_THREADS`].
///
/// # Errors
/// If `threads` is out of range, or the threads cannot be started.
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
        .stack_size(STACK)
        .build()
        .map_err(|e| Failure::input(format!("error: {threads} threads cannot be started: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_runner::manifest::Source;

    /// A manifest whose start has one number where d is 2, and whose frontier is to have 5 clients
    /// of two types in equal numbers.
    const TWO_FAULTS: &str = "title = \"t\"
seed = 1
replicates = 1
start.point = [1.0]
budget.rounds = 4
record.every = 1
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }

[[algorithm.fedavg]]
step-size = 0.1
local-steps = 2

[[frontier]]
id = \"least\"
clients = [2, 5]
targets = [0.5, 0.2]
step-size = { from = 1e-3, to = 1.0, points = 10 }
budgets = [4.0]
";

    #[test]
    fn faults_of_cells_and_of_frontiers_are_reported_together() {
        let source = Source { name: "t.toml".into(), text: TWO_FAULTS.into(), ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        let paths_of_faults = |cells: &[&Cell]| -> Vec<String> {
            let rejected = prepared(&plan, cells).err().and_then(|failure| failure.rejected);
            let faults = rejected.map_or(Vec::new(), |rejected| rejected.diagnostics);
            faults.into_iter().map(|fault| fault.path).collect()
        };
        assert_eq!(paths_of_faults(&cells), ["start.point", "frontier.0.clients"]);
        assert_eq!(paths_of_faults(&[]), ["frontier.0.clients"]);
    }
}
