//! The values in the labels at the ends of curves: the value itself, and how many times larger it is than
//! the value of another curve.
//!
//! *Invariant*: labels compare curves as the ranking does: over several instances by geometric
//! means, and a value that is zero to rounding has no ratio. The curve that a label calls lowest
//! has no larger number than another label (labels.js has the same rules).

use crate::evidence::{Curve, LabelledPoint, Plot, Point, Series};
use exactfed_core::words::{count, number, readable};

/// Ratios above this say nothing: the smaller value is a rounding error.
const MOST_RATIO: f64 = 1e6;

/// The digits of values in labels: more where fewer would hide which is the lowest.
const DIGITS: std::ops::RangeInclusive<usize> = 3..=6;

/// A measured curve of a panel that has a label at its end.
pub struct CurveEnd<'a> {
    /// The curve.
    pub series: &'a Series,
    /// Its last point in the panel, at which the label stands.
    pub end: Point,
    /// The point whose value its label says; `None` if no such point was drawn, as where tuning selected none.
    pub labelled: Option<Point>,
}

/// What the labels of a panel say about values: the second line of each.
pub struct LabelValues<'a> {
    /// The figure, which says which point a label is about.
    plot: &'a Plot,
    /// All curves in groups that coincide and share a label, as indices among `ends`.
    groups: &'a [Vec<usize>],
    /// The curves that have labels.
    ends: &'a [CurveEnd<'a>],
    /// Whether geometric means are compared, which all compared curves have, instead of the drawn values.
    is_geometric: bool,
    /// The curve with the smallest level, as an index among `ends`; its label says `lowest`. `None` if no curve is
    /// compared.
    lowest: Option<usize>,
    /// The number of digits with which values are written.
    digits: usize,
}

impl<'a> LabelValues<'a> {
    /// Compares the curves of a panel: `ends` are all measured curves with an end in the panel, and `groups` has all of
    /// their indices, those of curves that share a label together. No other curve is compared with one of which runs
    /// diverged, or with one without the point that labels are about.
    pub fn new(plot: &'a Plot, groups: &'a [Vec<usize>], ends: &'a [CurveEnd<'a>]) -> Self {
        let mut values =
            Self { plot, groups, ends, is_geometric: false, lowest: None, digits: *DIGITS.start() };
        let compared: Vec<usize> = (0..ends.len()).filter(|i| values.is_compared(*i)).collect();
        values.is_geometric = !compared.is_empty()
            && compared.iter().all(|i| values.point(*i).is_some_and(|p| !p.geometric.is_nan()));
        let mut eligible = compared;
        if plot.labels.at == LabelledPoint::Tightest {
            // A tighter target costs more: only curves that reach the tightest target can be lowest.
            let targets = ends.iter().filter_map(|end| end.labelled).map(|point| point.x);
            let tightest = targets.fold(f64::INFINITY, f64::min);
            eligible.retain(|i| values.point(*i).is_some_and(|point| point.x <= tightest));
        }
        values.lowest = values.least(&eligible);
        values.digits = values.digits_that_show_the_lowest();
        values
    }

    /// The second line of the label that a group of coinciding curves (indices among the ends, one at least) shares:
    /// the value and where it is, and how many times larger it is than another curve's; or that runs of the first of
    /// them diverged, or that none was selected.
    pub fn text(&self, group: &[usize]) -> String {
        let CurveEnd { series, labelled, .. } = &self.ends[group[0]];
        let at = self.plot.labels.at;
        if at == LabelledPoint::Last && series.diverged > 0 {
            return format!("diverged in {}", count(series.diverged, "run"));
        }
        let Some(point) = labelled else { return "none selected".into() };
        if at == LabelledPoint::Best {
            // Where algorithms tie, each is counted, so that the shares exceed a whole.
            return format!("best or tied on {} %", number(100.0 * point.y, 2));
        }
        let place = match at {
            LabelledPoint::Tightest | LabelledPoint::Selected => {
                format!(" at {} = {}", self.plot.x, place_text(point.x))
            }
            LabelledPoint::Last | LabelledPoint::Best => String::new(),
        };
        let comparison =
            if self.plot.labels.is_ranked { self.comparison(group) } else { String::new() };
        format!("{}{place}{comparison}", self.value_range(group))
    }

    /// The point of the curve with this index whose value its label says.
    fn point(&self, i: usize) -> Option<Point> {
        self.ends[i].labelled
    }

    /// The algorithm and settings of the curve with this index.
    fn curve(&self, i: usize) -> Option<&Curve> {
        self.ends[i].series.line.curve()
    }

    /// Whether a curve is compared with others at all: it has a value, and none of its runs diverged.
    fn is_compared(&self, i: usize) -> bool {
        self.ends[i].labelled.is_some() && self.ends[i].series.diverged == 0
    }

    /// The number by which a curve is compared: its geometric mean or its drawn value; 0 if it is zero to rounding, NaN
    /// without the point that labels are about.
    fn level(&self, i: usize) -> f64 {
        let Some(point) = self.point(i) else { return f64::NAN };
        let level = if self.is_geometric { point.geometric } else { point.y };
        if level < self.plot.labels.zero_below { 0.0 } else { level }
    }

    /// Which of some curves has the smallest level, the first of equals; `None` of no curves.
    fn least(&self, curves: &[usize]) -> Option<usize> {
        curves.iter().copied().min_by(|a, b| self.level(*a).total_cmp(&self.level(*b)))
    }

    /// The fewest digits with which every value that is not less than the value of the lowest curve does not read as
    /// less either. By geometric means a curve can be lowest whose drawn value is not.
    fn digits_that_show_the_lowest(&self) -> usize {
        let Some(lowest) = self.lowest.and_then(|i| self.point(i)) else { return *DIGITS.start() };
        let mut values: Vec<f64> = Vec::new();
        for i in 0..self.ends.len() {
            if self.is_compared(i) {
                values.extend(self.point(i).map(|point| point.y));
            }
        }
        for digits in DIGITS {
            let shown = as_read(lowest.y, digits);
            if values.iter().all(|y| *y < lowest.y || as_read(*y, digits) >= shown) {
                return digits;
            }
        }
        *DIGITS.end()
    }

    /// The value of a group of coinciding curves as a text: the smallest and the largest, where they read differently.
    fn value_range(&self, group: &[usize]) -> String {
        let values = group.iter().filter_map(|i| self.point(*i)).map(|point| point.y);
        range_text(values, |value| number(value, self.digits))
    }

    /// The end of a label's second line: how many times larger the values of a group of coinciding curves are than
    /// that of the [reference](Self::reference) curve, which it names; or that they are the lowest, or zero to
    /// rounding. It is empty where there is nothing to say: fewer than two groups are compared, the group coincides
    /// with its reference, or the ratio is too large to mean anything.
    fn comparison(&self, group: &[usize]) -> String {
        let Some(lowest) = self.lowest else { return String::new() };
        let compared = self.groups.iter().filter(|group| self.is_compared(group[0]));
        if compared.count() < 2 {
            return String::new();
        }
        if self.level(lowest) <= 0.0 {
            let is_zero =
                self.plot.labels.zero_below > 0.0 && group.iter().all(|i| self.level(*i) == 0.0);
            return if is_zero { ", zero to rounding".into() } else { String::new() };
        }
        let Some(reference) = self.reference(group[0]) else { return String::new() };
        let other = reference.curve;
        let ratios: Vec<f64> = group.iter().map(|i| self.level(*i) / self.level(other)).collect();
        // A curve whose level is exactly that of the lowest one is lowest too.
        if group.contains(&lowest) || ratios[0] == 1.0 && other == lowest {
            return self.lowest_text(group, lowest);
        }
        if group.contains(&other) || ratios.iter().any(|ratio| *ratio > MOST_RATIO) {
            return String::new();
        }
        let name = match self.curve(other) {
            Some(curve) if reference.has_same_settings => curve.algorithm.clone(),
            Some(curve) => short_name(curve, self.ends),
            None => String::new(),
        };
        let name = if name.chars().count() < 20 { name } else { "the lowest".into() };
        format!(", {}× {name}", range_text(ratios.into_iter(), ratio_text))
    }

    /// The curve with which the curve with the index `own` is compared: the lowest one, at the same place on the x
    /// axis, among the curves of all algorithms under the same settings; or among all curves, if no other algorithm
    /// has these settings. It may be the curve itself.
    fn reference(&self, own: usize) -> Option<ReferenceCurve> {
        let place = self.point(own)?.x;
        let curve = self.curve(own);
        let mut comparable: Vec<usize> = Vec::new();
        let mut alike: Vec<usize> = Vec::new();
        for i in 0..self.ends.len() {
            let Some(point) = self.point(i) else { continue };
            let is_here = (point.x - place).abs() <= 1e-9 * place.abs();
            if !self.is_compared(i) || !is_here {
                continue;
            }
            comparable.push(i);
            if self.curve(i).map(|other| &other.settings) == curve.map(|own| &own.settings) {
                alike.push(i);
            }
        }
        // Without another algorithm under the same settings there is nothing to compare with there.
        let has_same_settings = alike.iter().any(|i| {
            self.curve(*i).map(|other| &other.algorithm) != curve.map(|own| &own.algorithm)
        });
        let curve = self.least(if has_same_settings { &alike } else { &comparable })?;
        Some(ReferenceCurve { curve, has_same_settings })
    }

    /// The end of the second line of a group of coinciding curves that is lowest. It names the curve `lowest` if the
    /// values of the group read differently, and says that the geometric mean is meant if the drawn value of another
    /// curve reads as less.
    fn lowest_text(&self, group: &[usize], lowest: usize) -> String {
        let read = |i: usize| self.point(i).map_or(f64::NAN, |p| as_read(p.y, self.digits));
        let is_drawn_higher = self.is_geometric
            && (0..self.ends.len())
                .any(|i| !group.contains(&i) && self.is_compared(i) && read(i) < read(lowest));
        let mean = if is_drawn_higher { " geometric mean" } else { "" };
        let read_alike = group.iter().all(|i| read(*i) == read(group[0]));
        match self.curve(lowest) {
            Some(curve) if !read_alike && group.contains(&lowest) => {
                format!(", {} lowest{mean}", short_name(curve, self.ends))
            }
            _ => format!(", lowest{mean}"),
        }
    }
}

/// The curve with which another one is compared.
struct ReferenceCurve {
    /// Its index among the ends.
    curve: usize,
    /// Whether it is the lowest among the algorithms under the same settings, rather than among all
    /// curves.
    has_same_settings: bool,
}

/// The shortest name of a curve that tells it from the others of `ends`: the algorithm if it has one curve, the
/// settings if all curves are of one algorithm, or else both.
pub fn short_name(curve: &Curve, ends: &[CurveEnd<'_>]) -> String {
    let curves = ends.iter().filter_map(|end| end.series.line.curve());
    match curves.filter(|other| other.algorithm == curve.algorithm).count() {
        1 => curve.algorithm.clone(),
        all if all == ends.len() && !curve.settings.is_empty() => {
            curve.name().split_off(curve.algorithm.len()).trim_start_matches(", ").to_owned()
        }
        _ => curve.name(),
    }
}

/// The number that a reader sees if [`number`] writes `value` with `digits` digits.
fn as_read(value: f64, digits: usize) -> f64 {
    // Whole numbers are written with all their digits.
    let is_whole = value.fract() == 0.0 && (0.0..1e6).contains(&value);
    if is_whole {
        return value;
    }
    format!("{:.*e}", digits - 1, value).parse().unwrap_or(value)
}

/// A ratio of two digits, or of three where two would hide that it is not 1.
fn ratio_text(ratio: f64) -> String {
    readable(ratio, if ratio < 1.1 { 3 } else { 2 })
}

/// The smallest and the largest of some numbers, `a to b`, each written by `text`; one text where both read the same.
fn range_text(values: impl Iterator<Item = f64>, text: impl Fn(f64) -> String) -> String {
    let mut smallest = f64::INFINITY;
    let mut largest = f64::NEG_INFINITY;
    for value in values {
        smallest = smallest.min(value);
        largest = largest.max(value);
    }
    let low = text(smallest);
    let high = text(largest);
    if low == high { low } else { format!("{low} to {high}") }
}

/// A step size, a number of local steps or a target with at most three digits, as manifests write it.
fn place_text(x: f64) -> String {
    match format!("{x:.2e}").parse::<f64>() {
        Ok(rounded) if x.fract() != 0.0 && (1e-4..1e6).contains(&rounded) => rounded.to_string(),
        _ => number(x, 3),
    }
}
