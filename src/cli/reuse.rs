//! Runs that results have already, in cells with fewer replicates or instances: a run is a function of its
//! cell and its number alone, so that the first runs of a cell are those of a cell with fewer.
//!
//! *Invariant*: the traces of a cell that is completed this way are those of its runs from the
//! start (`tests/suite/looks.rs` and `tests/suite/tune.rs` compare the digests).

use crate::store::{Results, Store};
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::{Done, Prepared};
use std::collections::HashMap;
use std::time::Duration;

/// Where the first runs of cells are stored.
#[derive(Default)]
pub struct EarlierRuns {
    /// The numbers of replicates of earlier cells, by experiment; each has one instance, or one per
    /// replicate.
    pub replicates: HashMap<String, u64>,
    /// Whether all runs are to be run again.
    pub is_forced: bool,
}

/// A cell whose runs are the first of another one.
struct FirstCell {
    id: CellId,
    runs: u64,
}

impl EarlierRuns {
    /// The runs of cells that have these numbers of replicates, by experiment.
    pub fn with_replicates(replicates: HashMap<String, u64>) -> Self {
        Self { replicates, is_forced: false }
    }

    /// The cell whose runs are the first of a cell, if there is one: with the replicates of an earlier look, or
    /// the first runs of a candidate.
    fn first_cell(&self, plan: &Plan, cell: &Cell) -> Option<FirstCell> {
        let first = match self.replicates.get(&plan.experiment) {
            Some(&runs) => FirstCell { id: cell.identity.id_with(runs), runs },
            None => {
                let first = plan.first_cell_of(cell)?;
                FirstCell { id: first.id, runs: first.identity.runs() }
            }
        };
        (!self.is_forced && first.runs < cell.identity.runs()).then_some(first)
    }

    /// Leaves out the runs of these cells that the same version of exactfed has stored.
    pub fn leave_out(&self, plan: &Plan, store: &Store, cells: &mut [Prepared<'_>]) {
        for prepared in cells {
            let Some(first) = self.first_cell(plan, prepared.cell) else { continue };
            let earlier = store.checked_summary(&plan.experiment, &first.id);
            let is_same = |version: &str| version == env!("CARGO_PKG_VERSION");
            if earlier.is_ok_and(|e| e.is_some_and(|e| is_same(&e.provenance.version))) {
                prepared.first_run = first.runs;
            }
        }
    }

    /// A cell with all its runs, the stored ones first.
    ///
    /// # Errors
    /// If these cannot be read any more.
    pub fn complete<'c>(
        &self,
        plan: &Plan,
        store: &Store,
        mut done: Done<'c>,
    ) -> Result<Done<'c>, Error> {
        let name = &plan.experiment;
        if done.traces.len() as u64 == done.cell.identity.runs() {
            return Ok(done);
        }
        let Some(FirstCell { id, .. }) = self.first_cell(plan, done.cell) else { return Ok(done) };
        let gone =
            || error(&store.root.join(name), format!("cell {id} was removed during the run"));
        let stored = store.read(name, &id)?.ok_or_else(gone)?;
        let mut traces = stored.traces;
        traces.append(&mut done.traces);
        let elapsed = done.elapsed + Duration::from_secs_f64(stored.record.seconds);
        Ok(Done { traces, elapsed, ..done })
    }
}
