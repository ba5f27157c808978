//! The cells without results.

use super::experiment::planned_cells;
use crate::evidence::{Experiment, Missing, details};
use crate::report::text_table::{TextCell, TextTable};
use exactfed_core::words::thousands;

/// The most cells without results that a page names.
const MOST_MISSING: usize = 100;

/// The table of the cells without results, with their settings and the reason: at most [`MOST_MISSING`], those that
/// failed first. It has no rows if no cell has results and none failed, since then nothing was run yet and the page
/// says so.
pub fn table(experiment: &Experiment<'_>) -> TextTable {
    let missing = &experiment.missing;
    let is_untouched = missing.len() == planned_cells(experiment.plan);
    if is_untouched && missing.iter().all(|m| m.failed.is_none()) {
        return TextTable::default();
    }
    // Failed cells first, because their reasons are of interest.
    let mut order: Vec<&Missing<'_>> = missing.iter().collect();
    order.sort_by_key(|missing| missing.failed.is_none());
    let heads = ["algorithm", "settings", "why", "cell"];
    let mut table = TextTable::new(&heads, order.into_iter().take(MOST_MISSING).map(missing_row));
    if missing.len() > MOST_MISSING {
        let shown = thousands(MOST_MISSING);
        let all = thousands(missing.len());
        table.note = format!("{shown} of {all}; `exactfed plan` lists all.");
    }
    table
}

/// The row of a cell without results.
fn missing_row(missing: &Missing<'_>) -> Vec<TextCell> {
    let cell = missing.cell;
    vec![
        cell.label.as_str().into(),
        details(cell, &[]).into(),
        missing.failed.as_deref().unwrap_or("not run yet").into(),
        cell.id.as_str().into(),
    ]
}
