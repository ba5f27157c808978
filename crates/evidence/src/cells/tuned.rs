//! Which settings are selected by the results of their candidates (`[tune]`).

use crate::cells::cost_sample::NoSample;
use crate::cells::runs::{Grouping, Runs, TraceNeeds};
use crate::results::Results;
use crate::stats::mean;
use crate::stats::selection::selection_changes;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::tune::loss;
use exactfed_runner::plan::{Candidate, Cell, CellId, Plan, TuningGroup};
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
    let samples: RefCell<HashMap<CellId, Vec<f64>>> = RefCell::default();
    let loss = |cell: &Cell| {
        let Some(stored) = results.read(&experiment, &cell.id)? else { return Ok(None) };
        let mut needs = TraceNeeds::default();
        needs.add_at(tune.at, [tune.metric]);
        let runs = Runs::new(stored.traces, Grouping::new(cell), &needs, &prices);
        Ok(Some(match runs.sample(tune.metric, tune.at) {
            Ok(sample) => {
                let loss = loss(tune.metric, mean(&sample));
                samples.borrow_mut().insert(cell.id, sample);
                loss
            }
            // Under a coin a run may end before the cost: it is not compared.
            Err(NoSample::Ended) => f64::NAN,
            Err(_) => f64::INFINITY,
        }))
    };
    let mut plan = plan.following(loss, clients)?;
    let samples = samples.into_inner();
    let losses = samples.iter().map(|(id, sample)| {
        let losses = sample.iter().map(|value| tune.metric.loss(*value)).collect();
        (*id, losses)
    });
    let losses: HashMap<CellId, Vec<f64>> = losses.collect();
    for group in plan.tuning.iter_mut().flat_map(|tuning| &mut tuning.groups) {
        let is_best_largest = tune.metric.more_is_better();
        group.selection_changes = changes_of_selection(group, &samples, is_best_largest).into();
        group.loss_selection_changes = changes_of_selection(group, &losses, false).into();
    }
    Ok(plan)
}

/// How much other selections by as many runs would differ from that of a group's candidate.
fn changes_of_selection(
    group: &TuningGroup,
    samples: &HashMap<CellId, Vec<f64>>,
    largest: bool,
) -> Vec<f64> {
    let runs = |candidate: &Candidate| samples.get(&candidate.cell.id).map_or(&[][..], |x| x);
    let candidates: Vec<&[f64]> = group.candidates.iter().map(runs).collect();
    let Some(selected) = group.selected else { return Vec::new() };
    let over_instances = group.candidates[selected].cell.identity.instances > 1;
    selection_changes(&candidates, selected, over_instances, largest)
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
