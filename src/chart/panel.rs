//! A panel of curves.

use super::axis::{Axis, Chart, Ruler, place};
use super::labels::{CurveLabels, coincide};
use super::layout::{PanelArea, TITLE};
use super::style::{color_name, dash_array, marked_points, marker, plotters_color};
use super::{Drawing, FINE, FittedText, escape, font, font_size, inner};
use crate::evidence::{LabelledPoint, Line, Panel, Plot, Point, Scale, Series};
use exactfed_runner::manifest::Prediction;
use plotters::prelude::*;
use std::fmt::Write;

/// A panel in its place.
pub struct Frame<'a> {
    pub plot: &'a Plot,
    pub panel: &'a Panel,
    x: Axis,
    pub y: Axis,
    pub place: PanelArea,
    pub labels: CurveLabels,
    /// The title of the x axis in lines that have room in the panel, and their size.
    x_title: (Vec<String>, f64),
    margins: Margins,
}

/// The outermost pixels of a panel stay empty.
const EDGE: u32 = 4;

/// Size of the texts at the axes.
const AXIS_TEXT: u32 = 11;
/// The title of the x axis is smaller, or parted between words, where a panel is narrow.
const X_TITLE: FittedText =
    FittedText { smallest: 9, largest: AXIS_TEXT, separator: " ", bold: false };
/// Height of a line of the title of the x axis.
const TITLE_LINE: u32 = 12;

/// Space between the y axis and the texts of its ticks.
const BEFORE_TICKS: f64 = 4.0;

/// Space around the plotting area.
#[derive(Clone, Copy)]
struct Margins {
    left: u32,
    top: u32,
    bottom: u32,
    right: u32,
}

/// The margins of a panel whose texts are short and whose curves have no labels.
const LEAST: Margins = Margins { left: 46, top: 6, bottom: 38, right: 14 };

/// Radius of a marker, in plotters' pixels; outer and inner radius of an open one.
const MARK: u32 = 3 * FINE;
/// Radius of the ring around a selected point.
const RING: u32 = 8;
const OPEN: (u32, u32) = (5 * FINE / 2, 3 * FINE / 2);

/// The dashes of a curve that lies on another one of another colour.
const ABOVE: [u32; 2] = [14, 12];

/// A diverging curve may leave the panel: the axis ends at so many times the largest start, or at
/// the largest value of curves that do not diverge.
const BEYOND: f64 = 100.0;
/// A prediction that is this many times below all measured values does not extend the axis, so
/// that curves stay legible.
const BELOW: f64 = 30.0;

/// The width of the text of a tick.
fn tick_width(text: &str) -> f64 {
    font::width(text, f64::from(AXIS_TEXT), false)
}

/// The y axis that all panels have in common.
pub fn y_axis<'a>(plot: &'a Plot) -> Axis {
    // A logarithmic axis has no round 0.
    let is_there = |p: &&Point| place(plot.scale_x, p.x).is_some();
    let points = |s: &'a Series| s.points.iter().filter(is_there);
    let measured = || plot.series().filter(|s| s.line.is_measured()).flat_map(points);
    let calm = plot.series().filter(|s| s.diverged == 0).flat_map(points);
    let starts = plot.series().filter_map(|s| s.points.first()).map(|p| p.y * BEYOND);
    let top = starts.chain(calm.map(|p| p.y)).filter(|y| y.is_finite()).fold(0.0, f64::max);
    let mut values: Vec<f64> = measured().map(|p| p.y).filter(|y| *y <= top).collect();
    without_transient(plot, &mut values);
    let least = values.iter().copied().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    let beside = plot.series().filter(|s| !s.line.is_measured()).flat_map(points);
    values.extend(beside.map(|p| p.y).filter(|y| (least / BELOW..=top).contains(y)));
    let bands = measured().filter(|p| p.y <= top).flat_map(|p| [p.low, p.high]);
    Axis::with_bands(plot.scale_y, values.into_iter(), 0.04, bands)
}

/// The x axis of a panel.
pub fn x_axis(plot: &Plot, panel: &Panel) -> Axis {
    let xs = panel.series.iter().flat_map(|s| &s.points).map(|p| p.x);
    Axis::over(plot.scale_x, xs, if plot.scale_x == Scale::Log { 0.02 } else { 0.0 })
}

/// Leaves out the fewest values of fractions, such as accuracies before training, if the others lie
/// close together: an axis with all of them would show no differences (axes.js has the same rule).
fn without_transient(plot: &Plot, values: &mut Vec<f64>) {
    let is_fraction = plot.labels.at == LabelledPoint::Last && !plot.labels.is_ranked;
    if plot.scale_y != Scale::Linear || !is_fraction || values.len() < 20 {
        return;
    }
    let mut all = values.clone();
    all.sort_by(f64::total_cmp);
    let (first, low, last) = (all[0], all[all.len() / 10], all[all.len() - 1]);
    if last > low && 4.0 * (last - low) < last - first {
        values.retain(|v| *v >= low - (last - low) / 4.0);
    }
}

impl<'a> Frame<'a> {
    /// A panel of a figure with this y axis.
    pub fn new(plot: &'a Plot, panel: &'a Panel, y: Axis, place: PanelArea) -> Self {
        let x = x_axis(plot, panel);
        let room = f64::from(place.wide - 2 * EDGE);
        let x_title = X_TITLE.lines(&plot.x, room);
        let bottom = LEAST.bottom + (x_title.0.len() as u32 - 1) * TITLE_LINE;
        let high = place.high - LEAST.top - bottom;
        let labels = CurveLabels::new(plot, panel, &place, high, (x, y));
        let right = labels.width.max(LEAST.right);
        let margins = Margins { bottom, right, ..LEAST };
        let mut frame = Self { plot, panel, x, y, place, labels, x_title, margins };
        frame.widen_for_ticks();
        frame
    }

    /// Widens the margins until the texts of all ticks are inside the panel: those of the y axis
    /// stand at its left, and the outermost ones of the x axis reach beyond its ends.
    fn widen_for_ticks(&mut self) {
        let texts_of_y = self.y_ruler().ticks.into_iter().map(|(_, text)| tick_width(&text));
        let widest = texts_of_y.fold(0.0, f64::max) + BEFORE_TICKS;
        self.margins.left = self.margins.left.max(widest.ceil() as u32 + EDGE);
        let wide = self.area()[2];
        let x = self.x_ruler();
        for (at, text) in &x.ticks {
            let from_left = (at - x.low) / (x.high - x.low) * f64::from(wide);
            let half = tick_width(text) / 2.0;
            let beyond_left = (half - from_left).ceil().max(0.0) as u32;
            let beyond_right = (half + from_left - f64::from(wide)).ceil().max(0.0) as u32;
            self.margins.left = self.margins.left.max(beyond_left + 1);
            self.margins.right = self.margins.right.max(beyond_right + 1);
        }
    }

    /// The plotting area within the drawing: left, top, width, height.
    pub fn area(&self) -> [u32; 4] {
        let Margins { left, top, bottom, right } = self.margins;
        let PanelArea { x, y, wide, high, .. } = self.place;
        [x + left, y + TITLE + top, wide - left - right, high - top - bottom]
    }

    /// The x axis with its ticks, as plotters reads it.
    fn x_ruler(&self) -> Ruler {
        let about = if self.place.wide < 340 { 3 } else { 6 };
        self.x.ruler(about, self.area()[2], |text| tick_width(text) + 6.0)
    }

    /// The y axis with its ticks, as plotters reads it.
    fn y_ruler(&self) -> Ruler {
        let about = (self.place.high / 45).max(3) as usize;
        self.y.ruler(about, self.area()[3], |_| 13.0)
    }

    /// The title of the x axis below the middle of the plotting area, moved where it would leave the
    /// panel, in plotters' pixels.
    fn draw_x_title(&self) -> String {
        let [left, _, wide, _] = self.area();
        let (lines, size) = &self.x_title;
        let middle = f64::from(left - self.place.x) + f64::from(wide) / 2.0;
        let fine = f64::from(FINE);
        let mut out = String::new();
        for (i, line) in lines.iter().rev().enumerate() {
            let reach = font::width(line, *size, false) / 2.0 + f64::from(EDGE);
            let x = middle.min(f64::from(self.place.wide) - reach).max(reach);
            let y = f64::from(self.place.high - EDGE - i as u32 * TITLE_LINE);
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{}\" fill=\"#222222\">{}</text>",
                (x * fine).round(),
                (y * fine).round(),
                size * fine,
                escape(line)
            );
        }
        out
    }

    /// Whether a point of this prediction is in the panel.
    pub fn shows(&self, prediction: Prediction) -> bool {
        let mut series =
            self.panel.series.iter().filter(|s| s.line.prediction() == Some(prediction));
        series.any(|s| !stretches(&s.points, self.x, self.y).is_empty())
    }

    /// The inside of the panel: its axes, then one layer per series.
    pub fn draw(&self) -> Drawing {
        let axes = self.layer(|chart| {
            chart
                .configure_mesh()
                .disable_x_mesh()
                .bold_line_style(RGBColor(225, 225, 225).stroke_width(FINE / 2))
                .light_line_style(TRANSPARENT)
                .axis_style(RGBColor(120, 120, 120).stroke_width(FINE / 2))
                .label_style(
                    ("sans-serif", font_size(AXIS_TEXT)).into_font().color(&RGBColor(60, 60, 60)),
                )
                .draw()?;
            Ok(())
        })?;
        let mut out = format!("<g class=\"axes\">\n{axes}\n{}</g>", self.draw_x_title());
        // Of curves that coincide the lower one is wider, so that both are seen.
        let is_hidden = |i: usize, series: &Series| {
            let above = self.panel.series[i + 1..].iter().filter(|s| s.line.is_measured());
            series.line.is_measured() && above.clone().any(|other| coincide(series, other))
        };
        // The highest is dashed if its colour is another.
        let is_above = |i: usize, series: &Series| {
            let mut below = self.panel.series[..i].iter().filter(|s| s.line.is_measured());
            let family = |s: &Series| s.line.style().color.family();
            !is_hidden(i, series)
                && series.line.is_measured()
                && below.any(|other| coincide(other, series) && family(other) != family(series))
        };
        for (i, series) in self.panel.series.iter().enumerate() {
            let (x, y, wider) = (self.x, self.y, is_hidden(i, series));
            let mut layer = self.layer(|chart| draw(chart, series, (x, y), wider))?;
            if is_above(i, series) {
                let [on, off] = ABOVE.map(|length| length * FINE);
                let dashed = format!("<polyline stroke-dasharray=\"{on} {off}\"");
                layer = layer.replace("<polyline", &dashed);
            }
            let style = series.line.style();
            let fine: Vec<String> = dash_array(style.dash)
                .split_whitespace()
                .filter_map(|n| n.parse::<f64>().ok())
                .map(|n| (n * f64::from(FINE)).to_string())
                .collect();
            let role = match &series.line {
                // Drawn like the curves of runs.
                Line::Exact(_) => "measured",
                line => line.role(),
            };
            write!(
                out,
                "\n<g class=\"series {role}\" data-label=\"{}\" data-color=\"{}\" stroke-dasharray=\"{}\">\n{layer}\n</g>",
                escape(&series.line.name()),
                color_name(style.color),
                fine.join(" ")
            )?;
        }
        Ok(out)
    }

    /// A drawing in the frame that all layers of the panel have in common.
    fn layer(
        &self,
        draw: impl FnOnce(&mut Chart<'_, '_>) -> Result<(), Box<dyn std::error::Error>>,
    ) -> Drawing {
        let (mut svg, PanelArea { wide, high, .. }) = (String::new(), self.place);
        {
            let size = (wide * FINE, high * FINE);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let Margins { left, top, bottom, right } = self.margins;
            let mut chart = ChartBuilder::on(&root)
                .margin_top(top * FINE)
                .margin_right(right * FINE)
                .margin_bottom(EDGE * FINE)
                .margin_left(EDGE * FINE)
                .x_label_area_size((bottom - EDGE) * FINE)
                .y_label_area_size((left - EDGE) * FINE)
                .build_cartesian_2d(self.x_ruler(), self.y_ruler())?;
            draw(&mut chart)?;
            root.present()?;
        }
        Ok(inner(&svg).to_owned())
    }
}

/// The stretches of a curve that can be drawn: other points interrupt it.
pub fn stretches(points: &[Point], x: Axis, y: Axis) -> Vec<Vec<(f64, f64)>> {
    let placed = |p: &Point| Some((x.place(p.x)?, y.place(p.y)?));
    let stretches = points.split(|p| placed(p).is_none()).filter(|stretch| !stretch.is_empty());
    stretches.map(|stretch| stretch.iter().filter_map(placed).collect()).collect()
}

/// The stretches of a band as closed outlines, where the mean is drawn, clipped to the panel.
fn outlines(points: &[Point], x: Axis, y: Axis) -> Vec<Vec<(f64, f64)>> {
    let visible = |p: &Point| x.place(p.x).is_some() && y.place(p.y).is_some();
    let banded = |p: &Point| visible(p) && !p.low.is_nan() && !p.high.is_nan();
    let outline = |stretch: &[Point]| {
        let side = |p: &Point, end: f64| x.place(p.x).map(|px| (px, y.clip(end)));
        let lower = stretch.iter().filter_map(|p| side(p, p.low));
        let upper = stretch.iter().rev().filter_map(|p| side(p, p.high));
        lower.chain(upper).collect()
    };
    points.split(|p| !banded(p)).filter(|stretch| stretch.len() > 1).map(outline).collect()
}

fn draw(
    chart: &mut Chart<'_, '_>,
    series: &Series,
    (x, y): (Axis, Axis),
    wider: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let (style, measured) = (series.line.style(), series.line.is_measured());
    let color = plotters_color(style.color);
    if let Line::Selected(_) = series.line {
        for at in stretches(&series.points, x, y).concat() {
            let ring = ShapeStyle { color: color.to_rgba(), filled: false, stroke_width: 2 * FINE };
            chart.draw_series([Circle::new(at, RING * FINE, ring)])?;
        }
        return Ok(());
    }
    for outline in outlines(&series.points, x, y) {
        chart.draw_series(std::iter::once(Polygon::new(outline, color.mix(0.16).filled())))?;
    }
    let width = match (measured, wider) {
        (true, true) => 4 * FINE,
        (true, false) => 2 * FINE,
        (false, _) => FINE + FINE / 2,
    };
    let stretches = stretches(&series.points, x, y);
    for stretch in &stretches {
        match stretch.as_slice() {
            [single] => {
                chart.draw_series([Circle::new(*single, 2 * FINE, color.filled())])?;
            }
            line => {
                chart.draw_series(LineSeries::new(line.to_vec(), color.stroke_width(width)))?;
            }
        }
    }
    if series.has_marks() {
        let shape = marker(style);
        // Predictions have smaller, open markers, which are visible on those of measured curves.
        let paper = RGBColor(255, 255, 255);
        let sizes = match measured {
            true => vec![(MARK, color)],
            false => vec![(OPEN.0, color), (OPEN.1, paper)],
        };
        for at in marked_points(stretches.concat(), style) {
            for (radius, color) in &sizes {
                let outline = shape.outline(*radius);
                chart
                    .draw_series([EmptyElement::at(at) + Polygon::new(outline, color.filled())])?;
            }
        }
    }
    if let (true, Some(end)) = (series.diverged > 0, stretches.last().and_then(|s| s.last())) {
        chart.draw_series([Cross::new(*end, 4 * FINE, color.stroke_width(2 * FINE))])?;
    }
    Ok(())
}
