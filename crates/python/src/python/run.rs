//! Runs, with their progress and interruptions.

use super::errors::raise;
use super::plan::NativePlan;
use super::watch::interrupt_rounds;
use super::worker::stoppable;
use exactfed::cli::{Code, Failure, Follower, How, Interrupt, Workload, decide, execute_until};
use exactfed::runner::{Failed, Observer};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A cell that failed: its id, its label and the reason.
type FailedCell = (String, String, String);

/// Counts the progress of a run for the thread that shows it.
#[derive(Default)]
struct RunProgress {
    done: AtomicU64,
    total: AtomicU64,
    cells: AtomicU64,
    failed: Mutex<Vec<FailedCell>>,
    warnings: Mutex<Vec<String>>,
}

impl RunProgress {
    /// Client steps so far and in all, and cells that are done.
    fn state(&self) -> (u64, u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed), self.cells.load(Relaxed))
    }
}

impl Observer for RunProgress {
    fn steps(&self, count: u64) {
        self.done.fetch_add(count, Relaxed);
    }

    fn skipped(&self, count: u64) {
        self.total.fetch_sub(count, Relaxed);
    }

    fn cell(&self, _diverged: usize) {
        self.cells.fetch_add(1, Relaxed);
    }

    fn failed(&self, failed: &Failed<'_>) {
        let Failed { cell, reason } = failed;
        let mut all = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((cell.id.clone(), cell.label.clone(), reason.clone()));
    }
}

impl Follower for RunProgress {
    fn begins(&self, workload: Workload<'_>) {
        self.total.fetch_add(workload.steps, Relaxed);
    }

    fn message(&self, _text: &str) {}

    fn warning(&self, text: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }
}

/// Runs the missing cells of a plan: the cells that failed, and what was wrong with stored results.
#[pyfunction]
#[pyo3(signature = (plan, out, *, threads, force, rerun_failed, until_decided, memory, progress))]
#[allow(clippy::too_many_arguments)] // Those of the function in Python, by name.
pub fn run(
    py: Python<'_>,
    plan: &NativePlan,
    out: PathBuf,
    threads: Option<usize>,
    force: bool,
    rerun_failed: bool,
    until_decided: bool,
    memory: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<FailedCell>, Vec<String>)> {
    let how = How { out, threads, force, rerun_failed, memory, ..How::default() };
    let how = How { yes: true, quiet: true, ..how };
    let stop = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt::by_request(stop.clone());
    let seen = Arc::new(RunProgress::default());
    let (follower, cells) = (seen.clone(), plan.plan.clone());
    let (experiment, source) = (plan.experiment.clone(), plan.source.clone());
    let work = move || -> Result<Code, Failure> {
        if !until_decided {
            return execute_until(std::slice::from_ref(&*cells), &how, interrupt, &*follower);
        }
        let plans = vec![exactfed::cli::planned(experiment, source)?];
        decide(plans, &how, None, Some(interrupt), &*follower)
    };
    let tell = |py: Python<'_>| match &progress {
        Some(progress) => progress.call1(py, seen.state()).map(drop),
        None => Ok(()),
    };
    let end = || {
        stop.store(true, Relaxed);
        interrupt_rounds(true);
    };
    interrupt_rounds(false);
    let ended = stoppable(py, tell, end, work)?;
    ended.map_err(|e| raise(py, e))?;
    tell(py)?;
    Ok((take(&seen.failed), take(&seen.warnings)))
}

fn take<T>(all: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner))
}
