//! Records of looks at the verdicts of an experiment: `looks.toml` has the looks that
//! `run --until-decided` planned before the first of them, and `shown.toml` the numbers of
//! replicates at which pages showed verdicts.
//!
//! *Invariant*: a record belongs to a set of cells, which it names by a hash of their ids; the same
//! manifest with another number of replicates, seed or grid has other cells. An entry is never
//! changed, and a record that is not as it was written is an error.

use super::checksum::{read_checked, with_checksum};
use super::folder::Store;
use exactfed_evidence::results::{PlannedLooks, Results, ShownVerdicts};
use exactfed_runner::files::{Error, error, write_synced};
use exactfed_runner::plan::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The file of planned looks.
pub const LOOKS: &str = "looks.toml";
/// The file of numbers of replicates at which verdicts were shown.
pub const SHOWN: &str = "shown.toml";

/// The contents of [`LOOKS`] or [`SHOWN`].
#[derive(Serialize, Deserialize)]
struct LookEntries<T> {
    entry: Vec<T>,
}

impl Store {
    /// Records the looks that are planned for cells of an experiment.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn plan_looks(&self, experiment: &str, planned: PlannedLooks) -> Result<(), Error> {
        self.add_look_entries(experiment, LOOKS, vec![planned])
    }

    /// Records that verdicts on the cells of a plan are shown, if it can be written: results may
    /// be read-only.
    pub fn note_shown(&self, plan: &Plan) {
        let shown =
            ShownVerdicts { cells: plan.cells_hash(), replicates: plan.manifest.replicates };
        let _ = self.add_look_entries(&plan.experiment, SHOWN, vec![shown]);
    }

    /// Adds the records that another results folder has of an experiment.
    pub(super) fn copy_looks(&self, from: &Self, experiment: &str) -> Result<(), Error> {
        self.add_look_entries(experiment, LOOKS, from.planned_looks(experiment)?)?;
        self.add_look_entries(experiment, SHOWN, from.shown_verdicts(experiment)?)
    }

    /// The entries of a file; none if it does not exist.
    pub(super) fn look_entries<T: DeserializeOwned>(
        &self,
        experiment: &str,
        name: &str,
    ) -> Result<Vec<T>, Error> {
        self.refuse_links(experiment)?;
        let path = self.folder(experiment).join(name);
        let found = read_checked::<LookEntries<T>>(&path).map_err(|e| {
            let remedy = "without this file nothing is known of earlier looks at the verdicts";
            error(&e.path, format!("{}; {remedy}", e.message))
        })?;
        match found {
            Some(file) => Ok(file.entry),
            None => Ok(Vec::new()),
        }
    }

    /// Adds the entries to a file that it does not have. Without any the file is not written.
    fn add_look_entries<T>(&self, experiment: &str, name: &str, new: Vec<T>) -> Result<(), Error>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let mut entries: Vec<T> = self.look_entries(experiment, name)?;
        let old_count = entries.len();
        for entry in new {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        if entries.len() == old_count {
            return Ok(());
        }
        let path = self.make_folder(experiment)?.join(name);
        let text = with_checksum(&LookEntries { entry: entries }).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }
}
