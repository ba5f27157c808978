//! Records that clients draw without replacement in an epoch.

use super::{Data, manifest};
use exactfed_runner::manifest::Metric;
use std::fmt::Write;

/// Records of three classes, with a fifth of each client's in the test set.
fn table() -> String {
    let mut text = String::from("a,b,label\n");
    for i in 0..90 {
        writeln!(text, "{},{},{}", i * 7 % 23, i * i % 19, i * 7 % 23 / 8).unwrap();
    }
    text
}

/// The metrics of losses and of classes, over the records of clients and of the test set.
fn metrics_of_records() -> Vec<&'static str> {
    let ends = ["loss", "accuracy", "auc", "spread"];
    let names = Metric::ALL.iter().map(|metric| metric.name());
    names.filter(|name| ends.iter().any(|end| name.ends_with(end))).collect()
}

/// How records are drawn changes the steps, and not what is measured of a point: all metrics of records have the same
/// values at the start with and without replacement, and values at the end.
#[test]
fn what_is_measured_does_not_depend_on_how_records_are_drawn() {
    let metrics = metrics_of_records();
    // AUC needs two classes, and is tested with the others of logistic regression.
    for (kind, table, left_out) in [
        ("softmax-dataset", table(), &["auc", "test-auc"][..]),
        ("logistic-dataset", table().replace(",2\n", ",1\n"), &[]),
    ] {
        let metrics: Vec<&str> =
            metrics.iter().copied().filter(|name| !left_out.contains(name)).collect();
        assert!(metrics.len() >= 18, "{metrics:?}");
        let problem = format!(
            "[problem.{kind}]\nl2 = 0.1\nbatch = 4\nsampling = [\"with-replacement\", \"reshuffled\"]\n\
             dataset = {{ file = \"r.csv\", clients = 3, split = {{ shards = 2 }}, test = 0.2, test-within = \"clients\", standardise = true }}"
        );
        let data = Data::new(&problem, "r.csv", table.as_bytes());
        let text = manifest(&problem).replace("local-steps = 2", "local-epochs = 1");
        let text = text.replace("zero = true", "offset = 0.5");
        data.bench.write("mine.toml", format!("{text}[record]\nmetrics = {metrics:?}\n"));
        data.accepted();
        data.bench.run(&["export", "results", "--out", "rows.csv"]).expect(0);
        let rows = data.bench.rows("rows.csv");
        let at_start: Vec<_> = rows.iter().filter(|row| row["round"] == "0").collect();
        let [one, other] = at_start[..] else { panic!("{at_start:?}") };
        assert_ne!(one["sampling"], other["sampling"]);
        for metric in metrics.iter().map(|name| name.replace('-', "_")) {
            let value: f64 = one[&metric].parse().unwrap();
            assert!(value.is_finite(), "{metric}");
            assert_eq!(one[&metric], other[&metric], "{metric}");
            for row in &rows {
                assert!(row[&metric].parse::<f64>().is_ok_and(f64::is_finite), "{metric}: {row:?}");
            }
        }
    }
}
