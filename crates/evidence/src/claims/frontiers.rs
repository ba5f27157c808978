//! What claims about frontiers share. Their numbers are exact, so that a verdict needs no interval.

use super::judge::{Judge, Parts};
use super::kind::WrongResult;
use super::text::number_text;
use crate::frontier::{ComputedFrontier, FrontierPoint};
use crate::stats::verdict::{Evidence, Region};
use exactfed_core::words::{joined, number, readable, thousands};
use exactfed_runner::manifest::frontier::{Frontier, FrontierObjective, FrontierQuantity};
use exactfed_runner::manifest::searched::AlgorithmName;
use exactfed_runner::plan::Checker;
use schemars::JsonSchema;
use serde::Deserialize;

/// Points of a frontier: an algorithm at some numbers of clients and targets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrontierPoints {
    /// The algorithm.
    pub algorithm: AlgorithmName,
    /// The numbers of clients; all by default.
    #[serde(default)]
    #[schemars(example = serde_json::json!([10, 100, 1000]))]
    pub clients: Vec<u64>,
    /// Only targets of at most this.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub largest_target: Option<f64>,
    /// Only targets of at least this.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.001)]
    pub smallest_target: Option<f64>,
    /// Prices of a communication, of the frontier's `price-ratios`.
    #[serde(default)]
    #[schemars(example = serde_json::json!([100.0, 1000.0]))]
    pub prices: Vec<f64>,
    /// Budgets of gradients, of the frontier's `budgets`. A claim is about the least costs at all
    /// these prices and the fewest communications within all these budgets. Without either it is
    /// about the middle price (the upper of two), or about seconds if the manifest has `[prices]`.
    #[serde(default)]
    #[schemars(example = serde_json::json!([4.0]))]
    pub budgets: Vec<f64>,
}

impl FrontierPoints {
    /// What is minimised at the points: the cost at each of the prices and the communications within each of the
    /// budgets that the claim names, or `lead`, what the frontier itself leads with, if it names none.
    pub fn objectives(&self, lead: FrontierObjective) -> Vec<FrontierObjective> {
        let prices = self.prices.iter().copied().map(FrontierObjective::Price);
        let all: Vec<_> =
            prices.chain(self.budgets.iter().copied().map(FrontierObjective::Budget)).collect();
        if all.is_empty() { vec![lead] } else { all }
    }
}

/// Notes what is wrong with the points and the quantity of a claim on the frontier with this id, or on the first one.
/// Returns the frontier, if there is one.
pub fn check_points<'a>(
    table: &mut Checker<'a>,
    id: &Option<String>,
    of: &FrontierPoints,
    quantity: FrontierQuantity,
) -> Option<&'a Frontier> {
    let none = "there is no frontier: write [[frontier]]";
    let frontier = table.frontier_of(id.as_deref(), none)?;
    check_algorithm(table, "of.algorithm", frontier, &of.algorithm);
    for clients in &of.clients {
        let known = frontier.clients.contains(clients) || frontier.clients.is_empty();
        let message = format!("the frontier \"{}\" has no N = {clients}", frontier.id);
        table.require(known, "of.clients", message);
    }
    for (key, what, values, known) in [
        ("of.prices", "price", &of.prices, &frontier.price_ratios),
        ("of.budgets", "budget", &of.budgets, &frontier.budgets),
    ] {
        // What is wrong with the frontier's own list is said there.
        let is_sound = known.iter().all(|x| x.is_finite() && *x > 0.0) && !known.is_empty();
        for value in values.iter().filter(|value| is_sound && !known.contains(value)) {
            let names: Vec<String> = known.iter().copied().map(number_text).collect();
            let message = format!("the frontier \"{}\" has no {what} {value}", frontier.id);
            table.note(key, message, |d| d.allowing(names.join(", ")));
        }
    }
    let is_range = of.smallest_target.zip(of.largest_target).is_none_or(|(low, high)| low <= high);
    table.require(is_range, "of", "`smallest-target` is above `largest-target`");
    let objectives = of.objectives(frontier.lead(table.manifest.prices.is_some()));
    let is_at_price = objectives.iter().all(|objective| objective.price().is_some());
    let message = "a cost is at a price: write `prices` in `of`";
    table.require(is_at_price || quantity != FrontierQuantity::Cost, "quantity", message);
    let is_priced = quantity != FrontierQuantity::Seconds || table.manifest.prices.is_some();
    table.require(is_priced, "quantity", "`seconds` needs prices: write a table [prices]");
    Some(frontier)
}

/// Notes under this key of a claim that a frontier does not have the algorithm that the claim names.
pub fn check_algorithm(
    table: &mut Checker<'_>,
    key: &str,
    frontier: &Frontier,
    wanted: &AlgorithmName,
) {
    let known: Vec<&str> = frontier.written.iter().map(|written| written.name()).collect();
    let name = wanted.as_str();
    if !known.contains(&name) {
        let message = format!("the frontier \"{}\" has no algorithm `{name}`", frontier.id);
        table.note(key, message, |d| d.allowing(known.join(", ")));
    }
}

/// Why a point is not used whose best settings are at the end of their range.
pub const AT_AN_EDGE: &str = "γ or H is at the end of its range, and a wider range might give less";
/// Why a point is not used at which the algorithm has no cost.
pub const NOT_REACHED: &str = "the target is not reached under the limits of the frontier";

/// Wrong frontiers, by powers of N and ε, that a claim on the shape of a frontier must not survive.
pub const TILTS: [WrongResult; 3] = [
    WrongResult::FrontierTilted(0.0, 0.5),
    WrongResult::FrontierTilted(0.0, -0.5),
    WrongResult::FrontierTilted(1.0, 0.0),
];

/// Evidence from a number that no run was needed for, so that its sample size is 0.
pub fn exact(estimate: f64, region: Region) -> Evidence {
    Evidence { n: 0, ..Evidence::exact(estimate, region) }
}

/// N, ε and the price or the budget of a point, as text that tells it from the other points of a claim.
pub fn place_text(best: &FrontierPoint<'_>) -> String {
    let least = match best.minimises {
        FrontierObjective::Price(price) => format!(", price {}", number(price, 3)),
        FrontierObjective::Budget(budget) => format!(", budget {}", number(budget, 3)),
        FrontierObjective::Seconds => String::new(),
    };
    format!("{}, ε = {}{least}", clients_text(best.clients), readable(best.target, 3))
}

/// A number of clients as `N = 10`.
pub fn clients_text(clients: u64) -> String {
    format!("N = {}", thousands(clients as usize))
}

/// The points that a claim is about, also those whose target is not reached.
pub fn meant<'a>(
    frontier: &'a ComputedFrontier<'a>,
    of: &FrontierPoints,
) -> impl Iterator<Item = &'a FrontierPoint<'a>> {
    let algorithm = frontier.algorithm(&of.algorithm);
    let objectives = of.objectives(frontier.lead).into_iter();
    let points = objectives.flat_map(|least| frontier.points(least, algorithm));
    // A frontier computes its targets in equal ratios, so that they differ by rounding from those that claims name.
    let low = 1.0 - 1e-9;
    let high = 1.0 + 1e-9;
    points.filter(move |best| {
        (of.clients.is_empty() || of.clients.contains(&best.clients))
            && of.largest_target.is_none_or(|most| best.target <= high * most)
            && of.smallest_target.is_none_or(|least| best.target >= low * least)
    })
}

/// Numbers as a list, as `100 or 1000`.
fn numbers_text(all: &[f64]) -> String {
    all.iter().copied().map(number_text).collect::<Vec<_>>().join(" or ")
}

/// The points that a claim is about, as text for its formula: the algorithm, N, ε and the prices or budgets.
pub fn points_text(of: &FrontierPoints, frontier: &ComputedFrontier<'_>) -> String {
    let clients = match of.clients.as_slice() {
        [] => String::new(),
        all => format!("N = {}", all.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")),
    };
    let targets = match (of.smallest_target, of.largest_target) {
        (None, None) => String::new(),
        (Some(low), None) => format!("ε ≥ {}", number_text(low)),
        (None, Some(high)) => format!("ε ≤ {}", number_text(high)),
        (Some(low), Some(high)) => format!("{} ≤ ε ≤ {}", number_text(low), number_text(high)),
    };
    let prices = match (of.prices.is_empty() && of.budgets.is_empty(), frontier.lead) {
        (true, FrontierObjective::Price(price)) => vec![price],
        _ => of.prices.clone(),
    };
    let price = (!prices.is_empty()).then(|| format!("at the price {}", numbers_text(&prices)));
    let budget = (!of.budgets.is_empty())
        .then(|| format!("within {} times SGD's gradients", numbers_text(&of.budgets)));
    let least = price.into_iter().chain(budget).collect::<Vec<_>>().join(" and ");
    joined(&[&frontier.algorithm(&of.algorithm).label, &joined(&[&clients, &targets, &least])])
}

/// Whether a claim compares the algorithm `own` with the algorithm of the name `other`: with `than` alone if the claim
/// names one, or else with every other.
pub fn is_rival(own: &AlgorithmName, than: Option<&AlgorithmName>, other: &str) -> bool {
    than.map_or(other != own.as_str(), |than| other == than.as_str())
}

/// Wrong frontiers on which the algorithm `own` costs more than what a claim compares it with (see [`is_rival`]).
pub fn wrong_costs(own: &AlgorithmName, than: Option<&AlgorithmName>) -> Vec<WrongResult> {
    let exchanged = than.map(|than| WrongResult::FrontierExchanged(own.clone(), than.clone()));
    exchanged.into_iter().chain([WrongResult::FrontierDoubled(own.clone())]).collect()
}

/// The label of the algorithm `than` that a claim names as its rival, or words for every other algorithm.
pub fn rivals<'a>(frontier: &'a Frontier, than: Option<&AlgorithmName>) -> &'a str {
    let than = than.and_then(|than| frontier.algorithm(than));
    than.map_or("every other algorithm", |than| &than.label)
}

impl<'a> Judge<'a> {
    /// The frontier with this id, or the first one, which [`check_points`] found in the manifest.
    pub fn frontier(&self, id: &Option<String>) -> &'a ComputedFrontier<'a> {
        let mut all = self.frontiers.iter();
        let own = all.find(|f| id.as_ref().is_none_or(|id| f.frontier.id == *id));
        own.expect("every frontier of a manifest is computed")
    }

    /// The points of a claim that may be used: their target is reached, with no setting at the end of its range. The
    /// others are added to the untested parts, with the reason.
    pub fn usable(
        frontier: &'a ComputedFrontier<'a>,
        of: &FrontierPoints,
        parts: &mut Parts,
    ) -> Vec<&'a FrontierPoint<'a>> {
        let mut usable = Vec::new();
        let mut points = meant(frontier, of).peekable();
        if points.peek().is_none() {
            parts.untested.push("the frontier has none of these points".into());
        }
        for best in points {
            match best.cost {
                None => parts.untested.push(format!("{}: {NOT_REACHED}", place_text(best))),
                Some(_) if best.flags.iter().any(|flag| flag.is_edge()) => {
                    parts.untested.push(format!("{}: {AT_AN_EDGE}", place_text(best)));
                }
                Some(_) => usable.push(best),
            }
        }
        usable
    }
}
