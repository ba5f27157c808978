//! Records of looks at the verdicts of an experiment: `looks.toml` has the looks that
//! `run --until-decided` planned before the first of them, and `shown.toml` the numbers of
//! replicates at which pages showed verdicts.
//!
//! *Invariant*: a record belongs to a set of cells, which it names by a hash of their ids; the same manifest with
//! another number of replicates, seed or grid has other cells. An entry is never changed, and a record that is not as
//! it was written is an error. No entry is lost where several processes add entries at the same time: `looks.toml` is
//! changed under the lock of the experiment, and `shown.toml` under a lock of its own ([`Store::lock_shown`]), because
//! reports show verdicts while a run holds the lock of the experiment.

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
    /// The entries in the order in which they were added.
    entry: Vec<T>,
}

impl Store {
    /// Records the looks that are planned for cells of an experiment. The caller holds the lock of the experiment.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn plan_looks(&self, experiment: &str, planned: PlannedLooks) -> Result<(), Error> {
        self.add_look_entries(experiment, LOOKS, vec![planned])
    }

    /// Records that a page shows verdicts on the cells of a plan: whoever adds replicates later is warned that verdicts
    /// were seen before. The caller has found that these verdicts rest on runs and are not those of a planned look.
    /// Nothing is recorded if the record cannot be written, since results may be read-only.
    pub fn note_shown(&self, plan: &Plan) {
        let shown =
            ShownVerdicts { cells: plan.cells_hash(), replicates: plan.manifest.replicates };
        let _ = self.add_shown(&plan.experiment, vec![shown]);
    }

    /// Adds the planned looks and the shown verdicts that another results folder has of an experiment, for a merge. The
    /// caller holds the lock of the experiment.
    pub(super) fn copy_looks(&self, from: &Self, experiment: &str) -> Result<(), Error> {
        self.add_look_entries(experiment, LOOKS, from.planned_looks(experiment)?)?;
        self.add_shown(experiment, from.shown_verdicts(experiment)?)
    }

    /// Adds entries to [`SHOWN`] while no other process changes it. Where all are known, nothing is locked or written.
    fn add_shown(&self, experiment: &str, new: Vec<ShownVerdicts>) -> Result<(), Error> {
        let known = self.shown_verdicts(experiment)?;
        if new.iter().all(|entry| known.contains(entry)) {
            return Ok(());
        }
        let _lock = self.lock_shown(experiment)?;
        self.add_look_entries(experiment, SHOWN, new)
    }

    /// The entries of the file `name`, which is [`LOOKS`], whose entries are of the type [`PlannedLooks`], or
    /// [`SHOWN`], with [`ShownVerdicts`]; none if the file does not exist.
    ///
    /// # Errors
    /// If the file is not as it was written.
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

    /// Reads the file `name`, [`LOOKS`] or [`SHOWN`], and writes it again with those of the `new` entries that it
    /// lacks; it is not written if it lacks none. The caller holds the lock under which the file is changed.
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
