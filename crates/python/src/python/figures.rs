//! Figures as JSON, from which Python draws them: the values that the page draws, and its colours,
//! dash patterns and markers.

use super::left_out::{left_out, needs_linear_axis};
use exactfed::chart::{self, style};
use exactfed::evidence::{
    Body, Color, Experiment, Figure, LegendEntry, Line, Map, Maps, Panel, Plot, Point, Series,
    Square, Style,
};
use serde_json::{Value, json};

/// Radius of the outlines of markers.
const RADIUS: u32 = 1000;

/// A figure of an experiment with all that a drawing of it needs.
pub fn figure(figure: &Figure, experiment: &Experiment<'_>) -> Value {
    let body = match &figure.body {
        Body::Plot(plot) => json!({ "plot": plot_body(figure, plot) }),
        Body::Maps(maps) => json!({ "maps": maps_body(maps) }),
    };
    json!({
        "id": figure.id,
        "title": figure.title,
        "caption": figure.caption,
        "columns": figure.columns.clamp(1, figure.body.panels().max(1)),
        "left_out": left_out(figure, experiment),
        "needs_linear_axis": needs_linear_axis(figure, experiment),
        "legend": figure.legend().iter().map(legend_entry).collect::<Vec<_>>(),
        "body": body,
    })
}

fn plot_body(figure: &Figure, plot: &Plot) -> Value {
    json!({
        "x": plot.x,
        "y": plot.y,
        "scale_x": plot.scale_x,
        "scale_y": plot.scale_y,
        // Titles and ends of the axes of each panel.
        "frames": chart::layout(figure).map(|mut layout| layout["frames"].take()),
        "panels": plot.panels.iter().map(panel).collect::<Vec<_>>(),
    })
}

fn panel(panel: &Panel) -> Vec<Value> {
    panel.series.iter().map(series).collect()
}

fn series(series: &Series) -> Value {
    let column = |of: fn(&Point) -> f64| {
        series.points.iter().map(|point| number(of(point))).collect::<Vec<_>>()
    };
    let style = series.line.style();
    let has_markers = match series.line {
        Line::Reference(_) => false,
        _ => series.line.is_measured() || !series.is_flat(),
    };
    let places = (0..series.points.len()).map(|i| (i as f64, 0.0)).collect();
    let marked: Vec<usize> = match has_markers {
        true => style::marked_points(places, style).into_iter().map(|(i, _)| i as usize).collect(),
        false => Vec::new(),
    };
    json!({
        "name": series.line.name(),
        "role": series.line.role(),
        "style": style_values(style),
        "x": column(|point| point.x),
        "y": column(|point| point.y),
        "low": column(|point| point.low),
        "high": column(|point| point.high),
        // Indices of the points with a marker.
        "marked": marked,
        "diverged": series.diverged,
    })
}

fn maps_body(maps: &Maps) -> Value {
    json!({ "x": maps.x, "y": maps.y, "maps": maps.maps.iter().map(map).collect::<Vec<_>>() })
}

fn map(map: &Map) -> Value {
    let square = |square: &Square| {
        json!({
            "x": square.x,
            "y": square.y,
            "color": hex(square.color()),
            "opacity": square.opacity(),
            "outlined": square.is_outlined(),
            "lines": square.lines(),
        })
    };
    json!({
        "title": map.title,
        "x": map.x,
        "y": map.y,
        "squares": map.squares.iter().map(square).collect::<Vec<_>>(),
        "edges": map.edges(),
    })
}

fn legend_entry(entry: &LegendEntry) -> Value {
    let line = match entry {
        LegendEntry::Line(Line::Reference(_)) => "reference",
        LegendEntry::Line(_) => "curve",
        LegendEntry::Prediction(_) => "prediction",
        LegendEntry::Threshold => "threshold",
        LegendEntry::Patch { .. } => "patch",
    };
    json!({ "name": entry.name(), "kind": line, "style": style_values(entry.style()) })
}

fn style_values(style: Style) -> Value {
    let dashes = style::dash_array(style.dash).split_whitespace();
    let outline = style::marker(style).outline(RADIUS);
    let radius = f64::from(RADIUS);
    json!({
        "color": hex(style.color),
        "dashes": dashes.filter_map(|length| length.parse::<f64>().ok()).collect::<Vec<_>>(),
        // The y axis of a drawing points down.
        "marker": outline.iter()
            .map(|(x, y)| [f64::from(*x) / radius, -f64::from(*y) / radius])
            .collect::<Vec<_>>(),
    })
}

fn hex(color: Color) -> String {
    style::hex(style::rgb(color))
}

/// A number as JSON: a text where JSON has no such number.
fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}
