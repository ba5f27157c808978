//! Labels at the ends of a panel's curves, so that nobody has to look names up in a legend.

use super::axis::Axis;
use super::font;
use super::label_values::{CurveEnd, LabelValues, short_name};
use super::layout::PanelArea;
use crate::evidence::{LabelledPoint, Line, Panel, Plot, Point, Series, Style, words_before};
use std::collections::HashSet;

/// Font size of a name, and of the value below it.
pub const NAME: u32 = 12;
pub const VALUE: u32 = 11;

/// Width of the stretch of line before a name.
pub const SAMPLE: u32 = 22;

/// Space between the end of the axis and a label, and behind it.
pub const BEFORE: u32 = 12;
const BEHIND: u32 = 4;

/// Curves whose values differ by at most this are drawn on top of one another.
const COINCIDE: f64 = 0.01;

/// Predictions have labels if at most so many of them end more than so many pixels from every
/// measured curve.
const FEW_PREDICTIONS: usize = 3;
const FAR: f64 = 20.0;

/// Those whose ends are nearer than so many pixels share a label.
const SAME: f64 = 3.0;

/// The end of a prediction, and the names of the others that end there.
struct PredictionEnd<'a> {
    series: &'a Series,
    end: Point,
    with: Vec<String>,
}

/// The height of a label: of a name, with or without the last value and its ratio to the lowest
/// below it.
fn gap(has_value: bool) -> f64 {
    if has_value { 31.0 } else { 15.0 }
}

/// A label: its line is that of the curve.
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
    /// The labels of a panel's measured curves on these axes.
    pub fn new(
        plot: &Plot,
        panel: &Panel,
        place: &PanelArea,
        high: u32,
        axes: (Axis, Axis),
    ) -> Self {
        let (x, y) = axes;
        let is_drawn = |p: &&Point| x.place(p.x).is_some() && y.place(p.y).is_some();
        let end = |series: &Series| series.points.iter().rfind(is_drawn).copied();
        let measured = panel.series.iter().filter(|s| s.line.is_measured());
        let curve_end = |series| {
            let labelled = labelled(plot.labels.at, panel, series, is_drawn);
            Some(CurveEnd { series, end: end(series)?, labelled })
        };
        let ends: Vec<CurveEnd<'_>> = measured.filter_map(curve_end).collect();
        let beside = predictions_apart(panel, &ends, end, |p| {
            y.clip(p.y) / (y.high - y.low) * f64::from(high)
        });
        let groups = groups(&ends);
        let have_values = if place.is_large { &[true, false][..] } else { &[false] };
        let beside = if beside.is_empty() { vec![&[][..]] } else { vec![&beside[..], &[]] };
        let tried = have_values.iter().flat_map(|has| beside.iter().map(move |b| (*has, b)));
        for (has_values, beside) in tried {
            let fits = gap(has_values) * (groups.len() + beside.len()) as f64 <= f64::from(high);
            let labels = Self::of(plot, (&groups, &ends), beside, has_values, y);
            if fits && labels.width <= place.wide * 9 / 20 {
                return labels.placed(gap(has_values), f64::from(high), y);
            }
        }
        Self { is_short: !ends.is_empty(), width: BEFORE, ..Self::default() }
    }

    fn of(
        plot: &Plot,
        (groups, ends): (&[Vec<usize>], &[CurveEnd<'_>]),
        theory: &[PredictionEnd<'_>],
        has_values: bool,
        y: Axis,
    ) -> Self {
        let of = |series: &Series, end: &Point| Label {
            name: series.line.name(),
            with: Vec::new(),
            text: String::new(),
            value: String::new(),
            style: series.line.style(),
            has_marks: series.has_marks(),
            at: y.clip(end.y),
            y: 0.0,
        };
        let values = LabelValues::new(plot, groups, ends);
        let label = |group: &Vec<usize>| Label {
            with: group[1..].iter().map(|i| ends[*i].series.line.name()).collect(),
            text: names(group, ends),
            value: if has_values { values.text(group) } else { String::new() },
            ..of(ends[group[0]].series, &ends[group[0]].end)
        };
        let prediction = |end: &PredictionEnd<'_>| Label {
            with: end.with.clone(),
            text: short_prediction(end, theory, ends),
            ..of(end.series, &end.end)
        };
        let all = groups.iter().map(label).chain(theory.iter().map(prediction));
        let all: Vec<Label> = all.collect();
        let text = |l: &Label| {
            let name = f64::from(SAMPLE + 4) + font::width(&l.text, f64::from(NAME), true);
            name.max(f64::from(SAMPLE + 4) + font::width(&l.value, f64::from(VALUE), false))
        };
        let widest = all.iter().map(text).fold(0.0, f64::max).ceil() as u32;
        let width = if all.is_empty() { BEFORE } else { BEFORE + widest + BEHIND };
        Self { all, width, is_short: false }
    }

    /// The labels as near to the ends of their curves as they can stand without overlap.
    fn placed(mut self, gap: f64, high: f64, y: Axis) -> Self {
        self.all.sort_by(|a, b| b.at.total_cmp(&a.at));
        let mut last = f64::NEG_INFINITY;
        for label in &mut self.all {
            label.y = (y.below_top(label.at) * high).max(last + gap).max(NAME.into());
            last = label.y;
        }
        // The last ones may be below the panel: they are pushed back.
        let mut least = high - (gap - self::gap(false));
        for label in self.all.iter_mut().rev() {
            label.y = label.y.min(least);
            least = label.y - gap;
        }
        self
    }
}

/// The point of a curve whose value its label says.
fn labelled(
    at: LabelledPoint,
    panel: &Panel,
    curve: &Series,
    is_drawn: impl Fn(&&Point) -> bool,
) -> Option<Point> {
    let mut drawn = curve.points.iter().filter(is_drawn);
    let point = match at {
        LabelledPoint::Last => drawn.next_back(),
        LabelledPoint::Tightest | LabelledPoint::Best => drawn.next(),
        LabelledPoint::Selected => {
            let is_ring = |s: &&Series| {
                matches!(s.line, Line::Selected(_)) && s.line.curve() == curve.line.curve()
            };
            panel.series.iter().find(is_ring).and_then(|ring| ring.points.first())
        }
    };
    point.copied()
}

/// The predictions that have labels: few that end far from every measured curve. `pixels` is the
/// place of a point on the y axis.
fn predictions_apart<'a>(
    panel: &'a Panel,
    curves: &[CurveEnd<'_>],
    end: impl Fn(&Series) -> Option<Point>,
    pixels: impl Fn(&Point) -> f64,
) -> Vec<PredictionEnd<'a>> {
    let theory = panel.series.iter().filter(|s| s.line.prediction().is_some());
    let theory = theory.filter_map(|s| Some((s, end(s)?)));
    let far =
        theory.filter(|(_, p)| curves.iter().all(|c| (pixels(p) - pixels(&c.end)).abs() > FAR));
    let far: Vec<(&Series, Point)> = far.collect();
    let mut apart: Vec<PredictionEnd<'_>> = Vec::new();
    for (series, end) in far.iter().copied().filter(|_| far.len() <= FEW_PREDICTIONS) {
        let is_same = |other: &&mut PredictionEnd<'_>| {
            let same = other.series.line.prediction() == series.line.prediction();
            same && (pixels(&other.end) - pixels(&end)).abs() <= SAME
        };
        match apart.iter_mut().find(is_same) {
            Some(first) => first.with.push(series.line.name()),
            None => apart.push(PredictionEnd { series, end, with: Vec::new() }),
        }
    }
    apart
}

/// The curves that coincide, and whose labels say the value at the same place, as indices.
fn groups(ends: &[CurveEnd<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in 0..ends.len() {
        let place = |i: usize| ends[i].labelled.map(|point| point.x);
        let is_same = |group: &&mut Vec<usize>| {
            place(group[0]) == place(i) && coincide(ends[group[0]].series, ends[i].series)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// Whether two curves are drawn on top of each other.
pub fn coincide(a: &Series, b: &Series) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= COINCIDE * a.abs().max(b.abs());
    let same = |(p, q): (&Point, &Point)| near(p.x, q.x) && near(p.y, q.y);
    a.points.len() == b.points.len() && a.points.iter().zip(&b.points).all(same)
}

/// The names of curves that coincide: their settings once, where they have the same.
fn names(group: &[usize], ends: &[CurveEnd<'_>]) -> String {
    let lines: Vec<&Line> = group.iter().map(|i| &ends[*i].series.line).collect();
    let curves: Vec<_> = lines.iter().filter_map(|line| line.curve()).collect();
    match curves.as_slice() {
        [one] => one.name(),
        [first, others @ ..] if others.iter().all(|c| c.settings == first.settings) => {
            let labels: Vec<&str> = curves.iter().map(|c| c.algorithm.as_str()).collect();
            let settings = first.name().split_off(first.algorithm.len());
            match labels.len() {
                2 if ends.len() > 2 || labels.concat().len() > 24 => format!("both{settings}"),
                2 => format!("{}{settings}", labels.join(" and ")),
                count => format!("{}, {} more alike{settings}", labels[0], count - 1),
            }
        }
        [first, others @ ..] => format!("{}, {} more alike", first.name(), others.len()),
        [] => String::new(),
    }
}

/// The name of a prediction, without its curve where there is no other of its kind.
fn short_prediction(
    PredictionEnd { series, with, .. }: &PredictionEnd<'_>,
    theory: &[PredictionEnd<'_>],
    ends: &[CurveEnd<'_>],
) -> String {
    let (Some(prediction), Some(curve)) = (series.line.prediction(), series.line.curve()) else {
        return series.line.name();
    };
    let measured = ends.iter().filter_map(|e| e.series.line.curve()).map(|c| &c.algorithm);
    let of_kind = theory.iter().filter(|t| t.series.line.prediction() == Some(prediction)).count();
    let words = words_before(prediction);
    let is_one = measured.collect::<HashSet<_>>().len() == 1;
    if !with.is_empty() || is_one && of_kind == 1 {
        let brief = words.trim_start_matches("the ").trim_end_matches(" for");
        brief.trim_end_matches(" of").to_owned()
    } else {
        format!("{words} {}", short_name(curve, ends))
    }
}
