//! Cells: found, read, written, wherever they are kept.
//!
//! *Invariant*: what is returned was checked against the hashes that it was written
//! with; numbers against their digest as well.

use super::pack::Packed;
use super::parquet::{self, Context, Entry, Rows};
use super::provenance::Provenance;
use super::record::{CellRecord, FailedRecord, checksummed, verify_checksum};
use super::{CELL, CellSummary, FAILED, Status, Store, StoredCell, TRACES};
use driftbench_runner::files::{Error, TemporaryFolder, error, read_plain, write_synced};
use driftbench_runner::plan::{Cell, Plan, cell_id, hex};
use driftbench_runner::trace::{self, Trace};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

impl Store {
    /// What `cell.toml` says of a cell in a folder of its own.
    pub(super) fn own_record(
        &self,
        experiment: &str,
        id: &str,
    ) -> Result<Option<CellRecord>, Error> {
        let path = self.cell_folder(experiment, id).join(CELL);
        let record: Option<CellRecord> = self.checksummed(&path)?;
        if let Some(CellRecord { id: named, cell, .. }) = &record {
            is_of(id, named, cell).map_err(|message| error(&path, message))?;
        }
        Ok(record)
    }

    /// A checksummed record; `None` if there is no such file.
    pub(super) fn checksummed<T: serde::de::DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<Option<T>, Error> {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => {
                let bytes = read_plain(path)?;
                verify_checksum(&bytes).map(Some).map_err(|e| error(path, e))
            }
        }
    }

    /// Where a cell is kept; `None` if it has no results.
    pub(super) fn find(&self, experiment: &str, id: &str) -> Result<Option<Kept>, Error> {
        let packs = self.packs(experiment)?;
        if let Some(record) = self.own_record(experiment, id)? {
            return Ok(Some(Kept::Alone(Box::new(record))));
        }
        Ok(packs.cell(id).map(Kept::Packed))
    }

    /// The bytes of a cell's own Parquet file, if they are those that were written.
    pub(super) fn bytes(&self, experiment: &str, record: &CellRecord) -> Result<Vec<u8>, Error> {
        let path = self.cell_folder(experiment, &record.id).join(TRACES);
        let bytes = whole(&path, record.bytes, &record.sha256)?;
        parquet::of_cells(&bytes, [(&*record.id, None)]).map_err(|e| error(&path, e))?;
        Ok(bytes)
    }

    /// What is written down of a cell, its numbers checked and not decoded; `None` if
    /// it has no results.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn checked(&self, experiment: &str, id: &str) -> Result<Option<CellSummary>, Error> {
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
    pub fn summary(&self, experiment: &str, id: &str) -> Result<Option<CellSummary>, Error> {
        Ok(self.find(experiment, id)?.map(|kept| kept.summary()))
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

    pub(super) fn found(&self, experiment: &str, id: &str) -> Result<Kept, Error> {
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
        let path = self.cell_folder(experiment, id).join(FAILED);
        let record = self.checksummed(&path)?;
        if let Some(FailedRecord { id: named, cell, .. }) = &record {
            is_of(id, named, cell).map_err(|message| error(&path, message))?;
        }
        Ok(record)
    }

    /// A cell's results; `None` if it has none.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error> {
        let Some(kept) = self.find(experiment, id)? else { return Ok(None) };
        let record = kept.summary();
        let traces = self.rows(experiment, kept, |traces, _, _| traces)?;
        Ok(Some(StoredCell { record, traces }))
    }

    /// What `of` makes of a cell's traces and of the rows that they are read from. Their
    /// digest is that of the record.
    pub(super) fn rows<T>(
        &self,
        experiment: &str,
        kept: Kept,
        of: impl FnOnce(Vec<Trace>, &Rows, Range<usize>) -> T,
    ) -> Result<T, Error> {
        let CellSummary { id, digest, .. } = kept.summary();
        let checked = |path: &Path, rows: &Rows, range: Range<usize>| {
            let traces = rows.traces(range.clone()).map_err(|e| error(path, e))?;
            if trace::digest(&traces) == digest {
                return Ok(of(traces, rows, range));
            }
            let message = format!("does not hold the numbers of cell {id} as they were written");
            Err(error(path, message))
        };
        match kept {
            Kept::Alone(record) => {
                let path = self.cell_folder(experiment, &id).join(TRACES);
                let rows = Rows::read(self.bytes(experiment, &record)?);
                let rows = rows.map_err(|e| error(&path, e))?;
                checked(&path, &rows, 0..rows.len())
            }
            Kept::Packed(cell) => {
                cell.rows(&self.recent, |rows, range| checked(&cell.file(), rows, range))?
            }
        }
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
        let text = checksummed(&record).map_err(|e| error(&place, e))?;
        let temporary = TemporaryFolder::new(&folder)?;
        temporary.add(TRACES, bytes)?;
        temporary.add(CELL, text.as_bytes())?;
        temporary.settle(&place)
    }

    /// Writes down that a cell could not be run to its end. Results that it had stay.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_failed(&self, failed: &FailedRecord) -> Result<(), Error> {
        self.make_folder(&failed.experiment)?;
        let place = self.cell_folder(&failed.experiment, &failed.id);
        if place.is_symlink() {
            return Err(error(&place, "is a symbolic link, which results do not follow"));
        }
        fs::create_dir_all(&place).map_err(|e| error(&place, e))?;
        let path = place.join(FAILED);
        let text = checksummed(failed).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }

    /// StoredCell labels follow the manifest's, which do not enter the id.
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

/// Sees that a record is of the cell in whose place it stands: by its name, and by the
/// settings that the name is the hash of.
fn is_of(id: &str, named: &str, settings: &toml::Table) -> Result<(), String> {
    if named != id {
        return Err(format!("is of another cell, {named}"));
    }
    match cell_id(&settings.to_string()) {
        hash if hash == id => Ok(()),
        hash => Err(format!("has other settings than those of cell {id}: they are of {hash}")),
    }
}

/// Where a cell's results are.
pub enum Kept {
    /// In a folder of their own.
    Alone(Box<CellRecord>),
    /// With others.
    Packed(Packed),
}

impl Kept {
    /// What is written down of the cell.
    pub fn summary(&self) -> CellSummary {
        match self {
            Self::Alone(record) => record.summary(),
            Self::Packed(cell) => cell.summary(),
        }
    }
}

/// The bytes of a file, if they are those that were written.
pub fn whole(path: &Path, bytes: u64, sha256: &str) -> Result<Vec<u8>, Error> {
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
