//! `[[claim.less]]` and `[[claim.at-least]]`: a mean is at most, or at least, a multiple of another.

use super::judge::{Judge, Tested};
use super::keys::{ClaimOf, When, one};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::means::MeanComparison;
use crate::stats::verdict::{Doubt, Evidence};
use exactfed_runner::manifest::claim::{ClaimKeys, Selection};
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The mean of a metric is at most (`less`) or at least (`at-least`) `factor` times that of
/// other cells, a prediction or a number. With the factor 1, `less` than other cells means strictly
/// less: sides that are equal in every run, up to rounding, neither support nor refute it. Cells of
/// both sides are paired by the label and the settings that the selections leave open, and the claim
/// must hold for every pair.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ComparisonKeys {
    /// The quantity that is compared.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells of which it is claimed.
    #[schemars(example = Selection::example("Scaffold"))]
    pub left: Selection,
    /// The cells that they are compared with.
    #[schemars(example = Selection::example("FedAvg"))]
    pub right: Option<Selection>,
    /// A prediction of theory for the same cells, in place of `right`.
    pub prediction: Option<Prediction>,
    /// A number, in place of `right`.
    #[schemars(example = 0.01)]
    pub value: Option<f64>,
    /// Factor on the right side, above 0.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.5)]
    pub factor: f64,
    /// When they are compared.
    #[serde(default)]
    pub at: When,
}

impl KindKeys<ClaimKeys> for ComparisonKeys {
    /// Notes what is wrong with the keys: the metric, the cells, the factor, and what the cells are compared with.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        table.quantity("metric", claim.metric);
        table.selection("left", &claim.left);
        table.above("factor", claim.factor, 0.0);
        comparison(claim).check(table);
    }
}

/// A claim on an upper bound (`less`) or a lower one (`at-least`).
pub struct OneSided<'a> {
    /// The claim as the manifest writes it.
    pub claim: &'a ClaimOf<ComparisonKeys>,
    /// Whether it is on an upper bound.
    pub is_upper: bool,
}

/// The comparison of means that a claim makes.
fn comparison(claim: &ClaimOf<ComparisonKeys>) -> MeanComparison<'_> {
    MeanComparison {
        metric: claim.metric,
        left: &claim.left,
        right: claim.right.as_ref(),
        prediction: claim.prediction,
        value: claim.value,
        at: claim.at,
    }
}

impl OneSided<'_> {
    /// What evidence from two sides that are equal in every run, or both 0, means for the claim; nothing is random in
    /// either if `is_fixed`. The claim that one is less than the other is neither supported nor refuted. Any other
    /// claim on them is certain, and a remark on its verdict says that they are equal.
    fn with_equal_sides(&self, evidence: Evidence, is_fixed: bool) -> Evidence {
        let doubt = Doubt::Equal;
        let are_both_zero = evidence.estimate.is_nan();
        let is_without_factor = self.claim.factor == 1.0;
        if is_without_factor && self.is_upper && !are_both_zero {
            // Both p-values are 1: nothing speaks for or against the claim. Further runs may differ, unless nothing in
            // them is random.
            let error = if is_fixed { 0.0 } else { f64::NAN };
            return Evidence { error, support: 1.0, refute: 1.0, doubt, ..evidence };
        }
        // Two zeros have no ratio that could be above or below a factor: what differs by rounding
        // alone refutes nothing.
        if is_without_factor || are_both_zero { Evidence { doubt, ..evidence } } else { evidence }
    }
}

impl<'a> Claim<'a> for OneSided<'a> {
    fn cells(&self) -> Option<ClaimedCells<'a>> {
        Some(comparison(self.claim).cells())
    }

    /// Tests each cell or pair of cells at each time of the claim, as a part: that the logarithm of the ratio of means
    /// is at most, or at least, the logarithm of the factor.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let factor = self.claim.factor;
        let limit = libm::log(factor);
        let is_strict = factor == 1.0 && self.claim.right.is_some();
        let (sign, region) = match (self.is_upper, is_strict) {
            (true, true) => ("<", (f64::NEG_INFINITY, limit)),
            (true, false) => ("≤", (f64::NEG_INFINITY, limit)),
            (false, _) => ("≥", (limit, f64::INFINITY)),
        };
        judge.compared(
            &comparison(self.claim),
            sign,
            factor,
            |_| region,
            |evidence, is_fixed| {
                if evidence.is_of_equals() {
                    self.with_equal_sides(evidence, is_fixed)
                } else {
                    evidence
                }
            },
        )
    }

    /// A claim on an order of two sides is false if they are exchanged, one on a bound if results are twice or half as
    /// large. Errors that are claimed to be well above the exact bias are not if runs have no noise.
    fn wrong(&self) -> Vec<WrongResult> {
        match (&self.claim.right, self.is_upper, self.claim.prediction) {
            (Some(_), ..) => vec![WrongResult::Exchanged],
            (None, true, _) => vec![WrongResult::Doubled],
            (None, false, Some(Prediction::ExactBias)) => {
                vec![WrongResult::Halved, WrongResult::WithoutNoise]
            }
            (None, false, _) => vec![WrongResult::Halved],
        }
    }
}
