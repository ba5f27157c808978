//! The numbers that a page holds so that its reader can view the same results over another cost,
//! with another band or in other panels.
//!
//! *Invariant*: a page holds the numbers of its figures and no others. Single replicates of all
//! figures are left out if they would make it too large, and the page says so; means, deviations
//! and quantiles are always there.

use super::numbers::{Blocks, Numbers, Slice};
use crate::analysis::{
    self, Body, COSTS, CellResult, Color, Curve, Experiment, Exploration, Figure, LegendEntry,
    Plot, Scale, View, XAxis, details, words_before, x_value,
};
use crate::chart::{self, style};
use crate::stats::{mean, quantile, standard_deviation, student_95};
use driftbench_core::words::joined;
use driftbench_runner::manifest::Quantity;
use driftbench_runner::plan::short;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes that single replicates may take in a page.
const MOST_FOR_REPLICATES: usize = 1_500_000;

/// The data of a page.
#[derive(Serialize)]
pub struct PageData {
    numbers: Blocks,
    styles: StyleTables,
    figures: Vec<FigureData>,
}

#[derive(Serialize)]
struct StyleTables {
    palette: [(u8, u8, u8); analysis::COLORS],
    dashes: [&'static str; analysis::DASHES],
    thin_dashes: [&'static str; analysis::THIN_DASHES],
    markers: [style::Marker; analysis::MARKERS],
    most_markers: usize,
}

/// A figure of curves.
#[derive(Serialize)]
struct FigureData {
    id: String,
    title: String,
    #[serde(flatten)]
    axes: AxesData,
    layout: chart::Layout,
    cells: Vec<CellData>,
    /// The manifest's panels first, then those that a reader may choose.
    views: Vec<ViewData>,
    theory: Vec<PredictionData>,
    /// The predictions in the legend: name, and dash pattern.
    kinds: Vec<(String, usize)>,
    /// Slopes of reference lines.
    references: Vec<f64>,
}

/// What the axes and the bands of a figure show.
#[derive(Serialize)]
struct AxesData {
    /// Whether a cell is a curve, or a point.
    rounds: bool,
    /// Name of the quantity or setting on the x axis.
    x: String,
    /// What a reader may choose for the x axis: names, and titles of the axis.
    xs: Vec<(String, String)>,
    y: String,
    scale_x: Scale,
    scale_y: Scale,
    band: &'static str,
}

/// Panels and their curves, as the analysis has assigned them.
#[derive(Serialize)]
struct ViewData {
    /// The settings that distinguish panels, separated by commas.
    panels: String,
    /// Title, and indices of the cells.
    groups: Vec<(String, Vec<usize>)>,
    curves: Vec<CurveData>,
    /// The curve of each cell.
    #[serde(rename = "of")]
    curve_of_cell: Vec<usize>,
}

/// A curve's name and style.
#[derive(Serialize)]
struct CurveData {
    #[serde(rename = "label")]
    name: String,
    /// An index into the palette; −1 for the neutral colour.
    color: isize,
    dash: usize,
    #[serde(rename = "mark")]
    marker: usize,
}

/// A cell of a figure.
#[derive(Serialize)]
struct CellData {
    id: String,
    /// Its name in addresses: its label with every setting that varies.
    name: String,
    n: usize,
    diverged: usize,
    /// Half a 95 % interval of the mean, in standard deviations.
    half: f64,
    x: BTreeMap<String, Slice>,
    mean: Slice,
    sd: Slice,
    low: Slice,
    high: Slice,
    /// Each replicate by itself, until it diverged.
    runs: Vec<Slice>,
}

/// A prediction for a cell.
#[derive(Serialize)]
struct PredictionData {
    cell: usize,
    /// The words before the curve's name: `first order for`.
    words: String,
    dash: usize,
    /// Its rounds among the cell's; all of them if there is none.
    rows: Option<Slice>,
    y: Slice,
}

/// The data of an experiment's page.
pub fn page_data(experiment: &Experiment<'_>) -> PageData {
    let mut numbers = Numbers::default();
    let cells: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|c| (c.cell.id.as_str(), c)).collect();
    let (mut figures, mut explorations) = (Vec::new(), Vec::new());
    for figure in &experiment.figures {
        if let (Some(exploration), Body::Plot(plot), Some(layout)) =
            (&figure.exploration, &figure.body, chart::layout(figure))
        {
            figures.push(figure_data(figure, plot, exploration, layout, &cells, &mut numbers));
            explorations.push(exploration);
        }
    }
    let size: usize = figures.iter().map(|figure| bytes_of_replicates(figure, &cells)).sum();
    if numbers.bytes() + size <= MOST_FOR_REPLICATES {
        for (figure, exploration) in figures.iter_mut().zip(explorations) {
            for cell in &mut figure.cells {
                let columns = columns(cells[cell.id.as_str()], exploration);
                // Last values of all replicates are one sequence.
                let runs = match figure.axes.rounds || columns.is_empty() {
                    true => columns,
                    false => vec![columns.concat()],
                };
                cell.runs = runs.into_iter().map(|run| numbers.add(run)).collect();
            }
        }
    }
    let styles = StyleTables {
        palette: style::PALETTE,
        dashes: style::DASHES,
        thin_dashes: style::THIN_DASHES,
        markers: style::MARKERS,
        most_markers: style::MOST_MARKERS,
    };
    PageData { numbers: numbers.blocks(), styles, figures }
}

/// Bytes that the replicates of a figure would take.
fn bytes_of_replicates(figure: &FigureData, cells: &HashMap<&str, &CellResult<'_>>) -> usize {
    let rows = |cell: &CellData| -> usize {
        let cell = cells[cell.id.as_str()];
        match figure.axes.rounds {
            true => cell.along().iter().map(|t| t.rows()).sum(),
            false => cell.replicates(),
        }
    };
    figure.cells.iter().map(rows).sum::<usize>() * 16 / 3
}

/// What the y axis shows of each replicate of a cell: one value per recorded round, or the last.
fn columns(cell: &CellResult<'_>, exploration: &Exploration) -> Vec<Vec<f64>> {
    match &exploration.x {
        XAxis::Rounds(_) => {
            cell.along().iter().map(|t| cell.column(t, exploration.y).into_owned()).collect()
        }
        XAxis::Cells(_) => {
            let finals = cell.finals(exploration.y).unwrap_or_default();
            finals.into_iter().map(|value| vec![value]).collect()
        }
    }
}

fn figure_data(
    figure: &Figure,
    plot: &Plot,
    exploration: &Exploration,
    layout: chart::Layout,
    cells: &HashMap<&str, &CellResult<'_>>,
    numbers: &mut Numbers,
) -> FigureData {
    let drawn: Vec<&CellResult<'_>> =
        exploration.cells.iter().filter_map(|id| cells.get(id.as_str()).copied()).collect();
    let (x, xs) = match &exploration.x {
        XAxis::Rounds(quantity) => (quantity.name().to_owned(), costs(*quantity, &drawn)),
        XAxis::Cells(name) => (short(name).to_owned(), vec![(short(name).into(), plot.x.clone())]),
    };
    let kinds = plot.legend.iter().filter(|entry| matches!(entry, LegendEntry::Prediction(_)));
    FigureData {
        id: figure.id.clone(),
        title: figure.title.clone(),
        layout,
        cells: drawn.iter().map(|c| cell_data(c, exploration, &xs, numbers)).collect(),
        axes: AxesData {
            rounds: matches!(exploration.x, XAxis::Rounds(_)),
            x,
            xs,
            y: plot.y.clone(),
            scale_x: plot.scale_x,
            scale_y: plot.scale_y,
            band: exploration.band.name(),
        },
        views: exploration.views.iter().map(view_data).collect(),
        theory: predictions(plot, &exploration.cells, numbers),
        kinds: kinds.map(|entry| (entry.name(), entry.style().dash.index())).collect(),
        references: exploration.slopes.clone(),
    }
}

fn view_data(view: &View) -> ViewData {
    let curve = |curve: &Curve| CurveData {
        name: curve.name(),
        color: match curve.style.color {
            Color::Palette(index) => index as isize,
            Color::Neutral => -1,
        },
        dash: curve.style.dash.index(),
        marker: curve.style.marker,
    };
    ViewData {
        panels: view.panels.join(","),
        groups: view.groups.clone(),
        curves: view.curves.iter().map(curve).collect(),
        curve_of_cell: view.curve_of_cell.clone(),
    }
}

/// What a reader may choose for the x axis: what the figure has there, and every cost that grows.
fn costs(own: Quantity, cells: &[&CellResult<'_>]) -> Vec<(String, String)> {
    let grows = |q: Quantity| {
        let last = |c: &&CellResult<'_>| {
            c.along().iter().any(|t| c.column(t, q).last().is_some_and(|x| *x > 0.0))
        };
        cells.iter().any(last)
    };
    let others = COSTS.into_iter().filter(|q| *q != own && grows(*q));
    let all = std::iter::once(own).chain(others);
    all.map(|q| (q.name().to_owned(), q.formula().to_owned())).collect()
}

fn cell_data(
    result: &CellResult<'_>,
    exploration: &Exploration,
    xs: &[(String, String)],
    numbers: &mut Numbers,
) -> CellData {
    let columns = columns(result, exploration);
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let samples: Vec<Vec<f64>> =
        (0..rows).map(|row| columns.iter().map(|c| c[row]).collect()).collect();
    let mut each =
        |statistic: &dyn Fn(&[f64]) -> f64| numbers.add(samples.iter().map(|s| statistic(s)));
    let (means, sd) = (each(&mean), each(&standard_deviation));
    let (low, high) = (each(&|s| quantile(s, 0.1)), each(&|s| quantile(s, 0.9)));
    let n = result.replicates();
    let mut x = BTreeMap::new();
    for (name, _) in xs {
        let values: Vec<f64> = match &exploration.x {
            XAxis::Rounds(_) => along(result, name, rows),
            XAxis::Cells(name) => x_value(result, name).into_iter().collect(),
        };
        x.insert(name.clone(), numbers.add(values));
    }
    CellData {
        id: result.cell.id.clone(),
        name: joined(&[&result.cell.label, &details(result.cell, &[])]),
        n,
        diverged: result.diverged(),
        half: if n > 1 { student_95(n) / (n as f64).sqrt() } else { 0.0 },
        x,
        mean: means,
        sd,
        low,
        high,
        runs: Vec::new(),
    }
}

/// The mean of a quantity over replicates at each recorded round.
fn along(cell: &CellResult<'_>, name: &str, rows: usize) -> Vec<f64> {
    let Some(quantity) = Quantity::named(name) else { return Vec::new() };
    let columns: Vec<_> = cell.along().iter().map(|t| cell.column(t, quantity)).collect();
    let at = |row: usize| {
        let sample: Vec<f64> = columns.iter().filter_map(|c| c.get(row).copied()).collect();
        mean(&sample)
    };
    (0..rows).map(at).collect()
}

/// The predictions of a figure, each of a cell once, although a cell may be in several panels.
fn predictions(plot: &Plot, cells: &[String], numbers: &mut Numbers) -> Vec<PredictionData> {
    let indices: HashMap<&str, usize> =
        cells.iter().enumerate().map(|(i, id)| (id.as_str(), i)).collect();
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for series in plot.series() {
        let Some(prediction) = series.line.prediction() else { continue };
        let mut add = |id: &String, rows: Option<Slice>, y: Slice| {
            if let Some(cell) = indices.get(id.as_str()).filter(|c| seen.insert((**c, prediction)))
            {
                let words = words_before(prediction);
                let dash = series.line.style().dash.index();
                all.push(PredictionData { cell: *cell, words, dash, rows, y });
            }
        };
        if series.rows.is_empty() {
            for (id, point) in series.cells.iter().zip(&series.points) {
                add(id, None, numbers.add([point.y]));
            }
        } else if let Some(id) = series.cells.first() {
            let whole = series.rows.iter().enumerate().all(|(i, row)| i == *row);
            let rows = (!whole).then(|| numbers.add(series.rows.iter().map(|r| *r as f64)));
            add(id, rows, numbers.add(series.points.iter().map(|p| p.y)));
        }
    }
    all
}
