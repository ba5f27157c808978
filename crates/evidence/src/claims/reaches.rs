//! `[[claim.reaches]]`: the mean of a metric comes to a target, down or up, within a cost, a number or
//! what a published bound needs.

use super::costs::{CostCurve, target_of, target_sign};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, Reaching, When, check_reaching};
use super::kind::{Claim, ClaimedCells};
use super::text::{selection_text, target_text, with_reason};
use crate::cells::CellResult;
use crate::predictions::fits;
use exactfed_core::theory::bounds::Bound;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The mean of a metric comes to a target within a cost: down to it, or up to it if the metric is an
/// accuracy. The cost is a number, or the number of rounds after which a published bound is below
/// the target.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReachesKeys {
    /// The quantity that must come down, or up if it is an accuracy.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells.
    #[schemars(example = Selection::example("SCAFFLSA"))]
    pub of: Selection,
    /// Target and cost.
    pub reaching: Reaching,
    /// The most that it may cost.
    #[schemars(example = 500.0)]
    pub within: Option<f64>,
    /// The rounds after which this published bound is below the target, with the constants of the
    /// instance, in place of `within`.
    pub prediction: Option<Prediction>,
}

impl KindKeys<ClaimKeys> for ReachesKeys {
    /// Notes what is wrong with the keys. The cost is limited either by a number or by a published bound. A bound needs
    /// θ*, which the manifest must not leave out, and a metric that is an error.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.quantity("metric", claim.metric);
        table.selection("of", &claim.of);
        check_reaching(table, claim.metric, &claim.reaching, &claim.of);
        if let Some(within) = claim.within {
            table.above("within", within, 0.0);
        }
        table.predictions("prediction", claim.prediction.is_some());
        let one = claim.within.is_some() != claim.prediction.is_some();
        table.require(one, "", "write `within` or `prediction`, one of them");
        let bound = claim.prediction.is_none_or(Prediction::is_bound);
        table.require(bound, "prediction", "`prediction` must be a bound here");
        let is_bounded = claim.prediction.is_none() || !claim.metric.more_is_better();
        let message = format!("bounds are of errors, and `{}` is none", claim.metric.name());
        table.require(is_bounded, "prediction", message);
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<ReachesKeys> {
    /// The cells of the claim, of which the metric and its cost are needed at every recorded round.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        let measured = (vec![self.metric, self.reaching.cost], When::EveryRound);
        let prediction = self.prediction;
        Some(ClaimedCells { prediction, measured, ..ClaimedCells::new(&self.of) })
    }

    /// Tests the cost to reach the target in each cell, as a part. A cell whose bound never reaches the target is
    /// outside of the claim, and one whose bound is of another quantity is untested.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        for cell in judge.chosen(&self.of) {
            let name = judge.name(cell, &self.of, &[]);
            let limit = match (self.within, self.prediction) {
                (None, Some(by)) => judge.cost_of_bound(cell, self, by),
                (within, _) => within,
            };
            let Some(limit) = limit else {
                let Some(by) = self.prediction else { continue };
                // A bound that has a value after the first round applies to the cell: the target is out of its reach.
                let bound = judge.bound_of_metric(cell, self, by, 1);
                if bound.is_some_and(|bound| bound.value.is_ok()) {
                    let reason = format!("{} never reaches the target", by.words());
                    parts.outside.push(with_reason(&name, &reason));
                } else {
                    judge.add_unpredicted(cell, by, &name, &mut parts);
                }
                continue;
            };
            let curve = CostCurve::new(cell, self.metric, &self.reaching);
            parts.add(name, curve.map(|curve| curve.within(limit)), "it is not recorded");
        }
        let most = match (self.within, self.prediction) {
            (Some(within), _) => within.to_string(),
            (_, Some(by)) => format!("what {} needs", by.words()),
            _ => String::new(),
        };
        let formula = format!(
            "{} until {} of {} {} {} is at most {most}",
            self.reaching.cost.formula(),
            self.metric.formula(),
            selection_text(&self.of),
            target_sign(self.metric),
            target_text(&self.reaching)
        );
        let is_counted = self.reaching.cost.is_counted();
        let scale = if is_counted { EstimateScale::Counted } else { EstimateScale::Plain };
        Tested { parts, formula, scale }
    }
}

impl Judge<'_> {
    /// The cost of the first number of rounds after which a published bound is at most the target of the claim, for the
    /// settings of a cell; bounds fall with the rounds, so that this number is found by bisection. `None` if the bound
    /// does not apply to the cell, is of another quantity than the claim, never comes to the target, or the cost of a
    /// round is not known.
    fn cost_of_bound(
        &self,
        cell: &CellResult<'_>,
        claim: &ClaimOf<ReachesKeys>,
        by: Prediction,
    ) -> Option<f64> {
        let target = target_of(cell, &claim.reaching)?;
        // The number is above `low` and at most `high`.
        let mut high = 1;
        while !self.is_bound_below(cell, claim, by, high, target)? {
            high *= 2;
            if high > 1 << 50 {
                return None;
            }
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_bound_below(cell, claim, by, middle, target)? {
                high = middle
            } else {
                low = middle
            }
        }
        // The bound counts rounds. The last recorded round of the first run says what a round costs.
        let rounds = *cell.runs.along().first()?.round.last()? as f64;
        let cost = *cell.runs.columns(claim.reaching.cost).first()?.last()?;
        Some(high as f64 * cost / rounds)
    }

    /// Whether a bound for a cell is at most the target after this number of rounds; `None` if the bound has no value
    /// there, or is of another quantity than the claim.
    fn is_bound_below(
        &self,
        cell: &CellResult<'_>,
        claim: &ClaimOf<ReachesKeys>,
        by: Prediction,
        round: u64,
        target: f64,
    ) -> Option<bool> {
        let bound = self.bound_of_metric(cell, claim, by, round)?;
        bound.value.ok().map(|value| value <= target)
    }

    /// A published bound for a cell after this number of rounds; `None` also if it bounds another quantity than the
    /// metric of the claim.
    fn bound_of_metric(
        &self,
        cell: &CellResult<'_>,
        claim: &ClaimOf<ReachesKeys>,
        by: Prediction,
        round: u64,
    ) -> Option<Bound> {
        let bound = self.theory.bound(&cell.cell.id, by, round)?;
        fits(&bound, claim.metric).then_some(bound)
    }
}
