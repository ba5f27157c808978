//! What follows a run.

use exactfed_runner::runner::{Observer, RunWork, Silent};

/// Follows a run from its first experiment on.
pub trait Follower: Observer {
    /// The cells of an experiment are run from now on, after those of the experiment before.
    fn begins(&self, _workload: Workload<'_>) {}
    /// No more cells of an experiment are run, and those that were run are stored.
    fn ends(&self, _experiment: &str) {}
    /// Another process is at work on all remaining experiments, of which this is the first.
    fn waits(&self, _experiment: &str) {}
    /// The process ends as soon as this returns, since a round has no end in sight. No cell is
    /// stored any more.
    fn leaves(&self) {}
    /// What the other methods say, and how the run goes on: a line, by default for standard error.
    fn message(&self, text: &str) {
        eprintln!("{text}");
    }
    /// Stored results are not as they were written: a line, by default for standard error.
    fn warning(&self, text: &str) {
        eprintln!("{text}");
    }
}

impl Follower for Silent {}

/// The work on an experiment.
pub struct Workload<'a> {
    /// The name of the experiment.
    pub experiment: &'a str,
    /// Number of requested cells.
    pub cells: usize,
    /// Number of those that are done. Before the experiment begins, it includes cells that failed
    /// in an earlier run and are not run again.
    pub done: usize,
    /// The work on the others.
    pub work: RunWork,
}
