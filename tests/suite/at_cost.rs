//! Comparisons at a cost, against an independent reading of the traces.

use crate::support::{Bench, edited};
use std::collections::BTreeMap;

/// Runs of unequal cost: two runs in one, a coin, and a batch.
const MANIFEST: &str = include_str!("../manifests/at-cost.toml");

/// The mean over the runs of a label of ‖θ − θ*‖² at the last row that costs at most this.
fn mean_at(bench: &Bench, label: &str, unit: &str, most: f64) -> f64 {
    let mut runs: BTreeMap<String, f64> = BTreeMap::new();
    for row in bench.rows("rows.csv").iter().filter(|row| row["label"] == label) {
        // Rows of a run are in the order of its rounds.
        if row[unit].parse::<f64>().unwrap() <= most {
            runs.insert(row["replicate"].clone(), row["sq_error"].parse().unwrap());
        }
    }
    assert_eq!(runs.len(), 5, "{label}");
    runs.values().sum::<f64>() / 5.0
}

const UNITS: [(&str, &str, f64); 6] = [
    ("communications", "communications", 50.0),
    ("gradients", "sequential_calls", 130.0),
    ("local-steps", "local_step", 77.0),
    ("oracle-calls", "oracle_calls", 400.0),
    ("vectors-sent", "vectors_sent", 150.0),
    ("bytes", "bytes_sent", 5000.0),
];

#[test]
fn claims_and_rankings_compare_the_last_affordable_rows() {
    let labels = ["FedAvg", "Richardson-Romberg", "Scaffnew"];
    let mut text = MANIFEST.to_owned();
    for (i, label) in labels.iter().enumerate() {
        for (unit, _, most) in UNITS {
            text += &format!(
                "[[claim.less]]\nid = \"{unit}-{i}\"\nstatement = \"s\"\nleft = {{ label = \"{label}\" }}\nvalue = 1.0\nat = {{ {unit} = {most} }}\n"
            );
        }
    }
    let bench = Bench::ran(&text);
    bench.run(&["report", "--quiet"]);
    bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
    let record: toml::Table = bench.read("reports/m/record.toml").parse().unwrap();
    let claims = record["claim"].as_array().unwrap();
    for (i, label) in labels.iter().enumerate() {
        for (unit, column, most) in UNITS {
            let id = format!("{unit}-{i}");
            let claim = claims.iter().find(|c| c["id"].as_str() == Some(&id)).unwrap();
            let (have, wanted) =
                (claim["estimate"].as_float().unwrap(), mean_at(&bench, label, column, most));
            assert!((have / wanted - 1.0).abs() < 1e-9, "{id}: {have}, not {wanted}");
        }
    }
    // One grid point: the table has the smallest mean with three digits, here four decimals.
    let best = labels.map(|label| mean_at(&bench, label, "communications", 50.0));
    let best = best.into_iter().fold(f64::INFINITY, f64::min);
    let page = bench.read("reports/m/report.md");
    let row = page.lines().find(|line| line.contains("tie: ") || line.contains("] | 5 |")).unwrap();
    assert!(row.contains(&format!("| {best:.4} |")), "{best}\n{row}");
    for part in [
        "Compared at 50 communications: ",
        "At 50 communications gradients differ: FedAvg and Richardson-Romberg 48 communications and 192 gradients of a client; Scaffnew ",
        "of ‖θ − θ\\*‖² at 130 gradients of a client (n = 5 runs)",
        "After the last round gradients differ: FedAvg and Richardson-Romberg 100 communications and 400 gradients of a client; Scaffnew 100 communications and ",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
}

/// A coin may end a run before the cost is reached: the cell is not ranked, and its claim not tested.
#[test]
fn runs_that_end_before_are_not_compared() {
    let changes = [
        ("communications = 100", "rounds = 100"),
        ("at = { gradients = 130 }", "at = { gradients = 390 }"),
        ("at = { communications = 50 }", "at = { gradients = 390 }"),
    ];
    let text = edited(MANIFEST, &changes)
        + "[[claim.less]]\nid = \"a\"\nstatement = \"s\"\nleft = { label = \"Scaffnew\" }\nright = { label = \"FedAvg\" }\nat = { gradients = 390 }\n";
    let bench = Bench::ran(&text);
    assert_eq!(bench.run(&["report"]).code, 1, "a claim that is not tested");
    let page = bench.read("reports/m/report.md");
    for part in [
        "its runs end before 390 gradients of a client",
        "Not compared, because runs end before 390 gradients of a client: Scaffnew",
        "runs end before: Scaffnew",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
}

/// Runs that have paid the same are said to have.
#[test]
fn equal_costs_are_stated() {
    let changes = [("at = { communications = 50 }", "at = { communications = 90 }")];
    let text = edited(MANIFEST, &changes);
    let start = text.find("[[algorithm.scaffnew]]").unwrap();
    let text = text[..start].to_owned();
    let bench = Bench::ran(&text);
    bench.report();
    let page = bench.read("reports/m/report.md");
    let part = "At 90 communications the compared runs have all cost 90 communications and 360 gradients of a client.";
    assert!(page.contains(part), "{page}");
}
