//! The batch writer: writes the cells of a run as they finish, many small ones together.
//!
//! *Invariant*: a cell of an experiment of no more than [`MOST_SINGLE`] cells is on the disk
//! when `add` returns. One of a larger experiment waits for others, but no longer than
//! [`PATIENCE`], so that a killed process loses little work.

use super::failures::FailedRecord;
use super::folder::Store;
use exactfed_evidence::results::Provenance;
use exactfed_runner::files::Error;
use exactfed_runner::panics::{beside, lock};
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::{Done, Failed};
use exactfed_runner::trace::Trace;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// The number of cells up to which an experiment has one pack per cell.
const MOST_SINGLE: usize = 1000;
/// Most cells in a pack.
const MOST_CELLS: usize = 4096;
/// Most numbers of recorded rounds in a pack, approximately.
const MOST_NUMBERS: usize = 1 << 21;
/// How long a cell waits for others.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes the cells of one experiment that is being run.
pub struct BatchWriter<'a> {
    store: &'a Store,
    plan: &'a Plan,
    provenance: &'a Provenance,
    /// Most cells that are written together.
    most: usize,
    /// The generation of the packs that are written, by which they count before earlier packs of the same cells.
    generation: u64,
    waiting: Mutex<Waiting<'a>>,
    /// Locked for reading by each thread that takes waiting cells and writes them, and for writing by
    /// [`Self::close`]. Whoever locks both locks `gate` before `waiting`.
    gate: RwLock<()>,
}

/// The cells that wait to be written.
#[derive(Default)]
struct Waiting<'a> {
    cells: Vec<Done<'a>>,
    /// Numbers in the traces of these cells, approximately.
    numbers: usize,
    /// When the first of them began to wait.
    since: Option<Instant>,
    /// The first error of a write in the background, until it is returned.
    error: Option<Error>,
    /// Cells on the disk so far.
    stored: usize,
}

impl<'a> BatchWriter<'a> {
    /// A writer of cells of this plan, which are computed by the program that `provenance` names. The caller holds the
    /// lock of the experiment.
    ///
    /// # Errors
    /// If the folder of the experiment cannot be read.
    pub fn new(
        store: &'a Store,
        plan: &'a Plan,
        provenance: &'a Provenance,
    ) -> Result<Self, Error> {
        let most = if plan.cells.len() <= MOST_SINGLE { 1 } else { MOST_CELLS };
        let generation = store.packs(&plan.experiment)?.next_generation();
        // A run of many cells would otherwise hold an index that nobody may read meanwhile.
        store.forget_packs(&plan.experiment);
        Ok(Self {
            store,
            plan,
            provenance,
            most,
            generation,
            waiting: Mutex::default(),
            gate: RwLock::default(),
        })
    }

    /// Takes over a complete cell, and writes it now or, in a large experiment, together with others soon. Many threads
    /// may call it, within [`Self::during`]. After [`Self::close`] it does not return.
    ///
    /// # Errors
    /// If it, or a cell that waited before it, cannot be written.
    pub fn add(&self, done: Done<'a>) -> Result<(), Error> {
        let _passed = self.pass_gate();
        let mut waiting = lock(&self.waiting);
        waiting.numbers += done.traces.iter().map(count_numbers).sum::<usize>();
        waiting.cells.push(done);
        // The cell waits also where an earlier write has failed: it is written when the run ends.
        if let Some(error) = waiting.error.take() {
            return Err(error);
        }
        if waiting.cells.len() >= self.most || waiting.numbers >= MOST_NUMBERS {
            let cells = waiting.take_cells();
            drop(waiting);
            return self.write(&cells);
        }
        waiting.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Records that a cell failed, at once. A run calls it when a cell fails, and for the same cell again when it ends:
    /// only then is an error of it reported.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn fail(&self, failed: &Failed<'_>) -> Result<(), Error> {
        let cell = failed.cell;
        self.store.write_failed(&FailedRecord {
            id: cell.id.to_string(),
            experiment: self.plan.experiment.clone(),
            label: cell.label.clone(),
            reason: failed.reason.clone(),
            provenance: self.provenance.clone(),
            cell: cell.identity.canonical(),
        })
    }

    /// Runs `work`, which adds cells, while another thread writes those that have waited long enough. Then writes the
    /// rest and removes earlier results of all these cells. Returns what `work` returns.
    ///
    /// # Errors
    /// The error of `work`, or why a cell could not be written. Then earlier results of cells may not be removed, and
    /// the new ones count nevertheless.
    pub fn during<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let worked = beside(|ended| self.write_in_time(&ended), work);
        let _passed = self.pass_gate();
        let mut waiting = lock(&self.waiting);
        let cells = waiting.take_cells();
        let earlier_error = waiting.error.take();
        drop(waiting);
        // Cells that are done are written even if `work` failed.
        let written = self.write(&cells);
        let result = worked?;
        written?;
        self.store.remove_superseded(&self.plan.experiment)?;
        match earlier_error {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }

    /// Writes the waiting cells once nothing else is being written, and lets no cell be written
    /// from then on: the process is about to end.
    ///
    /// # Errors
    /// If a waiting cell cannot be written.
    pub fn close(&self) -> Result<(), Error> {
        let closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        // The gate stays shut: other threads wait at it until the process has ended.
        std::mem::forget(closed);
        let cells = lock(&self.waiting).take_cells();
        self.write(&cells)
    }

    /// Waits for the right to take waiting cells and to write them, which lasts until the returned guard is dropped.
    /// Many threads may have it at once; nobody gets it after [`Self::close`], whose caller ends the process.
    fn pass_gate(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of cells on the disk so far.
    pub fn stored(&self) -> usize {
        lock(&self.waiting).stored
    }

    /// Writes waiting cells before they have waited for longer than [`PATIENCE`], until the channel `ended` is
    /// disconnected. An error is kept for the next call of [`Self::add`], or for the end of [`Self::during`].
    fn write_in_time(&self, ended: &Receiver<()>) {
        let mut pause = PATIENCE;
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            // A cell that begins to wait during a pause has waited for no longer than that.
            let since = lock(&self.waiting).since;
            pause = match since {
                Some(since) => PATIENCE.saturating_sub(since.elapsed()),
                None => PATIENCE,
            };
            if pause.is_zero() {
                let _passed = self.pass_gate();
                let cells = lock(&self.waiting).take_cells();
                if let Err(e) = self.write(&cells) {
                    lock(&self.waiting).error.get_or_insert(e);
                }
                pause = PATIENCE;
            }
        }
    }

    /// Writes cells as one pack, and counts them as stored; writes nothing if there are none.
    fn write(&self, cells: &[Done<'_>]) -> Result<(), Error> {
        if cells.is_empty() {
            return Ok(());
        }
        self.store.write_pack(self.plan, cells, self.provenance, self.generation)?;
        lock(&self.waiting).stored += cells.len();
        Ok(())
    }
}

impl<'a> Waiting<'a> {
    /// Takes all waiting cells out, so that none waits any more.
    fn take_cells(&mut self) -> Vec<Done<'a>> {
        self.since = None;
        self.numbers = 0;
        std::mem::take(&mut self.cells)
    }
}

#[cfg(test)]
impl BatchWriter<'_> {
    /// Acts as if a write in the background had failed.
    pub(super) fn fail_in_background(&self, error: Error) {
        lock(&self.waiting).error = Some(error);
    }
}

/// About how many numbers a trace has, by which the size of a pack is limited.
fn count_numbers(trace: &Trace) -> usize {
    // Each row has about 10 numbers that all traces have: run, round, costs and squared errors.
    let averages: usize = trace.averages.iter().map(|(_, values)| values.len()).sum();
    trace.rows() * (10 + trace.further.len()) + trace.theta.len() + averages
}
