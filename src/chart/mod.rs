//! Figures as SVG: the only user of plotters.
//!
//! Axes are drawn first and every series is a layer of its own above them, so
//! that a page can hide one. Plotters draws at four times the size, since its
//! coordinates are whole pixels, and without fonts: text is left to the viewer.
//!
//! *Invariant*: values that are not finite or out of range are omitted and interrupt a curve.

pub mod axis;
pub mod export;
pub mod font;
mod label_values;
mod labels;
mod layout;
mod map;
mod panel;
pub mod style;
pub mod thumbnail;

use crate::evidence::{Body, Color, Figure, LegendEntry, Map, Maps, Panel, Plot, Square, Style};
use labels::Label;
pub use layout::PAGE;
use layout::{PanelArea, TITLE, places};
pub use map::map_values;
use panel::Frame;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::{Value, json};
use std::fmt::Write;
use style::{color_name, dash_array, marker, rgb};

/// Plotters' pixels per pixel of the drawing.
const FINE: u32 = 4;

/// Height of a line of the legend.
const LINE: u32 = 18;

/// A font size in plotters' pixels; plotters divides it by 1.24.
fn font_size(size: u32) -> f64 {
    f64::from(size * FINE) * 1.24
}

fn centred(size: u32, color: RGBColor) -> TextStyle<'static> {
    let style = ("sans-serif", font_size(size)).into_font().color(&color);
    style.pos(Pos::new(HPos::Center, VPos::Center))
}

/// Text for an SVG element or attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The output of plotters without the enclosing element.
fn inner(svg: &str) -> &str {
    let from = svg.find("<svg").and_then(|i| svg[i..].find('>').map(|j| i + j + 1)).unwrap_or(0);
    let to = svg.rfind("</svg>").unwrap_or(svg.len());
    svg[from..to].trim()
}

/// The titles of the panels of a figure and the ends of their axes, which are decimal logarithms of
/// a logarithmic one, so that a page can draw them.
pub fn frames(plot: &Plot) -> Vec<Value> {
    let y = panel::y_axis(plot);
    let frame = |panel: &Panel| {
        let x = panel::x_axis(plot, panel);
        json!({ "title": panel.title, "x": [x.low, x.high], "y": [y.low, y.high] })
    };
    plot.panels.iter().map(frame).collect()
}

/// A drawing of a panel's size by plotters, as the inside of an SVG element.
type Drawing = Result<String, Box<dyn std::error::Error>>;

/// The figure as a file of this width in pixels, as [`PAGE`].
///
/// # Errors
/// The error of plotters, if it cannot draw.
pub fn svg(figure: &Figure, width: u32) -> Result<String, String> {
    let (places, height) = places(figure, width);
    drawing(figure, &places, (width, height))
}

/// A figure of one panel as a file of this width, with a panel of this height.
///
/// # Errors
/// The error of plotters, if it cannot draw.
pub fn svg_of_size(figure: &Figure, wide: u32, high: u32) -> Result<String, String> {
    let place = PanelArea { x: 0, y: 0, wide, high, is_large: true };
    drawing(figure, &[place], (wide, TITLE + high))
}

/// The panels of a figure in their places, below a legend of what has no label.
fn drawing(
    figure: &Figure,
    places: &[PanelArea],
    (width, height): (u32, u32),
) -> Result<String, String> {
    let mut legend = figure.legend().iter().collect::<Vec<_>>();
    let panels: Result<Vec<String>, _> = match &figure.body {
        Body::Plot(plot) => {
            let y = panel::y_axis(plot);
            let frames = plot.panels.iter().zip(places);
            let frames = frames.map(|(panel, place)| Frame::new(plot, panel, y, *place));
            let frames: Vec<Frame<'_>> = frames.collect();
            // Curves that have labels need no legend.
            if !frames.iter().any(|frame| frame.labels.is_short) {
                legend.retain(|entry| !entry.is_measured());
            }
            legend.retain(|entry| match entry {
                LegendEntry::Prediction(prediction) => frames.iter().any(|f| f.shows(*prediction)),
                _ => true,
            });
            frames.iter().map(curves_panel).collect()
        }
        Body::Maps(maps) => {
            let drawn = maps.maps.iter().zip(places);
            drawn.map(|(map, place)| map_panel(maps, map, place)).collect()
        }
    };
    let panels = panels.map_err(|e| format!("figure {}: {e}", figure.id))?;
    // Patches are as strong as the strongest squares of their colour.
    let strength = |color: Color| match &figure.body {
        Body::Plot(_) => 1.0,
        Body::Maps(maps) => {
            let squares = maps.maps.iter().flat_map(|map| &map.squares);
            squares.filter(|s| s.color() == color).map(Square::opacity).fold(0.0, f64::max)
        }
    };
    let (keys, lines) = legend_lines(&legend, width, strength);
    let top = lines * LINE + if lines > 0 { 8 } else { 0 };
    let height = top + height + 4;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {} {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n<rect class=\"paper\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{keys}{}</svg>\n",
        -i64::from(top),
        escape(&figure.title),
        -i64::from(top),
        panels.concat()
    ))
}

/// A panel of curves with its title, the title of the y axis and its labels.
fn curves_panel(frame: &Frame<'_>) -> Drawing {
    let Frame { plot, panel, place, .. } = frame;
    let [left, top, wide, high] = frame.area();
    let mut labels = String::new();
    for label in &frame.labels.all {
        draw_label(&mut labels, label, frame);
    }
    let y_title = if place.is_large || place.x == 0 { plot.y.as_str() } else { "" };
    Ok(format!(
        "<g class=\"panel\" data-area=\"{left} {top} {wide} {high}\">\n{}<g class=\"labels\">\n{labels}</g>\n</g>\n",
        titled(&panel.title, y_title, place, &frame.draw()?)
    ))
}

/// A map with its title.
fn map_panel(maps: &Maps, map: &Map, place: &PanelArea) -> Drawing {
    // Where the squares are, for what is said of the one at a point.
    let area = map.dense.as_ref().map_or_else(String::new, |_| {
        let left = map::left(map) + map::EDGE;
        let (wide, high) =
            (place.wide - left - map::RIGHT, place.high - map::BELOW - 2 * map::EDGE);
        let (x, y) = (place.x + left, place.y + TITLE + map::EDGE);
        format!(" shape-rendering=\"crispEdges\" data-area=\"{x} {y} {wide} {high}\"")
    });
    Ok(format!(
        "<g class=\"panel map\"{area}>\n{}</g>\n",
        titled(&map.title, "", place, &map::draw(map, &maps.x, &maps.y, (place.wide, place.high))?)
    ))
}

/// The title of a panel and, behind it, that of its y axis if there is room; below them the inside.
fn titled(title: &str, y_title: &str, place: &PanelArea, inside: &str) -> String {
    let (lines, size) = PANEL_TITLE.lines(title, f64::from(place.wide));
    let behind = font::width(title, size, true) + if title.is_empty() { 0.0 } else { 10.0 };
    let fits = behind + font::width(y_title, 11.0, false) < f64::from(place.wide);
    let (x, y) = (place.x, place.y + 14);
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
    if fits && !y_title.is_empty() {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{y}\" font-size=\"11\" fill=\"#3c3c3c\">{}</text>",
            f64::from(x) + behind.ceil(),
            escape(y_title)
        );
    }
    let (top, scale) = (place.y + TITLE, 1.0 / f64::from(FINE));
    let _ = writeln!(out, "<g transform=\"translate({x},{top}) scale({scale})\">\n{inside}\n</g>");
    out
}

/// How a text may be made to fit: by smaller letters, then by a second line.
struct FittedText {
    smallest: u32,
    largest: u32,
    /// A second line begins after one of these.
    separator: &'static str,
    bold: bool,
}

/// The title of a panel is parted between settings.
const PANEL_TITLE: FittedText =
    FittedText { smallest: 9, largest: 12, separator: ", ", bold: true };

impl FittedText {
    /// The text in lines that have this room, if it has room in two, and the size of its letters.
    fn lines(&self, text: &str, room: f64) -> (Vec<String>, f64) {
        let size = room / font::width(text, 1.0, self.bold);
        let size = size.clamp(f64::from(self.smallest), f64::from(self.largest)).floor();
        let parts: Vec<&str> = text.split_inclusive(self.separator).collect();
        let wide = |parts: &[&str]| font::width(parts.concat().trim_end(), size, self.bold);
        let longest = |at: usize| wide(&parts[..at]).max(wide(&parts[at..]));
        let cut = (1..parts.len()).min_by(|a, b| longest(*a).total_cmp(&longest(*b)));
        match cut.filter(|_| wide(&parts) > room) {
            Some(at) => (vec![parts[..at].concat(), parts[at..].concat()], size),
            None => (vec![text.to_owned()], size),
        }
    }
}

/// A label: a line from the end of its curve, a stretch of the curve's line with its marker, the
/// name in the colour of the family, and the value.
fn draw_label(out: &mut String, label: &Label, frame: &Frame<'_>) {
    let [left, top, wide, high] = frame.area();
    let (x, y) = (f64::from(left + wide), f64::from(top) + label.y - 4.0);
    let from = f64::from(top) + frame.y.below_top(label.at) * f64::from(high);
    let at = x + f64::from(labels::BEFORE);
    let ink = style::hex(style::ink(label.style.color)[0]);
    if (from - y).abs() > 3.0 {
        let _ = writeln!(
            out,
            "<path class=\"leader\" d=\"M{:.1},{from:.1}L{:.1},{y:.1}\" fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"0.7\"/>",
            x + 2.0,
            at - 2.0
        );
    }
    let text = at + f64::from(labels::SAMPLE + 4);
    let (name, shown) = (escape(&label.name), escape(&label.text));
    let with = match label.with.as_slice() {
        [] => String::new(),
        others => format!(" data-with=\"{}\"", escape(&others.join(" | "))),
    };
    let _ = writeln!(
        out,
        "<g class=\"key\" data-label=\"{name}\"{with} data-color=\"{}\">{}<text x=\"{text:.1}\" y=\"{:.1}\" font-size=\"{}\" font-weight=\"bold\" class=\"name\" fill=\"{ink}\">{shown}</text>{}</g>",
        color_name(label.style.color),
        line_sample(label.style, (at, y), labels::SAMPLE, label.has_marks),
        y + 4.0,
        labels::NAME,
        match label.value.as_str() {
            "" => String::new(),
            value => format!(
                "<text class=\"value\" x=\"{text:.1}\" y=\"{:.1}\" font-size=\"{}\" fill=\"#3c3c3c\">{}</text>",
                y + 18.0,
                labels::VALUE,
                escape(value)
            ),
        }
    );
}

/// The legend above the panels, and how many lines it takes.
fn legend_lines(
    legend: &[&LegendEntry],
    width: u32,
    strength: impl Fn(Color) -> f64,
) -> (String, u32) {
    let mut keys = Vec::new();
    let (mut x, mut line) = (2.0, 0);
    for entry in legend {
        let name = entry.name();
        let long = f64::from(20 + sample_width(entry)) + font::width(&name, 12.0, false).ceil();
        if x > 2.0 && x + long > f64::from(width) {
            (x, line) = (2.0, line + 1);
        }
        keys.push((entry, name, x, line));
        x += long;
    }
    let lines = if legend.is_empty() { 0 } else { line + 1 };
    let mut out = String::from("<g class=\"legend\" font-size=\"12\" fill=\"#222222\">\n");
    for (entry, name, x, line) in keys {
        // The panels begin at 0.
        let middle = f64::from(line * LINE) + 9.0 - f64::from(lines * LINE + 8);
        let sample = match entry.is_patch() {
            true => {
                let ((r, g, b), y) = (rgb(entry.style().color), middle - 6.0);
                let opacity = strength(entry.style().color);
                format!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"22\" height=\"12\" fill=\"rgb({r},{g},{b})\" fill-opacity=\"{opacity}\"/>"
                )
            }
            false => {
                let has_marks = entry.is_measured();
                line_sample(entry.style(), (x, middle), sample_width(entry), has_marks)
            }
        };
        let name = escape(&name);
        let _ = writeln!(
            out,
            "<g class=\"key\" data-label=\"{name}\" data-color=\"{}\">{sample}<text x=\"{}\" y=\"{}\">{name}</text></g>",
            color_name(entry.style().color),
            x + f64::from(5 + sample_width(entry)),
            middle + 4.0
        );
    }
    out.push_str("</g>\n");
    (if lines > 0 { out } else { String::new() }, lines)
}

/// The width of what stands before a name in a legend: of a line, two repeats of its dashes.
fn sample_width(entry: &LegendEntry) -> u32 {
    if entry.is_patch() { 22 } else { 40 }
}

/// The stretch of line before a name, with its marker, which is open on a prediction.
fn line_sample(style: Style, (x, middle): (f64, f64), long: u32, has_marks: bool) -> String {
    let (r, g, b) = rgb(style.color);
    let measured = style.dash.is_measured();
    let corner = |(a, b): (i32, i32)| {
        let [a, b] = [a, b].map(|v| f64::from(v) / f64::from(FINE));
        format!("{:.2},{:.2}", x + f64::from(long) / 2.0 + a, middle + b)
    };
    let mark = |radius: u32, fill: &str| {
        let corners: Vec<String> = marker(style).outline(radius).into_iter().map(corner).collect();
        format!("<polygon points=\"{}\" fill=\"{fill}\"/>", corners.join(" "))
    };
    let marks = match (has_marks, measured) {
        (false, _) => String::new(),
        (true, true) => mark(4 * FINE, &format!("rgb({r},{g},{b})")),
        (true, false) => {
            let hole = mark(2 * FINE, "#ffffff").replace("<polygon", "<polygon class=\"hole\"");
            mark(7 * FINE / 2, &format!("rgb({r},{g},{b})")) + &hole
        }
    };
    format!(
        "<line x1=\"{x:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\" stroke=\"rgb({r},{g},{b})\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>{marks}",
        x + f64::from(long),
        if measured { 2.0 } else { 1.4 },
        dash_array(style.dash),
    )
}

#[cfg(test)]
pub mod tests;
