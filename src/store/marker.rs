//! The marker of a results folder: the file in its root that states the schema of its files.
//!
//! *Invariant*: a run creates the marker before anything else, and it appears there complete. So a
//! folder without one holds nothing of a run, except temporary files of the marker from runs that
//! were killed, or that are creating it now.

use super::paths::{FORMER_NAME, MARKER};
use exactfed_runner::files::{
    Error, WRITING, error, read_regular, read_regular_text, write_synced,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Version of the files; a folder of another version is refused.
pub const SCHEMA: u32 = 5;
/// How the text of a marker of any version begins.
const BEGINNING: &[u8] = b"schema = ";

/// The contents of the marker.
#[derive(Serialize, Deserialize)]
pub struct ResultsMarker {
    /// The [`SCHEMA`] of the program that created the folder.
    pub schema: u32,
    /// The version of that program, for messages.
    pub version: String,
}

impl ResultsMarker {
    /// The marker in the root of a results folder of any version; `None` if there is none, also if there is no folder.
    ///
    /// # Errors
    /// If the marker cannot be read, or the root is a file.
    pub fn read(root: &Path) -> Result<Option<Self>, Error> {
        let path = root.join(MARKER);
        match read_regular_text(&path) {
            Ok(text) => match toml::from_str(&text) {
                Ok(marker) => Ok(Some(marker)),
                Err(_) => Err(error(&path, "does not state the schema of a results folder")),
            },
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(_) if root.exists() && !root.is_dir() => Err(error(root, "is not a folder")),
            Err(e) => Err(error(&path, e)),
        }
    }

    /// Writes the marker of this version of the program to the root of a results folder.
    pub fn write(root: &Path) -> Result<(), Error> {
        let path = root.join(MARKER);
        let marker = Self { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").into() };
        let text = toml::to_string(&marker).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }
}

/// Whether a folder holds anything other than a marker and unfinished markers, so that without a marker it is no
/// results folder.
pub fn is_occupied(root: &Path) -> bool {
    // A folder that cannot be read, as one that does not exist, counts as empty.
    let Ok(entries) = fs::read_dir(root) else { return false };
    entries.flatten().any(|entry| entry.file_name() != MARKER && !is_unfinished_marker(&entry))
}

/// Whether an entry of a folder is a marker that was not written to its end, or is being written: a temporary file that
/// begins like a marker, or is empty, or has vanished meanwhile.
fn is_unfinished_marker(entry: &fs::DirEntry) -> bool {
    if !entry.file_name().to_string_lossy().starts_with(WRITING) {
        return false;
    }
    // A marker is shorter than that; of a longer file, reading is an error.
    match read_regular(&entry.path(), 1 << 10) {
        Ok(bytes) => {
            // A machine that lost its power may leave zeros where the text belongs.
            let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
            let text = &bytes[..bytes.len() - zeros];
            // The file was cut after the beginning of the marker, or within it.
            text.starts_with(BEGINNING) || BEGINNING.starts_with(text)
        }
        // Another run renamed the file to the marker since the folder was listed.
        Err(e) => e.kind() == ErrorKind::NotFound,
    }
}

/// The error for a folder that holds something else and no marker, which says why it is no results folder.
pub fn why_refused(root: &Path) -> Error {
    if root.join(format!("{FORMER_NAME}.toml")).is_file() {
        return error(
            root,
            format!(
                "these results were written by {FORMER_NAME}, which is now called exactfed and does not read them: run the experiments again into another folder (--out), or remove this one"
            ),
        );
    }
    let results_above = root.ancestors().skip(1).find(|above| above.join(MARKER).is_file());
    let hint = match results_above {
        Some(above) => format!(" (the results folder is {})", above.display()),
        None => String::new(),
    };
    error(root, format!("is neither empty nor a results folder{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At whichever byte the writing of the marker ends, the folder remains one for results; and
    /// a file of somebody's is never mistaken for a marker.
    #[test]
    fn an_unfinished_marker_is_recognised_at_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        ResultsMarker::write(folder.path()).unwrap();
        let marker = fs::read(folder.path().join(MARKER)).unwrap();
        fs::remove_file(folder.path().join(MARKER)).unwrap();
        let file = folder.path().join(format!("{WRITING}a1B2c3"));
        for end in 0..=marker.len() {
            let zeros = [&marker[..end], &vec![0; marker.len() - end]].concat();
            for text in [&marker[..end], &zeros] {
                fs::write(&file, text).unwrap();
                assert!(!is_occupied(folder.path()), "{end} bytes");
                let second = folder.path().join(format!("{WRITING}another"));
                fs::write(&second, "").unwrap();
                assert!(!is_occupied(folder.path()), "two runs, {end} bytes");
                fs::remove_file(second).unwrap();
            }
        }
        for text in ["dear", "schema", "my notes", "title = \"t\""] {
            fs::write(&file, text).unwrap();
            assert_eq!(is_occupied(folder.path()), text != "schema", "{text}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(is_occupied(folder.path()), "a folder is no marker");
        fs::remove_dir(&file).unwrap();
        fs::write(folder.path().join("letter.txt"), "").unwrap();
        assert!(is_occupied(folder.path()), "an empty file of somebody's");
    }
}
