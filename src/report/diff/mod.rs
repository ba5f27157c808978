//! A comparison as text: a summary for a terminal, Markdown for a pull request, a page with
//! charts, JSON for programs.
//!
//! *Invariant*: all four agree on every cell. Markdown and the page are truncated, because a
//! comment and a browser hold only so much, and state the number of rows left out. JSON is
//! complete.

mod headline;
mod json;
mod terminal;

use super::Pages;
use super::claims::{interval, probability};
use super::finding::ColoredText;
use super::number_text::short;
use crate::analysis::Figure;
use crate::chart;
use crate::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, Lone, OtherProblem, OtherSetting,
    SideClaim, Timing,
};
use exactfed_core::words;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::short as short_path;
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A change as a page shows it.
pub struct DrawnChange<'a> {
    /// The change.
    pub change: &'a Change,
    /// Both sides over one another, and their ratio.
    pub figures: [Figure; 2],
    /// The page of its experiment, relative to the page of the comparison.
    pub page: Option<String>,
}

/// How a comparison is written.
pub enum DiffFormat<'a> {
    /// For a terminal.
    Text,
    /// For a pull request.
    Markdown,
    /// A page, with charts of the largest changes.
    Html(Vec<DrawnChange<'a>>),
    /// For programs.
    Json,
}

/// Characters that a comment on GitHub holds.
const MOST_CHARACTERS: usize = 65_536;
/// Rows of each table that a page shows.
const MOST_SHOWN: usize = 1000;
/// Figures that a page shows unfolded.
const MOST_OPEN: usize = 12;
/// Changes that Markdown shows before its tables.
const MOST_FIRST: usize = 10;
/// Width of charts, which suits half a page and a telephone, and the heights of the curves and of
/// their ratio, in pixels.
const CHART_WIDTH: u32 = 440;
const CHART_HEIGHTS: [u32; 2] = [250, 130];
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
    let values = |most: usize| context! { diff => Value::from(Serde(&text)), most };
    match format {
        DiffFormat::Text => Ok(terminal::summary(&text)),
        DiffFormat::Json => Ok(format!("{:#}\n", json::json(comparison, fails))),
        DiffFormat::Markdown => {
            let mut out = String::new();
            for most in MOST_ROWS {
                out = Pages::new().render("diff.md", values(most))?;
                if out.chars().count() <= MOST_CHARACTERS {
                    break;
                }
            }
            Ok(out)
        }
        DiffFormat::Html(changes) => {
            let cards = changes.iter().map(card).collect::<Result<Vec<Value>, Error>>()?;
            let open = match changes.iter().filter(|c| c.change.verdict.is_change()).count() {
                0 => MOST_OPEN,
                stated => stated.min(MOST_OPEN),
            };
            Pages::new().render("diff.html", context! { cards, open, ..values(MOST_SHOWN) })
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
    /// The first of the changes that a verdict states.
    largest: Vec<ChangeText>,
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
    /// How many cells changed, and the largest changes.
    title: Vec<ColoredText>,
    /// The verdicts and how many cells have each, in one line.
    headline: String,
    /// How many cells are bit-identical.
    unchanged: String,
    /// The verdicts that cells have: tone, number and name.
    counts: Vec<(&'static str, usize, &'static str)>,
    /// Cells without sound results, a line per experiment.
    failed: Vec<String>,
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
    /// For colours: `refuted`, `supported`, `inconclusive` or `even`.
    tone: &'static str,
    experiment: String,
    cell: String,
    name: String,
    family: usize,
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
    before: ClaimSideText,
    after: ClaimSideText,
    fails: bool,
}

#[derive(Serialize)]
struct ClaimSideText {
    verdict: &'static str,
    /// The estimate with its interval; empty if there is none.
    estimate: String,
}

/// A change with its drawings, as the template sees it.
fn card(DrawnChange { change, figures, page }: &DrawnChange<'_>) -> Result<Value, Error> {
    let draw = |(figure, height): (&Figure, u32)| {
        let svg = chart::svg_of_size(figure, CHART_WIDTH, height);
        svg.map_err(|e| error(Path::new("diff.html"), e))
    };
    let drawings =
        figures.iter().zip(CHART_HEIGHTS).map(draw).collect::<Result<Vec<_>, Error>>()?;
    let (size, beside) = match (factor_and_interval(change), change.diverged()) {
        (Some(ratio), _) => ratio,
        (None, (before, after)) => {
            let (runs, all) = (format!("{before} → {after}"), change.finals.1.len());
            (runs, format!("of {} diverged", words::count(all, "run")))
        }
    };
    let (text, caption) = (Value::from(Serde(change_text(change))), &figures[0].caption);
    Ok(context! { change => text, size, beside, drawings, caption, page })
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
        let largest = comparison.largest_first().filter(|c| c.verdict.is_change());
        Self {
            before: clean(&comparison.sides.0),
            after: clean(&comparison.sides.1),
            summary: summary(comparison, fails.collect::<Vec<_>>().join(", ")),
            incomparable: incomparable.chain(problems).map(|line| clean(&line)).collect(),
            removed: lone(&comparison.removed),
            added: lone(&comparison.added),
            largest: largest.take(MOST_FIRST).map(change_text).collect(),
            changed: table(false),
            settings: table(true),
            claims: comparison.claims.iter().map(claim_text).collect(),
            without_claims: comparison.without_claims.clone(),
            timings: comparison.timings.iter().map(timing).collect(),
        }
    }
}

fn summary(comparison: &Comparison, fails: String) -> SummaryText {
    let count = |(verdict, name)| (tone(verdict), comparison.count_verdict(verdict), name);
    let failed = comparison.changed.iter().filter(|c| c.verdict == ChangeVerdict::Failed);
    let failed = failed.map(|change| Lone {
        experiment: change.experiment.clone(),
        id: change.pair.after.clone(),
        name: format!("{}, {}", change.name, change.note),
    });
    SummaryText {
        title: headline::headline(comparison),
        headline: verdicts_in_words(comparison),
        unchanged: headline::unchanged(comparison),
        counts: ChangeVerdict::ALL.into_iter().map(count).filter(|(_, n, _)| *n > 0).collect(),
        failed: lone_lines(&failed.collect::<Vec<_>>()),
        fails,
        empty: comparison.is_empty(),
        margin: percent(comparison.margin),
        tested: comparison.tested,
    }
}

/// A text of a manifest in one line.
fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share).trim_end_matches('0').trim_end_matches('.'))
}

fn verdicts_in_words(comparison: &Comparison) -> String {
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

/// The ratio and its interval, which may be empty.
fn factor_and_interval(change: &Change) -> Option<(String, String)> {
    match (change.shift, change.exact) {
        (Some(shift), _) => {
            let (low, high) = shift.interval;
            let interval = match low.is_nan() || high.is_nan() {
                true => String::new(),
                false => format!("[{}, {}]", fine(libm::exp(low)), fine(libm::exp(high))),
            };
            Some((factor(shift.mean), interval))
        }
        (None, exact) => exact.map(|log| (factor(log), String::new())),
    }
}

fn ratio(change: &Change) -> String {
    let Some((factor, interval)) = factor_and_interval(change) else { return "–".into() };
    if interval.is_empty() { factor } else { format!("{factor} {interval}") }
}

fn tone(verdict: ChangeVerdict) -> &'static str {
    match verdict {
        ChangeVerdict::Failed | ChangeVerdict::NewlyDiverged | ChangeVerdict::Worse => "refuted",
        ChangeVerdict::Better | ChangeVerdict::NoLongerDiverged | ChangeVerdict::Recovered => {
            "supported"
        }
        ChangeVerdict::Underpowered => "inconclusive",
        ChangeVerdict::Equivalent | ChangeVerdict::SameErrors => "even",
    }
}

fn change_text(change: &Change) -> ChangeText {
    ChangeText {
        verdict: change.verdict,
        tone: tone(change.verdict),
        experiment: change.experiment.clone(),
        cell: change.pair.after.clone(),
        name: clean(&change.name),
        family: change.family,
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
    let text = |claim: &Option<SideClaim>| {
        let estimated = claim.as_ref().filter(|claim| claim.estimate.is_finite());
        ClaimSideText {
            verdict: claim.as_ref().map_or("absent", |claim| claim.verdict.name()),
            estimate: estimated.map(|claim| interval(claim.estimate())).unwrap_or_default(),
        }
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
