//! What all drawings share: the resolution at which plotters draws, and text in SVG.

use super::compact::compact;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Plotters' pixels per pixel of a drawing: plotters draws in whole pixels, which would be too coarse.
pub const FINE: u32 = 4;

/// What a panel's drawing function returns: the inside of an SVG element, or the error of plotters.
pub type Drawing = Result<String, Box<dyn std::error::Error>>;

/// The number to give plotters for letters of this size in pixels of the drawing: plotters draws in its own pixels, and
/// divides a font size by 1.24.
pub fn font_size(size: u32) -> f64 {
    f64::from(size * FINE) * 1.24
}

/// The plotters style of a text whose middle is at its place, both across and upwards; `size` is in pixels of the
/// drawing.
pub fn centred(size: u32, color: RGBColor) -> TextStyle<'static> {
    let style = ("sans-serif", font_size(size)).into_font().color(&color);
    style.pos(Pos::new(HPos::Center, VPos::Center))
}

/// A text with its special characters escaped, for an SVG element or attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The output of plotters without its enclosing `<svg>` element, in fewer characters ([`compact`]), to be put in a
/// group of a larger drawing.
pub fn inside_svg(svg: &str) -> String {
    let from = match svg.find("<svg") {
        Some(element) => svg[element..].find('>').map_or(0, |end| element + end + 1),
        None => 0,
    };
    let to = svg.rfind("</svg>").unwrap_or(svg.len());
    compact(svg[from..to].trim())
}
