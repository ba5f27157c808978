//! Frontiers as tables: that of a page, and `frontier.csv`.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read.

use super::number_text::short;
use super::owned::FRONTIER;
use super::truncation::{MOST_ROWS, TextTable};
use crate::analysis::frontier::{
    ComputedFrontier, FrontierCost, FrontierFlag, FrontierPoint, label,
};
use driftbench_core::words::{readable, thousands};
use std::fmt::Write;

/// The points of all frontiers that figures show.
pub fn table(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let (several, priced) = (frontiers.len() > 1, frontiers.iter().any(|f| f.prices.is_some()));
    let mut heads = if several { vec!["frontier"] } else { Vec::new() };
    heads.extend(["algorithm", "N", "ε", "γ", "H", "T", "communications"]);
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
                label(best.algorithm).to_owned(),
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
                algorithm.method().name(),
                numbers.join(","),
                minimises.name(),
                frontier.id
            );
        }
    }
    out
}
