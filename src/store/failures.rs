//! Records of cells that could not be run to their end, one file for each.
//!
//! *Invariant*: a file of another name than its record's cell is refused, and so is a record whose
//! settings do not have the hash that is the cell's id.

use super::checksum::{read_checked, with_checksum};
use super::folder::Store;
use super::pack::check_settings;
use super::paths::FAILED;
use exactfed_evidence::results::Provenance;
use exactfed_runner::files::{Error, error, write_synced};
use exactfed_runner::plan::CellId;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// The record of a cell that could not be run to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedRecord {
    /// Content id.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the curve.
    pub label: String,
    /// The reason why it failed.
    pub reason: String,
    /// The program that ran it.
    pub provenance: Provenance,
    /// The settings that determine the numbers.
    pub cell: toml::Table,
}

impl Store {
    /// The record of a cell that could not be run to its end; `None` if there is none. The cell may have results all
    /// the same, from an earlier run: then these count.
    ///
    /// # Errors
    /// If it is not as it was written, or is of another cell.
    pub fn failed(&self, experiment: &str, id: &str) -> Result<Option<FailedRecord>, Error> {
        self.refuse_links(experiment)?;
        let path = self.failed_file(experiment, id);
        let Some(record) = read_checked::<FailedRecord>(&path)? else { return Ok(None) };
        let stored = CellId::read(&record.id).filter(|stored| *stored == *id);
        let Some(stored) = stored else {
            return Err(error(&path, format!("is of another cell, {}", record.id)));
        };
        check_settings(stored, &record.cell.to_string())
            .map_err(|message| error(&path, message))?;
        Ok(Some(record))
    }

    /// Records that a cell could not be run to its end, and why, in place of an earlier record of the cell. Results
    /// that the cell had stay. A run leaves the cell alone from then on, unless `--rerun-failed` or `--force` is given;
    /// the record is removed when results of the cell are written. The caller holds the lock of the experiment.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn write_failed(&self, failed: &FailedRecord) -> Result<(), Error> {
        self.make_folder(&failed.experiment)?;
        let path = self.failed_file(&failed.experiment, &failed.id);
        let text = with_checksum(failed).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }

    /// Removes the record of a failed cell, if there is one, since the cell has results now.
    pub(super) fn remove_failed(&self, experiment: &str, id: &str) -> Result<(), Error> {
        let path = self.failed_file(experiment, id);
        if path.is_file() {
            fs::remove_file(&path).map_err(|e| error(&path, e))?;
        }
        Ok(())
    }

    /// The path of the record of a failed cell.
    fn failed_file(&self, experiment: &str, id: &str) -> PathBuf {
        self.folder(experiment).join(format!("{id}{FAILED}"))
    }
}
