//! Runs that results have already, in cells with fewer replicates: a replicate is a function of its
//! cell and its number alone, so that the first r of R replicates are those of a cell with r.
//!
//! *Invariant*: the traces of a cell that is completed this way are those of its runs from the
//! start (`tests/suite/looks.rs` compares the digests).

use crate::store::{Results, Store};
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Done, Prepared};
use std::collections::HashMap;
use std::time::Duration;

/// The numbers of replicates of earlier cells, by experiment; each has one instance, or one per
/// replicate.
#[derive(Default)]
pub struct EarlierReplicates(pub HashMap<String, u64>);

impl EarlierReplicates {
    /// Leaves out the runs of these cells that the same version of exactfed has stored.
    pub fn leave_out(&self, plan: &Plan, store: &Store, cells: &mut [Prepared<'_>]) {
        let Some(replicates) = self.0.get(&plan.experiment) else { return };
        for prepared in cells {
            let identity = &prepared.cell.identity;
            let earlier = store.checked_summary(&plan.experiment, &identity.id_with(*replicates));
            let is_same = |version: &str| version == env!("CARGO_PKG_VERSION");
            if earlier.is_ok_and(|e| e.is_some_and(|e| is_same(&e.provenance.version)))
                && *replicates < identity.runs()
            {
                prepared.first_run = *replicates;
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
        let (name, identity) = (&plan.experiment, &done.cell.identity);
        let Some(replicates) = self.0.get(name) else { return Ok(done) };
        if done.traces.len() as u64 == identity.runs() {
            return Ok(done);
        }
        let id = identity.id_with(*replicates);
        let gone =
            || error(&store.root.join(name), format!("cell {id} was removed during the run"));
        let stored = store.read(name, &id)?.ok_or_else(gone)?;
        let mut traces = stored.traces;
        traces.append(&mut done.traces);
        let elapsed = done.elapsed + Duration::from_secs_f64(stored.record.seconds);
        Ok(Done { traces, elapsed, ..done })
    }
}
