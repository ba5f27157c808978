//! `[[claim.frontier-less]]`: a frontier below the frontier of another algorithm.

use super::frontiers::{
    FrontierPoints, check_algorithm, check_points, exact, is_rival, place_text, points_text,
    rivals, wrong_costs,
};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, one};
use super::kind::{Claim, WrongResult};
use crate::stats::verdict::{Doubt, Evidence, widened};
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::manifest::frontier::FrontierQuantity;
use exactfed_runner::manifest::searched::AlgorithmName;
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// A number of a frontier is at most `factor` times that of another algorithm, or of every other, at each
/// point that both reach.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrontierLessKeys {
    /// Id of the frontier; the first by default.
    #[schemars(example = &"quadratic")]
    pub frontier: Option<String>,
    /// The points.
    #[schemars(example = serde_json::json!({ "algorithm": "scaffold" }))]
    pub of: FrontierPoints,
    /// The algorithm that it is compared with; by default every other algorithm of the frontier.
    pub than: Option<AlgorithmName>,
    /// The number.
    #[serde(default)]
    pub quantity: FrontierQuantity,
    /// The factor, above 0.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.5)]
    pub factor: f64,
}

impl KindKeys<ClaimKeys> for FrontierLessKeys {
    /// Notes what is wrong with the keys: the points, the factor, and an algorithm that is not on the frontier or would
    /// be compared with itself.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        let found = check_points(table, &claim.frontier, &claim.of, claim.quantity);
        table.above("factor", claim.factor, 0.0);
        if let Some((frontier, than)) = found.zip(claim.than.as_ref()) {
            check_algorithm(table, "than", frontier, than);
        }
        let message = "an algorithm would be compared with itself";
        table.require(Some(&claim.of.algorithm) != claim.than.as_ref(), "than", message);
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<FrontierLessKeys> {
    /// Tests each point of the claim, as a part: the logarithm of its number over the least number of the rivals at the
    /// same N and ε. A point that no rival reaches is outside of the claim.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        // Rounding alone refutes nothing.
        let region = widened((f64::NEG_INFINITY, libm::log(self.factor)));
        let frontier = judge.frontier(&self.frontier);
        let rivals = rivals(frontier.frontier, self.than.as_ref());
        for best in Judge::usable(frontier, &self.of, &mut parts) {
            // The number of each rival at the same N and ε, as far as it reaches the target.
            let mut others = Vec::new();
            for other in frontier.algorithms {
                let mut points = frontier.points(best.minimises, other);
                let same = points.find(|b| b.clients == best.clients && b.target == best.target);
                let value = same.and_then(|point| frontier.quantity(self.quantity, point));
                if is_rival(&self.of.algorithm, self.than.as_ref(), &other.name) {
                    others.extend(value);
                }
            }
            let name = place_text(best);
            let Some(other) = others.into_iter().min_by(f64::total_cmp) else {
                parts.outside.push(format!("{name}: {rivals} does not reach it"));
                continue;
            };
            let own = frontier.quantity(self.quantity, best);
            let found = own.map(|own| {
                let found = exact(libm::log(own / other), region);
                // An equal cost is at most as high and not less: the remark on the verdict says so.
                let is_equal = self.factor == 1.0 && found.is_of_equals();
                Evidence { doubt: if is_equal { Doubt::Equal } else { found.doubt }, ..found }
            });
            parts.add(name, found, "there are no prices");
        }
        let factor =
            if self.factor == 1.0 { String::new() } else { format!("{} × ", self.factor) };
        let formula = format!(
            "{} of {} ≤ {factor}that of {rivals}",
            self.quantity.words(),
            points_text(&self.of, frontier),
        );
        Tested { parts, formula, scale: EstimateScale::Logarithm }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        wrong_costs(&self.of.algorithm, self.than.as_ref())
    }
}
