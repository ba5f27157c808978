//! Comparisons at a target (`at = { until = … }`), where runs go on, against an independent reading of the traces.

use crate::support::{Bench, edited};
use exactfed::words::plain;
use std::collections::BTreeMap;

/// FedAvg with one local step and with ten come to the target in every run; with a small step size some runs do, and
/// with a tiny one none does.
const MANIFEST: &str = r#"title = "t"
seed = 1
replicates = 8
start.offset = 1.0

[problem.quadratic]
dimension = 3
clients = 4
spectrum = { from = 0.5, to = 1.0 }
noise = 0.1

[budget]
rounds = 100

[compare]
at = { until = { metric = "sq-error", target = 0.05 } }

[record]
every = 2

[[algorithm.fedavg]]
label = "Slow"
step-size = 0.05
local-steps = [1, 2]

[[algorithm.fedavg]]
label = "Fast"
step-size = 0.05
local-steps = [10, 20]

[[algorithm.fedavg]]
label = "Hopeless"
step-size = 1e-6
local-steps = 1

[[figure.scaling]]
id = "paid"
x = "local-steps"
y = "communications"
at = { until = { metric = "sq-error", target = 0.05 } }

[[figure.convergence]]
id = "curves"

[[claim.less]]
id = "bytes"
statement = "Fast has sent less than half of what Slow has when each is at the target"
metric = "bytes"
left = { label = "Fast", local-steps = 10 }
right = { label = "Slow", local-steps = 1 }
factor = 0.5
at = { until = { metric = "sq-error", target = 0.05 } }

[[claim.less]]
id = "never"
statement = "Hopeless pays less than three times what Slow pays"
metric = "communications"
left = { label = "Hopeless" }
right = { label = "Slow", local-steps = 1 }
factor = 3.0
at = { until = { metric = "sq-error", target = 0.05 } }
expected = "not-tested"
reason = "it never reaches the target"
"#;

/// The communications and bytes of each run of a cell at the first row at or below the target; none for a run that
/// never is. Cells are named by label and local steps.
fn paid(bench: &Bench, target: f64) -> BTreeMap<(String, String), Vec<Option<[f64; 2]>>> {
    bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
    let mut runs: BTreeMap<(String, String, String), Option<[f64; 2]>> = BTreeMap::new();
    for row in bench.rows("rows.csv") {
        let number = |column: &str| row[column].parse::<f64>().unwrap();
        let run = [&row["label"], &row["local_steps"], &row["replicate"]];
        let [label, steps, replicate] = run.map(Clone::clone);
        let first = runs.entry((label, steps, replicate)).or_default();
        if first.is_none() && number("sq_error") <= target {
            *first = Some([number("communications"), number("bytes_sent")]);
        }
    }
    let mut cells: BTreeMap<(String, String), Vec<Option<[f64; 2]>>> = BTreeMap::new();
    for ((label, steps, _), first) in runs {
        cells.entry((label, steps)).or_default().push(first);
    }
    cells
}

/// The mean over all runs of a cell of what they have paid, in communications and in bytes.
fn mean_paid(
    cells: &BTreeMap<(String, String), Vec<Option<[f64; 2]>>>,
    cell: [&str; 2],
) -> [f64; 2] {
    let runs = &cells[&(cell[0].to_owned(), cell[1].to_owned())];
    assert_eq!(runs.len(), 8);
    [0, 1].map(|unit| runs.iter().map(|run| run.unwrap()[unit]).sum::<f64>() / 8.0)
}

#[test]
fn what_runs_pay_until_a_target_is_ranked_claimed_and_drawn() {
    let bench = Bench::ran(MANIFEST);
    bench.report();
    let page = bench.read("reports/m/report.md");
    let cells = paid(&bench, 0.05);
    let [fast, slow] = [["Fast", "10"], ["Slow", "1"]].map(|cell| mean_paid(&cells, cell));
    assert!(cells[&("Hopeless".to_owned(), "1".to_owned())].iter().all(Option::is_none));
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let claims = record["claim"].as_array().unwrap();
    let claim = |id: &str| claims.iter().find(|claim| claim["id"].as_str() == Some(id)).unwrap();
    let ratio = claim("bytes")["estimate"].as_float().unwrap();
    assert!((ratio / (fast[1] / slow[1]) - 1.0).abs() < 1e-9, "{ratio}, not {fast:?} / {slow:?}");
    assert_eq!(claim("bytes")["verdict"].as_str(), Some("supported"));
    assert_eq!(claim("never")["verdict"].as_str(), Some("not tested"));
    for part in [
        "at the first recorded round at which ‖θ − θ\\*‖² is at most 0.05",
        "not at the target in all runs: Hopeless (8 of 8 runs, median ∞ \\[∞, ∞\\])",
        "1 of 5 cells are omitted: 8 of 8 runs do not reach the target.",
        "a run does not reach the target, so that its cost is not known",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    // With one local step Slow is compared with Hopeless, which has no rank.
    assert!(page.contains(&format!("| {} |", plain(slow[0], 3))), "{slow:?}\n{page}");
    let summary = bench.rows("reports/m/summary.csv");
    let row = |label: &str| summary.iter().find(|row| row["label"] == label).unwrap();
    assert_eq!(row("Hopeless")["reached"], "0");
    assert_eq!(row("Hopeless")["communications_at_target_median"], "inf");
    assert_eq!(row("Fast")["reached"], "8");
    let mut all: Vec<f64> =
        cells[&("Fast".to_owned(), "10".to_owned())].iter().map(|run| run.unwrap()[0]).collect();
    all.sort_by(f64::total_cmp);
    let median = row("Fast")["communications_at_target_median"].parse::<f64>().unwrap();
    assert_eq!(median, 0.5 * (all[3] + all[4]));
}

/// Candidates are selected by what they pay until the target, and one that does not reach it is not.
#[test]
fn tuning_selects_what_pays_least() {
    let start = MANIFEST.find("[[algorithm.fedavg]]").unwrap();
    let text = edited(
        &MANIFEST[..start],
        &[("[compare]\nat", "[tune]\nover = \"step-size\"\nvalues = [1e-6, 0.01, 0.1]\nat")],
    );
    let bench = Bench::ran(
        &(text
            + "[[algorithm.fedavg]]\nlocal-steps = 1\n[[algorithm.scaffold]]\nlocal-steps = 1\n"),
    );
    bench.report();
    let tuned = bench.rows("reports/m/tuned.csv");
    assert_eq!(tuned.len(), 2);
    assert!(tuned.iter().all(|row| row["selected"] == "0.1"), "{tuned:?}");
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("communications of fresh runs"), "{page}");
}

/// What is wrong with a target is said before anything runs.
#[test]
fn targets_are_checked() {
    let bench = Bench::new();
    for (from, to, part) in [
        (
            "\"sq-error\", target = 0.05 } }\n\n[record]",
            "\"sq-error\", target = 0.0 } }\n\n[record]",
            "`target` must be a finite number above 0, not 0",
        ),
        (
            "\"sq-error\", target = 0.05 } }\n\n[record]",
            "\"bytes\", target = 5.0 } }\n\n[record]",
            "`metric` = \"bytes\" is not measured at the rounds of every run",
        ),
        (
            "\"sq-error\", target = 0.05 } }\n\n[record]",
            "\"train-loss\", target = 0.5 } }\n\n[record]",
            "`train-loss` is not recorded",
        ),
        (
            "y = \"communications\"\nat",
            "y = \"communications\"\ntheory = [\"exact-moments\"]\nat",
            "predictions are of the last round: delete `at` or `theory`",
        ),
        (
            "[compare]\nat",
            "[compare]\nmetric = \"bytes\"\n# at",
            "write it as `at = { until = … }`",
        ),
    ] {
        bench.write("m.toml", edited(MANIFEST, &[(from, to)]));
        let output = bench.run(&["check", "m.toml"]);
        assert_eq!(output.code, 2, "{to}: {}", output.err);
        assert!(output.err.contains(part), "no {part:?} in\n{}", output.err);
    }
}
