//! `[[claim.frontier-constant]]`: a frontier against powers of N and ε.

use super::frontiers::{FrontierPoints, TILTS, check_points, exact, points_text};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::ClaimOf;
use super::kind::{Claim, WrongResult};
use super::text::number_text;
use exactfed_core::words::readable;
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::manifest::frontier::FrontierQuantity;
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// A number of a frontier, multiplied by powers of N, ε and log(r/ε), with r the root mean square
/// of ‖θ_0 − θ*‖, is the same at all points up to a factor: the largest is at most `factor` times
/// the smallest.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrontierConstantKeys {
    /// Id of the frontier; the first by default.
    #[schemars(example = &"quadratic")]
    pub frontier: Option<String>,
    /// The points.
    #[schemars(example = serde_json::json!({ "algorithm": "fedavg" }))]
    pub of: FrontierPoints,
    /// The number.
    #[serde(default)]
    pub quantity: FrontierQuantity,
    /// The power of N.
    #[serde(default)]
    #[schemars(example = 1.0)]
    pub clients_power: f64,
    /// The power of ε.
    #[serde(default)]
    #[schemars(example = 1.0)]
    pub target_power: f64,
    /// The power of log(r/ε).
    #[serde(default)]
    #[schemars(example = -1.0)]
    pub logarithm_power: f64,
    /// The factor, above 1.
    #[schemars(extend("exclusiveMinimum" = 1.0), example = 1.5)]
    pub factor: f64,
}

impl KindKeys<ClaimKeys> for FrontierConstantKeys {
    /// Notes what is wrong with the keys: the points, the factor and the powers.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        check_points(table, &claim.frontier, &claim.of, claim.quantity);
        table.above("factor", claim.factor, 1.0);
        let powers = [claim.clients_power, claim.target_power, claim.logarithm_power];
        let message = "the powers must be finite numbers";
        table.require(powers.iter().all(|p| p.is_finite()), "", message);
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<FrontierConstantKeys> {
    /// Tests the largest over the smallest of the numbers at the points of the claim, after multiplication by the
    /// powers, as one part; it needs two points.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let mut range = String::new();
        let frontier = judge.frontier(&self.frontier);
        let points = Judge::usable(frontier, &self.of, &mut parts);
        let values: Vec<f64> = points
            .iter()
            .filter_map(|best| {
                let logarithm = libm::log(frontier.radius / best.target);
                let powers = libm::pow(best.clients as f64, self.clients_power)
                    * libm::pow(best.target, self.target_power)
                    * libm::pow(logarithm, self.logarithm_power);
                Some(powers * frontier.quantity(self.quantity, best)?)
            })
            .collect();
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(0.0, f64::max);
        let ratio =
            (values.len() > 1).then(|| exact(largest / smallest, (f64::NEG_INFINITY, self.factor)));
        parts.add(String::new(), ratio, "there are not two points");
        if values.len() > 1 {
            range = format!(" (from {} to {})", readable(smallest, 3), readable(largest, 3));
        }
        let formula = format!(
            "{}{} of {}{range}: the largest is at most {} times the smallest",
            self.quantity.words(),
            powers_text(self),
            points_text(&self.of, frontier),
            self.factor
        );
        Tested { parts, formula, scale: EstimateScale::Plain }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        TILTS.to_vec()
    }
}

/// The powers by which the claim multiplies the number of the frontier, as factors in its formula; powers of 0 are left
/// out.
fn powers_text(claim: &ClaimOf<FrontierConstantKeys>) -> String {
    let all = [
        ("N", claim.clients_power),
        ("ε", claim.target_power),
        ("log(r/ε)", claim.logarithm_power),
    ];
    all.map(|(base, power)| match power {
        0.0 => String::new(),
        1.0 => format!(" · {base}"),
        power => format!(" · {base}^{}", number_text(libm::round(power * 1e3) / 1e3)),
    })
    .concat()
}
