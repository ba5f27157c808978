//! The data of a figure whose points are not those of cells over rounds or settings, such as exact
//! values, the candidates of a search and profiles: each curve of each panel takes the place of a
//! cell without runs, with the band that it has.

use super::numbers::Numbers;
use crate::evidence::{
    Color, Curve, Line, Plot, Point, SampleUnit, Series, Style, View, symbol, words_before,
};
use serde_json::{Value, json};

/// What was collected of the panels.
#[derive(Default)]
struct FixedParts {
    cells: Vec<Value>,
    theory: Vec<Value>,
    selected: Vec<Value>,
    view: View,
}

fn has_band(series: &Series) -> bool {
    series.line.is_measured() && series.points.iter().any(|p| p.low.is_finite())
}

/// What the script needs of such a figure, besides what it needs of every figure.
pub fn fixed_figure(plot: &Plot, numbers: &mut Numbers) -> Value {
    let mut parts = FixedParts::default();
    parts.view.panels.push("clients".into());
    for panel in &plot.panels {
        let first = parts.cells.len();
        panel.series.iter().for_each(|series| parts.add(series, first, &panel.title, numbers));
        parts.view.groups.push((panel.title.clone(), (first..parts.cells.len()).collect()));
    }
    let is_banded = plot.series().any(has_band);
    json!({
        "rounds": true,
        "x": "x",
        "xs": [("x", &plot.x)],
        // The points have this band or none.
        "fixed": true,
        "band": if is_banded { "given" } else { "none" },
        "bands": if is_banded { &["given"][..] } else { &[] },
        "unit": SampleUnit::Run,
        "selected": parts.selected,
        "cells": parts.cells,
        "views": [view_data(&parts.view)],
        "theory": parts.theory,
        "references": [],
    })
}

impl FixedParts {
    /// Adds a line of the panel with this title, whose cells begin with `first`.
    fn add(&mut self, series: &Series, first: usize, title: &str, numbers: &mut Numbers) {
        let Some(curve) = series.line.curve() else { return };
        let View { curves, curve_of_cell, .. } = &mut self.view;
        let place = curves.iter().position(|known| known == curve).unwrap_or(curves.len());
        if place == curves.len() {
            curves.push(curve.clone());
        }
        let mut column = |value: fn(&Point) -> f64| numbers.add(series.points.iter().map(value));
        let (x, y) = (column(|p| p.x), column(|p| p.y));
        let cell = curve_of_cell[first..].iter().position(|of| *of == place);
        let cell = cell.map(|of| first + of);
        match (&series.line, cell) {
            (Line::Predicted(_, prediction), Some(cell)) => {
                let dash = series.line.style().dash.index();
                let words = words_before(*prediction);
                self.theory.push(
                    json!({ "cell": cell, "words": words, "dash": dash, "rows": null, "y": y }),
                );
            }
            (Line::Selected(_), Some(cell)) => {
                let label = series.line.name();
                let ends = [column(|p| p.low), column(|p| p.high)];
                let n: Vec<usize> = series.points.iter().map(|p| p.n).collect();
                self.selected.push(json!({
                    "cell": cell, "label": label, "x": x, "y": y, "ends": ends, "n": n,
                }));
            }
            (Line::Measured(_) | Line::Exact(_), _) => {
                let mut bands = Vec::new();
                if has_band(series) {
                    bands.push([column(|p| p.low), column(|p| p.high)]);
                }
                let name = format!("{}, {title}", curve.name());
                // Candidates that were stopped have fewer runs than the others.
                let n: Vec<usize> = series.points.iter().map(|p| p.n).collect();
                self.cells.push(json!({
                    "id": name, "name": name, "n": n, "diverged": series.diverged,
                    "x": { "x": x }, "mean": y, "geometric": null, "bands": bands, "runs": [],
                }));
                curve_of_cell.push(place);
            }
            _ => {}
        }
    }
}

/// An index into the palette; −1 for the neutral colour.
pub fn color_index(color: Color) -> isize {
    match color {
        Color::Palette(index) => index as isize,
        Color::Neutral => -1,
    }
}

/// Panels and their curves, as the analysis has assigned them.
pub fn view_data(view: &View) -> Value {
    json!({
        "panels": view.panels.join(","),
        "symbols": view.panels.iter().map(|name| symbol(name)).collect::<Vec<_>>(),
        // Title, and indices of the cells.
        "groups": view.groups,
        "curves": view.curves.iter().map(curve_data).collect::<Vec<_>>(),
        // The curve of each cell.
        "of": view.curve_of_cell,
    })
}

/// A curve: the parts of its name, and its style.
fn curve_data(curve: &Curve) -> Value {
    let Style { color, dash, marker } = curve.style;
    let settings: Vec<&str> = curve.settings.iter().map(|s| s.text.as_str()).collect();
    let mut data = json!({
        // The parts of the name, for places that have room for one of them.
        "algorithm": curve.algorithm,
        "settings": settings.join(", "),
        "family": curve.family,
        "color": color_index(color),
        "dash": dash.index(),
        "mark": marker,
    });
    // The name, unless it is that of the parts.
    if curve.exact {
        data["label"] = json!(curve.name());
    }
    data
}
