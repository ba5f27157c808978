//! Figures of a change: both curves on one chart and their ratio on another; from
//! final errors alone, one dot per replicate. What was is grey and dashed, and what is has
//! the colour of the algorithm's family.
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
    let [before, after] =
        [before, after].map(|traces| ComparedColumns::new(change.quantity, traces));
    figures(change, "round", caption, [before.means(), after.means()], ratios(&before, &after))
}

/// One dot per replicate, where curves are not available.
pub fn of_finals(change: &Change) -> [Figure; 2] {
    let (before, after) = &change.finals;
    let dots = |finals: &[Option<f64>]| dots(finals.iter().map(|f| f.unwrap_or(f64::NAN)));
    let quotient = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) if *a > 0.0 && *b > 0.0 => b / a,
        _ => f64::NAN,
    };
    let ratios = self::dots(before.iter().zip(after).map(quotient));
    let caption = "One dot per run: reports store final errors and no curves.";
    figures(change, "run", caption, [dots(before), dots(after)], ratios)
}

/// Dots that no line joins, since a gap follows each.
fn dots(values: impl Iterator<Item = f64>) -> Vec<Point> {
    let dot = |(i, y): (usize, f64)| {
        [y, f64::NAN].map(|y| Point { n: 1, ..Point::bare((i + 1) as f64, y) })
    };
    values.enumerate().flat_map(dot).collect()
}

fn series(name: &str, style: Style, points: Vec<Point>, diverged: usize) -> Series {
    Series { diverged, ..Series::new(Line::Measured(Curve::new(name, style)), points) }
}

/// The recorded rounds of each run of a side, and what is compared there.
struct ComparedColumns<'t>(Vec<(&'t [u64], Vec<f64>)>);

impl<'t> ComparedColumns<'t> {
    fn new(quantity: Quantity, traces: &'t [Trace]) -> Self {
        let column = |trace: &'t Trace| {
            let losses = trace.measured(quantity).iter().map(|value| quantity.loss(*value));
            (&trace.round[..], losses.collect())
        };
        Self(traces.iter().map(column).collect())
    }

    /// The mean over replicates up to the first divergence.
    fn means(&self) -> Vec<Point> {
        let rows = self.0.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
        let row = |i: usize| {
            let sample: Vec<f64> = self.0.iter().map(|(_, values)| values[i]).collect();
            point(self.0[0].0[i] as f64, &sample, Band::Ci95)
        };
        (0..rows).map(row).collect()
    }
}

/// The geometric mean of paired ratios at the rounds that both sides recorded,
/// with its 95 % interval.
fn ratios(before: &ComparedColumns<'_>, after: &ComparedColumns<'_>) -> Vec<Point> {
    let mut rounds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let pairs = before.0.len().min(after.0.len());
    for ((old_rounds, old), (new_rounds, new)) in before.0.iter().zip(&after.0) {
        let old: BTreeMap<u64, f64> = old_rounds.iter().copied().zip(old.iter().copied()).collect();
        for (t, new) in new_rounds.iter().zip(new) {
            if let Some(old) = old.get(t).filter(|old| **old > 0.0 && *new > 0.0) {
                rounds.entry(*t).or_default().push(libm::log(new / old));
            }
        }
    }
    let ratio = |(t, logs): (u64, Vec<f64>)| {
        let (n, mean) = (logs.len(), mean(&logs));
        let half = student_95(n) * standard_deviation(&logs) / (n as f64).sqrt();
        let ends = (libm::exp(mean - half), libm::exp(mean + half));
        Point { low: ends.0, high: ends.1, n, ..Point::bare(t as f64, libm::exp(mean)) }
    };
    rounds.into_iter().filter(|(_, logs)| logs.len() == pairs).map(ratio).collect()
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
    [before, after]: [Vec<Point>; 2],
    ratios: Vec<Point>,
) -> [Figure; 2] {
    let y = change.quantity.compared();
    let title = format!("{}: {y} before and after", change.name);
    let diverged = change.diverged();
    let before = series("before", BEFORE, before, diverged.0);
    let after = series("after", solid(change, 1), after, diverged.1);
    let both = figure(title, caption, (x, &y), Scale::Log, vec![before, after]);
    let finite = || ratios.iter().filter(|p| p.y.is_finite());
    let ends = finite().fold((1.0_f64, 1.0_f64), |(low, high), p| (low.min(p.y), high.max(p.y)));
    let scale = if ends.1 / ends.0 > 4.0 { Scale::Log } else { Scale::Linear };
    // Points stand in the order of x.
    let across = finite().next().zip(finite().next_back());
    let across = across.map(|(first, last)| [first.x, last.x].map(|x| Point::bare(x, 1.0)));
    let mut all = vec![series("ratio", solid(change, 3), ratios, 0)];
    let no_change =
        |ends: [Point; 2]| Series::new(Line::Reference(Reference::NoChange), ends.into());
    all.extend(across.map(no_change));
    let title = format!("{}: after over before", change.name);
    [both, figure(title, caption, (x, "ratio"), scale, all)]
}

fn figure(
    title: String,
    caption: &str,
    (x, y): (&str, &str),
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
