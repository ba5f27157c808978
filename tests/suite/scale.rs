//! Many small cells: pages that a browser can open, which say what they leave out and where
//! it is; and results that a report does not mix.

use crate::support::{Bench, QUADRATIC, array, edited};

const FILE: &str = "experiments/many.toml";

/// Two algorithms over a square of settings.
fn manifest(side: usize, theory: &str) -> String {
    let base = [
        ("title = \"t\"", "title = \"Many\"\nrecord.points = 1"),
        ("seed = 1", "seed = 3"),
        ("noise = 0.1", "gradient-heterogeneity = 1.0, noise = 0.1"),
        ("rounds = 20", "rounds = 2"),
    ];
    let steps = array((1..=side).map(|i| i as f64 / 1000.0));
    let grid = format!("step-size = {steps}\nlocal-steps = {}", array(1..=side));
    let rest = format!(
        r#"
[[algorithm.fedavg]]
{grid}

[[algorithm.scaffold]]
{grid}

[[figure.convergence]]
id = "curves"
theory = {theory}

[[figure.winners]]
id = "map"
x = "step-size"
y = "local-steps"

[[claim.less]]
id = "small"
statement = "errors are below 1000"
left = {{}}
value = 1000.0
"#
    );
    edited(QUADRATIC, &base) + &rest
}

fn ran(side: usize, theory: &str) -> Bench {
    let bench = Bench::new();
    bench.write(FILE, manifest(side, theory));
    bench.compute(&[FILE]);
    bench
}

#[test]
fn a_page_of_many_cells_says_what_it_leaves_out_and_where_it_is() {
    let bench = ran(24, "[\"exact-moments\"]");
    bench.report();
    let (html, md) = (bench.read("reports/many/report.html"), bench.read("reports/many/report.md"));
    for page in [&html, &md] {
        assert!(page.contains("The 1 000 of 1 152 cells with the smallest mean; all are in"));
        assert!(page.contains("The first 1 000 of 1 152 rows; all are in"));
        assert!(page.contains("48 of 1 152 curves are drawn"));
    }
    assert!(html.contains("<a href=\"summary.csv\">") && md.contains("(claim-small.csv)"));
    assert!(html.len() < 2_000_000 && md.len() < 500_000, "{} {}", html.len(), md.len());
    let lines = |file: &str| bench.read(&format!("reports/many/{file}")).lines().count();
    assert_eq!((lines("summary.csv"), lines("finals.csv")), (1153, 1153));
    assert_eq!(lines("claim-small.csv"), 1153);
    let svg = bench.read("reports/many/figures/curves.svg");
    assert_eq!(svg.matches("class=\"series measured\"").count(), 48);
    assert_eq!(svg.matches("class=\"series theory\"").count(), 48);
    assert!(!bench.contents("results").keys().any(|name| name.contains("theory")));
    let before = bench.contents("reports");
    bench.report();
    assert_eq!(bench.contents("reports"), before);
}

#[test]
fn files_of_tables_that_were_cut_go_when_they_fit_again() {
    let bench = ran(3, "[]");
    bench.report();
    bench.write("reports/many/claim-small.csv", "of a run with more cells");
    let list = "reports/.exactfed-reports";
    bench.write(list, format!("{}many/claim-small.csv\n", bench.read(list)));
    bench.write("reports/many/mine.csv", "of the user");
    bench.report();
    assert!(!bench.path("reports/many/claim-small.csv").exists());
    assert!(bench.path("reports/many/mine.csv").exists());
}

#[test]
fn versions_are_not_mixed() {
    let bench = ran(2, "[]");
    let cell = bench.cells("results/many").remove(0);
    let now = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    bench.reindex(&cell, &[(now, "\"version\":\"0.0.9\"")]);
    let output = bench.run(&["report"]).expect(2);
    let text = format!(
        "error: many cannot be reported: its cells were computed by several versions of exactfed (1 cell by 0.0.9, 7 cells by {}), which a report does not mix: compute all with one (exactfed run {FILE} --force, with the --out of these results)\n",
        env!("CARGO_PKG_VERSION")
    );
    assert!(output.err.starts_with(&text), "{}", output.err);
    assert!(!bench.path("reports/many/report.md").exists());
    bench.compute(&[FILE, "--force"]);
    bench.report();
}

/// Other commits of one version are named next to the page, and are no error.
#[test]
fn commits_of_a_version_are_reported() {
    let bench = ran(2, "[]");
    let pack = bench.cells("results/many").remove(0);
    let bytes = bench.read_bytes(&pack);
    let key = b"\"commit\":\"";
    let from = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len();
    let length = bytes[from..].iter().position(|byte| *byte == b'"').unwrap();
    let commit = std::str::from_utf8(&bytes[from..from + length]).unwrap();
    let other = format!("{:x<length$}", "another");
    bench.reindex(&pack, &[(commit, &other)]);
    bench.report();
    assert!(bench.read("reports/many/provenance.md").contains("at commit another"));
}

/// Claims are judged on both sides, with exact moments: nothing of it is left behind.
#[test]
fn a_diff_leaves_the_folders_that_it_compares_as_they_are() {
    let bench = ran(2, "[]");
    let claim = "prediction = \"exact-moments\"\nfactor = 9.0";
    let changes = [("rounds = 2", "rounds = 3"), ("value = 1000.0", claim)];
    let other = edited(&manifest(2, "[]"), &changes);
    bench.write(FILE, &other);
    bench.compute(&[FILE, "--out", "other"]);
    let before = (bench.contents("results"), bench.contents("other"));
    bench.run(&["diff", "results", "other", "--fail-on", "none"]).expect(0);
    bench.run(&["diff", "other", "results", "--format", "json", "--fail-on", "none"]).expect(0);
    assert!(before == (bench.contents("results"), bench.contents("other")));
}
