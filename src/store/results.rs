//! What evidence reads of a store ([`Results`]).
//!
//! *Invariant*: results that are returned were checked against the hashes that they were
//! written with, and numbers against their digest as well.

use super::Store;
use super::cache::{read, read_optimum};
use super::looks::{LOOKS, SHOWN};
use exactfed_core::problem::Minimiser;
use exactfed_core::round_program::Traced;
use exactfed_evidence::results::{
    Cached, Columns, PlannedLooks, Results, ShownVerdicts, StoredCell,
};
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::CellId;

impl Results for Store {
    fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error> {
        let Some((pack, i)) = self.packs(experiment)?.find(id)? else { return Ok(None) };
        let traces = self.with_rows(&pack, i, |rows, _| pack.traces(rows, i))??;
        Ok(Some(StoredCell { record: pack.cells[i].record.clone(), traces }))
    }

    fn failure(&self, experiment: &str, id: &str) -> Result<Option<String>, Error> {
        Ok(self.failed(experiment, id)?.map(|failed| failed.reason))
    }

    /// The order in which the cells are in the files.
    fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if !ids.is_empty()
            && let Ok(packs) = self.packs(experiment)
        {
            order.sort_by_cached_key(|&i| packs.place(ids[i]));
        }
        order
    }

    /// Only indexes are checked.
    fn ids(&self, experiment: &str) -> Result<Vec<CellId>, Error> {
        let packs = self.packs(experiment)?;
        if let Some((_, e)) = packs.damaged.first() {
            return Err(e.clone());
        }
        let mut ids: Vec<CellId> = packs.ids().collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn release(&self, experiment: &str) {
        self.forget_packs(experiment);
    }

    fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error> {
        let (pack, i) = self.find(experiment, id)?;
        pack.line(i)?.settings().map_err(|e| error(&pack.path, e))
    }

    fn programs(&self, experiment: &str, id: &str) -> Vec<Traced> {
        let line = self.find(experiment, id).and_then(|(pack, i)| pack.line(i));
        line.map_or_else(|_| Vec::new(), |line| line.programs)
    }

    fn planned_looks(&self, experiment: &str) -> Result<Vec<PlannedLooks>, Error> {
        self.entries(experiment, LOOKS)
    }

    fn shown_verdicts(&self, experiment: &str) -> Result<Vec<ShownVerdicts>, Error> {
        self.entries(experiment, SHOWN)
    }

    fn known_optimum(&self, key: &str) -> Option<Minimiser> {
        read_optimum(&self.root, key)
    }

    fn cached(&self, what: &Cached) -> Option<Columns> {
        read(&self.root, what)
    }

    fn cache(&self, what: &Cached, columns: &Columns) {
        self.cache_columns(what, columns);
    }
}
