//! `[[claim.phase-less]]`: an algorithm that costs least in a region of a map.

use super::frontiers::{exact, has_algorithm, is_rival, rivals, wrong};
use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::keys::{ClaimOf, one};
use super::kind::{Claim, WrongResult};
use crate::frontier::phase::{ComputedPhase, ComputedSquare, TIE};
use crate::stats::verdict::widened;
use exactfed_core::words::{readable, thousands};
use exactfed_runner::manifest::claim::ClaimKeys;
use exactfed_runner::manifest::frontier::{Frontier, FrontierAlgorithm};
use exactfed_runner::manifest::phase::{PhaseAxis, PhaseNumber};
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// The cost of an algorithm is at most `factor` times that of another, or of every other, on each square of a
/// region of a map. The costs are exact, so that the verdict needs no interval.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseLessKeys {
    /// Id of the map.
    #[schemars(example = &"noise")]
    pub phase: String,
    /// The algorithm.
    pub algorithm: FrontierAlgorithm,
    /// The algorithm that it is compared with; by default every other algorithm of the map.
    pub than: Option<FrontierAlgorithm>,
    /// The smallest and the largest value on the x axis; all by default.
    #[schemars(example = serde_json::json!([0.1, 10.0]))]
    pub x: Option<[f64; 2]>,
    /// The same on the y axis.
    #[schemars(example = serde_json::json!([0.1, 10.0]))]
    pub y: Option<[f64; 2]>,
    /// The factor, above 0; by default 1.05, within which there is no practical difference.
    #[serde(default = "tie")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1.2)]
    pub factor: f64,
    /// The share of the squares of the region on which it must hold, above 0 and at most 1.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0), example = 0.9)]
    pub share: f64,
}

fn tie() -> f64 {
    TIE
}

impl KindKeys<ClaimKeys> for PhaseLessKeys {
    fn check(claim: &ClaimOf<Self>, table: &mut Checker<'_>) {
        let manifest = table.manifest;
        table.above("factor", claim.factor, 0.0);
        table.above("share", claim.share, 0.0);
        table.require(claim.share <= 1.0, "share", "`share` must be at most 1");
        for (key, range) in [("x", claim.x), ("y", claim.y)] {
            let holds = range.is_none_or(|[low, high]| low <= high);
            table.require(holds, key, format!("`{key}` must be two numbers, the smaller first"));
        }
        let message = "an algorithm would be compared with itself";
        table.require(Some(claim.algorithm) != claim.than, "than", message);
        let Some(phase) = manifest.phase.iter().find(|phase| phase.id == claim.phase) else {
            let known: Vec<&str> = manifest.phase.iter().map(|phase| phase.id.as_str()).collect();
            let message = format!("no map is called \"{}\"", claim.phase);
            return table.note("phase", message, |d| d.naming(&claim.phase, &known));
        };
        if let Some(frontier) = Frontier::named(phase.frontier.as_deref(), &manifest.frontier) {
            has_algorithm(table, "algorithm", frontier, claim.algorithm);
            let than = claim.than.into_iter();
            than.for_each(|a| has_algorithm(table, "than", frontier, a));
        }
    }
}

impl<'a> Claim<'a> for &'a ClaimOf<PhaseLessKeys> {
    /// Tests the worst of the share of the squares for which it must hold.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let mut phases = judge.frontiers.iter().flat_map(|frontier| &frontier.phases);
        let phase = phases.find(|one| one.phase.id == self.phase);
        let phase = phase.expect("every map of a manifest is computed");
        match self.worst(phase) {
            None => parts.untested.push("the map has no squares there".into()),
            Some((place, ratio)) if ratio.is_finite() => {
                let region = widened((f64::NEG_INFINITY, libm::log(self.factor)));
                parts.tested.push((place, exact(libm::log(ratio), region)));
            }
            Some((place, _)) => {
                let label = self.algorithm.label();
                parts.untested.push(format!("{place}: {label} does not reach ε"));
            }
        }
        Tested { parts, formula: self.formula(phase), scale: EstimateScale::Logarithm(1.0) }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        wrong(self.algorithm, self.than)
    }
}

impl PhaseLessKeys {
    fn is_meant(&self, phase: &ComputedPhase<'_>, square: &ComputedSquare) -> bool {
        let within = |of, range: Option<[f64; 2]>| {
            let value = square.numbers.get(of);
            range.is_none_or(|[low, high]| {
                value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9)
            })
        };
        within(phase.phase.x.over, self.x) && within(phase.phase.y.over, self.y)
    }

    /// The cost as a multiple of that of the best it is compared with, infinite where it does not reach the target;
    /// `None` where nothing else does.
    fn ratio(&self, square: &ComputedSquare) -> Option<f64> {
        let all = &square.ranked.all;
        let own = all.iter().find(|one| one.0 == self.algorithm).map_or(f64::INFINITY, |one| one.2);
        let others =
            all.iter().filter(|one| is_rival(self.algorithm, self.than, one.0)).map(|one| one.2);
        Some(own / others.min_by(f64::total_cmp)?)
    }

    /// The worst of the share of the squares for which it must hold, with its place.
    fn worst(&self, phase: &ComputedPhase<'_>) -> Option<(String, f64)> {
        let squares = phase.squares.iter().filter(|square| self.is_meant(phase, square));
        let mut found: Vec<_> = squares.filter_map(|s| Some((self.ratio(s)?, s))).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let count = libm::ceil(self.share * found.len() as f64) as usize;
        let (ratio, square) = *found.get(count.checked_sub(1)?)?;
        let [x, y] = [phase.phase.x.over, phase.phase.y.over];
        let text =
            |of: PhaseNumber| format!("{} = {}", of.symbol(), readable(square.numbers.get(of), 3));
        let of_all = match self.share {
            1.0 => format!("the worst of {}", thousands(count)),
            _ => {
                format!("the worst of the best {} of {}", thousands(count), thousands(found.len()))
            }
        };
        Some((format!("{of_all} squares, {}, {}", text(x), text(y)), ratio))
    }

    fn formula(&self, phase: &ComputedPhase<'_>) -> String {
        let range = |axis: PhaseAxis, range: Option<[f64; 2]>| {
            let text = |[low, high]: [f64; 2]| {
                format!(
                    " for {} from {} to {}",
                    axis.over.symbol(),
                    readable(low, 3),
                    readable(high, 3)
                )
            };
            range.map_or_else(String::new, text)
        };
        format!(
            "cost of {} ≤ {} × that of {}{}{}",
            self.algorithm.label(),
            self.factor,
            rivals(self.than),
            range(phase.phase.x, self.x),
            range(phase.phase.y, self.y)
        )
    }
}
