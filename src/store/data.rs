//! Copies of the data files that experiments read, named by the hash of their bytes, so that
//! results can be reported and verified on another machine, and after the files have changed.
//!
//! *Invariant*: a copy whose bytes do not have the hash that it is named by is not read.

use super::folder::Store;
use exactfed_runner::data::DataFolder;
use exactfed_runner::files::{Error, create_below, remove_leftovers, write_synced};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the copies. No experiment's name begins with a dot.
const COPIES: &str = ".data";

impl Store {
    /// The path of the folder with copies of data files, below the root of a results folder.
    pub fn copies(root: &Path) -> PathBuf {
        root.join(COPIES)
    }

    /// Copies data files of `from`, given by path and hash, to this results folder, unless it has sound copies already.
    /// Files that are too large, missing or changed since the cells were planned are left out without an error;
    /// commands that need them report it. Files in memory are copied whatever their size.
    ///
    /// # Errors
    /// If a copy cannot be written.
    pub(super) fn copy_data_files<'a>(
        &self,
        from: &DataFolder,
        files: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<(), Error> {
        let copies = Self::copies(&self.root);
        let existing = DataFolder::of_copies(copies.clone());
        remove_leftovers(&copies);
        for (path, hash) in files {
            if !from.is_kept(path, hash) || existing.sound_copy(hash).is_some() {
                continue;
            }
            create_below(&self.root, &copies)?;
            let copy = copies.join(hash);
            // The tasks of a cluster share one copy by links: it is never written again.
            if let Some(sound) = from.sound_copy(hash)
                && fs::hard_link(sound, &copy).is_ok()
            {
                continue;
            }
            if let Ok(bytes) = from.checked(path, hash) {
                write_synced(&copy, &bytes)?;
            }
        }
        Ok(())
    }
}
