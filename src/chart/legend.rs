//! The legend above the panels, and the samples of lines in it and in labels.

use super::drawing::{FINE, escape};
use super::font::{self, FontWeight};
use super::style::{color_name, dash_array, marker, rgb};
use crate::evidence::{Color, LegendEntry, Style};
use std::fmt::Write;

/// Height of a line of the legend.
const LINE: u32 = 18;
/// Space between the legend and the panels.
const BELOW: u32 = 8;
/// Font size of the names.
const NAME: f64 = 12.0;
/// Where a line begins.
const LEFT: f64 = 2.0;

/// A legend. The panels of the figure begin at y = 0, and the legend stands above, at negative y.
pub struct DrawnLegend {
    /// The legend as SVG text; empty without entries.
    pub svg: String,
    /// The height in pixels with the space below it; 0 without entries.
    pub height: u32,
}

/// An entry of a legend in its place.
struct LegendKey<'a> {
    entry: &'a LegendEntry,
    name: String,
    /// The left end of the entry in pixels.
    x: f64,
    /// The number of its line from above, from 0.
    line: u32,
}

/// Draws a legend in a figure of this width in pixels: of each entry a sample of its line or its patch, and its name.
/// `opacity` gives the opacity with which the figure draws squares of a colour, for their patch. Style sheets find an
/// entry by its attribute `data-color`, and give it another colour on dark paper.
pub fn draw_legend(
    legend: &[&LegendEntry],
    width: u32,
    opacity: impl Fn(Color) -> f64,
) -> DrawnLegend {
    let keys = place_keys(legend, width);
    let Some(last) = keys.last() else { return DrawnLegend { svg: String::new(), height: 0 } };
    let height = (last.line + 1) * LINE + BELOW;
    let mut svg = String::from("<g class=\"legend\" font-size=\"12\" fill=\"#222222\">\n");
    for LegendKey { entry, name, x, line } in &keys {
        let middle = f64::from(line * LINE) + 9.0 - f64::from(height);
        let style = entry.style();
        let sample = if entry.is_patch() {
            patch_sample(style.color, *x, middle, opacity(style.color))
        } else {
            line_sample(style, *x, middle, sample_width(entry), entry.is_measured())
        };
        let name = escape(name);
        let _ = writeln!(
            svg,
            "<g class=\"key\" data-label=\"{name}\" data-color=\"{}\">{sample}<text x=\"{}\" y=\"{}\">{name}</text></g>",
            color_name(style.color),
            x + f64::from(5 + sample_width(entry)),
            middle + 4.0
        );
    }
    svg.push_str("</g>\n");
    DrawnLegend { svg, height }
}

/// The places of the entries of a legend, side by side in lines of `width` pixels. An entry that is wider than a line
/// has a line of its own.
fn place_keys<'a>(legend: &[&'a LegendEntry], width: u32) -> Vec<LegendKey<'a>> {
    let mut keys = Vec::new();
    let mut x = LEFT;
    let mut line = 0;
    for &entry in legend {
        let name = entry.name();
        let long = f64::from(20 + sample_width(entry))
            + font::width(&name, NAME, FontWeight::Regular).ceil();
        if x > LEFT && x + long > f64::from(width) {
            x = LEFT;
            line += 1;
        }
        keys.push(LegendKey { entry, name, x, line });
        x += long;
    }
    keys
}

/// The width in pixels of the sample before a name: of a line, so long that the pattern of its dashes is seen.
fn sample_width(entry: &LegendEntry) -> u32 {
    if entry.is_patch() { 22 } else { 40 }
}

/// A patch in the colour of the squares of a map, as SVG text: its left edge is at `x`, and its middle at the height
/// `middle`.
fn patch_sample(color: Color, x: f64, middle: f64, opacity: f64) -> String {
    let (r, g, b) = rgb(color);
    let y = middle - 6.0;
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"22\" height=\"12\" fill=\"rgb({r},{g},{b})\" fill-opacity=\"{opacity}\"/>"
    )
}

/// The stretch of line before a name in a legend or a label, as SVG text: `long` pixels from `x` on, at the height
/// `middle`, with a marker if `has_marks`. As in a panel, a prediction is thinner, and its marker is open.
pub fn line_sample(style: Style, x: f64, middle: f64, long: u32, has_marks: bool) -> String {
    let (r, g, b) = rgb(style.color);
    let is_measured = style.dash.is_measured();
    let color = format!("rgb({r},{g},{b})");
    let center = x + f64::from(long) / 2.0;
    let mut marks = String::new();
    if has_marks && is_measured {
        marks = marker_polygon(style, center, middle, 4 * FINE, &color);
    } else if has_marks {
        marks = marker_polygon(style, center, middle, 7 * FINE / 2, &color);
        let hole = marker_polygon(style, center, middle, 2 * FINE, "#ffffff");
        marks += &hole.replace("<polygon", "<polygon class=\"hole\"");
    }
    format!(
        "<line x1=\"{x:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\" stroke=\"{color}\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>{marks}",
        x + f64::from(long),
        if is_measured { 2.0 } else { 1.4 },
        dash_array(style.dash),
    )
}

/// The marker of a style around the point (`x`, `y`) as SVG text, filled with a colour. The radius is in plotters'
/// pixels, the point in pixels of the drawing.
fn marker_polygon(style: Style, x: f64, y: f64, radius: u32, fill: &str) -> String {
    let mut corners = Vec::new();
    for (right, down) in marker(style).outline(radius) {
        let right = f64::from(right) / f64::from(FINE);
        let down = f64::from(down) / f64::from(FINE);
        corners.push(format!("{:.2},{:.2}", x + right, y + down));
    }
    format!("<polygon points=\"{}\" fill=\"{fill}\"/>", corners.join(" "))
}
