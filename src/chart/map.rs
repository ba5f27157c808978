//! A map over two settings: who wins, by what factor.

use super::axis::Ruler;
use super::look::color;
use super::{Drawing, FINE, Size, centred, font, inner};
use crate::analysis::{Map, Style};
use plotters::prelude::*;

/// The inside of a map; `x` and `y` name its axes.
pub fn draw(map: &Map, x: &str, y: &str, size: Size) -> Drawing {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size.fine()).into_drawing_area();
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
            .label_style(("sans-serif", font(11)).into_font().color(&RGBColor(60, 60, 60)))
            .axis_desc_style(("sans-serif", font(12)).into_font().color(&RGBColor(34, 34, 34)))
            .x_desc(x)
            .y_desc(y)
            .draw()?;
        let ink = RGBColor(20, 20, 20);
        let wide = (size.wide - 70) / nx.max(1) as u32;
        let letters = (wide / 9).clamp(6, 11);
        for cell in &map.cells {
            let (x, y) = (cell.x as f64, cell.y as f64);
            let fill = color(Style { color: cell.color, dash: 0 });
            let fill = fill.mix(if cell.sure { 0.55 } else { 0.18 });
            let square =
                Rectangle::new([(x + 0.02, y + 0.02), (x + 0.98, y + 0.98)], fill.filled());
            chart.draw_series([square])?;
            let parts: Vec<&str> = cell.detail.splitn(2, ' ').collect();
            let lines = std::iter::once(cell.winner.as_str()).chain(parts.iter().copied());
            for (i, line) in lines.enumerate() {
                let at = (x + 0.5, y + 0.72 - 0.22 * i as f64);
                chart.draw_series([Text::new(line.to_owned(), at, centred(letters, ink))])?;
            }
        }
        root.present()?;
    }
    Ok(inner(&svg).to_owned())
}
