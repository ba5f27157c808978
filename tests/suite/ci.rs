//! Continuous integration: what it leaves out where nothing changed that could matter.

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
/// computed; one of a page, a comment or a document does not.
#[test]
fn a_changed_constant_makes_continuous_integration_compute_everything() {
    let tree = Tree::new();
    assert_eq!(tree.keys(), tree.before, "a key says nothing about when it was made");
    let constant = ("WIDTH: usize = 16;", "WIDTH: usize = 8;");
    let kernel = tree.stages_after("crates/core/src/kernel/fold.rs", constant);
    assert_eq!(kernel, STAGES);
    let runner = tree.stages_after("crates/runner/src/runner/mod.rs", ("use ", " use "));
    assert_eq!(runner, STAGES);
    let comment = tree.stages_after("crates/runner/src/runner/mod.rs", ("//! Runs", "//! It runs"));
    assert!(comment.is_empty());
    // Behind a statement a comment may belong to it.
    let behind = tree.stages_after("crates/runner/src/runner/mod.rs", (";\n", "; // A remark.\n"));
    assert_eq!(behind, STAGES);
    let help_in_python = tree.stages_after("crates/python/src/lib.rs", ("//! ", "//!  "));
    assert_eq!(help_in_python, ["packages", "portability", "slurm", "fuzz", "browser"]);
    let lock = tree.stages_after("Cargo.lock", ("version = 4", "version = 4 "));
    assert_eq!(lock, STAGES);
    let manifest = tree.stages_after("experiments/smoke/garnet.toml", ("seed = ", "seed = 1"));
    assert_eq!(manifest, ["results"]);
    let page = tree.stages_after("templates/report.page", ("{% import", "{%  import"));
    assert_eq!(page, ["fuzz", "browser"]);
    let text_of_pages = tree.stages_after("src/report/page/finding.rs", ("use ", " use "));
    assert_eq!(text_of_pages, ["fuzz", "browser"]);
    assert!(tree.stages_after("README.md", ("# exactfed", "# Exactfed")).is_empty());
    // A new template may be missing from a package.
    tree.bench.write("templates/new.page", "");
    assert_ne!(tree.keys()["packages"], tree.before["packages"]);
}
