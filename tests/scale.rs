//! Many small cells: pages that a browser can open, which say what they leave out and where
//! it is; and results that a report does not mix.

mod support;

use support::Bench;

const FILE: &str = "experiments/many.toml";

/// Two algorithms over a square of settings.
fn manifest(side: usize, theory: &str) -> String {
    let steps: Vec<String> = (1..=side).map(|i| format!("{}", i as f64 / 1000.0)).collect();
    let locals: Vec<String> = (1..=side).map(|i| i.to_string()).collect();
    let (steps, locals) = (steps.join(", "), locals.join(", "));
    format!(
        r#"
title = "Many"
seed = 3
replicates = 2

[problem.quadratic]
dimension = 2
clients = 2
spectrum = {{ from = 0.5, to = 1.0 }}
gradient-heterogeneity = 1.0
noise = 0.1

[start]
offset = 1.0

[budget]
rounds = 2

[record]
points = 1

[[algorithm.fedavg]]
step-size = [{steps}]
local-steps = [{locals}]

[[algorithm.scaffold]]
step-size = [{steps}]
local-steps = [{locals}]

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
    )
}

fn ran(side: usize, theory: &str) -> Bench {
    let bench = Bench::new();
    bench.write(FILE, &manifest(side, theory));
    bench.run(&["run", FILE, "--quiet"]).expect(0);
    bench
}

/// Every file below a folder, with its bytes.
fn everything(bench: &Bench, folder: &str) -> Vec<(String, Vec<u8>)> {
    let (mut all, mut open) = (Vec::new(), vec![bench.path(folder)]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => all.push((
                    entry.path().display().to_string(),
                    std::fs::read(entry.path()).unwrap(),
                )),
            }
        }
    }
    all.sort();
    all
}

/// Writes a record as another program would have: with the hash that its last line holds.
fn reseal(path: &std::path::Path, text: &str) {
    let body = text.rsplit_once("# sha256 ").unwrap().0;
    let hash = driftbench::files::sha256(body.as_bytes());
    std::fs::write(path, format!("{body}# sha256 {hash}\n")).unwrap();
}

#[test]
fn a_page_of_many_cells_says_what_it_leaves_out_and_where_it_is() {
    let bench = ran(24, "[\"exact-moments\"]");
    bench.run(&["report", "--quiet"]).expect(0);
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
    let kept = everything(&bench, "results").into_iter().map(|(name, _)| name);
    assert_eq!(kept.filter(|name| name.contains("theory")).count(), 0);
    let before = everything(&bench, "reports");
    bench.run(&["report", "--quiet"]).expect(0);
    assert_eq!(everything(&bench, "reports"), before);
}

#[test]
fn files_of_tables_that_were_cut_go_when_they_fit_again() {
    let bench = ran(3, "[]");
    bench.run(&["report", "--quiet"]).expect(0);
    bench.write("reports/many/claim-small.csv", "of a run with more cells");
    let list = "reports/.driftbench-reports";
    bench.write(list, &format!("{}many/claim-small.csv\n", bench.read(list)));
    bench.write("reports/many/mine.csv", "of the user");
    bench.run(&["report", "--quiet"]).expect(0);
    assert!(!bench.path("reports/many/claim-small.csv").exists());
    assert!(bench.path("reports/many/mine.csv").exists());
}

#[test]
fn versions_are_not_mixed() {
    let bench = ran(2, "[]");
    let folder = bench.path("results/many");
    let cells = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut cells: Vec<_> = cells.filter(|p| p.join("cell.toml").is_file()).collect();
    cells.sort();
    let path = cells[0].join("cell.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let now = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&now), "{text}");
    reseal(&path, &text.replace(&now, "version = \"0.0.9\""));
    let said = bench.run(&["report"]).expect(2);
    let told = format!(
        "error: many cannot be reported: its cells were computed by several versions of driftbench (1 cell by 0.0.9, 7 cells by {}), which a report does not mix: compute all with one (driftbench run {FILE} --force, with the --out of these results)\n",
        env!("CARGO_PKG_VERSION")
    );
    assert!(said.err.starts_with(&told), "{}", said.err);
    assert!(!bench.path("reports/many/report.md").exists());
    bench.run(&["run", FILE, "--force", "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
}

/// Other commits of one version are told beside the page and not refused.
#[test]
fn commits_of_a_version_are_told() {
    let bench = ran(2, "[]");
    let folder = bench.path("results/many");
    let cells = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let path = cells.map(|p| p.join("cell.toml")).find(|p| p.is_file()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().find(|line| line.starts_with("commit = ")).unwrap();
    reseal(&path, &text.replace(line, "commit = \"another\""));
    bench.run(&["report", "--quiet"]).expect(0);
    assert!(bench.read("reports/many/provenance.md").contains("at commit another"));
}

/// Claims are judged on both sides, with exact moments: nothing of it is left behind.
#[test]
fn a_diff_leaves_the_folders_that_it_compares_as_they_are() {
    let bench = ran(2, "[]");
    let other = manifest(2, "[]")
        .replace("rounds = 2", "rounds = 3")
        .replace("value = 1000.0", "prediction = \"exact-moments\"\nfactor = 9.0");
    bench.write(FILE, &other);
    bench.run(&["run", FILE, "--quiet", "--out", "other"]).expect(0);
    let before = (everything(&bench, "results"), everything(&bench, "other"));
    bench.run(&["diff", "results", "other", "--fail-on", "none"]).expect(0);
    bench.run(&["diff", "other", "results", "--format", "json", "--fail-on", "none"]).expect(0);
    assert!(before == (everything(&bench, "results"), everything(&bench, "other")));
}
