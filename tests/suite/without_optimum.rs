//! `[record] optimum = false`: runs that no θ* is searched for, driven as a user drives them. What
//! they have in common with the same runs with θ* has the same bits, and what needs θ* is nowhere.

use crate::support::{Bench, Finished, edited, exactfed};
use std::collections::{BTreeMap, HashMap};

/// A problem of records of three classes or of two, by its kind and the column of its labels.
const PROBLEMS: [(&str, &str); 2] = [("softmax-dataset", "kind"), ("logistic-dataset", "side")];

/// FedAvg and Scaffold on these records, with figures and claims that name no quantity or a loss.
fn manifest(kind: &str, label: &str, optimum: bool) -> String {
    let optimum = if optimum { "" } else { "optimum = false\n" };
    format!(
        r#"title = "t"
finding = "FedAvg ends at {{{{ value(cell(\"FedAvg\", local_steps=4), of=\"train-loss\") }}}}"
seed = 1
replicates = 4
[problem.{kind}]
l2 = 0.1
[problem.{kind}.dataset]
file = "records.csv"
features = ["a", "b"]
label = "{label}"
clients = 3
test = 0.25
[start]
zero = true
[budget]
rounds = 12
[record]
every = 3
metrics = ["test-loss", "train-loss", "test-accuracy"]
{optimum}[[algorithm.fedavg]]
step-size = 0.1
local-steps = [1, 4]
[[algorithm.scaffold]]
step-size = 0.1
local-steps = [1, 4]
[[figure.convergence]]
[[figure.scaling]]
x = "local-steps"
[[figure.winners]]
x = "local-steps"
y = "step-size"
[[figure.stability]]
x = "local-steps"
y = "step-size"
[[claim.less]]
id = "more-steps"
statement = "More local steps end at a smaller loss"
metric = "train-loss"
left = {{ label = "FedAvg", local-steps = 4 }}
right = {{ label = "FedAvg", local-steps = 1 }}
"#
    )
}

fn records() -> String {
    let record = |i: u32| {
        let (x, y) = (f64::from(i * 7 % 13) / 13.0, f64::from(i * 5 % 11) / 11.0);
        let class = i % 3;
        let (a, b) = (x + f64::from(class), y - f64::from(class));
        format!("{a},{b},{},{}\n", ["x", "y", "z"][class as usize], u8::from(class > 0))
    };
    std::iter::once("a,b,kind,side\n".to_owned()).chain((0..60).map(record)).collect()
}

/// A bench with the manifests `with.toml` and `without.toml` on a problem.
fn bench((kind, label): (&str, &str)) -> Bench {
    let bench = Bench::new();
    bench.write("records.csv", records());
    let optimum = true;
    bench.write("with.toml", manifest(kind, label, optimum));
    bench.write("without.toml", manifest(kind, label, !optimum));
    bench
}

/// The rows of an export, each with the columns that both have, by what tells them apart.
fn measured(rows: &[HashMap<String, String>]) -> BTreeMap<String, [String; 4]> {
    let of = |row: &HashMap<String, String>, names: &[&str]| -> String {
        names.iter().map(|name| row[*name].clone() + " ").collect()
    };
    let row = |row: &HashMap<String, String>| {
        let key = of(row, &["algorithm", "algorithm_local_steps", "replicate", "round"]);
        let names = ["train_loss", "test_loss", "test_accuracy", "outcome"];
        (key, names.map(|name| row[name].clone()))
    };
    rows.iter().map(row).collect()
}

#[test]
fn losses_have_the_same_bits_and_there_is_no_error() {
    for problem in PROBLEMS {
        let bench = bench(problem);
        let mut exported = Vec::new();
        for name in ["with", "without"] {
            let (manifest, out) = (format!("{name}.toml"), format!("{name}-results"));
            bench.compute(&[&manifest, "--out", &out]);
            let file = format!("{name}.csv");
            bench.run(&["export", &out, "--out", &file]).expect(0);
            exported.push(bench.rows(&file));
        }
        let [with, without] = &exported[..] else { unreachable!() };
        assert_eq!(with.len(), 4 * 4 * 5);
        assert_eq!(measured(with), measured(without));
        assert!(with[0].contains_key("sq_error"));
        let columns = without[0].keys().filter(|name| name.starts_with("sq_error"));
        assert_eq!(columns.count(), 0, "{:?}", without[0]);
        let ids = |rows: &[HashMap<String, String>]| rows[0]["cell"].clone();
        assert_ne!(ids(with), ids(without), "another cell is another result");
    }
}

#[test]
fn digests_depend_neither_on_threads_nor_on_parts() {
    let bench = bench(PROBLEMS[0]);
    bench.compute(&["without.toml", "--threads", "1"]);
    let digests = bench.digests("results");
    assert_eq!(digests.len(), 4);
    bench.compute(&["without.toml", "--threads", "3", "--out", "other"]);
    assert_eq!(bench.digests("other"), digests);
    // Some cells are there already, and some have fewer runs.
    bench.compute(&["without.toml", "--shard", "1/2", "--out", "parts"]);
    bench.compute(&["without.toml", "--replicates", "2", "--out", "parts"]);
    bench.compute(&["without.toml", "--out", "parts"]);
    let all = bench.digests("parts");
    assert!(digests.iter().all(|digest| all.contains(digest)), "{all:?} lacks some of {digests:?}");
    for half in ["1/2", "2/2"] {
        let out = format!("half-{}", &half[..1]);
        bench.compute(&["without.toml", "--shard", half, "--out", &out]);
    }
    bench.run(&["merge", "half-1", "half-2", "--out", "merged"]).expect(0);
    assert_eq!(bench.digests("merged"), digests);
    bench.run(&["verify", "merged"]).expect(0).prints("4 bit-identical");
}

/// A run that is interrupted between its cells goes on to the same digests.
#[test]
fn an_interrupted_run_goes_on_without_an_optimum() {
    let bench = bench(PROBLEMS[0]);
    let long = [("rounds = 12", "rounds = 300_000"), ("every = 3", "every = 100_000")];
    bench.write("long.toml", edited(&bench.read("without.toml"), &long));
    bench.compute(&["long.toml", "--out", "calm"]);
    let program = exactfed().args(["run", "long.toml", "--threads", "1"]).folder(&bench.folder);
    let mut run = program.start();
    let stored = bench.path("results/long");
    run.wait_for("cells", |_| {
        let mut files = std::fs::read_dir(&stored).ok()?.flatten();
        files.find(|file| file.path().extension().is_some_and(|end| end == "parquet"))
    });
    run.signal("INT");
    Finished::from(run.finish()).expect(130);
    let kept = bench.digests("results").len();
    assert!((1..4).contains(&kept), "{kept} cells");
    bench.compute(&["long.toml"]);
    assert_eq!(bench.digests("results"), bench.digests("calm"));
}

#[test]
fn a_page_has_the_loss_in_place_of_the_error() {
    let bench = bench(PROBLEMS[1]);
    bench.compute(&["without.toml"]);
    bench.report();
    let page = bench.read("reports/without/report.md");
    for part in [
        "FedAvg ends at 0.",
        "## test loss over communications",
        "| local-steps | smallest mean error | test loss |",
        "| algorithm | local-steps | test loss, mean | sd |",
        "θ\\* was not searched for (record.optimum = false)",
        "| 3 | 2 | – | – | – | – | – |",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    for part in ["‖θ − θ\\*‖²", "diverged |", "NaN", "no cell has results"] {
        assert!(!page.contains(part), "{part} is in {page}");
    }
    // Every table has rows.
    let lines: Vec<&str> = page.lines().collect();
    let rules = lines.iter().enumerate().filter(|(_, line)| line.starts_with("| --- |"));
    for (place, _) in rules {
        let next = lines.get(place + 1);
        assert!(next.is_some_and(|line| line.starts_with('|')), "{}", lines[place - 1]);
    }
    let summary = bench.rows("reports/without/summary.csv");
    assert!(summary.iter().all(|row| row["test_loss_mean"].parse::<f64>().is_ok()));
    assert!(!summary[0].contains_key("sq_error_mean"));
}

#[test]
fn a_diff_compares_losses_and_never_a_loss_with_an_error() {
    let bench = bench(PROBLEMS[1]);
    bench.compute(&["without.toml", "--out", "before"]);
    bench.compute(&["without.toml", "--set", "problem.logistic-dataset.l2=0.1", "--out", "same"]);
    bench.run(&["diff", "before", "same"]).expect(0).prints("4 cells bit-identical, 0 changed");
    let larger = "algorithm.scaffold.step-size=0.2";
    bench.compute(&["without.toml", "--set", larger, "--out", "after"]);
    let changed = bench.run(&["diff", "before", "after"]);
    assert!(changed.out.contains("errors are those of test loss"), "{}", changed.out);
    assert!(changed.out.contains("Final test loss, after over before"), "{}", changed.out);
    // A report stores the same numbers.
    bench.run(&["report", "--quiet", "before", "--out", "pages"]).expect(0);
    bench.run(&["diff", "pages", "before"]).expect(0).prints("4 cells bit-identical, 0 changed");
    // The same manifest with θ*: other cells, of which the errors are no losses.
    bench.compute(&["without.toml", "--set", "record.optimum=true", "--out", "errors"]);
    let other = bench.run(&["diff", "before", "errors"]);
    assert!(!other.out.contains("worse") && !other.out.contains("better"), "{}", other.out);
}

#[test]
fn replicates_are_added_until_a_claim_on_losses_is_decided() {
    let bench = bench(PROBLEMS[1]);
    let run = ["run", "without.toml", "--until-decided", "--max-replicates", "16"];
    bench.run(&run).expect(0);
    bench.report();
    let page = bench.read("reports/without/report.md");
    assert!(page.contains("| **supported** |"), "{page}");
}

/// A tuned manifest selects and ranks by the loss, also where `[tune]` names no metric.
#[test]
fn candidates_are_selected_by_the_loss() {
    let bench = bench(PROBLEMS[1]);
    let text = bench.read("without.toml");
    let begin = text.find("finding").unwrap();
    let end = text.find("[[algorithm.fedavg]]").unwrap();
    let head = &text[begin + text[begin..].find('\n').unwrap() + 1..end];
    let text = format!(
        "title = \"t\"\n{head}[tune]\nover = \"step-size\"\nvalues = [0.01, 0.1]\n\
         [[algorithm.fedavg]]\nlocal-steps = 2\n[[algorithm.scaffold]]\nlocal-steps = 2\n"
    );
    bench.write("tuned.toml", text);
    bench.compute(&["tuned.toml"]);
    bench.report();
    let page = bench.read("reports/tuned/report.md");
    assert!(page.contains("test loss") && !page.contains("‖θ"), "{page}");
}
