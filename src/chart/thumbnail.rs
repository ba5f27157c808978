//! A figure in miniature, for a card of the index: its large panel without ticks and labels, with
//! its title and the titles of its axes.
//!
//! *Invariant*: a miniature has the colours of its figure, which style sheets replace on dark
//! paper as they do in the figure.

use super::panel::{stretches, x_axis, y_axis};
use super::style::{color_name, hex, rgb};
use crate::evidence::family::FAMILIES;
use crate::evidence::{Body, Color, Figure, Line, Map, Plot, Series, Square};
use serde::Serialize;
use std::fmt::Write;

/// A figure in miniature with its texts, which a template of the index prints.
#[derive(Clone, Serialize)]
pub struct Thumbnail {
    /// The miniature as an SVG element.
    svg: String,
    /// What it shows: the title of the figure and of the panel.
    caption: String,
    /// Title of the x axis.
    x: String,
    /// Title of the y axis.
    y: String,
}

/// Units of a miniature of curves; a card stretches them.
const WIDE: f64 = 400.0;
const HIGH: f64 = 200.0;
/// Units between a curve and the edges.
const EDGE: f64 = 14.0;
/// The least extent of values that is drawn from edge to edge, as a fraction of the figure's axis.
const LEAST: f64 = 0.3;
/// The most bytes of the paths of curves. Beyond it, curves become coarser and then fewer.
const MOST_BYTES: usize = 900;
/// The first tolerance with which curves are simplified, in units: how far a simplified curve may be from the points
/// that it leaves out.
const FINE: f64 = 0.7;
/// The tolerance from which on curves are left out instead, in units.
const COARSE: f64 = 2.8;

/// The miniature of a figure: of its large panel, or of its first one. `None` if it has no such panel.
pub fn thumbnail(figure: &Figure) -> Option<Thumbnail> {
    let large = figure.large.unwrap_or(0);
    match &figure.body {
        Body::Plot(plot) => {
            let panel = plot.panels.get(large)?;
            let alone = Plot { panels: vec![panel.clone()], ..plot.clone() };
            Some(Thumbnail {
                svg: element(WIDE, HIGH, "", &draw_curves(&alone)),
                caption: caption(figure, &panel.title),
                x: plot.x.clone(),
                y: plot.y.clone(),
            })
        }
        Body::Maps(maps) => {
            let map = maps.maps.get(large)?;
            // A unit is a square.
            let wide = map.x.len() as f64;
            let high = map.y.len() as f64;
            Some(Thumbnail {
                svg: element(wide, high, " squares", &draw_squares(map)),
                caption: caption(figure, &map.title),
                x: maps.x.clone(),
                y: maps.y.clone(),
            })
        }
    }
}

/// The caption of a miniature: the title of the figure, and of its panel unless that is empty.
fn caption(figure: &Figure, panel: &str) -> String {
    if panel.is_empty() {
        return figure.title.clone();
    }
    format!("{}; {panel}", figure.title)
}

/// A miniature as an SVG element with this content, `wide` times `high` units, which a card stretches to its size and
/// screen readers skip. `class` is a further class with a space before it, or empty.
fn element(wide: f64, high: f64, class: &str, content: &str) -> String {
    format!(
        "<svg class=\"thumb{class}\" viewBox=\"0 0 {wide} {high}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{content}</svg>"
    )
}

/// Draws the curves of the only panel of `plot` as SVG text of at most [`MOST_BYTES`], if that can be reached. Curves
/// become coarser first; then fewer are drawn: predictions give way before measured curves, and of each family one
/// curve remains.
fn draw_curves(plot: &Plot) -> String {
    let mut shown: Vec<&Series> = plot.series().collect();
    shown.retain(|series| !matches!(series.line, Line::Reference(_)));
    let mut tolerance = FINE;
    loop {
        let drawn = draw_paths(plot, &shown, tolerance);
        if drawn.len() <= MOST_BYTES || tolerance > HIGH {
            return drawn;
        }
        let fewer = fewer_curves(&shown);
        if tolerance < COARSE || fewer.len() == shown.len() {
            tolerance *= 2.0;
        } else {
            shown = fewer;
            tolerance = FINE;
        }
    }
}

/// A part of the curves, for a miniature with too many: the measured ones if some are predictions, otherwise every
/// second curve of each family. All of them if no family has two.
fn fewer_curves<'a>(shown: &[&'a Series]) -> Vec<&'a Series> {
    let mut measured = shown.to_vec();
    measured.retain(|series| series.line.is_measured());
    if !measured.is_empty() && measured.len() < shown.len() {
        return measured;
    }
    let mut seen = [0_usize; FAMILIES + 1];
    let mut every_second = Vec::new();
    for series in shown {
        let count = &mut seen[series.line.style().color.family().unwrap_or(FAMILIES)];
        *count += 1;
        if *count % 2 == 1 {
            every_second.push(*series);
        }
    }
    every_second
}

/// All curves of a miniature that have one colour and are all measured, or all predicted: they are one path.
struct CurveLayer {
    is_measured: bool,
    color: Color,
    /// The data of an SVG path with all these curves.
    path: String,
}

impl CurveLayer {
    /// The path as an SVG element, with a class for the way in which `templates/index.css` draws it.
    fn svg(&self) -> String {
        let class = if !self.is_measured {
            " class=\"theory\""
        } else if self.path.ends_with(DOT) {
            " class=\"dots\""
        } else {
            ""
        };
        let name = color_name(self.color);
        let ink = hex(rgb(self.color));
        let path = &self.path;
        format!("<g data-color=\"{name}\" stroke=\"{ink}\"><path{class} d=\"{path}\"/></g>")
    }
}

/// Draws the curves `shown` of the only panel of `plot` as SVG text, simplified by `tolerance` (in units): a path for
/// each colour of measured and of predicted curves, predictions below measured curves. They fill the miniature,
/// whichever are shown.
fn draw_paths(plot: &Plot, shown: &[&Series], tolerance: f64) -> String {
    let x = x_axis(plot, &plot.panels[0]);
    let y = y_axis(plot);
    let lines: Vec<_> = shown.iter().map(|series| stretches(&series.points, x, y)).collect();
    let points = || lines.iter().flatten().flatten();
    // A miniature has no ticks: what is drawn fills it, unless it is nearly level.
    let across = Extent::over(points().map(|point| point.0), 0.0);
    let up = Extent::over(points().map(|point| point.1), LEAST * (y.high - y.low));
    let place = |point: &(f64, f64)| {
        let from_left = across.fraction(point.0) * (WIDE - 2.0 * EDGE);
        let from_bottom = up.fraction(point.1) * (HIGH - 2.0 * EDGE);
        (EDGE + from_left, HIGH - EDGE - from_bottom)
    };
    let mut layers: Vec<CurveLayer> = Vec::new();
    for (series, stretches) in shown.iter().zip(&lines) {
        let mut path = String::new();
        for stretch in stretches {
            let placed: Vec<(f64, f64)> = stretch.iter().map(place).collect();
            write_line(&mut path, &simplified(&placed, tolerance));
        }
        let is_measured = series.line.is_measured();
        let color = series.line.style().color;
        let layer = layers
            .iter_mut()
            .find(|layer| layer.is_measured == is_measured && layer.color == color);
        match layer {
            Some(layer) => layer.path.push_str(&path),
            None => layers.push(CurveLayer { is_measured, color, path }),
        }
    }
    layers.sort_by_key(|layer| layer.is_measured);
    layers.iter().filter(|layer| !layer.path.is_empty()).map(CurveLayer::svg).collect()
}

/// The range of positions that a miniature shows along one axis.
struct Extent {
    /// The lower end.
    low: f64,
    /// The distance of the upper end from it.
    length: f64,
}

impl Extent {
    /// The extent of some values. Values that differ by less than `least` lie in the middle of an extent
    /// of this length.
    fn over(values: impl Iterator<Item = f64>, least: f64) -> Self {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        let length = (high - low).max(least).max(1e-12);
        Self { low: (low + high - length) / 2.0, length }
    }

    /// Where a value is: 0 at the lower end, 1 at the upper end.
    fn fraction(&self, value: f64) -> f64 {
        (value - self.low) / self.length
    }
}

/// A line with fewer points, from which no point of the original line is farther than the tolerance: by the algorithm
/// of Ramer, Douglas and Peucker. Both ends are kept.
fn simplified(line: &[(f64, f64)], tolerance: f64) -> Vec<(f64, f64)> {
    let [first, inside @ .., last] = line else { return line.to_vec() };
    let distances = inside.iter().map(|point| distance(*point, *first, *last)).enumerate();
    match distances.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((place, distance)) if distance > tolerance => {
            let farthest = place + 1;
            let mut kept = simplified(&line[..=farthest], tolerance);
            // Both halves have the farthest point.
            kept.pop();
            kept.extend(simplified(&line[farthest..], tolerance));
            kept
        }
        _ => vec![*first, *last],
    }
}

/// The distance of a point from the line between two ends: from the nearer end where the point lies beyond it, as it
/// does next to a steep line.
fn distance(point: (f64, f64), first: (f64, f64), last: (f64, f64)) -> f64 {
    let dx = last.0 - first.0;
    let dy = last.1 - first.1;
    let [from_first, from_last] = [first, last].map(|end| (point.0 - end.0, point.1 - end.1));
    if from_first.0 * dx + from_first.1 * dy <= 0.0 {
        libm::hypot(from_first.0, from_first.1)
    } else if from_last.0 * dx + from_last.1 * dy >= 0.0 {
        libm::hypot(from_last.0, from_last.1)
    } else {
        (from_first.0 * dy - from_first.1 * dx).abs() / libm::hypot(dx, dy)
    }
}

/// The path command of a line without length, which the round ends of lines make a dot.
const DOT: &str = "h0";

/// Adds a line through these points to the data of an SVG path: its start, and the steps from there, in whole units.
/// A single point is a dot.
fn write_line(path: &mut String, line: &[(f64, f64)]) {
    let mut units: Vec<(i64, i64)> = Vec::new();
    for (x, y) in line {
        units.push((x.round() as i64, y.round() as i64));
    }
    units.dedup();
    let Some(first) = units.first() else { return };
    let _ = write!(path, "M{} {}", first.0, first.1);
    if units.len() == 1 {
        path.push_str(DOT);
    }
    for (i, pair) in units.windows(2).enumerate() {
        path.push(if i == 0 { 'l' } else { ' ' });
        let dx = pair[1].0 - pair[0].0;
        let dy = pair[1].1 - pair[0].1;
        // A minus separates numbers as well as a space.
        let separator = if dy < 0 { "" } else { " " };
        let _ = write!(path, "{dx}{separator}{dy}");
    }
}

/// All squares of one colour and opacity, which are one path.
struct SquareLayer<'a> {
    color: Color,
    /// The opacity in per cent.
    percent: u32,
    squares: Vec<&'a Square>,
}

/// Draws the squares of a map as SVG text in units of squares: one path for each colour and opacity, in which
/// neighbours in a row are one rectangle.
fn draw_squares(map: &Map) -> String {
    let mut layers: Vec<SquareLayer<'_>> = Vec::new();
    for square in &map.squares {
        let color = square.color();
        let percent = (100.0 * square.opacity()).round() as u32;
        let layer =
            layers.iter_mut().find(|layer| layer.color == color && layer.percent == percent);
        match layer {
            Some(layer) => layer.squares.push(square),
            None => layers.push(SquareLayer { color, percent, squares: vec![square] }),
        }
    }
    let mut out = String::new();
    for SquareLayer { color, percent, mut squares } in layers {
        squares.sort_by_key(|square| (square.y, square.x));
        let mut path = String::new();
        for row in squares.chunk_by(|a, b| a.y == b.y && a.x + 1 == b.x) {
            let x = row[0].x;
            // SVG counts down from the top.
            let y = map.y.len() - 1 - row[0].y;
            let long = row.len();
            let _ = write!(path, "M{x} {y}h{long}v1h-{long}z");
        }
        let name = color_name(color);
        let ink = hex(rgb(color));
        let _ = write!(
            out,
            "<g data-color=\"{name}\" fill=\"{ink}\" fill-opacity=\".{percent:02}\"><path d=\"{path}\"/></g>"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::figure_of;
    use super::*;
    use crate::evidence::{Curve, Lead, Maps, Panel, Point, Ranking, SquareValue, Style, unique};
    use exactfed_runner::manifest::Prediction;

    #[test]
    fn a_simplified_line_stays_within_the_tolerance_and_keeps_its_ends() {
        let wave: Vec<(f64, f64)> =
            (0..400).map(|i| (f64::from(i), 60.0 * libm::sin(f64::from(i) / 40.0))).collect();
        let mut lengths = Vec::new();
        for tolerance in [FINE, 2.0 * FINE, COARSE] {
            let line = simplified(&wave, tolerance);
            assert_eq!((line[0], line[line.len() - 1]), (wave[0], wave[399]));
            for p in &wave {
                let after = line.iter().position(|q| q.0 >= p.0).unwrap().max(1);
                let a = line[after - 1];
                let b = line[after];
                let at = a.1 + (b.1 - a.1) * (p.0 - a.0) / (b.0 - a.0);
                // The vertical distance is at most 1.81 times that to the line: the slope is 1.5.
                assert!((at - p.1).abs() <= 1.81 * tolerance, "{p:?} and {at}");
            }
            lengths.push(line.len());
        }
        assert!(lengths[0] < 60 && lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
        assert_eq!(simplified(&wave[..1], 1.0), wave[..1]);
    }

    #[test]
    fn a_simplified_line_keeps_dips_next_to_steep_lines() {
        // (1, −50) is 2.7 from the infinite line through the two points around it, and 50 from what is drawn of it.
        let dip = [(0.0, 0.0), (1.0, -50.0), (2.0, 60.0), (400.0, 0.0)];
        assert_eq!(simplified(&dip, COARSE), dip);
        let there_and_back = [(0.0, 0.0), (0.0, 20.0), (0.0, 0.0)];
        assert_eq!(simplified(&there_and_back, COARSE), there_and_back);
        assert_eq!(simplified(&[(0.0, 0.0), (0.0, 1.0), (0.0, 0.0)], COARSE).len(), 2);
        assert_eq!(distance((5.0, 3.0), (0.0, 0.0), (10.0, 0.0)), 3.0);
        assert_eq!(distance((-3.0, 4.0), (0.0, 0.0), (10.0, 0.0)), 5.0);
        assert_eq!(distance((13.0, 4.0), (0.0, 0.0), (10.0, 0.0)), 5.0);
    }

    /// A panel of noisy curves of two families, each with a prediction.
    fn panel(curves: usize) -> Panel {
        let mut series = Vec::new();
        for i in 0..curves {
            let curve = Curve::new("a", Style::solid(Color::tone(i % 2, 1 + i)));
            let noise = |t: usize| f64::from(((t * 7919 + i * 104_729) % 1000) as u32) / 1000.0;
            let at = |t: usize| Point::bare(t as f64, libm::exp(noise(t) - 0.01 * t as f64));
            let points: Vec<Point> = (0..500).map(at).collect();
            series.push(Series::new(Line::Measured(curve.clone()), points.clone()));
            series.push(Series::new(Line::Predicted(curve, Prediction::ExactBias), points));
        }
        Panel { title: String::new(), series }
    }

    /// 44 of them are then at most 48 kB, if each was of a hundred curves.
    #[test]
    fn miniatures_are_small_and_keep_every_family() {
        let most = thumbnail(&figure_of(vec![panel(100)])).unwrap().svg;
        assert!(most.len() < 1100, "{} bytes: {most}", most.len());
        let families = |svg: &str| -> Vec<usize> {
            let colors = svg.split("data-color=\"").skip(1);
            let index = |rest: &str| rest.split('"').next().and_then(|n| n.parse().ok());
            let family = |text| Color::Palette(index(text).unwrap()).family().unwrap();
            unique(colors.map(family))
        };
        assert_eq!(families(&most), [0, 1]);
        assert!(!most.contains("theory") && !most.contains("<text") && !most.contains("NaN"));
        let two = Figure { large: Some(1), ..figure_of(vec![panel(100), panel(1)]) };
        assert_eq!(families(&thumbnail(&two).unwrap().svg), [0], "the large panel is drawn");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let curve = Curve::new("a", Style::solid(Color::Palette(0)));
        let series = |points| vec![Series::new(Line::Measured(curve.clone()), points)];
        let of = |points| {
            let panel = Panel { title: String::new(), series: series(points) };
            thumbnail(&figure_of(vec![panel])).unwrap().svg
        };
        assert!(!of(Vec::new()).contains("<path") && !of(Vec::new()).contains("NaN"));
        let gaps = of([1.0, f64::NAN, 2.0, -1.0, 3.0].map(|y| Point::bare(y, y)).to_vec());
        assert_eq!(gaps.matches(DOT).count(), 3, "{gaps}");
        assert!(thumbnail(&Figure { large: Some(3), ..figure_of(Vec::new()) }).is_none());
    }

    #[test]
    fn squares_of_one_colour_are_one_path_of_rows() {
        let ranking = |color| {
            let lead = Lead::OthersDiverged;
            SquareValue::Ranking(Ranking { leaders: vec!["a".into()], color, lead })
        };
        let square = |(x, y, family)| Square { x, y, value: ranking(Color::of_family(family)) };
        let places = [(0, 0, 0), (1, 0, 0), (2, 0, 1), (0, 1, 0), (2, 1, 0)];
        let [x, y] = [3, 2].map(|n| vec![String::new(); n]);
        let squares = places.map(square).to_vec();
        let map = Map { title: String::new(), x, y, squares, dense: None };
        let maps = Maps { maps: vec![map], legend: Vec::new(), x: String::new(), y: String::new() };
        let figure = Figure { body: Body::Maps(maps), ..figure_of(Vec::new()) };
        let svg = thumbnail(&figure).unwrap().svg;
        assert!(svg.contains("viewBox=\"0 0 3 2\""), "{svg}");
        assert!(svg.contains("d=\"M0 1h2v1h-2zM0 0h1v1h-1zM2 0h1v1h-1z\""), "{svg}");
        assert_eq!((svg.matches("<path").count(), svg.matches("data-color=\"6\"").count()), (2, 1));
    }

    #[test]
    fn paths_are_relative_and_a_point_is_a_dot() {
        let mut path = String::new();
        write_line(&mut path, &[(10.0, 20.0), (12.2, 17.0), (12.3, 17.1), (30.0, 17.0)]);
        write_line(&mut path, &[(1.0, 2.0)]);
        write_line(&mut path, &[]);
        assert_eq!(path, "M10 20l2-3 18 0M1 2h0");
    }
}
