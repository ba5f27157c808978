//! Computed frontiers, kept beside the results so that a report does not compute them again.
//!
//! *Invariant*: as for [`super::columns`], nothing depends on what is kept. A file is named by the
//! content of the instance and of the search; one that is damaged, or of another version, is
//! computed again without a message.

use super::Store;
use super::columns::{Columns, decode, encode};
use exactfed_runner::files::write_atomically;
use std::fs;
use std::path::PathBuf;

/// The folder of the frontiers. No experiment's name begins with a dot.
const FRONTIERS: &str = ".frontiers";

impl Store {
    fn frontier_file(&self, key: &str) -> PathBuf {
        self.root.join(FRONTIERS).join(key)
    }

    /// The columns that are kept under a key, if they are of this version.
    pub fn frontier(&self, key: &str, version: u32) -> Option<Columns> {
        decode(&fs::read(self.frontier_file(key)).ok()?, version, key)
    }

    /// Keeps columns under a key, if they can be written.
    pub fn keep_frontier(&self, key: &str, version: u32, columns: &Columns) {
        if fs::create_dir_all(self.root.join(FRONTIERS)).is_ok() {
            // Nothing depends on it: the folder may be read-only.
            let _ = write_atomically(&self.frontier_file(key), &encode(columns, version, key));
        }
    }
}
