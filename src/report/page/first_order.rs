//! Where the first order of the bias holds.

use crate::evidence::cell_name;
use crate::evidence::first_order::FirstOrderRow;
use crate::report::text_table::{TableFiles, TextCell, TextTable};

/// The table of how far the measured bias of each cell is from each prediction, in percent of what is predicted. The
/// rows come in the order of γ(H − 1)Nλ (λ is the largest diagonal entry of A), with which the terms that the first
/// order leaves out grow. If there are more rows than a page shows, `files` gets `orders.csv` with all of them.
pub fn table(rows: &[FirstOrderRow<'_>], files: &mut TableFiles<'_>) -> TextTable {
    let heads =
        ["cell", "γ(H − 1)Nλ", "‖E θ − θ*‖", "first order", "and the term after it", "closure"];
    TextTable::first_rows(&heads, rows.iter().map(first_order_row), "orders", files)
}

/// The row of a cell: its bias, and how far it is from the first order, from the first order and the term after it, and
/// from the closure; a dash where a prediction is nothing but rounding.
fn first_order_row(row: &FirstOrderRow<'_>) -> Vec<TextCell> {
    let mut cells =
        vec![cell_name(row.cell).into(), TextCell::short(row.reach), TextCell::short(row.bias)];
    cells.extend(row.apart.iter().map(|apart| match apart {
        Some(apart) => TextCell::stating(*apart, format!("{:.1} %", 100.0 * apart)),
        None => TextCell::dash(),
    }));
    cells
}
