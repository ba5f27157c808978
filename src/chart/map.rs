//! A map over two settings: the ranking of algorithms, or how many runs diverged.

use super::axis::{Chart, Ruler};
use super::style::plotters_color;
use super::{Drawing, FINE, FittedText, centred, font, font_size, inner};
use crate::evidence::{self, Map, Square};
use plotters::prelude::*;
use serde_json::{Value, json};

/// What is around the squares: at all sides, at the right, and the names of the axes.
pub const EDGE: u32 = 6;
pub const RIGHT: u32 = 14;
pub const BELOW: u32 = 36;
/// Sizes of the names at the axes and of the titles of the axes.
const NAME: u32 = 11;
const AXIS_TITLE: u32 = 12;
/// Space between names and the axis, with the tick, and between names and the title of the y axis.
const AROUND_NAMES: f64 = 16.0;

/// The width of what stands at the left of the squares: the title of the y axis and the names of
/// the rows, which are longer on a dense map.
pub fn left(map: &Map) -> u32 {
    let least = if map.dense.is_some() { 66 } else { 46 };
    let names = map.y.iter().map(|name| font::width(name, f64::from(NAME), false));
    let widest = names.fold(0.0, f64::max) + f64::from(AXIS_TITLE) + AROUND_NAMES;
    least.max(widest.ceil() as u32)
}

/// The size of the letters with which both titles of the axes have room: the one below the squares
/// may be as wide as they are with the margin at the right twice, since it stands in their middle.
fn title_size(map: &Map, titles: [&str; 2], (wide, high): (u32, u32)) -> u32 {
    let below = wide.saturating_sub(left(map));
    let beside = high.saturating_sub(BELOW + 2 * EDGE);
    let letters = titles.into_iter().zip([below, beside]);
    let letters = letters.map(|(title, room)| f64::from(room) / font::width(title, 1.0, false));
    letters.fold(f64::from(AXIS_TITLE), f64::min).max(6.0) as u32
}

/// The colour of lines and texts over squares.
const INK: RGBColor = RGBColor(20, 20, 20);
/// The texts of a square are parted between words where it is narrow.
const SQUARE_TEXT: FittedText =
    FittedText { smallest: 6, largest: 11, separator: " ", bold: false };
/// The most names on an axis.
const MOST_TICKS: usize = 16;
/// The height of a line of text.
const LINE: f64 = 13.0;

/// The inside of a map; `x` and `y` name its axes.
pub fn draw(map: &Map, x: &str, y: &str, (wide, high): (u32, u32)) -> Drawing {
    let mut svg = String::new();
    {
        let root =
            SVGBackend::with_string(&mut svg, (wide * FINE, high * FINE)).into_drawing_area();
        // Of many names every second, fifth, tenth, … is written.
        let ruler = |names: &[String]| {
            let every = [1, 2, 5, 10, 20, 50, 100];
            let every = every.into_iter().find(|every| names.len() / every <= MOST_TICKS);
            let names_at = names.iter().enumerate().step_by(every.unwrap_or(names.len().max(1)));
            let ticks = names_at.map(|(i, name)| (i as f64 + 0.5, name.clone())).collect();
            Ruler { low: 0.0, high: names.len().max(1) as f64, ticks }
        };
        let nx = map.x.len();
        let mut chart = ChartBuilder::on(&root)
            .margin(EDGE * FINE)
            .margin_right(RIGHT * FINE)
            .x_label_area_size(BELOW * FINE)
            .y_label_area_size(left(map) * FINE)
            .build_cartesian_2d(ruler(&map.x), ruler(&map.y))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(RGBColor(120, 120, 120).stroke_width(FINE / 2))
            .label_style(("sans-serif", font_size(NAME)).into_font().color(&RGBColor(60, 60, 60)))
            .axis_desc_style(
                ("sans-serif", font_size(title_size(map, [x, y], (wide, high))))
                    .into_font()
                    .color(&RGBColor(34, 34, 34)),
            )
            .x_desc(x)
            .y_desc(y)
            .draw()?;
        let squares = wide.saturating_sub(left(map) + RIGHT + EDGE);
        let each = f64::from(squares / nx.max(1) as u32) - 4.0;
        let tall = f64::from(high.saturating_sub(48)) / map.y.len().max(1) as f64;
        if map.dense.is_some() {
            draw_runs(&mut chart, map)?;
        } else {
            for square in &map.squares {
                draw_square(&mut chart, square, (each, tall))?;
            }
        }
        let lines = map.dense.iter().flat_map(|dense| &dense.lines);
        let lines = lines.map(|line| (*line, 2 * FINE));
        let edges = map.edges().into_iter().map(|edge| (edge, 3 * FINE));
        for ((from, to), width) in lines.chain(edges) {
            chart.draw_series([PathElement::new(vec![from, to], INK.stroke_width(width))])?;
        }
        root.present()?;
    }
    Ok(inner(&svg).to_owned())
}

/// A map as values for a drawing by others: `color` names a colour, and each square has texts under
/// a key.
pub fn map_values(
    map: &Map,
    color: impl Fn(evidence::Color) -> Value,
    (key, texts): (&str, impl Fn(&Square) -> Vec<String>),
) -> Value {
    let square = |square: &Square| {
        json!({
            "x": square.x,
            "y": square.y,
            "color": color(square.color()),
            "opacity": square.opacity(),
            "outlined": square.is_outlined(),
            key: texts(square),
        })
    };
    json!({
        "title": map.title,
        "x": map.x,
        "y": map.y,
        "squares": map.squares.iter().map(square).collect::<Vec<_>>(),
        // Lines between points in units of squares.
        "edges": map.edges(),
    })
}

/// The squares of a dense map: those beside each other that look the same are one rectangle.
fn draw_runs(chart: &mut Chart<'_, '_>, map: &Map) -> Result<(), Box<dyn std::error::Error>> {
    let mut squares: Vec<&Square> = map.squares.iter().collect();
    squares.sort_by_key(|square| (square.y, square.x));
    let alike = |a: &&Square, b: &&Square| {
        (a.y, a.x + 1) == (b.y, b.x) && a.color() == b.color() && a.opacity() == b.opacity()
    };
    for run in squares.chunk_by(alike) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let fill = plotters_color(first.color()).mix(first.opacity());
        let (low, left, right) = (first.y as f64, first.x as f64, last.x as f64 + 1.0);
        chart.draw_series([Rectangle::new([(left, low), (right, low + 1.0)], fill.filled())])?;
    }
    Ok(())
}

fn draw_square(
    chart: &mut Chart<'_, '_>,
    square: &Square,
    (wide, tall): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let (x, y) = (square.x as f64, square.y as f64);
    let fill = plotters_color(square.color()).mix(square.opacity());
    let corners = |inset: f64| [(x + inset, y + inset), (x + 1.0 - inset, y + 1.0 - inset)];
    chart.draw_series([Rectangle::new(corners(0.02), fill.filled())])?;
    if square.is_outlined() {
        let outline = Rectangle::new(corners(0.06), INK.stroke_width(FINE));
        chart.draw_series([outline])?;
    }
    let mut lines = square.lines();
    let mut top = if lines.len() > 1 { 0.72 } else { 0.5 };
    if tall < LINE * lines.len() as f64 + 4.0 {
        // There is room for one line.
        let end = |line: &String| {
            if line.starts_with('×') || line.starts_with("and ") { " " } else { ", " }
        };
        let rest: String = lines.iter().skip(1).map(|line| end(line).to_owned() + line).collect();
        lines.truncate(1);
        lines.iter_mut().for_each(|line| line.push_str(&rest));
        top = 0.5;
    }
    let fitted: Vec<(Vec<String>, f64)> =
        lines.iter().map(|line| SQUARE_TEXT.lines(line, wide)).collect();
    let count = fitted.iter().map(|(parts, _)| parts.len()).sum::<usize>();
    // Where a text needs a second line, all of them share the height of the square.
    let step = if count > lines.len() { f64::min(LINE / tall, 0.9 / count as f64) } else { 0.22 };
    if count > lines.len() {
        top = 0.5 + step * (count - 1) as f64 / 2.0;
    }
    let texts =
        fitted.into_iter().flat_map(|(parts, size)| parts.into_iter().map(move |p| (p, size)));
    for (i, (text, size)) in texts.enumerate() {
        let at = (x + 0.5, y + top - step * i as f64);
        chart.draw_series([Text::new(
            text.trim_end().to_owned(),
            at,
            centred(size as u32, INK),
        )])?;
    }
    Ok(())
}
