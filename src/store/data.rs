//! Copies of the data files that experiments read, by the hash of their bytes: so that
//! results can be reported and verified wherever they are, whatever becomes of the files.
//!
//! *Invariant*: a copy holds the bytes that its name says, or is not read.

use super::Store;
use exactfed_runner::data::DataFolder;
use exactfed_runner::files::{Error, create_below, remove_leftovers, write_synced};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the copies. No experiment's name begins with a dot.
const COPIES: &str = ".data";

impl Store {
    /// The folder of the copies below a results folder.
    pub fn copies(root: &Path) -> PathBuf {
        root.join(COPIES)
    }

    /// Copies the data files of an experiment of which this folder holds no sound copy. Files
    /// that are too large, missing or changed since the cells were planned are left out;
    /// commands that need them report it.
    pub(super) fn copy_data_files<'a>(
        &self,
        from: &DataFolder,
        files: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<(), Error> {
        let copies = Self::copies(&self.root);
        let own = DataFolder::of_copies(copies.clone());
        remove_leftovers(&copies);
        for (path, hash) in files {
            if !from.is_kept(path, hash) || own.sound_copy(hash).is_some() {
                continue;
            }
            create_below(&self.root, &copies)?;
            let copy = copies.join(hash);
            let sound = from.sound_copy(hash);
            // The tasks of a cluster share one copy: it is never written again.
            if sound.is_some_and(|of| fs::hard_link(of, &copy).is_ok()) {
                continue;
            }
            if let Ok(bytes) = from.checked(path, hash) {
                write_synced(&copy, &bytes)?;
            }
        }
        Ok(())
    }
}
