//! A whole figure as SVG: its legend and its panels with their titles and labels.

use super::drawing::{Drawing, FINE, escape};
use super::fitted_text::{FittedLines, FittedText};
use super::font::{self, FontWeight};
use super::labels::{self, Label};
use super::layout::{PanelArea, PanelLayout, TITLE};
use super::legend::{draw_legend, line_sample};
use super::panel::{self, Frame};
use super::{map, style};
use crate::evidence::{Body, Color, Figure, LegendEntry, Map, Maps, Plot, Square};
use serde::Serialize;
use std::error::Error;
use std::fmt::Write;
use style::color_name;

/// Why a figure cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("figure {figure}: {message}")]
pub struct DrawError {
    /// The id of the figure.
    pub figure: String,
    /// The error of plotters.
    pub message: String,
}

/// The title of a panel and the positions of the ends of its axes (values, or decimal logarithms on a logarithmic
/// axis), by which the script of a page draws the panel anew.
#[derive(Serialize)]
pub struct PanelFrame {
    /// The title.
    pub title: String,
    /// The ends of the x axis.
    pub x: [f64; 2],
    /// The ends of the y axis.
    pub y: [f64; 2],
}

/// The titles and axes of all panels of a figure of curves, in their order, for the data of a page and for the Python
/// package, so that both draw panels with the axes that they have in [`svg`].
pub fn frames(plot: &Plot) -> Vec<PanelFrame> {
    let y = panel::y_axis(plot);
    let mut frames = Vec::new();
    for panel in &plot.panels {
        let x = panel::x_axis(plot, panel);
        frames.push(PanelFrame {
            title: panel.title.clone(),
            x: [x.low, x.high],
            y: [y.low, y.high],
        });
    }
    frames
}

/// The text of an SVG file with all panels of a figure and its legend. `width` is in pixels, such as [`super::PAGE`];
/// the height follows from the layout of the panels.
///
/// # Errors
/// The error of plotters, if it cannot draw.
pub fn svg(figure: &Figure, width: u32) -> Result<String, DrawError> {
    let layout = PanelLayout::new(figure, width);
    draw_figure(figure, &layout.areas, width, layout.height)
}

/// The text of an SVG file with a figure of one panel, `wide` pixels wide; further panels are left out. `high` is the
/// height in pixels of the panel without its title: the drawing is higher by the title and the legend. The page of
/// `diff` has such drawings.
///
/// # Errors
/// The error of plotters, if it cannot draw.
pub fn svg_of_size(figure: &Figure, wide: u32, high: u32) -> Result<String, DrawError> {
    let area = PanelArea { x: 0, y: 0, wide, high, is_large: true };
    draw_figure(figure, &[area], wide, TITLE + high)
}

/// The text of an SVG file with the panels of a figure at `areas`, below a legend of what has no label in the panels.
/// `height` is the height of all panels in pixels, without the legend.
fn draw_figure(
    figure: &Figure,
    areas: &[PanelArea],
    width: u32,
    height: u32,
) -> Result<String, DrawError> {
    let mut entries: Vec<&LegendEntry> = figure.legend().iter().collect();
    let panels = match &figure.body {
        Body::Plot(plot) => draw_plot(plot, areas, &mut entries),
        Body::Maps(maps) => draw_maps(maps, areas),
    };
    let panels = panels
        .map_err(|error| DrawError { figure: figure.id.to_string(), message: error.to_string() })?;
    let legend = draw_legend(&entries, width, |color| patch_opacity(&figure.body, color));
    let top = -i64::from(legend.height);
    let height = legend.height + height + 4;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {top} {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n<rect class=\"paper\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}{}</svg>\n",
        escape(&figure.title),
        legend.svg,
        panels.concat()
    ))
}

/// Draws the panels of a figure of curves at `areas`, each as SVG text, and removes entries from the legend: those of
/// measured curves where every panel has room for their labels, and those of predictions that no panel shows.
fn draw_plot(
    plot: &Plot,
    areas: &[PanelArea],
    legend: &mut Vec<&LegendEntry>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let y = panel::y_axis(plot);
    let mut frames = Vec::new();
    for (panel, area) in plot.panels.iter().zip(areas) {
        frames.push(Frame::new(plot, panel, y, *area));
    }
    // Curves that have labels need no entry.
    if !frames.iter().any(|frame| frame.labels.is_short) {
        legend.retain(|entry| !entry.is_measured());
    }
    legend.retain(|entry| match entry {
        LegendEntry::Prediction(prediction) => frames.iter().any(|frame| frame.shows(*prediction)),
        _ => true,
    });
    frames.iter().map(draw_curves_panel).collect()
}

/// Draws the maps of a figure at `areas`, each as SVG text.
fn draw_maps(maps: &Maps, areas: &[PanelArea]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut drawn = Vec::new();
    for (map, area) in maps.maps.iter().zip(areas) {
        drawn.push(draw_map_panel(maps, map, area)?);
    }
    Ok(drawn)
}

/// The opacity of the patch for a colour in the legend: the strongest among the squares of this colour, so that the
/// legend looks like the maps. 1 in a figure of curves, which has no patches, and 0 if no square has the colour.
fn patch_opacity(body: &Body, color: Color) -> f64 {
    let Body::Maps(maps) = body else { return 1.0 };
    let squares = maps.maps.iter().flat_map(|map| &map.squares);
    let of_color = squares.filter(|square| square.color() == color);
    of_color.map(Square::opacity).fold(0.0, f64::max)
}

/// Draws a panel of curves as SVG text, with its title, the title of the y axis and its labels. A small panel has the
/// title of the y axis only at the left edge of the figure, since all panels have the same y axis.
fn draw_curves_panel(frame: &Frame<'_>) -> Drawing {
    let Frame { plot, panel, place, .. } = frame;
    let [left, top, wide, high] = frame.area();
    let mut labels = String::new();
    for label in &frame.labels.all {
        draw_label(&mut labels, label, frame);
    }
    let y_title = if place.is_large || place.x == 0 { plot.y.as_str() } else { "" };
    Ok(format!(
        "<g class=\"panel\" data-area=\"{left} {top} {wide} {high}\">\n{}<g class=\"labels\">\n{labels}</g>\n</g>\n",
        with_title(&panel.title, y_title, place, &frame.draw()?)
    ))
}

/// Draws a map as SVG text, with its title. Style sheets find it by the class `map`.
fn draw_map_panel(maps: &Maps, map: &Map, place: &PanelArea) -> Drawing {
    let mut attributes = String::new();
    if map.dense.is_some() {
        // A page finds the square below the pointer by this area.
        let left = map::left_margin(map) + map::EDGE;
        let wide = place.wide - left - map::RIGHT;
        let high = place.high - map::BELOW - 2 * map::EDGE;
        let x = place.x + left;
        let y = place.y + TITLE + map::EDGE;
        attributes = format!(" shape-rendering=\"crispEdges\" data-area=\"{x} {y} {wide} {high}\"");
    }
    let drawn = map::draw(map, &maps.x, &maps.y, place.wide, place.high)?;
    Ok(format!(
        "<g class=\"panel map\"{attributes}>\n{}</g>\n",
        with_title(&map.title, "", place, &drawn)
    ))
}

/// How the title of a panel is made to fit: by smaller letters, then by a second line that begins with a setting.
const PANEL_TITLE: FittedText =
    FittedText { smallest: 9, largest: 12, separator: ", ", weight: FontWeight::Bold };

/// The SVG text of a panel: its title, and below it `inside`, which is in plotters' pixels. The title of the y axis
/// stands to the right of the panel's title, and is left out if there is no room for it or it is empty.
fn with_title(title: &str, y_title: &str, place: &PanelArea, inside: &str) -> String {
    let FittedLines { lines, size } = PANEL_TITLE.fit(title, f64::from(place.wide));
    let x = place.x;
    let y = place.y + 14;
    let words = match lines.as_slice() {
        [first, second] => format!(
            "<tspan x=\"{x}\" y=\"{}\">{}</tspan><tspan x=\"{x}\" y=\"{}\">{}</tspan>",
            place.y + 8,
            escape(first),
            place.y + 18,
            escape(second)
        ),
        _ => escape(title),
    };
    let mut out = format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"bold\" fill=\"#222222\">{words}</text>\n"
    );
    let gap = if title.is_empty() { 0.0 } else { 10.0 };
    let y_title_left = font::width(title, size, FontWeight::Bold) + gap;
    let fits =
        y_title_left + font::width(y_title, 11.0, FontWeight::Regular) < f64::from(place.wide);
    if fits && !y_title.is_empty() {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{y}\" font-size=\"11\" fill=\"#3c3c3c\">{}</text>",
            f64::from(x) + y_title_left.ceil(),
            escape(y_title)
        );
    }
    let top = place.y + TITLE;
    let scale = 1.0 / f64::from(FINE);
    let _ = writeln!(out, "<g transform=\"translate({x},{top}) scale({scale})\">\n{inside}\n</g>");
    out
}

/// Adds the SVG text of a label to `out`: a thin line from the end of its curve if the label stands higher or lower, a
/// stretch of the curve's line with its marker, the name in the colour of the curve, and the value if there is one. Its
/// attribute `data-with` names the other curves that share it; only tests read it.
fn draw_label(out: &mut String, label: &Label, frame: &Frame<'_>) {
    let [left, top, wide, high] = frame.area();
    let axis_end = f64::from(left + wide);
    let y = f64::from(top) + label.y - 4.0;
    let curve_end = f64::from(top) + frame.y.below_top(label.at) * f64::from(high);
    let sample_left = axis_end + f64::from(labels::BEFORE);
    if (curve_end - y).abs() > 3.0 {
        let _ = writeln!(
            out,
            "<path class=\"leader\" d=\"M{:.1},{curve_end:.1}L{:.1},{y:.1}\" fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"0.7\"/>",
            axis_end + 2.0,
            sample_left - 2.0
        );
    }
    let text_left = sample_left + f64::from(labels::SAMPLE + 4);
    let other_names = if label.with.is_empty() {
        String::new()
    } else {
        format!(" data-with=\"{}\"", escape(&label.with.join(" | ")))
    };
    let value = if label.value.is_empty() {
        String::new()
    } else {
        format!(
            "<text class=\"value\" x=\"{text_left:.1}\" y=\"{:.1}\" font-size=\"{}\" fill=\"#3c3c3c\">{}</text>",
            y + 18.0,
            labels::VALUE,
            escape(&label.value)
        )
    };
    let _ = writeln!(
        out,
        "<g class=\"key\" data-label=\"{}\"{other_names} data-color=\"{}\">{}<text x=\"{text_left:.1}\" y=\"{:.1}\" font-size=\"{}\" font-weight=\"bold\" class=\"name\" fill=\"{}\">{}</text>{value}</g>",
        escape(&label.name),
        color_name(label.style.color),
        line_sample(label.style, sample_left, y, labels::SAMPLE, label.has_marks),
        y + 4.0,
        labels::NAME,
        style::hex(style::ink(label.style.color)[0]),
        escape(&label.text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Titles are as large as they fit, in two lines if they must.
    #[test]
    fn no_title_is_wider_than_its_panel() {
        let title = "two-kernels, N = 100, H = 10000";
        for room in [400.0, 230.0, 150.0] {
            let FittedLines { lines, size } = PANEL_TITLE.fit(title, room);
            assert_eq!(lines.concat(), title);
            let fits = |line: &String| font::width(line, size, FontWeight::Bold) <= room;
            assert!(lines.iter().all(fits), "{lines:?} {size}");
        }
        let one_line = FittedLines { lines: vec![title.to_owned()], size: 12.0 };
        assert_eq!(PANEL_TITLE.fit(title, 400.0), one_line);
        assert_eq!(PANEL_TITLE.fit(title, 150.0).lines.len(), 2);
    }
}
