//! A comparison as a reader meets it: a summary for a terminal, Markdown for a
//! pull request, a page with charts, JSON for programs.
//!
//! *Invariant*: all four say the same of every cell; what Markdown cuts, since a
//! comment holds only so much, and a page, since a browser opens only so much, is counted.
//! JSON cuts nothing.

mod json;
mod text;

use super::Pages;
use super::number_text::{interval, short};
use crate::analysis::Figure;
use crate::analysis::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, Lone, Other, OtherProblem, Timing,
};
use crate::chart;
use driftbench_core::words;
use driftbench_runner::files::{Error, error};
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A change and its charts.
pub type Drawn<'a> = (&'a Change, [Figure; 2]);

/// How a comparison is written.
pub enum Format<'a> {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// A page, with charts of the first changes.
    Html(Vec<Drawn<'a>>),
    /// For programs.
    Json,
}

/// Characters that a comment on GitHub holds.
const MOST_CHARACTERS: usize = 65_536;
/// Rows of each table that a page shows.
const MOST_SHOWN: usize = 1000;
/// Rows of each table that Markdown tries to show, one after the other.
const MOST_ROWS: [usize; 8] = [400, 200, 100, 50, 25, 10, 5, 1];

/// The comparison as text; `fails` are the classes that make it fail.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn render(
    comparison: &Comparison,
    fails: &[(Class, usize)],
    format: Format<'_>,
) -> Result<String, Error> {
    let mut view = DiffText::of(comparison, fails);
    match format {
        Format::Text => Ok(text::text(&view)),
        Format::Json => Ok(format!("{:#}\n", json::json(comparison, fails))),
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
        Format::Html(drawn) => {
            view.charts = drawn.iter().map(Charts::of).collect::<Result<_, Error>>()?;
            Pages::new().render("diff.html", values(&view, usize::MAX))
        }
    }
}

fn values(view: &DiffText, most: usize) -> Value {
    context! { diff => Value::from(Serde(view)), most => most.min(1 << 40) }
}

/// What templates see.
#[derive(Serialize)]
struct DiffText {
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
    /// The same cells, and cells with other settings, the first of them.
    changed: Vec<ChangeText>,
    settings: Vec<ChangeText>,
    /// How many there are of both.
    rows: (usize, usize),
    claims: Vec<ClaimChangeText>,
    untold: Vec<String>,
    timings: Vec<[String; 5]>,
    charts: Vec<Charts>,
}

#[derive(Serialize)]
struct ChangeText {
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
struct ClaimChangeText {
    experiment: String,
    id: String,
    statement: String,
    before: String,
    after: String,
    fails: bool,
}

#[derive(Serialize)]
struct Charts {
    verdict: &'static str,
    tone: &'static str,
    ratio: String,
    experiment: String,
    name: String,
    drawn: Vec<(String, String)>,
}

impl Charts {
    fn of((change, figures): &Drawn<'_>) -> Result<Self, Error> {
        let draw = |figure: &Figure| {
            let svg = chart::svg(figure).map_err(|e| error(Path::new("diff.html"), e))?;
            Ok((svg, figure.caption.clone()))
        };
        let ChangeText { verdict, tone, ratio, experiment, name, .. } = row(change);
        let drawn = figures.iter().map(draw).collect::<Result<_, Error>>()?;
        Ok(Self { verdict, tone, ratio, experiment, name, drawn })
    }
}

impl DiffText {
    fn of(comparison: &Comparison, fails: &[(Class, usize)]) -> Self {
        let rows = |other: bool| {
            let changed = comparison.changed.iter().filter(|c| c.other.is_empty() != other);
            changed.take(MOST_SHOWN).map(row).collect()
        };
        let other = comparison.changed.iter().filter(|c| !c.other.is_empty()).count();
        let incomparable = comparison.incomparable.iter().map(|i| {
            format!("{}: another {} ({} before, {} after)", i.experiment, i.what, i.before, i.after)
        });
        let problems = other_problems(&comparison.problems);
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
            incomparable: incomparable.chain(problems).map(|line| clean(&line)).collect(),
            removed: lone(&comparison.removed),
            added: lone(&comparison.added),
            lone: (comparison.removed.len(), comparison.added.len()),
            changed: rows(false),
            settings: rows(true),
            rows: (comparison.changed.len() - other, other),
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
    let count = |v: ChangeVerdict| comparison.changed.iter().filter(|c| c.verdict == v).count();
    let verdicts = ChangeVerdict::ALL.into_iter().map(|v| (count(v), v.name()));
    let changed: Vec<String> =
        verdicts.filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    let changed =
        if changed.is_empty() { String::new() } else { format!(": {}", changed.join(", ")) };
    format!(
        "{} bit-identical, {} changed{changed}",
        words::count(comparison.identical, "cell"),
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

/// Cells whose problem is another, by experiment: a line each, with how many there are.
fn other_problems(cells: &[OtherProblem]) -> Vec<String> {
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *by.entry(&cell.experiment).or_default() += 1);
    let named = cells.iter().map(|OtherProblem { experiment, id, name, other, .. }| Lone {
        experiment: match by[experiment.as_str()] {
            1 => format!("{experiment}: another problem or start in 1 cell"),
            count => format!("{experiment}: another problem or start in {count} cells"),
        },
        id: id.clone(),
        name: format!("{name}, {}", others(other)),
    });
    lone(&named.collect::<Vec<_>>())
}

/// Settings that are others, with their values before and after.
fn others(other: &[Other]) -> String {
    let one =
        |(path, a, b): &Other| format!("{} {a} → {b}", path.rsplit('.').next().unwrap_or(path));
    other.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn factor(log: f64) -> String {
    format!("×{}", fine(libm::exp(log)))
}

/// What could have been seen; two or three runs see next to nothing.
fn seen(log: f64) -> String {
    if log > libm::log(1e6) { "> ×10⁶".into() } else { factor(log) }
}

/// Four digits: a ratio of 1.012 must not read 1.01.
fn fine(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        f64::INFINITY => "∞".into(),
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
            match s.interval.0.is_nan() || s.interval.1.is_nan() {
                true => factor(s.mean),
                false => format!("{} [{low}, {high}]", factor(s.mean)),
            }
        }
        (None, Some(log)) => factor(log),
        _ => "–".into(),
    }
}

fn row(change: &Change) -> ChangeText {
    let tone = match change.verdict {
        ChangeVerdict::Failed | ChangeVerdict::NewlyDiverged | ChangeVerdict::Worse => "refuted",
        ChangeVerdict::Better | ChangeVerdict::NoLongerDiverged | ChangeVerdict::Recovered => {
            "supported"
        }
        ChangeVerdict::Underpowered | ChangeVerdict::Equivalent | ChangeVerdict::SameErrors => {
            "inconclusive"
        }
    };
    let p = |p: f64| if p < 1e-4 { "< 0.0001".into() } else { format!("{p:.4}") };
    let (was, is) = change.diverged;
    ChangeText {
        verdict: change.verdict.name(),
        tone,
        experiment: change.experiment.clone(),
        cell: change.id.clone(),
        name: clean(&change.name),
        other: clean(&others(&change.other)),
        ratio: ratio(change),
        p: change.p.map_or("–".into(), p),
        detectable: change.detectable.map_or("–".into(), seen),
        diverged: if was + is == 0 { "–".into() } else { format!("{was} → {is}") },
        note: clean(&change.note),
    }
}

fn claim(change: &ClaimChange) -> ClaimChangeText {
    let told = |claim: &Option<crate::analysis::compare::SideClaim>| match claim {
        Some(c) if c.estimate.is_finite() => {
            format!("{} ({})", c.verdict, interval(c.estimate, c.interval))
        }
        Some(c) => c.verdict.clone(),
        None => "not there".into(),
    };
    let either = change.after.as_ref().or(change.before.as_ref());
    ClaimChangeText {
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
