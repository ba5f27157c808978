//! `[[claim.reaches-before]]`: some cells come to a target at a lower cost than others.

use super::costs::{CostAtTarget, CostCurve, target_sign};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, Reaching, When, check_reaching, one};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::text::{selection_text, target_text};
use crate::cells::CellResult;
use crate::cells::costs::cost_text;
use exactfed_core::words::joined;
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::manifest::{AtCost, Quantity};
use exactfed_runner::plan::{Checker, KindKeys, selected};
use schemars::JsonSchema;
use serde::Deserialize;

/// The cost at which the mean of a metric comes to a target is less than `factor` times that of
/// other cells: the metric comes down, or up if it is an accuracy. Cells of both sides are paired by
/// the label and the settings that the selections leave open, and the claim must hold for every
/// pair. A cell that does not reach the target counts as one whose cost is above all that its runs
/// have paid, so that it never supports the claim on the left, and may on the right. Where neither
/// side reaches the target, nothing is tested.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReachesBeforeKeys {
    /// The quantity that must come down, or up if it is an accuracy.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells that reach the target at the lower cost.
    #[schemars(example = Selection::example("Scaffold"))]
    pub left: Selection,
    /// The cells that they are compared with.
    #[schemars(example = Selection::example("FedAvg"))]
    pub right: Selection,
    /// Target and cost.
    pub reaching: Reaching,
    /// Factor on the right side, above 0: with 0.5, the left side pays less than half.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.5)]
    pub factor: f64,
}

impl KindKeys<ClaimKeys> for ReachesBeforeKeys {
    /// Notes what is wrong with the keys: the metric, the cells, of which none may be on both sides, the target, its
    /// cost and the factor.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        let metric = claim.metric;
        table.quantity("metric", metric);
        if metric.average().is_some() {
            let name = metric.name();
            table.fault(
                "metric",
                format!("`{name}` is an average over all rounds: no round reaches a target"),
            );
        }
        table.selection("left", &claim.left);
        table.selection("right", &claim.right);
        check_reaching(table, metric, &claim.reaching, &claim.left);
        check_reaching(table, metric, &claim.reaching, &claim.right);
        table.above("factor", claim.factor, 0.0);
        let is_on_both_sides =
            |cell: &&_| selected(cell, &claim.left) && selected(cell, &claim.right);
        if let Some(cell) = table.cells.iter().find(is_on_both_sides) {
            let label = &cell.label;
            let message =
                format!("a cell of `{label}` would be compared with itself: both sides select it");
            table.fault("", message);
        }
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<ReachesBeforeKeys> {
    /// The cells of both sides, of which the metric and its cost are needed at every recorded round.
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        let measured = (vec![self.metric, self.reaching.cost], When::EveryRound);
        Some(ClaimedCells { right: Some(&self.right), measured, ..ClaimedCells::new(&self.left) })
    }

    /// Tests the ratio of the costs of each pair of cells, as a part whose name says what was paid in vain by a cell
    /// that does not reach the target.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let mut all_in_vain: Vec<String> = Vec::new();
        let region = (f64::NEG_INFINITY, libm::log(self.factor));
        let pairs = judge.pairs(&self.left, &self.right);
        for (left, right) in pairs.both {
            let name = judge.name(left, &self.left, &[]);
            let curves = (self.curve(left), self.curve(right));
            let (Some(left_curve), Some(right_curve)) = curves else {
                parts.add(name, None, "it is not recorded");
                continue;
            };
            let in_vain = [(left, &left_curve), (right, &right_curve)]
                .map(|(cell, curve)| self.paid_in_vain(cell, curve));
            let name = joined(&[&name, &in_vain[0], &in_vain[1]]);
            all_in_vain.extend(in_vain.into_iter().filter(|text| !text.is_empty()));
            let reason = match (left_curve.reached(), right_curve.reached()) {
                (CostAtTarget::Never(_), CostAtTarget::Never(_)) => {
                    "neither side reaches the target"
                }
                _ => "a side is at the target from the start, at no cost",
            };
            parts.add(name, left_curve.ratio_to(&right_curve, region), reason);
        }
        for (cell, side) in pairs.alone {
            let name = joined(&[&selection_text(side), &judge.name(cell, side, &[])]);
            parts.add(name, None, "no cell of the other side has its settings");
        }
        let factor =
            if self.factor == 1.0 { String::new() } else { format!("{} × ", self.factor) };
        // A claim with one part does not show the name of the part.
        let in_vain = match &all_in_vain[..] {
            [only] => format!("; {only}"),
            _ => String::new(),
        };
        let formula = format!(
            "{} until {} of {} {} {} < {factor}that of {}{in_vain}",
            self.reaching.cost.formula(),
            self.metric.formula(),
            selection_text(&self.left),
            target_sign(self.metric),
            target_text(&self.reaching),
            selection_text(&self.right)
        );
        Tested { parts, formula, scale: EstimateScale::Logarithm }
    }

    /// The claim is on an order of two sides, and false if they are exchanged.
    fn wrong(&self) -> Vec<WrongResult> {
        vec![WrongResult::Exchanged]
    }
}

impl ReachesBeforeKeys {
    /// The metric of a cell against the target; `None` if it is not recorded.
    fn curve(&self, cell: &CellResult<'_>) -> Option<CostCurve> {
        CostCurve::new(cell, self.metric, &self.reaching)
    }

    /// Says which cost a cell has paid without reaching the target, for the name of a part; empty if it reaches it.
    fn paid_in_vain(&self, cell: &CellResult<'_>, curve: &CostCurve) -> String {
        match curve.reached() {
            CostAtTarget::At(_) => String::new(),
            CostAtTarget::Never(most) => {
                let paid = cost_text(AtCost { unit: self.reaching.cost, most });
                format!("{} not within {paid}", cell.cell.label)
            }
        }
    }
}
