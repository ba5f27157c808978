//! The growth of time with clients, local steps and dimension.

use crate::support::{Timing, digits};
use crate::values::Values;
use driftbench::analysis::{
    Body, Color, Curve, Figure, LegendEntry, Line, Panel, Plot, Point, Reference, Scale, Series,
    Style,
};
use driftbench::chart;
use driftbench::stats::verdict::slope_weights;

/// Groups of criterion, and the names of their panels.
const GROUPS: [(&str, &str); 3] =
    [("growth N", "clients N"), ("growth TH", "local steps TH"), ("growth d", "dimension d")];

/// The results of a group, `growth N/10` and so on, by their number.
fn points<'a>(values: &'a Values, group: &str) -> Vec<(f64, &'a Timing)> {
    let point =
        |t: &'a Timing| Some((t.id.strip_prefix(group)?.strip_prefix('/')?.parse().ok()?, t));
    let mut points: Vec<(f64, &Timing)> = values.timings.values().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The slope of log time over log size, and the time of a client step at each size.
///
/// # Errors
/// If there are fewer than two sizes.
pub fn slope(values: &Values, group: &str) -> Result<(f64, String), String> {
    let points = points(values, group);
    if points.len() < 2 {
        return Err(format!("no results {group}/..."));
    }
    let weights = slope_weights(&points.iter().map(|(x, _)| *x).collect::<Vec<_>>());
    let logs = points.iter().map(|(_, t)| libm::log(t.iteration.value));
    let slope = weights.iter().zip(logs).map(|(w, log)| w * log).sum();
    let each = points.iter().map(|(x, t)| format!("{x}: {}", digits(t.each().value)));
    Ok((slope, each.collect::<Vec<_>>().join(", ")))
}

/// A coordinate that takes this many times longer than the fastest no longer fits in a cache.
const RISE: f64 = 1.25;

/// Nanoseconds per step and coordinate by dimension, and the dimension at which they rise.
///
/// # Errors
/// If there are fewer than two dimensions.
pub fn coordinates(values: &Values) -> Result<String, String> {
    let points = points(values, "growth d");
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err("no results growth d/...".into());
    };
    // Elements are steps, the same for every d, or steps times coordinates.
    let steps_alone = first.1.elements == last.1.elements;
    let each = |d: f64, t: &Timing| t.each().value / if steps_alone { d } else { 1.0 };
    let (mut least, mut rises, mut texts) = (f64::INFINITY, None, Vec::new());
    for (d, timing) in &points {
        let time = each(*d, timing);
        least = least.min(time);
        rises = rises.or((time > RISE * least).then_some(*d));
        texts.push(format!("{d}: {}", digits(time)));
    }
    let rises = rises.map_or("it rises nowhere".into(), |d| format!("it rises from d = {d}"));
    Ok(format!("{} ns; {rises}", texts.join(", ")))
}

/// The figure; `None` without results.
///
/// # Errors
/// If the figure cannot be drawn.
pub fn svg(values: &Values) -> Result<Option<String>, String> {
    let panels: Vec<Panel> = GROUPS
        .iter()
        .map(|(group, title)| (title, points(values, group)))
        .filter(|(_, points)| points.len() > 1)
        .map(|(title, points)| panel(title, &points))
        .collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let legend = [measured(), Line::Reference(SLOPE_1)].map(LegendEntry::Line).to_vec();
    let body = Body::Plot(Plot {
        panels,
        legend,
        x: "size".into(),
        y: "nanoseconds in all".into(),
        scale_x: Scale::Log,
        scale_y: Scale::Log,
    });
    let (id, title) = ("growth".into(), "Time over clients, local steps and dimension".into());
    let figure = Figure {
        id,
        title,
        caption: String::new(),
        columns: 3,
        large: None,
        exploration: None,
        body,
    };
    chart::svg(&figure).map(Some)
}

const SLOPE_1: Reference = Reference::Slope(1.0);

fn measured() -> Line {
    Line::Measured(Curve::new("measured", Style::solid(Color::Palette(0))))
}

fn panel(title: &str, points: &[(f64, &Timing)]) -> Panel {
    let (x0, y0) = (points[0].0, points[0].1.iteration.value);
    let times = points.iter().map(|(x, t)| {
        let (low, high) = t.iteration.interval.unwrap_or((f64::NAN, f64::NAN));
        Point { x: *x, y: t.iteration.value, low, high, n: 1 }
    });
    let linear = points.iter().map(|(x, _)| Point::bare(*x, y0 * x / x0));
    Panel {
        title: title.into(),
        series: vec![
            Series::new(measured(), times.collect()),
            Series::new(Line::Reference(SLOPE_1), linear.collect()),
        ],
    }
}
