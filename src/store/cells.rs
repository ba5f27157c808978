//! Cells: found, summarised and written.

use super::folder::Store;
use super::pack::{EncodeError, Pack, PackHead, PackLine};
use super::packs::CellInPack;
use super::parquet::{self, TraceRows};
use exactfed_core::round_program::Traced;
use exactfed_evidence::results::{CellSummary, Provenance};
use exactfed_runner::files::{Error, error};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::Done;
use exactfed_runner::trace::{self, Trace};
use std::ops::Range;
use std::time::Duration;

/// The state of a cell's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// They are complete.
    Done,
    /// There are none.
    Missing,
    /// They are not as they were written, or there are none in a sound pack and another pack of the experiment, whose
    /// index is damaged, may hold them; or the record of the failure of the cell is damaged. The text is the message of
    /// the error.
    Damaged(String),
    /// The cell could not be run to its end, for this reason.
    Failed(String),
}

impl Status {
    /// The word for the state in the list of `plan`, and in the frame of cells that Python shows.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Missing => "missing",
            Self::Damaged(_) => "damaged",
            Self::Failed(_) => "failed",
        }
    }
}

impl Store {
    /// The pack of a cell that must have results, and its place there.
    ///
    /// # Errors
    /// If it has none, or packs cannot be read.
    pub(super) fn find(&self, experiment: &str, id: &str) -> Result<CellInPack, Error> {
        let found = self.packs(experiment)?.find(id)?;
        found.ok_or_else(|| error(&self.folder(experiment), format!("has no results of cell {id}")))
    }

    /// The record of a cell, whose pack is read and checked, though its numbers are not decoded; `None` if it has no
    /// results. The file is read once for all cells of the pack.
    ///
    /// # Errors
    /// If the pack is not as it was written, also where the rows of another cell were changed.
    pub fn checked_summary(
        &self,
        experiment: &str,
        id: &str,
    ) -> Result<Option<CellSummary>, Error> {
        let Some(CellInPack { pack, index }) = self.packs(experiment)?.find(id)? else {
            return Ok(None);
        };
        pack.check()?;
        Ok(Some(pack.cells[index].record.clone()))
    }

    /// The record of a cell, whose numbers are not read; `None` if it has no results.
    ///
    /// # Errors
    /// If packs cannot be read, or no sound pack has the cell and there is one with a damaged index.
    pub fn summary(&self, experiment: &str, id: &str) -> Result<Option<CellSummary>, Error> {
        let found = self.packs(experiment)?.find(id)?;
        Ok(found.map(|found| found.pack.cells[found.index].record.clone()))
    }

    /// The final values of a measured quantity of a cell that has results, one per replicate over all instances; `None`
    /// for a replicate that diverged, and for all if the cell has not recorded the quantity, or it is a cost.
    ///
    /// # Errors
    /// If there are no results, or they are not as they were written.
    pub fn finals(
        &self,
        experiment: &str,
        id: &str,
        of: Quantity,
    ) -> Result<Vec<Option<f64>>, Error> {
        let found = self.find(experiment, id)?;
        self.with_rows(&found, |rows, range| rows.finals(range, of))
    }

    /// Calls `read` with all rows of a cell's pack and the range of the cell's own rows among them, and returns what it
    /// returns. The rows are read from the file and checked unless they are still held from an earlier call: neighbours
    /// in a pack are mostly read one after another.
    pub(super) fn with_rows<T>(
        &self,
        cell: &CellInPack,
        read: impl FnOnce(&TraceRows, Range<usize>) -> T,
    ) -> Result<T, Error> {
        let shared = self.recent_rows.rows(&cell.pack);
        match shared.get_or_init(|| cell.pack.read_rows()) {
            Ok(rows) => Ok(read(rows, cell.pack.rows(cell.index))),
            Err(e) => Err(e.clone()),
        }
    }

    /// The state of a cell's results, whose whole file is read and checked. A cell with results is done, also if a
    /// later run of it has failed.
    pub fn status(&self, experiment: &str, id: &str) -> Status {
        match self.checked_summary(experiment, id) {
            Ok(Some(_)) => return Status::Done,
            Ok(None) => {}
            Err(e) => return Status::Damaged(e.to_string()),
        }
        match self.failed(experiment, id) {
            Ok(Some(failed)) => Status::Failed(failed.reason),
            Ok(None) => Status::Missing,
            Err(e) => Status::Damaged(e.to_string()),
        }
    }

    /// Stores the traces of a cell on `clients` clients, one for each replicate, which were computed in `elapsed`, and
    /// removes its earlier results. Tests and benchmarks call it; a run uses a [`BatchWriter`](super::BatchWriter).
    ///
    /// # Errors
    /// If the cell cannot be written: then its earlier results stay and count, and nothing new is left. Or if its
    /// earlier results, or the record of its failure, cannot be removed: then they are stored next to the new ones,
    /// which count.
    pub fn write(
        &self,
        plan: &Plan,
        cell: &Cell,
        clients: usize,
        traces: &[Trace],
        elapsed: Duration,
        provenance: &Provenance,
    ) -> Result<(), Error> {
        let done = Done {
            cell,
            clients,
            traces: traces.to_vec(),
            elapsed,
            optimum_error: None,
            programs: Vec::new(),
        };
        let generation = self.packs(&plan.experiment)?.next_generation();
        self.write_pack(plan, &[done], provenance, generation)?;
        self.remove_superseded(&plan.experiment)
    }

    /// Stores cells in one pack of this generation, which must be higher than the generation of every other pack that
    /// has one of the cells, and not lower than that of any other. Earlier results of these cells no longer count,
    /// though they stay until they are [removed](Self::remove_superseded), and records of their failures are removed.
    /// The caller holds the lock of the experiment.
    ///
    /// # Errors
    /// If the pack cannot be written: then nothing of it is left. Or if the record of a failure cannot be removed, or
    /// the pack cannot be opened again: then the pack is stored, and its cells count.
    pub(super) fn write_pack(
        &self,
        plan: &Plan,
        cells: &[Done<'_>],
        provenance: &Provenance,
        generation: u64,
    ) -> Result<(), Error> {
        let experiment = &plan.experiment;
        let folder = self.make_folder(experiment)?;
        let lines: Vec<PackLine> = cells.iter().map(pack_line).collect();
        let head = PackHead {
            experiment: experiment.clone(),
            generation,
            provenance: provenance.clone(),
            ..PackHead::default()
        };
        let frame = parquet::rows_frame(plan, cells).map_err(|e| error(&folder, e))?;
        let path = Pack::write(&folder, head, &lines, &plan.source.text, frame)?;
        for done in cells {
            self.remove_failed(experiment, &done.cell.id)?;
        }
        self.add_pack(experiment, &path)
    }
}

/// Encodes cells as one pack, as they are stored, and writes nothing: an estimate of the time of a run measures how
/// long this takes. Returns the number of bytes.
///
/// # Errors
/// If they cannot be encoded.
pub fn encoded_size(
    plan: &Plan,
    cells: &[Done<'_>],
    provenance: &Provenance,
) -> Result<usize, EncodeError> {
    let lines: Vec<PackLine> = cells.iter().map(pack_line).collect();
    let experiment = plan.experiment.clone();
    let head = PackHead { experiment, provenance: provenance.clone(), ..PackHead::default() };
    let frame = parquet::rows_frame(plan, cells)?;
    Ok(Pack::encode(head, &lines, &plan.source.text, frame)?.len())
}

/// What the index of a pack says of a cell, with the digest of its traces, which is computed here.
fn pack_line(done: &Done<'_>) -> PackLine {
    PackLine {
        id: done.cell.id,
        label: done.cell.label.clone(),
        digest: trace::digest(&done.traces),
        rows: done.traces.iter().map(Trace::rows).sum(),
        seconds: done.elapsed.as_secs_f64(),
        optimum_error: done.optimum_error,
        cell: done.cell.identity.canonical().to_string(),
        programs: done.programs.iter().map(|program| Traced::clone(program)).collect(),
    }
}
