//! Labels at the ends of a panel's curves, so that nobody has to look names up in a legend.

use super::axis::Axis;
use super::font;
use super::layout::PanelArea;
use crate::analysis::{Line, Panel, Point, Series, Style};
use driftbench_core::words::readable;

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
        let groups = groups(&ends);
        let details =
            if place.is_large { &[Detail::Value, Detail::Name][..] } else { &[Detail::Name] };
        for detail in details {
            let fits = detail.gap() * groups.len() as f64 <= f64::from(high);
            let labels = Self::of(&groups, &ends, *detail, y);
            if fits && labels.width <= place.wide * 9 / 20 {
                return labels.placed(*detail, f64::from(high), y);
            }
        }
        Self { is_short: !ends.is_empty(), width: BEFORE, ..Self::default() }
    }

    fn of(groups: &[Vec<usize>], ends: &[(&Series, Point)], detail: Detail, y: Axis) -> Self {
        let lowest = ends.iter().min_by(|a, b| a.1.y.total_cmp(&b.1.y));
        let label = |group: &Vec<usize>| {
            let (series, last) = ends[group[0]];
            let value = match (detail, lowest) {
                (Detail::Value, Some(lowest)) => value_text(last, ends, *lowest),
                _ => String::new(),
            };
            Label {
                name: series.line.name(),
                with: group[1..].iter().map(|i| ends[*i].0.line.name()).collect(),
                text: names(group, ends),
                value,
                style: series.line.style(),
                at: y.clip(last.y),
                y: 0.0,
            }
        };
        let all: Vec<Label> = groups.iter().map(label).collect();
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

/// The last value of a curve and how many times larger it is than the lowest.
fn value_text(last: Point, ends: &[(&Series, Point)], (lowest, least): (&Series, Point)) -> String {
    let value = readable(last.y, 3);
    let near = |p: &Point| (p.x - last.x).abs() <= 1e-9 * last.x.abs();
    let comparable = ends.len() > 1 && least.y > 0.0 && ends.iter().all(|(_, p)| near(p));
    let name = lowest.line.curve().map_or("", |curve| curve.algorithm.as_str());
    match last.y / least.y {
        _ if !comparable => value,
        ratio if ratio <= 1.0 + COINCIDE => format!("{value}, lowest"),
        ratio if name.len() <= 20 => format!("{value}, {}× {name}", readable(ratio, 2)),
        ratio => format!("{value}, {}× the lowest", readable(ratio, 2)),
    }
}
