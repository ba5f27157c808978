//! The published bounds of an experiment's cells.

use crate::evidence::bound_rows::BoundRow;
use crate::evidence::cell_name;
use crate::report::number_text::counted;
use crate::report::text_table::{TableFiles, TextCell, TextTable};

/// The table of published bounds: for each cell and bound the value of the bound at the last round, what was measured
/// in its place, and the conditions of the bound that the cell does not meet, in which case the bound has no value.
/// If there are more rows than a page shows, `files` gets `bounds.csv` with all of them.
pub fn table(rows: &[BoundRow<'_>], files: &mut TableFiles<'_>) -> TextTable {
    let heads = ["cell", "bound", "at the last round", "measured", "conditions that fail"];
    TextTable::first_rows(&heads, rows.iter().map(bound_row), "bounds", files)
}

/// The row of a cell and a bound. What was measured is the mean at the last round of the quantity that the bound is of,
/// a dash if it is not recorded or a run diverged.
fn bound_row(BoundRow { cell, bound, measured }: &BoundRow<'_>) -> Vec<TextCell> {
    let proved = if bound.info.proved { "" } else { " (not a proved bound)" };
    let unmet = bound.value.as_ref().err().into_iter().flatten().map(|unmet| {
        // A condition that either holds or does not has no numbers: it is stored as 0 where 1 is needed.
        if (unmet.have, unmet.need) == (0.0, 1.0) {
            return unmet.condition.clone();
        }
        format!("{} ({} against {})", unmet.condition, counted(unmet.have), counted(unmet.need))
    });
    vec![
        cell_name(cell).into(),
        format!("{}{proved}", bound.info.name).into(),
        bound.value.as_ref().map_or_else(|_| TextCell::dash(), |value| TextCell::short(*value)),
        measured.map_or_else(TextCell::dash, TextCell::short),
        unmet.collect::<Vec<_>>().join("; ").into(),
    ]
}
