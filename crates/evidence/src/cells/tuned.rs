//! Which settings are selected by the results of their candidates (`[tune]`). The candidates of an algorithm at a point
//! of the grid are a group. When the candidates of a group have been run, the one with the least mean loss is selected,
//! and is run again on other draws: these fresh runs are what algorithms are compared by.

use crate::cells::cost_sample::NoSample;
use crate::cells::knows_cost;
use crate::cells::runs::{Grouping, Runs, TraceNeeds};
use crate::results::Results;
use crate::stats::log_means::LogMeans;
use crate::stats::mean;
use crate::stats::selection::selection_changes;
use exactfed_runner::data::DataFolder;
use exactfed_runner::files::Error;
use exactfed_runner::manifest::Prices;
use exactfed_runner::manifest::tune::{Tune, loss};
use exactfed_runner::plan::{CandidateRuns, Cell, CellId, Plan, TuningGroup};
use exactfed_runner::runner::prepare;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The level at which the first runs of a candidate have to be worse than the first runs of the best candidate for it
/// to be stopped, on a typical instance or in a typical run: by their geometric means.
pub const STOPPING_LEVEL: f64 = 1e-3;

/// The level at which their arithmetic means, by which candidates are selected, have to be worse as well. A few runs
/// say little about the tail of a distribution, so that a stricter level would stop hardly any candidate.
const STOPPING_LEVEL_OF_MEANS: f64 = 0.05;

/// The stored runs of a plan's candidates, from which the plan finds what to run next and what is selected.
struct StoredCandidates<'r> {
    results: &'r dyn Results,
    experiment: String,
    folder: DataFolder,
    tune: Tune,
    prices: Prices,
    /// The number of clients of each problem that was asked for, by the address of its settings, which cells share;
    /// `None` if it cannot be prepared.
    clients: RefCell<HashMap<usize, Option<usize>>>,
    /// The sample of the metric of each cell whose loss was asked for.
    samples: RefCell<HashMap<CellId, Vec<f64>>>,
}

impl CandidateRuns for StoredCandidates<'_> {
    type Error = Error;

    /// The mean loss of the stored runs of a cell, at the cost at which candidates are compared; `None` if nothing is
    /// stored of it. It is infinite if a run diverged, or does not reach the target at which or until whose cost
    /// candidates are compared, and NaN if a run ends before the cost or does not have the
    /// metric. The sample is kept for [`Self::is_larger`].
    fn loss(&self, cell: &Cell) -> Result<Option<f64>, Error> {
        let Some(stored) = self.results.read(&self.experiment, &cell.id)? else {
            return Ok(None);
        };
        let Tune { metric, at, .. } = self.tune;
        let mut needs = TraceNeeds::default();
        needs.add_at(at, [metric]);
        let runs = Runs::new(stored.traces, Grouping::new(cell), &needs, &self.prices);
        if at.is_none() && !knows_cost(cell, &runs, metric) {
            return Ok(Some(f64::INFINITY));
        }
        Ok(Some(match runs.sample(metric, at) {
            Ok(sample) => {
                let loss = loss(metric, mean(&sample));
                self.samples.borrow_mut().insert(cell.id, sample);
                loss
            }
            Err(NoSample::Diverged | NoSample::Unreached) => f64::INFINITY,
            // Under a coin a run may end before the cost, and a problem may lack the metric: these are not compared,
            // and no smaller values of the settings would change that.
            Err(NoSample::Ended | NoSample::Unrecorded) => f64::NAN,
        }))
    }

    /// The number of clients of a cell, which is found by preparing the cell, once for each problem; `None` if it
    /// cannot be prepared, for instance because its data file is missing.
    fn clients(&self, cell: &Cell) -> Result<Option<usize>, Error> {
        let problem = Arc::as_ptr(&cell.identity.problem).addr();
        // A candidate that was run can be prepared; for any other nothing is known.
        Ok(*self
            .clients
            .borrow_mut()
            .entry(problem)
            .or_insert_with(|| Some(prepare(&self.folder, &[cell]).ok()?.first()?.clients())))
    }

    /// Whether Σ w log(mean loss) of these cells is above 0 with the confidence to stop a candidate: both the geometric
    /// and the arithmetic means have to say so. The weights w are 1 for the cells of the candidate and −1 for those of
    /// the best one. [`Self::loss`] must have been asked for each cell before; false if it found no finite sample.
    fn is_larger(&self, terms: &[(f64, &Cell)]) -> bool {
        let samples = self.samples.borrow();
        let mut known: Vec<(f64, Vec<f64>)> = Vec::with_capacity(terms.len());
        for (weight, cell) in terms {
            // Nothing is known of a candidate that was not run.
            let Some(sample) = samples.get(&cell.id) else { return false };
            known.push((*weight, sample.iter().map(|x| self.tune.metric.loss(*x)).collect()));
        }
        let points: Vec<(f64, &[f64])> =
            known.iter().map(|(weight, losses)| (*weight, losses.as_slice())).collect();
        // What is below the levels is the p-value of the hypothesis that the sum is at most 0.
        let typical = LogMeans::over_instances(&points);
        let means = LogMeans::new(&points);
        typical.is_some_and(|typical| typical.above(0.0) < STOPPING_LEVEL)
            && means.is_some_and(|means| means.above(0.0) < STOPPING_LEVEL_OF_MEANS)
    }
}

/// The plan after the stored runs of its candidates. Its cells are now the fresh runs of the candidates that these runs
/// select, and no others. The cells of candidates, and the fresh runs with the values that are best for all algorithms,
/// are in the plan's groups alone ([`Plan::all_cells`] lists them too); where results do not decide yet, some cells of
/// candidates are to be run first. Each group also gets how much other selections would change the logarithm of the
/// mean of what is selected, for the error of comparisons: of the mean of the metric, for claims, and of its mean loss,
/// for the ranking. A plan without `[tune]` stays as it is.
///
/// # Errors
/// If results are damaged.
pub fn follow(plan: Plan, results: &dyn Results) -> Result<Plan, Error> {
    let Some(tune) = plan.manifest.tune.clone() else { return Ok(plan) };
    let runs = StoredCandidates {
        results,
        experiment: plan.experiment.clone(),
        folder: plan.folder(),
        tune,
        prices: plan.manifest.prices.unwrap_or_default(),
        clients: RefCell::default(),
        samples: RefCell::default(),
    };
    let mut plan = plan.following(&runs)?;
    let metric = runs.tune.metric;
    let samples = runs.samples.into_inner();
    let losses: HashMap<CellId, Vec<f64>> = samples
        .iter()
        .map(|(id, sample)| {
            let losses = sample.iter().map(|value| metric.loss(*value)).collect();
            (*id, losses)
        })
        .collect();
    for group in plan.tuning.iter_mut().flat_map(|tuning| &mut tuning.groups) {
        let is_best_largest = metric.more_is_better();
        group.selection_changes = changes_of_selection(group, &samples, is_best_largest).into();
        group.loss_selection_changes = changes_of_selection(group, &losses, false).into();
    }
    Ok(plan)
}

/// How much other selections by as many runs would change the logarithm of the mean of the candidate that a group
/// selects ([`selection_changes`]), from the samples of cells by id; `largest` says that the largest mean is selected.
/// None if nothing is selected yet.
fn changes_of_selection(
    group: &TuningGroup,
    samples: &HashMap<CellId, Vec<f64>>,
    largest: bool,
) -> Vec<f64> {
    let candidates: Vec<&[f64]> = group
        .candidates
        .iter()
        .map(|candidate| samples.get(&candidate.cell.id).map_or(&[][..], |x| x))
        .collect();
    let Some(selected) = group.selected else { return Vec::new() };
    let over_instances = group.candidates[selected].cell.identity.instances > 1;
    selection_changes(&candidates, selected, over_instances, largest)
}

/// The plan with the cells of all stages of tuning, as far as results decide them: candidates, and the fresh runs of
/// what is selected; a plan without `[tune]` as it is.
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
