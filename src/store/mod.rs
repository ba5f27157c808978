//! Results on disk: a folder a cell, written beside its place and renamed.
//!
//! *Invariant*: a cell counts as done when its `cell.toml` is there and its
//! Parquet file has the length and the hash that are written in it; what is
//! half written never counts.

mod columns;
pub mod export;
pub mod git;
mod parquet;
pub mod provenance;

use crate::files::{Error, error, write_beside};
use crate::manifest::Source;
use crate::plan::{Cell, Plan, hex};
use crate::trace::{self, Trace};
pub use columns::Columns;
use provenance::Provenance;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the files; a folder of another version is refused.
pub const SCHEMA: u32 = 2;

const MARKER: &str = "driftbench.toml";
const CELL: &str = "cell.toml";
const TRACES: &str = "traces.parquet";
const EXPERIMENT: &str = "experiment.toml";

/// A results folder.
pub struct Store {
    root: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    schema: u32,
    version: String,
}

/// An experiment as it was last run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// The manifest's file, as it was given.
    pub manifest: String,
    /// `--set`s.
    pub overrides: Vec<String>,
    /// The manifest's text.
    pub text: String,
    /// Hashes of its data files, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Experiment {
    /// The manifest as it was last run.
    pub fn source(&self) -> Source {
        Source {
            name: self.manifest.clone(),
            text: self.text.clone(),
            overrides: self.overrides.clone(),
            files: self.files.clone(),
        }
    }
}

/// What `cell.toml` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// Content id.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the curve when it was stored.
    pub label: String,
    /// Digest of the traces.
    pub digest: String,
    /// Length of the Parquet file, in bytes.
    pub bytes: u64,
    /// SHA-256 of the Parquet file.
    pub sha256: String,
    /// Time that the cell took on one thread, in seconds.
    pub seconds: f64,
    /// Who computed it.
    pub provenance: Provenance,
    /// What determines the numbers.
    pub cell: toml::Table,
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
}

/// A cell as it was stored.
pub struct Stored {
    /// What `cell.toml` says.
    pub record: CellRecord,
    /// A trace per replicate.
    pub traces: Vec<Trace>,
}

impl Store {
    /// A results folder that is or will be at `root`. Nothing is written.
    ///
    /// # Errors
    /// If the folder is of another version, or is not a results folder.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let store = Self { root: root.to_owned() };
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
                            "these results have schema {theirs}, written by driftbench {by}; this one has schema {SCHEMA}: name another folder with --out, or remove this one"
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

    /// What `cell.toml` says, for every complete cell of the folder.
    ///
    /// # Errors
    /// If a folder or file cannot be read.
    pub fn all_cells(&self) -> Result<Vec<CellRecord>, Error> {
        let mut found = Vec::new();
        for experiment in self.experiments()? {
            for id in self.ids(&experiment.name)? {
                found.extend(self.record(&experiment.name, &id)?);
            }
        }
        Ok(found)
    }

    /// Ids of all cells of an experiment's folder, complete or not, sorted.
    fn ids(&self, experiment: &str) -> Result<Vec<String>, Error> {
        let folder = self.folder(experiment);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|e| error(&folder, e))? {
            let entry = entry.map_err(|e| error(&folder, e))?;
            let id = entry.file_name().to_string_lossy().into_owned();
            if is_cell(&id) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// How many cells of an experiment's folder are not among these.
    pub fn others(&self, experiment: &str, known: &HashSet<&str>) -> usize {
        let entries = fs::read_dir(self.folder(experiment)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| is_cell(name) && !known.contains(name.as_str())).count()
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
            write_beside(&path, text.as_bytes())?;
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

    /// Writes down what is run, for reports.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep_experiment(&self, plan: &Plan) -> Result<(), Error> {
        let folder = self.folder(&plan.experiment);
        fs::create_dir_all(&folder).map_err(|e| error(&folder, e))?;
        let path = folder.join(EXPERIMENT);
        let experiment = Experiment {
            name: plan.experiment.clone(),
            manifest: plan.source.name.clone(),
            overrides: plan.source.overrides.clone(),
            text: plan.source.text.clone(),
            files: plan.source.files.clone(),
        };
        let text = toml::to_string(&experiment).map_err(|e| error(&path, e))?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        write_beside(&path, text.as_bytes())
    }

    /// All experiments of the folder, by name.
    ///
    /// # Errors
    /// If a folder or file cannot be read.
    pub fn experiments(&self) -> Result<Vec<Experiment>, Error> {
        let mut found = Vec::new();
        self.search(&self.root, &mut found)?;
        found.sort_by(|a: &Experiment, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn search(&self, folder: &Path, found: &mut Vec<Experiment>) -> Result<(), Error> {
        let path = folder.join(EXPERIMENT);
        if path.is_file() {
            let text = fs::read_to_string(&path).map_err(|e| error(&path, e))?;
            let mut experiment: Experiment =
                toml::from_str(&text).map_err(|e| error(&path, e.message()))?;
            // Its place names it, whatever the file says: paths are made of it.
            let below = folder.strip_prefix(&self.root).unwrap_or(folder);
            let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
            experiment.name = parts.collect::<Vec<_>>().join("/");
            found.push(experiment);
            return Ok(());
        }
        let entries = fs::read_dir(folder).map_err(|e| error(folder, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| error(folder, e))?;
            // Symbolic links are not followed out of the results.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.search(&entry.path(), found)?;
            }
        }
        Ok(())
    }

    fn record(&self, experiment: &str, id: &str) -> Result<Option<CellRecord>, Error> {
        let path = self.cell_folder(experiment, id).join(CELL);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(error(&path, e)),
        };
        let record: CellRecord = toml::from_str(&text).map_err(|e| error(&path, e.message()))?;
        if record.id == id { Ok(Some(record)) } else { Err(error(&path, "is another cell's")) }
    }

    /// The Parquet file's bytes, if they are those that were written.
    fn bytes(&self, experiment: &str, record: &CellRecord) -> Result<Vec<u8>, Error> {
        let path = self.cell_folder(experiment, &record.id).join(TRACES);
        let bytes = fs::read(&path).map_err(|e| error(&path, e))?;
        if bytes.len() as u64 != record.bytes {
            let (have, want) = (bytes.len(), record.bytes);
            return Err(error(
                &path,
                format!("has {have} bytes, not {want} as when it was written"),
            ));
        }
        if hex(&Sha256::digest(&bytes)) != record.sha256 {
            return Err(error(&path, "does not have the hash that it was written with"));
        }
        Ok(bytes)
    }

    /// What `cell.toml` says, its Parquet file checked and not decoded; `None` if
    /// the cell has no results.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn checked(&self, experiment: &str, id: &str) -> Result<Option<CellRecord>, Error> {
        let Some(record) = self.record(experiment, id)? else { return Ok(None) };
        self.bytes(experiment, &record)?;
        Ok(Some(record))
    }

    /// The final errors of a cell that has results, a replicate each; `None` where
    /// it diverged.
    ///
    /// # Errors
    /// If they are not there, or not as they were written.
    pub fn finals(&self, experiment: &str, id: &str) -> Result<Vec<Option<f64>>, Error> {
        let path = self.cell_folder(experiment, id).join(TRACES);
        let record = self.record(experiment, id)?;
        let record = record.ok_or_else(|| error(&path, "is not there"))?;
        let bytes = self.bytes(experiment, &record)?;
        parquet::finals(bytes).map_err(|e| error(&path, e))
    }

    /// Whether a cell's results are there, its file read and checked.
    pub fn status(&self, experiment: &str, id: &str) -> Status {
        let checked = self.record(experiment, id).and_then(|record| match record {
            Some(record) => self.bytes(experiment, &record).map(|_| true),
            None => Ok(false),
        });
        match checked {
            Ok(true) => Status::Done,
            Ok(false) => Status::Missing,
            Err(e) => Status::Damaged(e.to_string()),
        }
    }

    /// A cell's results; `None` if it has none.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn read(&self, experiment: &str, id: &str) -> Result<Option<Stored>, Error> {
        let Some(record) = self.record(experiment, id)? else { return Ok(None) };
        let path = self.cell_folder(experiment, id).join(TRACES);
        let bytes = self.bytes(experiment, &record)?;
        let traces = parquet::read(bytes).map_err(|e| error(&path, e))?;
        if trace::digest(&traces) != record.digest {
            return Err(error(&path, "does not hold the numbers that it was written with"));
        }
        Ok(Some(Stored { record, traces }))
    }

    /// Stores a cell: beside its place, then renamed.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is left.
    pub fn write(
        &self,
        plan: &Plan,
        cell: &Cell,
        clients: usize,
        traces: &[Trace],
        elapsed: Duration,
        provenance: &Provenance,
    ) -> Result<(), Error> {
        let folder = self.folder(&plan.experiment);
        fs::create_dir_all(&folder).map_err(|e| error(&folder, e))?;
        let beside = tempfile::Builder::new()
            .prefix(".writing-")
            .tempdir_in(&folder)
            .map_err(|e| error(&folder, e))?;
        let path = beside.path().join(TRACES);
        let context = parquet::Context { plan, cell, clients, provenance };
        let bytes = parquet::write(&context, traces).map_err(|e| error(&path, e))?;
        fs::write(&path, &bytes).map_err(|e| error(&path, e))?;
        let record = CellRecord {
            id: cell.id.clone(),
            experiment: plan.experiment.clone(),
            label: cell.label.clone(),
            digest: trace::digest(traces),
            bytes: bytes.len() as u64,
            sha256: hex(&Sha256::digest(&bytes)),
            seconds: elapsed.as_secs_f64(),
            provenance: provenance.clone(),
            cell: cell.identity.canonical(),
        };
        let path = beside.path().join(CELL);
        let text = toml::to_string(&record).map_err(|e| error(&path, e))?;
        fs::write(&path, text).map_err(|e| error(&path, e))?;
        let place = self.cell_folder(&plan.experiment, &cell.id);
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|e| error(&place, e))?;
        }
        fs::rename(beside.path(), &place).map_err(|e| error(&place, e))?;
        let _ = beside.keep();
        Ok(())
    }

    /// Moves a damaged cell out of the way and says where it went.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn set_aside(&self, experiment: &str, id: &str) -> Result<PathBuf, Error> {
        let place = self.cell_folder(experiment, id);
        let free = (1..).map(|i| place.with_file_name(format!("{id}.damaged-{i}")));
        let aside = free.into_iter().find(|p| !p.exists()).unwrap_or_else(|| place.clone());
        fs::rename(&place, &aside).map_err(|e| error(&place, e))?;
        Ok(aside)
    }

    /// Stored labels follow the manifest's, which do not enter the id.
    ///
    /// # Errors
    /// If the cell cannot be read or written.
    pub fn relabel(&self, plan: &Plan, cell: &Cell, clients: usize) -> Result<(), Error> {
        match self.record(&plan.experiment, &cell.id)? {
            Some(record) if record.label != cell.label => {}
            _ => return Ok(()),
        }
        let Some(stored) = self.read(&plan.experiment, &cell.id)? else { return Ok(()) };
        let elapsed = Duration::from_secs_f64(stored.record.seconds.max(0.0));
        self.write(plan, cell, clients, &stored.traces, elapsed, &stored.record.provenance)
    }
}

/// Whether a folder's name is a cell's.
fn is_cell(name: &str) -> bool {
    name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
