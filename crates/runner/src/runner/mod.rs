//! Runs cells: every (cell, replicate) is a task, which one of the threads takes from one queue.
//!
//! *Invariant*: a trace is a function of its cell and replicate alone; threads
//! decide when it is computed, never what it is.

mod attempt;
pub mod cautions;
mod checking;
pub mod cost;
mod fixed_point;
mod frontier;
mod measure;
pub mod memory;
mod multiples;
mod phase;
pub mod predict;
mod prepare;
mod sanity;
mod timing;
mod work;

use crate::panics::{Panicked, caught, lock};
use crate::plan::Cell;
use crate::trace::{Outcome, Trace};
pub use attempt::StartRun;
use attempt::Stopped;
pub use checking::{check_evaluations, check_instances, prepare_to_check};
use exactfed_core::round_program::Traced;
pub use frontier::{PreparedFrontier, prepare_frontiers};
pub use multiples::words_on_multiples;
pub use phase::{BuiltPhaseProblem, PhaseProblem, PhaseSquare, PreparedPhase};
pub use prepare::{KnownOptima, Prepared, Scenario, prepare, prepare_knowing, stream_names};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
pub use timing::{MeasuredTask, TaskTime};
pub use work::{RunWork, RunWorkCount, WorkRate};

/// Gets reports of what happens while cells are run, and may interrupt them.
pub trait Observer: Sync {
    /// This further work was done on some run. Any thread may call it, and the calls add up to all work that was done.
    fn worked(&self, _work: RunWork) {}
    /// This work will not be done, because a run diverged, or because a run of its cell failed or was interrupted.
    /// Observers that count the work take it off their total.
    fn skipped(&self, _work: RunWork) {}
    /// A cell is complete and stored; `diverged` of its runs diverged.
    fn cell(&self, _diverged: usize) {}
    /// In this round of this run, numbered from 0, θ ceased to consist of finite numbers. Where only
    /// its square is too large for double precision, the run has diverged without that.
    fn not_finite(&self, _cell: &Cell, _run: u64, _round: u64) {}
    /// Runs of a cell failed, so that it has no results. It is called once for the cell, with the first of these runs.
    fn failed(&self, _failed: &Failed<'_>) {}
    /// Whether to stop. Cells of which not all runs are computed are dropped. Each thread asks before every task and
    /// after every round of a run, so that the answer must be cheap.
    fn interrupted(&self) -> bool {
        false
    }
}

/// An observer that ignores all progress.
pub struct Silent;

impl Observer for Silent {}

/// The observer of the runs of one task. It hands everything on to another observer, and counts the work that is
/// reported, so that the rest is known when the task ends early, also by a panic.
struct TaskObserver<'o> {
    observer: &'o dyn Observer,
    /// The work that was done or skipped so far.
    reported: RunWorkCount,
}

impl<'o> TaskObserver<'o> {
    fn new(observer: &'o dyn Observer) -> Self {
        Self { observer, reported: RunWorkCount::default() }
    }

    /// Reports as skipped what is left of the work `all` on the task.
    fn skip_rest(&self, all: RunWork) {
        self.observer.skipped(all - self.reported.get());
    }
}

impl Observer for TaskObserver<'_> {
    fn worked(&self, work: RunWork) {
        self.reported.add(work);
        self.observer.worked(work);
    }

    fn skipped(&self, work: RunWork) {
        self.reported.add(work);
        self.observer.skipped(work);
    }

    fn cell(&self, diverged: usize) {
        self.observer.cell(diverged);
    }

    fn not_finite(&self, cell: &Cell, run: u64, round: u64) {
        self.observer.not_finite(cell, run, round);
    }

    fn failed(&self, failed: &Failed<'_>) {
        self.observer.failed(failed);
    }

    fn interrupted(&self) -> bool {
        self.observer.interrupted()
    }
}

/// A cell that could not be run.
#[derive(Debug)]
pub struct Failed<'a> {
    /// The cell whose run failed.
    pub cell: &'a Cell,
    /// Why the run failed.
    pub reason: String,
}

/// A cell of which all missing runs are computed: what is stored of it.
pub struct Done<'a> {
    /// The cell whose runs are complete.
    pub cell: &'a Cell,
    /// The number N of clients.
    pub clients: usize,
    /// A trace per run that was missing, those on the first instance first.
    pub traces: Vec<Trace>,
    /// The time of these runs, summed over the threads that computed them.
    pub elapsed: Duration,
    /// The largest bound on the distance of an instance's θ* from the optimum, if there is one.
    pub optimum_error: Option<f64>,
    /// What tracing the rounds of a custom algorithm gave, on each instance; empty for a built-in algorithm.
    pub programs: Vec<Arc<Traced>>,
}

/// How far a cell is whose runs have begun.
struct Partial {
    /// A trace for each run that was missing; `None` until it is computed.
    traces: Vec<Option<Trace>>,
    /// The number of runs that are neither computed nor failed nor left out.
    missing: u64,
    /// The time of its runs so far, summed over threads.
    elapsed: Duration,
    /// The first run that failed, and why. Those before it are still tried, so that it does not
    /// depend on threads which one a cell names.
    failed: Option<(u64, String)>,
}

/// Runs the missing runs of all cells on up to `threads` threads of the rayon pool in which it is called. Each complete
/// cell goes to `keep`, in the thread that completed it; the first error of `keep` ends the run, and so does an
/// observer that interrupts it, which is no error. Returns the cells that failed.
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
        while let Some(task) = queue.next(observer) {
            let Some(done) = queue.work(task, observer) else { continue };
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

/// Runs of a cell on one instance that one thread computes together.
#[derive(Clone)]
struct QueuedRuns {
    /// The place of the cell among those of the queue.
    cell: usize,
    runs: Range<u64>,
}

/// The tasks of all cells, the most expensive cells first, so that no thread begins a long one when the others have
/// none left; and what came of them so far. Threads take one task after another.
struct Queue<'a> {
    cells: &'a [Prepared<'a>],
    tasks: Vec<QueuedRuns>,
    /// The place of the next task.
    next: AtomicUsize,
    /// Whether no other task is to be taken.
    stop: AtomicBool,
    /// How far each cell is; `None` before it has begun and after it is complete.
    progress: Vec<Mutex<Option<Box<Partial>>>>,
    failed: Mutex<Vec<Failed<'a>>>,
}

/// What is said of a panic in these runs of a task, for this reason: the run that panicked is known if it is the only
/// one.
fn text_of_panic(runs: &Range<u64>, reason: &Panicked) -> String {
    if runs.end - runs.start == 1 {
        format!("replicate {}: {reason}", runs.start)
    } else {
        format!("one of replicates {runs:?}: {reason}")
    }
}

impl<'a> Queue<'a> {
    /// The queue of all tasks of these cells.
    fn new(cells: &'a [Prepared<'a>]) -> Self {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_cached_key(|&i| Reverse(cost::operations(&cells[i].cell.identity)));
        let tasks = order.iter().flat_map(|&cell| {
            cells[cell].tasks().into_iter().map(move |runs| QueuedRuns { cell, runs })
        });
        Self {
            cells,
            tasks: tasks.collect(),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            progress: cells.iter().map(|_| Mutex::default()).collect(),
            failed: Mutex::new(Vec::new()),
        }
    }

    /// Takes the next task; `None` if there is none, or the run is to stop.
    fn next(&self, observer: &dyn Observer) -> Option<QueuedRuns> {
        if self.stop.load(Ordering::Relaxed) || observer.interrupted() {
            return None;
        }
        self.tasks.get(self.next.fetch_add(1, Ordering::Relaxed)).cloned()
    }

    /// Computes a task. Returns the cell if it was the cell's last task and no run failed; `None` otherwise, also if
    /// the observer interrupts the task, which leaves the cell incomplete. A task is left out if a run with a smaller
    /// number has failed in its cell. A run that panics counts as failed. A run that fails during an interruption does
    /// not, since the interruption may have ended its round: its cell is incomplete. The work on a task that is left
    /// out, and what is left of a task without traces, is reported as skipped.
    fn work(&self, task: QueuedRuns, observer: &dyn Observer) -> Option<Done<'a>> {
        let QueuedRuns { cell: place, runs } = task;
        let prepared = &self.cells[place];
        let count = runs.end - runs.start;
        {
            let mut progress = lock(&self.progress[place]);
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
        let of_task = TaskObserver::new(observer);
        let result = caught(|| prepared.attempt(runs.clone(), &of_task));
        if !matches!(result, Ok(Ok(_))) {
            of_task.skip_rest(prepared.work_per_run().times(count));
            if observer.interrupted() {
                return None;
            }
        }
        let traces = match result {
            Ok(Ok(traces)) => Ok(traces),
            Ok(Err(Stopped::Interrupted)) => return None,
            Ok(Err(Stopped::Failed(run, reason))) => {
                Err((run, format!("replicate {run}: {reason}")))
            }
            Err(reason) => Err((runs.start, text_of_panic(&runs, &reason))),
        };
        let mut slot = lock(&self.progress[place]);
        let progress = slot.as_mut()?;
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
        let Partial { traces, elapsed, .. } = *slot.take()?;
        let traces = traces.into_iter().flatten().collect();
        let cell = prepared.cell;
        let clients = prepared.clients();
        let optimum_error = prepared.optimum_error();
        let programs = prepared.programs();
        Some(Done { cell, clients, traces, elapsed, optimum_error, programs })
    }

    /// Notes that a cell failed, once none of its runs is to be tried any more, and tells the observer. It is called
    /// after each task of the cell under the lock of its `progress`, so that the last task alone finds `missing` at 0.
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

    /// Makes the runs of the cell with this id panic from now on, and of no other; of none if it is `None`.
    pub fn set(id: Option<&str>) {
        *lock(&STRUCK) = id.map(str::to_owned);
        ARMED.store(id.is_some(), Ordering::SeqCst);
    }

    /// Panics if the cell with this id is the one that tests have set.
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
