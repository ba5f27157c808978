//! How pages write the quantities of some cells: second moments around θ* have another symbol than
//! those around the mean.

use crate::cells::CellResult;
use crate::cells::averages::Centre;
use exactfed_runner::manifest::{Quantity, TimeAverage};

/// How pages write a quantity of these cells, as a formula.
pub fn quantity_symbol(quantity: Quantity, cells: &[&CellResult<'_>]) -> String {
    // A quantity that is no average has one formula, whatever the centre is.
    let average = quantity.average().unwrap_or(TimeAverage::Bias);
    symbol(average, cells, quantity.formula(), quantity.formula_around_optimum())
}

/// How pages write an average over rounds of these cells, as a formula.
pub fn average_symbol(average: TimeAverage, cells: &[&CellResult<'_>]) -> String {
    symbol(average, cells, average.formula(), average.formula_around_optimum())
}

/// The points around which an average of these cells is taken, each once, the mean first.
pub fn centres<'c>(
    average: TimeAverage,
    cells: impl Iterator<Item = &'c CellResult<'c>>,
) -> Vec<Centre> {
    let mut all: Vec<Centre> = cells.filter_map(|cell| cell.runs.centre(average)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The formula `mean` of what is around the mean in these cells, `optimum` of what is around θ*, or both in words if
/// cells differ.
fn symbol(average: TimeAverage, cells: &[&CellResult<'_>], mean: &str, optimum: &str) -> String {
    match centres(average, cells.iter().copied()).as_slice() {
        _ if mean == optimum => mean.to_owned(),
        [Centre::Optimum] => optimum.to_owned(),
        [_, Centre::Optimum] => format!("{mean}, or {optimum} where no limit is known"),
        _ => mean.to_owned(),
    }
}
