//! The race of tuned candidates: what it stops, and that it changes nothing else.

use crate::support::{Bench, edited};
use std::collections::BTreeSet;

/// Two algorithms at two numbers of local steps, each with its own step size, on sixteen instances: a third
/// of them are six.
fn raced() -> String {
    let tuned = include_str!("../manifests/tuned.toml");
    edited(
        tuned,
        &[
            ("replicates = 3", "replicates = 1\ninstances = 16"),
            ("evaluate = 6\n", ""),
            ("noise = 0.3", "noise = 0.03"),
        ],
    )
}

/// The same without a race.
fn without_race() -> String {
    edited(&raced(), &[("[1e-2, 0.5]", "[1e-2, 0.5]\nrace = false")])
}

fn reported(manifest: &str) -> Bench {
    let bench = Bench::ran(manifest);
    bench.report();
    bench
}

/// What was selected, and what fresh runs of it give.
fn selections(bench: &Bench) -> Vec<Vec<String>> {
    let columns =
        ["label", "local-steps", "selected", "at_edge", "tuning_value", "value", "low", "high"];
    let rows = bench.rows("reports/m/tuned.csv");
    rows.iter().map(|row| columns.map(|column| row[column].clone()).to_vec()).collect()
}

/// Selections and fresh runs have the same bits, and every cell of a race but those of first runs is a cell
/// of all runs.
#[test]
fn a_race_selects_what_all_runs_select() {
    let (race, all) = (reported(&raced()), reported(&without_race()));
    assert_eq!(selections(&race), selections(&all));
    let candidates = race.rows("reports/m/candidates.csv");
    let fates = |fate: &str| candidates.iter().filter(|row| row["fate"] == fate).count();
    assert!(fates("stopped") >= 8, "{candidates:?}");
    assert_eq!(fates("selected"), 4);
    for row in &candidates {
        let runs = if row["fate"] == "stopped" { "6" } else { "16" };
        assert_eq!(row["runs"], runs, "{row:?}");
    }
    let [of_race, of_all] =
        [&race, &all].map(|bench| BTreeSet::from_iter(bench.digests("results")));
    // First runs are cells of their own.
    assert_eq!(of_race.difference(&of_all).count(), candidates.len());
    // Candidates that were stopped have no others.
    assert_eq!(of_all.difference(&of_race).count(), fates("stopped"));
    assert!(!all.files().contains(&"reports/m/candidates.csv".to_owned()));
    // A cell that is completed from first runs is the one that is run from the start.
    race.run(&["verify", "results", "--all"]).expect(0);
}

/// The page says which candidates were stopped, and after which runs.
#[test]
fn the_page_of_a_race_says_what_was_stopped() {
    let bench = reported(&raced());
    let page = bench.read("reports/m/report.md");
    let stopped: usize = bench
        .rows("reports/m/tuned.csv")
        .iter()
        .map(|row| row["stopped"].parse::<usize>().unwrap())
        .sum();
    let sentence = format!("Candidates race: {stopped} of ");
    assert!(page.contains(&sentence), "{page}");
    assert!(page.contains("stopped after runs on the first 6 of 16 instances"), "{page}");
    assert!(page.contains(" stopped |"), "the table counts them: {page}");
    let caption = format!(
        "The points of {stopped} candidates that were stopped are means of runs on the first 6 of 16 instances."
    );
    assert!(page.contains(&caption), "{page}");
}

/// On a single instance first runs are the first third of its runs.
#[test]
fn runs_on_one_instance_race_too() {
    let one = |race: &str| {
        let more = format!("[1e-2, 0.5]\nrace = {race}");
        let tuned = include_str!("../manifests/tuned.toml");
        reported(&edited(tuned, &[("replicates = 3", "replicates = 15"), ("[1e-2, 0.5]", &more)]))
    };
    let (race, all) = (one("true"), one("false"));
    assert_eq!(selections(&race), selections(&all));
    let candidates = race.rows("reports/m/candidates.csv");
    let stopped: Vec<_> = candidates.iter().filter(|row| row["fate"] == "stopped").collect();
    assert!(!stopped.is_empty() && stopped.iter().all(|row| row["runs"] == "5"), "{stopped:?}");
}

/// Where a third of all runs is fewer than five, every candidate has all its runs.
#[test]
fn few_runs_are_no_race() {
    let few = edited(&raced(), &[("instances = 16", "instances = 12")]);
    let bench = reported(&few);
    assert!(bench.rows("reports/m/tuned.csv").iter().all(|row| row["stopped"] == "0"));
    assert!(!bench.files().contains(&"reports/m/candidates.csv".to_owned()));
}

/// Shards have the first runs; when they are merged, one run does what follows.
#[test]
fn shards_of_a_race_give_the_cells_of_one_run() {
    let bench = Bench::ran(&raced());
    for shard in ["1/2", "2/2"] {
        let out = format!("part-{}", &shard[..1]);
        bench.compute(&["m.toml", "--shard", shard, "--out", &out]);
    }
    bench.run(&["merge", "part-1", "part-2", "--out", "merged"]).expect(0);
    bench.compute(&["m.toml", "--out", "merged"]);
    assert_eq!(bench.digests("merged"), bench.digests("results"));
    bench.run(&["plan", "m.toml", "--out", "merged"]).expect(0).prints("0 missing");
    // Before any results the plan says what the first runs decide.
    let plan = bench.run(&["plan", "m.toml", "--out", "none"]).expect(0);
    plan.prints(" cells of 1 replicate on each of 6 instances").prints(
        "these are the first runs of candidates that race: then the others of those that are not stopped",
    );
}

/// A cell of a candidate that was removed is missed, whether it has first runs or all.
#[test]
fn a_removed_cell_of_a_race_is_missed() {
    let bench = Bench::ran(&raced());
    bench.report();
    let pack = bench.largest_pack("results/m");
    std::fs::remove_file(bench.path(&pack)).unwrap();
    let output = bench.run(&["report"]).expect(2);
    output.warns("a run stored all cells");
}
