//! Runs cells: every (cell, replicate) is a task, which one of the threads takes from one queue.
//!
//! *Invariant*: a trace is a function of its cell and replicate alone; threads
//! decide when it is computed, never what it is.

mod attempt;
pub mod cautions;
pub mod cost;
mod frontier;
mod measure;
pub mod memory;
mod phase;
pub mod predict;
mod prepare;
mod sanity;
mod timing;
mod work;

use crate::panics::{caught, lock};
use crate::plan::Cell;
use crate::trace::{Outcome, Trace};
pub use attempt::StartRun;
use attempt::Stopped;
use exactfed_core::round_program::Traced;
pub use frontier::{PreparedFrontier, prepare_frontiers};
pub use phase::{BuiltPhaseProblem, PhaseProblem, PhaseSquare, PreparedPhase};
pub use prepare::{KnownOptima, Prepared, Scenario, prepare, prepare_knowing, stream_names};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
pub use timing::{MeasuredTask, TaskTime};
pub use work::{RunWork, RunWorkCount, WorkRate};

/// Observes the progress of a run.
pub trait Observer: Sync {
    /// This work was done.
    fn worked(&self, _work: RunWork) {}
    /// This work will not be done, because a run diverged.
    fn skipped(&self, _work: RunWork) {}
    /// A cell is complete and stored; `diverged` of its runs diverged.
    fn cell(&self, _diverged: usize) {}
    /// In this round of this run, numbered from 0, θ ceased to consist of finite numbers. Where only
    /// its square is too large for double precision, the run has diverged without that.
    fn not_finite(&self, _cell: &Cell, _run: u64, _round: u64) {}
    /// A cell cannot be run.
    fn failed(&self, _failed: &Failed<'_>) {}
    /// Whether to stop; incomplete cells are dropped.
    fn interrupted(&self) -> bool {
        false
    }
}

/// An observer that ignores all progress.
pub struct Silent;

impl Observer for Silent {}

/// A cell that could not be run.
#[derive(Debug)]
pub struct Failed<'a> {
    /// The cell whose run failed.
    pub cell: &'a Cell,
    /// Why the run failed.
    pub reason: String,
}

/// What came of a cell: its traces, and the time that they took on one thread.
pub struct Done<'a> {
    /// The cell whose runs are complete.
    pub cell: &'a Cell,
    /// The number N of clients.
    pub clients: usize,
    /// A trace per run that was missing, those on the first instance first.
    pub traces: Vec<Trace>,
    /// Summed over these runs.
    pub elapsed: Duration,
    /// The largest bound on the distance of an instance's θ* from the optimum, if there is one.
    pub optimum_error: Option<f64>,
    /// What tracing the rounds of a custom algorithm gave, on each instance; empty for a built-in algorithm.
    pub programs: Vec<Arc<Traced>>,
}

/// How far a cell is.
struct Partial {
    traces: Vec<Option<Trace>>,
    missing: u64,
    elapsed: Duration,
    /// The first run that failed, and why. Those before it are still tried, so that it does not
    /// depend on threads which one a cell names.
    failed: Option<(u64, String)>,
}

/// Runs all cells on `threads` threads. Each complete cell goes to `keep`, in
/// the thread that completed it; the first error of `keep` ends the run, and so
/// does an observer that interrupts it.
///
/// # Errors
/// What `keep` returned.
pub fn run<'a, E: Send>(
    cells: &'a [Prepared<'a>],
    threads: usize,
    observer: &dyn Observer,
    keep: impl Fn(Done<'a>) -> Result<(), E> + Sync,
) -> Result<Vec<Failed<'a>>, E> {
    let queue = Queue::new(cells);
    let error = Mutex::new(None);
    let work = || {
        while let Some((i, runs)) = queue.next(observer) {
            let Some(done) = queue.work(i, runs, observer) else { continue };
            let diverged = done.traces.iter().filter(|t| t.outcome == Outcome::Diverged).count();
            match keep(done) {
                Ok(()) => observer.cell(diverged),
                Err(e) => {
                    queue.stop.store(true, Ordering::Relaxed);
                    lock(&error).get_or_insert(e);
                }
            }
        }
    };
    rayon::scope(|scope| (0..threads.max(1)).for_each(|_| scope.spawn(|_| work())));
    match error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(error) => Err(error),
        None => Ok(queue.failed.into_inner().unwrap_or_else(|e| e.into_inner())),
    }
}

/// The tasks, the most expensive cells first, and their results.
struct Queue<'a> {
    cells: &'a [Prepared<'a>],
    /// Cells, and runs of theirs that go together.
    tasks: Vec<(usize, Range<u64>)>,
    next: AtomicUsize,
    stop: AtomicBool,
    /// Of cells that have begun: most wait.
    progress: Vec<Mutex<Option<Box<Partial>>>>,
    failed: Mutex<Vec<Failed<'a>>>,
}

impl<'a> Queue<'a> {
    fn new(cells: &'a [Prepared<'a>]) -> Self {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_cached_key(|&i| Reverse(cost::operations(&cells[i].cell.identity)));
        let tasks =
            order.iter().flat_map(|&i| cells[i].tasks().into_iter().map(move |runs| (i, runs)));
        Self {
            cells,
            tasks: tasks.collect(),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            progress: cells.iter().map(|_| Mutex::default()).collect(),
            failed: Mutex::new(Vec::new()),
        }
    }

    fn next(&self, observer: &dyn Observer) -> Option<(usize, Range<u64>)> {
        if self.stop.load(Ordering::Relaxed) || observer.interrupted() {
            return None;
        }
        self.tasks.get(self.next.fetch_add(1, Ordering::Relaxed)).cloned()
    }

    /// Runs a task; returns the results of the cell if this was its last one.
    fn work(&self, i: usize, runs: Range<u64>, observer: &dyn Observer) -> Option<Done<'a>> {
        let prepared = &self.cells[i];
        let count = runs.end - runs.start;
        {
            let mut progress = lock(&self.progress[i]);
            let progress = progress.get_or_insert_with(|| {
                let missing = prepared.missing_runs();
                let traces = vec![None; missing as usize];
                Box::new(Partial { traces, missing, elapsed: Duration::ZERO, failed: None })
            });
            if progress.failed.as_ref().is_some_and(|(first, _)| *first < runs.start) {
                progress.missing -= count;
                observer.skipped(prepared.work_per_run().times(count));
                self.note_failed(progress, prepared.cell, observer);
                return None;
            }
        }
        let begin = Instant::now();
        let result = caught(|| prepared.attempt(runs.clone(), observer));
        let traces = match result {
            Ok(Ok(traces)) => Ok(traces),
            Ok(Err(Stopped::Interrupted)) => return None,
            Ok(Err(Stopped::Failed(run, reason))) => {
                Err((run, format!("replicate {run}: {reason}")))
            }
            Err(reason) if count == 1 => {
                Err((runs.start, format!("replicate {}: {reason}", runs.start)))
            }
            Err(reason) => Err((runs.start, format!("one of replicates {runs:?}: {reason}"))),
        };
        let mut place = lock(&self.progress[i]);
        let progress = place.as_mut()?;
        progress.missing -= count;
        progress.elapsed += begin.elapsed();
        match traces {
            Ok(traces) => {
                let places = &mut progress.traces[(runs.start - prepared.first_run) as usize..];
                places.iter_mut().zip(traces).for_each(|(place, trace)| *place = Some(trace));
            }
            Err(found) => {
                let before = progress.failed.take().into_iter();
                progress.failed = before.chain([found]).min_by_key(|(run, _)| *run);
            }
        }
        self.note_failed(progress, prepared.cell, observer);
        if progress.missing > 0 || progress.failed.is_some() {
            return None;
        }
        let Partial { traces, elapsed, .. } = *place.take()?;
        let traces = traces.into_iter().flatten().collect();
        let cell = prepared.cell;
        let clients = prepared.clients();
        let optimum_error = prepared.optimum_error();
        let programs = prepared.programs();
        Some(Done { cell, clients, traces, elapsed, optimum_error, programs })
    }

    /// Notes a cell of which runs failed, once no other is to be tried.
    fn note_failed(&self, progress: &Partial, cell: &'a Cell, observer: &dyn Observer) {
        if let (0, Some((_, reason))) = (progress.missing, &progress.failed) {
            let failed = Failed { cell, reason: reason.clone() };
            observer.failed(&failed);
            lock(&self.failed).push(failed);
        }
    }
}

/// A cell that panics, for tests of what becomes of it.
#[doc(hidden)]
pub mod fault {
    use crate::panics::lock;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether a cell is set: outside tests, replicates take no lock.
    static ARMED: AtomicBool = AtomicBool::new(false);
    static STRUCK: Mutex<Option<String>> = Mutex::new(None);

    /// From now on this cell panics, and no other.
    pub fn set(id: Option<&str>) {
        *lock(&STRUCK) = id.map(str::to_owned);
        ARMED.store(id.is_some(), Ordering::SeqCst);
    }

    pub(super) fn strike(id: &str) {
        if !ARMED.load(Ordering::Relaxed) {
            return;
        }
        let struck = lock(&STRUCK).as_deref() == Some(id);
        assert!(!struck, "struck by a test");
    }
}

#[cfg(test)]
mod tests;
