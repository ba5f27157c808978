//! A panel of curves.

use super::axis::{Axis, Chart, Ruler, value_position};
use super::drawing::{Drawing, FINE, escape, font_size, inside_svg};
use super::fitted_text::{FittedLines, FittedText};
use super::font::{self, FontWeight};
use super::labels::{CurveLabels, coincide};
use super::layout::{PanelArea, TITLE};
use super::style::{color_name, dash_array, marked_points, marker, plotters_color};
use crate::evidence::{LabelledPoint, Line, Panel, Plot, Point, Scale, Series};
use exactfed_runner::manifest::Prediction;
use plotters::prelude::*;
use std::error::Error;
use std::fmt::Write;

/// A panel of curves in its place, with its axes, labels and margins, ready to be drawn.
pub struct Frame<'a> {
    /// The figure of the panel.
    pub plot: &'a Plot,
    /// The curves of the panel.
    pub panel: &'a Panel,
    x: Axis,
    /// The y axis, which all panels of the figure have in common.
    pub y: Axis,
    /// Where the panel with its title is.
    pub place: PanelArea,
    /// The labels at the ends of its curves.
    pub labels: CurveLabels,
    /// The title of the x axis in lines that have room in the panel.
    x_title: FittedLines,
    margins: Margins,
}

/// The outermost pixels of a panel stay empty.
const EDGE: u32 = 4;

/// Size of the texts at the axes.
const AXIS_TEXT: u32 = 11;
/// The title of the x axis is smaller, or parted between words, where a panel is narrow.
const X_TITLE: FittedText =
    FittedText { smallest: 9, largest: AXIS_TEXT, separator: " ", weight: FontWeight::Regular };
/// Height of a line of the title of the x axis.
const TITLE_LINE: u32 = 12;

/// Space between the y axis and the texts of its ticks.
const BEFORE_TICKS: f64 = 4.0;

/// Space around the plotting area in pixels, in which the texts at the axes and the labels stand.
#[derive(Clone, Copy)]
struct Margins {
    left: u32,
    top: u32,
    bottom: u32,
    right: u32,
}

/// The margins of a panel whose texts are short and whose curves have no labels.
const LEAST: Margins = Margins { left: 46, top: 6, bottom: 38, right: 14 };

/// Radius of the marker of a measured curve, in plotters' pixels.
const MARK: u32 = 3 * FINE;
/// Outer radius of the open marker of a prediction, in plotters' pixels.
const OPEN_MARK: u32 = 5 * FINE / 2;
/// Inner radius of the open marker.
const HOLE: u32 = 3 * FINE / 2;
/// Radius of the ring around a selected point.
const RING: u32 = 8;

/// The dash and the gap of a curve that lies on another one of another colour.
const ABOVE: [u32; 2] = [14, 12];

/// A diverging curve may leave the panel: the axis ends at this many times the largest start, or at
/// the largest value of curves that do not diverge.
const BEYOND: f64 = 100.0;
/// A prediction that is this many times below all measured values does not extend the axis, so
/// that curves stay legible.
const BELOW: f64 = 30.0;

/// The width of the text of a tick in pixels.
fn tick_width(text: &str) -> f64 {
    font::width(text, f64::from(AXIS_TEXT), FontWeight::Regular)
}

/// The y axis that all panels of a figure have in common. Measured values extend it, with their bands as far as
/// [`Axis::with_bands`] lets them, unless a curve diverges; predictions do too, unless they are far below all measured
/// values. The script of a page has the same rules, for the lines that a reader chooses (`rangeY` in axes.js).
pub fn y_axis(plot: &Plot) -> Axis {
    let top = highest_value(plot);
    let mut values: Vec<f64> = Vec::new();
    let mut band_ends: Vec<f64> = Vec::new();
    for series in plot.series().filter(|series| series.line.is_measured()) {
        for point in placed_points(plot, series).filter(|point| point.y <= top) {
            values.push(point.y);
            band_ends.extend([point.low, point.high]);
        }
    }
    remove_transient(plot, &mut values);
    let least = values.iter().copied().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    for series in plot.series().filter(|series| !series.line.is_measured()) {
        let points = placed_points(plot, series);
        values.extend(points.map(|p| p.y).filter(|y| (least / BELOW..=top).contains(y)));
    }
    Axis::with_bands(plot.scale_y, values.into_iter(), 0.04, band_ends.into_iter())
}

/// The value beyond which no curve extends the y axis: a curve that diverges reaches at most [`BEYOND`] times the
/// largest start of a curve, or the largest value of curves without diverged runs.
fn highest_value(plot: &Plot) -> f64 {
    let mut candidates: Vec<f64> = Vec::new();
    for series in plot.series() {
        candidates.extend(series.points.first().map(|start| start.y * BEYOND));
        if series.diverged == 0 {
            candidates.extend(placed_points(plot, series).map(|point| point.y));
        }
    }
    candidates.into_iter().filter(|y| y.is_finite()).fold(0.0, f64::max)
}

/// The points of a line that have a position on the x axis of a figure: a logarithmic axis has none for round 0.
fn placed_points<'a>(plot: &'a Plot, series: &'a Series) -> impl Iterator<Item = &'a Point> {
    series.points.iter().filter(|point| value_position(plot.scale_x, point.x).is_some())
}

/// The x axis of a panel: over all points of its lines, which may differ from panel to panel.
pub fn x_axis(plot: &Plot, panel: &Panel) -> Axis {
    let xs = panel.series.iter().flat_map(|series| &series.points).map(|point| point.x);
    let room = if plot.scale_x == Scale::Log { 0.02 } else { 0.0 };
    Axis::over(plot.scale_x, xs, room)
}

/// Removes from `values`, which determine the y axis, the lowest ones if they are fractions, such as accuracies before
/// training, and the others lie close together: an axis over all of them would show no differences. The script of pages
/// has the same rule (axes.js).
fn remove_transient(plot: &Plot, values: &mut Vec<f64>) {
    let is_fraction = plot.labels.at == LabelledPoint::Last && !plot.labels.is_ranked;
    if plot.scale_y != Scale::Linear || !is_fraction || values.len() < 20 {
        return;
    }
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let least = sorted[0];
    let tenth = sorted[sorted.len() / 10];
    let largest = sorted[sorted.len() - 1];
    // Nine tenths of the values take less than a quarter of the range.
    if largest > tenth && 4.0 * (largest - tenth) < largest - least {
        values.retain(|value| *value >= tenth - (largest - tenth) / 4.0);
    }
}

impl<'a> Frame<'a> {
    /// The frame of a panel of a figure, at a place and with the figure's y axis: chooses the labels and margins. The
    /// place must be larger than the margins, as the places of [`PanelLayout`](super::layout::PanelLayout) are.
    pub fn new(plot: &'a Plot, panel: &'a Panel, y: Axis, place: PanelArea) -> Self {
        let x = x_axis(plot, panel);
        let room = f64::from(place.wide - 2 * EDGE);
        let x_title = X_TITLE.fit(&plot.x, room);
        let bottom = LEAST.bottom + (x_title.lines.len() as u32 - 1) * TITLE_LINE;
        let high = place.high - LEAST.top - bottom;
        let labels = CurveLabels::new(plot, panel, &place, high, x, y);
        let right = labels.width.max(LEAST.right);
        let margins = Margins { bottom, right, ..LEAST };
        let mut frame = Self { plot, panel, x, y, place, labels, x_title, margins };
        frame.widen_for_ticks();
        frame
    }

    /// Widens the margins until the texts of all ticks are inside the panel: texts of the y axis
    /// stand at its left, and the outermost texts of the x axis reach beyond its ends. The margins are wide enough for
    /// the ticks of the x axis in the width that the texts of the y axis leave; wider margins may leave fewer ticks.
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

    /// The plotting area, which the axes enclose: left, top, width and height in pixels of the whole drawing.
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

    /// The y axis with its ticks, as plotters reads it. Their texts are 13 pixels high with the space between them.
    fn y_ruler(&self) -> Ruler {
        let about = (self.place.high / 45).max(3) as usize;
        self.y.ruler(about, self.area()[3], |_| 13.0)
    }

    /// The title of the x axis as SVG text in plotters' pixels: below the middle of the plotting area, moved sideways
    /// where it would leave the panel.
    fn draw_x_title(&self) -> String {
        let [left, _, wide, _] = self.area();
        let FittedLines { lines, size } = &self.x_title;
        let middle = f64::from(left - self.place.x) + f64::from(wide) / 2.0;
        let fine = f64::from(FINE);
        let mut out = String::new();
        for (i, line) in lines.iter().rev().enumerate() {
            let reach = font::width(line, *size, FontWeight::Regular) / 2.0 + f64::from(EDGE);
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

    /// Whether a point of this prediction can be drawn in the panel, so that the legend must name it.
    pub fn shows(&self, prediction: Prediction) -> bool {
        self.panel.series.iter().any(|series| {
            series.line.prediction() == Some(prediction)
                && !stretches(&series.points, self.x, self.y).is_empty()
        })
    }

    /// Draws the inside of the panel as SVG text in plotters' pixels: its axes, then a group of its own for each line,
    /// which style sheets find by its class and its colour. They find the lines of the axes by the greys that these
    /// have here (`#E1E1E1` and `#787878` in `templates/figure.css`), and replace them on dark paper.
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
        for (i, series) in self.panel.series.iter().enumerate() {
            let is_wide = self.is_below_another(i);
            let mut layer =
                self.layer(|chart| draw_series(chart, series, self.x, self.y, is_wide))?;
            // The curve itself is the path of its layer that begins so; bands and markers are filled.
            if self.is_on_another_colour(i) {
                let [dash, gap] = ABOVE.map(|length| length * FINE);
                let dashed = format!("<path stroke-dasharray=\"{dash} {gap}\" fill=\"none\"");
                layer = layer.replace("<path fill=\"none\"", &dashed);
            }
            let style = series.line.style();
            let mut dashes: Vec<String> = Vec::new();
            for length in dash_array(style.dash).split_whitespace() {
                if let Ok(length) = length.parse::<f64>() {
                    dashes.push((length * f64::from(FINE)).to_string());
                }
            }
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
                dashes.join(" ")
            )?;
        }
        Ok(out)
    }

    /// Whether the line with the index `i` in the panel is a measured curve and coincides with a measured curve that is
    /// drawn later, on top of it. It is then drawn wider, so that both are seen.
    fn is_below_another(&self, i: usize) -> bool {
        let series = &self.panel.series[i];
        let mut above = self.panel.series[i + 1..].iter().filter(|s| s.line.is_measured());
        series.line.is_measured() && above.any(|other| coincide(series, other))
    }

    /// Whether the line with the index `i` is a measured curve that is drawn last of several that coincide, and on
    /// top of one of another family. It is then dashed, so that both colours are seen.
    fn is_on_another_colour(&self, i: usize) -> bool {
        let series = &self.panel.series[i];
        let family = series.line.style().color.family();
        let mut below = self.panel.series[..i].iter().filter(|s| s.line.is_measured());
        !self.is_below_another(i)
            && series.line.is_measured()
            && below
                .any(|other| coincide(other, series) && other.line.style().color.family() != family)
    }

    /// Lets `draw` draw on a plotters chart with the size, margins and axes of the panel, and returns the SVG text.
    /// The axes and each line are layers of their own, and lie exactly on one another.
    fn layer(
        &self,
        draw: impl FnOnce(&mut Chart<'_, '_>) -> Result<(), Box<dyn Error>>,
    ) -> Drawing {
        let mut svg = String::new();
        // Plotters borrows the text until its drawing area is dropped.
        {
            let size = (self.place.wide * FINE, self.place.high * FINE);
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
        Ok(inside_svg(&svg))
    }
}

/// The positions of a point on both axes; `None` if it cannot be drawn: a coordinate is not finite or outside of its
/// axis.
pub fn position(point: &Point, x: Axis, y: Axis) -> Option<(f64, f64)> {
    Some((x.place(point.x)?, y.place(point.y)?))
}

/// The positions of a curve's points, divided into stretches of neighbouring points that can be drawn. A line joins the
/// points of a stretch; points that cannot be drawn interrupt the curve.
pub fn stretches(points: &[Point], x: Axis, y: Axis) -> Vec<Vec<(f64, f64)>> {
    let mut stretches = Vec::new();
    for stretch in points.split(|point| position(point, x, y).is_none()) {
        if !stretch.is_empty() {
            stretches.push(stretch.iter().filter_map(|point| position(point, x, y)).collect());
        }
    }
    stretches
}

/// The band of a curve as closed outlines in positions, one for each stretch of at least two points that can be drawn
/// and have a band: from left to right along the lower ends, and back along the upper ones. Ends outside of the panel
/// are moved to its edge.
fn band_outlines(points: &[Point], x: Axis, y: Axis) -> Vec<Vec<(f64, f64)>> {
    let has_band = |point: &Point| {
        position(point, x, y).is_some() && !point.low.is_nan() && !point.high.is_nan()
    };
    let mut outlines = Vec::new();
    for stretch in points.split(|point| !has_band(point)) {
        if stretch.len() < 2 {
            continue;
        }
        let end = |point: &Point, value: f64| Some((x.place(point.x)?, y.clip(value)));
        let lower = stretch.iter().filter_map(|point| end(point, point.low));
        let upper = stretch.iter().rev().filter_map(|point| end(point, point.high));
        outlines.push(lower.chain(upper).collect());
    }
    outlines
}

/// Draws the layer of a line on a panel's chart: its band, its curve, its markers, and a cross at the end of a curve
/// with diverged runs. The points that tuning selected are rings instead. `is_wide` makes a measured curve wider.
fn draw_series(
    chart: &mut Chart<'_, '_>,
    series: &Series,
    x: Axis,
    y: Axis,
    is_wide: bool,
) -> Result<(), Box<dyn Error>> {
    let color = plotters_color(series.line.style().color);
    let stretches = stretches(&series.points, x, y);
    if let Line::Selected(_) = series.line {
        return draw_rings(chart, stretches.concat(), color);
    }
    for outline in band_outlines(&series.points, x, y) {
        chart.draw_series([Polygon::new(outline, color.mix(0.16).filled())])?;
    }
    let width = match (series.line.is_measured(), is_wide) {
        (true, true) => 4 * FINE,
        (true, false) => 2 * FINE,
        (false, _) => FINE + FINE / 2,
    };
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
        draw_markers(chart, series, stretches.concat())?;
    }
    let end = stretches.last().and_then(|stretch| stretch.last());
    if let Some(end) = end
        && series.diverged > 0
    {
        chart.draw_series([Cross::new(*end, 4 * FINE, color.stroke_width(2 * FINE))])?;
    }
    Ok(())
}

/// Draws a ring around each point that tuning selected, given by its positions.
fn draw_rings(
    chart: &mut Chart<'_, '_>,
    points: Vec<(f64, f64)>,
    color: RGBColor,
) -> Result<(), Box<dyn Error>> {
    for point in points {
        let ring = ShapeStyle { color: color.to_rgba(), filled: false, stroke_width: 2 * FINE };
        chart.draw_series([Circle::new(point, RING * FINE, ring)])?;
    }
    Ok(())
}

/// Draws the markers of a curve at some of its points, all of which are given by their positions. Predictions have
/// smaller, open markers, which are visible on the markers of measured curves: each has a white hole, which
/// `templates/figure.css` finds by its colour (`#FFFFFF`) and gives the colour of the paper.
fn draw_markers(
    chart: &mut Chart<'_, '_>,
    series: &Series,
    points: Vec<(f64, f64)>,
) -> Result<(), Box<dyn Error>> {
    let style = series.line.style();
    let shape = marker(style);
    let color = plotters_color(style.color);
    let layers = if series.line.is_measured() {
        vec![(MARK, color)]
    } else {
        vec![(OPEN_MARK, color), (HOLE, WHITE)]
    };
    for point in marked_points(points, style) {
        for (radius, color) in &layers {
            let outline = Polygon::new(shape.outline(*radius), color.filled());
            chart.draw_series([EmptyElement::at(point) + outline])?;
        }
    }
    Ok(())
}
