//! Results that are empty, diverged or alone say so in words, on every kind of page.

use crate::support::{Bench, QUADRATIC, edited};

/// Every kind of figure and two kinds of claims, over step sizes and local steps.
const KINDS: &str = include_str!("../manifests/every-kind.toml");

/// The pages of a manifest, of a shard of its cells if one is given.
fn pages(replicates: u64, steps: &str, counts: &str, shard: Option<&str>) -> Bench {
    let replicates = format!("replicates = {replicates}");
    let base = [("replicates = 2", replicates.as_str()), ("rounds = 20", "rounds = 1500")];
    let kinds = edited(KINDS, &[("STEPS", steps), ("COUNTS", counts)]);
    let bench = Bench::new();
    bench.write("every.toml", edited(QUADRATIC, &base) + &kinds);
    let shard: Vec<&str> = shard.iter().flat_map(|shard| ["--shard", shard]).collect();
    bench.compute(&[&["every.toml"], &shard[..]].concat());
    let output = bench.run(&["report", "--format", "html,md,latex"]);
    // A claim is refuted where runs diverged; that is no error.
    assert!(output.code <= 1 && !output.err.contains("panicked"), "{} {}", output.code, output.err);
    bench
}

/// No file holds a number that is none.
#[track_caller]
fn sound(bench: &Bench) -> String {
    let read = |file: &str| bench.read(&format!("reports/every/{file}"));
    let figures = ["convergence", "scaling", "winners", "stability"];
    for figure in figures {
        for end in ["svg", "csv"] {
            let text = read(&format!("figures/{figure}.{end}"));
            for word in ["NaN", "inf ", "inf,", "inf)", "=\"inf\""] {
                assert!(!text.contains(word), "{figure}.{end} has {word}: {text}");
            }
        }
    }
    for file in ["report.md", "report.html", "summary.csv", "tables.tex"] {
        // A page's script may speak of what is no number.
        let text = read(file);
        let text = text.split("<script>").next().unwrap_or_default();
        assert!(!text.contains("NaN") && !text.contains("[U+"), "{file}: {text}");
    }
    read("report.md")
}

#[test]
fn no_cell_has_results() {
    // One cell, and a share that is empty.
    let bench = pages(2, "0.1", "1", Some("2/2"));
    let page = sound(&bench);
    assert_eq!(page.matches("The figure is empty: no cell has results yet").count(), 4, "{page}");
    assert!(page.contains("No cell has results yet: run `exactfed run every.toml`"), "{page}");
    assert!(!page.contains("n = 0"), "{page}");
    let tables = bench.read("reports/every/tables.tex");
    assert!(tables.contains("No cell has results yet"), "{tables}");
}

#[test]
fn all_runs_diverged() {
    let bench = pages(2, "[30.0, 60.0]", "[1, 2]", None);
    let page = sound(&bench);
    assert!(page.contains("Runs diverged in 4 of 4 cells"), "{page}");
    assert!(page.contains("The figure is empty: runs of every cell diverged"), "{page}");
    let winners = bench.read("reports/every/figures/winners.csv");
    assert!(winners.contains("none,all diverged,false"), "{winners}");
    let stability = bench.read("reports/every/figures/stability.csv");
    assert_eq!(stability.matches(",2,2,").count(), 4, "{stability}");
    assert!(!stability.contains("true"), "theory agrees: {stability}");
    // Every cell keeps its row.
    assert_eq!(page.matches("| diverged |").count(), 4, "{page}");
    assert!(page.contains("not tested"), "{page}");
}

#[test]
fn one_replicate() {
    let page = sound(&pages(1, "[0.1, 0.2]", "[1, 2]", None));
    assert!(page.contains("n = 1 run"), "{page}");
}

#[test]
fn one_cell_of_one_replicate() {
    let bench = pages(1, "0.1", "1", None);
    sound(&bench);
    let stability = bench.read("reports/every/figures/stability.csv");
    assert!(stability.contains("\nFedAvg,0.1,1,1,0,"), "{stability}");
    let winners = bench.read("reports/every/figures/winners.csv");
    assert!(winners.contains("FedAvg,alone,false"), "{winners}");
}
