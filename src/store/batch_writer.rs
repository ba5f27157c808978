//! Keeps what cells come to, as they finish.
//!
//! *Invariant*: a cell of an experiment of no more than [`ALONE`] cells is on the disk
//! when `keep` returns; of a larger one it waits for others, but no longer than
//! [`PATIENCE`], so that what a killed process loses is a moment of work.

use super::pack::Member;
use super::parquet::Entry;
use super::provenance::Provenance;
use super::{FailedRecord, Store};
use driftbench_runner::files::Error;
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::runner::{Done, Failed};
use driftbench_runner::trace::Trace;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Cells of an experiment up to which each has a folder of its own.
pub const ALONE: usize = 1000;
/// Cells in a pack at most.
const MOST_CELLS: usize = 4096;
/// Recorded rounds and numbers in a pack at most, roughly.
const MOST_NUMBERS: usize = 1 << 21;
/// Cells that wait together from which on they are packed.
const FEWEST: usize = 8;
/// How long a cell waits for others.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps the cells of one experiment that is being run.
pub struct BatchWriter<'a> {
    store: &'a Store,
    plan: &'a Plan,
    provenance: &'a Provenance,
    alone: bool,
    /// Of the packs that are written.
    generation: u64,
    waiting: Mutex<Waiting<'a>>,
    /// Woken when the first cell waits, and at the end.
    change: Condvar,
    /// Held, before `waiting`, by whoever takes cells from there and writes them.
    gate: RwLock<()>,
}

#[derive(Default)]
struct Waiting<'a> {
    cells: Vec<Kept<'a>>,
    numbers: usize,
    since: Option<Instant>,
    closed: bool,
    error: Option<Error>,
    stored: usize,
}

struct Kept<'a> {
    cell: &'a Cell,
    clients: usize,
    traces: Vec<Trace>,
    elapsed: Duration,
}

impl Kept<'_> {
    fn member(&self) -> Member<'_> {
        let entry = Entry { cell: self.cell, clients: self.clients, traces: &self.traces };
        Member { entry, elapsed: self.elapsed }
    }
}

impl<'a> BatchWriter<'a> {
    /// Keeps cells of this plan, computed by `provenance`.
    ///
    /// # Errors
    /// If a pack that is there is not as it was written.
    pub fn new(
        store: &'a Store,
        plan: &'a Plan,
        provenance: &'a Provenance,
    ) -> Result<Self, Error> {
        let alone = plan.cells.len() <= ALONE;
        let generation = store.packs(&plan.experiment)?.next_generation();
        let (waiting, change, gate) = (Mutex::default(), Condvar::new(), RwLock::default());
        Ok(Self { store, plan, provenance, alone, generation, waiting, change, gate })
    }

    /// Keeps a complete cell on so many clients.
    ///
    /// # Errors
    /// If it, or one that waited before it, cannot be written.
    pub fn keep(&self, done: Done<'a>, clients: usize) -> Result<(), Error> {
        let Done { cell, traces, elapsed } = done;
        let _open = self.open();
        if self.alone {
            self.store.write(self.plan, cell, clients, &traces, elapsed, self.provenance)?;
            self.lock().stored += 1;
            return Ok(());
        }
        let mut waiting = self.lock();
        if let Some(error) = waiting.error.take() {
            return Err(error);
        }
        waiting.numbers += traces.iter().map(numbers).sum::<usize>();
        waiting.cells.push(Kept { cell, clients, traces, elapsed });
        if waiting.since.is_none() {
            waiting.since = Some(Instant::now());
            self.change.notify_all();
        }
        let full = waiting.cells.len() >= MOST_CELLS || waiting.numbers >= MOST_NUMBERS;
        let cells = if full { waiting.take() } else { Vec::new() };
        drop(waiting);
        self.write(&cells)
    }

    /// Writes down that a cell failed.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn fail(&self, cell: &Cell, failed: &Failed) -> Result<(), Error> {
        let reason = failed.reason.clone();
        let failed = FailedRecord::new(&self.plan.experiment, cell, reason, self.provenance);
        self.store.write_failed(&failed)
    }

    /// Runs `work` while cells that wait are written in good time, and then the rest.
    ///
    /// # Errors
    /// That of `work`, or of what could not be written.
    pub fn during<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.alone {
            return work();
        }
        let result = std::thread::scope(|scope| {
            scope.spawn(|| self.write_in_time());
            // Also when `work` panics: the scope waits for its threads.
            let _close = Close(self);
            work()
        });
        let _open = self.open();
        let (cells, error) = {
            let mut waiting = self.lock();
            (waiting.take(), waiting.error.take())
        };
        let written = self.write(&cells);
        let result = result?;
        written?;
        error.map_or(Ok(result), Err)
    }

    /// Writes what waits once nothing else is being written, and lets no cell be written
    /// from then on: the process is about to end.
    ///
    /// # Errors
    /// If what waits cannot be written.
    pub fn close(&self) -> Result<(), Error> {
        let closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        // It stays shut: whoever comes to it waits until the process has ended.
        std::mem::forget(closed);
        let cells = self.lock().take();
        self.write(&cells)
    }

    /// The right to take cells that wait and to write; it is not had once all is closed.
    fn open(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cells on the disk so far.
    pub fn stored(&self) -> usize {
        self.lock().stored
    }

    fn write_in_time(&self) {
        let mut waiting = self.lock();
        while !waiting.closed {
            let left = waiting.since.map(|since| PATIENCE.saturating_sub(since.elapsed()));
            waiting = match left {
                None => self.change.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(left) if !left.is_zero() => {
                    let woken = self.change.wait_timeout(waiting, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    drop(waiting);
                    let _open = self.open();
                    let cells = self.lock().take();
                    let written = self.write(&cells);
                    let mut waiting = self.lock();
                    if let Err(e) = written {
                        waiting.error.get_or_insert(e);
                    }
                    waiting
                }
            };
        }
    }

    fn write(&self, cells: &[Kept<'_>]) -> Result<(), Error> {
        let (plan, by) = (self.plan, self.provenance);
        if cells.len() < FEWEST {
            for kept in cells {
                let Kept { cell, clients, traces, elapsed } = kept;
                self.store.write(plan, cell, *clients, traces, *elapsed, by)?;
                self.lock().stored += 1;
            }
            return Ok(());
        }
        let members: Vec<Member<'_>> = cells.iter().map(Kept::member).collect();
        self.store.write_pack(plan, &members, by, self.generation)?;
        self.lock().stored += cells.len();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<'a>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Waiting<'a> {
    fn take(&mut self) -> Vec<Kept<'a>> {
        self.since = None;
        self.numbers = 0;
        std::mem::take(&mut self.cells)
    }
}

/// Numbers in a trace, roughly.
fn numbers(trace: &Trace) -> usize {
    let averages: usize = trace.averages.iter().map(|(_, values)| values.len()).sum();
    trace.rows() * (10 + trace.further.len()) + trace.theta.len() + averages
}

/// Ends the thread that writes in time.
struct Close<'k, 'a>(&'k BatchWriter<'a>);

impl Drop for Close<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.change.notify_all();
    }
}
