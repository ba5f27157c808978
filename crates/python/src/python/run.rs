//! Runs, with their progress and interruptions.

use super::errors::raise;
use super::plan::NativePlan;
use super::worker::{interruptible, stoppable};
use exactfed::cli::{Failure, Follower, Interrupt, PreparedRun, RunOptions, Workload, decide};
use exactfed::plan::Cell;
use exactfed::runner::{Failed, Observer, RunWork};
use exactfed::store::merge::{Conflict, MergeSources};
use exactfed::store::{Store, locks_of_thread, work_for};
use exactfed::words::count;
use exactfed_runner::panics::lock;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A cell that failed: its id, its label and the reason, as Python gets them.
type FailedCell = (String, String, String);

/// Counts the progress of a run for the thread that shows it, and collects what is returned to Python at the end.
#[derive(Default)]
struct RunProgress {
    /// The operations of the work so far.
    done: AtomicU64,
    /// The operations of all work, without that which a divergence saved.
    total: AtomicU64,
    /// The number of cells that are done.
    cells: AtomicU64,
    /// The local steps of clients so far.
    steps: AtomicU64,
    failed: Mutex<Vec<FailedCell>>,
    /// The warnings of the run, such as that results are damaged.
    warnings: Mutex<Vec<String>>,
    /// The cells, by id, in whose runs an algorithm in Python made θ infinite or NaN.
    not_finite: Mutex<BTreeMap<String, NotFinite>>,
}

/// The runs of a cell in which θ became infinite or NaN.
struct NotFinite {
    /// The label of the cell.
    label: String,
    /// The first round in which θ was not finite in any run, and the number of the first such run.
    first: (u64, u64),
    /// The number of these runs.
    runs: u64,
}

impl NotFinite {
    /// The warning about the runs of a cell that are not finite.
    fn in_words(&self, cell: &str) -> String {
        let (label, (round, run)) = (&self.label, self.first);
        let others = match self.runs {
            1 => String::new(),
            runs => format!(", and in {}", count((runs - 1) as usize, "more run")),
        };
        format!(
            "cell {cell} ({label}): θ is not finite from round {round} on in replicate {run}{others}; these runs end as diverged"
        )
    }
}

impl RunProgress {
    /// What Python's `progress` is called with: the operations of the work so far and in all, the number of cells that
    /// are done, and the local steps of clients so far.
    fn state(&self) -> [u64; 4] {
        [&self.done, &self.total, &self.cells, &self.steps].map(|count| count.load(Relaxed))
    }
}

impl Observer for RunProgress {
    /// Counts work that was done, for Python's `progress`.
    fn worked(&self, work: RunWork) {
        self.done.fetch_add(work.operations, Relaxed);
        self.steps.fetch_add(work.steps, Relaxed);
    }

    /// Takes work that will not be done off the total.
    fn skipped(&self, work: RunWork) {
        self.total.fetch_sub(work.operations, Relaxed);
    }

    fn cell(&self, _diverged: usize) {
        self.cells.fetch_add(1, Relaxed);
    }

    /// Notes that a run of an algorithm in Python has θ that is infinite or NaN from this round on, for a warning at
    /// the end: in user code it may be a mistake.
    fn not_finite(&self, cell: &Cell, run: u64, round: u64) {
        // A built-in algorithm diverges where its step size is too large, and pages say so.
        if cell.custom_place.is_none() {
            return;
        }
        let mut all = lock(&self.not_finite);
        let new = || NotFinite { label: cell.label.clone(), first: (round, run), runs: 0 };
        let runs = all.entry(cell.id.to_string()).or_insert_with(new);
        runs.first = runs.first.min((round, run));
        runs.runs += 1;
    }

    /// Keeps a cell that failed with the reason. At the end Python warns of it, or raises it if no cell has results.
    fn failed(&self, failed: &Failed<'_>) {
        let Failed { cell, reason } = failed;
        let mut all = lock(&self.failed);
        all.push((cell.id.to_string(), cell.label.clone(), reason.clone()));
    }
}

impl Follower for RunProgress {
    fn begins(&self, workload: Workload<'_>) {
        self.total.fetch_add(workload.work.operations, Relaxed);
    }

    /// Drops lines for a terminal on how the run goes on: Python's `progress` shows it.
    fn message(&self, _text: &str) {}

    fn warning(&self, text: &str) {
        lock(&self.warnings).push(text.to_owned());
    }
}

/// The paths of the locks whose holders wait for this thread, which is set in rounds of algorithms in Python: a run
/// that starts from a round passes them on to [`run`].
#[pyfunction]
pub fn locks() -> Vec<PathBuf> {
    locks_of_thread()
}

/// Runs the missing cells of a plan, or with `until_decided` adds replicates as well while claims are open. `force` and
/// `rerun_failed` are the options of these names of [`RunOptions`]. Returns the cells that failed, and warnings. The
/// holders of `locks` wait for this run: where it would wait for one of these locks, it fails instead.
#[pyfunction]
#[pyo3(signature = (plan, out, locks, *, threads, only, shard, force, rerun_failed, until_decided, memory, progress))]
#[allow(clippy::too_many_arguments)] // Those of the function in Python, by name.
pub fn run(
    py: Python<'_>,
    plan: &NativePlan,
    out: PathBuf,
    locks: Vec<PathBuf>,
    threads: Option<usize>,
    only: Option<PathBuf>,
    shard: Option<(u64, u64)>,
    force: bool,
    rerun_failed: bool,
    until_decided: bool,
    memory: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<FailedCell>, Vec<String>)> {
    let yes = true;
    let quiet = true;
    let options = RunOptions { out, threads, only, shard, force, rerun_failed, yes, memory, quiet };
    let stop = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt::by_request(stop.clone());
    let seen = Arc::new(RunProgress::default());
    let follower = seen.clone();
    let cells = plan.plan.clone();
    let experiment = plan.plan.experiment.clone();
    let source = plan.source.clone();
    let work = move || {
        work_for(locks);
        if !until_decided {
            let plans = std::slice::from_ref(&*cells);
            return PreparedRun::new(plans, &options, Some(interrupt))?.execute(&*follower);
        }
        let plans = vec![exactfed::cli::planned(experiment, source)?];
        decide(plans, &options, None, Some(interrupt), &*follower)
    };
    let tell = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, <(u64, u64, u64, u64)>::from(seen.state())).map(drop),
        None => Ok(()),
    };
    let end = || stop.store(true, Relaxed);
    stoppable(py, tell, end, work)?;
    tell(py)?;
    let mut warnings = take(&seen.warnings);
    warnings.extend(take(&seen.not_finite).iter().map(|(cell, runs)| runs.in_words(cell)));
    Ok((take(&seen.failed), warnings))
}

/// Adds the cells of an experiment in the results folder `part`, which a task of an executor has written, to those in
/// `out`. It is an error if a cell of `part` is damaged or has other numbers in `out`.
#[pyfunction]
pub fn add_results(
    py: Python<'_>,
    part: PathBuf,
    out: PathBuf,
    experiment: String,
) -> PyResult<()> {
    interruptible(py, raise, move || {
        let folders = [Store::open(&out)?, Store::open(&part)?];
        let mut sources = MergeSources::new(&folders, Some(&experiment))?;
        sources.copy(&|_| {})?;
        if let Some((e, _)) = sources.damaged().find(|(e, _)| e.path.starts_with(&part)) {
            return Err(Failure::input(format!("error: {e}")));
        }
        sources.conflicts().first().map_or(Ok(()), |Conflict { cell: (_, id), digests }| {
            let digests: Vec<&str> = digests.keys().map(String::as_str).collect();
            let out = out.display();
            let digests = digests.join(", ");
            Err(Failure::input(format!("error: {out}: cell {id} has other numbers: {digests}")))
        })
    })
}

/// Takes what was collected, and leaves nothing.
fn take<T: Default>(all: &Mutex<T>) -> T {
    std::mem::take(&mut *lock(all))
}
