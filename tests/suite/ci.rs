//! Continuous integration: what it leaves out where nothing changed that could matter, and the committed
//! table of processor times.

use crate::support::process::Program;
use crate::support::{Bench, Finished, edited, files_below, root};
use std::collections::BTreeMap;
use std::fs;

/// All stages of `.ci/key`.
const STAGES: [&str; 6] = ["results", "packages", "portability", "slurm", "fuzz", "browser"];

/// A copy of what the stages depend on, in a repository of its own, and its keys.
struct Tree {
    bench: Bench,
    before: BTreeMap<&'static str, String>,
}

impl Tree {
    fn new() -> Self {
        let bench = Bench::new();
        for folder in ["crates", "src", "experiments/smoke", "templates", "scripts", ".ci"] {
            for path in files_below(&root().join(folder)) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
                bench.write(name, fs::read(&path).unwrap());
            }
        }
        for file in ["Cargo.toml", "Cargo.lock", "build.rs", "README.md"] {
            bench.write(file, fs::read(root().join(file)).unwrap());
        }
        let init = Program::new("git").args(["init", "--quiet"]).folder(&bench.folder);
        Finished::from(init.run()).expect(0);
        let mut tree = Self { bench, before: BTreeMap::new() };
        tree.before = tree.keys();
        tree
    }

    fn keys(&self) -> BTreeMap<&'static str, String> {
        let key = |stage| {
            let script = Program::new("bash").args([".ci/key", stage]).folder(&self.bench.folder);
            (stage, Finished::from(script.run()).expect(0).out.trim().to_owned())
        };
        STAGES.into_iter().map(key).collect()
    }

    /// The stages that are done again after a change of a file, which is taken back.
    fn stages_after(&self, file: &str, change: (&str, &str)) -> Vec<&'static str> {
        let text = self.bench.read(file);
        self.bench.write(file, edited(&text, &[change]));
        let keys = self.keys();
        self.bench.write(file, text);
        STAGES.into_iter().filter(|stage| keys[stage] != self.before[stage]).collect()
    }
}

/// A deliberate change of one constant of a kernel, of a manifest or of a dependency makes everything be
/// computed; one of a page or a document does not.
#[test]
fn a_changed_constant_makes_continuous_integration_compute_everything() {
    let tree = Tree::new();
    assert_eq!(tree.keys(), tree.before, "a key says nothing about when it was made");
    let constant = ("const WIDTH: usize = 16;", "const WIDTH: usize = 8;");
    let kernel = tree.stages_after("crates/core/src/kernel/mod.rs", constant);
    assert_eq!(kernel, STAGES);
    let runner = tree.stages_after("crates/runner/src/runner/mod.rs", ("//! Runs", "//! It runs"));
    assert_eq!(runner, STAGES);
    let lock = tree.stages_after("Cargo.lock", ("version = 4", "version = 4 "));
    assert_eq!(lock, STAGES);
    let manifest = tree.stages_after("experiments/smoke/garnet.toml", ("seed = ", "seed = 1"));
    assert_eq!(manifest, ["results"]);
    let page = tree.stages_after("templates/report.page", ("{% import", "{%  import"));
    assert_eq!(page, ["fuzz", "browser"]);
    let text_of_pages = tree.stages_after("src/report/finding.rs", ("//! ", "//!  "));
    assert_eq!(text_of_pages, ["fuzz", "browser"]);
    assert!(tree.stages_after("README.md", ("# exactfed", "# Exactfed")).is_empty());
    // A new template may be missing from a package.
    tree.bench.write("templates/new.page", "");
    assert_ne!(tree.keys()["packages"], tree.before["packages"]);
}

/// Results are kept under the key of what determines them, and only after all stages passed.
#[test]
fn continuous_integration_keeps_results_by_their_key() {
    let text = fs::read_to_string(root().join(".ci/run")).unwrap();
    for line in ["key=$(.ci/key results)", "bring_results \"$key\"", "keep_results \"$key\""] {
        assert_eq!(text.lines().filter(|known| *known == line).count(), 1, "{line}");
    }
    let place = |line: &str| text.lines().position(|known| known == line);
    assert!(place("scripts/fresh.sh \"$FRESH\"") < place("keep_results \"$key\""));
    for stage in STAGES.iter().filter(|stage| **stage != "results") {
        assert!(text.contains(&format!("\nstage {stage} ")), "{stage} is a stage of .ci/run");
    }
}

/// The rows of the table whose sum is compared: the others are parts of them, or times by the clock.
const COMPARED: [&str; 4] = ["build", "build tests", "tests", "reproduce"];

/// The times of each processor add up to at most 5 % more than the last entry that says why they are what
/// they are.
#[test]
fn larger_processor_times_have_an_entry_that_says_why() {
    let text = fs::read_to_string(root().join("docs/notes/times.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let entries = table["entry"].as_array().unwrap();
    for (processor, times) in table["times"].as_table().unwrap() {
        let times = times.as_table().unwrap();
        for name in COMPARED {
            let seconds = table["seconds"][processor][name].as_float().unwrap();
            assert!(seconds > 0.0, "{processor}: {name} has seconds as well");
        }
        let sum: f64 = COMPARED.iter().map(|name| times[*name].as_float().unwrap()).sum();
        let mut of_processor =
            entries.iter().filter(|entry| entry["processor"].as_str() == Some(processor));
        let last = of_processor.next_back().unwrap_or_else(|| panic!("no entry of {processor}"));
        let reason = last["reason"].as_str().unwrap();
        assert!(reason.len() > 10, "{processor}: a reason is a sentence: {reason}");
        let allowed = 1.05 * last["sum"].as_float().unwrap();
        assert!(sum <= allowed, "{processor}: {sum} units, and the last entry allows {allowed}");
    }
}
