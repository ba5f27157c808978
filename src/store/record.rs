//! The record of a cell that failed, and the settings that belong to an id.

use exactfed_evidence::results::Provenance;
use exactfed_runner::plan::CellId;
use serde::{Deserialize, Serialize};

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

/// The id, if settings, as TOML, are those whose hash it is.
pub fn check_settings(id: CellId, settings: &str) -> Result<(), String> {
    match CellId::of(settings) {
        hash if hash == id => Ok(()),
        hash => Err(format!("has settings of cell {hash} where those of {id} belong")),
    }
}
