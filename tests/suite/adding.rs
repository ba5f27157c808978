//! The worked examples of CONTRIBUTING.md: each applies to the program as it is, and adds its kind
//! in at most two source files, beside tests. `scripts/adding.sh` compiles them.

use crate::support::process::Program;
use crate::support::{Finished, root};
use std::collections::BTreeSet;
use std::fs;

/// The source files that a new kind may touch.
const MOST_FILES: usize = 2;

#[test]
fn every_example_applies_and_touches_two_source_files() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut seen = BTreeSet::new();
    for file in fs::read_dir(root().join("docs/adding")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(contributing.contains(&format!("docs/adding/{name}")), "{name} is not explained");
        let text = fs::read_to_string(&path).unwrap();
        let files = text.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        let files: BTreeSet<&str> = files.filter(|file| !file.ends_with("/tests.rs")).collect();
        assert!(files.len() <= MOST_FILES && !files.is_empty(), "{name} touches {files:?}");
        let check = ["apply", "--check", "-C1", path.to_str().unwrap()];
        let git = Program::new("git").args(check).folder(root());
        Finished::from(git.run()).expect(0);
        seen.insert(name);
    }
    let kinds = ["algorithm", "bound", "claim", "figure", "metric"];
    assert!(seen.iter().map(|name| name.trim_end_matches(".patch")).eq(kinds), "{seen:?}");
}
