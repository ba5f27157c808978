//! What claims about frontiers share. Their numbers are exact, so that a verdict needs no interval.

use super::judge::{Judge, Parts};
use super::kind::WrongResult;
use super::text::number_text;
use crate::frontier::{ComputedFrontier, FrontierCost, FrontierPoint};
use crate::stats::verdict::{Evidence, Region};
use exactfed_core::words::{joined, readable, thousands};
use exactfed_runner::manifest::frontier::{
    Frontier, FrontierAlgorithm, FrontierQuantity, Objective,
};
use exactfed_runner::plan::TableChecker;
use schemars::JsonSchema;
use serde::Deserialize;

/// Examples for the documentation.
const EXAMPLE_CLIENTS: [u64; 3] = [10, 100, 1000];

/// Points of a frontier: an algorithm at some numbers of clients and targets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrontierPoints {
    /// The algorithm.
    pub algorithm: FrontierAlgorithm,
    /// The numbers of clients; all by default.
    #[serde(default)]
    #[schemars(example = EXAMPLE_CLIENTS)]
    pub clients: Vec<u64>,
    /// Only targets of at most this.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub largest_target: Option<f64>,
    /// Only targets of at least this.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.001)]
    pub smallest_target: Option<f64>,
    /// The price of a communication in oracle calls at which the cost is least, one of the frontier's
    /// `price-ratios`.
    #[schemars(example = 1000.0)]
    pub price: Option<f64>,
    /// The budget of oracle calls within which the communications are fewest, one of the frontier's
    /// `budgets`. Without a price and a budget, claims are about the middle price, or about seconds
    /// where the manifest has prices.
    #[schemars(example = 4.0)]
    pub budget: Option<f64>,
}

impl FrontierPoints {
    /// What is least at the points.
    pub fn objective(&self, lead: Objective) -> Objective {
        self.price.map(Objective::Price).or(self.budget.map(Objective::Budget)).unwrap_or(lead)
    }
}

/// Checks the points of a claim; the frontier that it is about.
pub fn check_points<'a>(
    table: &mut TableChecker<'_, 'a>,
    id: &Option<String>,
    of: &FrontierPoints,
    quantity: FrontierQuantity,
) -> Option<&'a Frontier> {
    let all = &table.manifest().frontier;
    let is_named = |f: &&Frontier| id.as_ref().is_none_or(|id| f.id == *id);
    let Some(frontier) = all.iter().find(is_named) else {
        let known: Vec<&str> = all.iter().map(|f| f.id.as_str()).collect();
        let message = match id {
            Some(id) => format!("no frontier is called \"{id}\""),
            None => "there is no frontier: write [[frontier]]".to_owned(),
        };
        let id = id.as_deref().unwrap_or_default();
        table.note("frontier", message, |d| d.naming(id, &known));
        return None;
    };
    has_algorithm(table, "of.algorithm", frontier, of.algorithm);
    for clients in &of.clients {
        let known = frontier.clients.contains(clients) || frontier.clients.is_empty();
        let message = format!("the frontier \"{}\" has no N = {clients}", frontier.id);
        table.require(known, "of.clients", message);
    }
    for (key, value, known) in [
        ("of.price", of.price, &frontier.price_ratios),
        ("of.budget", of.budget, &frontier.budgets),
    ] {
        if let Some(value) = value.filter(|value| !known.contains(value)) {
            let names: Vec<String> = known.iter().copied().map(number_text).collect();
            let message = format!("the frontier \"{}\" has no {value}", frontier.id);
            table.note(key, message, |d| d.allowing(names.join(", ")));
        }
    }
    let message = "write one of `price` and `budget`";
    table.require(of.price.is_none() || of.budget.is_none(), "of.budget", message);
    let lead = frontier.lead(table.manifest().prices.is_some());
    let is_at_price = quantity != FrontierQuantity::Cost || of.objective(lead).price().is_some();
    table.require(is_at_price, "quantity", "a cost is at a price: write `price` in `of`");
    let is_priced = quantity != FrontierQuantity::Seconds || table.manifest().prices.is_some();
    table.require(is_priced, "quantity", "`seconds` needs prices: write a table [prices]");
    Some(frontier)
}

/// Checks that a frontier has an algorithm.
pub fn has_algorithm(
    table: &mut TableChecker<'_, '_>,
    key: &str,
    frontier: &Frontier,
    wanted: FrontierAlgorithm,
) {
    let name = wanted.name();
    let known: Vec<&str> = frontier.algorithms.iter().map(|a| a.name()).collect();
    if !frontier.algorithms.contains(&wanted) {
        let message = format!("the frontier \"{}\" has no algorithm `{name}`", frontier.id);
        table.note(key, message, |d| d.allowing(known.join(", ")));
    }
}

/// Why a point is not used.
const AT_AN_EDGE: &str = "γ or H is at the end of its range, and a wider range might give less";
const NOT_REACHED: &str = "the target is not reached under the limits of the frontier";

/// Powers of N and ε that make a frontier another.
pub const TILTS: [WrongResult; 3] = [
    WrongResult::FrontierTilted(0.0, 0.5),
    WrongResult::FrontierTilted(0.0, -0.5),
    WrongResult::FrontierTilted(1.0, 0.0),
];

/// Evidence of a number without runs.
pub fn exact(estimate: f64, region: Region) -> Evidence {
    Evidence { n: 0, ..Evidence::exact(estimate, region) }
}

/// N and ε of a point.
pub fn place(best: &FrontierPoint) -> String {
    format!("{}, ε = {}", clients_text(best.clients), readable(best.target, 3))
}

pub fn clients_text(clients: u64) -> String {
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
pub fn points_text(of: &FrontierPoints) -> String {
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
    let price = of.price.map(|price| format!("at the price {}", number_text(price)));
    let budget = of.budget.map(|b| format!("within {} times SGD's oracle calls", number_text(b)));
    let least = price.or(budget).unwrap_or_default();
    joined(&[of.algorithm.label(), &joined(&[&clients, &targets, &least])])
}

/// A number of a point of a frontier.
pub fn quantity_at(
    frontier: &ComputedFrontier<'_>,
    best: &FrontierPoint,
    cost: &FrontierCost,
    quantity: FrontierQuantity,
) -> Option<f64> {
    cost.quantity(quantity, best.minimises, frontier.prices.as_ref())
}

impl<'a> Judge<'a> {
    /// The frontier of a claim.
    pub fn frontier(&self, id: &Option<String>) -> Option<&'a ComputedFrontier<'a>> {
        self.frontiers.iter().find(|f| id.as_ref().is_none_or(|id| f.id == id))
    }

    /// The points of a claim that may be used, with their costs. The others are untested.
    pub fn usable(
        frontier: &'a ComputedFrontier<'a>,
        of: &FrontierPoints,
        parts: &mut Parts,
    ) -> Vec<(&'a FrontierPoint, FrontierCost)> {
        let mut usable = Vec::new();
        let points = frontier.points(of.objective(frontier.lead), of.algorithm);
        for best in points.filter(|best| is_meant(best, of)) {
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
