//! Runs that end at a target (`budget.until`), against the same runs without it.

use crate::support::{Bench, Finished, edited};
use std::collections::BTreeMap;

/// Slow, fast and hopeless: FedAvg with one local step and with ten come to the target, and a step size of 1e-6 does not
/// within the budget.
const MANIFEST: &str = r#"title = "t"
seed = 1
replicates = 5
start.offset = 1.0

[problem.quadratic]
dimension = 3
clients = 4
spectrum = { from = 0.5, to = 1.0 }
noise = 0.1

[budget]
rounds = 100
until = { metric = "sq-error", target = 0.05 }

[compare]
metric = "communications"

[record]
every = 2

[[algorithm.fedavg]]
label = "Slow"
step-size = 0.05
local-steps = 1

[[algorithm.fedavg]]
label = "Fast"
step-size = 0.05
local-steps = 10

[[algorithm.fedavg]]
label = "Hopeless"
step-size = 1e-6
local-steps = 1

[[figure.convergence]]
id = "curves"

[[claim.reaches-before]]
id = "fast"
statement = "Fast is at the target before Slow"
left = { label = "Fast" }
right = { label = "Slow" }
reaching = { target = 0.05 }

[[claim.reaches-before]]
id = "fifth"
statement = "Fast pays less than a fifth of what Hopeless pays"
left = { label = "Fast" }
right = { label = "Hopeless" }
reaching = { target = 0.05 }
factor = 0.2

[[claim.reaches-before]]
id = "slow"
statement = "Slow is at the target before Fast"
left = { label = "Slow" }
right = { label = "Fast" }
reaching = { target = 0.05 }
expected = "refuted"
refutes = "reading"
reason = "it is the other way round"

[[claim.less]]
id = "paid"
statement = "Fast pays less until its target than Slow, run by run"
metric = "communications"
left = { label = "Fast" }
right = { label = "Slow" }

[[claim.less]]
id = "never"
statement = "Hopeless pays less than three times what Slow pays"
metric = "communications"
left = { label = "Hopeless" }
right = { label = "Slow" }
factor = 3.0
expected = "not-tested"
reason = "it never reaches the target"
"#;

/// The keys of the manifest that are about the target, and nothing in their place.
const WITHOUT_TARGET: [(&str, &str); 2] = [
    ("until = { metric = \"sq-error\", target = 0.05 }\n", ""),
    ("[compare]\nmetric = \"communications\"\n", ""),
];

/// What a row of a run says: the round, the squared error, the communications and the outcome of the run.
type RunRow = [String; 4];

/// The rows of each run, by its label and its number.
fn rows_of_runs(bench: &Bench) -> BTreeMap<[String; 2], Vec<RunRow>> {
    bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
    let mut runs: BTreeMap<[String; 2], Vec<RunRow>> = BTreeMap::new();
    for row in bench.rows("rows.csv") {
        let run = ["label", "replicate"].map(|key| row[key].clone());
        let values = ["round", "sq_error", "communications", "outcome"].map(|key| row[key].clone());
        runs.entry(run).or_default().push(values);
    }
    runs
}

/// Each run is the same run without a target, up to the first recorded round at which it has come down to the target.
#[test]
fn a_run_ends_at_the_first_recorded_round_at_its_target() {
    let ended = rows_of_runs(&Bench::ran(MANIFEST));
    let text = edited(MANIFEST, &WITHOUT_TARGET);
    let whole = rows_of_runs(&Bench::ran(&text[..text.find("[[claim.less]]").unwrap()]));
    assert_eq!(ended.len(), 15);
    for (run, rows) in &ended {
        let all = &whole[run];
        let is_met = |row: &RunRow| row[1].parse::<f64>().unwrap() <= 0.05;
        let first = all.iter().position(is_met);
        assert_eq!(first.is_none(), run[0] == "Hopeless", "{run:?}");
        let expected = first.map_or(all.len(), |first| first + 1);
        assert_eq!(rows.len(), expected, "{run:?}");
        let outcome = if first.is_some() { "reached" } else { "finished" };
        for (row, other) in rows.iter().zip(all) {
            assert_eq!((&row[..3], row[3].as_str()), (&other[..3], outcome), "{run:?}");
        }
    }
}

/// Claims and the ranking count what was paid until the target, and a run that does not reach it is never the better one.
#[test]
fn algorithms_are_ranked_by_what_they_pay_until_the_target() {
    let bench = Bench::ran(MANIFEST);
    bench.report();
    let page = bench.read("reports/m/report.md");
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let claims = record["claim"].as_array().unwrap();
    let verdict = |id: &str| {
        let claim = claims.iter().find(|claim| claim["id"].as_str() == Some(id)).unwrap();
        claim["verdict"].as_str().unwrap().to_owned()
    };
    for id in ["fast", "fifth", "paid"] {
        assert_eq!(verdict(id), "supported", "{id}\n{page}");
    }
    assert_eq!(verdict("slow"), "refuted", "{page}");
    assert_eq!(verdict("never"), "not tested", "{page}");
    let runs = rows_of_runs(&bench);
    let paid = |label: &str| {
        let own = runs.iter().filter(|(run, _)| run[0] == label);
        let last = own.map(|(_, rows)| rows.last().unwrap()[2].parse::<f64>().unwrap());
        last.sum::<f64>() / 5.0
    };
    assert!(paid("Fast") < paid("Slow") && paid("Hopeless") == 100.0);
    for part in [
        "cost in communications",
        "Costs are counted until the first recorded round at which ‖θ − θ\\*‖² is at most 0.05.",
        "not at the target in all runs: Hopeless",
        "Hopeless not within 100 communications",
        "a run does not reach the target, so that its cost is not known",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
}

/// The decision is a function of the numbers of the run, so that any number of threads gives the same bits.
#[test]
fn the_number_of_threads_changes_nothing() {
    let one = Bench::ran(MANIFEST);
    let other = Bench::ran(MANIFEST);
    other.run(&["verify", "results", "--all", "--threads", "3", "--quiet"]).expect(0);
    assert_eq!(rows_of_runs(&one), rows_of_runs(&other));
}

/// What `check` says of a manifest.
fn check(text: &str) -> Finished {
    let bench = Bench::new();
    bench.write("m.toml", text);
    bench.run(&["check", "m.toml"])
}

/// What is wrong with a target is said before anything runs.
#[test]
fn targets_are_checked() {
    for (change, part) in [
        ("\"sq-error\", target = 0.0", "must be a finite number above 0, not 0"),
        ("\"communications\", target = 5.0", "is not measured at the rounds of every run"),
        ("\"train-loss\", target = 0.5", "`train-loss` is not recorded"),
        ("\"lyapunov\", target = 0.5", "`lyapunov` is not recorded"),
    ] {
        let text = edited(MANIFEST, &[("\"sq-error\", target = 0.05", change)]);
        let output = check(&text);
        assert_eq!(output.code, 2, "{change}: {}", output.err);
        assert!(output.err.contains(part), "no {part:?} in\n{}", output.err);
    }
    let without = edited(MANIFEST, &WITHOUT_TARGET[..1]);
    let output = check(&without);
    assert!(output.err.contains("or as `until` in [budget], where runs end"), "{}", output.err);
    let figure = "[[figure.convergence]]\nid = \"curves\"";
    let theory = edited(MANIFEST, &[(figure, &format!("{figure}\ntheory = [\"exact-moments\"]"))]);
    let output = check(&theory);
    assert!(output.err.contains("`budget.until` ends runs earlier"), "{}", output.err);
    let averaged = edited(MANIFEST, &[("every = 2", "every = 2\naverages = [\"bias\"]")]);
    let output = check(&averaged);
    assert!(output.err.contains("excludes `averages` in [record]"), "{}", output.err);
}
