//! Labels at the ends of a panel's curves, so that nobody has to look names up in a legend.

use super::axis::Axis;
use super::font::{self, FontWeight};
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
    /// The line of the prediction.
    series: &'a Series,
    /// Its last point in the panel.
    end: Point,
    /// The names of the other predictions that end there and share the label.
    with: Vec<String>,
}

/// The height in pixels of a label that has no value.
const NAME_HEIGHT: f64 = 15.0;
/// The height in pixels of a label with a value below the name.
const HEIGHT_WITH_VALUE: f64 = 31.0;

/// The height of a label in pixels, with a value below the name or without one.
fn label_height(has_value: bool) -> f64 {
    if has_value { HEIGHT_WITH_VALUE } else { NAME_HEIGHT }
}

/// A label, with a sample of the curve's line.
pub struct Label {
    /// The name of the curve.
    pub name: String,
    /// The names of the other curves that share the label, since they coincide with it.
    pub with: Vec<String>,
    /// The first line: a name for all curves that share the label.
    pub text: String,
    /// The second line: the value of the curve and its ratio to another one; empty in small panels and of predictions.
    pub value: String,
    /// The style of the curve.
    pub style: Style,
    /// Whether its line has markers.
    pub has_marks: bool,
    /// The end of the curve: a position on the y axis.
    pub at: f64,
    /// Where the label stands: the distance in pixels from the top of the plotting area to the baseline of its name,
    /// which is 4 pixels below the sample of the line.
    pub y: f64,
}

/// The labels of a panel and the width that they take.
#[derive(Default)]
pub struct CurveLabels {
    /// The labels from the top of the panel down; none if they have no room.
    pub all: Vec<Label>,
    /// The width in pixels that they take at the right of the plotting area, with the space around them.
    pub width: u32,
    /// Whether the curves have no labels because there is no room: a legend must name them.
    pub is_short: bool,
}

impl CurveLabels {
    /// The labels of a panel's measured curves, and of predictions that end far from these. `high` is the height of the
    /// plotting area in pixels, and `x` and `y` are its axes. Labels have room if they fit below one another in this
    /// height and take at most 9/20 of the width of the panel. Where not all has room, first the labels of predictions
    /// are left out, then the values (which only a large panel has), and then all labels.
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

    /// The labels of `groups` of coinciding curves, which are indices among `ends`, and of predictions, with the
    /// width that they take. They are all at the top: [`placed`](Self::placed) gives them their places.
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

    /// The labels as near to the ends of their curves as they can stand without overlap, in a plotting area of `high`
    /// pixels.
    fn placed(mut self, has_values: bool, high: f64, y: Axis) -> Self {
        let height = label_height(has_values);
        self.all.sort_by(|a, b| b.at.total_cmp(&a.at));
        let mut last = f64::NEG_INFINITY;
        for label in &mut self.all {
            label.y = (y.below_top(label.at) * high).max(last + height).max(NAME.into());
            last = label.y;
        }
        // The lowest labels may now stand below the panel: from the last on each is pushed up as far as needed.
        let mut lowest = high - (height - NAME_HEIGHT);
        for label in self.all.iter_mut().rev() {
            label.y = label.y.min(lowest);
            lowest = label.y - height;
        }
        self
    }
}

impl Label {
    /// A label at the end of a curve, still without texts and at the top of the panel.
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

    /// The width in pixels of the sample of the line and the longer of the two texts.
    fn width(&self) -> f64 {
        let sample = f64::from(SAMPLE + 4);
        let name = font::width(&self.text, f64::from(NAME), FontWeight::Bold);
        let value = font::width(&self.value, f64::from(VALUE), FontWeight::Regular);
        (sample + name).max(sample + value)
    }
}

/// The points of a curve that can be drawn on these axes, from left to right.
fn drawn_points(series: &Series, x: Axis, y: Axis) -> impl DoubleEndedIterator<Item = &Point> {
    series.points.iter().filter(move |p| x.place(p.x).is_some() && y.place(p.y).is_some())
}

/// The point of a measured curve whose value its label says. Among the drawn points, which go from left to right, it is
/// the last one; or the first one, which has the smallest target of a frontier (`Tightest`), or the factor 1 of a
/// performance profile (`Best`). `Selected` is the point in a ring, which tuning selected; the ring is a line of its
/// own in the panel, for the same curve. `None` if there is no such point.
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

/// The predictions of a panel that have labels: those that end farther than [`FAR`] pixels from every measured curve,
/// so that the label of no curve names them, if there are few. Predictions of one kind with the same end share one
/// label. `high` is the height of the plotting area in pixels.
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

/// All curves in groups that share a label, as indices among `ends`: curves of a group coincide with its first one, and
/// their labels are about the same place on the x axis. A curve that coincides with no other is a group of its own.
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

/// Whether two curves are drawn on top of each other: they have equally many points, which differ by at most
/// [`COINCIDE`] in both coordinates. Points that are not drawn count too, and a value of NaN is near none.
pub fn coincide(a: &Series, b: &Series) -> bool {
    a.points.len() == b.points.len()
        && a.points.iter().zip(&b.points).all(|(p, q)| is_near(p.x, q.x) && is_near(p.y, q.y))
}

/// Whether two coordinates differ by at most [`COINCIDE`], relative to the larger.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= COINCIDE * a.abs().max(b.abs())
}

/// The most bytes of the names of two algorithms in one label.
const LONGEST_PAIR: usize = 24;

/// The first line of the label of a group of coinciding curves, which are indices among `ends`. One curve has its own
/// name. Curves with different settings are called by the name of the first and the number of the others. With the
/// same settings, which then stand once at the end, two curves are called by the names of both algorithms, or `both`
/// where the panel has other curves or the names are long; more curves by the first algorithm and the number of the
/// others.
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

/// The text of the label of a prediction: the kind of prediction, and the curve that it is for. The curve is left out
/// where several predictions share the label, or where no other labelled prediction is of the kind and all curves are
/// of one algorithm.
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
