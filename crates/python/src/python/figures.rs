//! Figures as JSON, from which Python draws them: the values that the page draws, and its colours,
//! dash patterns and markers. `python/exactfed/_plot.py` reads the keys by their names.

use super::left_out::{left_out, needs_linear_axis, stays_at_0};
use exactfed::chart::{self, style};
use exactfed::evidence::{
    Body, CellResult, Color, Experiment, Figure, LegendEntry, Line, Map, Maps, Plot, Point, Series,
    Square, Style, pretty, unique,
};
use exactfed::plan::{Setting, short};
use serde_json::{Map as JsonMap, Value, json};
use std::collections::HashMap;

/// The radius of markers for which their outlines are computed, in whole numbers; they are divided by it.
const RADIUS: u32 = 1000;

/// A figure of an experiment as JSON, with all that the package needs to draw it by matplotlib: a plot of curves or
/// maps, the legend, and what is left out.
pub fn figure(figure: &Figure, experiment: &Experiment<'_>) -> Value {
    let body = match &figure.body {
        Body::Plot(plot) => json!({ "plot": plot_body(figure, plot, experiment) }),
        Body::Maps(Maps { x, y, maps, .. }) => {
            let color = |color| json!(hex(color));
            let map = |map: &Map| chart::map_values(map, color, "lines", Square::lines);
            json!({ "maps": { "x": x, "y": y, "maps": maps.iter().map(map).collect::<Vec<_>>() } })
        }
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

/// The panels of a plot with their axes and curves. In a figure over rounds or costs, curves that stay at x = 0, since
/// their algorithm has no such cost, are left out; `left_out` of the figure says so.
fn plot_body(figure: &Figure, plot: &Plot, experiment: &Experiment<'_>) -> Value {
    let settings = SettingsOfCells::new(experiment);
    let drawn = |one: &&Series| !stays_at_0(figure, one);
    let panel = |all: &[Series]| -> Vec<Value> {
        all.iter().filter(drawn).map(|one| series(one, &settings)).collect()
    };
    json!({
        "x": plot.x,
        "y": plot.y,
        "scale_x": plot.scale_x,
        "scale_y": plot.scale_y,
        // Titles and ends of the axes of each panel.
        "frames": chart::frames(plot),
        "panels": plot.panels.iter().map(|one| panel(&one.series)).collect::<Vec<_>>(),
    })
}

/// The settings in which the cells of an experiment differ: by them a user chooses curves of a drawing.
struct SettingsOfCells<'a> {
    /// The short names of the settings.
    names: Vec<&'a str>,
    /// The cells by their ids.
    cells: HashMap<&'a str, &'a CellResult<'a>>,
}

impl<'a> SettingsOfCells<'a> {
    /// The settings that vary in any cell, in the order of the cells.
    fn new(experiment: &'a Experiment<'a>) -> Self {
        let varied = experiment.cells.iter().flat_map(|cell| cell.cell.varied.iter());
        Self {
            names: unique(varied.map(|path| short(path))),
            cells: experiment.cells.iter().map(|c| (c.cell.id.as_str(), c)).collect(),
        }
    }

    /// An object with the label of the first of the cells with these ids, and each setting that has one value in all
    /// of them. Each is a pair: the plain value, and the value in the notation of pages. Empty without cells.
    fn shared_by(&self, ids: &[String]) -> Value {
        let cells: Vec<_> = ids.iter().filter_map(|id| self.cells.get(&**id)).collect();
        let Some(first) = cells.first() else { return json!({}) };
        let mut shared = JsonMap::new();
        shared.insert("label".into(), json!([first.cell.label, first.cell.label]));
        for name in &self.names {
            let Some(value) = first.cell.settings.get(name) else { continue };
            if cells.iter().all(|cell| cell.cell.settings.get(name) == Some(value)) {
                let plain = match value {
                    Setting::Number(value) => json!(value),
                    Setting::Text(text) => json!(**text),
                };
                shared.insert((*name).into(), json!([plain, pretty(name, value)]));
            }
        }
        Value::Object(shared)
    }
}

/// A curve with its points, its style and the settings of its cells.
fn series(series: &Series, settings: &SettingsOfCells<'_>) -> Value {
    let column = |of: fn(&Point) -> f64| {
        series.points.iter().map(|point| number(of(point))).collect::<Vec<_>>()
    };
    let style = series.line.style();
    // Each point stands at its index, by which the points that are chosen for markers are known.
    let places = (0..series.points.len()).map(|i| (i as f64, 0.0)).collect();
    let marked: Vec<usize> = if series.has_marks() {
        style::marked_points(places, style).into_iter().map(|(i, _)| i as usize).collect()
    } else {
        Vec::new()
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
        "settings": settings.shared_by(&series.cells),
    })
}

/// An entry of the legend, with the kind of symbol that is drawn for it.
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

/// The colour, the dash pattern and the marker of a style; the marker is the outline of a polygon around the origin
/// whose circle has the radius 1.
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

/// A colour as `#rrggbb`.
fn hex(color: Color) -> String {
    style::hex(style::rgb(color))
}

/// A number as JSON; NaN and infinities, which JSON does not have, as a text that Python's `float` reads.
fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}
