//! A comparison as a reader meets it: a summary for a terminal, Markdown for a
//! pull request, a page with charts, JSON for programs.
//!
//! *Invariant*: all four say the same of every cell; what Markdown cuts, since a
//! comment holds only so much, is counted.

use super::Pages;
use super::view::short;
use crate::analysis::Figure;
use crate::analysis::compare::{Change, ClaimChange, Class, Comparison, Lone, Timing, Verdict};
use crate::chart;
use crate::files::{Error, error};
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How a comparison is written.
pub enum Format {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// A page, with charts of the first changes.
    Html(Vec<[Figure; 2]>),
    /// For programs.
    Json,
}

/// Characters that a comment on GitHub holds.
const MOST_CHARACTERS: usize = 65_536;
/// Rows of each table that Markdown tries to show, one after the other.
const MOST_ROWS: [usize; 8] = [400, 200, 100, 50, 25, 10, 5, 1];
/// Rows of each list on a terminal.
const MOST_LINES: usize = 20;

/// The comparison as text; `fails` are the classes that make it fail.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn render(
    comparison: &Comparison,
    fails: &[(Class, usize)],
    format: Format,
) -> Result<String, Error> {
    let mut view = View::of(comparison, fails);
    match format {
        Format::Text => Ok(text(&view)),
        Format::Json => Ok(format!("{:#}\n", json(comparison, fails))),
        Format::Markdown => {
            let mut out = String::new();
            for most in MOST_ROWS {
                out = Pages::new().render("diff.md", values(&view, most))?;
                if out.chars().count() <= MOST_CHARACTERS {
                    break;
                }
            }
            Ok(out)
        }
        Format::Html(figures) => {
            for figure in &figures {
                view.charts.push(Charts::of(figure)?);
            }
            Pages::new().render("diff.html", values(&view, usize::MAX))
        }
    }
}

fn values(view: &View, most: usize) -> Value {
    context! { diff => Value::from(Serde(view)), most => most.min(1 << 40) }
}

/// What templates see.
#[derive(Serialize)]
struct View {
    before: String,
    after: String,
    /// The verdicts and how many cells have each, in one line.
    headline: String,
    /// What makes the comparison fail; empty if nothing does.
    fails: String,
    empty: bool,
    margin: String,
    tested: usize,
    identical: usize,
    incomparable: Vec<String>,
    removed: Vec<String>,
    added: Vec<String>,
    /// How many cells these are.
    lone: (usize, usize),
    /// The same cells, and cells with other settings.
    changed: Vec<Row>,
    settings: Vec<Row>,
    claims: Vec<Claim>,
    untold: Vec<String>,
    timings: Vec<[String; 5]>,
    charts: Vec<Charts>,
}

#[derive(Serialize)]
struct Row {
    verdict: &'static str,
    /// For colours: `refuted`, `supported` or `inconclusive`.
    tone: &'static str,
    experiment: String,
    cell: String,
    name: String,
    other: String,
    ratio: String,
    p: String,
    detectable: String,
    diverged: String,
    note: String,
}

#[derive(Serialize)]
struct Claim {
    experiment: String,
    id: String,
    statement: String,
    before: String,
    after: String,
    fails: bool,
}

#[derive(Serialize)]
struct Charts {
    name: String,
    drawn: Vec<(String, String)>,
}

impl Charts {
    fn of(figures: &[Figure; 2]) -> Result<Self, Error> {
        let draw = |figure: &Figure| {
            let svg = chart::svg(figure).map_err(|e| error(Path::new("diff.html"), e))?;
            Ok((svg, figure.caption.clone()))
        };
        let name = figures[0].title.rsplit_once(": ").map_or("", |(name, _)| name).to_owned();
        Ok(Self { name, drawn: figures.iter().map(draw).collect::<Result<_, Error>>()? })
    }
}

impl View {
    fn of(comparison: &Comparison, fails: &[(Class, usize)]) -> Self {
        let rows = |other: bool| {
            let changed = comparison.changed.iter().filter(|c| c.other.is_empty() != other);
            changed.map(row).collect()
        };
        let incomparable = comparison.incomparable.iter().map(|i| {
            format!("{}: another {} ({} before, {} after)", i.experiment, i.what, i.before, i.after)
        });
        let fails: Vec<String> =
            fails.iter().map(|(class, count)| format!("{count} {}", class.name())).collect();
        Self {
            before: clean(&comparison.sides.0),
            after: clean(&comparison.sides.1),
            headline: headline(comparison),
            fails: fails.join(", "),
            empty: comparison.is_empty(),
            margin: percent(comparison.margin),
            tested: comparison.tested,
            identical: comparison.identical,
            incomparable: incomparable.map(|line| clean(&line)).collect(),
            removed: lone(&comparison.removed),
            added: lone(&comparison.added),
            lone: (comparison.removed.len(), comparison.added.len()),
            changed: rows(false),
            settings: rows(true),
            claims: comparison.claims.iter().map(claim).collect(),
            untold: comparison.untold.clone(),
            timings: comparison.timings.iter().map(timing).collect(),
            charts: Vec::new(),
        }
    }
}

/// A text of a manifest in one line.
fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share).trim_end_matches('0').trim_end_matches('.'))
}

fn headline(comparison: &Comparison) -> String {
    let count = |v: Verdict| comparison.changed.iter().filter(|c| c.verdict == v).count();
    let verdicts = Verdict::ALL.into_iter().map(|v| (count(v), v.name()));
    let changed: Vec<String> =
        verdicts.filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    let changed =
        if changed.is_empty() { String::new() } else { format!(": {}", changed.join(", ")) };
    format!(
        "{} cells bit-identical, {} changed{changed}",
        comparison.identical,
        comparison.changed.len()
    )
}

/// Cells by experiment: a line each.
fn lone(cells: &[Lone]) -> Vec<String> {
    let mut by: BTreeMap<&str, Vec<&Lone>> = BTreeMap::new();
    cells.iter().for_each(|cell| by.entry(&cell.experiment).or_default().push(cell));
    let line = |(experiment, cells): (&str, Vec<&Lone>)| {
        const MOST: usize = 3;
        let names = cells.iter().take(MOST).map(|c| format!("{} ({})", c.name, c.id));
        let names = names.collect::<Vec<_>>().join("; ");
        let more = match cells.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        clean(&format!("{experiment}: {names}{more}"))
    };
    by.into_iter().map(line).collect()
}

fn factor(log: f64) -> String {
    format!("×{}", fine(libm::exp(log)))
}

/// Four digits: a ratio of 1.012 must not read 1.01.
fn fine(value: f64) -> String {
    match value {
        v if (1e-3..1e4).contains(&v) => {
            format!("{v:.*}", (3 - libm::log10(v).floor() as i32).max(0) as usize)
        }
        v => format!("{v:.3e}"),
    }
}

fn ratio(change: &Change) -> String {
    match (change.shift, change.exact) {
        (Some(s), _) => {
            let (low, high) = s.interval;
            let (low, high) = (fine(libm::exp(low)), fine(libm::exp(high)));
            format!("{} [{low}, {high}]", factor(s.mean))
        }
        (None, Some(log)) => factor(log),
        _ => "–".into(),
    }
}

fn row(change: &Change) -> Row {
    let tone = match change.verdict {
        Verdict::Failed | Verdict::NewlyDiverged | Verdict::Worse => "refuted",
        Verdict::Better | Verdict::NoLongerDiverged | Verdict::Recovered => "supported",
        Verdict::Underpowered | Verdict::Equivalent | Verdict::SameErrors => "inconclusive",
    };
    let other = change
        .other
        .iter()
        .map(|(path, a, b)| format!("{} {a} → {b}", path.rsplit('.').next().unwrap_or(path)));
    let p = |p: f64| if p < 1e-4 { "< 0.0001".into() } else { format!("{p:.4}") };
    let (was, is) = change.diverged;
    Row {
        verdict: change.verdict.name(),
        tone,
        experiment: change.experiment.clone(),
        cell: change.id.clone(),
        name: clean(&change.name),
        other: clean(&other.collect::<Vec<_>>().join(", ")),
        ratio: ratio(change),
        p: change.p.map_or("–".into(), p),
        detectable: change.detectable.map_or("–".into(), factor),
        diverged: if was + is == 0 { "–".into() } else { format!("{was} → {is}") },
        note: clean(&change.note),
    }
}

fn claim(change: &ClaimChange) -> Claim {
    let told = |claim: &Option<crate::analysis::compare::Claim>| match claim {
        Some(c) if c.estimate.is_finite() => {
            format!("{} ({})", c.verdict, super::claims::interval(c.estimate, c.interval))
        }
        Some(c) => c.verdict.clone(),
        None => "not there".into(),
    };
    let either = change.after.as_ref().or(change.before.as_ref());
    Claim {
        experiment: change.experiment.clone(),
        id: either.map(|c| clean(&c.id)).unwrap_or_default(),
        statement: either.map(|c| clean(&c.statement)).unwrap_or_default(),
        before: told(&change.before),
        after: told(&change.after),
        fails: change.fails,
    }
}

fn timing(timing: &Timing) -> [String; 5] {
    let (before, after) = timing.seconds;
    [
        timing.experiment.clone(),
        timing.cells.to_string(),
        format!("{before:.3}"),
        format!("{after:.3}"),
        format!("{:.2}", after / before),
    ]
}

/// The summary for a terminal.
fn text(view: &View) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!("before  {}", view.before));
    line(format!("after   {}", view.after));
    for (what, all) in
        [("not comparable", &view.incomparable), ("removed", &view.removed), ("added", &view.added)]
    {
        all.iter().take(MOST_LINES).for_each(|one| line(format!("{what:<14}  {one}")));
        if all.len() > MOST_LINES {
            line(format!("{what:<14}  and {} more experiments", all.len() - MOST_LINES));
        }
    }
    if view.empty {
        line("Nothing to compare: no cell is on both sides.".into());
        return out;
    }
    line(format!("{}.", view.headline));
    if view.tested > 0 {
        line(format!(
            "Final ‖θ − θ*‖², after over before, geometric mean of paired runs with its 95 % interval; {} cells tested together (Holm, 5 %), margin {}.",
            view.tested, view.margin
        ));
    }
    rows(&view.changed, "", &mut line);
    rows(&view.settings, "With other settings:", &mut line);
    for claim in view.claims.iter().take(MOST_LINES) {
        let Claim { experiment, id, before, after, .. } = claim;
        line(format!("claim  {experiment}: {id}: {before} → {after}"));
    }
    if view.claims.len() > MOST_LINES {
        line(format!("and {} more claims", view.claims.len() - MOST_LINES));
    }
    if !view.fails.is_empty() {
        line(format!("Fails: {}.", view.fails));
    }
    out
}

fn rows(rows: &[Row], head: &str, line: &mut impl FnMut(String)) {
    if !rows.is_empty() && !head.is_empty() {
        line(head.into());
    }
    let shown = &rows[..rows.len().min(MOST_LINES)];
    let wide =
        |of: fn(&Row) -> &str| shown.iter().map(|r| of(r).chars().count()).max().unwrap_or(0);
    let (verdict, ratio) = (wide(|r| r.verdict), wide(|r| &r.ratio));
    for row in shown {
        let mut more: Vec<String> = Vec::new();
        if !row.other.is_empty() {
            more.push(row.other.clone());
        }
        if !row.note.is_empty() {
            more.push(row.note.clone());
        }
        if row.verdict == Verdict::Underpowered.name() && row.detectable != "–" {
            more.push(format!("{} could have been seen", row.detectable));
        }
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
        line(format!(
            "  {:<verdict$}  {:<ratio$}  {} {}: {}{more}",
            row.verdict, row.ratio, row.cell, row.experiment, row.name
        ));
    }
    if rows.len() > shown.len() {
        line(format!("  and {} more: see --format html", rows.len() - shown.len()));
    }
}

/// Everything, with numbers as numbers; docs/DIFF.md says what each is.
fn json(comparison: &Comparison, fails: &[(Class, usize)]) -> Json {
    let count = |v: Verdict| comparison.changed.iter().filter(|c| c.verdict == v).count();
    let counts: BTreeMap<&str, usize> =
        Verdict::ALL.into_iter().map(|v| (v.name(), count(v))).collect();
    let lone = |cells: &[Lone]| -> Vec<Json> {
        let one = |c: &Lone| json!({"experiment": c.experiment, "cell": c.id, "name": c.name});
        cells.iter().map(one).collect()
    };
    let incomparable = comparison.incomparable.iter().map(|i| {
        json!({"experiment": i.experiment, "what": i.what, "before": i.before, "after": i.after})
    });
    let timings = comparison
        .timings
        .iter()
        .map(|t| json!({"experiment": t.experiment, "cells": t.cells, "seconds": t.seconds}));
    json!({
        "schema": 1,
        "before": comparison.sides.0,
        "after": comparison.sides.1,
        "margin": comparison.margin,
        "comparable": !comparison.is_empty(),
        "fails": fails.iter().map(|(class, n)| (class.name(), *n)).collect::<BTreeMap<_, _>>(),
        "incomparable": incomparable.collect::<Vec<_>>(),
        "removed": lone(&comparison.removed),
        "added": lone(&comparison.added),
        "identical": comparison.identical,
        "tested": comparison.tested,
        "verdicts": counts,
        "changed": comparison.changed.iter().map(json_change).collect::<Vec<_>>(),
        "claims": comparison.claims.iter().map(json_claim).collect::<Vec<_>>(),
        "claims-untold": comparison.untold,
        "timings": timings.collect::<Vec<_>>(),
    })
}

fn json_change(change: &Change) -> Json {
    let other = change
        .other
        .iter()
        .map(|(path, before, after)| json!({"path": path, "before": before, "after": after}));
    let interval = change.shift.map(|s| [libm::exp(s.interval.0), libm::exp(s.interval.1)]);
    json!({
        "experiment": change.experiment,
        "cell": change.id,
        "cell-before": change.was,
        "name": change.name,
        "verdict": change.verdict.name(),
        "other-settings": other.collect::<Vec<_>>(),
        "runs": [change.finals.0.len(), change.finals.1.len()],
        "diverged": [change.diverged.0, change.diverged.1],
        "ratio": change.ratio(),
        "interval": interval,
        "p": change.p,
        "detectable": change.detectable.map(libm::exp),
        "note": change.note,
    })
}

fn json_claim(change: &ClaimChange) -> Json {
    let told = |claim: &Option<crate::analysis::compare::Claim>| {
        claim.as_ref().map(|c| {
            json!({
                "verdict": c.verdict,
                "estimate": c.estimate,
                "interval": [c.interval.0, c.interval.1],
            })
        })
    };
    let either = change.after.as_ref().or(change.before.as_ref());
    json!({
        "experiment": change.experiment,
        "id": either.map(|c| &c.id),
        "statement": either.map(|c| &c.statement),
        "before": told(&change.before),
        "after": told(&change.after),
        "fails": change.fails,
    })
}
