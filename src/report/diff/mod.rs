//! A comparison as text: a summary for a terminal, Markdown for a pull request, a page with
//! charts, JSON for programs.
//!
//! *Invariant*: all four agree on every cell. Markdown and the page are truncated, because a
//! comment and a browser hold only so much, and state the number of rows left out. JSON is
//! complete.

mod headline;

use super::claims::{probability, side_estimate};
use super::templates::Templates;
use crate::chart;
use crate::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, Lone, OtherProblem, OtherSetting,
    SideClaim, Timing,
};
use crate::evidence::{Figure, unique};
use exactfed_core::words;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::short as short_path;
pub use headline::clean;
use headline::percent;
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde_json::json;
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
/// Rows of each table that a page shows, and lines of each list that a terminal shows.
const MOST_SHOWN: usize = 1000;
const MOST_LINES: usize = 20;
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
    if let DiffFormat::Json = format {
        return Ok(format!("{:#}\n", json_of(comparison, fails)));
    }
    let templates = Templates::new();
    let diff = shown(comparison, fails);
    let page = |name: &str, most: usize, more: Value| {
        templates.render(name, context! { diff => diff.clone(), most, ..more })
    };
    match format {
        DiffFormat::Html(changes) => {
            let cards = changes.iter().map(card).collect::<Result<Vec<Value>, Error>>()?;
            let open = match changes.iter().filter(|c| c.change.verdict.is_change()).count() {
                0 => MOST_OPEN,
                stated => stated.min(MOST_OPEN),
            };
            page("diff.html", MOST_SHOWN, context! { cards, open })
        }
        DiffFormat::Markdown => {
            let mut out = String::new();
            for most in MOST_ROWS {
                out = page("diff.md", most, context! {})?;
                if out.chars().count() <= MOST_CHARACTERS {
                    break;
                }
            }
            Ok(out)
        }
        DiffFormat::Text | DiffFormat::Json => page("diff.txt", MOST_LINES, context! {}),
    }
}

/// Everything, with numbers as numbers; docs/notes/diff.md says what each is.
fn json_of(comparison: &Comparison, fails: &[(Class, usize)]) -> serde_json::Value {
    let counts = ChangeVerdict::ALL.map(|(v, name, _)| (name, comparison.count_verdict(v)));
    let problem = |OtherProblem { experiment, name, pair }: &OtherProblem| {
        json!({"experiment": experiment, "cell": pair.after, "cell-before": pair.before,
            "name": name, "other-settings": pair.other})
    };
    let change = |change: &Change| {
        json!({
            "experiment": change.experiment,
            "cell": change.pair.after,
            "cell-before": change.pair.before,
            "name": change.name,
            "verdict": change.verdict.name(),
            "other-settings": change.pair.other,
            "runs": change.runs(),
            "diverged": change.diverged(),
            "ratio": change.ratio(),
            "interval": change.shift.map(|s| [libm::exp(s.interval.0), libm::exp(s.interval.1)]),
            "p": change.p,
            "detectable": change.detectable.map(libm::exp),
            "note": change.note,
        })
    };
    let side = |claim: &SideClaim| {
        let interval = [claim.low, claim.high];
        json!({ "verdict": claim.verdict.name(), "estimate": claim.estimate, "interval": interval })
    };
    let claim = |change: &ClaimChange| {
        json!({
            "experiment": change.experiment,
            "id": change.id,
            "statement": change.statement,
            "before": change.before.as_ref().map(side),
            "after": change.after.as_ref().map(side),
            "fails": change.fails,
        })
    };
    json!({
        "schema": 1,
        "before": comparison.sides.0,
        "after": comparison.sides.1,
        "margin": comparison.margin,
        "comparable": !comparison.is_empty(),
        "fails": fails.iter().map(|(class, n)| (class.name(), *n)).collect::<BTreeMap<_, _>>(),
        "incomparable": comparison.incomparable,
        "other-problems": comparison.problems.iter().map(problem).collect::<Vec<_>>(),
        "removed": comparison.removed,
        "added": comparison.added,
        "identical": comparison.identical,
        "tested": comparison.tested,
        "verdicts": BTreeMap::from(counts),
        "changed": comparison.changed.iter().map(change).collect::<Vec<_>>(),
        "claims": comparison.claims.iter().map(claim).collect::<Vec<_>>(),
        "claims-untold": comparison.without_claims,
        "timings": comparison.timings,
    })
}

/// What templates see.
fn shown(comparison: &Comparison, fails: &[(Class, usize)]) -> Value {
    // The same cells, and cells with other settings: the first rows, and how many there are.
    let table = |with_other_settings: bool| {
        let wanted = |c: &&Change| c.pair.other.is_empty() != with_other_settings;
        let changes = || comparison.changed.iter().filter(wanted);
        let rows: Vec<Value> = changes().take(MOST_SHOWN).map(row).collect();
        context! { rows, count => changes().count() }
    };
    let lone = |cells: &[Lone]| context! { lines => lone_lines(cells), count => cells.len() };
    let incomparable = comparison.incomparable.iter().map(|i| {
        format!("{}: another {} ({} before, {} after)", i.experiment, i.what, i.before, i.after)
    });
    let incomparable = incomparable.chain(other_problems(&comparison.problems));
    let fails = fails.iter().map(|(class, count)| {
        let name = class.name();
        let name = if *count == 1 { name.strip_suffix('s').unwrap_or(name) } else { name };
        format!("{count} {name}")
    });
    // The verdicts that cells have: tone, number and name.
    let count = |(verdict, name, tone)| (tone, comparison.count_verdict(verdict), name);
    let counts: Vec<(&str, usize, &str)> =
        ChangeVerdict::ALL.into_iter().map(count).filter(|(_, n, _)| *n > 0).collect();
    let failed = comparison.changed.iter().filter(|c| c.verdict == ChangeVerdict::Failed);
    let failed = failed.map(|change| Lone {
        experiment: change.experiment.clone(),
        id: change.pair.after,
        name: format!("{}, {}", change.name, change.note),
    });
    let compared = unique(comparison.changed.iter().map(|change| change.quantity.compared()));
    let largest = comparison.largest_first().filter(|c| c.verdict.is_change());
    context! {
        before => clean(&comparison.sides.0),
        after => clean(&comparison.sides.1),
        title => Value::from(Serde(headline::headline(comparison))),
        headline => verdicts_in_words(comparison, &counts),
        unchanged => headline::unchanged(comparison),
        counts,
        failed => lone_lines(&failed.collect::<Vec<_>>()),
        fails => fails.collect::<Vec<_>>().join(", "),
        empty => comparison.is_empty(),
        margin => percent(comparison.margin),
        tested => comparison.tested,
        compared => words::enumerated(&compared),
        incomparable => incomparable.map(|line| clean(&line)).collect::<Vec<_>>(),
        removed => lone(&comparison.removed),
        added => lone(&comparison.added),
        largest => largest.take(MOST_FIRST).map(row).collect::<Vec<_>>(),
        changed => table(false),
        settings => table(true),
        claims => comparison.claims.iter().map(claim).collect::<Vec<_>>(),
        without_claims => &comparison.without_claims,
        timings => comparison.timings.iter().map(timing).collect::<Vec<_>>(),
    }
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
            let (runs, all) = (format!("{before} → {after}"), change.runs().1);
            (runs, format!("of {} diverged", words::count(all, "run")))
        }
    };
    Ok(
        context! { change => row(change), size, beside, drawings, caption => &figures[0].caption, page },
    )
}

/// The verdicts and how many cells have each, in one line.
fn verdicts_in_words(comparison: &Comparison, counts: &[(&str, usize, &str)]) -> String {
    let changed: Vec<String> = counts.iter().map(|(_, n, name)| format!("{n} {name}")).collect();
    let colon = if changed.is_empty() { "" } else { ": " };
    format!(
        "{} bit-identical, {} changed{colon}{}",
        words::count(comparison.identical, "cell"),
        comparison.changed.len(),
        changed.join(", ")
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
    let of_partition = |OtherSetting { path, .. }: &OtherSetting| {
        ["weights", "clients", "split"].iter().any(|key| path.contains(&format!(".dataset.{key}")))
    };
    let named = cells.iter().map(|OtherProblem { experiment, name, pair }| Lone {
        experiment: format!(
            "{experiment}: another problem or start in {}, whose errors ‖θ − θ*‖² cannot be compared{}",
            words::count(by[experiment.as_str()], "cell"),
            match pair.other.iter().all(of_partition) {
                true => "; a test set is the same, and losses and accuracies on it can be (exactfed export)",
                false => "",
            }
        ),
        id: pair.after,
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
    words::plain(value, 4)
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

/// A change as a row of a table.
fn row(change: &Change) -> Value {
    context! {
        verdict => change.verdict.name(),
        tone => change.verdict.tone(),
        experiment => &change.experiment,
        cell => change.pair.after.as_str(),
        name => clean(&change.name),
        family => change.family,
        other => clean(&others(&change.pair.other)),
        ratio => ratio(change),
        p => probability(change.p.unwrap_or(f64::NAN)),
        detectable => change.detectable.map(detectable),
        diverged => match change.diverged() {
            (0, 0) => "–".into(),
            (before, after) => format!("{before} → {after}"),
        },
        note => clean(&change.note),
    }
}

fn claim(change: &ClaimChange) -> Value {
    let side = |claim: &Option<SideClaim>| {
        let estimate = side_estimate(claim.as_ref()).unwrap_or_default();
        context! { verdict => claim.as_ref().map_or("absent", |c| c.verdict.name()), estimate }
    };
    context! {
        experiment => &change.experiment,
        id => clean(&change.id),
        statement => clean(&change.statement),
        before => side(&change.before),
        after => side(&change.after),
        fails => change.fails,
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
