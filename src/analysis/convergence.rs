//! `[[figure.convergence]]`: one curve per cell of a metric over a cost.

use super::CellResult;
use super::curves::views;
use super::figure::{Body, Exploration, Figure, Panel, Plot, Point, Series, XAxis};
use super::line::{Curve, Line};
use super::predictions;
use super::theory::Theory;
use crate::stats::{mean, quantile, standard_deviation, student_95};
use driftbench_core::words::count;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::{Band, Convergence, Scale, TheoryKind};
use std::borrow::Cow;

/// The figure.
pub fn figure(spec: &Convergence, cells: &[&CellResult<'_>], theory: &Theory<'_>) -> Figure {
    let views = views(&spec.common.panels, &[], cells);
    let own = &views[0];
    let mut panels = Vec::new();
    for (title, indices) in &own.groups {
        let mut series = Vec::new();
        for index in indices {
            let (cell, curve) = (cells[*index], &own.curves[own.curve_of_cell[*index]]);
            let points = means(cell, spec);
            let rows = points.len();
            series.push(Series {
                diverged: cell.diverged(),
                cells: vec![cell.cell.id.clone()],
                rows: (0..rows).collect(),
                ..Series::new(Line::Measured(curve.clone()), points)
            });
            series.extend(predicted(cell, spec, theory, curve, rows));
        }
        panels.push(Panel { title: title.clone(), series });
    }
    let (x, y) = (spec.x.formula().to_owned(), spec.y.formula().to_owned());
    let legend = predictions::legend(&panels, &own.curves, &spec.theory);
    let plot = Plot { panels, legend, x, y, scale_x: spec.scale_x, scale_y: Scale::Log };
    let title = format!("{} over {}", plot.y, plot.x);
    let caption = caption(spec, cells, &plot, theory);
    let exploration = Exploration {
        x: XAxis::Rounds(spec.x),
        y: spec.y,
        band: spec.band,
        cells: cells.iter().map(|c| c.cell.id.clone()).collect(),
        views,
        slopes: Vec::new(),
    };
    let figure = Figure::new(&spec.common, title, caption, 4, Body::Plot(plot));
    Figure { exploration: Some(exploration), ..figure }
}

/// The predictions for a cell's curve, which has so many `rows`.
fn predicted(
    cell: &CellResult<'_>,
    spec: &Convergence,
    theory: &Theory<'_>,
    curve: &Curve,
    rows: usize,
) -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |prediction: Prediction, drawn: Vec<(usize, Point)>| {
        if drawn.len() > 1 {
            let (rows, points) = drawn.into_iter().unzip();
            let line = Line::Predicted(curve.clone(), prediction);
            let cells = vec![cell.cell.id.clone()];
            all.push(Series { cells, rows, ..Series::new(line, points) });
        }
    };
    let columns: Vec<_> = cell.along().iter().map(|t| cell.column(t, spec.x)).collect();
    let x =
        |row: usize| mean(&columns.iter().filter_map(|c| c.get(row).copied()).collect::<Vec<_>>());
    for kind in &spec.theory {
        if *kind == TheoryKind::ExactBias {
            let bias = cell.exact_bias.filter(|b| *b > 0.0 && spec.y == Quantity::SqError);
            if let Some(bias) = bias.filter(|_| rows > 1) {
                // The second row, because a logarithmic axis does not show the first.
                let level = [0, 1, rows - 1].map(|row| (row, Point::bare(x(row), bias)));
                add(Prediction::ExactBias, level.to_vec());
            }
            continue;
        }
        for prediction in predictions::predictions(*kind) {
            let Some(values) = theory.curve(&cell.cell.id, spec.y, *prediction) else { continue };
            let points = values.iter().enumerate().map(|(row, y)| (row, Point::bare(x(row), *y)));
            add(*prediction, points.filter(|(_, p)| p.x.is_finite() && p.y > 0.0).collect());
        }
    }
    all
}

/// The mean over replicates at each recorded round, up to the first divergence.
fn means(cell: &CellResult<'_>, spec: &Convergence) -> Vec<Point> {
    let columns =
        |quantity| -> Vec<_> { cell.along().iter().map(|t| cell.column(t, quantity)).collect() };
    let (xs, ys) = (columns(spec.x), columns(spec.y));
    let rows = xs.iter().chain(&ys).map(|column| column.len()).min().unwrap_or(0);
    let sample = |columns: &[Cow<'_, [f64]>], row: usize| -> Vec<f64> {
        columns.iter().map(|column| column[row]).collect()
    };
    (0..rows).map(|row| point(mean(&sample(&xs, row)), &sample(&ys, row), spec.band)).collect()
}

/// The mean of a sample and its band.
pub fn point(x: f64, sample: &[f64], band: Band) -> Point {
    let (n, mean, sd) = (sample.len(), mean(sample), standard_deviation(sample));
    let around = |half: f64| (mean - half, mean + half);
    // Of a positive mean on the logarithm, so that it stays positive (figures.js does the same).
    let interval = |half: f64| match mean > 0.0 {
        true => (mean * libm::exp(-half / mean), mean * libm::exp(half / mean)),
        false => around(half),
    };
    let (low, high) = match band {
        Band::Std => around(sd),
        Band::Sem => around(sd / (n as f64).sqrt()),
        Band::Ci95 => interval(student_95(n) * sd / (n as f64).sqrt()),
        Band::Quantiles => (quantile(sample, 0.1), quantile(sample, 0.9)),
        Band::None => (f64::NAN, f64::NAN),
    };
    Point { x, y: mean, low, high, n }
}

/// What a band shows, in words.
pub fn band_name(band: Band) -> &'static str {
    match band {
        Band::Std => "band: mean ± standard deviation",
        Band::Sem => "band: mean ± standard error",
        Band::Ci95 => {
            "band: pointwise 95 % interval of the mean by Student's t on the logarithm (for skewed errors the tables' intervals are wider)"
        }
        Band::Quantiles => "band: 10 % to 90 % quantile",
        Band::None => "no band",
    }
}

/// That a band may be clipped, in words.
pub fn clipped_band(band: Band) -> &'static str {
    match band {
        Band::None => "",
        _ => " A band that reaches beyond the panel, or down to 0, is clipped at its edge.",
    }
}

/// Whether the runs of a cell differ in a quantity at one round.
fn uneven(cell: &CellResult<'_>, quantity: Quantity) -> bool {
    let mut columns = cell.along().iter().map(|t| cell.column(t, quantity));
    let Some(first) = columns.next() else { return false };
    columns.any(|other| first.iter().zip(other.iter()).any(|(a, b)| a != b))
}

fn caption(
    spec: &Convergence,
    cells: &[&CellResult<'_>],
    plot: &Plot,
    theory: &Theory<'_>,
) -> String {
    if plot.series().all(|s| s.points.is_empty()) {
        return nothing(cells);
    }
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let (y, runs, band) = (spec.y.formula(), count(n, "run"), band_name(spec.band));
    let mut caption = format!("Mean of {y} over n = {runs}; {band}.");
    if cells.iter().any(|c| uneven(c, spec.x)) {
        caption.push_str(
            " Runs have different costs at the same recorded round; the x axis shows their mean.",
        );
    }
    caption.push_str(clipped_band(spec.band));
    if plot.series().any(|s| s.line.is_measured() && s.points.iter().any(|p| p.y == 0.0)) {
        caption.push_str(" A mean of 0 is omitted, because the axis is logarithmic.");
    }
    caption.push_str(&predictions::caption(&spec.theory, spec.y, plot, cells, theory));
    let with_bias = spec.theory.contains(&TheoryKind::ExactBias);
    if with_bias && cells.iter().all(|cell| cell.exact_bias.is_none()) {
        caption.push_str(
            " The exact bias is not known: the field is not linear, or draws are not independent.",
        );
    }
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " Runs diverged in {diverged} of {} cells (✕): the curve of such a cell ends where the first run diverged.",
            cells.len()
        ));
    }
    caption
}

/// Why a figure is empty, in words.
pub fn nothing(cells: &[&CellResult<'_>]) -> String {
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    let why = match (cells.len(), diverged) {
        (0, _) => "no cell has results yet",
        (all, diverged) if all == diverged => "runs of every cell diverged",
        _ => "no cell has results for this metric",
    };
    format!("The figure is empty: {why}.")
}
