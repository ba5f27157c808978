//! The numbers that a page holds so that its reader can view the same results over another cost,
//! with another band or in other panels.
//!
//! *Invariant*: a page holds the numbers of its figures and no others. Single replicates of a
//! figure are left out if they would make it too large, and the page says so; means, deviations
//! and quantiles are always there.

use super::figure_data::{
    BandName, CellData, CurveFigureData, CurvesData, FigureStyles, MapData, MapFigureData,
    MapLegendData, PageData, PanelRows, PredictionData, ReplicateSlices, SampleSize, SquareData,
    ViewData, color_index,
};
use super::fixed_figure::fixed_figure;
use super::numbers::{Numbers, Slice};
use crate::chart;
use crate::evidence::measured::{self, MeasuredSamples};
use crate::evidence::{
    Band, Body, CellResult, DenseMap, Experiment, Exploration, Figure, LegendEntry, Map, Maps,
    Plot, Square, SquareValue, XAxis, cell_name, unique, words_before,
};
use exactfed_core::sources;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::short;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes that the numbers of a page may take with single replicates, so that with its tables and
/// drawings no page exceeds 1.2 MB.
const MOST_WITH_REPLICATES: usize = 450_000;

/// The data that the script of an experiment's page reads. Single replicates are added figure by figure, after all
/// other numbers of figures of cells, and only to figures with which the page does not become too large.
pub fn page_data<'e>(experiment: &'e Experiment<'_>) -> PageData<'e> {
    let mut numbers = Numbers::default();
    let results: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|c| (c.cell.id.as_str(), c)).collect();
    let mut figures = Vec::new();
    // The exploration and the drawn cells of each of `figures`.
    let mut shown: Vec<(&Exploration, Vec<&CellResult<'_>>)> = Vec::new();
    // The figures whose points belong to no cells.
    let mut fixed = Vec::new();
    for figure in &experiment.figures {
        match (&figure.body, &figure.exploration) {
            (Body::Plot(plot), Some(exploration)) => {
                let ids = exploration.cells.iter();
                let drawn: Vec<&CellResult<'_>> =
                    ids.filter_map(|id| results.get(id.as_str()).copied()).collect();
                let curves = explored_curves(plot, exploration, &drawn, &mut numbers);
                figures.push(plot_data(figure, plot, curves));
                shown.push((exploration, drawn));
            }
            (Body::Plot(plot), None) => fixed.push((figure, plot)),
            (Body::Maps(_), _) => {}
        }
    }
    for (figure, (exploration, drawn)) in figures.iter_mut().zip(&shown) {
        if numbers.bytes() + bytes_of_replicates(exploration, drawn) > MOST_WITH_REPLICATES {
            continue;
        }
        let samples = drawn_samples(exploration, drawn);
        for ((y, result), cell) in samples.zip(&mut figure.curves.cells) {
            let runs = runs(result, exploration, y).into_iter();
            let slices = runs.map(|run| numbers.add(run.iter().copied())).collect();
            cell.runs = ReplicateSlices::new(slices);
        }
    }
    // Figures without cells come last, so that the replicates of the other figures find room first.
    for (figure, plot) in fixed {
        figures.push(plot_data(figure, plot, fixed_figure(plot, &mut numbers)));
    }
    let maps = experiment.figures.iter().filter_map(|figure| match &figure.body {
        Body::Maps(maps) => Some(maps_data(figure, maps)),
        Body::Plot(_) => None,
    });
    let manifest = &experiment.plan.manifest;
    PageData {
        numbers: numbers.blocks(),
        styles: FigureStyles::new(),
        figures,
        maps: maps.collect(),
        experiment: &experiment.plan.experiment,
        question: manifest.question.as_deref(),
        origin: sources::cited(manifest.source.as_deref().unwrap_or_default()),
    }
}

/// A figure of maps as the script reads it.
fn maps_data<'e>(figure: &'e Figure, maps: &'e Maps) -> MapFigureData<'e> {
    let legend = maps.legend.iter().map(|entry| MapLegendData {
        label: entry.name(),
        color: color_index(entry.style().color),
        patch: entry.is_patch(),
    });
    MapFigureData {
        id: &figure.id,
        title: &figure.title,
        x: &maps.x,
        y: &maps.y,
        choices: choices(maps),
        maps: maps.maps.iter().map(map_data).collect(),
        legend: legend.collect(),
    }
}

/// What a reader may choose to see in the squares of these maps, which are all of one kind: a name for each text of
/// [`Square::shows`], in its order. Of a ranking, the script divides the text of the first choice at " or " into the
/// names of winners.
fn choices(maps: &Maps) -> &'static [&'static str] {
    match maps.maps.iter().flat_map(|map| &map.squares).next().map(|square| &square.value) {
        Some(SquareValue::Stability(_)) => {
            &["runs that diverged", "ρ of second moments", "ρ of the mean"]
        }
        _ => &["the winner", "how far ahead"],
    }
}

/// A map as the script reads it, which has no texts for its squares if it is dense.
fn map_data(map: &Map) -> MapData<'_> {
    if let Some(dense) = &map.dense {
        return dense_data(map, dense);
    }
    let squares = map.squares.iter().map(|square| SquareData {
        x: square.x,
        y: square.y,
        color: color_index(square.color()),
        opacity: square.opacity(),
        outlined: square.is_outlined(),
        shows: square.shows(),
    });
    MapData::Squares {
        title: &map.title,
        x: &map.x,
        y: &map.y,
        squares: squares.collect(),
        edges: map.edges(),
    }
}

/// A map of too many squares for texts as the script reads it, which makes the texts of a square when a reader points
/// at it. Its squares are of rankings: they have two texts, the winner and how far ahead it is.
fn dense_data<'e>(map: &'e Map, dense: &'e DenseMap) -> MapData<'e> {
    let shown: Vec<Vec<String>> = map.squares.iter().map(Square::shows).collect();
    let winners = unique(shown.iter().map(|shows| shows[0].clone()));
    let mut squares = Vec::new();
    for ((square, shows), remark) in map.squares.iter().zip(&shown).zip(&dense.remarks) {
        let winner = winners.iter().position(|winner| *winner == shows[0]);
        squares.push((square.x, square.y, winner, shows[1].clone(), remark.as_str()));
    }
    MapData::Dense { x: &map.x, y: &map.y, values: &dense.values, squares, winners }
}

/// About how many bytes the single replicates of these cells of a figure would take in a page: 4 for each number in
/// single precision, which base64 makes 16/3. Sequences that the page has already take none, and those in
/// double precision take twice as many.
fn bytes_of_replicates(exploration: &Exploration, cells: &[&CellResult<'_>]) -> usize {
    let mut numbers = 0;
    for cell in cells {
        // The runs on one of several instances are one sequence, their mean.
        let runs_of_sequence = cell.runs.count / cell.runs.sample_size().max(1);
        numbers += match exploration.x {
            XAxis::Rounds(_) => {
                let traces = cell.runs.along().iter().step_by(runs_of_sequence.max(1));
                traces.map(|trace| trace.rows()).sum()
            }
            XAxis::Cells(_) => cell.runs.sample_size(),
        };
    }
    numbers * exploration.y.len() * 16 / 3
}

/// The cells of a figure with each of its quantities, in the order that the indices of its views have.
fn drawn_samples<'d, 'c>(
    exploration: &'d Exploration,
    drawn: &'d [&'c CellResult<'c>],
) -> impl Iterator<Item = (Quantity, &'c CellResult<'c>)> + 'd {
    exploration.y.iter().flat_map(move |y| drawn.iter().map(move |cell| (*y, *cell)))
}

/// What a panel of the quantity `y` shows of the single replicates of a cell: for each a sequence over recorded rounds,
/// or, in a figure whose points are cells, one sequence of the last values of all replicates. If there are several
/// instances, the means on each instance take the place of replicates.
fn runs<'c>(
    cell: &'c CellResult<'_>,
    exploration: &Exploration,
    y: Quantity,
) -> Vec<Cow<'c, [f64]>> {
    match exploration.x {
        XAxis::Rounds(_) => cell.runs.columns(y),
        XAxis::Cells(_) => cell.runs.finals(y).into_iter().map(Cow::Owned).collect(),
    }
}

/// A figure as the script reads it, whose curves are `curves`.
fn plot_data<'e>(figure: &'e Figure, plot: &'e Plot, curves: CurvesData) -> CurveFigureData<'e> {
    let kinds = plot.legend.iter().filter(|entry| matches!(entry, LegendEntry::Prediction(_)));
    CurveFigureData {
        id: &figure.id,
        title: &figure.title,
        y: &plot.y,
        scale_x: plot.scale_x,
        scale_y: plot.scale_y,
        layout: PanelRows {
            columns: figure.columns.clamp(1, plot.panels.len().max(1)),
            frames: chart::frames(plot),
        },
        labels: plot.labels,
        large: figure.large,
        kinds: kinds.map(|entry| (entry.name(), entry.style().dash.index())).collect(),
        curves,
    }
}

/// The curves of a figure of the cells `drawn`, which a reader may view over another axis, with another band or in
/// other panels; single replicates are not among them yet.
fn explored_curves(
    plot: &Plot,
    exploration: &Exploration,
    drawn: &[&CellResult<'_>],
    numbers: &mut Numbers,
) -> CurvesData {
    let xs = x_choices(plot, exploration, drawn);
    let samples = drawn_samples(exploration, drawn);
    let cells = samples.map(|(y, cell)| cell_data(cell, exploration, y, &xs, numbers)).collect();
    let bands = measured::offered_bands(exploration.band);
    CurvesData {
        rounds: matches!(exploration.x, XAxis::Rounds(_)),
        x: xs[0].0.clone(),
        xs,
        fixed: false,
        band: BandName::Offered(exploration.band),
        bands: bands.into_iter().map(BandName::Offered).collect(),
        unit: exploration.unit,
        selected: None,
        cells,
        views: exploration.views.iter().map(ViewData::new).collect(),
        theory: predictions(plot, &exploration.cells, numbers),
        references: exploration.slopes.clone(),
    }
}

/// What a reader may choose for the x axis, as names, by which cells have their places, and titles of the axis: what
/// the figure has there first, then every cost that grows. In a figure whose points are cells there is no other choice.
fn x_choices(
    plot: &Plot,
    exploration: &Exploration,
    cells: &[&CellResult<'_>],
) -> Vec<(String, String)> {
    let own = match &exploration.x {
        XAxis::Rounds(quantity) => *quantity,
        XAxis::Cells(name) => return vec![(short(name).to_owned(), plot.x.clone())],
    };
    let others = Quantity::COSTS.into_iter().filter(|cost| *cost != own && grows(*cost, cells));
    let all = std::iter::once(own).chain(others);
    all.map(|quantity| (quantity.name().to_owned(), quantity.formula().to_owned())).collect()
}

/// Whether a cost is above 0 at the end of some run of these cells, so that an axis of it shows something. False if no
/// trace of them is in memory.
fn grows(cost: Quantity, cells: &[&CellResult<'_>]) -> bool {
    let runs_of_cells = cells.iter().flat_map(|cell| cell.runs.columns(cost));
    runs_of_cells.into_iter().any(|run| run.last().is_some_and(|last| *last > 0.0))
}

/// A cell of a figure without its single replicates: its means of the quantity `y`, the bands that the figure offers,
/// and its places on each of the x axes in `xs`. They are sequences over recorded rounds, up to the first divergence of a run, or, in a
/// figure whose points are cells, sequences of at most one number, of the last round.
fn cell_data(
    result: &CellResult<'_>,
    exploration: &Exploration,
    y: Quantity,
    xs: &[(String, String)],
    numbers: &mut Numbers,
) -> CellData {
    let samples = MeasuredSamples::new(result, &exploration.x, y);
    let places = measured::places(result, &exploration.x);
    let means = samples.points(&places, Band::None);
    let is_geometric = means.iter().any(|point| !point.geometric.is_nan());
    let geometric = is_geometric.then(|| numbers.add(means.iter().map(|p| p.geometric)));
    let bands = measured::offered_bands(exploration.band).into_iter().map(|band| {
        let points = samples.points(&places, band);
        [numbers.add(points.iter().map(|p| p.low)), numbers.add(points.iter().map(|p| p.high))]
    });
    let bands: Vec<[Slice; 2]> = bands.collect();
    let mut across = |x: &str| {
        let values = match (&exploration.x, Quantity::named(x)) {
            (XAxis::Rounds(_), Some(cost)) => measured::places(result, &XAxis::Rounds(cost)),
            _ => places.clone(),
        };
        (x.to_owned(), numbers.add(values))
    };
    let x: BTreeMap<String, Slice> = xs.iter().map(|(x, _)| across(x)).collect();
    CellData {
        id: result.cell.id.to_string(),
        name: cell_name(result.cell),
        n: SampleSize::OfAllPoints(means.first().map_or(0, |point| point.n)),
        diverged: result.runs.diverged,
        x,
        mean: numbers.add(means.iter().map(|p| p.y)),
        geometric,
        bands,
        runs: ReplicateSlices::Each(Vec::new()),
    }
}

/// The predictions of a figure for its cells, which have the ids `cells`. A cell may be in several panels, and each
/// kind of prediction for it is added once.
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
                all.push(PredictionData {
                    cell: *cell,
                    words: words_before(prediction),
                    dash: series.line.style().dash.index(),
                    rows,
                    y,
                });
            }
        };
        // A line without rows has points of several cells, one of each; one with rows is of a single cell.
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
