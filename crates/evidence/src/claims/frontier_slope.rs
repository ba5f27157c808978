//! `[[claim.frontier-slope]]`: the slope of a frontier over the target.

use super::frontiers::{
    FrontierPoints, TILTS, check_points, clients_text, exact, meant, points_text,
};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::ClaimOf;
use super::kind::{Claim, WrongResult};
use crate::stats::verdict::slope_weights;
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::manifest::frontier::FrontierQuantity;
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The slope of the logarithm of a number of a frontier over that of the target is `value`, up to
/// `margin`, for each number of clients. The numbers are exact, so that the verdict needs no
/// interval.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrontierSlopeKeys {
    /// Id of the frontier; the first by default.
    #[schemars(example = &"quadratic")]
    pub frontier: Option<String>,
    /// The points.
    #[schemars(example = serde_json::json!({ "algorithm": "fedavg" }))]
    pub of: FrontierPoints,
    /// The number.
    #[serde(default)]
    pub quantity: FrontierQuantity,
    /// The slope that is claimed.
    #[schemars(example = -1.0)]
    pub value: f64,
    /// How far the slope may be from it, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub margin: f64,
}

impl KindKeys<ClaimKeys> for FrontierSlopeKeys {
    /// Notes what is wrong with the keys: the points, the slope and the margin.
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        check_points(table, &claim.frontier, &claim.of, claim.quantity);
        table.finite("value", claim.value);
        table.above("margin", claim.margin, 0.0);
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<FrontierSlopeKeys> {
    /// Tests the slope over the targets for each number of clients, as a part. A number of clients some of whose points
    /// may not be used has no part: these points are untested, which says why.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let frontier = judge.frontier(&self.frontier);
        let points = Judge::usable(frontier, &self.of, &mut parts);
        let region = (self.value - self.margin, self.value + self.margin);
        for clients in &frontier.clients {
            let own: Vec<_> = points.iter().filter(|best| best.clients == *clients).collect();
            // Without some of its targets a slope is another.
            let all = meant(frontier, &self.of).filter(|best| best.clients == *clients);
            if own.is_empty() || own.len() < all.count() {
                continue;
            }
            let targets: Vec<f64> = own.iter().map(|best| best.target).collect();
            let values: Option<Vec<f64>> = own
                .iter()
                .map(|best| frontier.quantity(self.quantity, best))
                .map(|value| value.map(libm::log))
                .collect();
            let slope = values.filter(|values| values.len() > 1).map(|values| {
                let weights = slope_weights(&targets);
                exact(weights.iter().zip(&values).map(|(w, y)| w * y).sum(), region)
            });
            parts.add(clients_text(*clients), slope, "a slope needs two targets");
        }
        let formula = format!(
            "slope of log({}) over log(ε) of {} is {} ± {}",
            self.quantity.words(),
            points_text(&self.of, frontier),
            self.value,
            self.margin
        );
        Tested { parts, formula, scale: EstimateScale::Plain }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        TILTS.to_vec()
    }
}
