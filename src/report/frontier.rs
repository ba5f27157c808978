//! Frontiers as tables, that of a page and `frontier.csv`, and in the texts of a manifest.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read.

use super::number_text::short;
use super::owned::FRONTIER;
use super::truncation::{MOST_ROWS, TextTable};
use crate::evidence::frontier::{ComputedFrontier, FrontierCost, FrontierFlag, FrontierPoint};
use exactfed_core::words::{number, readable, thousands};
use exactfed_runner::manifest::Prices;
use exactfed_runner::manifest::frontier::{Frontier, FrontierQuantity};
use std::fmt::Write;

/// The points of all frontiers that figures show.
pub fn table(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let (several, priced) = (frontiers.len() > 1, frontiers.iter().any(|f| f.prices.is_some()));
    let mut heads = if several { vec!["frontier"] } else { Vec::new() };
    let steps = frontiers.iter().map(ComputedFrontier::steps_name).max_by_key(|name| name.len());
    heads.extend(["algorithm", "N", "ε", "γ", steps.unwrap_or("H"), "T", "communications"]);
    heads.push("oracle calls of a client");
    heads.extend(priced.then_some("seconds"));
    heads.push("remarks");
    let mut rows = Vec::new();
    for frontier in frontiers {
        for best in frontier.algorithms.iter().flat_map(|a| frontier.points(*a)) {
            let number = |value: &dyn Fn(&FrontierCost) -> String| {
                best.cost.as_ref().map_or_else(|| "–".to_owned(), value)
            };
            let whole = |x: f64| thousands(libm::round(x) as usize);
            let mut row: Vec<String> =
                several.then(|| frontier.id.to_owned()).into_iter().collect();
            row.extend([
                best.algorithm.label().to_owned(),
                thousands(best.clients as usize),
                readable(best.target, 3),
                number(&|c| short(c.step_size)),
                number(&|c| thousands(c.local_steps as usize)),
                number(&|c| thousands(c.rounds as usize)),
                number(&|c| whole(c.communications)),
                number(&|c| whole(c.gradients)),
            ]);
            let seconds = |c: &FrontierCost| {
                frontier.prices.map_or_else(|| "–".to_owned(), |p| short(c.seconds(&p)))
            };
            row.extend(priced.then(|| number(&seconds)));
            let words: Vec<&str> = best.flags.iter().map(|flag| flag.words()).collect();
            row.push(words.join("; "));
            rows.push(row);
        }
    }
    let all = rows.len();
    let mut table = TextTable::new(&heads, rows.into_iter().take(MOST_ROWS));
    if all > 0 {
        let (shown, all) = (thousands(table.rows.len()), thousands(all));
        table.note = match shown == all {
            true => "These, those with the fewest oracle calls and all digits are in".to_owned(),
            false => format!("The first {shown} of {all} points; all are in"),
        };
        table.file = FRONTIER.to_owned();
    }
    table
}

/// Every point of all frontiers, one line each.
pub fn csv(frontiers: &[ComputedFrontier<'_>]) -> String {
    let mut out = String::from(
        "algorithm,clients,target,step_size,local_steps,rounds,communications,gradients,bytes,flag,seconds,minimises,frontier\n",
    );
    for frontier in frontiers {
        for best in &frontier.best {
            let FrontierPoint { minimises, algorithm, clients, target, cost, flags } = best;
            let flags: Vec<&str> = flags.iter().copied().map(FrontierFlag::name).collect();
            let flags = flags.join(" ");
            let number = |value: &dyn Fn(&FrontierCost) -> String| {
                cost.as_ref().map(value).unwrap_or_default()
            };
            let numbers = [
                number(&|c| format!("{:?}", c.step_size)),
                number(&|c| c.local_steps.to_string()),
                number(&|c| c.rounds.to_string()),
                number(&|c| c.communications.to_string()),
                number(&|c| c.gradients.to_string()),
                number(&|c| c.bytes.to_string()),
                flags,
                number(&|c| {
                    frontier.prices.map_or(String::new(), |p| format!("{:?}", c.seconds(&p)))
                }),
            ];
            let _ = writeln!(
                out,
                "{},{clients},{target:?},{},{},{}",
                algorithm.name(),
                numbers.join(","),
                minimises.name(),
                frontier.id
            );
        }
    }
    out
}

/// What a text may name of a frontier: an algorithm at N and ε.
pub struct FrontierFacts {
    algorithm: &'static str,
    /// N; `None` where it is that of the problem, before the problem is built.
    clients: Option<u64>,
    target: f64,
    /// The least cost, and the prices of its seconds; `None` before it is computed, and where the
    /// target is not reached.
    cost: Option<(FrontierCost, Option<Prices>)>,
}

impl FrontierFacts {
    /// The points of a frontier that is not computed yet.
    pub fn planned(frontier: &Frontier) -> Vec<Self> {
        let clients = match frontier.clients.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let mut all = Vec::new();
        for algorithm in frontier.algorithms.iter().map(|a| a.name()) {
            for clients in &clients {
                let at = |target| Self { algorithm, clients: *clients, target, cost: None };
                all.extend(frontier.all_targets().into_iter().map(at));
            }
        }
        all
    }

    /// The points of a frontier that figures show.
    pub fn computed(frontier: &ComputedFrontier<'_>) -> Vec<Self> {
        let fact = |best: &FrontierPoint| Self {
            algorithm: best.algorithm.name(),
            clients: Some(best.clients),
            target: best.target,
            cost: best.cost.map(|cost| (cost, frontier.prices)),
        };
        frontier.algorithms.iter().flat_map(|a| frontier.points(*a)).map(fact).collect()
    }

    /// Whether it is the point that a text names, whose target may have fewer digits.
    pub fn is_at(&self, algorithm: &str, clients: Option<u64>, target: f64) -> bool {
        self.algorithm == algorithm
            && clients.is_none_or(|n| self.clients.is_none_or(|own| own == n))
            && (self.target / target - 1.0).abs() < 0.01
    }

    /// A quantity as text; `None` where it is not known.
    pub fn text(&self, quantity: FrontierQuantity) -> Option<String> {
        let (cost, prices) = self.cost.as_ref()?;
        Some(number(cost.quantity(quantity, prices.as_ref())?, 3))
    }
}
