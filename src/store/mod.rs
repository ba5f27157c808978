//! Results on disk, in files that hold one or more cells ([`pack`]) and are written to a temporary
//! file that is renamed.
//!
//! *Invariant*: a cell is done if a pack holds it that has the hash that it is named by; a half-written
//! file never counts.

mod axes;
mod batch_writer;
mod cache;
mod cells;
mod checksum;
mod data;
mod experiments;
pub mod export;
pub mod git;
mod lock;
mod looks;
mod marker;
pub mod merge;
mod pack;
mod packs;
mod parquet;
mod paths;
mod recovery;
mod results;
mod sink;
mod table;

pub use batch_writer::BatchWriter;
pub use cache::CheckedCache;
pub use cells::FailedRecord;
pub use exactfed_evidence::results::{
    Cached, CellSummary, Columns, PlannedLooks, Provenance, Results, ShownVerdicts, StoredCell,
};
use exactfed_runner::files::{
    Error, check_writable, create_below, error, refuse_links, remove_leftovers,
};
use exactfed_runner::panics::lock;
pub use experiments::{ListedExperiment, StoredExperiment};
pub use lock::{Lock, locks_of_thread, work_for};
use marker::ResultsMarker;
pub use marker::SCHEMA;
use packs::{Packs, RecentRows};
use paths::MARKER;
pub use paths::{EXPERIMENT, contents, is_cell};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
pub use table::read as read_table;

/// The provenance of what this program computes: its version, and the commit that it was built from.
pub fn provenance() -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("EXACTFED_COMMIT").into(),
        dirty: env!("EXACTFED_DIRTY") == "true",
    }
}

/// The packs of an experiment, which whoever needs them first opens while others wait.
type OpenedPacks = Arc<Mutex<Option<Arc<Packs>>>>;

/// A results folder.
pub struct Store {
    /// The path of the folder.
    pub root: PathBuf,
    /// The packs of each experiment, as they were when they were first needed.
    packs: Mutex<HashMap<String, OpenedPacks>>,
    recent: RecentRows,
}

/// The state of a cell's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// They are complete.
    Done,
    /// There are none.
    Missing,
    /// They are not as they were written.
    Damaged(String),
    /// The cell could not be run to its end, for this reason.
    Failed(String),
}

impl Store {
    /// The results folder that exists or will be created at `root`. Nothing is written.
    ///
    /// # Errors
    /// If the folder is of another version, or is not a results folder.
    pub fn open(root: &Path) -> Result<Self, Error> {
        // It is listed before the marker is read: whatever another run creates in the folder, it
        // creates after the marker.
        let occupied = marker::is_occupied(root);
        match ResultsMarker::read(root)? {
            Some(ResultsMarker { schema, version }) if schema != SCHEMA => {
                return Err(error(
                    root,
                    format!(
                        "these results have schema {schema}, written by exactfed {version}; this one has schema {SCHEMA}: run the experiments again into another folder (--out), or remove this one"
                    ),
                ));
            }
            None if occupied => return Err(marker::why_refused(root)),
            _ => {}
        }
        let (packs, recent) = (Mutex::default(), RecentRows::default());
        Ok(Self { root: root.to_owned(), packs, recent })
    }

    /// The schema of a results folder of any version; `None` if it is no results folder.
    pub fn schema(root: &Path) -> Option<u32> {
        ResultsMarker::read(root).ok().flatten().map(|marker| marker.schema)
    }

    /// The results folder that exists at `root`.
    ///
    /// # Errors
    /// If it does not exist, is of another version, or is not a results folder.
    pub fn open_existing(root: &Path) -> Result<Self, Error> {
        let store = Self::open(root)?;
        if root.join(MARKER).is_file() {
            return Ok(store);
        }
        Err(error(root, "there are no results here: run an experiment first"))
    }

    /// The number of cells in the folder that have results, sound or not.
    pub fn count(&self) -> usize {
        let count = |(name, _): &ListedExperiment| self.ids(name).map_or(0, |ids| ids.len());
        self.listing().map_or(0, |all| all.iter().map(count).sum())
    }

    /// The number of cells in an experiment's folder that are not among these.
    pub fn count_others(&self, experiment: &str, known: &HashSet<&str>) -> usize {
        let packs = self.packs(experiment).unwrap_or_default();
        packs.ids().filter(|id| !known.contains(id.as_str())).count()
    }

    /// The packs of an experiment, as they were when they were first needed.
    fn packs(&self, experiment: &str) -> Result<Arc<Packs>, Error> {
        let place = lock(&self.packs).entry(experiment.to_owned()).or_default().clone();
        let mut opened = lock(&place);
        if let Some(packs) = &*opened {
            return Ok(packs.clone());
        }
        self.refuse_links(experiment)?;
        let packs = Arc::new(Packs::open(&self.folder(experiment))?);
        Ok(opened.insert(packs).clone())
    }

    /// Forgets the packs of an experiment: they have changed, or may have.
    fn forget_packs(&self, experiment: &str) {
        lock(&self.packs).remove(experiment);
    }

    /// Refuses an experiment of whose path a part is a symbolic link: results are neither read
    /// nor written outside of their folder.
    fn refuse_links(&self, experiment: &str) -> Result<(), Error> {
        refuse_links(&self.root, &self.folder(experiment))
    }

    /// Creates an experiment's folder, if it does not exist.
    fn make_folder(&self, experiment: &str) -> Result<PathBuf, Error> {
        let folder = self.folder(experiment);
        create_below(&self.root, &folder)?;
        Ok(folder)
    }

    /// Creates the folder, if it does not exist, and checks that it can be written.
    ///
    /// # Errors
    /// If it cannot be created or written.
    pub fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.root).map_err(|e| error(&self.root, e))?;
        if ResultsMarker::read(&self.root)?.is_none() {
            ResultsMarker::write(&self.root)?;
        }
        remove_leftovers(&self.root);
        check_writable(&self.root)
    }

    fn folder(&self, experiment: &str) -> PathBuf {
        self.root.join(experiment)
    }
}

#[cfg(test)]
mod tests;
