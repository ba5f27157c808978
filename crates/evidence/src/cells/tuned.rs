//! Which settings are selected by the results of their candidates (`[tune]`).

use crate::cells::cost_sample::NoSample;
use crate::cells::runs::{Grouping, Runs, TraceNeeds};
use crate::results::Results;
use crate::stats::mean;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::tune::loss;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::prepare;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The plan of fresh runs of what the results of the candidates select; a plan without `[tune]` as
/// it is.
///
/// # Errors
/// If results are damaged.
pub fn follow(plan: Plan, results: &dyn Results) -> Result<Plan, Error> {
    let Some(tune) = plan.manifest.tune.clone() else { return Ok(plan) };
    let prices = plan.manifest.prices.unwrap_or_default();
    let experiment = plan.experiment.clone();
    let (folder, counted) = (plan.folder(), RefCell::new(HashMap::new()));
    let clients = |cell: &Cell| {
        let (problem, mut counted) = (Arc::as_ptr(&cell.identity.problem), counted.borrow_mut());
        // A candidate that was run can be prepared; for any other nothing is known.
        let count = || Some(prepare(&folder, &[cell]).ok()?.first()?.clients());
        Ok(*counted.entry(problem).or_insert_with(count))
    };
    let loss = |cell: &Cell| {
        let Some(stored) = results.read(&experiment, &cell.id)? else { return Ok(None) };
        let mut needs = TraceNeeds::default();
        needs.add_at(tune.at, [tune.metric]);
        let runs = Runs::new(stored.traces, Grouping::new(cell), &needs, &prices);
        Ok(Some(match runs.sample(tune.metric, tune.at) {
            Ok(sample) => loss(tune.metric, mean(&sample)),
            // Under a coin a run may end before the cost: it is not compared.
            Err(NoSample::Ended) => f64::NAN,
            Err(_) => f64::INFINITY,
        }))
    };
    plan.following(loss, clients)
}

/// The same plan with the cells of all stages as far as results decide: candidates, and the fresh
/// runs that follow.
///
/// # Errors
/// As for [`follow`].
pub fn all_stages(plan: Plan, results: &dyn Results) -> Result<Plan, Error> {
    if plan.tuning.is_none() {
        return Ok(plan);
    }
    let mut plan = follow(plan, results)?;
    let mut seen = HashSet::new();
    let cells = plan.all_cells().filter(|cell| seen.insert(cell.id));
    plan.cells = cells.cloned().collect();
    Ok(plan)
}
