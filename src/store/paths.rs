//! Names of the files and folders below a results folder.
//!
//! *Invariant*: a symbolic link is neither a folder nor a file of results.

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
/// The end of a pack's name, which begins with 16 hexadecimal digits.
pub const PACK: &str = ".parquet";
/// The end of the name of the file that tells why a cell failed; it begins with the cell's id.
pub const FAILED: &str = ".failed.toml";
/// The text between the name of a damaged file and its number.
pub const DAMAGED: &str = ".damaged-";

/// Whether a text has the form of a cell's id: 16 hexadecimal digits. Capital letters count too, although no id has
/// them.
pub fn is_cell(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a file of this name is a pack.
pub fn is_pack(name: &str) -> bool {
    name.strip_suffix(PACK).is_some_and(is_cell)
}

/// The id of the failed cell whose record has this file name; `None` for other files.
pub fn failed_cell(name: &str) -> Option<&str> {
    name.strip_suffix(FAILED).filter(|id| is_cell(id))
}

/// The last part of a path, the name of a file or a folder.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a folder contains itself, not in folders below it.
#[derive(Default)]
pub struct FolderEntries {
    /// Paths of its folders, sorted. Each path begins with the path of the folder that was listed.
    pub folders: Vec<PathBuf>,
    /// Paths of everything else, sorted: also of symbolic links, wherever they lead.
    pub files: Vec<PathBuf>,
}

/// Lists a folder; a folder that does not exist has no entries.
///
/// # Errors
/// If the path is that of a file, or the folder cannot be read.
pub fn contents(folder: &Path) -> Result<FolderEntries, Error> {
    let mut listed = FolderEntries::default();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(listed),
        Err(e) => return Err(error(folder, e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| error(folder, e))?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => listed.folders.push(entry.path()),
            _ => listed.files.push(entry.path()),
        }
    }
    // The order of `read_dir` depends on the file system.
    listed.folders.sort();
    listed.files.sort();
    Ok(listed)
}
