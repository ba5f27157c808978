//! The published bounds for the cells of an experiment that names them: their value at the last
//! round, or the conditions that fail.

use crate::cells::CellResult;
use crate::needs::{self, Needs};
use crate::predictions::{Theory, quantity_of};
use crate::stats::mean;
use exactfed_core::theory::bounds::Bound;
use exactfed_runner::plan::{Cell, Plan};

/// A published bound for a cell, with what was measured.
#[derive(Clone, Debug)]
pub struct BoundRow<'a> {
    /// The cell for which the bound is stated.
    pub cell: &'a Cell,
    /// The bound at the last round: its value, or the conditions that fail.
    pub bound: Bound,
    /// The mean at the last round of the quantity that the bound is of; `None` if it is not recorded or a run diverged.
    pub measured: Option<f64>,
}

/// The bounds that are about each of these cells, for the table of a page, also those whose conditions fail; none
/// unless a figure draws bounds or a claim is tested on one. A cell has no row if it has several instances, if the
/// constants of its instance are not known, or if no published bound is about its algorithm.
pub fn rows<'a>(plan: &Plan, cells: &[CellResult<'a>], theory: &Theory<'_>) -> Vec<BoundRow<'a>> {
    if !needs::shows_bounds(plan) {
        return Vec::new();
    }
    let needs = Needs::of_claims(plan);
    let mut rows = Vec::new();
    for result in cells {
        let cell = result.cell;
        let mut bounds = theory.listed_bounds(&cell.id, cell.identity.rounds);
        // Bounds that tables do not list are shown if a claim on the cell is tested on them.
        for by in needs.claimed_predictions(cell).filter(|by| by.is_bound()) {
            let found = theory.bound(&cell.id, by, cell.identity.rounds);
            bounds
                .extend(found.filter(|found| bounds.iter().all(|b| b.info.key != found.info.key)));
        }
        for bound in bounds {
            let measured = result.runs.finals(quantity_of(&bound));
            rows.push(BoundRow { cell, measured: measured.map(|sample| mean(&sample)), bound });
        }
    }
    rows
}
