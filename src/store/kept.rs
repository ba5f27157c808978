//! Theory that belongs to no cell and takes long, kept beside the results so that a report does not
//! compute it again.
//!
//! *Invariant*: as for [`super::columns`], nothing depends on what is kept. A file is named by the
//! content of what it was computed from; one that is damaged, or of another version, is computed
//! again without a message.

use super::Store;
use super::columns::{CheckedCache, Columns, decode, encode};
use exactfed_runner::files::{MOST_READ, create_below, read_plain, write_atomically};
use std::path::PathBuf;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Frontiers, by the content of the instance and of the search.
    Frontiers,
    /// How heterogeneous an instance is, by its content and oracle.
    Measures,
}

impl Kept {
    /// The folder. No experiment's name begins with a dot.
    fn folder(self) -> &'static str {
        match self {
            Self::Frontiers => ".frontiers",
            Self::Measures => ".measures",
        }
    }

    /// The share by which a number may differ, since products and decompositions of matrices
    /// differ between processors in their last bits. Of measures, pages show six digits.
    fn rounding(self) -> f64 {
        match self {
            Self::Frontiers => 1e-9,
            Self::Measures => 1e-6,
        }
    }
}

impl Store {
    fn kept_file(&self, kind: Kept, key: &str) -> PathBuf {
        self.root.join(kind.folder()).join(key)
    }

    /// The columns that are kept under a key, if they are of this version.
    pub fn kept(&self, kind: Kept, key: &str, version: u32) -> Option<Columns> {
        decode(&read_plain(&self.kept_file(kind, key), MOST_READ).ok()?, version, key)
    }

    /// Compares the columns that are kept under a key with those that are computed now, if there
    /// are some of this version.
    pub fn check_kept(
        &self,
        kind: Kept,
        key: &str,
        version: u32,
        compute: impl FnOnce() -> Option<Columns>,
    ) -> Option<CheckedCache> {
        let kept = self.kept(kind, key, version)?;
        let file = self.kept_file(kind, key);
        Some(CheckedCache::new(file, &kept, compute().as_ref(), kind.rounding()))
    }

    /// Keeps columns under a key, if they can be written.
    pub fn keep(&self, kind: Kept, key: &str, version: u32, columns: &Columns) {
        if create_below(&self.root, &self.root.join(kind.folder())).is_ok() {
            // Nothing depends on it: the folder may be read-only.
            let _ = write_atomically(&self.kept_file(kind, key), &encode(columns, version, key));
        }
    }
}
