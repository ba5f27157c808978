//! The cells of a plan as a table, which Python shows before, while and after they are run.

use super::axes::{Leaves, SettingColumn, SettingValues, planned_leaves};
use super::folder::Store;
use super::parquet::column;
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::cost::operations;
use exactfed_runner::runner::memory;
use polars::prelude::*;

/// The column of a table of cells that says how much work each cell is.
pub enum WorkColumn {
    /// The operations, which every machine counts the same.
    Operations,
    /// The seconds that each cell of the plan is estimated to take on this machine, in the order of the cells; `None`
    /// where no estimate was made.
    Seconds(Vec<Option<f64>>),
}

/// The cells of a plan, one row each in the order of the plan: the state of its results in `store`, the work on it, the
/// bytes of memory that it needs on one thread, and every setting in which the cells differ. All results of the plan
/// are read and checked for the states.
///
/// # Errors
/// If the columns cannot be put together.
pub fn cells_frame(plan: &Plan, store: &Store, work: WorkColumn) -> PolarsResult<DataFrame> {
    let mut all: Vec<Leaves> = Vec::new();
    let mut values = SettingValues::default();
    for cell in &plan.cells {
        let mut leaves = planned_leaves(cell, &cell.identity.canonical());
        // This number has the column `rounds`, whether or not cells differ in it.
        leaves.remove("rounds");
        values.add(leaves.clone());
        all.push(leaves);
    }
    let cells = &plan.cells;
    let mut columns = vec![
        column("cell", cells, |cell| cell.id.as_str()),
        column("problem", cells, |cell| cell.identity.problem.kind()),
        column("algorithm", cells, |cell| cell.identity.algorithm.kind()),
        column("label", cells, |cell| cell.label.as_str()),
        column("state", cells, |cell| store.status(&plan.experiment, &cell.id).name()),
        column("rounds", cells, |cell| cell.identity.rounds),
        column("runs", cells, |cell| cell.identity.runs()),
        match work {
            WorkColumn::Operations => {
                column("operations", cells, |cell| operations(&cell.identity))
            }
            WorkColumn::Seconds(seconds) => column("seconds", seconds, |seconds| seconds),
        },
        column("memory", cells, memory::of_cell),
    ];
    let taken: Vec<&str> = columns.iter().map(|column| column.name().as_str()).collect();
    for axis in SettingColumn::all(&[values], &taken) {
        columns.push(axis.column(all.iter())?);
    }
    DataFrame::new(cells.len(), columns)
}
