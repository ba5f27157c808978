//! The frontiers of a page.

use crate::evidence::frontier::{ComputedFrontier, FrontierCost, FrontierPoint, Sensitivity};
use crate::report::number_text::short;
use crate::report::owned::FRONTIER;
use crate::report::text_table::{MOST_ROWS, TextCell, TextTable};
use exactfed_core::words::{readable, thousands};
use serde::Serialize;

/// The tables on the frontiers of a page.
#[derive(Serialize)]
pub struct FrontierSection {
    /// The least cost at each point, and where it is reached.
    pub points: TextTable,
    /// How many times as much it costs to miss the best step size or the best number of local steps.
    pub sensitivity: TextTable,
}

impl FrontierSection {
    /// The section on these frontiers.
    pub fn new(frontiers: &[ComputedFrontier<'_>]) -> Self {
        Self { points: points(frontiers), sensitivity: sensitivity(frontiers) }
    }
}

/// The table of the points of all frontiers at their lead objectives, which figures show: the least cost of an
/// algorithm with N clients to the target ε, and the settings with this cost. At most [`MOST_ROWS`] of them; the file
/// has all.
fn points(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let steps = frontiers.iter().map(ComputedFrontier::steps_name).max_by_key(|name| name.len());
    let has_settings = frontiers
        .iter()
        .flat_map(|frontier| frontier.algorithms)
        .any(|algorithm| !algorithm.tried.is_empty());
    let mut heads = vec!["algorithm", "N", "ε", "γ", steps.unwrap_or("H")];
    heads.extend(has_settings.then_some("further settings"));
    heads.extend(["T", "communications", "gradients of a client", "draws of a client"]);
    heads.extend(["cost", "remarks"]);
    let mut table = table_of_each(frontiers, heads, |frontier| {
        let points = frontier.algorithms.iter().flat_map(|one| frontier.points(frontier.lead, one));
        points.map(|best| point_row(frontier, best, has_settings)).collect()
    });
    let all = table.rows.len();
    table.rows.truncate(MOST_ROWS);
    if all > 0 {
        table.note = if all > MOST_ROWS {
            format!("The first {} of {} points; all are in", thousands(MOST_ROWS), thousands(all))
        } else {
            "These, those at other prices and within budgets, and all digits are in".to_owned()
        };
        table.file = FRONTIER.to_owned();
    }
    table
}

/// The row of a point, with a cell for further settings if `has_settings`, because some algorithm of a frontier has
/// any. A target that is not reached has dashes in place of a cost.
fn point_row(
    frontier: &ComputedFrontier<'_>,
    best: &FrontierPoint<'_>,
    has_settings: bool,
) -> Vec<TextCell> {
    // A target that no setting reaches has no cost.
    let of_cost = |cell: &dyn Fn(&FrontierCost<'_>) -> TextCell| {
        best.cost.as_ref().map_or_else(TextCell::dash, cell)
    };
    let mut row = vec![
        best.algorithm.label.as_str().into(),
        TextCell::count(best.clients as usize),
        TextCell::stating(best.target, readable(best.target, 3)),
        of_cost(&|cost| TextCell::short(cost.run.step_size)),
        of_cost(&|cost| TextCell::count(cost.run.local_steps as usize)),
    ];
    if has_settings {
        row.push(of_cost(&|cost| cost.settings().into()));
    }
    row.extend([
        of_cost(&|cost| TextCell::count(cost.rounds as usize)),
        of_cost(&|cost| rounded_count(cost.communications)),
        of_cost(&|cost| rounded_count(cost.gradients)),
        of_cost(&|cost| rounded_count(cost.samples)),
        of_cost(&|cost| TextCell::short(frontier.value(best.minimises, cost))),
    ]);
    let mut remarks: Vec<String> = best.flags.iter().map(|flag| flag.words().to_owned()).collect();
    remarks.extend(best.passing.map(|value| format!("{} would come below ε once", short(value))));
    row.push(remarks.join("; ").into());
    row
}

/// A count, which may be an expected one, rounded to a whole number.
fn rounded_count(count: f64) -> TextCell {
    TextCell::count(libm::round(count) as usize)
}

/// The table of what it costs to miss the best settings: how many times the least cost the cost is at half and twice
/// the best step size, and at a quarter and four times the best number of local steps. Algorithms whose code is not at
/// hand have no rows.
fn sensitivity(frontiers: &[ComputedFrontier<'_>]) -> TextTable {
    let heads = vec!["algorithm", "N", "ε", "least cost", "γ/2", "2γ", "H/4", "4H"];
    table_of_each(frontiers, heads, |frontier| {
        frontier.sensitivity.iter().map(sensitivity_row).collect()
    })
}

/// The row of an algorithm at a point. An algorithm without local steps has dashes in the columns of their number, the
/// last two.
fn sensitivity_row(found: &Sensitivity<'_>) -> Vec<TextCell> {
    let best = &found.best;
    let mut row = vec![
        best.algorithm.label.as_str().into(),
        TextCell::count(best.clients as usize),
        TextCell::stating(best.target, readable(best.target, 3)),
        TextCell::short(found.least),
    ];
    for (column, times) in found.times.into_iter().enumerate() {
        let is_of_local_steps = column > 1;
        row.push(match times {
            _ if is_of_local_steps && !best.algorithm.has_local_steps => TextCell::dash(),
            None => "not reached".into(),
            Some(times) => TextCell::stating(times, format!("×{}", short(times))),
        });
    }
    row
}

/// A table of the rows that `rows` makes of each frontier. If there are several frontiers, a first column names them.
fn table_of_each(
    frontiers: &[ComputedFrontier<'_>],
    mut heads: Vec<&str>,
    rows: impl Fn(&ComputedFrontier<'_>) -> Vec<Vec<TextCell>>,
) -> TextTable {
    let is_named = frontiers.len() > 1;
    if is_named {
        heads.insert(0, "frontier");
    }
    let mut all = Vec::new();
    for frontier in frontiers {
        for mut row in rows(frontier) {
            if is_named {
                row.insert(0, frontier.frontier.id.as_str().into());
            }
            all.push(row);
        }
    }
    TextTable::new(&heads, all.into_iter())
}
