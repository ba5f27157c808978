//! A map over two settings: the ranking of algorithms, or how many runs diverged.

use super::axis::{Chart, Ruler};
use super::drawing::{Drawing, FINE, centred, font_size, inside_svg};
use super::fitted_text::{FittedLines, FittedText};
use super::font::{self, FontWeight};
use super::style::plotters_color;
use crate::evidence::{self, Map, Square};
use plotters::prelude::*;
use serde_json::{Value, json};
use std::error::Error;

/// Space at all sides of the squares.
pub const EDGE: u32 = 6;
/// Further space at their right.
pub const RIGHT: u32 = 14;
/// Space below them for the names and the title of the x axis.
pub const BELOW: u32 = 36;
/// Size of the names at the axes.
const NAME: u32 = 11;
/// Size of the titles of the axes, where they have room.
const AXIS_TITLE: u32 = 12;
/// Space between names and the axis, with the tick, and between names and the title of the y axis.
const AROUND_NAMES: f64 = 16.0;

/// The width in pixels of what stands at the left of the squares: the title of the y axis and the names of the rows. A
/// dense map has at least more of it than another.
pub fn left_margin(map: &Map) -> u32 {
    let least = if map.dense.is_some() { 66 } else { 46 };
    let names = map.y.iter().map(|name| font::width(name, f64::from(NAME), FontWeight::Regular));
    let widest = names.fold(0.0, f64::max) + f64::from(AXIS_TITLE) + AROUND_NAMES;
    least.max(widest.ceil() as u32)
}

/// The size of the letters with which the titles of both axes, `x` and `y`, have room in a map of `wide` times `high`
/// pixels: at most [`AXIS_TITLE`], and at least 6.
fn title_size(map: &Map, x: &str, y: &str, wide: u32, high: u32) -> u32 {
    let room_below = wide.saturating_sub(left_margin(map));
    let room_at_left = high.saturating_sub(BELOW + 2 * EDGE);
    let fits_below = f64::from(room_below) / font::width(x, 1.0, FontWeight::Regular);
    let fits_at_left = f64::from(room_at_left) / font::width(y, 1.0, FontWeight::Regular);
    f64::from(AXIS_TITLE).min(fits_below).min(fits_at_left).max(6.0) as u32
}

/// The colour of lines and texts over squares. `templates/figure.css` finds lines by it (`#141414`), and replaces it on
/// dark paper.
const INK: RGBColor = RGBColor(20, 20, 20);
/// How a text is made to fit in a narrow square: by smaller letters, then by a second line.
const SQUARE_TEXT: FittedText =
    FittedText { smallest: 6, largest: 11, separator: " ", weight: FontWeight::Regular };
/// The most names on an axis.
const MOST_TICKS: usize = 16;
/// The height of a line of text.
const LINE: f64 = 13.0;

/// Draws a map without its title, in plotters' pixels: its axes with the titles `x` and `y`, its squares, with texts
/// unless it is dense, and lines over them. `wide` and `high` are in pixels of the drawing.
pub fn draw(map: &Map, x: &str, y: &str, wide: u32, high: u32) -> Drawing {
    let mut svg = String::new();
    // Plotters borrows the text until its drawing area is dropped.
    {
        let root =
            SVGBackend::with_string(&mut svg, (wide * FINE, high * FINE)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(EDGE * FINE)
            .margin_right(RIGHT * FINE)
            .x_label_area_size(BELOW * FINE)
            .y_label_area_size(left_margin(map) * FINE)
            .build_cartesian_2d(names_ruler(&map.x), names_ruler(&map.y))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(RGBColor(120, 120, 120).stroke_width(FINE / 2))
            .label_style(("sans-serif", font_size(NAME)).into_font().color(&RGBColor(60, 60, 60)))
            .axis_desc_style(
                ("sans-serif", font_size(title_size(map, x, y, wide, high)))
                    .into_font()
                    .color(&RGBColor(34, 34, 34)),
            )
            .x_desc(x)
            .y_desc(y)
            .draw()?;
        if map.dense.is_some() {
            draw_runs(&mut chart, map)?;
        } else {
            let all_wide = wide.saturating_sub(left_margin(map) + RIGHT + EDGE);
            // The height without the edges and what is below the squares.
            let all_tall = f64::from(high.saturating_sub(48));
            let text_wide = f64::from(all_wide / map.x.len().max(1) as u32) - 4.0;
            let tall = all_tall / map.y.len().max(1) as f64;
            for square in &map.squares {
                draw_square(&mut chart, square, text_wide, tall)?;
            }
        }
        draw_lines(&mut chart, map)?;
        root.present()?;
    }
    Ok(inside_svg(&svg))
}

/// The axis of a map as plotters reads it: one unit for each row or column of squares, with its name in the middle.
/// If there are many names, every second, fifth, tenth, … is written: at most about [`MOST_TICKS`].
fn names_ruler(names: &[String]) -> Ruler {
    let steps = [1, 2, 5, 10, 20, 50, 100];
    let step = steps.into_iter().find(|step| names.len() / step <= MOST_TICKS);
    let step = step.unwrap_or(names.len().max(1));
    let mut ticks = Vec::new();
    for (i, name) in names.iter().enumerate().step_by(step) {
        ticks.push((i as f64 + 0.5, name.clone()));
    }
    Ruler { low: 0.0, high: names.len().max(1) as f64, ticks }
}

/// Draws the lines that theory predicts over a dense map, and above them, thicker, the edges between squares where
/// second moments stay bounded and squares where they do not.
fn draw_lines(chart: &mut Chart<'_, '_>, map: &Map) -> Result<(), Box<dyn Error>> {
    for (from, to) in map.dense.iter().flat_map(|dense| &dense.lines) {
        draw_line(chart, *from, *to, 2 * FINE)?;
    }
    for (from, to) in map.edges() {
        draw_line(chart, from, to, 3 * FINE)?;
    }
    Ok(())
}

/// Draws a line between two points, in units of squares; its width is in plotters' pixels.
fn draw_line(
    chart: &mut Chart<'_, '_>,
    from: (f64, f64),
    to: (f64, f64),
    width: u32,
) -> Result<(), Box<dyn Error>> {
    chart.draw_series([PathElement::new(vec![from, to], INK.stroke_width(width))])?;
    Ok(())
}

/// A map as JSON, from which the Python package has it drawn: `color` writes a colour in the form that the drawer
/// knows, and each square has its `texts` under `key`, also in a dense map. The lines that theory predicts over a dense
/// map are not in it.
pub fn map_values(
    map: &Map,
    color: impl Fn(evidence::Color) -> Value,
    key: &str,
    texts: impl Fn(&Square) -> Vec<String>,
) -> Value {
    let mut squares = Vec::new();
    for square in &map.squares {
        squares.push(json!({
            "x": square.x,
            "y": square.y,
            "color": color(square.color()),
            "opacity": square.opacity(),
            "outlined": square.is_outlined(),
            key: texts(square),
        }));
    }
    json!({
        "title": map.title,
        "x": map.x,
        "y": map.y,
        "squares": squares,
        // Lines between points in units of squares.
        "edges": map.edges(),
    })
}

/// Draws the squares of a dense map without texts: neighbours in a row that look the same, here called a run, are one
/// rectangle, which makes the file much smaller.
fn draw_runs(chart: &mut Chart<'_, '_>, map: &Map) -> Result<(), Box<dyn Error>> {
    let mut squares: Vec<&Square> = map.squares.iter().collect();
    squares.sort_by_key(|square| (square.y, square.x));
    for run in squares.chunk_by(|left, right| continues(left, right)) {
        let first = run[0];
        let last = run[run.len() - 1];
        let fill = plotters_color(first.color()).mix(first.opacity());
        let bottom = first.y as f64;
        let corners = [(first.x as f64, bottom), (last.x as f64 + 1.0, bottom + 1.0)];
        chart.draw_series([Rectangle::new(corners, fill.filled())])?;
    }
    Ok(())
}

/// Whether the second square stands next to the first at its right and looks the same.
fn continues(left: &Square, right: &Square) -> bool {
    let is_next = left.y == right.y && left.x + 1 == right.x;
    is_next && left.color() == right.color() && left.opacity() == right.opacity()
}

/// Draws a square of a map that is not dense, with its texts and with an outline where runs and theory differ.
/// `text_wide` is the room for a line of text, and `tall` the height of the square, both in pixels of the drawing.
fn draw_square(
    chart: &mut Chart<'_, '_>,
    square: &Square,
    text_wide: f64,
    tall: f64,
) -> Result<(), Box<dyn Error>> {
    let x = square.x as f64;
    let y = square.y as f64;
    let fill = plotters_color(square.color()).mix(square.opacity());
    let corners = |inset: f64| [(x + inset, y + inset), (x + 1.0 - inset, y + 1.0 - inset)];
    chart.draw_series([Rectangle::new(corners(0.02), fill.filled())])?;
    if square.is_outlined() {
        let outline = Rectangle::new(corners(0.06), INK.stroke_width(FINE));
        chart.draw_series([outline])?;
    }
    let SquareTexts { lines, top, step } = fit_texts(square.lines(), text_wide, tall);
    for (i, line) in lines.into_iter().enumerate() {
        let place = (x + 0.5, y + top - step * i as f64);
        let style = centred(line.size as u32, INK);
        chart.draw_series([Text::new(line.words, place, style)])?;
    }
    Ok(())
}

/// The texts of a square in lines that fit.
struct SquareTexts {
    /// The lines from above.
    lines: Vec<SquareLine>,
    /// The middle of the first line above the lower edge, as a fraction of the square.
    top: f64,
    /// The distance between lines, as a fraction of the square.
    step: f64,
}

/// A line of text in a square.
struct SquareLine {
    words: String,
    /// The size of the letters in pixels.
    size: f64,
}

/// Puts the texts of a square in lines, each text in one line or two of `wide` pixels. They are joined to one text
/// where the square, `tall` pixels high, has no room for a line each.
fn fit_texts(texts: Vec<String>, wide: f64, tall: f64) -> SquareTexts {
    let has_room = tall >= LINE * texts.len() as f64 + 4.0;
    let mut top = if has_room && texts.len() > 1 { 0.72 } else { 0.5 };
    let texts = if has_room { texts } else { joined_texts(texts) };
    let fitted: Vec<FittedLines> = texts.iter().map(|text| SQUARE_TEXT.fit(text, wide)).collect();
    let count: usize = fitted.iter().map(|text| text.lines.len()).sum();
    let largest = fitted.iter().map(|text| text.size).fold(0.0, f64::max);
    // Fractions of the square that suit texts of one line each: the first line at 0.72 or 0.5, the next 0.22 below.
    let mut step = 0.22;
    if count > texts.len() {
        // A text needs a second line: all lines share the height of the square.
        step = f64::min(LINE / tall, 0.9 / count as f64);
        top = 0.5 + step * (count - 1) as f64 / 2.0;
    } else if count > 1 && step * tall < largest {
        // Lines do not touch where a square is hardly higher than they are.
        step = LINE / tall;
        top = 0.5 + step * (count - 1) as f64 / 2.0;
    }
    let mut lines = Vec::new();
    for FittedLines { lines: parts, size } in fitted {
        for part in parts {
            lines.push(SquareLine { words: part.trim_end().to_owned(), size });
        }
    }
    SquareTexts { lines, top, step }
}

/// All texts of a square in one, for a square with room for one line: with commas between them, except before a
/// factor or the number of further names.
fn joined_texts(texts: Vec<String>) -> Vec<String> {
    let mut texts = texts.into_iter();
    let Some(mut all) = texts.next() else { return Vec::new() };
    for text in texts {
        let continues = text.starts_with('×') || text.starts_with("and ");
        all += if continues { " " } else { ", " };
        all += &text;
    }
    vec![all]
}
