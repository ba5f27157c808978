//! Figures as SVG: the only user of plotters.
//!
//! Axes are drawn first and every series is a layer of its own above them, so
//! that a page can hide one. Plotters draws at four times the size, since its
//! coordinates are whole pixels, and without fonts: text is left to the viewer.
//!
//! *Invariant*: values that are not finite or out of range are omitted and interrupt a curve.

mod axis;
pub mod export;
pub mod font;
mod map;
mod panel;
pub mod style;

use crate::analysis::{Body, Figure, LegendEntry, Panel, Scale};
use axis::Axis;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::{Value, json};
use std::fmt::Write;
use style::{color_name, dash_array, marker, rgb};

/// Plotters' pixels per pixel of the drawing.
const FINE: u32 = 4;

/// Width and height of a panel: the fewer are in a row, the larger they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    wide: u32,
    high: u32,
}

impl Size {
    fn new(figure: &Figure) -> Self {
        match figure.columns.min(figure.body.panels()) {
            0 | 1 => Self { wide: 620, high: 360 },
            2 => Self { wide: 480, high: 320 },
            _ => Self { wide: 330, high: 250 },
        }
    }

    /// The size in plotters' pixels.
    fn fine(self) -> (u32, u32) {
        (self.wide * FINE, self.high * FINE)
    }
}

/// Height of a panel's title and of a line of the legend.
const LINE: u32 = 18;

/// Ends of the y axis that the panels of a figure share; `None` of maps.
pub fn extent(figure: &Figure) -> Option<(f64, f64)> {
    let Body::Plot(plot) = &figure.body else { return None };
    let Axis { low, high, .. } = panel::Frames::new(plot, figure.columns, Size::new(figure)).y;
    Some(match plot.scale_y {
        Scale::Linear => (low, high),
        Scale::Log => (libm::pow(10.0, low), libm::pow(10.0, high)),
    })
}

/// A font size in plotters' pixels; plotters divides it by 1.24.
fn font(size: u32) -> f64 {
    f64::from(size * FINE) * 1.24
}

fn centred(size: u32, color: RGBColor) -> TextStyle<'static> {
    let style = ("sans-serif", font(size)).into_font().color(&color);
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

/// Where the panels of a figure of curves are, so that a page can draw into them; `None` of a map.
pub fn layout(figure: &Figure) -> Option<Value> {
    let Body::Plot(plot) = &figure.body else { return None };
    let size = Size::new(figure);
    let frames = panel::Frames::new(plot, figure.columns, size);
    let frame = |(i, panel): (usize, &Panel)| {
        // Ends of the axes: decimal logarithms of a logarithmic one.
        let (x, y) = frames.axes(i);
        json!({ "title": panel.title, "x": [x.low, x.high], "y": [y.low, y.high] })
    };
    Some(json!({
        // Width and height of a panel; margins of the plotting area: left, top, right, bottom.
        "size": [size.wide, size.high],
        "margins": panel::MARGINS,
        // Height of a panel's title.
        "title": LINE,
        // Panels in a row.
        "columns": figure.columns.max(1).min(figure.body.panels().max(1)),
        "frames": plot.panels.iter().enumerate().map(frame).collect::<Vec<_>>(),
    }))
}

/// A drawing of a panel's size by plotters, as the inside of an SVG element.
type Drawing = Result<String, Box<dyn std::error::Error>>;

/// The figure as a file.
///
/// # Errors
/// The error of plotters, if it cannot draw.
pub fn svg(figure: &Figure) -> Result<String, String> {
    let size = Size::new(figure);
    let drawings: Vec<(&str, Drawing)> = match &figure.body {
        Body::Plot(plot) => {
            let frames = panel::Frames::new(plot, figure.columns, size);
            let panels = plot.panels.iter().enumerate();
            panels.map(|(i, panel)| (panel.title.as_str(), frames.draw(i))).collect()
        }
        Body::Maps(maps) => {
            let draw = |map| map::draw(map, &maps.x, &maps.y, size);
            maps.maps.iter().map(|map| (map.title.as_str(), draw(map))).collect()
        }
    };
    let mut panels = Vec::new();
    for (title, drawing) in drawings {
        panels.push((title, drawing.map_err(|e| format!("figure {}: {e}", figure.id))?));
    }
    Ok(document(figure, size, &panels))
}

/// The SVG of some panels under the figure's legend.
fn document(figure: &Figure, size: Size, panels: &[(&str, String)]) -> String {
    let columns = (figure.columns.max(1) as u32).min(panels.len().max(1) as u32);
    let rows = (panels.len() as u32).div_ceil(columns);
    let width = columns * size.wide + 10;
    let (keys, lines) = legend_lines(figure.legend(), width);
    let top = 10 + lines * LINE;
    let height = top + rows * (size.high + LINE) + 6;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{keys}",
        escape(&figure.title)
    );
    for (i, (title, drawing)) in panels.iter().enumerate() {
        let x = i as u32 % columns * size.wide;
        let y = top + i as u32 / columns * (size.high + LINE);
        let middle = size.wide / 2 + 20;
        let _ = write!(
            out,
            "<g class=\"panel\" transform=\"translate({x},{y})\">\n<text x=\"{middle}\" y=\"13\" font-size=\"12\" text-anchor=\"middle\" fill=\"#222222\">{}</text>\n<g transform=\"translate(0,{LINE}) scale({})\">\n{drawing}\n</g>\n</g>\n",
            escape(title),
            1.0 / f64::from(FINE),
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The legend above the panels, and how many lines it takes.
fn legend_lines(legend: &[LegendEntry], width: u32) -> (String, u32) {
    let mut out = String::from("<g class=\"legend\" font-size=\"12\" fill=\"#222222\">\n");
    let (mut x, mut line) = (12, 0);
    for entry in legend {
        let (name, style) = (entry.name(), entry.style());
        let long = 38 + 7 * name.chars().count() as u32;
        if x > 12 && x + long > width {
            (x, line) = (12, line + 1);
        }
        let y = 6 + line * LINE;
        let name = escape(&name);
        let _ = writeln!(
            out,
            "<g class=\"key\" data-label=\"{name}\" data-color=\"{}\">{}<text x=\"{}\" y=\"{}\">{name}</text></g>",
            color_name(style.color),
            legend_sample(entry, x, y),
            x + 31,
            y + 11
        );
        x += long;
    }
    out.push_str("</g>\n");
    (out, if legend.is_empty() { 0 } else { line + 1 })
}

/// The patch or the stretch of line before an entry's name; only measured curves have markers.
fn legend_sample(entry: &LegendEntry, x: u32, y: u32) -> String {
    let style = entry.style();
    let (r, g, b) = rgb(style.color);
    if entry.is_patch() {
        return format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"22\" height=\"12\" fill=\"rgb({r},{g},{b})\"/>"
        );
    }
    let (measured, middle) = (style.dash.is_measured(), y + 7);
    let corner = |(a, b): (i32, i32)| {
        let [a, b] = [a, b].map(|v| f64::from(v) / f64::from(FINE));
        format!("{},{}", f64::from(x + 13) + a, f64::from(middle) + b)
    };
    let outline = marker(style).outline(4 * FINE).into_iter();
    let corners: Vec<String> = outline.filter(|_| measured).map(corner).collect();
    format!(
        "<line x1=\"{x}\" y1=\"{middle}\" x2=\"{}\" y2=\"{middle}\" stroke=\"rgb({r},{g},{b})\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/><polygon points=\"{}\" fill=\"rgb({r},{g},{b})\"/>",
        x + 26,
        if measured { 2.0 } else { 1.4 },
        dash_array(style.dash),
        corners.join(" ")
    )
}

#[cfg(test)]
mod tests;
