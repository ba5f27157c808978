//! A run as lines of JSON, for programs that follow it.

use super::follower::{Follower, Workload};
use super::status::{Phase, RunStatus};
use crate::cli::outcome::Code;
use exactfed_runner::panics::lock;
use exactfed_runner::runner::{Failed, Observer, RunWork};
use serde_json::{Value, json};
use std::io::{Write, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is written of the progress of a run.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum LogFormat {
    /// The status that the pages of `watch` read, a line of JSON at most every second, and messages
    Json,
}

/// Least time between two lines of the status.
const BETWEEN: Duration = Duration::from_secs(1);

/// Writes the status of a run, and what is said of it, to standard error.
pub struct JsonLog {
    status: RunStatus,
    last: Mutex<Instant>,
}

impl JsonLog {
    /// A log of a run of so much work.
    pub fn new<'a>(workloads: impl Iterator<Item = Workload<'a>>) -> Self {
        Self { status: RunStatus::new(workloads, |_| ()), last: Mutex::new(Instant::now()) }
    }

    /// Writes the last line.
    pub fn end(&self, code: Code) {
        self.status.enter(if code == Code::Interrupted { Phase::Stopped } else { Phase::Finished });
        self.write();
    }

    fn write(&self) {
        line(&self.status.read(None, None));
    }

    /// Writes the status, unless it was written a moment ago.
    fn write_sometimes(&self) {
        // Another thread may be writing.
        if let Ok(mut last) = self.last.try_lock()
            && last.elapsed() >= BETWEEN
        {
            *last = Instant::now();
            self.write();
        }
    }
}

/// Writes a line; a closed standard error is ignored.
fn line(value: &Value) {
    let _ = writeln!(stderr(), "{value}");
}

impl Observer for JsonLog {
    fn worked(&self, work: RunWork) {
        self.status.worked(work);
        self.write_sometimes();
    }

    fn skipped(&self, work: RunWork) {
        self.status.skipped(work);
    }

    fn cell(&self, diverged: usize) {
        self.status.cell(diverged);
    }

    fn failed(&self, failed: &Failed<'_>) {
        self.status.failed(failed);
    }
}

impl Follower for JsonLog {
    fn begins(&self, workload: Workload<'_>) {
        self.status.begins(workload);
        *lock(&self.last) = Instant::now();
        self.write();
    }

    fn waits(&self, experiment: &str) {
        self.status.waits(experiment);
        self.write();
    }

    fn message(&self, text: &str) {
        line(&json!({ "message": text }));
    }

    fn warning(&self, text: &str) {
        line(&json!({ "warning": text }));
    }
}
