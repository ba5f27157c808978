//! What follows a run as it goes on: the bar of a terminal, the pages of `--live`, a log, or Python.

use exactfed_runner::runner::{Observer, RunWork, Silent};

/// Follows a run of several experiments. An [`Observer`] follows the cells alone. Methods are called from several
/// threads.
pub trait Follower: Observer {
    /// The cells of an experiment are run from now on. It is called again where more of its cells follow,
    /// with the workload of these.
    fn begins(&self, _workload: Workload<'_>) {}
    /// No more cells of an experiment are run, and those that were run are stored.
    fn ends(&self, _experiment: &str) {}
    /// Another process is at work on all remaining experiments, of which this is the first.
    fn waits(&self, _experiment: &str) {}
    /// The run was interrupted by a signal, and a cell's round did not end within the time that it had: the process
    /// ends as soon as this returns. Cells that were complete are stored, and no cell is stored any more. A follower
    /// writes what it wants to leave behind, such as the last pages.
    fn leaves(&self) {}
    /// A line of text on how the run goes on, by default for standard error.
    fn message(&self, text: &str) {
        eprintln!("{text}");
    }
    /// A line of text that warns that stored results are not as they were written, or that cells are not
    /// run without confirmation; by default for standard error.
    fn warning(&self, text: &str) {
        eprintln!("{text}");
    }
}

impl Follower for Silent {}

/// The work on an experiment.
pub struct Workload<'a> {
    /// The name of the experiment.
    pub experiment: &'a str,
    /// The number of cells that the command is for.
    pub cells: usize,
    /// The number of these cells that are done, or have failed and were reported to the follower. Before the
    /// experiment begins, it includes cells that failed in an earlier run and are not run again; they are reported then.
    pub handled: usize,
    /// The work on the cells that are run from now on.
    pub work: RunWork,
}
