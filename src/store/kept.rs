//! Cached theory: the exact moments of a cell, beside its results, and what belongs to no cell, in
//! folders of its own, so that a report does not compute it again.
//!
//! *Invariant*: as for [`super::columns`], nothing depends on what is cached. A file states the cell
//! or the content that its numbers were computed from; one that is damaged, or of another version,
//! is computed again without a message.

use super::Store;
use super::columns::{CheckedCache, decode, encode};
use exactfed_evidence::results::{Cacheable, Cached, Columns};
use exactfed_runner::files::{MOST_READ, create_below, read_plain, refuse_links, write_atomically};
use std::path::PathBuf;

/// The file of a cell's moments.
const MOMENTS: &str = "theory.columns";

/// The difference between numbers, relative to the larger, that is rounding: products and
/// decompositions of matrices differ between processors in their last bits. Of measures, pages show
/// six digits.
fn rounding(what: &Cached) -> f64 {
    match what {
        Cached::Moments { .. } => 0.0,
        Cached::Frontier(_) => 1e-9,
        Cached::Measures(_) => 1e-6,
    }
}

impl Store {
    /// The folder and the file of what is cached. No experiment's name begins with a dot.
    fn cache_place(&self, what: &Cached) -> (PathBuf, PathBuf) {
        let (folder, name) = match what {
            Cached::Moments { experiment, id } => (self.cell_folder(experiment, id), MOMENTS),
            Cached::Frontier(key) => (self.root.join(".frontiers"), key.as_str()),
            Cached::Measures(key) => (self.root.join(".measures"), key.as_str()),
        };
        let file = folder.join(name);
        (folder, file)
    }

    /// Cached columns of this version, if there are some.
    pub(super) fn cached_columns(&self, what: &Cached) -> Option<Columns> {
        let (_, file) = self.cache_place(what);
        decode(&read_plain(&file, MOST_READ).ok()?, what.version(), content(what))
    }

    /// Caches columns, if they can be written: moments beside a cell that has results.
    pub(super) fn cache_columns(&self, what: &Cached, columns: &Columns) {
        let (folder, file) = self.cache_place(what);
        let is_ready = match what {
            Cached::Moments { .. } => folder.is_dir() && refuse_links(&self.root, &folder).is_ok(),
            Cached::Frontier(_) | Cached::Measures(_) => create_below(&self.root, &folder).is_ok(),
        };
        if is_ready {
            // Nothing depends on the cache: the folder may be read-only.
            let _ = write_atomically(&file, &encode(columns, what.version(), content(what)));
        }
    }

    /// Compares what is cached with what is computed now, if something is cached.
    pub fn check_cached(&self, of: &Cacheable<'_>) -> Option<CheckedCache> {
        let cached = self.cached_columns(&of.what)?;
        let (_, file) = self.cache_place(&of.what);
        Some(CheckedCache::new(file, &cached, (of.compute)().as_ref(), rounding(&of.what)))
    }
}

/// The cell or the content of which a file states that its numbers are.
fn content(what: &Cached) -> &str {
    match what {
        Cached::Moments { id, .. } => id,
        Cached::Frontier(key) | Cached::Measures(key) => key,
    }
}
