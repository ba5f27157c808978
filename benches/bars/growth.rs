//! The growth of time with clients, local steps and dimension, and of a step beside the peer's.

use crate::support::{Timing, digits};
use crate::values::Values;
use exactfed::chart;
use exactfed::evidence::{
    Body, Color, Curve, CurveValue, Figure, LegendEntry, Line, Panel, Plot, Point, Reference,
    Scale, Series, Style,
};
use exactfed::stats::verdict::slope_weights;

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
    let legend = vec![measured("measured", Color::of_family(0)), Line::Reference(SLOPE_1)];
    draw(
        "Time over clients, local steps and dimension",
        panels,
        legend,
        "size",
        "nanoseconds in all",
    )
}

/// Panels of the figure over the dimension: what the names of their workloads begin and end with.
const WORKLOADS: [(&str, &str, &str); 4] = [
    ("TD(0)", "fedlsa wide", ""),
    ("logistic regression", "fedavg wide logistic", ""),
    ("softmax, 10 classes", "fedavg softmax", " batch=1"),
    ("sparse logistic regression", "fedavg sparse", " H=100"),
];

/// The time of a step over d on one thread, and numba's; `None` if no peer was measured.
///
/// # Errors
/// If the figure cannot be drawn.
pub fn over_dimension(values: &Values) -> Result<Option<String>, String> {
    let lines =
        [("exactfed", "ours", Color::of_family(0)), ("numba", "peers/numba", Color::of_family(1))];
    let panel = |(title, first, last): &(&str, &str, &str)| {
        let series = lines.map(|(name, who, color)| {
            let mut points: Vec<Point> = (values.measured.iter())
                .filter_map(|(id, (value, _))| {
                    let workload = id.strip_prefix(who)?.strip_prefix('/')?.strip_suffix(ONE)?;
                    let rest = workload.strip_prefix(first)?.strip_suffix(last)?;
                    let d = rest.split_once(" d=")?.1.parse().ok()?;
                    Some(Point::bare(d, value.value))
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series::new(measured(name, color), points)
        });
        Panel { title: (*title).into(), series: series.to_vec() }
    };
    let panels: Vec<Panel> = WORKLOADS.iter().map(panel).collect();
    if panels.iter().flat_map(|panel| &panel.series).any(|series| series.points.is_empty()) {
        return Ok(None);
    }
    let legend = lines.map(|(name, _, color)| measured(name, color)).to_vec();
    let title = "Time of a client step over the features of a record, one thread";
    draw(title, panels, legend, "features d", "nanoseconds")
}

const ONE: &str = "/threads=1";

fn draw(
    title: &str,
    panels: Vec<Panel>,
    lines: Vec<Line>,
    x: &str,
    y: &str,
) -> Result<Option<String>, String> {
    let columns = if panels.len().is_multiple_of(2) { 2 } else { 3 };
    let legend = lines.into_iter().map(LegendEntry::Line).collect();
    let (scale_x, scale_y) = (Scale::Log, Scale::Log);
    let labels = CurveValue::last(scale_y);
    let (x, y) = (x.into(), y.into());
    let body = Body::Plot(Plot { panels, legend, x, y, scale_x, scale_y, labels });
    let (id, title, caption) = ("growth".into(), title.into(), String::new());
    let figure = Figure { id, title, caption, columns, large: None, exploration: None, body };
    chart::svg(&figure, chart::PAGE).map(Some).map_err(|e| e.to_string())
}

const SLOPE_1: Reference = Reference::Slope(1.0);

fn measured(name: &str, color: Color) -> Line {
    Line::Measured(Curve::new(name, Style::solid(color)))
}

fn panel(title: &str, points: &[(f64, &Timing)]) -> Panel {
    let (x0, y0) = (points[0].0, points[0].1.iteration.value);
    let times = points.iter().map(|(x, t)| {
        let (low, high) = t.iteration.interval.unwrap_or((f64::NAN, f64::NAN));
        Point { x: *x, y: t.iteration.value, low, high, n: 1, geometric: f64::NAN }
    });
    let linear = points.iter().map(|(x, _)| Point::bare(*x, y0 * x / x0));
    Panel {
        title: title.into(),
        series: vec![
            Series::new(measured("measured", Color::of_family(0)), times.collect()),
            Series::new(Line::Reference(SLOPE_1), linear.collect()),
        ],
    }
}
