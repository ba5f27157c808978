//! The plan of a manifest with other numbers of replicates, and what its cells are known by.

use super::types::Plan;
use crate::files::sha256;
use crate::manifest::Rejected;

impl Plan {
    /// The plan of the same manifest with another number of replicates, such as that of another look at its claims.
    ///
    /// # Errors
    /// Everything that is wrong with the manifest at that number.
    pub fn with_replicates(&self, replicates: u64) -> Result<Self, Rejected> {
        let mut source = self.source.clone();
        source.overrides.retain(|set| !sets_replicates(set));
        source.overrides.push(format!("replicates={replicates}"));
        Self::new(self.experiment.clone(), source, self.kinds)
    }

    /// A hash by which what is stored of an experiment (that it is complete, its looks, the verdicts that pages showed)
    /// is found to be about the same cells. It is over the ids, in no order, of the cells that the manifest alone
    /// determines: all cells, or where settings are tuned the listed candidates, each by the cell of its first runs if
    /// candidates race.
    pub fn cells_hash(&self) -> String {
        let ids = match &self.tuning {
            Some(tuning) => tuning
                .listed
                .iter()
                .map(|cell| self.first_cell(cell).map_or(cell.id, |first| first.id))
                .collect(),
            None => self.cells.iter().map(|cell| cell.id).collect::<Vec<_>>(),
        };
        let mut ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
        ids.sort_unstable();
        ids.dedup();
        sha256(ids.join("\n").as_bytes())[..16].to_owned()
    }

    /// Whether [`Self::cells_hash`] is this hash for the manifest at this number of replicates: then what was stored
    /// with the hash is about the same cells with other numbers of runs.
    pub fn has_cells(&self, replicates: u64, hash: &str) -> bool {
        if replicates == self.manifest.replicates {
            self.cells_hash() == hash
        } else {
            self.with_replicates(replicates).is_ok_and(|plan| plan.cells_hash() == hash)
        }
    }
}

/// Whether an override, `key=value`, sets the number of replicates.
pub fn sets_replicates(set: &str) -> bool {
    set.split_once('=').is_some_and(|(key, _)| key.trim() == "replicates")
}
