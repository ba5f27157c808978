//! Results folders put together, and lists of cells.

use crate::support::{Bench, DIVERGING, GARNET, QUADRATIC, array, edited};
use exactfed::store::{Results, Store};

fn bench() -> Bench {
    Bench::with_smoke(&["garnet", "diverging"])
}

#[test]
fn shares_merged_are_the_whole_and_so_are_their_reports() {
    let bench = bench();
    let all = [GARNET, DIVERGING, "--out"];
    bench.compute(&[&all[..], &["whole"]].concat());
    for i in ["1", "2", "3"] {
        bench.compute(&[&all[..], &[i, "--shard", &format!("{i}/3")]].concat());
    }
    let output = bench.run(&["merge", "1", "2", "3", "--out", "merged"]).expect(0);
    output.warns("merged: 38 cells copied, 0 there before");
    assert_eq!(bench.digests("merged"), bench.digests("whole"));
    for of in ["whole", "merged"] {
        bench.run(&["report", of, "--out", &format!("{of}-pages"), "--quiet"]).expect(0);
    }
    let page = |of: &str| bench.read(&format!("{of}-pages/smoke/garnet/report.md"));
    assert_eq!(page("merged"), page("whole"));
    let before = bench.contents("merged");
    let output = bench.run(&["merge", "2", "merged", "--out", "merged"]).expect(0);
    output.warns("0 cells copied, 38 there before");
    assert_eq!(bench.contents("merged"), before, "what is there is not touched");
    bench.run(&["run", "--out", "merged", GARNET]).expect(0).warns("all 36 cells are done");
}

fn first_word(line: &str) -> String {
    line.split(' ').next().unwrap().to_owned()
}

/// Stores numbers of a cell of `other` as those of a cell of `b`.
fn forge(bench: &Bench, experiment: &str, id: &str) {
    let other = Store::open_existing(&bench.path("other")).unwrap();
    let theirs = other.ids(experiment).unwrap().remove(0);
    let theirs = other.read(experiment, &theirs).unwrap().unwrap().traces;
    bench.forge("b", |cell, stored| {
        stored.traces.clone_from(&theirs);
        cell.id == *id
    });
}

#[test]
fn cells_that_differ_are_listed_and_none_is_copied() {
    let bench = bench();
    for folder in ["a", "b"] {
        bench.compute(&[GARNET, "--out", folder]);
    }
    let id = first_word(&bench.digests("a")[5]);
    bench.compute(&[GARNET, "--out", "other", "--set", "seed=8"]);
    forge(&bench, "smoke/garnet", &id);
    let output = bench.run(&["merge", "a", "b", "--out", "c"]).expect(1);
    output.warns("error: 1 cell with other numbers in another folder").warns(&id);
    let there = bench.digests("c");
    assert_eq!(there.len(), 35);
    assert!(!there.iter().any(|line| line.starts_with(&id)));
    // Merged into one of them, that one keeps its own.
    let before = bench.digests("a");
    bench.run(&["merge", "b", "--out", "a"]).expect(1);
    assert_eq!(bench.digests("a"), before);
}

#[test]
fn a_damaged_cell_is_left_out_or_healed() {
    let bench = bench();
    for folder in ["a", "b"] {
        bench.compute(&[GARNET, "--out", folder]);
    }
    let whole = bench.digests("a");
    let id = first_word(&whole[7]);
    let pack = bench.pack_of("a/smoke/garnet", &id);
    bench.damage(&pack);
    bench.run(&["merge", "a", "--out", "c"]).expect(4).warns(&pack).warns("left out");
    assert_eq!(bench.digests("c").len(), 35);
    bench.run(&["merge", "a", "b", "--out", "d"]).expect(0).warns("another folder's copy is sound");
    assert_eq!(bench.digests("d"), whole);
    let output = bench.run(&["merge", "b", "--out", "a"]).expect(0);
    output.warns("1 damaged cell quarantined and replaced");
    assert_eq!(bench.digests("a"), whole);
}

#[test]
fn other_versions_and_other_manifests_are_not_mixed() {
    let bench = bench();
    for (folder, seed) in [("a", "seed=7"), ("b", "seed=8")] {
        bench.compute(&[GARNET, "--out", folder, "--set", seed]);
    }
    let output = bench.run(&["merge", "a", "b", "--out", "c"]).expect(2);
    output.warns("--set: seed=7 against seed=8").warns("nothing was merged");
    assert!(!bench.path("c").exists(), "nothing is written");
    bench.run(&["merge", "a", "b", "--out", "c", "--manifest-of", "b"]).expect(0);
    assert_eq!(bench.digests("c").len(), 72);
    let kept = |folder: &str| bench.read(&format!("{folder}/smoke/garnet/experiment.toml"));
    assert_eq!(kept("c"), kept("b"));
    let output = bench.run(&["merge", "a", "b", "--out", "d", "--manifest-of", "e"]).expect(2);
    output.warns("none of these folders");

    let id = first_word(&bench.digests("b")[0]);
    let version = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    let newer = "\"version\":\"9.9.9\"";
    bench.reindex(&bench.pack_of("b/smoke/garnet", &id), &[(version, newer)]);
    bench.run(&["merge", "b", "--out", "e"]).expect(2).warns("9.9.9: 1 cell of b");
    assert!(!bench.path("e").exists(), "nothing is written");
}

#[test]
fn expected_cells_are_reported_if_they_are_missing() {
    let bench = bench();
    bench.compute(&[GARNET, "--out", "a", "--shard", "1/2"]);
    bench.compute(&[GARNET, "--out", "b"]);
    let all = bench.digests("b");
    let list: String = all.iter().map(|l| format!("smoke/garnet/{}\n", first_word(l))).collect();
    bench.write("list", &list);
    let output = bench.run(&["merge", "a", "--out", "c", "--expect", "list"]).expect(4);
    let missing = 36 - bench.digests("c").len();
    let text = format!("without results: {missing} of the 36 cells of list");
    assert!(missing > 0 && output.err.contains(&text), "{}", output.err);
    bench.run(&["merge", "b", "--out", "c", "--expect", "list"]).expect(0);
}

#[test]
fn only_what_a_list_names_is_run_and_split() {
    let bench = bench();
    bench.compute(&[GARNET]);
    let all = bench.digests("results");
    let some: Vec<&String> = all.iter().step_by(3).collect();
    let lines = some.iter().enumerate().map(|(i, line)| match (line.split_once(' '), i % 2) {
        (Some((id, _)), 0) => format!("{id}\n"),
        (Some((id, _)), _) => format!("  smoke/garnet/{id}\n\n# as a path\n"),
        _ => unreachable!(),
    });
    bench.write("list", lines.collect::<String>());
    let mut parts = Vec::new();
    for share in ["1/2", "2/2"] {
        let out = format!("only{}", &share[..1]);
        bench.compute(&[GARNET, "--only", "list", "--shard", share, "--out", &out]);
        let part = bench.digests(&out);
        assert_eq!(part.len(), some.len() / 2);
        parts.extend(part);
    }
    parts.sort();
    assert_eq!(parts.iter().collect::<Vec<_>>(), some);

    bench.write("list", "0123456789abcdef\nsmoke/logistic/0123456789abcdef\n");
    let output = bench.run(&["run", GARNET, "--only", "list", "--out", "none"]).expect(2);
    output.warns("line 1: 0123456789abcdef").warns("line 2: smoke/logistic/0123456789abcdef");
    assert!(!bench.path("none").exists());
    let output = bench.run(&["run", GARNET, "--only", "nowhere", "--out", "none"]).expect(2);
    output.warns("nowhere cannot be read: there is no such file");
}

/// An experiment as it was run is a manifest too: the same cells, whatever became of its file.
#[test]
fn an_experiment_of_results_runs_again() {
    let bench = bench();
    bench.compute(&[GARNET, "--set", "problem.garnet.clients=3"]);
    bench.write(GARNET, "title = \"edited\"\n");
    let kept = "results/smoke/garnet/experiment.toml";
    bench.compute(&[kept, "--out", "again"]);
    assert_eq!(bench.digests("again"), bench.digests("results"));
    assert_eq!(bench.read("again/smoke/garnet/experiment.toml"), bench.read(kept));
    bench.write("x/experiment.toml", bench.read(kept));
    bench.reseal("x/experiment.toml", &[("smoke/garnet", "../out")]);
    bench.run(&["run", "x/experiment.toml", "--out", "y"]).expect(2).warns("and cannot contain");
}

#[test]
fn packs_merge_too() {
    let bench = Bench::new();
    let entry = format!(
        "[[algorithm.fedavg]]\nstep-size = {}\nlocal-steps = {}\n",
        array((1..=52).map(|i| f64::from(i) * 1e-3)),
        array(1..=20)
    );
    let short = [("replicates = 2", "replicates = 1"), ("rounds = 20", "rounds = 3")];
    bench.write("many.toml", edited(QUADRATIC, &short) + &entry);
    let run = |more: &[&str]| bench.compute(&[&["many.toml"], more].concat());
    run(&["--out", "whole"]);
    let whole = bench.digests("whole");
    assert_eq!(whole.len(), 1040);
    run(&["--out", "1", "--shard", "1/2"]);
    run(&["--out", "2", "--shard", "2/2"]);
    bench.run(&["merge", "1", "2", "--out", "merged"]).expect(0).warns("1040 cells copied");
    assert_eq!(bench.digests("merged"), whole);
    bench.run(&["verify", "merged", "--sample", "5"]).expect(0);

    // One cell alone, with other numbers: all of a pack but that one is copied.
    let id = first_word(&whole[500]);
    bench.write("list", &id);
    run(&["--out", "b", "--only", "list"]);
    run(&["--out", "other", "--shard", "1/1040", "--set", "seed=8"]);
    forge(&bench, "many", &id);
    bench.run(&["merge", "whole", "b", "--out", "c"]).expect(1);
    let mut rest = whole.clone();
    rest.remove(500);
    assert_eq!(bench.digests("c"), rest);
    bench.run(&["verify", "c", "--sample", "40"]).expect(0);

    // A damaged pack is many damaged cells, and all of them heal.
    let packs = bench.cells("1/many");
    bench.damage(&packs[0]);
    bench.run(&["merge", "1", "2", "--out", "d"]).expect(4);
    assert!(bench.digests("d").len() < 1040);
    bench.run(&["merge", "whole", "1", "--out", "e"]).expect(0);
    bench.run(&["merge", "whole", "2", "--out", "1"]).expect(0);
    assert_eq!(bench.digests("1"), whole);
}
