//! Frontiers as tables, that of a page and `frontier.csv`.
//!
//! *Invariant*: numbers have the digits that give the same bits when they are read.

use super::number_text::short;
use super::owned::FRONTIER;
use super::truncation::{MOST_ROWS, TextTable};
use crate::evidence::frontier::columns::COLUMNS;
use crate::evidence::frontier::{ComputedFrontier, FrontierCost, FrontierPoint, Sensitivity};
use exactfed_core::words::{readable, thousands};

/// The points of all frontiers that figures show.
pub fn table(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let steps = frontiers.iter().map(ComputedFrontier::steps_name).max_by_key(|name| name.len());
    let has_settings = |f: &ComputedFrontier<'_>| f.algorithms.iter().any(|a| !a.tried.is_empty());
    let has_settings = frontiers.iter().any(has_settings);
    let mut heads = vec!["algorithm", "N", "ε", "γ", steps.unwrap_or("H")];
    heads.extend(has_settings.then_some("further settings"));
    heads.extend(["T", "communications", "gradients of a client", "draws of a client"]);
    heads.extend(["cost", "remarks"]);
    let row = |frontier: &ComputedFrontier<'_>, best: &FrontierPoint<'_>| {
        let number = |value: &dyn Fn(&FrontierCost<'_>) -> String| {
            best.cost.as_ref().map_or_else(|| "–".to_owned(), value)
        };
        let whole = |x: f64| thousands(libm::round(x) as usize);
        let mut row = vec![
            best.algorithm.label.clone(),
            thousands(best.clients as usize),
            readable(best.target, 3),
            number(&|c| short(c.run.step_size)),
            number(&|c| thousands(c.run.local_steps as usize)),
        ];
        row.extend(has_settings.then(|| number(&|cost| cost.settings())));
        row.extend([
            number(&|c| thousands(c.rounds as usize)),
            number(&|c| whole(c.communications)),
            number(&|c| whole(c.gradients)),
            number(&|c| whole(c.samples)),
            number(&|c| short(frontier.value(best.minimises, c))),
        ]);
        let words = best.flags.iter().map(|flag| flag.words().to_owned());
        let passing = best.passing.map(|value| format!("{} would come below ε once", short(value)));
        row.push(words.chain(passing).collect::<Vec<_>>().join("; "));
        row
    };
    let points = |f: &ComputedFrontier<'_>| {
        f.algorithms.iter().flat_map(|a| f.points(f.lead, a)).map(|best| row(f, best)).collect()
    };
    let mut table = of_each(frontiers, heads, points);
    let all = table.rows.len();
    table.rows.truncate(MOST_ROWS);
    if all > 0 {
        let (shown, all) = (thousands(table.rows.len()), thousands(all));
        table.note = match shown == all {
            true => {
                "These, those at other prices and within budgets, and all digits are in".to_owned()
            }
            false => format!("The first {shown} of {all} points; all are in"),
        };
        table.file = FRONTIER.to_owned();
    }
    table
}

/// What it costs to miss the best settings.
pub fn sensitivity(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let heads = vec!["algorithm", "N", "ε", "least cost", "γ/2", "2γ", "H/4", "4H"];
    let rows = |frontier: &ComputedFrontier<'_>| {
        let row = |of: &Sensitivity<'_>| {
            let has_steps = of.best.algorithm.has_local_steps;
            let times = |(column, x): (usize, Option<f64>)| match x {
                _ if column > 1 && !has_steps => "–".to_owned(),
                None => "not reached".to_owned(),
                Some(x) => format!("×{}", short(x)),
            };
            let place = [
                of.best.algorithm.label.clone(),
                thousands(of.best.clients as usize),
                readable(of.best.target, 3),
                short(of.least),
            ];
            place.into_iter().chain(of.times.into_iter().enumerate().map(times)).collect()
        };
        frontier.sensitivity.iter().map(row).collect()
    };
    of_each(frontiers, heads, rows)
}

/// A table of rows of each frontier, with the frontier's name where there are several.
fn of_each(
    frontiers: &[ComputedFrontier<'_>],
    mut heads: Vec<&str>,
    rows: impl Fn(&ComputedFrontier<'_>) -> Vec<Vec<String>>,
) -> TextTable {
    let is_named = frontiers.len() > 1;
    if is_named {
        heads.insert(0, "frontier");
    }
    let named = |frontier: &ComputedFrontier<'_>| {
        let name = is_named.then(|| frontier.frontier.id.clone());
        let with_name = move |row: Vec<String>| name.clone().into_iter().chain(row).collect();
        rows(frontier).into_iter().map(with_name).collect::<Vec<Vec<String>>>()
    };
    TextTable::new(&heads, frontiers.iter().flat_map(named))
}

/// Every point of all frontiers, one line each.
pub fn csv(frontiers: &[ComputedFrontier<'_>]) -> String {
    let mut out = COLUMNS.map(|(name, _)| name).join(",") + "\n";
    for frontier in frontiers {
        for point in &frontier.best {
            out += &(COLUMNS.map(|(_, read)| read(frontier, point).to_string()).join(",") + "\n");
        }
    }
    out
}
