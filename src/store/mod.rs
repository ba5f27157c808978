//! Results on disk: a folder a cell, written beside its place and renamed.
//!
//! *Invariant*: a cell counts as done when its `cell.toml` is there and its
//! Parquet file has the length and the hash that are written in it; what is
//! half written never counts.

mod columns;
pub mod export;
pub mod git;
mod keeper;
mod lock;
mod mend;
mod pack;
mod parquet;
pub mod provenance;
mod record;

use crate::files::{Beside, Error, error, read_plain, write_synced};
use crate::manifest::Source;
use crate::plan::{Cell, Plan, hex};
use crate::trace::{self, Trace};
pub use columns::Columns;
pub use keeper::Keeper;
pub use lock::Lock;
use pack::{Packed, Packs, Recent};
use parquet::{Context, Entry, Rows};
use provenance::Provenance;
pub use record::{CellRecord, FailedRecord};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Version of the files; a folder of another version is refused.
pub const SCHEMA: u32 = 3;

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

/// What is written down of a cell, but for its settings.
#[derive(Clone, Debug)]
pub struct Summary {
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
pub struct Stored {
    /// What is written down of it.
    pub record: Summary,
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

    /// All experiments' cells that have results: the experiment's name, and an id.
    ///
    /// # Errors
    /// If a folder or file cannot be read.
    pub fn all_cells(&self) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        for Experiment { name, .. } in self.experiments()? {
            let ids = self.ids(&name)?.into_iter();
            found.extend(ids.map(|id| (name.clone(), id)));
        }
        Ok(found)
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

    /// Writes down what is run, for reports.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep_experiment(&self, plan: &Plan) -> Result<(), Error> {
        let folder = self.make_folder(&plan.experiment)?;
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
        write_synced(&path, text.as_bytes())
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
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            // Symbolic links are not followed out of the results.
            if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.search(&entry.path(), found)?;
            }
        }
        Ok(())
    }

    /// What `cell.toml` says of a cell in a folder of its own.
    fn own_record(&self, experiment: &str, id: &str) -> Result<Option<CellRecord>, Error> {
        let path = self.cell_folder(experiment, id).join(CELL);
        let record: Option<CellRecord> = self.sealed(&path)?;
        match record {
            Some(record) if record.id != id => Err(error(&path, "is another cell's")),
            found => Ok(found),
        }
    }

    /// A sealed record; `None` if there is no such file.
    fn sealed<T: serde::de::DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => {
                let bytes = read_plain(path)?;
                record::unsealed(&bytes).map(Some).map_err(|e| error(path, e))
            }
        }
    }

    /// Where a cell is kept; `None` if it has no results.
    fn find(&self, experiment: &str, id: &str) -> Result<Option<Kept>, Error> {
        let packs = self.packs(experiment)?;
        if let Some(record) = self.own_record(experiment, id)? {
            return Ok(Some(Kept::Alone(Box::new(record))));
        }
        Ok(packs.cell(id).map(Kept::Packed))
    }

    /// The bytes of a cell's own Parquet file, if they are those that were written.
    fn bytes(&self, experiment: &str, record: &CellRecord) -> Result<Vec<u8>, Error> {
        let path = self.cell_folder(experiment, &record.id).join(TRACES);
        whole(&path, record.bytes, &record.sha256)
    }

    /// What is written down of a cell, its numbers checked and not decoded; `None` if
    /// it has no results.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn checked(&self, experiment: &str, id: &str) -> Result<Option<Summary>, Error> {
        Ok(match self.find(experiment, id)? {
            None => None,
            Some(Kept::Alone(record)) => {
                self.bytes(experiment, &record)?;
                Some(record.summary())
            }
            Some(Kept::Packed(cell)) => {
                cell.check()?;
                Some(cell.summary())
            }
        })
    }

    /// What is written down of a cell, its numbers not looked at; `None` if it has no
    /// results.
    ///
    /// # Errors
    /// If it is not as it was written.
    pub fn summary(&self, experiment: &str, id: &str) -> Result<Option<Summary>, Error> {
        Ok(self.find(experiment, id)?.map(|kept| match kept {
            Kept::Alone(record) => record.summary(),
            Kept::Packed(cell) => cell.summary(),
        }))
    }

    /// What determines the numbers of a cell that has results.
    ///
    /// # Errors
    /// If it has none, or they are not as they were written.
    pub fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error> {
        match self.found(experiment, id)? {
            Kept::Alone(record) => Ok(record.cell),
            Kept::Packed(cell) => cell.settings(),
        }
    }

    fn found(&self, experiment: &str, id: &str) -> Result<Kept, Error> {
        let absent = || error(&self.cell_folder(experiment, id), "has no results");
        self.find(experiment, id)?.ok_or_else(absent)
    }

    /// The final errors of a cell that has results, a replicate each; `None` where
    /// it diverged.
    ///
    /// # Errors
    /// If they are not there, or not as they were written.
    pub fn finals(&self, experiment: &str, id: &str) -> Result<Vec<Option<f64>>, Error> {
        match self.found(experiment, id)? {
            Kept::Alone(record) => {
                let path = self.cell_folder(experiment, id).join(TRACES);
                parquet::finals(self.bytes(experiment, &record)?).map_err(|e| error(&path, e))
            }
            Kept::Packed(cell) => cell.rows(&self.recent, Rows::finals),
        }
    }

    /// Whether a cell's results are there, its file read and checked.
    pub fn status(&self, experiment: &str, id: &str) -> Status {
        match self.checked(experiment, id) {
            Ok(Some(_)) => Status::Done,
            Ok(None) => match self.failed(experiment, id) {
                Ok(Some(failed)) => Status::Failed(failed.reason),
                Ok(None) => Status::Missing,
                Err(e) => Status::Damaged(e.to_string()),
            },
            Err(e) => Status::Damaged(e.to_string()),
        }
    }

    /// Why a cell could not be run to its end; `None` if that is not known of it.
    ///
    /// # Errors
    /// If what is written down is not as it was written.
    pub fn failed(&self, experiment: &str, id: &str) -> Result<Option<FailedRecord>, Error> {
        self.sealed(&self.cell_folder(experiment, id).join(FAILED))
    }

    /// A cell's results; `None` if it has none.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn read(&self, experiment: &str, id: &str) -> Result<Option<Stored>, Error> {
        let Some(kept) = self.find(experiment, id)? else { return Ok(None) };
        let (record, traces, path) = match kept {
            Kept::Alone(record) => {
                let path = self.cell_folder(experiment, id).join(TRACES);
                let rows = Rows::read(self.bytes(experiment, &record)?);
                let rows = rows.map_err(|e| error(&path, e))?;
                (record.summary(), rows.traces(0..rows.len()), path)
            }
            Kept::Packed(cell) => {
                let traces = cell.rows(&self.recent, Rows::traces)?;
                (cell.summary(), traces, cell.file())
            }
        };
        let traces = traces.map_err(|e| error(&path, e))?;
        if trace::digest(&traces) != record.digest {
            let message = format!("does not hold the numbers of cell {id} as they were written");
            return Err(error(&path, message));
        }
        Ok(Some(Stored { record, traces }))
    }

    /// These cells of an experiment in an order in which reading them is fastest: as
    /// they stand in files that hold many. Their numbers in `ids` are returned.
    pub fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if let Ok(packs) = self.packs(experiment) {
            order.sort_by_cached_key(|&i| packs.place(ids[i]));
        }
        order
    }

    /// Stores a cell in a folder of its own: beside its place, then renamed.
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
        let place = self.cell_folder(&plan.experiment, &cell.id);
        let context = Context { plan, cell: Some(cell), provenance };
        let bytes = parquet::write(&context, &[&Entry { cell, clients, traces }]);
        let bytes = bytes.map_err(|e| error(&place, e))?;
        let record = CellRecord {
            id: cell.id.clone(),
            experiment: plan.experiment.clone(),
            label: cell.label.clone(),
            digest: trace::digest(traces),
            bytes: 0,
            sha256: String::new(),
            seconds: elapsed.as_secs_f64(),
            provenance: provenance.clone(),
            cell: cell.identity.canonical(),
        };
        self.settle(plan, record, &bytes)
    }

    /// Puts a cell and the bytes of its Parquet file in place.
    fn settle(&self, plan: &Plan, record: CellRecord, bytes: &[u8]) -> Result<(), Error> {
        let folder = self.make_folder(&plan.experiment)?;
        let place = self.cell_folder(&plan.experiment, &record.id);
        let (length, sha256) = (bytes.len() as u64, hex(&Sha256::digest(bytes)));
        let record = CellRecord { bytes: length, sha256, ..record };
        let text = record::sealed(&record).map_err(|e| error(&place, e))?;
        let beside = Beside::new(&folder)?;
        beside.add(TRACES, bytes)?;
        beside.add(CELL, text.as_bytes())?;
        beside.settle(&place)
    }

    /// Writes down that a cell could not be run to its end. Results that it had stay.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_failed(&self, failed: &FailedRecord) -> Result<(), Error> {
        self.make_folder(&failed.experiment)?;
        let place = self.cell_folder(&failed.experiment, &failed.id);
        fs::create_dir_all(&place).map_err(|e| error(&place, e))?;
        let path = place.join(FAILED);
        let text = record::sealed(failed).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }

    /// Stored labels follow the manifest's, which do not enter the id.
    ///
    /// # Errors
    /// If a cell cannot be read or written.
    pub fn relabel(&self, plan: &Plan, cells: &[&Cell]) -> Result<(), Error> {
        let mut packed = HashMap::new();
        for cell in cells {
            match self.find(&plan.experiment, &cell.id)? {
                Some(Kept::Alone(record)) if record.label != cell.label => {
                    self.relabel_alone(plan, cell, *record)?;
                }
                Some(Kept::Packed(held)) if held.summary().label != cell.label => {
                    packed.insert(&*cell.id, &*cell.label);
                }
                _ => {}
            }
        }
        if packed.is_empty() { Ok(()) } else { self.relabel_packs(plan, &packed) }
    }

    fn relabel_alone(&self, plan: &Plan, cell: &Cell, record: CellRecord) -> Result<(), Error> {
        let place = self.cell_folder(&plan.experiment, &cell.id);
        let bytes = self.bytes(&plan.experiment, &record)?;
        let context = Context { plan, cell: Some(cell), provenance: &record.provenance };
        let bytes = parquet::relabelled(bytes, std::iter::repeat(&*cell.label), &context);
        let bytes = bytes.map_err(|e| error(&place, e))?;
        self.settle(plan, CellRecord { label: cell.label.clone(), ..record }, &bytes)
    }
}

/// Where a cell's results are.
enum Kept {
    /// In a folder of their own.
    Alone(Box<CellRecord>),
    /// With others.
    Packed(Packed),
}

/// The bytes of a file, if they are those that were written.
fn whole(path: &Path, bytes: u64, sha256: &str) -> Result<Vec<u8>, Error> {
    let found = read_plain(path)?;
    if found.len() as u64 != bytes {
        let have = found.len();
        let message = format!("has {have} bytes, not {bytes} as when it was written");
        return Err(error(path, message));
    }
    if hex(&Sha256::digest(&found)) != sha256 {
        return Err(error(path, "does not have the hash that it was written with"));
    }
    Ok(found)
}

/// Whether a folder's name is a cell's.
fn is_cell(name: &str) -> bool {
    name.len() == 16 && name.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
