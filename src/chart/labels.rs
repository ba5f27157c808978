//! Labels at the ends of a panel's curves, so that nobody has to look names up in a legend.

use super::axis::Axis;
use super::font;
use super::label_values::{CurveEnd, LabelValues, short_name};
use super::layout::PanelArea;
use crate::evidence::{
    Curve, LabelledPoint, Line, Panel, Plot, Point, Series, Style, words_before,
};
use std::collections::HashSet;

/// Font size of a name.
pub const NAME: u32 = 12;
/// Font size of the value below a name.
pub const VALUE: u32 = 11;

/// Width of the stretch of line before a name.
pub const SAMPLE: u32 = 22;

/// Space between the end of the axis and a label.
pub const BEFORE: u32 = 12;
/// Space between a label and the edge of the panel.
const BEHIND: u32 = 4;

/// Curves whose values differ by at most this, relative to the larger, are drawn on top of one another.
const COINCIDE: f64 = 0.01;

/// A prediction has a label only if it ends more than this many pixels from every measured curve.
const FAR: f64 = 20.0;
/// No prediction of a panel has a label if more of them end far from every measured curve.
const FEW_PREDICTIONS: usize = 3;

/// Predictions of one kind that end within this many pixels share one label.
const MERGE_DISTANCE: f64 = 3.0;

/// The end of a prediction that has a label.
struct PredictionEnd<'a> {
    series: &'a Series,
    end: Point,
    /// The names of the others that share the label.
    with: Vec<String>,
}

/// The height of a label: of a name, with or without a value below it.
fn label_height(has_value: bool) -> f64 {
    if has_value { 31.0 } else { 15.0 }
}

/// A label, with a sample of the curve's line.
pub struct Label {
    /// The name of the curve.
    pub name: String,
    /// The names of the others that coincide with it.
    pub with: Vec<String>,
    /// The text, which names all curves that coincide.
    pub text: String,
    /// The last value and its ratio to the lowest; empty in small panels.
    pub value: String,
    pub style: Style,
    /// Whether its line has markers.
    pub has_marks: bool,
    /// The end of the curve: a position on the y axis.
    pub at: f64,
    /// Where the label stands: a distance from the top of the plotting area.
    pub y: f64,
}

/// The labels of a panel and the width that they take.
#[derive(Default)]
pub struct CurveLabels {
    pub all: Vec<Label>,
    pub width: u32,
    /// Whether curves have no label, because there is no room for it.
    pub is_short: bool,
}

impl CurveLabels {
    /// The labels of a panel's measured curves on these axes. `high` is the height of the plotting area.
    pub fn new(plot: &Plot, panel: &Panel, place: &PanelArea, high: u32, x: Axis, y: Axis) -> Self {
        let mut ends: Vec<CurveEnd<'_>> = Vec::new();
        for series in panel.series.iter().filter(|series| series.line.is_measured()) {
            let Some(end) = drawn_points(series, x, y).next_back() else { continue };
            let labelled = labelled_point(plot.labels.at, panel, series, x, y);
            ends.push(CurveEnd { series, end: *end, labelled });
        }
        let groups = coinciding_curves(&ends);
        let apart = predictions_apart(panel, &ends, x, y, high);
        // From the labels that say most to those that say least.
        let values_or_not: &[bool] = if place.is_large { &[true, false] } else { &[false] };
        let mut labelled_predictions: Vec<&[PredictionEnd<'_>]> = vec![&apart];
        if !apart.is_empty() {
            labelled_predictions.push(&[]);
        }
        for has_values in values_or_not.iter().copied() {
            for predictions in &labelled_predictions {
                let labels = Self::unplaced(plot, &groups, &ends, predictions, has_values, y);
                let total = label_height(has_values) * labels.all.len() as f64;
                if total <= f64::from(high) && labels.width <= place.wide * 9 / 20 {
                    return labels.placed(has_values, f64::from(high), y);
                }
            }
        }
        Self { is_short: !ends.is_empty(), width: BEFORE, ..Self::default() }
    }

    /// The labels of groups of curves that coincide, and of predictions, all at the top.
    fn unplaced(
        plot: &Plot,
        groups: &[Vec<usize>],
        ends: &[CurveEnd<'_>],
        predictions: &[PredictionEnd<'_>],
        has_values: bool,
        y: Axis,
    ) -> Self {
        let values = LabelValues::new(plot, groups, ends);
        let mut all = Vec::new();
        for group in groups {
            let first = &ends[group[0]];
            all.push(Label {
                with: group[1..].iter().map(|i| ends[*i].series.line.name()).collect(),
                text: joint_name(group, ends),
                value: if has_values { values.text(group) } else { String::new() },
                ..Label::new(first.series, &first.end, y)
            });
        }
        for prediction in predictions {
            all.push(Label {
                with: prediction.with.clone(),
                text: short_prediction(prediction, predictions, ends),
                ..Label::new(prediction.series, &prediction.end, y)
            });
        }
        let widest = all.iter().map(Label::width).fold(0.0, f64::max).ceil() as u32;
        let width = if all.is_empty() { BEFORE } else { BEFORE + widest + BEHIND };
        Self { all, width, is_short: false }
    }

    /// The labels as near to the ends of their curves as they can stand without overlap.
    fn placed(mut self, has_values: bool, high: f64, y: Axis) -> Self {
        let height = label_height(has_values);
        self.all.sort_by(|a, b| b.at.total_cmp(&a.at));
        let mut last = f64::NEG_INFINITY;
        for label in &mut self.all {
            label.y = (y.below_top(label.at) * high).max(last + height).max(NAME.into());
            last = label.y;
        }
        // The last ones may be below the panel: they are pushed back.
        let mut lowest = high - (height - label_height(false));
        for label in self.all.iter_mut().rev() {
            label.y = label.y.min(lowest);
            lowest = label.y - height;
        }
        self
    }
}

impl Label {
    /// A label without a text.
    fn new(series: &Series, end: &Point, y: Axis) -> Self {
        Self {
            name: series.line.name(),
            with: Vec::new(),
            text: String::new(),
            value: String::new(),
            style: series.line.style(),
            has_marks: series.has_marks(),
            at: y.clip(end.y),
            y: 0.0,
        }
    }

    /// The width with the sample of the line.
    fn width(&self) -> f64 {
        let sample = f64::from(SAMPLE + 4);
        let name = font::width(&self.text, f64::from(NAME), true);
        let value = font::width(&self.value, f64::from(VALUE), false);
        (sample + name).max(sample + value)
    }
}

/// The points of a curve that can be drawn.
fn drawn_points(series: &Series, x: Axis, y: Axis) -> impl DoubleEndedIterator<Item = &Point> {
    series.points.iter().filter(move |p| x.place(p.x).is_some() && y.place(p.y).is_some())
}

/// The point of a curve whose value its label says.
fn labelled_point(
    at: LabelledPoint,
    panel: &Panel,
    curve: &Series,
    x: Axis,
    y: Axis,
) -> Option<Point> {
    let mut drawn = drawn_points(curve, x, y);
    match at {
        LabelledPoint::Last => drawn.next_back().copied(),
        LabelledPoint::Tightest | LabelledPoint::Best => drawn.next().copied(),
        LabelledPoint::Selected => {
            let ring = panel.series.iter().find(|series| {
                matches!(series.line, Line::Selected(_))
                    && series.line.curve() == curve.line.curve()
            });
            ring?.points.first().copied()
        }
    }
}

/// The predictions that have labels: few that end far from every measured curve. `high` is the height
/// of the plotting area.
fn predictions_apart<'a>(
    panel: &'a Panel,
    curves: &[CurveEnd<'_>],
    x: Axis,
    y: Axis,
    high: u32,
) -> Vec<PredictionEnd<'a>> {
    // Pixels up from where the value 0, or 1 on a logarithmic axis, would be.
    let pixels = |point: &Point| y.clip(point.y) / (y.high - y.low) * f64::from(high);
    let mut far: Vec<(&Series, Point)> = Vec::new();
    for series in panel.series.iter().filter(|series| series.line.prediction().is_some()) {
        let Some(end) = drawn_points(series, x, y).next_back() else { continue };
        if curves.iter().all(|curve| (pixels(end) - pixels(&curve.end)).abs() > FAR) {
            far.push((series, *end));
        }
    }
    if far.len() > FEW_PREDICTIONS {
        return Vec::new();
    }
    let mut apart: Vec<PredictionEnd<'_>> = Vec::new();
    for (series, end) in far {
        let same_end = apart.iter_mut().find(|other| {
            other.series.line.prediction() == series.line.prediction()
                && (pixels(&other.end) - pixels(&end)).abs() <= MERGE_DISTANCE
        });
        match same_end {
            Some(other) => other.with.push(series.line.name()),
            None => apart.push(PredictionEnd { series, end, with: Vec::new() }),
        }
    }
    apart
}

/// Groups of curves that coincide, and whose labels say the value at the same place, as indices among
/// `ends`.
fn coinciding_curves(ends: &[CurveEnd<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, end) in ends.iter().enumerate() {
        let place = end.labelled.map(|point| point.x);
        let same = groups.iter_mut().find(|group| {
            let first = &ends[group[0]];
            first.labelled.map(|point| point.x) == place && coincide(first.series, end.series)
        });
        match same {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// Whether two curves are drawn on top of each other.
pub fn coincide(a: &Series, b: &Series) -> bool {
    a.points.len() == b.points.len()
        && a.points.iter().zip(&b.points).all(|(p, q)| is_near(p.x, q.x) && is_near(p.y, q.y))
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= COINCIDE * a.abs().max(b.abs())
}

/// The most bytes of the names of two algorithms in one label.
const LONGEST_PAIR: usize = 24;

/// The name of curves that coincide: of one its own; if they have the same settings, of two both names (or `both`, where
/// the panel has other curves or the names are long), and of more the first name and the number of the others, with the
/// settings once; if they have not, the first name and the number of the others.
fn joint_name(group: &[usize], ends: &[CurveEnd<'_>]) -> String {
    let curves: Vec<&Curve> = group.iter().filter_map(|i| ends[*i].series.line.curve()).collect();
    let [first, others @ ..] = curves.as_slice() else { return String::new() };
    if others.is_empty() {
        return first.name();
    }
    if others.iter().any(|curve| curve.settings != first.settings) {
        return format!("{}, {} more alike", first.name(), others.len());
    }
    // What follows the algorithm in the name.
    let settings = first.name().split_off(first.algorithm.len());
    let algorithms: Vec<&str> = curves.iter().map(|curve| curve.algorithm.as_str()).collect();
    match algorithms.len() {
        2 if ends.len() > 2 || algorithms.concat().len() > LONGEST_PAIR => {
            format!("both{settings}")
        }
        2 => format!("{}{settings}", algorithms.join(" and ")),
        count => format!("{}, {} more alike{settings}", algorithms[0], count - 1),
    }
}

/// The name of a prediction, without its curve where there is no other of its kind.
fn short_prediction(
    end: &PredictionEnd<'_>,
    predictions: &[PredictionEnd<'_>],
    curves: &[CurveEnd<'_>],
) -> String {
    let line = &end.series.line;
    let (Some(prediction), Some(curve)) = (line.prediction(), line.curve()) else {
        return line.name();
    };
    let measured = curves.iter().filter_map(|curve| curve.series.line.curve());
    let algorithms: HashSet<&String> = measured.map(|curve| &curve.algorithm).collect();
    let is_of_kind =
        |other: &&PredictionEnd<'_>| other.series.line.prediction() == Some(prediction);
    let is_only = algorithms.len() == 1 && predictions.iter().filter(is_of_kind).count() == 1;
    let words = words_before(prediction);
    if !end.with.is_empty() || is_only {
        let brief = words.trim_start_matches("the ").trim_end_matches(" for");
        brief.trim_end_matches(" of").to_owned()
    } else {
        format!("{words} {}", short_name(curve, curves))
    }
}
