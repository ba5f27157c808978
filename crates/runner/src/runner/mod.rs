//! Runs cells: every (cell, replicate) is a task, which one of the threads takes from one queue.
//!
//! *Invariant*: a trace is a function of its cell and replicate alone; threads
//! decide when it is computed, never what it is.

mod average;
pub mod cost;
mod frontier;
mod measure;
pub mod memory;
pub mod predict;
mod prepare;
mod problem_cost;
mod sanity;
mod work;

use crate::manifest::Metric;
use crate::panics::{caught, lock};
use crate::plan::{Cell, Identity};
use crate::trace::{Outcome, Trace};
use exactfed_core::algorithm::{Instance, Spec};
use exactfed_core::federated::{Conditions, Run};
use exactfed_core::kernel::squared_distance;
pub use frontier::{PreparedFrontier, prepare_frontiers};
use measure::Meter;
pub use prepare::{
    BadCell, KnownOptima, Prepared, Scenario, prepare, prepare_knowing, stream_names,
};
use sanity::Sanity;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
pub use work::{RunWork, RunWorkCount};

/// Observes the progress of a run.
pub trait Observer: Sync {
    /// This work was done.
    fn worked(&self, _work: RunWork) {}
    /// This work will not be done, because a run diverged.
    fn skipped(&self, _work: RunWork) {}
    /// A cell, of whose runs so many diverged, is complete and stored.
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

/// Ignores all progress.
pub struct Silent;

impl Observer for Silent {}

/// Client steps after which they are reported to the observer, also between recorded rounds.
const REPORTED: u64 = 1 << 22;

/// A cell that could not be run.
#[derive(Debug)]
pub struct Failed<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Why.
    pub reason: String,
}

/// Why a replicate has no trace.
enum Stopped {
    /// The observer interrupted the run.
    Interrupted,
    /// What it holds contradicts itself.
    Contradiction(String),
    /// The algorithm failed.
    Failed(String),
}

/// What came of a cell: its traces, and the time that they took on one thread.
pub struct Done<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// N.
    pub clients: usize,
    /// A trace per run that was missing, those on the first instance first.
    pub traces: Vec<Trace>,
    /// Summed over these runs.
    pub elapsed: Duration,
    /// The largest bound on the distance of an instance's θ* from the optimum, if there is one.
    pub optimum_error: Option<f64>,
}

/// How far a cell is.
#[derive(Default)]
struct Partial {
    /// Room is made when the first arrives: most cells wait.
    traces: Vec<Option<Trace>>,
    missing: usize,
    elapsed: Duration,
    failed: bool,
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
        while let Some((i, run)) = queue.next(observer) {
            let Some(done) = queue.work(i, run, observer) else { continue };
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
    tasks: Vec<(usize, u64)>,
    next: AtomicUsize,
    stop: AtomicBool,
    progress: Vec<Mutex<Partial>>,
    failed: Mutex<Vec<Failed<'a>>>,
}

impl<'a> Queue<'a> {
    fn new(cells: &'a [Prepared<'a>]) -> Self {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_cached_key(|&i| Reverse(cost::expected_nanoseconds(&cells[i].cell.identity)));
        let runs = |i: usize| cells[i].first_run..cells[i].cell.identity.runs();
        let tasks = order.iter().flat_map(|&i| runs(i).map(move |r| (i, r)));
        let missing = |i: usize| cells[i].missing_runs() as usize;
        let partial = |i| Partial { missing: missing(i), ..Partial::default() };
        let progress = (0..cells.len()).map(|i| Mutex::new(partial(i)));
        Self {
            cells,
            tasks: tasks.collect(),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            progress: progress.collect(),
            failed: Mutex::new(Vec::new()),
        }
    }

    fn next(&self, observer: &dyn Observer) -> Option<(usize, u64)> {
        if self.stop.load(Ordering::Relaxed) || observer.interrupted() {
            return None;
        }
        self.tasks.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// Runs a task; returns the results of the cell if this was its last one.
    fn work(&self, i: usize, run: u64, observer: &dyn Observer) -> Option<Done<'a>> {
        let prepared = &self.cells[i];
        {
            let mut progress = lock(&self.progress[i]);
            if progress.failed {
                // Its other runs would be dropped.
                progress.missing -= 1;
                observer.skipped(prepared.work_per_run());
                return None;
            }
        }
        let begin = Instant::now();
        let result = caught(|| prepared.attempt(run, observer, &start));
        let reason = match result {
            Ok(Ok(trace)) => Ok(trace),
            Ok(Err(Stopped::Interrupted)) => return None,
            Ok(Err(Stopped::Contradiction(reason) | Stopped::Failed(reason))) | Err(reason) => {
                Err(reason)
            }
        };
        let mut progress = lock(&self.progress[i]);
        progress.missing -= 1;
        progress.elapsed += begin.elapsed();
        match reason {
            Ok(trace) => {
                if progress.traces.is_empty() {
                    progress.traces.resize(prepared.missing_runs() as usize, None);
                }
                progress.traces[(run - prepared.first_run) as usize] = Some(trace);
            }
            Err(reason) if !progress.failed => {
                progress.failed = true;
                let reason = format!("replicate {run}: {reason}");
                let failed = Failed { cell: prepared.cell, reason };
                observer.failed(&failed);
                lock(&self.failed).push(failed);
            }
            Err(_) => {}
        }
        if progress.missing > 0 || progress.failed {
            return None;
        }
        let traces = std::mem::take(&mut progress.traces).into_iter().flatten().collect();
        let (cell, clients) = (prepared.cell, prepared.clients());
        let optimum_error = prepared.optimum_error();
        Some(Done { cell, clients, traces, elapsed: progress.elapsed, optimum_error })
    }
}

/// Starts a run of an algorithm on an instance.
pub type StartRun<'s> =
    dyn for<'p> Fn(&'p dyn Instance, &Spec, &Conditions<'_>) -> Box<dyn Run + 'p> + 's;

/// The start of the algorithm's own run.
fn start<'p>(instance: &'p dyn Instance, algorithm: &Spec, from: &Conditions) -> Box<dyn Run + 'p> {
    instance.launch(algorithm, from)
}

/// The runs of a replicate, which share their draws, and what is measured of them.
struct ReplicateRuns<'p> {
    scenario: &'p Scenario,
    meter: Meter<'p>,
    own: Box<dyn Run + 'p>,
    /// The run on the linearised twin, if biases are measured against one.
    twin: Option<Box<dyn Run + 'p>>,
    /// The run that starts at θ*, if the distance to it is recorded.
    coupled: Option<Box<dyn Run + 'p>>,
}

impl<'p> ReplicateRuns<'p> {
    fn start(
        scenario: &'p Scenario,
        identity: &Identity,
        conditions: &Conditions<'_>,
        start: &StartRun<'_>,
    ) -> Self {
        let (algorithm, instance) = (&identity.algorithm, &*scenario.instance);
        let own = start(instance, algorithm, conditions);
        let twin = scenario.twin.as_ref().map(|(twin, _)| start(&**twin, algorithm, conditions));
        let at_optimum = Conditions { start: instance.optimum(), ..*conditions };
        let is_coupled = identity.record.metrics.contains(&Metric::SqCoupling);
        let coupled = is_coupled.then(|| start(instance, algorithm, &at_optimum));
        let meter = Meter::new(scenario, &identity.record, identity.rounds, &*own);
        Self { scenario, meter, own, twin, coupled }
    }

    fn round(&mut self) -> Result<(), Stopped> {
        self.own.round();
        for other in self.twin.iter_mut().chain(&mut self.coupled) {
            other.round();
        }
        self.check()?;
        self.meter.see(&*self.own, self.twin.as_deref());
        Ok(())
    }

    /// An error if an algorithm failed.
    fn check(&self) -> Result<(), Stopped> {
        let runs = [Some(&*self.own), self.twin.as_deref(), self.coupled.as_deref()];
        match runs.into_iter().flatten().find_map(|run| run.failure()) {
            Some(reason) => Err(Stopped::Failed(reason.to_owned())),
            None => Ok(()),
        }
    }

    /// Adds a row to a trace, with θ_t if the manifest asks for it.
    fn record(&self, trace: &mut Trace, round: u64, iterates: bool) {
        let coupled = self.coupled.as_deref().map(|run| run.estimate());
        let theta = self.own.estimate();
        trace.round.push(round);
        trace.cost.push(self.own.cost());
        trace.sq_error.push(squared_distance(theta, self.scenario.instance.optimum()));
        let limit = self.scenario.limit.as_ref();
        trace.sq_error_limit.extend(limit.map(|limit| squared_distance(theta, limit)));
        let values = self.meter.read(&*self.own, coupled);
        for ((_, column), value) in trace.further.iter_mut().zip(values) {
            column.push(value);
        }
        if iterates {
            trace.theta.extend_from_slice(theta);
        }
    }
}

impl Prepared<'_> {
    /// One run, from start to budget or divergence; those on one instance have successive numbers.
    ///
    /// # Panics
    /// If the run contradicts itself, which is a defect of the engine.
    pub fn simulate(&self, run: u64) -> Trace {
        self.simulate_with(run, &start)
    }

    /// One run of whatever this function starts, in the algorithm's place.
    ///
    /// # Panics
    /// As [`Self::simulate`].
    pub fn simulate_with(&self, run: u64, start: &StartRun<'_>) -> Trace {
        match self.attempt(run, &Silent, start) {
            Ok(trace) => trace,
            Err(Stopped::Contradiction(reason) | Stopped::Failed(reason)) => panic!("{reason}"),
            Err(Stopped::Interrupted) => unreachable!("nobody interrupts"),
        }
    }

    /// One run, until the observer interrupts it.
    fn attempt(
        &self,
        run: u64,
        observer: &dyn Observer,
        start: &StartRun<'_>,
    ) -> Result<Trace, Stopped> {
        fault::strike(&self.cell.id);
        let identity = &self.cell.identity;
        let scenario = self.scenario(run);
        let (seed, replicate) = prepare::stream_names(identity, run);
        let conditions = Conditions {
            seed,
            replicate,
            start: &scenario.start,
            rounds: identity.rounds,
            copy: 0,
        };
        let mut runs = ReplicateRuns::start(scenario, identity, &conditions, start);
        runs.check()?;
        let further = runs.meter.metrics.iter().map(|metric| (*metric, Vec::new()));
        let mut trace = Trace { further: further.collect(), ..Trace::default() };
        let mut sanity = Sanity::default();
        let (mut round, mut reported) = (0, RunWork::default());
        let (all, work) = (self.work_per_run(), self.work_of());
        for (rows, &target) in (0..).zip(self.recorded.iter()) {
            while round < target {
                runs.round()?;
                round += 1;
                let theta = runs.own.estimate();
                if !squared_distance(theta, scenario.instance.optimum()).is_finite() {
                    if theta.iter().any(|x| !x.is_finite()) {
                        observer.not_finite(self.cell, run, round);
                    }
                    trace.outcome = Outcome::Diverged;
                    let done = work(round, rows);
                    observer.worked(done - reported);
                    observer.skipped(all - done);
                    return Ok(trace);
                }
                if observer.interrupted() {
                    return Err(Stopped::Interrupted);
                }
                let done = work(round, rows);
                if (done - reported).steps >= REPORTED {
                    observer.worked(done - reported);
                    reported = done;
                }
            }
            runs.record(&mut trace, round, identity.record.iterates);
            if let Err(reason) = sanity.check(&trace, &*runs.own, scenario) {
                observer.skipped(all - reported);
                return Err(Stopped::Contradiction(reason));
            }
            let done = work(round, rows + 1);
            observer.worked(done - reported);
            reported = done;
        }
        trace.averages = runs.meter.averages();
        Ok(trace)
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
