//! Computed frontiers, kept beside the results so that a report does not compute them again.
//!
//! *Invariant*: as for [`super::columns`], nothing depends on what is kept. A file is named by the
//! content of the instance and of the search; one that is damaged, or of another version, is
//! computed again without a message.

use super::Store;
use super::columns::{CheckedCache, Columns, decode, encode};
use exactfed_runner::files::{MOST_READ, create_below, read_plain, write_atomically};
use std::path::PathBuf;

/// The share by which a number of a frontier may differ: the products of matrices in the search
/// differ between processors in their last bits.
const ROUNDING: f64 = 1e-9;
/// The folder of the frontiers. No experiment's name begins with a dot.
const FRONTIERS: &str = ".frontiers";

impl Store {
    fn frontier_file(&self, key: &str) -> PathBuf {
        self.root.join(FRONTIERS).join(key)
    }

    /// The columns that are kept under a key, if they are of this version.
    pub fn frontier(&self, key: &str, version: u32) -> Option<Columns> {
        decode(&read_plain(&self.frontier_file(key), MOST_READ).ok()?, version, key)
    }

    /// Compares the columns that are kept under a key with those that are computed now, if there
    /// are some of this version.
    pub fn check_frontier(
        &self,
        key: &str,
        version: u32,
        compute: impl FnOnce() -> Option<Columns>,
    ) -> Option<CheckedCache> {
        let kept = self.frontier(key, version)?;
        let file = self.frontier_file(key);
        Some(CheckedCache::new(file, &kept, compute().as_ref(), ROUNDING))
    }

    /// Keeps columns under a key, if they can be written.
    pub fn keep_frontier(&self, key: &str, version: u32, columns: &Columns) {
        if create_below(&self.root, &self.root.join(FRONTIERS)).is_ok() {
            // Nothing depends on it: the folder may be read-only.
            let _ = write_atomically(&self.frontier_file(key), &encode(columns, version, key));
        }
    }
}
