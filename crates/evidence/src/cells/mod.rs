//! The cells of an experiment with their results, as values.

pub mod averages;
pub mod cost_sample;
pub mod costs;
mod final_values;
pub mod mean_limits;
pub mod panels;
pub mod read;
pub mod runs;
pub mod sample_unit;
pub mod setting_text;
pub mod symbols;
pub mod tuned;

use crate::results::Provenance;
use crate::stats::{ROUNDING_FLOOR, Summary, mean};
use exactfed_core::federated::{Schedule, Terms, Variates};
use exactfed_core::words::count;
use exactfed_runner::manifest::{Oracle, Quantity};
use exactfed_runner::plan::{Cell, RunKeys};
use exactfed_runner::trace::TraceDigest;
use runs::Runs;
use sample_unit::SampleUnit;
use std::sync::Arc;

/// A cell without results.
pub struct Missing<'a> {
    /// The cell that has no results.
    pub cell: &'a Cell,
    /// Why its run failed; `None` if it was not run.
    pub failed: Option<String>,
}

/// A cell with its results.
pub struct CellResult<'a> {
    /// The cell to which the results belong.
    pub cell: &'a Cell,
    /// The final values of its runs, and what figures and claims need of their traces.
    pub runs: Runs,
    /// Digest of the traces.
    pub digest: TraceDigest,
    /// Commit and version that computed it.
    pub provenance: Arc<Provenance>,
    /// Time that it took on one thread, in seconds.
    pub seconds: f64,
    /// What the cell's settings were selected by, if they were.
    pub selected_by: Option<SelectedBy>,
    /// ‖lim E θ_t − θ*‖², if the manifest needs it and theory can compute it;
    /// its mean over replicates where each has an instance of its own.
    pub exact_bias: Option<f64>,
}

/// The quantity by which a cell's settings were selected among candidates, and how much other selections, by as many
/// runs, would have changed the logarithm of its mean ([`crate::stats::selection::selection_changes`]). The mean and
/// the mean loss are two numbers where more of the quantity is better.
#[derive(Clone, Debug)]
pub struct SelectedBy {
    /// The quantity by whose mean the settings were selected.
    pub metric: Quantity,
    /// The changes of the logarithm of the quantity's mean, one for each other selection that was simulated.
    pub changes: Arc<[f64]>,
    /// The changes of the logarithm of the quantity's mean loss, one for each other selection that was simulated.
    pub loss_changes: Arc<[f64]>,
}

/// Whether the final value of a quantity in each of these runs of a cell is what it is meant to be: false for a cost of
/// runs that end at a target, if one of them has paid for all rounds without reaching it. Its cost until the target is
/// larger than that, by an amount that is not known.
pub fn knows_cost(cell: &Cell, runs: &Runs, quantity: Quantity) -> bool {
    let counts_until_target = quantity.is_cost() && cell.identity.until.is_some();
    !counts_until_target || runs.reached == runs.count
}

impl CellResult<'_> {
    /// How much other selections of the cell's settings would have changed the logarithm of the mean of a quantity, for
    /// the error of comparisons ([`crate::stats::selection::selection_error`]); none if the settings were not selected
    /// by it.
    pub fn selection_changes(&self, quantity: Quantity) -> &[f64] {
        let selected_by = self.selected_by.as_ref().filter(|by| by.metric == quantity);
        selected_by.map_or(&[][..], |by| &by.changes)
    }

    /// What [`Self::selection_changes`] returns, for the mean loss of a quantity ([`Quantity::loss`]).
    pub fn loss_selection_changes(&self, quantity: Quantity) -> &[f64] {
        let selected_by = self.selected_by.as_ref().filter(|by| by.metric == quantity);
        selected_by.map_or(&[][..], |by| &by.loss_changes)
    }

    /// Whether nothing in the cell is random, so that all its runs are equal: neither the oracle nor the instance, nor
    /// when clients communicate, which of them take part or how much they do. Claims and rankings then compare numbers
    /// that have no error. Several instances are drawn, whether the key `instances` asks for them or each replicate has
    /// its own. False for a custom algorithm.
    pub fn is_deterministic(&self) -> bool {
        let identity = &self.cell.identity;
        identity.oracle == Oracle::Exact
            && identity.instance.is_fixed()
            && identity.instances == 1
            && identity.algorithm.components().iter().all(|c| {
                let Terms { schedule, variates, stragglers, .. } = &c.terms;
                // What is not known may draw.
                let known = !matches!(variates, Variates::Unknown(_));
                let has_fixed_work = *schedule == Schedule::Every && stragglers.is_none();
                known && has_fixed_work && !c.terms.draws_participants()
            })
    }

    /// Whether samples have a value for each of several instances of the problem, and not for each run.
    pub fn is_over_instances(&self) -> bool {
        self.cell.identity.instances > 1
    }

    /// What each value of its samples is of.
    pub fn sample_unit(&self) -> SampleUnit {
        if self.is_over_instances() { SampleUnit::Instance } else { SampleUnit::Run }
    }

    /// Whether the final value of a quantity is what it is meant to be ([`knows_cost`]).
    pub fn knows_cost(&self, quantity: Quantity) -> bool {
        knows_cost(self.cell, &self.runs, quantity)
    }

    /// The mean of a quantity at the last round; infinite if a run diverged or the quantity is not recorded.
    pub fn final_mean(&self, quantity: Quantity) -> f64 {
        self.runs.finals(quantity).map_or(f64::INFINITY, |sample| mean(&sample))
    }

    /// A quantity at the last round in few numbers; `None` if a replicate diverged or it is not recorded.
    pub fn summary(&self, quantity: Quantity) -> Option<Summary> {
        self.runs.finals(quantity).map(|sample| mean_limits::summary(quantity, &sample))
    }

    /// The sample of a quantity at each recorded round, up to the first divergence of a run; none if its column is not
    /// in memory ([`runs::TraceNeeds::along`]).
    pub fn samples(&self, quantity: Quantity) -> Vec<Vec<f64>> {
        let columns = self.runs.columns(quantity);
        let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
    }
}

/// The number below which a mean of the quantity is rounding and counts as 0.
pub fn rounding_floor(quantity: Quantity) -> f64 {
    if quantity.info().is_norm { ROUNDING_FLOOR.sqrt() } else { ROUNDING_FLOOR }
}

/// What the samples of these cells are of, in words: "10 runs", or "20 instances with 5 runs each"; of the cell with
/// the most runs if they differ. Captions and claims print it; without cells it is "0 runs".
pub fn sample_in_words(cells: &[&CellResult<'_>]) -> String {
    let Some(largest) = cells.iter().max_by_key(|cell| cell.runs.count) else {
        return count(0, "run");
    };
    let RunKeys { instances, replicates, .. } = *largest.cell.identity.keys;
    match instances {
        1 => count(largest.runs.count, "run"),
        _ => format!("{instances} instances with {} each", count(replicates as usize, "run")),
    }
}

#[cfg(test)]
mod tests {
    use super::runs::Runs;
    use crate::{simulated, wrong};

    /// Expects that nothing is random in cells of FedLSA and SCAFFLSA whose manifest has these keys, or that something
    /// is.
    #[track_caller]
    fn expect_deterministic(keys: &str, expected: bool) {
        let text = wrong::manifest(2, "4").replace("seed = 5", &format!("seed = 5\n{keys}"));
        let plan = simulated::plan(text);
        for cell in &plan.cells {
            let cell = simulated::result(cell, Runs::default());
            assert_eq!(cell.is_deterministic(), expected, "{keys}");
        }
    }

    /// A word for a value of the samples of cells with this key.
    fn unit(key: &str) -> &'static str {
        let text = wrong::manifest(2, "4").replace("seed = 5", &format!("seed = 5\n{key}"));
        let plan = simulated::plan(text);
        simulated::result(&plan.cells[0], Runs::default()).sample_unit().word()
    }

    #[test]
    fn samples_are_over_runs_or_several_instances() {
        assert_eq!(unit("instances = 1"), "run");
        assert_eq!(unit("instances = 3"), "instance");
        assert_eq!(unit("instance = \"per-replicate\""), "run");
    }

    #[test]
    fn several_instances_are_random_though_the_oracle_is_exact() {
        expect_deterministic("oracle = \"exact\"", true);
        expect_deterministic("oracle = \"exact\"\ninstances = 1", true);
        expect_deterministic("oracle = \"exact\"\ninstances = 3", false);
        expect_deterministic("oracle = \"exact\"\ninstance = \"per-replicate\"", false);
        expect_deterministic("", false);
    }
}
