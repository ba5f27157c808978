//! What a page carries so that its reader can look at the same results in another
//! way: over another cost, with another band, in other panels.
//!
//! *Invariant*: a page holds the numbers of its figures and no others. Where all
//! replicates of all figures would make it too large, they stay out and the page
//! says so; means, deviations and quantiles are always there.

use super::numbers::{Blocks, Numbers, Slice};
use crate::analysis::{
    self, Across, Asks, Body, COSTS, Experiment, Figure, Panel, Result, Role, Series, details_of,
    titles,
};
use crate::chart::{self, look};
use crate::manifest::Quantity;
use crate::plan::short;
use crate::stats::{mean, quantile, standard_deviation, student_95};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes that single replicates may take in a page.
const MOST_FOR_REPLICATES: usize = 1_500_000;

/// The data of a page.
#[derive(Serialize)]
pub struct Data {
    numbers: Blocks,
    look: Look,
    figures: Vec<Drawn>,
}

#[derive(Serialize)]
struct Look {
    palette: [(u8, u8, u8); 8],
    dashes: [&'static str; 4],
    faint: [&'static str; 6],
    marks: [look::Mark; 8],
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
    /// Settings that tell panels apart in the manifest's figure.
    panels: Vec<String>,
    /// Settings that may tell panels apart.
    axes: Vec<String>,
    layout: chart::Layout,
    cells: Vec<Cell>,
    theory: Vec<Prediction>,
    references: Vec<f64>,
}

/// A cell of a figure.
#[derive(Serialize)]
struct Cell {
    id: String,
    label: String,
    /// What it is called in a panel's title, by setting.
    settings: BTreeMap<String, String>,
    /// What tells it apart from others of its label: setting, and how it is written.
    details: Vec<(String, String)>,
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
    kind: String,
    grey: bool,
    dash: usize,
    /// Its rounds among the cell's; all of them if there is none.
    rows: Option<Slice>,
    y: Slice,
}

/// The data of an experiment's page.
pub fn data(experiment: &Experiment<'_>) -> Data {
    let mut numbers = Numbers::default();
    let cells: HashMap<&str, &Result<'_>> =
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
        look: Look {
            palette: look::PALETTE,
            dashes: look::DASHES,
            faint: look::FAINT,
            marks: look::MARKS,
            most_marks: look::MOST_MARKS,
        },
        figures,
    }
}

/// Bytes that the replicates of a figure would take.
fn replicates(figure: &Drawn, cells: &HashMap<&str, &Result<'_>>) -> usize {
    let rows = |cell: &Cell| -> usize {
        let cell = cells[cell.id.as_str()];
        if figure.rounds { cell.along().iter().map(|t| t.rows()).sum() } else { cell.replicates() }
    };
    figure.cells.iter().map(rows).sum::<usize>() * 16 / 3
}

fn runs(cell: &Result<'_>, asks: &Asks, numbers: &mut Numbers) -> Vec<Slice> {
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
    cells: &HashMap<&str, &Result<'_>>,
    numbers: &mut Numbers,
) -> Drawn {
    let Body::Panels { panels, x: symbol, y, scale_x, scale_y, .. } = &figure.body else {
        unreachable!("only figures of panels have a layout")
    };
    let series = || panels.iter().flat_map(|p| &p.series);
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for id in series().filter(|s| s.role == Role::Measured).flat_map(|s| &s.cells) {
        places.entry(id).or_insert_with(|| {
            order.push(id);
            order.len() - 1
        });
    }
    let shown: Vec<&Result<'_>> = order.iter().filter_map(|id| cells.get(id).copied()).collect();
    let mut axes: Vec<String> = asks.panels.iter().map(|name| short(name).to_owned()).collect();
    for name in shown.iter().flat_map(|c| &c.cell.varied).map(|path| short(path)) {
        if !axes.iter().any(|have| have == name) {
            axes.push(name.to_owned());
        }
    }
    let (x, xs) = match &asks.x {
        Across::Rounds(quantity) => (quantity.name().to_owned(), across(*quantity, &shown)),
        Across::Cells(name) => (short(name).to_owned(), vec![(short(name).into(), symbol.clone())]),
    };
    axes.retain(|name| matches!(asks.x, Across::Rounds(_)) || *name != x);
    let references = series().filter(|s| s.role == Role::Reference).filter_map(slope);
    let mut slopes: Vec<f64> = Vec::new();
    references.for_each(|s| {
        if !slopes.contains(&s) {
            slopes.push(s)
        }
    });
    let made = shown.iter().map(|c| cell(c, asks, &xs, numbers));
    let mut made: Vec<Cell> = made.collect();
    for name in &axes {
        for (cell, title) in made.iter_mut().zip(titles(name, &shown)) {
            cell.settings.extend(title.map(|title| (name.clone(), title)));
        }
    }
    Drawn {
        id: figure.id.clone(),
        title: figure.title.clone(),
        rounds: matches!(asks.x, Across::Rounds(_)),
        x,
        xs,
        y: y.clone(),
        scale_x: scale_x.name(),
        scale_y: scale_y.name(),
        band: asks.band.name(),
        panels: asks.panels.iter().map(|name| short(name).to_owned()).collect(),
        axes,
        layout,
        cells: made,
        theory: predictions(panels, &places, numbers),
        references: slopes,
    }
}

/// What may be across: what the figure asks for, and every cost that grows.
fn across(asked: Quantity, cells: &[&Result<'_>]) -> Vec<(String, String)> {
    let grows = |q: Quantity| {
        let last = |c: &&Result<'_>| {
            c.along().iter().any(|t| c.column(t, q).last().is_some_and(|x| *x > 0.0))
        };
        cells.iter().any(last)
    };
    let others = COSTS.into_iter().filter(|q| *q != asked && grows(*q));
    let all = std::iter::once(asked).chain(others);
    all.map(|q| (q.name().to_owned(), q.formula().to_owned())).collect()
}

fn cell(result: &Result<'_>, asks: &Asks, xs: &[(String, String)], numbers: &mut Numbers) -> Cell {
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
        label: result.cell.label.clone(),
        settings: BTreeMap::new(),
        details: details_of(result).map(|(path, told)| (short(path).to_owned(), told)).collect(),
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
fn along(cell: &Result<'_>, name: &str, rows: usize) -> Vec<f64> {
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
    let place = |id: &str| places.get(id).copied();
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for panel in panels {
        let mut measured = "";
        for line in &panel.series {
            match line.role {
                Role::Measured => {
                    measured = &line.label;
                    continue;
                }
                Role::Reference => continue,
                Role::Theory => {}
            }
            // A prediction follows the curve that it stands beside.
            let words = line.label.strip_suffix(measured).unwrap_or(&line.label).trim_end();
            let mut add = |cell: usize, rows: Option<Slice>, y: Slice| {
                if seen.insert((cell, words.to_owned())) {
                    let (grey, dash) = (line.style.color == usize::MAX, line.style.dash);
                    let kind = crate::analysis::theory_name(dash).to_owned();
                    all.push(Prediction {
                        cell,
                        words: words.to_owned(),
                        kind,
                        grey,
                        dash,
                        rows,
                        y,
                    });
                }
            };
            if line.rows.is_empty() {
                for (id, point) in line.cells.iter().zip(&line.points) {
                    if let Some(cell) = place(id) {
                        add(cell, None, numbers.add([point.y]));
                    }
                }
            } else if let Some(cell) = line.cells.first().and_then(|id| place(id)) {
                let whole = line.rows.iter().enumerate().all(|(i, row)| i == *row);
                let rows = (!whole).then(|| numbers.add(line.rows.iter().map(|r| *r as f64)));
                add(cell, rows, numbers.add(line.points.iter().map(|p| p.y)));
            }
        }
    }
    all
}

/// The slope of a reference on logarithmic axes.
fn slope(series: &Series) -> Option<f64> {
    series.label.strip_prefix("slope ")?.parse().ok()
}
