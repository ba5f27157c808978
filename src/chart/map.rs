//! A map over two settings: the ranking of algorithms, or how many runs diverged.

use super::axis::{Chart, Ruler};
use super::style::plotters_color;
use super::{Drawing, FINE, centred, font, font_size, inner};
use crate::evidence::{Map, Square};
use plotters::prelude::*;

/// The height of a line of text.
const LINE: f64 = 13.0;

/// The inside of a map; `x` and `y` name its axes.
pub fn draw(map: &Map, x: &str, y: &str, (wide, high): (u32, u32)) -> Drawing {
    let mut svg = String::new();
    {
        let root =
            SVGBackend::with_string(&mut svg, (wide * FINE, high * FINE)).into_drawing_area();
        let ruler = |names: &[String]| Ruler {
            low: 0.0,
            high: names.len().max(1) as f64,
            ticks: names.iter().enumerate().map(|(i, n)| (i as f64 + 0.5, n.clone())).collect(),
        };
        let nx = map.x.len();
        let mut chart = ChartBuilder::on(&root)
            .margin(6 * FINE)
            .margin_right(14 * FINE)
            .x_label_area_size(36 * FINE)
            .y_label_area_size(46 * FINE)
            .build_cartesian_2d(ruler(&map.x), ruler(&map.y))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(RGBColor(120, 120, 120).stroke_width(FINE / 2))
            .label_style(("sans-serif", font_size(11)).into_font().color(&RGBColor(60, 60, 60)))
            .axis_desc_style(("sans-serif", font_size(12)).into_font().color(&RGBColor(34, 34, 34)))
            .x_desc(x)
            .y_desc(y)
            .draw()?;
        let each = f64::from((wide - 70) / nx.max(1) as u32) - 4.0;
        let tall = f64::from(high.saturating_sub(48)) / map.y.len().max(1) as f64;
        for square in &map.squares {
            draw_square(&mut chart, square, (each, tall))?;
        }
        for (from, to) in map.edges() {
            let heavy = RGBColor(20, 20, 20).stroke_width(3 * FINE);
            chart.draw_series([PathElement::new(vec![from, to], heavy)])?;
        }
        root.present()?;
    }
    Ok(inner(&svg).to_owned())
}

fn draw_square(
    chart: &mut Chart<'_, '_>,
    square: &Square,
    (wide, tall): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let (x, y) = (square.x as f64, square.y as f64);
    let ink = RGBColor(20, 20, 20);
    let fill = plotters_color(square.color()).mix(square.opacity());
    let corners = |inset: f64| [(x + inset, y + inset), (x + 1.0 - inset, y + 1.0 - inset)];
    chart.draw_series([Rectangle::new(corners(0.02), fill.filled())])?;
    if square.is_outlined() {
        let outline = Rectangle::new(corners(0.06), ink.stroke_width(FINE));
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
    for (i, line) in lines.into_iter().enumerate() {
        let at = (x + 0.5, y + top - 0.22 * i as f64);
        let letters = (wide / font::width(&line, 1.0, false)).clamp(6.0, 11.0) as u32;
        chart.draw_series([Text::new(line, at, centred(letters, ink))])?;
    }
    Ok(())
}
