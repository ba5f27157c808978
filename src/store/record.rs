//! Records of cells: the files `cell.toml` and `failed.toml`.

use exactfed_evidence::results::Provenance;
use exactfed_runner::plan::cell_id;
use serde::{Deserialize, Serialize};

/// The contents of `cell.toml`: the summary, the length and the hash of the Parquet file, and
/// the settings that determine the numbers.
#[derive(Serialize, Deserialize)]
pub struct CellRecord {
    pub id: String,
    pub experiment: String,
    pub label: String,
    pub digest: String,
    pub bytes: u64,
    pub sha256: String,
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum_error: Option<f64>,
    pub provenance: Provenance,
    pub cell: toml::Table,
}

/// The contents of `failed.toml`, of a cell that could not be run to its end.
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

/// Checks that a record belongs to the cell in whose folder it is.
pub fn check_folder(folder: &str, id: &str) -> Result<(), String> {
    if folder == id { Ok(()) } else { Err(format!("is of another cell, {id}")) }
}

/// Checks that settings, as TOML, are those whose hash is the id.
pub fn check_settings(id: &str, settings: &str) -> Result<(), String> {
    match cell_id(settings) {
        hash if hash == id => Ok(()),
        hash => Err(format!("has settings of cell {hash} where those of {id} belong")),
    }
}
