//! The lines of a file with published numbers: which number is of which cells, and at which round.

use exactfed_core::problem::arrays::{Contents, no_column, sanitised};
use exactfed_core::problem::column::{Column, is_mark};
use exactfed_runner::manifest::claim::{Scalar, Selection};
use exactfed_runner::plan::{Checker, selected};
use std::collections::BTreeMap;

/// The column that has the recorded round of each number.
const ROUND: &str = "round";

/// A published number.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedNumber {
    /// Where the file has it, as an editor counts lines from 1; the first line has the names of the columns.
    pub line: usize,
    /// The number, which is above 0.
    pub value: f64,
    /// The cells that it is of.
    pub cells: Selection,
    /// The round that it is of; `None` for the last one.
    pub round: Option<u64>,
}

/// The published numbers of a CSV file, those in its column `column`, line by line.
///
/// # Errors
/// What is wrong with the file: it is no table, lacks the column or has no line, or a value is not as it must be.
pub fn published_rows(
    contents: &Contents,
    file: &str,
    column: &str,
) -> Result<Vec<PublishedNumber>, String> {
    let Contents::Table(columns) = contents else {
        return Err(format!("{file} is no table: write a CSV file with a line for each number"));
    };
    let Some((_, values)) = columns.iter().find(|(name, _)| name == column) else {
        return Err(no_column(column, &format!(" in {file}"), columns));
    };
    let Column::Numbers(values) = values else {
        return Err(format!("the column `{}` of {file} has no numbers", sanitised(column)));
    };
    let mut rows = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let line = i + 2;
        if !(value.is_finite() && *value > 0.0) {
            return Err(format!(
                "`{}` is {value} in line {line} of {file}: published numbers must be above 0",
                sanitised(column)
            ));
        }
        let mut cells = BTreeMap::new();
        let mut round = None;
        for (name, values) in columns.iter().filter(|(name, _)| name != column) {
            let Some(scalar) = scalar_at(values, i) else { continue };
            if name == ROUND {
                round = Some(whole_number(&scalar).ok_or_else(|| {
                    format!("`{ROUND}` is {scalar} in line {line} of {file}: write a whole number")
                })?);
            } else {
                cells.insert(name.clone(), scalar);
            }
        }
        rows.push(PublishedNumber { line, value: *value, cells: Selection(cells), round });
    }
    if rows.is_empty() { Err(format!("{file} has no line with a number")) } else { Ok(rows) }
}

/// The value of a column in a row as manifests have it: a number, or a text; `None` where the row leaves it empty, or
/// the column is not read.
fn scalar_at(column: &Column, row: usize) -> Option<Scalar> {
    match column {
        Column::Numbers(numbers) if numbers[row].is_nan() => None,
        Column::Numbers(numbers) => Some(Scalar::Number(numbers[row])),
        Column::LongNumbers(texts) | Column::Text(texts) => {
            let text = &texts[row];
            (!is_mark(text)).then(|| Scalar::Text(text.clone()))
        }
        Column::Unread { .. } => None,
    }
}

/// A number as a count; `None` for a text, and for a number that is negative or not whole.
fn whole_number(scalar: &Scalar) -> Option<u64> {
    match scalar {
        Scalar::Number(x) if *x >= 0.0 && x.fract() == 0.0 && *x < 1e15 => Some(*x as u64),
        _ => None,
    }
}

/// What is wrong with a row: it selects no cell of the manifest, or is of a round that is not recorded of a cell that
/// the claim is made for, which are those of `of`. `None` if nothing is wrong, as with a row that selects other cells:
/// several claims may share a file.
pub fn check_row(row: &PublishedNumber, of: &Selection, table: &Checker<'_>) -> Option<String> {
    let line = row.line;
    if !table.cells.iter().any(|cell| selected(cell, &row.cells)) {
        let settings: Vec<String> = row
            .cells
            .0
            .iter()
            .map(|(name, value)| format!("{} = {}", sanitised(name), sanitised(&value.to_string())))
            .collect();
        let settings = settings.join(", ");
        let allowed = table.allowed_in_place_of(&row.cells);
        return Some(format!(
            "line {line} selects no cell: no cell has {settings} (there are {allowed})"
        ));
    }
    let round = row.round?;
    let record = &table.manifest.record;
    let is_recorded = |rounds: u64| record.rounds(rounds).binary_search(&round).is_ok();
    let mut claimed =
        table.cells.iter().filter(|cell| selected(cell, of) && selected(cell, &row.cells));
    let unrecorded = claimed.find(|cell| !is_recorded(cell.identity.rounds))?;
    Some(format!(
        "line {line} is of round {round}, which is not recorded of `{}`: change [record], or leave the line out",
        unrecorded.label
    ))
}
