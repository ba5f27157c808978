//! Figures of a change: both curves on one chart and their ratio on another; from
//! final errors alone, one dot per replicate. The side before is grey and dashed, and the side after
//! has the colour of the algorithm's family.
//!
//! *Invariant*: the ratio is of paired replicates; where either is 0 or has diverged, no point
//! is drawn.

use super::judge::Change;
use crate::evidence::measured::student_limits;
use crate::evidence::{
    Body, Color, Curve, CurveValue, Dash, Figure, LegendEntry, Line, Panel, Plot, Point, Reference,
    Scale, Series, Style,
};
use crate::stats::{mean, standard_deviation, student_95};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::trace::Trace;
use std::collections::BTreeMap;

/// How the side before is drawn: grey and dashed.
const BEFORE: Style = Style { color: Color::Neutral, dash: Dash::Measured(1), marker: 0 };

/// The two charts of a change over rounds, from the traces of its cells before and after, a trace per replicate: the
/// mean errors of both sides, and the ratio of paired replicates, after over before. Both sides have the same
/// replicates in the same order, as far as both have them.
pub fn of_traces(change: &Change, before: &[Trace], after: &[Trace]) -> [Figure; 2] {
    let caption = "Mean over runs, and the geometric mean of the ratio over paired runs, each with its 95 % interval (Student's t, on the logarithm).";
    let runs_before = compared_runs(change.quantity, before);
    let runs_after = compared_runs(change.quantity, after);
    let ratios = mean_ratios(&runs_before, &runs_after);
    both_charts(
        change,
        "round",
        caption,
        mean_losses(&runs_before, change.quantity),
        mean_losses(&runs_after, change.quantity),
        ratios,
    )
}

/// The two charts of a change where a side has no traces, as a report: a dot per replicate of its final error, and a
/// dot per pair of replicates of the ratio of final errors, after over before.
pub fn of_finals(change: &Change) -> [Figure; 2] {
    let mut before = change.finals.0.as_slice();
    let mut after = change.finals.1.as_slice();
    if change.has_omitted_runs() {
        // Among all runs of the other side, the few of a report would not be seen.
        let kept = before.len().min(after.len());
        before = &before[..kept];
        after = &after[..kept];
    }
    let pairs = before.iter().zip(after);
    let ratios = separate_dots(pairs.map(|(before, after)| final_ratio(*before, *after)));
    let caption = "One dot per run: reports store final errors and no curves.";
    both_charts(change, "run", caption, final_dots(before), final_dots(after), ratios)
}

/// The final error after over that before; NaN, which is not drawn, where either is 0 or has diverged.
fn final_ratio(before: Option<f64>, after: Option<f64>) -> f64 {
    match (before, after) {
        (Some(before), Some(after)) if before > 0.0 && after > 0.0 => after / before,
        _ => f64::NAN,
    }
}

/// A dot for the final error of each replicate, except of those that diverged (`None`).
fn final_dots(finals: &[Option<f64>]) -> Vec<Point> {
    separate_dots(finals.iter().map(|value| value.unwrap_or(f64::NAN)))
}

/// A point per value over the number of its run, from 1. A point without a value follows each: it interrupts the
/// curve, so that no line joins the values, and each is drawn as a dot.
fn separate_dots(values: impl Iterator<Item = f64>) -> Vec<Point> {
    let mut points = Vec::new();
    for (i, value) in values.enumerate() {
        let x = (i + 1) as f64;
        points.push(Point { n: 1, ..Point::bare(x, value) });
        points.push(Point { n: 1, ..Point::bare(x, f64::NAN) });
    }
    points
}

/// A line of a chart, drawn as a measured curve; `diverged` is the number of its runs that diverged.
fn chart_line(name: &str, style: Style, points: Vec<Point>, diverged: usize) -> Series {
    Series { diverged, ..Series::new(Line::Measured(Curve::new(name, style)), points) }
}

/// What is compared of a run of a side.
struct ComparedRun<'t> {
    /// The recorded rounds.
    rounds: &'t [u64],
    /// The losses of the compared quantity at these rounds: less is better.
    losses: Vec<f64>,
}

/// What is compared of each run: the losses of a quantity along its trace.
fn compared_runs(quantity: Quantity, traces: &[Trace]) -> Vec<ComparedRun<'_>> {
    let mut runs = Vec::new();
    for trace in traces {
        let values = trace.measured(quantity).iter();
        let losses = values.map(|value| quantity.loss(*value)).collect();
        runs.push(ComparedRun { rounds: &trace.round, losses });
    }
    runs
}

/// The mean loss over the runs of a side with its 95 % interval, a point for each recorded round, up to the round at
/// which the first run diverged: its trace ends there. All runs of a side are of one cell and record the same rounds.
fn mean_losses(runs: &[ComparedRun<'_>], quantity: Quantity) -> Vec<Point> {
    // An error rate is at most 1, as an accuracy is.
    let (least, largest) = quantity.possible_values();
    let rows = runs.iter().map(|run| run.losses.len()).min().unwrap_or(0);
    let mut points = Vec::new();
    for row in 0..rows {
        let sample: Vec<f64> = runs.iter().map(|run| run.losses[row]).collect();
        let (low, high) = student_limits(&sample);
        points.push(Point {
            low,
            high: high.min(largest - least),
            n: sample.len(),
            ..Point::bare(runs[0].rounds[row] as f64, mean(&sample))
        });
    }
    points
}

/// The geometric mean over pairs of runs of the loss after over the loss before, with its 95 % interval: a point for
/// each round that both sides recorded. The first run before is paired with the first one after, and so on. A round
/// is left out if in some pair a loss is 0 or a run has diverged.
fn mean_ratios(before: &[ComparedRun<'_>], after: &[ComparedRun<'_>]) -> Vec<Point> {
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

/// A point at this round: the geometric mean of the ratios whose logarithms these are, with its 95 % interval by
/// Student's t on the logarithms.
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

/// The style of a solid line with this marker, in the colour of the family of the change's algorithm.
fn solid_style(change: &Change, marker: usize) -> Style {
    Style { marker, ..Style::solid(Color::of_family(change.family)) }
}

/// The two charts of a change: the upper one with the points of both sides on a logarithmic axis, the lower one with
/// the ratios and a line at 1, which means no change. `x` is the title of the x axis. The axis of ratios is
/// logarithmic where they span more than a factor of 4.
fn both_charts(
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
        chart_line("before", BEFORE, before, diverged_before),
        chart_line("after", solid_style(change, 1), after, diverged_after),
    ];
    let sides_title = format!("{}: {y} before and after", change.name);
    let sides_figure = chart(sides_title, caption, x, &y, Scale::Log, sides);
    let mut low = 1.0_f64;
    let mut high = 1.0_f64;
    for point in ratios.iter().filter(|point| point.y.is_finite()) {
        low = low.min(point.y);
        high = high.max(point.y);
    }
    let scale = if high / low > 4.0 { Scale::Log } else { Scale::Linear };
    let no_change = no_change_line(&ratios);
    let mut lines = vec![chart_line("ratio", solid_style(change, 3), ratios, 0)];
    lines.extend(no_change);
    let ratio_title = format!("{}: after over before", change.name);
    [sides_figure, chart(ratio_title, caption, x, "ratio", scale, lines)]
}

/// The line at ratio 1 from the first finite ratio to the last one, which come in the order of x; `None` if no ratio is
/// finite.
fn no_change_line(ratios: &[Point]) -> Option<Series> {
    let mut finite = ratios.iter().filter(|point| point.y.is_finite());
    let first = finite.next()?;
    let last = finite.next_back().unwrap_or(first);
    let ends = vec![Point::bare(first.x, 1.0), Point::bare(last.x, 1.0)];
    Some(Series::new(Line::Reference(Reference::NoChange), ends))
}

/// A chart with one panel of these lines and a legend of all of them. It is drawn within a page and has no file.
fn chart(
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
