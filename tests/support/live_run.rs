//! A `run --live` that is running, and the status that its pages show. Every wait has a deadline.

#![allow(dead_code)]

use crate::support::process::Running;
use crate::support::{Bench, Finished, exactfed};
use serde_json::Value;

/// Cells that take their time. Three of them, in the middle, fail at their start: their gradient is
/// so large that its square is infinite.
pub const SOME_FAIL: &str = r#"title = "Some cells fail"
seed = 5
replicates = 2
start.offset = 1.0
budget.rounds = 100000
record.points = 4
record.metrics = ["sq-gradient"]

[problem.quadratic]
dimension = 4
clients = 8
spectrum = [{ from = 0.5, to = 0.75 }, { from = 5e199, to = 1e200 }, { from = 0.5, to = 1.0 }]
noise = 0.1

[[algorithm.fedavg]]
step-size = [0.01, 0.02, 0.03]
local-steps = 20
"#;
/// Its number of cells, and of those that fail.
pub const CELLS: u64 = 9;
pub const FAILED: u64 = 3;
/// Why they fail.
pub const REASON: &str = "sq-gradient is inf at round 0";

/// A running `exactfed run --live`.
pub struct LiveRun<'a> {
    pub run: Running,
    bench: &'a Bench,
}

impl<'a> LiveRun<'a> {
    /// Starts it, and waits until its first pages are written.
    #[track_caller]
    pub fn start(bench: &'a Bench, arguments: &[&str]) -> Self {
        let all = [&["run", "--live"], arguments].concat();
        let run = exactfed().args(all).folder(&bench.folder).start();
        let mut live = Self { run, bench };
        live.wait_for_page("index.html", |_| true);
        live
    }

    /// Waits until the status is as it should be.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let bench = self.bench;
        self.run.wait_for(what, |_| status(bench).filter(|status| is_so(status)))
    }

    /// Waits until a file of the reports is as it should be.
    #[track_caller]
    pub fn wait_for_page(&mut self, page: &str, is_so: impl Fn(&str) -> bool) -> String {
        let path = self.bench.path("reports").join(page);
        self.run.wait_for(page, |_| std::fs::read_to_string(&path).ok().filter(|text| is_so(text)))
    }

    /// Waits for the end.
    #[track_caller]
    pub fn finish(self) -> Finished {
        self.run.finish().into()
    }

    /// Ends it as Ctrl-C does.
    #[track_caller]
    pub fn interrupt(self) -> Finished {
        self.run.signal("INT");
        self.finish()
    }
}

/// What the pages of a run show of the progress; `None` if there is no status.
#[track_caller]
pub fn status(bench: &Bench) -> Option<Value> {
    let text = std::fs::read_to_string(bench.path("reports/status.js")).ok()?;
    let status = text.strip_prefix("showStatus(").and_then(|rest| rest.strip_suffix(");\n"));
    let status = status.unwrap_or_else(|| panic!("half of a status: {text:?}"));
    Some(serde_json::from_str(status).unwrap_or_else(|e| panic!("{e}: {status}")))
}
