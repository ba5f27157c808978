//! `[[figure.convergence]]`: a curve per cell of a metric over a cost.

use super::CellResult;
use super::curves::views;
use super::figure::{Across, Asks, Body, Curve, Figure, Panel, Point, Role, Scale, Series, Style};
use super::predictions;
use super::theory::Theory as Predictions;
use crate::stats::{mean, quantile, standard_deviation, student_95};
use driftbench_core::words::count;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::manifest::figure::{self, Band, Convergence, Theory};
use std::borrow::Cow;

pub fn draw(figure: &Convergence, cells: &[&CellResult<'_>], theory: &Predictions<'_>) -> Figure {
    let views = views(&figure.panels, &[], cells);
    let own = &views[0];
    let mut panels = Vec::new();
    for (title, places) in &own.groups {
        let mut series = Vec::new();
        for place in places {
            let (cell, Curve { label, style, .. }) = (cells[*place], &own.curves[own.of[*place]]);
            let points = curve(cell, figure);
            let rows = points.len();
            series.push(Series {
                label: label.clone(),
                style: *style,
                role: Role::Measured,
                rows: (0..points.len()).collect(),
                points,
                diverged: cell.diverged(),
                cells: vec![cell.cell.id.clone()],
            });
            series.extend(beside(cell, figure, theory, *style, label, rows));
        }
        panels.push(Panel { title: title.clone(), series });
    }
    let legend = predictions::legends(&own.curves, &figure.theory, &panels);
    let caption = caption(figure, cells, &panels, theory);
    let x = figure.x.formula().to_owned();
    let title = figure.title.clone();
    Figure {
        id: String::new(),
        title: title.unwrap_or_else(|| format!("{} over {x}", figure.y.formula())),
        caption,
        columns: figure.columns.unwrap_or(panels.len().clamp(1, 4)),
        asks: Some(Asks {
            x: Across::Rounds(figure.x),
            y: figure.y,
            band: figure.band,
            cells: cells.iter().map(|c| c.cell.id.clone()).collect(),
            views,
            slopes: Vec::new(),
        }),
        body: Body::Panels {
            panels,
            legend,
            x,
            y: figure.y.formula().into(),
            scale_x: match figure.scale_x {
                figure::Scale::Linear => Scale::Linear,
                figure::Scale::Log => Scale::Log,
            },
            scale_y: Scale::Log,
        },
    }
}

/// The predictions beside a cell's curve.
fn beside(
    cell: &CellResult<'_>,
    figure: &Convergence,
    theory: &Predictions<'_>,
    style: Style,
    label: &str,
    rows: usize,
) -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |prediction: Prediction, drawn: Vec<(usize, Point)>| {
        if drawn.len() > 1 {
            let (rows, points) = drawn.into_iter().unzip();
            let cells = vec![cell.cell.id.clone()];
            let (role, diverged) = (Role::Theory(prediction), 0);
            let style = predictions::style(prediction, style);
            let label = format!("{} {label}", predictions::words(prediction));
            all.push(Series { label, style, role, points, diverged, cells, rows });
        }
    };
    let bare = |x: f64, y: f64| Point { x, y, low: f64::NAN, high: f64::NAN, n: 0 };
    let columns: Vec<_> = cell.along().iter().map(|t| cell.column(t, figure.x)).collect();
    let across =
        |row: usize| mean(&columns.iter().filter_map(|c| c.get(row).copied()).collect::<Vec<_>>());
    for kind in &figure.theory {
        if *kind == Theory::ExactBias {
            let bias = cell.exact_bias.filter(|b| *b > 0.0 && figure.y == Quantity::SqError);
            if let Some(bias) = bias.filter(|_| rows > 1) {
                // The second row: on a logarithmic axis the first has no place.
                let level = [0, 1, rows - 1].map(|row| (row, bare(across(row), bias)));
                add(Prediction::ExactBias, level.to_vec());
            }
            continue;
        }
        for prediction in predictions::predictions(*kind) {
            let Some(curve) = theory.curve(&cell.cell.id, figure.y, *prediction) else { continue };
            let points = curve.iter().enumerate().map(|(row, y)| (row, bare(across(row), *y)));
            let shown = points.filter(|(_, p)| p.x.is_finite() && p.y > 0.0);
            add(*prediction, shown.collect());
        }
    }
    all
}

/// The mean over replicates at each recorded round, up to the first divergence.
fn curve(cell: &CellResult<'_>, figure: &Convergence) -> Vec<Point> {
    let columns =
        |quantity| -> Vec<_> { cell.along().iter().map(|t| cell.column(t, quantity)).collect() };
    let (xs, ys) = (columns(figure.x), columns(figure.y));
    let rows = xs.iter().chain(&ys).map(|column| column.len()).min().unwrap_or(0);
    let sample = |columns: &[Cow<'_, [f64]>], row: usize| -> Vec<f64> {
        columns.iter().map(|column| column[row]).collect()
    };
    (0..rows).map(|row| point(mean(&sample(&xs, row)), &sample(&ys, row), figure.band)).collect()
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

/// What a band is, in words.
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

/// That a band may be cut, in words.
pub fn cut_band(band: Band) -> &'static str {
    match band {
        Band::None => "",
        _ => " A band is cut at the panel's edge where it goes beyond, or down to 0.",
    }
}

/// Whether the runs of a cell differ in a quantity at one round.
fn uneven(cell: &CellResult<'_>, quantity: Quantity) -> bool {
    let mut columns = cell.along().iter().map(|t| cell.column(t, quantity));
    let Some(first) = columns.next() else { return false };
    columns.any(|other| first.iter().zip(other.iter()).any(|(a, b)| a != b))
}

fn caption(
    figure: &Convergence,
    cells: &[&CellResult<'_>],
    panels: &[Panel],
    theory: &Predictions<'_>,
) -> String {
    let n = cells.iter().map(|c| c.replicates()).max().unwrap_or(0);
    let band = band_name(figure.band);
    let runs = count(n, "run");
    let mut caption = format!("Mean of {} over n = {runs}; {band}.", figure.y.formula());
    if cells.iter().any(|c| uneven(c, figure.x)) {
        caption.push_str(
            " Runs have spent different amounts at the same recorded round; the mean over runs is drawn.",
        );
    }
    caption.push_str(cut_band(figure.band));
    let drawn = || panels.iter().flat_map(|p| &p.series);
    if drawn().any(|s| s.role == Role::Measured && s.points.iter().any(|p| p.y == 0.0)) {
        caption.push_str(" A mean that is 0 has no place on the logarithmic axis.");
    }
    caption.push_str(&predictions::caption(&figure.theory, figure.y, panels, cells, theory));
    let asked = figure.theory.contains(&Theory::ExactBias);
    if asked && cells.iter().all(|cell| cell.exact_bias.is_none()) {
        caption.push_str(
            " No exact bias is known here: the field is not linear, or draws are not independent.",
        );
    }
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    if diverged > 0 {
        caption.push_str(&format!(
            " Runs diverged in {diverged} of {} cells (✕): such a curve ends where the first of its runs did.",
            cells.len()
        ));
    }
    if !drawn().any(|s| !s.points.is_empty()) {
        return nothing(cells);
    }
    caption
}

/// Why there is nothing to draw, in words.
pub fn nothing(cells: &[&CellResult<'_>]) -> String {
    let diverged = cells.iter().filter(|c| c.diverged() > 0).count();
    let why = match (cells.len(), diverged) {
        (0, _) => "no cell has results yet",
        (all, diverged) if all == diverged => "runs of every cell diverged",
        _ => "no cell has results for this metric",
    };
    format!("There is nothing to draw: {why}.")
}
