//! A comparison as its templates read it: texts that are safe to show, and tables that are truncated.

use super::DrawnChange;
use super::headline::{clean, headline, percent, unchanged};
use crate::chart;
use crate::compare::{
    Change, ChangeVerdict, ClaimChange, Class, Comparison, ListedCell, OtherProblem, OtherSetting,
    SideClaim, Timing,
};
use crate::evidence::{Figure, unique};
use crate::report::claims::{probability, side_estimate};
use crate::report::colored_text::ColoredText;
use exactfed_core::words;
use exactfed_runner::files::{Error, error};
use exactfed_runner::plan::short as short_path;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Rows of each table that a page shows.
pub const MOST_SHOWN: usize = 1000;
/// Changes that Markdown shows before its tables.
const MOST_FIRST: usize = 10;
/// Width of charts, which suits half a page and a telephone, and the heights of the curves and of
/// their ratio, in pixels.
const CHART_WIDTH: u32 = 440;
const CHART_HEIGHTS: [u32; 2] = [250, 130];

/// A comparison of two sides, which are called before and after.
#[derive(Serialize)]
pub struct ShownComparison {
    /// The names of the sides: a revision, or a folder.
    before: String,
    after: String,
    /// The headline.
    title: Vec<ColoredText>,
    /// The verdicts and how many cells have each, in one line.
    headline: String,
    /// How many cells are as they were.
    unchanged: String,
    counts: Vec<VerdictCount>,
    /// The cells that have no sound results after, one line per experiment.
    failed: Vec<String>,
    /// What makes the comparison fail; empty if nothing does.
    fails: String,
    /// Whether no cell is on both sides.
    empty: bool,
    margin: String,
    tested: usize,
    /// The quantities that are compared.
    compared: String,
    /// Lines on the experiments, and on the cells, that cannot be compared, each with the reason.
    incomparable: Vec<String>,
    /// The cells that only the side before has.
    removed: LoneCells,
    /// The cells that only the side after has.
    added: LoneCells,
    /// The largest changes, which Markdown shows before its tables.
    largest: Vec<ChangeRow>,
    /// Changes of cells that have the same settings on both sides.
    changed: ChangeTable,
    /// Changes of cells whose counterparts have other settings.
    settings: ChangeTable,
    claims: Vec<ClaimRow>,
    /// The experiments whose claims one side does not have.
    without_claims: Vec<String>,
    /// For each experiment its name, the number of cells, the seconds before and after, and their ratio.
    timings: Vec<[String; 5]>,
}

/// How many cells have a verdict: the tone in which a page shows the verdict, the number, and the verdict's name.
#[derive(Serialize)]
struct VerdictCount(&'static str, usize, &'static str);

/// The cells that only one side has.
#[derive(Serialize)]
struct LoneCells {
    /// The cells, one line for each experiment.
    lines: Vec<String>,
    /// The number of cells.
    count: usize,
}

/// The changes of one kind as a table.
#[derive(Serialize)]
struct ChangeTable {
    /// At most the first [`MOST_SHOWN`] changes.
    rows: Vec<ChangeRow>,
    /// The number of all changes of the kind.
    count: usize,
}

/// A change as a row of a table.
#[derive(Serialize)]
struct ChangeRow {
    verdict: &'static str,
    tone: &'static str,
    experiment: String,
    cell: String,
    name: String,
    family: usize,
    /// The settings that differ between the sides.
    other: String,
    /// How many times larger the error is after, with its interval; a dash if there is no ratio.
    ratio: String,
    p: String,
    /// The ratio that the runs would have detected.
    detectable: Option<String>,
    /// How many runs diverged before and after; a dash if none did.
    diverged: String,
    note: String,
}

/// A claim on both sides.
#[derive(Serialize)]
struct ClaimRow {
    experiment: String,
    id: String,
    statement: String,
    before: ClaimSideText,
    after: ClaimSideText,
    fails: bool,
}

/// A claim on one side.
#[derive(Serialize)]
struct ClaimSideText {
    verdict: &'static str,
    estimate: String,
}

/// A change with its drawings.
#[derive(Serialize)]
pub struct ChangeCard {
    change: ChangeRow,
    /// The ratio; where there is none, how many runs diverged before and after.
    size: String,
    /// What stands next to the size: the interval of the ratio, or of how many runs some diverged.
    beside: String,
    /// The curves of both sides, and the curve of their ratio, as SVG.
    drawings: Vec<String>,
    caption: String,
    /// The page of the experiment, if there is one.
    page: Option<String>,
}

impl ShownComparison {
    /// The comparison; `fails` are the classes of changes that make `diff` fail, each with the number of its changes.
    pub fn new(comparison: &Comparison, fails: &[(Class, usize)]) -> Self {
        let (before, after) = &comparison.sides;
        let counts = verdict_counts(comparison);
        let incomparable = comparison.incomparable.iter().map(|i| {
            format!("{}: another {} ({} before, {} after)", i.experiment, i.what, i.before, i.after)
        });
        let compared = unique(comparison.changed.iter().map(|change| change.quantity.compared()));
        let largest = comparison.largest_first().filter(|c| c.verdict.is_change());
        Self {
            before: clean(before),
            after: clean(after),
            title: headline(comparison),
            headline: verdicts_in_words(comparison, &counts),
            unchanged: unchanged(comparison),
            counts,
            failed: listed_lines(&failed_cells(comparison)),
            fails: failing_classes(fails),
            empty: comparison.is_empty(),
            margin: percent(comparison.margin),
            tested: comparison.tested,
            compared: words::enumerated(&compared),
            incomparable: incomparable
                .chain(other_problems(&comparison.problems))
                .map(|line| clean(&line))
                .collect(),
            removed: LoneCells::new(&comparison.removed),
            added: LoneCells::new(&comparison.added),
            largest: largest.take(MOST_FIRST).map(ChangeRow::new).collect(),
            changed: ChangeTable::new(comparison, |change| change.pair.other.is_empty()),
            settings: ChangeTable::new(comparison, |change| !change.pair.other.is_empty()),
            claims: comparison.claims.iter().map(ClaimRow::new).collect(),
            without_claims: comparison.without_claims.clone(),
            timings: comparison.timings.iter().map(timing).collect(),
        }
    }
}

/// The verdicts that some changed cell has, in the order of [`ChangeVerdict::ALL`].
fn verdict_counts(comparison: &Comparison) -> Vec<VerdictCount> {
    let mut counts = Vec::new();
    for (verdict, name, tone) in ChangeVerdict::ALL {
        let count = comparison.count_verdict(verdict);
        if count > 0 {
            counts.push(VerdictCount(tone, count, name));
        }
    }
    counts
}

/// The classes of changes that make `diff` fail, each with the number of its changes: "1 claim, 3 removed".
fn failing_classes(fails: &[(Class, usize)]) -> String {
    let mut texts = Vec::new();
    for (class, count) in fails {
        let name = class.name();
        let singular = if *count == 1 { name.strip_suffix('s').unwrap_or(name) } else { name };
        texts.push(format!("{count} {singular}"));
    }
    texts.join(", ")
}

/// The cells that have no sound results after, though they, or the cells that they are paired with, had some before;
/// each with the reason. Cells without results on both sides are no change, and those that have results only after are
/// recovered: neither are listed.
fn failed_cells(comparison: &Comparison) -> Vec<ListedCell> {
    let failed = comparison.changed.iter().filter(|c| c.verdict == ChangeVerdict::Failed);
    failed
        .map(|change| ListedCell {
            experiment: change.experiment.clone(),
            id: change.pair.after,
            name: format!("{}, {}", change.name, change.note),
        })
        .collect()
}

impl LoneCells {
    /// The list of these cells.
    fn new(cells: &[ListedCell]) -> Self {
        Self { lines: listed_lines(cells), count: cells.len() }
    }
}

impl ChangeTable {
    /// The table of the changes that are wanted, in the order of the comparison.
    fn new(comparison: &Comparison, is_wanted: fn(&Change) -> bool) -> Self {
        let changes: Vec<&Change> =
            comparison.changed.iter().filter(|change| is_wanted(change)).collect();
        let rows = changes.iter().take(MOST_SHOWN).map(|change| ChangeRow::new(change));
        Self { rows: rows.collect(), count: changes.len() }
    }
}

impl ChangeRow {
    /// The row of a change, whose texts from manifests are in one line.
    fn new(change: &Change) -> Self {
        Self {
            verdict: change.verdict.name(),
            tone: change.verdict.tone(),
            experiment: change.experiment.clone(),
            cell: change.pair.after.to_string(),
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
}

impl ClaimRow {
    /// The row of a claim whose verdict changed, or that one side lacks.
    fn new(change: &ClaimChange) -> Self {
        Self {
            experiment: change.experiment.clone(),
            id: clean(&change.id),
            statement: clean(&change.statement),
            before: ClaimSideText::new(change.before.as_ref()),
            after: ClaimSideText::new(change.after.as_ref()),
            fails: change.fails,
        }
    }
}

impl ClaimSideText {
    /// The verdict and the estimate on one side; "absent" if the side does not have the claim.
    fn new(claim: Option<&SideClaim>) -> Self {
        Self {
            verdict: claim.map_or("absent", |claim| claim.verdict.name()),
            estimate: side_estimate(claim).unwrap_or_default(),
        }
    }
}

impl ChangeCard {
    /// Draws the figures of a change: the curves of both sides, and the curve of their ratio below.
    ///
    /// # Errors
    /// If a chart cannot be drawn.
    pub fn new(DrawnChange { change, figures, page }: &DrawnChange<'_>) -> Result<Self, Error> {
        let mut drawings = Vec::new();
        for (figure, height) in figures.iter().zip(CHART_HEIGHTS) {
            drawings.push(draw(figure, height)?);
        }
        let (size, beside) = factor_and_interval(change).unwrap_or_else(|| {
            let (before, after) = change.diverged();
            let all = words::count(change.runs().1, "run");
            (format!("{before} → {after}"), format!("of {all} diverged"))
        });
        Ok(Self {
            change: ChangeRow::new(change),
            size,
            beside,
            drawings,
            caption: figures[0].caption.clone(),
            page: page.clone(),
        })
    }
}

/// A chart as SVG, whose panel has this height in pixels.
fn draw(figure: &Figure, height: u32) -> Result<String, Error> {
    let svg = chart::svg_of_size(figure, CHART_WIDTH, height);
    svg.map_err(|e| error(Path::new("diff.html"), e))
}

/// How many cells are bit-identical, how many changed, and how many of these have each verdict, in one line.
fn verdicts_in_words(comparison: &Comparison, counts: &[VerdictCount]) -> String {
    let changed: Vec<String> =
        counts.iter().map(|VerdictCount(_, n, name)| format!("{n} {name}")).collect();
    let colon = if changed.is_empty() { "" } else { ": " };
    format!(
        "{} bit-identical, {} changed{colon}{}",
        words::count(comparison.identical, "cell"),
        comparison.changed.len(),
        changed.join(", ")
    )
}

/// One line for each experiment, in the order of their names, that names its first cells, with their ids, and says how
/// many more there are.
fn listed_lines(cells: &[ListedCell]) -> Vec<String> {
    const MOST: usize = 3;
    let mut by_experiment: BTreeMap<&str, Vec<&ListedCell>> = BTreeMap::new();
    for cell in cells {
        by_experiment.entry(&cell.experiment).or_default().push(cell);
    }
    let mut lines = Vec::new();
    for (experiment, cells) in by_experiment {
        let named = cells.iter().take(MOST).map(|c| format!("{} ({})", c.name, c.id));
        let names = named.collect::<Vec<_>>().join("; ");
        let more = match cells.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        lines.push(clean(&format!("{experiment}: {names}{more}")));
    }
    lines
}

/// The cells that are not compared because their counterparts have another problem or start: one line for each
/// experiment, which names some and says how many there are. An experiment has two lines if some counterparts have the
/// same test set, on which losses can be compared in spite of that, as one line says, and others not.
fn other_problems(cells: &[OtherProblem]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for cell in cells {
        *counts.entry((&cell.experiment, cell.has_same_records)).or_default() += 1;
    }
    let mut named = Vec::new();
    for OtherProblem { experiment, name, pair, has_same_records } in cells {
        let count = words::count(counts[&(experiment.as_str(), *has_same_records)], "cell");
        let hint = if *has_same_records {
            "; a test set is the same, and losses and accuracies on it can be (exactfed export)"
        } else {
            ""
        };
        // `listed_lines` makes one line of all cells with the same text in this place.
        named.push(ListedCell {
            experiment: format!(
                "{experiment}: another problem or start in {count}, whose errors ‖θ − θ*‖² cannot be compared{hint}"
            ),
            id: pair.after,
            name: format!("{name}, {}", others(&pair.other)),
        });
    }
    listed_lines(&named)
}

/// Settings that changed, with their values before and after.
fn others(other: &[OtherSetting]) -> String {
    let mut texts = Vec::new();
    for OtherSetting { path, before, after } in other {
        texts.push(format!("{} {before} → {after}", short_path(path)));
    }
    texts.join(", ")
}

/// The ratio whose logarithm is `log`, as `×1.012`.
fn factor(log: f64) -> String {
    format!("×{}", fine(libm::exp(log)))
}

/// The ratio that the runs would have detected four times out of five, by its natural logarithm. With two or three runs
/// it may be astronomical: beyond 10⁶ only that is said.
fn detectable(log: f64) -> String {
    if log > libm::log(1e6) { "> ×10⁶".into() } else { factor(log) }
}

/// Four digits: a ratio of 1.012 must not read 1.01.
fn fine(value: f64) -> String {
    words::plain(value, 4)
}

/// The texts of the ratio of the errors, after over before, and of its 95 % interval; the interval is empty where
/// nothing is random, or where it is not known. `None` if there is no ratio, as where runs diverged.
fn factor_and_interval(change: &Change) -> Option<(String, String)> {
    match (change.shift, change.exact) {
        (Some(shift), _) => {
            let (low, high) = shift.interval;
            let interval = if low.is_nan() || high.is_nan() {
                String::new()
            } else {
                format!("[{}, {}]", fine(libm::exp(low)), fine(libm::exp(high)))
            };
            Some((factor(shift.mean), interval))
        }
        (None, exact) => exact.map(|log| (factor(log), String::new())),
    }
}

/// The ratio and its interval as one text; a dash without a ratio.
fn ratio(change: &Change) -> String {
    let Some((factor, interval)) = factor_and_interval(change) else { return "–".into() };
    if interval.is_empty() { factor } else { format!("{factor} {interval}") }
}

/// The time of an experiment's runs as cells of a table: name, number of cells, seconds before and after, and their
/// ratio.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Pair;

    /// Cells of an experiment whose counterparts have other clients, and the same records or not.
    fn cells(experiment: &str, number: usize, has_same_records: bool) -> Vec<OtherProblem> {
        let setting = OtherSetting {
            path: "problem.logistic.dataset.clients".to_owned(),
            before: "4".to_owned(),
            after: "8".to_owned(),
        };
        let pair = Pair { other: vec![setting], ..Pair::default() };
        let cell = OtherProblem {
            experiment: experiment.to_owned(),
            name: "FedAvg".to_owned(),
            pair,
            has_same_records,
        };
        vec![cell; number]
    }

    /// Of an experiment with two lines, each says how many cells are its own.
    #[test]
    fn lines_on_other_problems_count_their_own_cells() {
        let all = [cells("m", 2, true), cells("m", 1, false), cells("n", 5, true)].concat();
        let lines = other_problems(&all);
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (experiment, count, can_be_compared) in
            [("m", "1 cell", false), ("m", "2 cells", true), ("n", "5 cells", true)]
        {
            let begin = format!("{experiment}: another problem or start in {count}, ");
            let line = lines.iter().find(|line| line.starts_with(&begin));
            let line = line.unwrap_or_else(|| panic!("{begin}: {lines:?}"));
            assert_eq!(line.contains("a test set is the same"), can_be_compared, "{line}");
        }
    }
}
