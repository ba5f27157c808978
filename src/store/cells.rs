//! Cells: found, read and written, whether they have a folder of their own or not.
//!
//! *Invariant*: results that are returned were checked against the hashes that they were
//! written with, and numbers against their digest as well.

use super::batch::{Batch, BatchHead, BatchLine};
use super::checksum::{read_checked, with_checksum};
use super::parquet::{self, TraceRows};
use super::paths::FAILED;
use super::record::{FailedRecord, check_folder, check_settings};
use super::{Status, Store};
use exactfed_evidence::results::{CellSummary, Provenance, StoredCell};
use exactfed_runner::files::{Error, create_below, error, write_synced};
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::Done;
use exactfed_runner::trace::{self, Trace};
use polars::frame::DataFrame;
use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl Store {
    /// The batch that holds a cell, and the number of the cell in it; `None` if the cell has no
    /// results.
    pub(super) fn find(
        &self,
        experiment: &str,
        id: &str,
    ) -> Result<Option<(Arc<Batch>, usize)>, Error> {
        let packs = self.packs(experiment)?;
        let single = Batch::open_single(&self.cell_folder(experiment, id))?;
        Ok(single.map(|batch| (Arc::new(batch), 0)).or_else(|| packs.find(id)))
    }

    /// The batch that holds a cell that has results.
    fn find_stored(&self, experiment: &str, id: &str) -> Result<(Arc<Batch>, usize), Error> {
        let absent = || error(&self.cell_folder(experiment, id), "has no results");
        self.find(experiment, id)?.ok_or_else(absent)
    }

    /// The record of a cell, whose numbers are checked and not decoded; `None` if it has no
    /// results.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn checked_summary(
        &self,
        experiment: &str,
        id: &str,
    ) -> Result<Option<CellSummary>, Error> {
        let Some((batch, i)) = self.find(experiment, id)? else { return Ok(None) };
        batch.check()?;
        Ok(Some(batch.summary(i)))
    }

    /// The record of a cell, whose numbers are not read; `None` if it has no results.
    ///
    /// # Errors
    /// If the record is not as it was written.
    pub fn summary(&self, experiment: &str, id: &str) -> Result<Option<CellSummary>, Error> {
        Ok(self.find(experiment, id)?.map(|(batch, i)| batch.summary(i)))
    }

    /// The settings that determine the numbers of a cell that has results.
    ///
    /// # Errors
    /// If it has none, or they are not as they were written.
    pub fn settings(&self, experiment: &str, id: &str) -> Result<toml::Table, Error> {
        let (batch, i) = self.find_stored(experiment, id)?;
        batch.settings(i)
    }

    /// The final errors of a cell that has results, one per replicate; `None` if it diverged.
    ///
    /// # Errors
    /// If there are no results, or they are not as they were written.
    pub fn finals(&self, experiment: &str, id: &str) -> Result<Vec<Option<f64>>, Error> {
        let (batch, i) = self.find_stored(experiment, id)?;
        self.with_rows(&batch, i, TraceRows::finals)
    }

    /// What `read` makes of the rows of the `i`-th cell of a batch.
    fn with_rows<T>(
        &self,
        batch: &Batch,
        i: usize,
        read: impl FnOnce(&TraceRows, Range<usize>) -> T,
    ) -> Result<T, Error> {
        let shared = self.recent.rows(batch);
        let rows = shared.get_or_init(|| batch.read_rows()).as_ref().map_err(Clone::clone)?;
        Ok(read(rows, batch.range(i, rows)))
    }

    /// The state of a cell's results, whose file is read and checked.
    pub fn status(&self, experiment: &str, id: &str) -> Status {
        let status = || -> Result<Status, Error> {
            if self.checked_summary(experiment, id)?.is_some() {
                return Ok(Status::Done);
            }
            let failed = self.failed(experiment, id)?;
            Ok(failed.map_or(Status::Missing, |failed| Status::Failed(failed.reason)))
        };
        status().unwrap_or_else(|e| Status::Damaged(e.to_string()))
    }

    /// The record of a cell that could not be run to its end; `None` if there is none.
    ///
    /// # Errors
    /// If it is not as it was written.
    pub fn failed(&self, experiment: &str, id: &str) -> Result<Option<FailedRecord>, Error> {
        let path = self.cell_folder(experiment, id).join(FAILED);
        let record: Option<FailedRecord> = read_checked(&path)?;
        if let Some(FailedRecord { id: stored, cell, .. }) = &record {
            let checked = check_folder(id, stored);
            let checked = checked.and_then(|()| check_settings(id, &cell.to_string()));
            checked.map_err(|message| error(&path, message))?;
        }
        Ok(record)
    }

    /// A cell's results; `None` if it has none.
    ///
    /// # Errors
    /// If they are not as they were written.
    pub fn read(&self, experiment: &str, id: &str) -> Result<Option<StoredCell>, Error> {
        let Some((batch, i)) = self.find(experiment, id)? else { return Ok(None) };
        let (traces, ()) = self.read_traces(&batch, i, |_, _| ())?;
        Ok(Some(StoredCell { record: batch.summary(i), traces }))
    }

    /// The rows of a cell that has results, as they are in its file.
    ///
    /// # Errors
    /// If there are no results, or they are not as they were written.
    pub(super) fn read_frame(&self, experiment: &str, id: &str) -> Result<DataFrame, Error> {
        let (batch, i) = self.find_stored(experiment, id)?;
        let slice = |rows: &TraceRows, range: Range<usize>| {
            rows.frame.slice(range.start as i64, range.len())
        };
        Ok(self.read_traces(&batch, i, slice)?.1)
    }

    /// The traces of the `i`-th cell of a batch, whose digest is that of the record, and what
    /// `also` makes of their rows.
    fn read_traces<T>(
        &self,
        batch: &Batch,
        i: usize,
        also: impl FnOnce(&TraceRows, Range<usize>) -> T,
    ) -> Result<(Vec<Trace>, T), Error> {
        let path = batch.traces_file();
        let read = |rows: &TraceRows, range: Range<usize>| {
            rows.traces(range.clone()).map(|traces| (traces, also(rows, range)))
        };
        let (traces, other) = self.with_rows(batch, i, read)?.map_err(|e| error(&path, e))?;
        let CellSummary { id, digest, .. } = batch.summary(i);
        if trace::digest(&traces) == digest {
            return Ok((traces, other));
        }
        Err(error(&path, format!("does not hold the numbers of cell {id} as they were written")))
    }

    /// The order in which reading these cells of an experiment is fastest: the one in which
    /// they are in the files. The order is of places in `ids`.
    pub fn reading_order(&self, experiment: &str, ids: &[&str]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if let Ok(packs) = self.packs(experiment) {
            order.sort_by_cached_key(|&i| packs.place(ids[i]));
        }
        order
    }

    /// Stores a cell in a folder of its own.
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
        let done = Done { cell, clients, traces: traces.to_vec(), elapsed, optimum_error: None };
        self.write_batch(plan, &[done], provenance, None)
    }

    /// Stores cells in one pack of this generation, or a single cell in a folder of its own.
    /// Earlier results of these cells no longer count.
    ///
    /// # Errors
    /// If they cannot be written; then nothing is left.
    pub(super) fn write_batch(
        &self,
        plan: &Plan,
        cells: &[Done<'_>],
        provenance: &Provenance,
        generation: Option<u64>,
    ) -> Result<(), Error> {
        let folder = self.make_folder(&plan.experiment)?;
        let single = cells.first().map(|new| new.cell).filter(|_| generation.is_none());
        let traces = parquet::write(plan, provenance, single, cells);
        let traces = traces.map_err(|e| error(&folder, e))?;
        let line = |new: &Done<'_>| BatchLine {
            id: new.cell.id.clone(),
            label: new.cell.label.clone(),
            digest: trace::digest(&new.traces),
            rows: new.traces.iter().map(Trace::rows).sum(),
            seconds: new.elapsed.as_secs_f64(),
            optimum_error: new.optimum_error,
            cell: new.cell.identity.canonical().to_string(),
        };
        let head = BatchHead {
            experiment: plan.experiment.clone(),
            generation,
            provenance: provenance.clone(),
            ..BatchHead::default()
        };
        let place = Batch::write(&folder, head, cells.iter().map(line).collect(), &traces)?;
        for new in cells {
            let earlier = self.cell_folder(&plan.experiment, &new.cell.id);
            if earlier != place && earlier.is_dir() {
                fs::remove_dir_all(&earlier).map_err(|e| error(&earlier, e))?;
            }
        }
        self.forget_packs(&plan.experiment);
        Ok(())
    }

    /// Records that a cell could not be run to its end. Results that it had stay.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn write_failed(&self, failed: &FailedRecord) -> Result<(), Error> {
        let place = self.cell_folder(&failed.experiment, &failed.id);
        create_below(&self.root, &place)?;
        let path = place.join(FAILED);
        let text = with_checksum(failed).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }
}
