//! `[[figure.scaling]]`: a final metric over a setting, on log axes.

use super::convergence::{band_name, cut_band, nothing, point};
use super::curves::views;
use super::figure::{
    Across, Asks, Body, Curve, Figure, GREY, Key, Legend, Panel, Point, Role, Scale, Series, Style,
};
use super::predictions;
use super::theory::Theory as Predictions;
use super::{CellResult, setting_text};
use crate::stats::mean;
use driftbench_core::words::count;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::{self, Scaling};
use driftbench_runner::plan::{Setting, short};

pub fn draw(figure: &Scaling, cells: &[&CellResult<'_>], theory: &Predictions<'_>) -> Figure {
    let views = views(&figure.panels, &across_names(&figure.x), cells);
    let own = &views[0];
    let mut panels = Vec::new();
    for (title, places) in &own.groups {
        let mut mine: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); own.curves.len()];
        places.iter().for_each(|place| mine[own.of[*place]].push(cells[*place]));
        let mut series: Vec<Series> = Vec::new();
        for (curve, cells) in own.curves.iter().zip(&mine).filter(|(_, cells)| !cells.is_empty()) {
            series.push(measured(figure, curve, cells));
            series.extend(predicted(figure, curve, cells, theory));
        }
        if let Some(slope) = figure.reference_slope {
            series.extend(reference(&series, slope));
        }
        panels.push(Panel { title: title.clone(), series });
    }
    let mut legend = predictions::legends(&own.curves, &figure.theory, &panels);
    let mut series = panels.iter().flat_map(|p| &p.series);
    let referred = series.find(|s| s.role == Role::Reference);
    legend.extend(referred.map(|line| Legend {
        label: line.label.clone(),
        style: line.style,
        key: Key::Reference,
    }));
    let referred = referred.is_some();
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let drawn = panels.iter().any(Panel::drawn);
    let (y, runs, band) = (figure.y.formula(), count(n, "run"), band_name(figure.band));
    let mut caption = match figure.y.average() {
        Some(_) => {
            format!("{y}, from averages over the rounds after the burn-in, of n = {runs}; {band}.")
        }
        None => format!("Mean of {y} at the last round over n = {runs}; {band}."),
    };
    caption.push_str(cut_band(figure.band));
    if referred {
        caption.push_str(
            " Grey dots: the slope to compare with, through the first curve's first point.",
        );
    }
    caption.push_str(&predictions::caption(&figure.theory, figure.y, &panels, cells, theory));
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
    let symbol = match Quantity::named(&figure.x).filter(|_| !setting) {
        Some(quantity) => quantity.formula().to_owned(),
        None => setting_text::symbol(&figure.x),
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
            cells: cells.iter().map(|c| c.cell.id.clone()).collect(),
            views,
            slopes: figure.reference_slope.into_iter().collect(),
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

/// The settings that the x axis tells, so that no curve's name has to: itself first.
pub fn across_names(x: &str) -> Vec<&str> {
    // γH changes with the step size as well.
    if short(x) == "path-length" { vec![x, "step-size"] } else { vec![x] }
}

/// What was measured of a curve's cells.
fn measured(figure: &Scaling, curve: &Curve, cells: &[&CellResult<'_>]) -> Series {
    let points = cells.iter().filter_map(|c| Some((c.cell.id.clone(), place(c, figure)?)));
    let (ids, points) = ordered(points.collect());
    Series {
        label: curve.label.clone(),
        style: curve.style,
        role: Role::Measured,
        points,
        diverged: cells.iter().map(|c| c.diverged()).sum(),
        cells: ids,
        rows: Vec::new(),
    }
}

/// The predictions for a curve's cells.
fn predicted(
    figure: &Scaling,
    curve: &Curve,
    cells: &[&CellResult<'_>],
    theory: &Predictions<'_>,
) -> Vec<Series> {
    let line = |prediction: &Prediction| {
        let at = |c: &&CellResult<'_>| -> Option<(String, Point)> {
            let x = across(c, &figure.x)?;
            let y = theory.curve(&c.cell.id, figure.y, *prediction)?.pop()?;
            let point = Point { x, y, low: f64::NAN, high: f64::NAN, n: 0 };
            (y > 0.0).then(|| (c.cell.id.clone(), point))
        };
        let (cells, points) = ordered(cells.iter().filter_map(at).collect());
        let label = format!("{} {}", predictions::words(*prediction), curve.label);
        let style = predictions::style(*prediction, curve.style);
        let (role, diverged, rows) = (Role::Theory(*prediction), 0, Vec::new());
        (points.len() > 1).then_some(Series { label, style, role, points, diverged, cells, rows })
    };
    let asked = figure.theory.iter().flat_map(|kind| predictions::predictions(*kind));
    asked.filter_map(line).collect()
}

/// Points from left to right, with their cells.
fn ordered(mut points: Vec<(String, Point)>) -> (Vec<String>, Vec<Point>) {
    points.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    points.into_iter().unzip()
}

fn place(cell: &CellResult<'_>, figure: &Scaling) -> Option<Point> {
    Some(point(across(cell, &figure.x)?, &cell.finals(figure.y)?, figure.band))
}

/// Where a cell stands across: a setting, or else the mean of a quantity at the end.
pub fn across(cell: &CellResult<'_>, name: &str) -> Option<f64> {
    match cell.cell.settings.get(name) {
        Some(Setting::Number(x)) => Some(*x),
        Some(Setting::Text(_)) => None,
        None => Some(mean(&cell.finals(Quantity::named(name)?)?)),
    }
}

/// A line of this slope through the first point that has a place on logarithmic axes, over
/// all that is drawn; `None` where there is no such point, or only one place across.
fn reference(series: &[Series], slope: f64) -> Option<Series> {
    let placed = |p: &&Point| [p.x, p.y].iter().all(|v| v.is_finite() && *v > 0.0);
    let points = || series.iter().flat_map(|s| &s.points).filter(placed);
    let from = points().next()?;
    let ends = points().fold((from.x, from.x), |(low, high), p| (low.min(p.x), high.max(p.x)));
    let at = |x: f64| Point {
        x,
        y: from.y * libm::pow(x / from.x, slope),
        low: f64::NAN,
        high: f64::NAN,
        n: 0,
    };
    (ends.0 < ends.1).then(|| Series {
        label: format!("slope {slope}"),
        style: Style { dash: predictions::REFERENCE, ..Style::plain(GREY) },
        role: Role::Reference,
        points: vec![at(ends.0), at(ends.1)],
        diverged: 0,
        cells: Vec::new(),
        rows: Vec::new(),
    })
}
