//! The final errors of the cells.

use crate::evidence::table::{FinalsColumns, best};
use crate::evidence::{CellResult, Experiment};
use crate::report::number_text::{bracket, short};
use crate::report::setting_cells::setting_cell;
use crate::report::text_table::{MOST_ROWS, TextCell, TextTable};
use crate::stats::mean;
use exactfed_core::words::thousands;
use exactfed_runner::manifest::Quantity;

/// The table of the errors at the last round, one row for each cell with results. If there are more than [`MOST_ROWS`]
/// such cells, it has those with the best means, in the order of the cells, and a note on the others, which are all in
/// `summary.csv`.
pub fn table(experiment: &Experiment<'_>) -> TextTable {
    let columns = FinalsColumns::new(experiment);
    let cells = &experiment.cells;
    let shown = best(cells, columns.first, MOST_ROWS);
    let mut table =
        TextTable::new(&heads(&columns), shown.into_iter().map(|cell| row(cell, &columns)));
    if table.rows.len() < cells.len() {
        let diverged = match cells.iter().filter(|c| c.runs.diverged > 0).count() {
            0 => String::new(),
            count => format!(" (runs of {} diverged)", thousands(count)),
        };
        let shown = thousands(table.rows.len());
        let all = thousands(cells.len());
        table.note = format!(
            "The {shown} of {all} cells{diverged} with the {} mean; all are in",
            columns.first.best_mean()
        );
        table.file = "summary.csv".into();
    }
    table
}

/// The heads of the table, in the order in which [`row`] writes cells.
fn heads(columns: &FinalsColumns) -> Vec<String> {
    let mut heads = vec!["algorithm".to_owned()];
    heads.extend(columns.settings.iter().cloned());
    heads.extend([mean_head(columns.first), "sd".into(), "95 % interval".into()]);
    if columns.has_limit {
        heads.push(mean_head(Quantity::SqErrorLimit));
    }
    if columns.has_bias {
        heads.push("exact bias, squared".into());
    }
    heads.extend(columns.further.iter().map(|quantity| mean_head(*quantity)));
    if let Some((_, quantity)) = columns.at_target {
        heads.push(format!("{} at the target, median", quantity.formula()));
    }
    heads.extend(["runs".into(), "cell".into()]);
    heads
}

/// The head of a column of means of a quantity.
fn mean_head(quantity: Quantity) -> String {
    format!("{}, mean", quantity.formula())
}

/// The row of a cell, whose last column is the id, which tables for LaTeX leave out. A cell of which a run diverged has
/// no mean; its number of runs says how many diverged.
fn row(result: &CellResult<'_>, columns: &FinalsColumns) -> Vec<TextCell> {
    let cell = result.cell;
    let runs = &result.runs;
    let mut cells: Vec<TextCell> = vec![cell.label.as_str().into()];
    cells.extend(columns.settings_of(cell).into_iter().map(setting_cell));
    match result.summary(columns.first) {
        Some(summary) => {
            // Runs that differ by rounding alone have no deviation.
            let is_rounding = summary.sd <= 1e-13 * summary.mean.abs();
            cells.push(TextCell::short(summary.mean));
            cells.push(TextCell::short(if is_rounding { 0.0 } else { summary.sd }));
            cells.push(match bracket(short, summary.mean, summary.interval) {
                // An interval is ordered by its lower end.
                Some(text) => TextCell::stating(summary.interval.0, text),
                None => TextCell::dash(),
            });
        }
        None if runs.diverged > 0 => {
            cells.extend(["diverged".into(), TextCell::dash(), TextCell::dash()]);
        }
        None => cells.extend([TextCell::dash(), TextCell::dash(), TextCell::dash()]),
    }
    if columns.has_limit {
        cells.push(mean_cell(result, Quantity::SqErrorLimit));
    }
    if columns.has_bias {
        cells.push(result.exact_bias.map_or_else(TextCell::dash, TextCell::short));
    }
    cells.extend(columns.further.iter().map(|quantity| mean_cell(result, *quantity)));
    if columns.at_target.is_some() {
        cells.push(median_cell(result, columns));
    }
    let diverged = match runs.diverged {
        0 => String::new(),
        diverged => format!(", {diverged} diverged"),
    };
    cells.push(TextCell::stating(runs.count as f64, format!("{}{diverged}", runs.count)));
    cells.push(cell.id.as_str().into());
    cells
}

/// The median over the runs of a cell at the target at which runs are compared, with its interval and, where some do
/// not reach the target, how many do. A dash if nothing is known of the cell there.
fn median_cell(result: &CellResult<'_>, columns: &FinalsColumns) -> TextCell {
    let Some((reached, found)) = columns.at_target(result) else { return TextCell::dash() };
    let (low, high) = found.interval;
    let limits =
        if low.is_nan() { String::new() } else { format!(" [{}, {}]", short(low), short(high)) };
    let count = match reached {
        all if all == result.runs.count => String::new(),
        some => format!(", {some} reach it"),
    };
    TextCell::stating(found.median, format!("{}{limits}{count}", short(found.median)))
}

/// The mean of a quantity at the last round; a dash if the cell does not have it, or a run diverged.
fn mean_cell(result: &CellResult<'_>, quantity: Quantity) -> TextCell {
    let sample = result.runs.finals(quantity);
    sample.map_or_else(TextCell::dash, |sample| TextCell::short(mean(&sample)))
}
