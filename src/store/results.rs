//! The store as evidence reads it ([`Results`]).
//!
//! *Invariant*: results that are returned were checked against the hashes that they were
//! written with, and numbers against their digest as well.

use super::cache::{read_columns, read_optimum};
use super::folder::Store;
use super::looks::{LOOKS, SHOWN};
use super::packs::CellInPack;
use exactfed_core::problem::Minimiser;
use exactfed_core::round_program::Traced;
use exactfed_evidence::results::{
    Cached, Columns, PlannedLooks, Results, ShownVerdicts, StoredCell,
};
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::CellId;

impl Store {
    /// The number of cells in the folder that have results, whose rows are not checked: `submit --wait` shows it as
    /// progress. An experiment of which the index of a pack is damaged counts as having none; 0 also if the folder
    /// cannot be listed.
    pub fn count(&self) -> usize {
        let Ok(listing) = self.listing() else { return 0 };
        let mut count = 0;
        for (name, _) in listing {
            count += self.ids(&name).map_or(0, |ids| ids.len());
        }
        count
    }
}

impl Results for Store {
    /// The record of a cell and its traces, one per replicate, which were checked against the digest in the index;
    /// `None` if it has no results.
    fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error> {
        let Some(found) = self.packs(experiment)?.find(id)? else { return Ok(None) };
        let traces = self.with_rows(&found, |rows, _| found.pack.traces(rows, found.index))??;
        let record = found.pack.cells[found.index].record.clone();
        Ok(Some(StoredCell { record, traces }))
    }

    /// Why the last run of a cell failed, also if results of an earlier run count; `None` if it did not fail.
    fn failure(&self, experiment: &str, id: &str) -> Result<Option<String>, Error> {
        Ok(self.failed(experiment, id)?.map(|failed| failed.reason))
    }

    /// The order in which the cells with these ids are in the files, as indices into `ids`: reading them in this order
    /// reads each file once. Cells without results come first; where packs cannot be listed, the order is that of
    /// `ids`.
    fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if !ids.is_empty()
            && let Ok(packs) = self.packs(experiment)
        {
            order.sort_by_cached_key(|&i| packs.place(ids[i]));
        }
        order
    }

    /// The sorted ids of all cells with results, each once, also where several packs hold the cell; none if the
    /// experiment has no folder. Checks the indexes of packs, and not their rows, which may be damaged. A single pack
    /// with a damaged index makes it an error.
    fn ids(&self, experiment: &str) -> Result<Vec<CellId>, Error> {
        let packs = self.packs(experiment)?;
        if let Some(damaged) = packs.damaged.first() {
            return Err(damaged.error.clone());
        }
        let mut ids: Vec<CellId> = packs.ids().collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Forgets which packs the experiment has; the next reader opens them again.
    fn release(&self, experiment: &str) {
        self.forget_packs(experiment);
    }

    /// The settings of a cell whose hash is its id, from the index of its pack; an error if it has no results.
    fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error> {
        let CellInPack { pack, index } = self.find(experiment, id)?;
        pack.read_line(index)?.settings().map_err(|e| error(&pack.path, e))
    }

    /// The programs that were stored with a cell of a custom algorithm, one per instance. None also if the cell has no
    /// results or they cannot be read, since programs can be made again.
    fn programs(&self, experiment: &str, id: &str) -> Vec<Traced> {
        let Ok(CellInPack { pack, index }) = self.find(experiment, id) else { return Vec::new() };
        pack.read_line(index).map_or_else(|_| Vec::new(), |line| line.programs)
    }

    fn planned_looks(&self, experiment: &str) -> Result<Vec<PlannedLooks>, Error> {
        self.look_entries(experiment, LOOKS)
    }

    fn shown_verdicts(&self, experiment: &str) -> Result<Vec<ShownVerdicts>, Error> {
        self.look_entries(experiment, SHOWN)
    }

    fn known_optimum(&self, key: &str) -> Option<Minimiser> {
        read_optimum(&self.root, key)
    }

    fn cached(&self, what: &Cached) -> Option<Columns> {
        read_columns(&self.root, what)
    }

    fn cache(&self, what: &Cached, columns: &Columns) {
        self.cache_columns(what, columns);
    }
}
