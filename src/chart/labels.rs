//! Labels at the ends of a panel's curves, so that nobody has to look names up in a legend.

use super::axis::Axis;
use super::font;
use super::layout::PanelArea;
use crate::analysis::{Curve, Line, Panel, Point, Series, Style, words_before};
use exactfed_core::words::{count, readable};
use std::collections::HashSet;

/// Font size of a name, and of the value below it.
pub const NAME: u32 = 12;
pub const VALUE: u32 = 11;

/// Width of the stretch of line before a name.
pub const SAMPLE: u32 = 22;

/// Space between the end of the axis and a label, and behind it.
const BEFORE: u32 = 12;
const BEHIND: u32 = 4;

/// Curves whose values differ by at most this are drawn on top of one another.
const COINCIDE: f64 = 0.01;

/// Ratios above this are those of rounding errors (figures.js has the same rules).
const MOST_RATIO: f64 = 1e6;

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

/// How much labels say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// The name and, below it, the last value and its ratio to the lowest.
    Value,
    /// The name.
    Name,
}

impl Detail {
    /// The height of a label.
    fn gap(self) -> f64 {
        match self {
            Self::Value => 31.0,
            Self::Name => 15.0,
        }
    }
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
    pub fn new(panel: &Panel, place: &PanelArea, high: u32, x: Axis, y: Axis) -> Self {
        let end = |series: &Series| {
            let drawn = |p: &&Point| x.place(p.x).is_some() && y.place(p.y).is_some();
            series.points.iter().rfind(drawn).copied()
        };
        let measured = panel.series.iter().filter(|s| s.line.is_measured());
        let ends: Vec<(&Series, Point)> = measured.filter_map(|s| Some((s, end(s)?))).collect();
        let theory = panel.series.iter().filter(|s| s.line.prediction().is_some());
        let theory: Vec<(&Series, Point)> = theory.filter_map(|s| Some((s, end(s)?))).collect();
        let pixels = |p: &Point| y.clip(p.y) / (y.high - y.low) * f64::from(high);
        let far = theory
            .into_iter()
            .filter(|(_, p)| ends.iter().all(|(_, other)| (pixels(p) - pixels(other)).abs() > FAR));
        let far: Vec<(&Series, Point)> = far.collect();
        let mut beside: Vec<PredictionEnd<'_>> = Vec::new();
        for (series, end) in far.iter().copied().filter(|_| far.len() <= FEW_PREDICTIONS) {
            let is_same = |other: &&mut PredictionEnd<'_>| {
                let same = other.series.line.prediction() == series.line.prediction();
                same && (pixels(&other.end) - pixels(&end)).abs() <= SAME
            };
            match beside.iter_mut().find(is_same) {
                Some(first) => first.with.push(series.line.name()),
                None => beside.push(PredictionEnd { series, end, with: Vec::new() }),
            }
        }
        let groups = groups(&ends);
        let details =
            if place.is_large { &[Detail::Value, Detail::Name][..] } else { &[Detail::Name] };
        let beside = if beside.is_empty() { vec![&[][..]] } else { vec![&beside[..], &[]] };
        for (detail, beside) in details.iter().flat_map(|d| beside.iter().map(move |b| (d, b))) {
            let fits = detail.gap() * (groups.len() + beside.len()) as f64 <= f64::from(high);
            let labels = Self::of(&groups, &ends, beside, *detail, y);
            if fits && labels.width <= place.wide * 9 / 20 {
                return labels.placed(*detail, f64::from(high), y);
            }
        }
        Self { is_short: !ends.is_empty(), width: BEFORE, ..Self::default() }
    }

    fn of(
        groups: &[Vec<usize>],
        ends: &[(&Series, Point)],
        theory: &[PredictionEnd<'_>],
        detail: Detail,
        y: Axis,
    ) -> Self {
        let label = |group: &Vec<usize>| {
            let (series, last) = ends[group[0]];
            let value = match detail {
                // Of fractions, more is better, and ratios say little.
                Detail::Value if y.is_linear() && series.diverged == 0 => {
                    readable(last.y, if group.len() > 1 { 2 } else { 3 })
                }
                Detail::Value => value_text(group, groups, ends),
                Detail::Name => String::new(),
            };
            Label {
                name: series.line.name(),
                with: group[1..].iter().map(|i| ends[*i].0.line.name()).collect(),
                text: names(group, ends),
                value,
                style: series.line.style(),
                has_marks: true,
                at: y.clip(last.y),
                y: 0.0,
            }
        };
        let prediction = |of: &PredictionEnd<'_>| Label {
            name: of.series.line.name(),
            with: of.with.clone(),
            text: short_prediction(of, theory, ends),
            value: String::new(),
            style: of.series.line.style(),
            has_marks: !of.series.is_flat(),
            at: y.clip(of.end.y),
            y: 0.0,
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
    fn placed(mut self, detail: Detail, high: f64, y: Axis) -> Self {
        let below_top = |at: f64| (y.high - at) / (y.high - y.low) * high;
        self.all.sort_by(|a, b| b.at.total_cmp(&a.at));
        let gap = detail.gap();
        let mut last = f64::NEG_INFINITY;
        for label in &mut self.all {
            label.y = below_top(label.at).max(last + gap).max(NAME.into());
            last = label.y;
        }
        // The last ones may be below the panel: they are pushed back.
        let mut least = high - (gap - 15.0);
        for label in self.all.iter_mut().rev() {
            label.y = label.y.min(least);
            least = label.y - gap;
        }
        self
    }
}

/// The distance of labels from the end of the axis.
pub fn distance() -> u32 {
    BEFORE
}

/// The curves that coincide, as indices.
fn groups(ends: &[(&Series, Point)]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in 0..ends.len() {
        match groups.iter_mut().find(|group| coincide(ends[group[0]].0, ends[i].0)) {
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
fn names(group: &[usize], ends: &[(&Series, Point)]) -> String {
    let lines: Vec<&Line> = group.iter().map(|i| &ends[*i].0.line).collect();
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

/// Whether two curves end at the same place across.
fn same_end(a: Point, b: Point) -> bool {
    (a.x - b.x).abs() <= 1e-9 * a.x.abs()
}

/// The last value of curves that coincide, and how many times larger it is than the lowest of
/// those that end at the same place across: of the algorithms under its settings, or without
/// others of all.
fn value_text(group: &[usize], groups: &[Vec<usize>], ends: &[(&Series, Point)]) -> String {
    let (series, last) = ends[group[0]];
    if series.diverged > 0 {
        return format!("diverged in {}", count(series.diverged, "run"));
    }
    let value = readable(last.y, if group.len() > 1 { 2 } else { 3 });
    let is_comparable = |i: &usize| ends[*i].0.diverged == 0 && same_end(ends[*i].1, last);
    let comparable: Vec<usize> = (0..ends.len()).filter(is_comparable).collect();
    let least =
        |all: &[usize]| all.iter().copied().min_by(|a, b| ends[*a].1.y.total_cmp(&ends[*b].1.y));
    let curve = |i: usize| ends[i].0.line.curve();
    let settings = |i: usize| curve(i).map(|c| &c.settings);
    let alike: Vec<usize> =
        comparable.iter().copied().filter(|i| settings(*i) == settings(group[0])).collect();
    let algorithm = |i: usize| curve(i).map(|c| &c.algorithm);
    let is_alike = alike.iter().any(|i| algorithm(*i) != algorithm(group[0]));
    let calm: Vec<usize> = (0..ends.len()).filter(|i| ends[*i].0.diverged == 0).collect();
    let other = least(if is_alike { &alike } else { &comparable });
    let (Some(lowest), Some(other)) = (least(&calm), other) else { return value };
    let ratio = last.y / ends[other].1.y;
    let is_one = groups.iter().filter(|group| ends[group[0]].0.diverged == 0).count() < 2;
    if is_one || ends[lowest].1.y <= 0.0 {
        value
    } else if group.contains(&lowest) {
        format!("{value}, lowest")
    } else if group.contains(&other) || ratio > MOST_RATIO {
        value
    } else {
        let name = match curve(other) {
            Some(curve) if is_alike => curve.algorithm.clone(),
            Some(curve) => short_name(curve, ends),
            None => String::new(),
        };
        let name = if name.chars().count() < 20 { name } else { "the lowest".into() };
        format!("{value}, {}× {name}", readable(ratio, 2))
    }
}

/// The algorithm where it has one curve, the settings where there is one algorithm, or else both.
fn short_name(curve: &Curve, ends: &[(&Series, Point)]) -> String {
    let algorithms = || ends.iter().filter_map(|(s, _)| s.line.curve()).map(|c| &c.algorithm);
    match algorithms().filter(|a| **a == curve.algorithm).count() {
        1 => curve.algorithm.clone(),
        all if all == ends.len() && !curve.settings.is_empty() => {
            curve.name().split_off(curve.algorithm.len()).trim_start_matches(", ").to_owned()
        }
        _ => curve.name(),
    }
}

/// The name of a prediction, without its curve where there is no other of its kind.
fn short_prediction(
    PredictionEnd { series, with, .. }: &PredictionEnd<'_>,
    theory: &[PredictionEnd<'_>],
    ends: &[(&Series, Point)],
) -> String {
    let (Some(prediction), Some(curve)) = (series.line.prediction(), series.line.curve()) else {
        return series.line.name();
    };
    let measured = ends.iter().filter_map(|(s, _)| s.line.curve()).map(|c| &c.algorithm);
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
