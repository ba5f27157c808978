//! A portion of an export: the rows of some cells, which are read from several packs and put in the order of the cells,
//! with columns of what is known of each cell.

use super::axes::{Leaves, SettingColumn};
use super::parquet::{self, column};
use exactfed_evidence::results::Provenance;
use polars::prelude::*;

/// The cells of a portion that one pack holds.
pub struct PackPart {
    /// The cells in the order of their rows in `frame`.
    pub cells: Vec<PortionCell>,
    /// The rows of all these cells, one cell after another.
    pub frame: DataFrame,
}

/// A cell in a portion.
pub struct PortionCell {
    /// Its place among the cells of the portion, which is the place of its rows among those that are exported.
    pub place: usize,
    /// Its number of rows.
    pub rows: usize,
    pub facts: CellFactsRow,
}

/// What all rows of an exported cell share.
pub struct CellFactsRow {
    pub label: String,
    pub seed: u64,
    /// The settings whose hash is the id of the cell, as JSON.
    pub settings: String,
    pub digest: String,
    pub provenance: Provenance,
    /// Whether the cell belongs to the last run of the experiment.
    pub last_run: bool,
    /// The settings that have columns of their own.
    pub axes: Leaves,
}

/// The rows of a portion in the order of its cells ([`PortionCell::place`]), with the columns of `schema`: columns of
/// packs, columns of facts, and the columns of `axes`. Each cell is in one of the `parts`; a cell that could not be
/// read is in none.
///
/// # Errors
/// If a column of the packs is not of the type that `schema` gives it.
pub fn join_parts(
    parts: Vec<PackPart>,
    axes: &[SettingColumn],
    schema: Schema,
) -> PolarsResult<DataFrame> {
    let mut stored = None;
    let mut cells = Vec::new();
    let mut next_row = 0;
    for part in parts {
        for cell in part.cells {
            let range = next_row..next_row + cell.rows;
            next_row = range.end;
            cells.push((range, cell));
        }
        parquet::append_rows(&mut stored, part.frame)?;
    }
    cells.sort_by_key(|(_, cell)| cell.place);
    // For each exported row: the number of the row in `stored`, and the number of its cell in `facts`.
    let mut stored_rows: Vec<IdxSize> = Vec::new();
    let mut owners: Vec<IdxSize> = Vec::new();
    let mut facts: Vec<CellFactsRow> = Vec::new();
    for (range, cell) in cells {
        owners.extend(std::iter::repeat_n(facts.len() as IdxSize, range.len()));
        stored_rows.extend(range.map(|row| row as IdxSize));
        facts.push(cell.facts);
    }
    let mut unsorted = stored.unwrap_or_default();
    unsorted.rechunk_mut();
    let sorted = take_rows(&unsorted, stored_rows)?;
    let mut columns_by_cell = facts_columns(&facts);
    for axis in axes {
        columns_by_cell.push(axis.column(facts.iter().map(|cell| &cell.axes))?);
    }
    let own = take_rows(&DataFrame::new(facts.len(), columns_by_cell)?, owners)?;
    let mut columns = Vec::new();
    for (name, kind) in schema {
        // Packs have a label too, but the one from the last run counts.
        let column = own.column(&name).or_else(|_| sorted.column(&name))?;
        let found = column.dtype();
        if *found != kind {
            polars_bail!(
                ComputeError: "the column `{name}` is of type {found}, not {kind}"
            );
        }
        columns.push(column.clone());
    }
    DataFrame::new(sorted.height(), columns)
}

/// The columns of facts but the axes, with one row per cell; without cells, empty columns of the same types.
fn facts_columns(cells: &[CellFactsRow]) -> Vec<Column> {
    vec![
        column("label", cells, |cell| cell.label.as_str()),
        column("seed", cells, |cell| cell.seed),
        column("settings", cells, |cell| cell.settings.as_str()),
        column("digest", cells, |cell| cell.digest.as_str()),
        column("version", cells, |cell| cell.provenance.version.as_str()),
        column("commit", cells, |cell| cell.provenance.commit.as_str()),
        column("dirty", cells, |cell| cell.provenance.dirty),
        column("last_run", cells, |cell| cell.last_run),
    ]
}

/// The names and types of the columns of facts: the label, which follows the last run, and the columns
/// that packs do not have.
pub fn facts_schema() -> Schema {
    parquet::schema_of(&facts_columns(&[]))
}

/// The rows of a frame with these numbers, in this order, column by column: [`DataFrame::take`] waits for threads of
/// polars, which a forked process does not have.
pub fn take_rows(frame: &DataFrame, rows: Vec<IdxSize>) -> PolarsResult<DataFrame> {
    let rows = IdxCa::from_vec("".into(), rows);
    let mut columns = Vec::new();
    for column in frame.columns() {
        columns.push(column.take(&rows)?);
    }
    DataFrame::new(rows.len(), columns)
}
