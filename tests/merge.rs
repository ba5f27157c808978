//! Results folders put together, and lists of cells.

mod support;

use driftbench::plan::Plan;
use driftbench::store::Store;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use support::Bench;

const GARNET: &str = "experiments/smoke/garnet.toml";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.bring("garnet.toml");
    bench.bring("diverging.toml");
    bench
}

fn digests(bench: &Bench, folder: &str) -> Vec<String> {
    bench.run(&["digest", folder]).expect(0).out.lines().map(str::to_owned).collect()
}

/// All files below a folder and what they hold.
fn everything(bench: &Bench, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    fn walk(folder: PathBuf, all: &mut Vec<(PathBuf, Vec<u8>)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(path, all),
                false => all.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    let mut all = Vec::new();
    walk(bench.path(folder), &mut all);
    all.sort();
    all
}

#[test]
fn shares_merged_are_the_whole_and_so_are_their_reports() {
    let bench = bench();
    let all = [GARNET, "experiments/smoke/diverging.toml", "--quiet"];
    bench.run(&[&["run", "--out", "whole"], &all[..]].concat()).expect(0);
    for i in ["1", "2", "3"] {
        let share = format!("{i}/3");
        bench.run(&[&["run", "--out", i, "--shard", &share], &all[..]].concat()).expect(0);
    }
    let said = bench.run(&["merge", "1", "2", "3", "--out", "merged"]).expect(0);
    assert!(said.err.contains("merged: 38 cells copied, 0 there before"), "{}", said.err);
    assert_eq!(digests(&bench, "merged"), digests(&bench, "whole"));
    for of in ["whole", "merged"] {
        bench.run(&["report", of, "--out", &format!("{of}-pages"), "--quiet"]).expect(0);
    }
    let page = |of: &str| bench.read(&format!("{of}-pages/smoke/garnet/report.md"));
    assert_eq!(page("merged"), page("whole"));
    let before = everything(&bench, "merged");
    let said = bench.run(&["merge", "2", "merged", "--out", "merged"]).expect(0);
    assert!(said.err.contains("0 cells copied, 38 there before"), "{}", said.err);
    assert_eq!(everything(&bench, "merged"), before, "what is there is not touched");
    let one = bench.run(&["run", "--out", "merged", GARNET]).expect(0);
    assert!(one.err.contains("all 36 cells are done"), "{}", one.err);
}

fn first_word(line: &str) -> String {
    line.split(' ').next().unwrap().to_owned()
}

/// Edits a text with a checksum and corrects the checksum.
fn edit(bench: &Bench, file: &str, edit: impl Fn(&str) -> String) {
    let text = bench.read(file);
    let (body, _) = text.split_once("# sha256 ").unwrap();
    let body = edit(body);
    let hash = Sha256::digest(body.as_bytes());
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    bench.write(file, &format!("{body}# sha256 {hash}\n"));
}

/// Stores numbers of a cell of `other` as those of a cell of `to`, as a run would have:
/// the cell is as sound as any, and holds other numbers.
fn forge(bench: &Bench, to: &str, experiment: &str, id: &str, other: &str) {
    let open = |folder: &str| Store::open_existing(&bench.path(folder)).unwrap();
    let (store, other) = (open(to), open(other));
    let theirs = other.ids(experiment).unwrap().remove(0);
    let stored = other.read(experiment, &theirs).unwrap().unwrap();
    let kept = store.experiments().unwrap().remove(0);
    let plan = Plan::new(kept.name.clone(), kept.source()).unwrap_or_else(|e| panic!("{e}"));
    let cell = plan.cells.iter().find(|cell| cell.id == id).unwrap();
    let by = &stored.record.provenance;
    store.write(&plan, cell, 4, &stored.traces, Duration::ZERO, by).unwrap();
}

/// Flips a bit in the middle of a file.
fn damage(bench: &Bench, file: &str) {
    let mut bytes = bench.read_bytes(file);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(bench.path(file), bytes).unwrap();
}

#[test]
fn cells_that_differ_are_listed_and_none_is_copied() {
    let bench = bench();
    for folder in ["a", "b"] {
        bench.run(&["run", GARNET, "--out", folder, "--quiet"]).expect(0);
    }
    let id = first_word(&digests(&bench, "a")[5]);
    bench.run(&["run", GARNET, "--out", "other", "--set", "seed=8", "--quiet"]).expect(0);
    forge(&bench, "b", "smoke/garnet", &id, "other");
    let said = bench.run(&["merge", "a", "b", "--out", "c"]).expect(1);
    assert!(
        said.err.contains("error: 1 cell with other numbers in another folder")
            && said.err.contains(&id),
        "{}",
        said.err
    );
    let there = digests(&bench, "c");
    assert_eq!(there.len(), 35);
    assert!(!there.iter().any(|line| line.starts_with(&id)));
    // Merged into one of them, that one keeps its own.
    let before = digests(&bench, "a");
    bench.run(&["merge", "b", "--out", "a"]).expect(1);
    assert_eq!(digests(&bench, "a"), before);
}

#[test]
fn a_damaged_cell_is_left_out_or_healed() {
    let bench = bench();
    for folder in ["a", "b"] {
        bench.run(&["run", GARNET, "--out", folder, "--quiet"]).expect(0);
    }
    let whole = digests(&bench, "a");
    let id = first_word(&whole[7]);
    damage(&bench, &format!("a/smoke/garnet/{id}/traces.parquet"));
    let said = bench.run(&["merge", "a", "--out", "c"]).expect(4);
    assert!(said.err.contains(&id) && said.err.contains("left out"), "{}", said.err);
    assert_eq!(digests(&bench, "c").len(), 35);
    let said = bench.run(&["merge", "a", "b", "--out", "d"]).expect(0);
    assert!(said.err.contains("another folder's copy is sound"), "{}", said.err);
    assert_eq!(digests(&bench, "d"), whole);
    let said = bench.run(&["merge", "b", "--out", "a"]).expect(0);
    assert!(said.err.contains("1 damaged cell quarantined and replaced"), "{}", said.err);
    assert_eq!(digests(&bench, "a"), whole);
}

#[test]
fn other_versions_and_other_manifests_are_not_mixed() {
    let bench = bench();
    for (folder, seed) in [("a", "seed=7"), ("b", "seed=8")] {
        bench.run(&["run", GARNET, "--out", folder, "--set", seed, "--quiet"]).expect(0);
    }
    let said = bench.run(&["merge", "a", "b", "--out", "c"]).expect(2);
    assert!(said.err.contains("--set: seed=7 against seed=8"), "{}", said.err);
    assert!(!bench.path("c").exists(), "nothing is written");
    bench.run(&["merge", "a", "b", "--out", "c", "--manifest-of", "b"]).expect(0);
    assert_eq!(digests(&bench, "c").len(), 72);
    let kept = |folder: &str| bench.read(&format!("{folder}/smoke/garnet/experiment.toml"));
    assert_eq!(kept("c"), kept("b"));
    let said = bench.run(&["merge", "a", "b", "--out", "d", "--manifest-of", "e"]).expect(2);
    assert!(said.err.contains("none of these folders"), "{}", said.err);

    let id = first_word(&digests(&bench, "b")[0]);
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
    let newer = |text: &str| text.replace(version, "version = \"9.9.9\"");
    edit(&bench, &format!("b/smoke/garnet/{id}/cell.toml"), newer);
    let said = bench.run(&["merge", "b", "--out", "e"]).expect(2);
    assert!(said.err.contains("9.9.9: 1 cell of b"), "{}", said.err);
    assert!(!bench.path("e").exists(), "nothing is written");
}

#[test]
fn expected_cells_are_told_if_they_are_not_there() {
    let bench = bench();
    bench.run(&["run", GARNET, "--out", "a", "--shard", "1/2", "--quiet"]).expect(0);
    bench.run(&["run", GARNET, "--out", "b", "--quiet"]).expect(0);
    let all = digests(&bench, "b");
    let list: String = all.iter().map(|l| format!("smoke/garnet/{}\n", first_word(l))).collect();
    bench.write("list", &list);
    let said = bench.run(&["merge", "a", "--out", "c", "--expect", "list"]).expect(4);
    let missing = 36 - digests(&bench, "c").len();
    let told = format!("without results: {missing} of the 36 cells of list");
    assert!(missing > 0 && said.err.contains(&told), "{}", said.err);
    bench.run(&["merge", "b", "--out", "c", "--expect", "list"]).expect(0);
}

#[test]
fn only_what_a_list_names_is_run_and_split() {
    let bench = bench();
    bench.run(&["run", GARNET, "--quiet"]).expect(0);
    let all = digests(&bench, "results");
    let some: Vec<&String> = all.iter().step_by(3).collect();
    let lines = some.iter().enumerate().map(|(i, line)| match (line.split_once(' '), i % 2) {
        (Some((id, _)), 0) => format!("{id}\n"),
        (Some((id, _)), _) => format!("  smoke/garnet/{id}\n\n# as a path\n"),
        _ => unreachable!(),
    });
    bench.write("list", &lines.collect::<String>());
    let mut parts = Vec::new();
    for share in ["1/2", "2/2"] {
        let out = format!("only{}", &share[..1]);
        let how = ["--only", "list", "--shard", share, "--out", &out, "--quiet"];
        bench.run(&[&["run", GARNET], &how[..]].concat()).expect(0);
        let part = digests(&bench, &out);
        assert_eq!(part.len(), some.len() / 2);
        parts.extend(part);
    }
    parts.sort();
    assert_eq!(parts.iter().collect::<Vec<_>>(), some);

    bench.write("list", "0123456789abcdef\nsmoke/logistic/0123456789abcdef\n");
    let said = bench.run(&["run", GARNET, "--only", "list", "--out", "none"]).expect(2);
    assert!(said.err.contains("line 1: 0123456789abcdef"), "{}", said.err);
    assert!(said.err.contains("line 2: smoke/logistic/0123456789abcdef"), "{}", said.err);
    assert!(!bench.path("none").exists());
    let said = bench.run(&["run", GARNET, "--only", "nowhere", "--out", "none"]).expect(2);
    assert!(said.err.contains("nowhere cannot be read: there is no such file"), "{}", said.err);
}

/// An experiment as it was run is a manifest too: the same cells, whatever became of its file.
#[test]
fn an_experiment_of_results_runs_again() {
    let bench = bench();
    let set = ["--set", "problem.garnet.clients=3", "--quiet"];
    bench.run(&[&["run", GARNET], &set[..]].concat()).expect(0);
    bench.write(GARNET, "title = \"edited\"\n");
    let kept = "results/smoke/garnet/experiment.toml";
    bench.run(&["run", kept, "--out", "again", "--quiet"]).expect(0);
    assert_eq!(digests(&bench, "again"), digests(&bench, "results"));
    assert_eq!(bench.read("again/smoke/garnet/experiment.toml"), bench.read(kept));
    bench.write("x/experiment.toml", &bench.read(kept));
    edit(&bench, "x/experiment.toml", |text| text.replace("smoke/garnet", "../out"));
    let said = bench.run(&["run", "x/experiment.toml", "--out", "y"]).expect(2);
    assert!(said.err.contains("and cannot contain"), "{}", said.err);
}

/// More cells than are kept in a folder each.
const MANY: &str = "title = \"Many cells\"
seed = 7
replicates = 1
problem = { quadratic = { dimension = 2, clients = 2, noise = 0.1, spectrum = { from = 0.5, to = 2.0 } } }
start = { offset = 1.0 }
budget = { rounds = 3 }
[[algorithm.fedavg]]
step-size = [STEPS]
local-steps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
";

#[test]
fn packs_merge_too() {
    let bench = Bench::new();
    let steps: Vec<String> = (1..=52).map(|i| format!("{:?}", f64::from(i) * 1e-3)).collect();
    bench.write("many.toml", &MANY.replace("STEPS", &steps.join(", ")));
    let run =
        |more: &[&str]| bench.run(&[&["run", "many.toml", "--quiet"], more].concat()).expect(0);
    run(&["--out", "whole"]);
    let whole = digests(&bench, "whole");
    assert_eq!(whole.len(), 1040);
    run(&["--out", "1", "--shard", "1/2"]);
    run(&["--out", "2", "--shard", "2/2"]);
    let said = bench.run(&["merge", "1", "2", "--out", "merged"]).expect(0);
    assert!(said.err.contains("1040 cells copied"), "{}", said.err);
    assert_eq!(digests(&bench, "merged"), whole);
    bench.run(&["verify", "merged", "--sample", "5"]).expect(0);

    // One cell alone, with other numbers: all of a pack but that one is copied.
    let id = first_word(&whole[500]);
    bench.write("list", &id);
    run(&["--out", "b", "--only", "list"]);
    run(&["--out", "other", "--shard", "1/1040", "--set", "seed=8"]);
    forge(&bench, "b", "many", &id, "other");
    bench.run(&["merge", "whole", "b", "--out", "c"]).expect(1);
    let mut rest = whole.clone();
    rest.remove(500);
    assert_eq!(digests(&bench, "c"), rest);
    bench.run(&["verify", "c", "--sample", "40"]).expect(0);

    // A damaged pack is many damaged cells, and all of them heal.
    let packs = fs::read_dir(bench.path("1/many")).unwrap();
    let packs = packs.map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let pack = packs.filter(|name| name.starts_with("pack-")).min().unwrap();
    damage(&bench, &format!("1/many/{pack}/traces.parquet"));
    bench.run(&["merge", "1", "2", "--out", "d"]).expect(4);
    assert!(digests(&bench, "d").len() < 1040);
    bench.run(&["merge", "whole", "1", "--out", "e"]).expect(0);
    bench.run(&["merge", "whole", "2", "--out", "1"]).expect(0);
    assert_eq!(digests(&bench, "1"), whole);
}
