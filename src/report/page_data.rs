//! What a page carries so that its reader can style at the same results in another
//! way: over another cost, with another band, in other panels.
//!
//! *Invariant*: a page holds the numbers of its figures and no others. Where all
//! replicates of all figures would make it too large, they stay out and the page
//! says so; means, deviations and quantiles are always there.

use super::numbers::{Blocks, Numbers, Slice};
use crate::analysis::{
    self, Across, Asks, Body, COLORS, COSTS, CellResult, DASHES, Experiment, Figure, Key, Legend,
    MARKS, Panel, Role, theory_words, varied_settings,
};
use crate::chart::{self, style};
use crate::stats::{mean, quantile, standard_deviation, student_95};
use driftbench_runner::manifest::Quantity;
use driftbench_runner::plan::short;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes that single replicates may take in a page.
const MOST_FOR_REPLICATES: usize = 1_500_000;

/// The data of a page.
#[derive(Serialize)]
pub struct Data {
    numbers: Blocks,
    style: Look,
    figures: Vec<Drawn>,
}

#[derive(Serialize)]
struct Look {
    palette: [(u8, u8, u8); COLORS],
    dashes: [&'static str; DASHES],
    faint: [&'static str; 13],
    marks: [style::Mark; MARKS],
    most_marks: usize,
}

/// A figure of curves.
#[derive(Serialize)]
struct Drawn {
    id: String,
    title: String,
    /// Whether a cell is a curve, or a point.
    rounds: bool,
    /// Name of what is across.
    x: String,
    /// What may be across: names, and how axes write them.
    xs: Vec<(String, String)>,
    y: String,
    scale_x: &'static str,
    scale_y: &'static str,
    band: &'static str,
    layout: chart::Layout,
    cells: Vec<Cell>,
    /// The manifest's panels first, then those that a reader may choose.
    views: Vec<View>,
    theory: Vec<Prediction>,
    /// What the legend says of predictions: name, and pattern.
    kinds: Vec<(String, usize)>,
    references: Vec<f64>,
}

/// Panels and their curves, as the analysis has assigned them.
#[derive(Serialize)]
struct View {
    /// The settings that tell panels apart, with commas between them.
    panels: String,
    /// Title, and places of the cells.
    groups: Vec<(String, Vec<usize>)>,
    curves: Vec<Curve>,
    /// The curve of each cell.
    of: Vec<usize>,
}

/// A curve's name and style.
#[derive(Serialize)]
struct Curve {
    label: String,
    color: usize,
    dash: usize,
    mark: usize,
}

/// A cell of a figure.
#[derive(Serialize)]
struct Cell {
    id: String,
    /// What addresses call it: its label with every setting that varies.
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

/// A prediction beside a cell.
#[derive(Serialize)]
struct Prediction {
    cell: usize,
    /// What stands before the curve's name: `first order for`.
    words: String,
    dash: usize,
    /// Its rounds among the cell's; all of them if there is none.
    rows: Option<Slice>,
    y: Slice,
}

/// The data of an experiment's page.
pub fn data(experiment: &Experiment<'_>) -> Data {
    let mut numbers = Numbers::default();
    let cells: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|c| (c.cell.id.as_str(), c)).collect();
    let mut figures: Vec<Drawn> = Vec::new();
    for figure in &experiment.figures {
        if let (Some(asks), Some(layout)) = (&figure.asks, chart::layout(figure)) {
            figures.push(drawn(figure, asks, layout, &cells, &mut numbers));
        }
    }
    let size: usize = figures.iter().map(|f| replicates(f, &cells)).sum();
    if numbers.bytes() + size <= MOST_FOR_REPLICATES {
        for (figure, asks) in
            figures.iter_mut().zip(experiment.figures.iter().filter_map(|f| f.asks.as_ref()))
        {
            for cell in &mut figure.cells {
                cell.runs = runs(cells[cell.id.as_str()], asks, &mut numbers);
            }
        }
    }
    Data {
        numbers: numbers.blocks(),
        style: Look {
            palette: style::PALETTE,
            dashes: style::DASHES,
            faint: style::FAINT,
            marks: style::MARKS,
            most_marks: style::MOST_MARKS,
        },
        figures,
    }
}

/// Bytes that the replicates of a figure would take.
fn replicates(figure: &Drawn, cells: &HashMap<&str, &CellResult<'_>>) -> usize {
    let rows = |cell: &Cell| -> usize {
        let cell = cells[cell.id.as_str()];
        if figure.rounds { cell.along().iter().map(|t| t.rows()).sum() } else { cell.replicates() }
    };
    figure.cells.iter().map(rows).sum::<usize>() * 16 / 3
}

fn runs(cell: &CellResult<'_>, asks: &Asks, numbers: &mut Numbers) -> Vec<Slice> {
    match &asks.x {
        Across::Rounds(_) => {
            cell.along().iter().map(|t| numbers.add(cell.column(t, asks.y).into_owned())).collect()
        }
        Across::Cells(_) => {
            cell.finals(asks.y).into_iter().map(|sample| numbers.add(sample)).collect()
        }
    }
}

fn drawn(
    figure: &Figure,
    asks: &Asks,
    layout: chart::Layout,
    cells: &HashMap<&str, &CellResult<'_>>,
    numbers: &mut Numbers,
) -> Drawn {
    let Body::Panels { panels, legend, x: symbol, y, scale_x, scale_y } = &figure.body else {
        unreachable!("only figures of panels have a layout")
    };
    let shown: Vec<&CellResult<'_>> =
        asks.cells.iter().filter_map(|id| cells.get(id.as_str()).copied()).collect();
    let places: HashMap<&str, usize> =
        asks.cells.iter().enumerate().map(|(i, id)| (id.as_str(), i)).collect();
    let (x, xs) = match &asks.x {
        Across::Rounds(quantity) => (quantity.name().to_owned(), across(*quantity, &shown)),
        Across::Cells(name) => (short(name).to_owned(), vec![(short(name).into(), symbol.clone())]),
    };
    let theory = legend.iter().filter(|entry| entry.key == Key::Theory);
    let theory = theory.map(|Legend { label, style, .. }| (label.clone(), style.dash));
    Drawn {
        id: figure.id.clone(),
        title: figure.title.clone(),
        rounds: matches!(asks.x, Across::Rounds(_)),
        x,
        y: y.clone(),
        scale_x: scale_x.name(),
        scale_y: scale_y.name(),
        band: asks.band.name(),
        layout,
        cells: shown.iter().map(|c| cell(c, asks, &xs, numbers)).collect(),
        xs,
        views: asks.views.iter().map(view).collect(),
        theory: predictions(panels, &places, numbers),
        kinds: theory.collect(),
        references: asks.slopes.clone(),
    }
}

fn view(view: &analysis::View) -> View {
    let curve = |curve: &analysis::Curve| {
        let analysis::Style { color, dash, mark } = curve.style;
        Curve { label: curve.label.clone(), color, dash, mark }
    };
    View {
        panels: view.panels.join(","),
        groups: view.groups.clone(),
        curves: view.curves.iter().map(curve).collect(),
        of: view.of.clone(),
    }
}

/// What may be across: what the figure asks for, and every cost that grows.
fn across(asked: Quantity, cells: &[&CellResult<'_>]) -> Vec<(String, String)> {
    let grows = |q: Quantity| {
        let last = |c: &&CellResult<'_>| {
            c.along().iter().any(|t| c.column(t, q).last().is_some_and(|x| *x > 0.0))
        };
        cells.iter().any(last)
    };
    let others = COSTS.into_iter().filter(|q| *q != asked && grows(*q));
    let all = std::iter::once(asked).chain(others);
    all.map(|q| (q.name().to_owned(), q.formula().to_owned())).collect()
}

fn cell(
    result: &CellResult<'_>,
    asks: &Asks,
    xs: &[(String, String)],
    numbers: &mut Numbers,
) -> Cell {
    let columns: Vec<Vec<f64>> = match &asks.x {
        Across::Rounds(_) => {
            result.along().iter().map(|t| result.column(t, asks.y).into_owned()).collect()
        }
        Across::Cells(_) => {
            let finals = result.finals(asks.y).unwrap_or_default();
            finals.into_iter().map(|value| vec![value]).collect()
        }
    };
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    let samples: Vec<Vec<f64>> =
        (0..rows).map(|row| columns.iter().map(|c| c[row]).collect()).collect();
    let mut each = |of: &dyn Fn(&[f64]) -> f64| numbers.add(samples.iter().map(|s| of(s)));
    let (means, sd) = (each(&mean), each(&standard_deviation));
    let (low, high) = (each(&|s| quantile(s, 0.1)), each(&|s| quantile(s, 0.9)));
    let n = result.replicates();
    let settings = varied_settings(result.cell).map(|(_, told)| told);
    let name: Vec<String> = std::iter::once(result.cell.label.clone()).chain(settings).collect();
    let mut places = BTreeMap::new();
    for (name, _) in xs {
        let values: Vec<f64> = match &asks.x {
            Across::Rounds(_) => along(result, name, rows),
            Across::Cells(name) => analysis::across(result, name).into_iter().collect(),
        };
        places.insert(name.clone(), numbers.add(values));
    }
    Cell {
        id: result.cell.id.clone(),
        name: name.join(", "),
        n,
        diverged: result.diverged(),
        half: if n > 1 { student_95(n) / (n as f64).sqrt() } else { 0.0 },
        x: places,
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

fn predictions(
    panels: &[Panel],
    places: &HashMap<&str, usize>,
    numbers: &mut Numbers,
) -> Vec<Prediction> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for line in panels.iter().flat_map(|p| &p.series) {
        let Role::Theory(prediction) = line.role else { continue };
        let mut add = |id: &String, rows: Option<Slice>, y: Slice| {
            // A cell may stand in several panels.
            if let Some(cell) = places.get(id.as_str()).filter(|c| seen.insert((**c, prediction))) {
                let (words, dash) = (theory_words(prediction), line.style.dash);
                all.push(Prediction { cell: *cell, words, dash, rows, y });
            }
        };
        if line.rows.is_empty() {
            for (id, point) in line.cells.iter().zip(&line.points) {
                add(id, None, numbers.add([point.y]));
            }
        } else if let Some(id) = line.cells.first() {
            let whole = line.rows.iter().enumerate().all(|(i, row)| i == *row);
            let rows = (!whole).then(|| numbers.add(line.rows.iter().map(|r| *r as f64)));
            add(id, rows, numbers.add(line.points.iter().map(|p| p.y)));
        }
    }
    all
}
