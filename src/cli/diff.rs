//! `diff`: two sets of results or reports, bit-identical cells first.

use super::{Code, Failure, print, report};
use crate::analysis::compare::{self, Comparison, Finals, Verdict, compare};
use crate::analysis::results;
use crate::store::{Store, git};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[derive(clap::Args)]
#[command(
    after_help = "Example: driftbench diff HEAD reports\n         driftbench diff v0.1.0 main\n         driftbench diff results other-results"
)]
pub struct Args {
    /// What was: a results folder, a reports folder, or a git revision with reports/
    a: String,
    /// What is: the same
    b: String,
}

/// Finals by experiment.
type Side = BTreeMap<String, Finals>;

pub fn run(args: &Args) -> Result<Code, Failure> {
    let (a, b) = (side(&args.a)?, side(&args.b)?);
    let (a_all, b_all) = (flat(&a), flat(&b));
    let comparison = compare(&a_all, &b_all);
    print(&text(&args.a, &args.b, &comparison))?;
    Ok(match comparison {
        c if c.is_empty() => Code::NotComparable,
        c if c.has_regression() => Code::Refuted,
        _ => Code::Done,
    })
}

/// All cells by their ids, which name contents and not experiments; labels say
/// the experiment.
fn flat(side: &Side) -> Finals {
    let cells = side.iter().flat_map(|(experiment, finals)| {
        finals.0.iter().map(move |(id, cell)| {
            let label = format!("{experiment}: {}", cell.label);
            (id.clone(), compare::Cell { label, ..cell.clone() })
        })
    });
    Finals(cells.collect())
}

fn side(name: &str) -> Result<Side, Failure> {
    let path = Path::new(name);
    if path.join("driftbench.toml").is_file() {
        let store = Store::open_existing(path)?;
        let mut all = Side::new();
        for plan in report::plans(&store)? {
            let (cells, _) = results(&plan, &store)?;
            all.insert(plan.experiment, Finals::of(&cells));
        }
        return Ok(all);
    }
    let mut files = Vec::new();
    if path.is_dir() {
        gather(path, path, &mut files)
            .map_err(|e| Failure::input(format!("error: {name}: {e}")))?;
    } else {
        let commit = git::commit(name)?;
        for (file, text) in git::files(&commit, "reports", compare::FILE)? {
            files.push((file.strip_prefix("reports/").unwrap_or(&file).to_owned(), text));
        }
    }
    let mut all = Side::new();
    for (file, text) in files {
        let experiment = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let finals = all.entry(experiment.to_owned()).or_default();
        finals.add_csv(&text).map_err(|line| {
            Failure::input(format!("error: {name}: {file}:{line}: is not what a report writes"))
        })?;
    }
    Ok(all)
}

fn gather(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(root, &path, files)?;
        } else if path.file_name().is_some_and(|n| n == compare::FILE) {
            let name = path.strip_prefix(root).unwrap_or(&path);
            files
                .push((name.to_string_lossy().replace('\\', "/"), std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Added or removed cells that are listed by name.
const MOST_LISTED: usize = 10;

/// The comparison as text that is also Markdown.
fn text(a: &str, b: &str, comparison: &Comparison) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    if comparison.is_empty() {
        line(format!(
            "Nothing to compare: {a} and {b} have no cell in common (cells differ when manifest, seed or numerics do)."
        ));
    }
    for (what, ids) in [("removed", &comparison.removed), ("added", &comparison.added)] {
        if !ids.is_empty() {
            line(format!("{} cells {what}:", ids.len()));
            let shown = ids.iter().take(MOST_LISTED);
            shown.for_each(|(id, label)| line(format!("- {id} {label}")));
            if ids.len() > MOST_LISTED {
                line(format!("- … and {} more", ids.len() - MOST_LISTED));
            }
        }
    }
    line(format!(
        "{} cells bit-identical, {} changed.",
        comparison.identical,
        comparison.changed.len()
    ));
    if !comparison.changed.is_empty() {
        line(format!(
            "\nMean of ‖θ_T − θ*‖², {b} over {a}, with its 95 % interval over paired runs; verdicts by Holm over {} cells at 5 %.\n",
            comparison.changed.len()
        ));
        line("| verdict | cell | algorithm | ratio | diverged |".into());
        line("| --- | --- | --- | --- | --- |".into());
    }
    for change in &comparison.changed {
        let verdict = match change.verdict {
            Verdict::NewlyDiverged => "newly diverged",
            Verdict::Worse => "worse",
            Verdict::Better => "better",
            Verdict::NotTold => "not told apart",
            Verdict::SameErrors => "same errors; other rows or columns differ",
        };
        let ratio = change
            .ratio
            .map_or("–".into(), |r| format!("{:.4} [{:.4}, {:.4}]", r.estimate, r.low, r.high));
        let (was, is) = change.diverged;
        line(format!("| {verdict} | {} | {} | {ratio} | {was} → {is} |", change.id, change.label));
    }
    out
}
