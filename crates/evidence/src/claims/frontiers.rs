//! Claims about frontiers. Their numbers are exact, so that a verdict needs no interval.

use super::judge::{EstimateScale, Judge, Parts, Tested};
use super::kind::{Claim, ClaimedCells, WrongResult};
use super::text::number_text;
use crate::cells::runs::TraceNeeds;
use crate::frontier::{ComputedFrontier, FrontierCost, FrontierPoint, label};
use crate::stats::verdict::{Evidence, Region, slope_weights, widened};
use exactfed_core::words::{joined, readable, thousands};
use exactfed_runner::manifest::claim::{ClaimKeys, FrontierConstant, FrontierLess, FrontierSlope};
use exactfed_runner::manifest::frontier::FrontierPoints;
use exactfed_runner::plan::Cell;

/// Why a point is not used.
const AT_AN_EDGE: &str = "γ or H is at the end of its range, and a wider range might give less";
const NOT_REACHED: &str = "the target is not reached under the limits of the frontier";

/// Powers of N and ε that make a frontier another.
const TILTS: [WrongResult; 3] = [
    WrongResult::FrontierTilted(0.0, 0.5),
    WrongResult::FrontierTilted(0.0, -0.5),
    WrongResult::FrontierTilted(1.0, 0.0),
];

/// Evidence of a number without runs.
fn exact(estimate: f64, region: Region) -> Evidence {
    Evidence { n: 0, ..Evidence::exact(estimate, region) }
}

/// N and ε of a point.
fn place(best: &FrontierPoint) -> String {
    format!("{}, ε = {}", clients_text(best.clients), readable(best.target, 3))
}

fn clients_text(clients: u64) -> String {
    format!("N = {}", thousands(clients as usize))
}

/// Whether a point is of a claim.
fn is_meant(best: &FrontierPoint, of: &FrontierPoints) -> bool {
    // Targets of equal ratio are not written as manifests write numbers.
    let (low, high) = (1.0 - 1e-9, 1.0 + 1e-9);
    (of.clients.is_empty() || of.clients.contains(&best.clients))
        && of.largest_target.is_none_or(|most| best.target <= high * most)
        && of.smallest_target.is_none_or(|least| best.target >= low * least)
}

/// What a claim is about, as text.
fn points_text(of: &FrontierPoints) -> String {
    let clients: Vec<String> = of.clients.iter().map(u64::to_string).collect();
    let clients = match clients.is_empty() {
        true => String::new(),
        false => format!("N = {}", clients.join(" or ")),
    };
    let targets = match (of.smallest_target, of.largest_target) {
        (None, None) => String::new(),
        (Some(low), None) => format!("ε ≥ {}", number_text(low)),
        (None, Some(high)) => format!("ε ≤ {}", number_text(high)),
        (Some(low), Some(high)) => format!("{} ≤ ε ≤ {}", number_text(low), number_text(high)),
    };
    joined(&[label(of.algorithm), &joined(&[&clients, &targets])])
}

impl<'a> Judge<'a> {
    /// The frontier of a claim.
    fn frontier(&self, id: &Option<String>) -> Option<&'a ComputedFrontier<'a>> {
        self.frontiers.iter().find(|f| id.as_ref().is_none_or(|id| f.id == id))
    }

    /// The points of a claim that may be used, with their costs. The others are untested.
    fn usable(
        frontier: &'a ComputedFrontier<'a>,
        of: &FrontierPoints,
        parts: &mut Parts,
    ) -> Vec<(&'a FrontierPoint, FrontierCost)> {
        let mut usable = Vec::new();
        for best in frontier.points(of.algorithm).filter(|best| is_meant(best, of)) {
            match best.cost {
                None => parts.untested.push(format!("{}: {NOT_REACHED}", place(best))),
                Some(_) if best.flags.iter().any(|flag| flag.is_edge()) => {
                    parts.untested.push(format!("{}: {AT_AN_EDGE}", place(best)));
                }
                Some(cost) => usable.push((best, cost)),
            }
        }
        usable
    }
}

impl<'a> Claim<'a> for &'a FrontierSlope {
    fn keys(&self) -> &'a ClaimKeys {
        &self.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        None
    }

    fn add_needs(&self, _: &Cell, _: &mut TraceNeeds) {}

    /// Tests that the slope of a frontier over the target is a number, for each N.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        if let Some(frontier) = judge.frontier(&self.frontier) {
            let points = Judge::usable(frontier, &self.of, &mut parts);
            let region = (self.value - self.margin, self.value + self.margin);
            for clients in &frontier.clients {
                let own: Vec<_> = points.iter().filter(|(b, _)| b.clients == *clients).collect();
                if own.is_empty() {
                    continue;
                }
                let targets: Vec<f64> = own.iter().map(|(best, _)| best.target).collect();
                let value = |(_, cost): &&(&FrontierPoint, FrontierCost)| {
                    Some(libm::log(cost.quantity(self.quantity, frontier.prices.as_ref())?))
                };
                let values: Option<Vec<f64>> = own.iter().map(value).collect();
                let slope = values.filter(|values| values.len() > 1).map(|values| {
                    let weights = slope_weights(&targets);
                    exact(weights.iter().zip(&values).map(|(w, y)| w * y).sum(), region)
                });
                parts.add(clients_text(*clients), slope, "a slope needs two targets");
            }
        }
        let formula = format!(
            "slope of log({}) over log(ε) of {} is {} ± {}",
            self.quantity.words(),
            points_text(&self.of),
            self.value,
            self.margin
        );
        Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        TILTS.to_vec()
    }
}

impl<'a> Claim<'a> for &'a FrontierConstant {
    fn keys(&self) -> &'a ClaimKeys {
        &self.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        None
    }

    fn add_needs(&self, _: &Cell, _: &mut TraceNeeds) {}

    /// Tests that a number of a frontier times powers of N and ε is constant up to a factor.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let (mut parts, mut range) = (Parts::default(), String::new());
        if let Some(frontier) = judge.frontier(&self.frontier) {
            let scaled = |(best, cost): &(&FrontierPoint, FrontierCost)| {
                let logarithm = libm::log(frontier.problem.radius / best.target);
                let powers = libm::pow(best.clients as f64, self.clients_power)
                    * libm::pow(best.target, self.target_power)
                    * libm::pow(logarithm, self.logarithm_power);
                Some(powers * cost.quantity(self.quantity, frontier.prices.as_ref())?)
            };
            let points = Judge::usable(frontier, &self.of, &mut parts);
            let values: Vec<f64> = points.iter().filter_map(scaled).collect();
            let ends =
                values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
            let ratio = (values.len() > 1).then(|| exact(ends.1 / ends.0, (1.0, self.factor)));
            parts.add(String::new(), ratio, "there are not two points");
            if values.len() > 1 {
                range = format!(" (from {} to {})", readable(ends.0, 3), readable(ends.1, 3));
            }
        }
        let formula = format!(
            "{}{} of {}{range}: the largest is at most {} times the smallest",
            self.quantity.words(),
            powers_text(self),
            points_text(&self.of),
            self.factor
        );
        Tested { parts, formula, scale: EstimateScale::Plain, conditions: Vec::new() }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        TILTS.to_vec()
    }
}

impl<'a> Claim<'a> for &'a FrontierLess {
    fn keys(&self) -> &'a ClaimKeys {
        &self.common
    }

    fn cells(&self) -> Option<ClaimedCells<'a>> {
        None
    }

    fn add_needs(&self, _: &Cell, _: &mut TraceNeeds) {}

    /// Tests that a number of a frontier is at most a multiple of that of another algorithm.
    fn test(&self, judge: &Judge<'_>) -> Tested {
        let mut parts = Parts::default();
        let region = widened((f64::NEG_INFINITY, libm::log(self.factor)));
        if let Some(frontier) = judge.frontier(&self.frontier) {
            let value =
                |cost: &FrontierCost| cost.quantity(self.quantity, frontier.prices.as_ref());
            for (best, cost) in Judge::usable(frontier, &self.of, &mut parts) {
                let is_same =
                    |b: &&FrontierPoint| b.clients == best.clients && b.target == best.target;
                let other = frontier.points(self.than).find(is_same);
                let name = place(best);
                let Some(other) = other.and_then(|other| other.cost) else {
                    parts.outside.push(format!("{name}: {} does not reach it", label(self.than)));
                    continue;
                };
                let ratio = value(&cost).zip(value(&other));
                let found = ratio.map(|(own, other)| exact(libm::log(own / other), region));
                parts.add(name, found, "there are no prices");
            }
        }
        let factor =
            if self.factor == 1.0 { String::new() } else { format!("{} × ", self.factor) };
        let formula = format!(
            "{} of {} ≤ {factor}that of {}",
            self.quantity.words(),
            points_text(&self.of),
            label(self.than)
        );
        Tested { parts, formula, scale: EstimateScale::Logarithm(1.0), conditions: Vec::new() }
    }

    fn wrong(&self) -> Vec<WrongResult> {
        let own = self.of.algorithm;
        vec![WrongResult::FrontierExchanged(own, self.than), WrongResult::FrontierDoubled(own)]
    }
}

/// The powers that a number is multiplied by, as text.
fn powers_text(claim: &FrontierConstant) -> String {
    let power = |(base, power): (&str, f64)| match power {
        0.0 => String::new(),
        1.0 => format!(" · {base}"),
        power => format!(" · {base}^{}", number_text(power)),
    };
    let all = [
        ("N", claim.clients_power),
        ("ε", claim.target_power),
        ("log(r/ε)", claim.logarithm_power),
    ];
    all.map(power).concat()
}
