//! Figures of a change: both curves on one chart and their ratio on another; from
//! final errors alone, one dot per replicate. The side before is grey and dashed, and the side after
//! has the colour of the algorithm's family.
//!
//! *Invariant*: the ratio is of paired replicates; where either is 0 or has diverged, no point
//! is drawn.

use super::judge::Change;
use crate::evidence::Band;
use crate::evidence::measured::point;
use crate::evidence::{
    Body, Color, Curve, CurveValue, Dash, Figure, LegendEntry, Line, Panel, Plot, Point, Reference,
    Scale, Series, Style,
};
use crate::stats::{mean, standard_deviation, student_95};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::trace::Trace;
use std::collections::BTreeMap;

const BEFORE: Style = Style { color: Color::Neutral, dash: Dash::Measured(1), marker: 0 };

/// Both curves over rounds, and the ratio of paired replicates below.
pub fn of_traces(change: &Change, before: &[Trace], after: &[Trace]) -> [Figure; 2] {
    let caption = "Mean over runs, and the geometric mean of the ratio over paired runs, each with its 95 % interval (Student's t, on the logarithm).";
    let before = compared_runs(change.quantity, before);
    let after = compared_runs(change.quantity, after);
    let ratios = ratios(&before, &after);
    figures(change, "round", caption, means(&before), means(&after), ratios)
}

/// One dot per replicate, where curves are not available.
pub fn of_finals(change: &Change) -> [Figure; 2] {
    let mut before = change.finals.0.as_slice();
    let mut after = change.finals.1.as_slice();
    if change.has_omitted_runs() {
        // Among all runs of the other side, the few of a report would not be seen.
        let pairs = before.len().min(after.len());
        before = &before[..pairs];
        after = &after[..pairs];
    }
    let pairs = before.iter().zip(after);
    let ratios = dots(pairs.map(|(before, after)| final_ratio(*before, *after)));
    let caption = "One dot per run: reports store final errors and no curves.";
    figures(change, "run", caption, final_dots(before), final_dots(after), ratios)
}

/// After over before; NaN where either is 0 or has diverged.
fn final_ratio(before: Option<f64>, after: Option<f64>) -> f64 {
    match (before, after) {
        (Some(before), Some(after)) if before > 0.0 && after > 0.0 => after / before,
        _ => f64::NAN,
    }
}

fn final_dots(finals: &[Option<f64>]) -> Vec<Point> {
    dots(finals.iter().map(|value| value.unwrap_or(f64::NAN)))
}

/// Dots over the number of the run, which no line joins, since a gap follows each.
fn dots(values: impl Iterator<Item = f64>) -> Vec<Point> {
    let mut points = Vec::new();
    for (i, value) in values.enumerate() {
        let x = (i + 1) as f64;
        points.push(Point { n: 1, ..Point::bare(x, value) });
        points.push(Point { n: 1, ..Point::bare(x, f64::NAN) });
    }
    points
}

fn series(name: &str, style: Style, points: Vec<Point>, diverged: usize) -> Series {
    Series { diverged, ..Series::new(Line::Measured(Curve::new(name, style)), points) }
}

/// A run of a side.
struct ComparedRun<'t> {
    /// The recorded rounds.
    rounds: &'t [u64],
    /// What is compared there.
    losses: Vec<f64>,
}

fn compared_runs(quantity: Quantity, traces: &[Trace]) -> Vec<ComparedRun<'_>> {
    let mut runs = Vec::new();
    for trace in traces {
        let values = trace.measured(quantity).iter();
        let losses = values.map(|value| quantity.loss(*value)).collect();
        runs.push(ComparedRun { rounds: &trace.round, losses });
    }
    runs
}

/// The mean over replicates up to the first divergence.
fn means(runs: &[ComparedRun<'_>]) -> Vec<Point> {
    let rows = runs.iter().map(|run| run.losses.len()).min().unwrap_or(0);
    let mut points = Vec::new();
    for row in 0..rows {
        let sample: Vec<f64> = runs.iter().map(|run| run.losses[row]).collect();
        points.push(point(runs[0].rounds[row] as f64, &sample, Band::Ci95));
    }
    points
}

/// The geometric mean of paired ratios at the rounds that both sides recorded,
/// with its 95 % interval.
fn ratios(before: &[ComparedRun<'_>], after: &[ComparedRun<'_>]) -> Vec<Point> {
    let mut logs_by_round: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (old, new) in before.iter().zip(after) {
        let old_losses: BTreeMap<u64, f64> =
            old.rounds.iter().copied().zip(old.losses.iter().copied()).collect();
        for (round, new_loss) in new.rounds.iter().zip(&new.losses) {
            if let Some(old_loss) = old_losses.get(round)
                && *old_loss > 0.0
                && *new_loss > 0.0
            {
                let log = libm::log(new_loss / old_loss);
                logs_by_round.entry(*round).or_default().push(log);
            }
        }
    }
    let pairs = before.len().min(after.len());
    let mut points = Vec::new();
    for (round, logs) in logs_by_round {
        // A mean over fewer pairs could not be compared with its neighbours.
        if logs.len() == pairs {
            points.push(geometric_mean(round, &logs));
        }
    }
    points
}

/// The geometric mean of ratios with these logarithms, with its 95 % interval.
fn geometric_mean(round: u64, logs: &[f64]) -> Point {
    let n = logs.len();
    let mean = mean(logs);
    let half = student_95(n) * standard_deviation(logs) / (n as f64).sqrt();
    Point {
        low: libm::exp(mean - half),
        high: libm::exp(mean + half),
        n,
        ..Point::bare(round as f64, libm::exp(mean))
    }
}

/// The solid line of a change, in the colour of its algorithm's family.
fn solid(change: &Change, marker: usize) -> Style {
    Style { marker, ..Style::solid(Color::of_family(change.family)) }
}

/// The upper chart has both sides, the lower one ratios and the line of no change.
fn figures(
    change: &Change,
    x: &str,
    caption: &str,
    before: Vec<Point>,
    after: Vec<Point>,
    ratios: Vec<Point>,
) -> [Figure; 2] {
    let y = change.quantity.compared();
    let (diverged_before, diverged_after) = change.diverged();
    let sides = vec![
        series("before", BEFORE, before, diverged_before),
        series("after", solid(change, 1), after, diverged_after),
    ];
    let sides_title = format!("{}: {y} before and after", change.name);
    let sides_figure = figure(sides_title, caption, x, &y, Scale::Log, sides);
    let mut low = 1.0_f64;
    let mut high = 1.0_f64;
    for point in ratios.iter().filter(|point| point.y.is_finite()) {
        low = low.min(point.y);
        high = high.max(point.y);
    }
    let scale = if high / low > 4.0 { Scale::Log } else { Scale::Linear };
    let no_change = no_change_line(&ratios);
    let mut lines = vec![series("ratio", solid(change, 3), ratios, 0)];
    lines.extend(no_change);
    let ratio_title = format!("{}: after over before", change.name);
    [sides_figure, figure(ratio_title, caption, x, "ratio", scale, lines)]
}

/// The line at 1 from the first finite point to the last one, which come in the order of x; `None`
/// without any.
fn no_change_line(ratios: &[Point]) -> Option<Series> {
    let mut finite = ratios.iter().filter(|point| point.y.is_finite());
    let first = finite.next()?;
    let last = finite.next_back().unwrap_or(first);
    let ends = vec![Point::bare(first.x, 1.0), Point::bare(last.x, 1.0)];
    Some(Series::new(Line::Reference(Reference::NoChange), ends))
}

fn figure(
    title: String,
    caption: &str,
    x: &str,
    y: &str,
    scale_y: Scale,
    series: Vec<Series>,
) -> Figure {
    let legend = series.iter().map(|s| LegendEntry::Line(s.line.clone())).collect();
    let body = Body::Plot(Plot {
        panels: vec![Panel { title: String::new(), series }],
        legend,
        x: x.into(),
        y: y.into(),
        scale_x: Scale::Linear,
        scale_y,
        labels: CurveValue::last(scale_y),
    });
    Figure::plain("diff".into(), title, caption.into(), 1, body)
}
