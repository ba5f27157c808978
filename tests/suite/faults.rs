//! What goes wrong while cells are run and kept: signals, killed processes, two runs at
//! once, damaged files, a full disk. Nothing is lost, and the digests are those of an
//! uninterrupted run.
#![cfg(unix)]

mod damage;
mod kills;
mod signals;

use crate::support::process::Running;
use crate::support::{Bench, array, edited};
use std::path::Path;

/// A manifest of 24 cells that take about a tenth of a second each.
const SLOW: &str = r#"title = "Cells that take their time"
seed = 5
replicates = 2
start.offset = 1.0
budget.rounds = 5000
record.points = 4

[problem.quadratic]
dimension = 4
clients = 8
spectrum = { from = 0.5, to = 1.0 }
noise = 0.1

[[algorithm.fedavg]]
step-size = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
local-steps = [10, 20, 30, 40]
"#;

/// The step sizes of `SLOW`, which `edited` replaces.
const STEPS: &str = "[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]";
/// The numbers of local steps of `SLOW`, which `edited` replaces.
const COUNTS: &str = "[10, 20, 30, 40]";

/// `SLOW` with 1080 cells of `rounds` rounds. Above 1000 cells, a run stores the cells that end within two seconds in
/// one pack; up to 1000, each cell has its own pack.
fn many(rounds: u64) -> String {
    let steps = array((1..=120).map(|i| f64::from(i) / 1000.0));
    let rounds = format!("rounds = {rounds}");
    edited(SLOW, &[("rounds = 5000", &rounds), (STEPS, &steps), (COUNTS, &array(1..=9))])
}

impl Bench {
    /// Starts the program in the folder of the bench, and does not wait for its end.
    fn start(&self, arguments: &[&str]) -> Running {
        crate::support::exactfed().args(arguments).folder(&self.folder).start()
    }

    /// The digests of a run of the manifest that nothing disturbs.
    fn undisturbed(&self, manifest: &str) -> Vec<String> {
        self.compute(&[manifest, "--out", "calm"]);
        self.digests("calm")
    }
}

/// How many packs the folder of an experiment holds: files of one or more cells.
fn stored(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.') && name != "experiment.toml").count()
}

/// Waits until a run has stored at least `count` packs in the folder of an experiment.
#[track_caller]
fn wait_for(run: &mut Running, folder: &Path, count: usize) {
    run.wait_for("cells", |_| (stored(folder) >= count).then_some(()));
}

/// Asserts that a run which has ended left no temporary file in this folder.
#[track_caller]
fn nothing_half_written(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name == ".lock" || !name.starts_with('.'), "{name} is left");
    }
}
