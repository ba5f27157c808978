//! A comparison as text: a summary for a terminal, Markdown for a pull request, a page with
//! charts, JSON for programs.
//!
//! *Invariant*: all four agree on every cell. Markdown and the page are truncated, because a
//! comment and a browser hold only so much, and state the number of rows left out. JSON is
//! complete.

mod json;
mod terminal;

use super::Pages;
use super::claims::{interval, probability};
use super::number_text::short;
use crate::analysis::Figure;
use crate::analysis::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, Lone, OtherProblem, OtherSetting,
    SideClaim, Timing,
};
use crate::chart;
use driftbench_core::words;
use driftbench_runner::files::{Error, error};
use driftbench_runner::plan::short as short_path;
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A change and its charts.
pub type ChangeFigures<'a> = (&'a Change, [Figure; 2]);

/// How a comparison is written.
pub enum DiffFormat<'a> {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// A page, with charts of the first changes.
    Html(Vec<ChangeFigures<'a>>),
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
    format: DiffFormat<'_>,
) -> Result<String, Error> {
    let text = DiffText::new(comparison, fails);
    let values = |most: usize, charts: Vec<Value>| {
        context! { diff => Value::from(Serde(&text)), most, charts }
    };
    match format {
        DiffFormat::Text => Ok(terminal::summary(&text)),
        DiffFormat::Json => Ok(format!("{:#}\n", json::json(comparison, fails))),
        DiffFormat::Markdown => {
            let mut out = String::new();
            for most in MOST_ROWS {
                out = Pages::new().render("diff.md", values(most, Vec::new()))?;
                if out.chars().count() <= MOST_CHARACTERS {
                    break;
                }
            }
            Ok(out)
        }
        DiffFormat::Html(figures) => {
            let charts = figures.iter().map(charts).collect::<Result<_, Error>>()?;
            Pages::new().render("diff.html", values(MOST_SHOWN, charts))
        }
    }
}

/// What templates see.
#[derive(Serialize)]
struct DiffText {
    before: String,
    after: String,
    summary: SummaryText,
    incomparable: Vec<String>,
    removed: LoneText,
    added: LoneText,
    /// The same cells, and cells with other settings.
    changed: ChangeTable,
    settings: ChangeTable,
    claims: Vec<ClaimChangeText>,
    /// Experiments whose claims are not compared.
    without_claims: Vec<String>,
    timings: Vec<[String; 5]>,
}

#[derive(Serialize)]
struct SummaryText {
    /// The verdicts and how many cells have each, in one line.
    headline: String,
    /// What makes the comparison fail; empty if nothing does.
    fails: String,
    /// Whether no cell is on both sides.
    empty: bool,
    margin: String,
    /// Cells that were tested together.
    tested: usize,
}

/// Cells of one side: a line per experiment, and how many cells there are.
#[derive(Serialize)]
struct LoneText {
    lines: Vec<String>,
    count: usize,
}

/// The first changes of a kind, and how many there are.
#[derive(Serialize)]
struct ChangeTable {
    rows: Vec<ChangeText>,
    count: usize,
}

#[derive(Serialize)]
struct ChangeText {
    verdict: ChangeVerdict,
    /// For colours: `refuted`, `supported` or `inconclusive`.
    tone: &'static str,
    experiment: String,
    cell: String,
    name: String,
    other: String,
    ratio: String,
    p: String,
    detectable: Option<String>,
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

/// A change with its drawings and their captions, as the template sees it.
fn charts((change, figures): &ChangeFigures<'_>) -> Result<Value, Error> {
    let draw = |figure: &Figure| {
        let svg = chart::svg(figure).map_err(|e| error(Path::new("diff.html"), e))?;
        Ok((svg, figure.caption.clone()))
    };
    let drawings = figures.iter().map(draw).collect::<Result<Vec<(String, String)>, Error>>()?;
    let change = Value::from(Serde(change_text(change)));
    Ok(context! { change, drawings => Value::from(Serde(drawings)) })
}

impl DiffText {
    fn new(comparison: &Comparison, fails: &[(Class, usize)]) -> Self {
        let table = |with_other_settings: bool| {
            let wanted = |c: &&Change| c.pair.other.is_empty() != with_other_settings;
            let changes = || comparison.changed.iter().filter(wanted);
            let rows = changes().take(MOST_SHOWN).map(change_text).collect();
            ChangeTable { rows, count: changes().count() }
        };
        let incomparable = comparison.incomparable.iter().map(|i| {
            format!("{}: another {} ({} before, {} after)", i.experiment, i.what, i.before, i.after)
        });
        let problems = other_problems(&comparison.problems);
        let fails = fails.iter().map(|(class, count)| format!("{count} {}", class.name()));
        let lone = |cells: &[Lone]| LoneText { lines: lone_lines(cells), count: cells.len() };
        Self {
            before: clean(&comparison.sides.0),
            after: clean(&comparison.sides.1),
            summary: SummaryText {
                headline: headline(comparison),
                fails: fails.collect::<Vec<_>>().join(", "),
                empty: comparison.is_empty(),
                margin: percent(comparison.margin),
                tested: comparison.tested,
            },
            incomparable: incomparable.chain(problems).map(|line| clean(&line)).collect(),
            removed: lone(&comparison.removed),
            added: lone(&comparison.added),
            changed: table(false),
            settings: table(true),
            claims: comparison.claims.iter().map(claim_text).collect(),
            without_claims: comparison.without_claims.clone(),
            timings: comparison.timings.iter().map(timing).collect(),
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
    let verdicts = ChangeVerdict::ALL.into_iter();
    let verdicts = verdicts.map(|(verdict, name)| (comparison.count_verdict(verdict), name));
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

/// Cells, one line per experiment.
fn lone_lines(cells: &[Lone]) -> Vec<String> {
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

/// Cells whose problem changed, one line per experiment, with their number.
fn other_problems(cells: &[OtherProblem]) -> Vec<String> {
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *by.entry(&cell.experiment).or_default() += 1);
    let named = cells.iter().map(|OtherProblem { experiment, name, pair }| Lone {
        experiment: format!(
            "{experiment}: another problem or start in {}",
            words::count(by[experiment.as_str()], "cell")
        ),
        id: pair.after.clone(),
        name: format!("{name}, {}", others(&pair.other)),
    });
    lone_lines(&named.collect::<Vec<_>>())
}

/// Settings that changed, with their values before and after.
fn others(other: &[OtherSetting]) -> String {
    let one = |OtherSetting { path, before, after }: &OtherSetting| {
        format!("{} {before} → {after}", short_path(path))
    };
    other.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn factor(log: f64) -> String {
    format!("×{}", fine(libm::exp(log)))
}

/// The ratio that could have been detected: with two or three runs hardly any.
fn detectable(log: f64) -> String {
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

fn change_text(change: &Change) -> ChangeText {
    let tone = match change.verdict {
        ChangeVerdict::Failed | ChangeVerdict::NewlyDiverged | ChangeVerdict::Worse => "refuted",
        ChangeVerdict::Better | ChangeVerdict::NoLongerDiverged | ChangeVerdict::Recovered => {
            "supported"
        }
        ChangeVerdict::Underpowered | ChangeVerdict::Equivalent | ChangeVerdict::SameErrors => {
            "inconclusive"
        }
    };
    ChangeText {
        verdict: change.verdict,
        tone,
        experiment: change.experiment.clone(),
        cell: change.pair.after.clone(),
        name: clean(&change.name),
        other: clean(&others(&change.pair.other)),
        ratio: ratio(change),
        p: probability(change.p.unwrap_or(f64::NAN)),
        detectable: change.detectable.map(detectable),
        diverged: match change.diverged() {
            (0, 0) => "–".into(),
            (before, after) => format!("{before} → {after}"),
        },
        note: clean(&change.note),
    }
}

fn claim_text(change: &ClaimChange) -> ClaimChangeText {
    let text = |claim: &Option<SideClaim>| match claim {
        Some(c) if c.estimate.is_finite() => {
            format!("{} ({})", c.verdict.name(), interval(c.estimate()))
        }
        Some(c) => c.verdict.name().to_owned(),
        None => "absent".into(),
    };
    let either = change.after.as_ref().or(change.before.as_ref());
    ClaimChangeText {
        experiment: change.experiment.clone(),
        id: either.map(|c| clean(&c.id)).unwrap_or_default(),
        statement: either.map(|c| clean(&c.statement)).unwrap_or_default(),
        before: text(&change.before),
        after: text(&change.after),
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
