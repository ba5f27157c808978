//! Results on disk: a folder a cell, written beside its place and renamed.
//!
//! *Invariant*: a cell counts as done when its `cell.toml` is there and its
//! Parquet file has the length and the hash that are written in it; what is
//! half written never counts.

mod axes;
mod batch_writer;
mod cells;
mod columns;
mod data;
mod experiments;
pub mod export;
pub mod git;
mod lock;
pub mod merge;
mod pack;
mod parquet;
pub mod provenance;
mod record;
mod recovery;
mod table;

pub use batch_writer::BatchWriter;
use cells::{Kept, whole};
pub use columns::Columns;
use driftbench_runner::files::{Error, error, write_synced};
use driftbench_runner::trace::Trace;
pub use experiments::{ListedExperiment, StoredExperiment};
pub use lock::Lock;
use pack::{Packs, Recent};
use provenance::Provenance;
pub use record::{CellRecord, FailedRecord};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
pub use table::read as read_table;

/// Version of the files; a folder of another version is refused.
pub const SCHEMA: u32 = 4;

const MARKER: &str = "driftbench.toml";
const CELL: &str = "cell.toml";
const FAILED: &str = "failed.toml";
const TRACES: &str = "traces.parquet";
const EXPERIMENT: &str = "experiment.toml";

/// A results folder.
pub struct Store {
    root: PathBuf,
    /// What packs each experiment has, from the first look on.
    packs: Mutex<HashMap<String, Arc<Packs>>>,
    recent: Recent,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    schema: u32,
    version: String,
}

/// What is written down of a cell, but for its settings.
#[derive(Clone, Debug)]
pub struct CellSummary {
    /// Content id.
    pub id: String,
    /// Name of the curve when it was stored.
    pub label: String,
    /// Digest of the traces.
    pub digest: String,
    /// Time that the cell took on one thread, in seconds.
    pub seconds: f64,
    /// Who computed it.
    pub provenance: Provenance,
}

/// Whether a cell's results are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Complete.
    Done,
    /// Not there.
    Missing,
    /// There, but not as they were written.
    Damaged(String),
    /// It could not be run to its end, for this reason.
    Failed(String),
}

/// A cell as it was stored.
pub struct StoredCell {
    /// What is written down of it.
    pub record: CellSummary,
    /// A trace per replicate.
    pub traces: Vec<Trace>,
}

impl Store {
    /// A results folder that is or will be at `root`. Nothing is written.
    ///
    /// # Errors
    /// If the folder is of another version, or is not a results folder.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let (packs, recent) = (Mutex::default(), Recent::default());
        let store = Self { root: root.to_owned(), packs, recent };
        let path = root.join(MARKER);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let marker: Marker = toml::from_str(&text)
                    .map_err(|_| error(&path, "is not what a results folder begins with"))?;
                if marker.schema != SCHEMA {
                    let (theirs, by) = (marker.schema, marker.version);
                    return Err(error(
                        root,
                        format!(
                            "these results have schema {theirs}, written by driftbench {by}; this one has schema {SCHEMA}: run the experiments again into another folder (--out), or remove this one"
                        ),
                    ));
                }
                Ok(store)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let occupied = fs::read_dir(root).is_ok_and(|mut d| d.next().is_some());
                if !occupied {
                    return Ok(store);
                }
                let inside = root.ancestors().skip(1).find(|above| above.join(MARKER).is_file());
                let hint = inside.map_or(String::new(), |above| {
                    format!(" (the results folder is {})", above.display())
                });
                Err(error(root, format!("is neither empty nor a results folder{hint}")))
            }
            Err(_) if root.is_file() => Err(error(root, "is a file, not a folder")),
            Err(e) => Err(error(&path, e)),
        }
    }

    /// The schema of a results folder, whichever it is; `None` if it is none.
    pub fn schema(root: &Path) -> Option<u32> {
        let text = fs::read_to_string(root.join(MARKER)).ok()?;
        toml::from_str::<Marker>(&text).ok().map(|marker| marker.schema)
    }

    /// A results folder that is there.
    ///
    /// # Errors
    /// If it is not there, of another version, or not a results folder.
    pub fn open_existing(root: &Path) -> Result<Self, Error> {
        let store = Self::open(root)?;
        if root.join(MARKER).is_file() {
            return Ok(store);
        }
        Err(error(root, "there are no results here: run an experiment first"))
    }

    /// Ids of all cells of an experiment that have results, sound or not, sorted.
    ///
    /// # Errors
    /// If a folder cannot be read, or the index of a pack is not as it was written.
    pub fn ids(&self, experiment: &str) -> Result<Vec<String>, Error> {
        let mut ids = self.folders_of_cells(experiment)?;
        ids.retain(|id| self.cell_folder(experiment, id).join(CELL).exists());
        ids.extend(self.packs(experiment)?.ids().map(str::to_owned));
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// Names of the folders of cells below an experiment's.
    fn folders_of_cells(&self, experiment: &str) -> Result<Vec<String>, Error> {
        let folder = self.folder(experiment);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|e| error(&folder, e))? {
            let entry = entry.map_err(|e| error(&folder, e))?;
            let id = entry.file_name().to_string_lossy().into_owned();
            if is_cell(&id) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// How many cells of an experiment's folder are not among these.
    pub fn others(&self, experiment: &str, known: &HashSet<&str>) -> usize {
        let folders = self.folders_of_cells(experiment).unwrap_or_default();
        let packs = self.packs(experiment).unwrap_or_default();
        let unknown = |id: &&str| !known.contains(id);
        let beside = folders.iter().map(String::as_str).filter(unknown).count();
        beside + packs.ids().filter(unknown).count()
    }

    /// The packs of an experiment, as they were at the first look.
    fn packs(&self, experiment: &str) -> Result<Arc<Packs>, Error> {
        let held = || self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packs) = held().get(experiment) {
            return Ok(packs.clone());
        }
        self.see_inside(experiment)?;
        let packs = Arc::new(Packs::open(&self.folder(experiment))?);
        held().insert(experiment.to_owned(), packs.clone());
        Ok(packs)
    }

    /// Forgets what packs an experiment had.
    fn forget(&self, experiment: &str) {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner).remove(experiment);
    }

    /// Sees that no part of an experiment's folder is a symbolic link: results are
    /// neither read nor written outside of their folder.
    fn see_inside(&self, experiment: &str) -> Result<(), Error> {
        let mut place = self.root.clone();
        for part in experiment.split('/') {
            place.push(part);
            if place.symlink_metadata().is_ok_and(|kind| kind.is_symlink()) {
                return Err(error(&place, "is a symbolic link, which results do not follow"));
            }
        }
        Ok(())
    }

    /// Makes an experiment's folder, if it is not there.
    fn make_folder(&self, experiment: &str) -> Result<PathBuf, Error> {
        self.see_inside(experiment)?;
        let folder = self.folder(experiment);
        fs::create_dir_all(&folder).map_err(|e| error(&folder, e))?;
        Ok(folder)
    }

    /// Makes the folder, if it is not there, and sees that it can be written.
    ///
    /// # Errors
    /// If it cannot be made or written.
    pub fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.root).map_err(|e| error(&self.root, e))?;
        let marker = Marker { schema: SCHEMA, version: env!("CARGO_PKG_VERSION").into() };
        let path = self.root.join(MARKER);
        if !path.exists() {
            let text = toml::to_string(&marker).map_err(|e| error(&path, e))?;
            write_synced(&path, text.as_bytes())?;
        }
        tempfile::tempfile_in(&self.root).map_err(|e| error(&self.root, e))?;
        Ok(())
    }

    fn folder(&self, experiment: &str) -> PathBuf {
        self.root.join(experiment)
    }

    /// The folder of a cell.
    pub fn cell_folder(&self, experiment: &str, id: &str) -> PathBuf {
        self.folder(experiment).join(id)
    }
}

/// Whether a folder's name is a cell's.
pub fn is_cell(name: &str) -> bool {
    name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod tests;
