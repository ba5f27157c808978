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

/// Where the first runs of cells are stored already, so that only the others need to be run.
#[derive(Default)]
pub struct EarlierRuns {
    /// By experiment, the number of replicates with which its cells were run for the look before the
    /// present one; such cells have one instance, or one per replicate. Experiments that are not there take
    /// first runs from candidates that race, if they have any.
    pub replicates: HashMap<String, u64>,
    /// Whether all runs are to be run again, whatever is stored.
    pub is_forced: bool,
}

/// A cell whose runs are the first runs of another cell, which has more.
struct FirstCell {
    id: CellId,
    /// The number of its runs.
    runs: u64,
}

impl EarlierRuns {
    /// Takes the first runs from cells with these numbers of replicates, by experiment; an experiment that is not among
    /// them takes them from candidates that race.
    pub fn with_replicates(replicates: HashMap<String, u64>) -> Self {
        Self { replicates, is_forced: false }
    }

    /// The cell whose runs are the first of a cell, whether it is stored or not: the same cell with the replicates
    /// of an earlier look, or the first runs of a candidate. `None` if there is no such cell with fewer runs.
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

    /// Marks the first runs of these cells as not to be run ([`Prepared::first_run`]) where this version of exactfed
    /// has stored them and they are sound: another version may compute other numbers.
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

    /// What is stored of a cell once its runs have ended: where its first runs were [left out](Self::leave_out), they
    /// are read and put before those that were run, and their time is added.
    ///
    /// # Errors
    /// If the first runs cannot be read any more.
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
