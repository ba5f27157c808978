//! Cells: found, summarised and written.

use super::checksum::{read_checked, with_checksum};
use super::pack::{Pack, PackHead, PackLine, check_settings};
use super::parquet::{self, TraceRows};
use super::paths::FAILED;
use super::{Status, Store};
use exactfed_core::round_program::Traced;
use exactfed_evidence::results::{CellSummary, Provenance};
use exactfed_runner::files::{Error, error, write_synced};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::panics::lock;
use exactfed_runner::plan::{Cell, CellId, Plan};
use exactfed_runner::runner::Done;
use exactfed_runner::trace::{self, Trace};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The record of a cell that could not be run to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedRecord {
    /// Content id.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the curve.
    pub label: String,
    /// The reason why it failed.
    pub reason: String,
    /// The program that ran it.
    pub provenance: Provenance,
    /// The settings that determine the numbers.
    pub cell: toml::Table,
}

impl Store {
    /// The pack that holds a cell that has results, and the number of the cell in it.
    pub(super) fn find(&self, experiment: &str, id: &str) -> Result<(Arc<Pack>, usize), Error> {
        let absent = || error(&self.folder(experiment), format!("has no results of cell {id}"));
        self.packs(experiment)?.find(id)?.ok_or_else(absent)
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
        let Some((pack, i)) = self.packs(experiment)?.find(id)? else { return Ok(None) };
        pack.check()?;
        Ok(Some(pack.cells[i].record.clone()))
    }

    /// The record of a cell, whose numbers are not read; `None` if it has no results.
    ///
    /// # Errors
    /// If the record is not as it was written.
    pub fn summary(&self, experiment: &str, id: &str) -> Result<Option<CellSummary>, Error> {
        Ok(self.packs(experiment)?.find(id)?.map(|(pack, i)| pack.cells[i].record.clone()))
    }

    /// The final values of a measured quantity of a cell that has results, one per replicate; `None` if
    /// it diverged.
    ///
    /// # Errors
    /// If there are no results, or they are not as they were written.
    pub fn finals(
        &self,
        experiment: &str,
        id: &str,
        of: Quantity,
    ) -> Result<Vec<Option<f64>>, Error> {
        let (pack, i) = self.find(experiment, id)?;
        self.with_rows(&pack, i, |rows, range| rows.finals(range, of))
    }

    /// What `read` makes of the rows of the `i`-th cell of a pack.
    pub(super) fn with_rows<T>(
        &self,
        pack: &Pack,
        i: usize,
        read: impl FnOnce(&TraceRows, Range<usize>) -> T,
    ) -> Result<T, Error> {
        let shared = self.recent.rows(pack);
        let rows = shared.get_or_init(|| pack.read()).as_ref().map_err(Clone::clone)?;
        Ok(read(rows, pack.rows(i)))
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
        self.refuse_links(experiment)?;
        let path = self.failed_file(experiment, id);
        let record: Option<FailedRecord> = read_checked(&path)?;
        if let Some(FailedRecord { id: stored, cell, .. }) = &record {
            let is_other = || error(&path, format!("is of another cell, {stored}"));
            let id = CellId::read(stored).filter(|stored| *stored == *id).ok_or_else(is_other)?;
            check_settings(id, &cell.to_string()).map_err(|message| error(&path, message))?;
        }
        Ok(record)
    }

    /// Stores a cell, of which earlier results are removed.
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
        let (traces, optimum_error, programs) = (traces.to_vec(), None, Vec::new());
        let done = Done { cell, clients, traces, elapsed, optimum_error, programs };
        let generation = self.packs(&plan.experiment)?.next_generation();
        self.write_pack(plan, &[done], provenance, generation)?;
        self.remove_superseded(&plan.experiment)
    }

    /// Stores cells in one pack of this generation. Earlier results of these cells no longer count.
    ///
    /// # Errors
    /// If they cannot be written; then nothing is left.
    pub(super) fn write_pack(
        &self,
        plan: &Plan,
        cells: &[Done<'_>],
        provenance: &Provenance,
        generation: u64,
    ) -> Result<(), Error> {
        let experiment = plan.experiment.clone();
        let folder = self.make_folder(&experiment)?;
        let line = |new: &Done<'_>| PackLine {
            id: new.cell.id,
            label: new.cell.label.clone(),
            digest: trace::digest(&new.traces),
            rows: new.traces.iter().map(Trace::rows).sum(),
            seconds: new.elapsed.as_secs_f64(),
            optimum_error: new.optimum_error,
            cell: new.cell.identity.canonical().to_string(),
            programs: new.programs.iter().map(|program| Traced::clone(program)).collect(),
        };
        let lines: Vec<PackLine> = cells.iter().map(line).collect();
        let provenance = provenance.clone();
        let head = PackHead { experiment, generation, provenance, ..PackHead::default() };
        let frame = parquet::frame(plan, cells).map_err(|e| error(&folder, e))?;
        let path = Pack::write(&folder, head, &lines, &plan.source.text, frame)?;
        for new in cells {
            let failed = self.failed_file(&plan.experiment, &new.cell.id);
            if failed.is_file() {
                fs::remove_file(&failed).map_err(|e| error(&failed, e))?;
            }
        }
        let opened = lock(&self.packs).get(&plan.experiment).cloned();
        if let Some(opened) = opened
            && let Some(packs) = &mut *lock(&opened)
        {
            Arc::make_mut(packs).push(Pack::open(&path)?);
        }
        Ok(())
    }

    /// Records that a cell could not be run to its end. Results that it had stay.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn write_failed(&self, failed: &FailedRecord) -> Result<(), Error> {
        self.make_folder(&failed.experiment)?;
        let path = self.failed_file(&failed.experiment, &failed.id);
        let text = with_checksum(failed).map_err(|e| error(&path, e))?;
        write_synced(&path, text.as_bytes())
    }

    /// The file of the record of a cell that could not be run to its end.
    fn failed_file(&self, experiment: &str, id: &str) -> PathBuf {
        self.folder(experiment).join(format!("{id}{FAILED}"))
    }
}
