//! `[[figure.scaling]]`: a final metric over a setting, on logarithmic axes.

use super::convergence::{band_name, clipped_band, nothing, point};
use super::curves::views;
use super::figure::{Body, Exploration, Figure, Panel, Plot, Point, Series, XAxis};
use super::line::{Curve, Line, Reference};
use super::theory::Theory;
use super::{CellResult, predictions, setting_text};
use crate::stats::mean;
use driftbench_core::words::count;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::{Scale, Scaling};
use driftbench_runner::plan::{Setting, short};

/// The figure.
pub fn figure(spec: &Scaling, cells: &[&CellResult<'_>], theory: &Theory<'_>) -> Figure {
    let views = views(&spec.common.panels, &settings_of_axis(&spec.x), cells);
    let own = &views[0];
    let mut panels = Vec::new();
    for (title, indices) in &own.groups {
        let mut of_curve: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); own.curves.len()];
        indices.iter().for_each(|i| of_curve[own.curve_of_cell[*i]].push(cells[*i]));
        let mut series: Vec<Series> = Vec::new();
        for (curve, cells) in own.curves.iter().zip(of_curve).filter(|(_, cells)| !cells.is_empty())
        {
            series.push(measured(spec, curve, &cells));
            series.extend(predicted(spec, curve, &cells, theory));
        }
        if let Some(slope) = spec.reference_slope {
            series.extend(reference(&series, slope));
        }
        panels.push(Panel { title: title.clone(), series });
    }
    let (x, y) = (axis_title(&spec.x, cells), spec.y.formula().to_owned());
    let legend = predictions::legend(&panels, &own.curves, &spec.theory);
    let plot = Plot { panels, legend, x, y, scale_x: spec.scale_x, scale_y: Scale::Log };
    let title = format!("{} over {}", plot.y, plot.x);
    let caption = caption(spec, cells, &plot, theory);
    let exploration = Exploration {
        x: XAxis::Cells(spec.x.clone()),
        y: spec.y,
        band: spec.band,
        cells: cells.iter().map(|c| c.cell.id.clone()).collect(),
        views,
        slopes: spec.reference_slope.into_iter().collect(),
    };
    let figure = Figure::new(&spec.common, title, caption, 4, Body::Plot(plot));
    Figure { exploration: Some(exploration), ..figure }
}

/// The title of the x axis: the symbol of a setting or of a quantity.
fn axis_title(name: &str, cells: &[&CellResult<'_>]) -> String {
    let is_setting = cells.iter().any(|c| c.cell.settings.get(name).is_some());
    match Quantity::named(name).filter(|_| !is_setting) {
        Some(quantity) => quantity.formula().to_owned(),
        None => setting_text::symbol(name),
    }
}

fn caption(spec: &Scaling, cells: &[&CellResult<'_>], plot: &Plot, theory: &Theory<'_>) -> String {
    if plot.series().all(|s| s.points.is_empty()) {
        return nothing(cells);
    }
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let (y, runs, band) = (spec.y.formula(), count(n, "run"), band_name(spec.band));
    let mut caption = match spec.y.average() {
        Some(_) => {
            format!("{y}, from averages over the rounds after the burn-in, of n = {runs}; {band}.")
        }
        None => format!("Mean of {y} at the last round over n = {runs}; {band}."),
    };
    caption.push_str(clipped_band(spec.band));
    if plot.series().any(|s| matches!(s.line, Line::Reference(_))) {
        caption
            .push_str(" Grey dots: a reference slope through the first point of the first curve.");
    }
    caption.push_str(&predictions::caption(&spec.theory, spec.y, plot, cells, theory));
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " {diverged} of {} cells have runs that diverged and are omitted.",
            cells.len()
        ));
    }
    caption
}

/// The settings that the x axis shows, so that names of curves need not; itself first.
pub fn settings_of_axis(x: &str) -> Vec<&str> {
    // γH changes with the step size as well.
    if short(x) == "path-length" { vec![x, "step-size"] } else { vec![x] }
}

/// What was measured of a curve's cells.
fn measured(spec: &Scaling, curve: &Curve, cells: &[&CellResult<'_>]) -> Series {
    let measured = |cell: &&CellResult<'_>| {
        let point = point(x_value(cell, &spec.x)?, &cell.finals(spec.y)?, spec.band);
        Some((cell.cell.id.clone(), point))
    };
    let (ids, points) = ordered(cells.iter().filter_map(measured).collect());
    Series {
        diverged: cells.iter().map(|c| c.diverged()).sum(),
        cells: ids,
        ..Series::new(Line::Measured(curve.clone()), points)
    }
}

/// The predictions for a curve's cells.
fn predicted(
    spec: &Scaling,
    curve: &Curve,
    cells: &[&CellResult<'_>],
    theory: &Theory<'_>,
) -> Vec<Series> {
    let series = |prediction: &Prediction| {
        let predicted = |c: &&CellResult<'_>| -> Option<(String, Point)> {
            let x = x_value(c, &spec.x)?;
            let y = theory.curve(&c.cell.id, spec.y, *prediction)?.pop()?;
            (y > 0.0).then(|| (c.cell.id.clone(), Point::bare(x, y)))
        };
        let (cells, points) = ordered(cells.iter().filter_map(predicted).collect());
        let line = Line::Predicted(curve.clone(), *prediction);
        (points.len() > 1).then(|| Series { cells, ..Series::new(line, points) })
    };
    spec.theory.iter().flat_map(|k| predictions::predictions(*k)).filter_map(series).collect()
}

/// Points from left to right, with their cells.
fn ordered(mut points: Vec<(String, Point)>) -> (Vec<String>, Vec<Point>) {
    points.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    points.into_iter().unzip()
}

/// The value of a cell on the x axis: a setting, or the mean of a quantity at the last round.
pub fn x_value(cell: &CellResult<'_>, name: &str) -> Option<f64> {
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
    let at = |x: f64| Point::bare(x, from.y * libm::pow(x / from.x, slope));
    let line = Line::Reference(Reference::Slope(slope));
    (ends.0 < ends.1).then(|| Series::new(line, vec![at(ends.0), at(ends.1)]))
}
