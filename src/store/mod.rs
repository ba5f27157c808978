//! Results on disk, in files that hold one or more cells ([`pack`]) and are written to a temporary
//! file that is renamed.
//!
//! *Invariant*: a cell is done if a pack holds it that has the hash that it is named by; a half-written
//! file never counts.
//!
//! # Order of the files
//!
//! A file imports from files of earlier lines, and none imports from this one:
//!
//! 1. `paths`, `checksum`, `parquet`, `axes`, `table`, `git`: names of files, last lines of files,
//!    columns of traces and of settings, and what other files need no store for;
//! 2. `marker`, `pack`, `sink`: one file each of a results folder or of an export;
//! 3. `packs`: all packs of an experiment;
//! 4. `folder`: the [`Store`], which the files below give their methods;
//! 5. `lock`, `data`, `looks`, `cache`, `failures`: the other files of a results folder;
//! 6. `recovery`, `experiments`: what is left of interrupted runs, and what was last run;
//! 7. `cells`: cells, read and written;
//! 8. `results`, `batch_writer`: the store as evidence reads it, and as a run writes it;
//! 9. `cells_frame`, `portion`: tables of planned cells, and of the rows of stored ones;
//! 10. `merge`, `export`: several results folders into one, and all cells into one file.

mod axes;
mod batch_writer;
mod cache;
mod cells;
mod cells_frame;
mod checksum;
mod data;
mod experiments;
pub mod export;
mod failures;
mod folder;
pub mod git;
mod lock;
mod looks;
mod marker;
pub mod merge;
mod pack;
mod packs;
mod parquet;
mod paths;
mod portion;
mod recovery;
mod results;
mod sink;
mod table;

pub use batch_writer::BatchWriter;
pub use cache::CheckedCache;
pub use cells::{Status, encoded_size};
pub use exactfed_evidence::results::{
    Cached, CellSummary, Columns, PlannedLooks, Provenance, Results, ShownVerdicts, StoredCell,
};
pub use experiments::{ListedExperiment, StoredExperiment};
pub use failures::FailedRecord;
pub use folder::Store;
pub use lock::{Lock, locks_of_thread, work_for};
pub use marker::SCHEMA;
pub use paths::{EXPERIMENT, FolderEntries, contents, is_cell};
pub use table::read as read_table;

/// The provenance of what this program computes: its version, and the commit that it was built from, as `build.rs`
/// found it: `unknown` outside of a repository, where nobody names it.
pub fn provenance() -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("EXACTFED_COMMIT").into(),
        dirty: env!("EXACTFED_DIRTY") == "true",
    }
}

#[cfg(test)]
mod tests;
