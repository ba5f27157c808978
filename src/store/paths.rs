//! Names of the files and folders below a results folder.
//!
//! *Invariant*: a symbolic link is no folder of results.

use exactfed_runner::files::{Error, error};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file in the root that holds the schema.
pub const MARKER: &str = "exactfed.toml";
/// The project's former name; its results had a marker of that name.
pub const FORMER_NAME: &str = "driftbench";
/// The experiment as it was last run, in its folder.
pub const EXPERIMENT: &str = "experiment.toml";
/// The index of a folder that holds one cell.
pub const CELL: &str = "cell.toml";
/// The index of a pack.
pub const PACK_INDEX: &str = "cells.jsonl";
/// The rows of the cells of a folder.
pub const TRACES: &str = "traces.parquet";
/// The reason why a cell failed, in the folder of the cell.
pub const FAILED: &str = "failed.toml";
/// The beginning of a pack's name.
pub const PACK: &str = "pack-";
/// The text between the name of a damaged folder and its number.
pub const DAMAGED: &str = ".damaged-";

/// Whether a folder's name is a cell's.
pub fn is_cell(name: &str) -> bool {
    name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit())
}

/// Whether a folder's name is a pack's.
pub fn is_pack(name: &str) -> bool {
    name.strip_prefix(PACK).is_some_and(is_cell)
}

/// Whether a folder's name is that of a quarantined cell or pack.
pub fn is_quarantined(name: &str) -> bool {
    name.split_once(DAMAGED).is_some_and(|(name, _)| is_cell(name) || is_pack(name))
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folders below a folder, sorted; none if it does not exist.
pub fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(error(folder, e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| error(folder, e))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
