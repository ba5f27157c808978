//! `[[figure.scaling]]`: a final metric over a setting, on log axes.

use super::convergence::{band_name, kinds, nothing, point};
use super::figure::{
    Across, Asks, Body, Figure, Key, Legend, Panel, Point, Role, Scale, Series, Style,
};
use super::lines;
use super::theory::Theory as Predictions;
use super::{Result, select};
use crate::manifest::Quantity;
use crate::manifest::figure::{self, Scaling, Theory};
use crate::plan::Setting;
use crate::stats::mean;
use std::collections::HashMap;

pub fn draw(figure: &Scaling, cells: &[&Result<'_>], theory: &Predictions<'_>) -> Figure {
    let groups = select::panels(&figure.panels, cells);
    let known = known(figure);
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut curves: HashMap<&str, usize> = HashMap::new();
    for cell in cells {
        let name = name(cell, &known);
        let place = *places.entry(name.clone()).or_insert(names.len());
        if place == names.len() {
            names.push(name);
        }
        curves.insert(&cell.cell.id, place);
    }
    let style = |i: usize| Style { color: i, dash: i };
    let mut legend: Vec<Legend> = names
        .iter()
        .enumerate()
        .map(|(i, label)| Legend { label: label.clone(), style: style(i), key: Key::Line })
        .collect();
    let mut panels = Vec::new();
    for group in &groups {
        let mut series: Vec<Series> = Vec::new();
        let mut of_curve: Vec<Vec<&Result<'_>>> = vec![Vec::new(); names.len()];
        for cell in &group.cells {
            of_curve[curves[&*cell.cell.id]].push(cell);
        }
        for (i, label) in names.iter().enumerate() {
            let mine = || of_curve[i].iter();
            let measured = mine().filter_map(|c| Some((c.cell.id.clone(), place(c, figure)?)));
            let (cells, points) = ordered(measured.collect());
            let diverged = mine().map(|c| c.diverged()).sum();
            series.push(Series {
                label: label.clone(),
                style: style(i),
                role: Role::Measured,
                points,
                diverged,
                cells,
                rows: Vec::new(),
            });
            for kind in &figure.theory {
                for prediction in lines::predictions(*kind) {
                    let value =
                        |c: &Result<'_>| theory.curve(&c.cell.id, figure.y, *prediction)?.pop();
                    let at = |c: &&Result<'_>| -> Option<(String, Point)> {
                        let (x, y) = (across(c, &figure.x)?, value(c)?);
                        let point = Point { x, y, low: f64::NAN, high: f64::NAN, n: 0 };
                        (y > 0.0).then(|| (c.cell.id.clone(), point))
                    };
                    let (cells, points) = ordered(mine().filter_map(at).collect());
                    if points.len() > 1 {
                        let color = if *kind == Theory::ExactMoments { usize::MAX } else { i };
                        let style = Style { color, dash: lines::pattern(*kind) };
                        let label = format!("{} for {label}", prediction.words());
                        let (role, diverged, rows) = (Role::Theory, 0, Vec::new());
                        series.push(Series { label, style, role, points, diverged, cells, rows });
                    }
                }
            }
        }
        if let Some(slope) = figure.reference_slope {
            series.extend(reference(&series, slope));
        }
        panels.push(Panel { title: group.title.clone(), series });
    }
    legend.extend(kinds(&figure.theory, &panels));
    if let Some(slope) = figure.reference_slope {
        let style = Style { color: usize::MAX, dash: 0 };
        legend.push(Legend { label: format!("slope {slope}"), style, key: Key::Theory });
    }
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let drawn = panels.iter().any(Panel::drawn);
    let mut caption = format!(
        "Mean of {} at the last round over n = {n} runs; {}.",
        figure.y.formula(),
        band_name(figure.band)
    );
    if figure.reference_slope.is_some() {
        caption
            .push_str(" Dotted: the slope to compare with, through the first curve's first point.");
    }
    caption.push_str(&lines::caption(&figure.theory, &panels, cells, theory));
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " {diverged} of {} cells have runs that diverged and no point.",
            cells.len()
        ));
    }
    if !drawn {
        caption = nothing(cells);
    }
    let setting = cells.iter().any(|c| c.cell.settings.get(&figure.x).is_some());
    let symbol = select::pretty(&figure.x, &Setting::Text(String::new()));
    let symbol = match Quantity::named(&figure.x).filter(|_| !setting) {
        Some(quantity) => quantity.formula().to_owned(),
        None => symbol.trim_end_matches([' ', '=']).to_owned(),
    };
    Figure {
        id: String::new(),
        title: figure
            .title
            .clone()
            .unwrap_or_else(|| format!("{} over {symbol}", figure.y.formula())),
        caption,
        columns: figure.columns.unwrap_or(panels.len().clamp(1, 4)),
        asks: Some(Asks {
            x: Across::Cells(figure.x.clone()),
            y: figure.y,
            band: figure.band,
            panels: figure.panels.clone(),
        }),
        body: Body::Panels {
            panels,
            legend,
            x: symbol,
            y: figure.y.formula().into(),
            scale_x: match figure.scale_x {
                figure::Scale::Linear => Scale::Linear,
                figure::Scale::Log => Scale::Log,
            },
            scale_y: Scale::Log,
        },
    }
}

/// The settings that no curve's name has to tell: what is across, and what panels tell.
pub fn known(figure: &Scaling) -> Vec<&str> {
    let mut known: Vec<&str> = figure.panels.iter().map(String::as_str).collect();
    known.push(&figure.x);
    if figure.x == "path-length" {
        known.push("step-size");
    }
    known
}

/// The name of the curve that a cell is a point of.
pub fn name(cell: &Result<'_>, known: &[&str]) -> String {
    let details = select::details(cell, known);
    let label = cell.cell.label.clone();
    if details.is_empty() { label } else { format!("{label}, {details}") }
}

/// Points from left to right, with their cells.
fn ordered(mut points: Vec<(String, Point)>) -> (Vec<String>, Vec<Point>) {
    points.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    points.into_iter().unzip()
}

fn place(cell: &Result<'_>, figure: &Scaling) -> Option<Point> {
    Some(point(across(cell, &figure.x)?, &cell.finals(figure.y)?, figure.band))
}

/// Where a cell stands across: a setting, or else the mean of a quantity at the end.
pub fn across(cell: &Result<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name) {
        Some(Setting::Number(x)) => Some(*x),
        Some(Setting::Text(_)) => None,
        None => Some(mean(&cell.finals(Quantity::named(name)?)?)),
    }
}

/// A line of this slope through the first curve's first point.
fn reference(series: &[Series], slope: f64) -> Option<Series> {
    let from = series.iter().find_map(|s| s.points.first())?;
    let xs = series.iter().flat_map(|s| &s.points).map(|p| p.x);
    let (low, high) = xs.fold((from.x, from.x), |(low, high), x| (low.min(x), high.max(x)));
    let at = |x: f64| Point {
        x,
        y: from.y * libm::pow(x / from.x, slope),
        low: f64::NAN,
        high: f64::NAN,
        n: 0,
    };
    let style = Style { color: usize::MAX, dash: 0 };
    let label = format!("slope {slope}");
    Some(Series {
        label,
        style,
        role: Role::Reference,
        points: vec![at(low), at(high)],
        diverged: 0,
        cells: Vec::new(),
        rows: Vec::new(),
    })
}
