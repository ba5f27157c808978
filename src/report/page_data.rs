//! The numbers that a page holds so that its reader can view the same results over another cost,
//! with another band or in other panels.
//!
//! *Invariant*: a page holds the numbers of its figures and no others. Single replicates of a
//! figure are left out if they would make it too large, and the page says so; means, deviations
//! and quantiles are always there.

use super::fixed_figure::{color_index, fixed_figure, view_data};
use super::numbers::{Numbers, Slice};
use crate::chart::{self, style};
use crate::evidence::measured::{self, MeasuredSamples};
use crate::evidence::{
    Band, Body, CellResult, Color, DenseMap, Experiment, Exploration, Figure, LegendEntry, Map,
    Maps, Plot, Square, SquareValue, XAxis, cell_name, unique, words_before,
};
use exactfed_core::sources;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::short;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes that the numbers of a page may take with single replicates, so that with its tables and
/// drawings no page exceeds 1.2 MB.
const MOST_WITH_REPLICATES: usize = 450_000;

/// The sequences of replicates: each by itself, or where they follow one another with one length, of
/// which a cell may have a thousand, the first and their number.
fn replicates(slices: &[Slice]) -> Value {
    let follow = |pair: &[Slice]| {
        let (Slice(block, first, length), next) = (pair[0], pair[1]);
        next == Slice(block, first + length, length)
    };
    match slices {
        [first, _, _, ..] if slices.windows(2).all(follow) => json!((first, slices.len())),
        _ => json!(slices),
    }
}

/// The colours, dashes and markers of figures.
fn styles() -> Value {
    json!({
        "palette": style::PALETTE.to_vec(),
        "dashes": style::DASHES,
        "thin_dashes": style::THIN_DASHES,
        "markers": style::MARKERS,
        "most_markers": style::MOST_MARKERS,
        // The colour of the names beside lines of each colour, on white paper.
        "inks": (0..style::PALETTE.len())
            .map(|index| style::ink(Color::Palette(index))[0])
            .collect::<Vec<_>>(),
    })
}

/// The data of an experiment's page.
pub fn page_data(experiment: &Experiment<'_>) -> Value {
    let mut numbers = Numbers::default();
    let results: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|c| (c.cell.id.as_str(), c)).collect();
    let plots = experiment.figures.iter().filter_map(|figure| match &figure.body {
        Body::Plot(plot) => Some((figure, plot, figure.exploration.as_ref()?)),
        Body::Maps(_) => None,
    });
    let mut figures = Vec::new();
    let mut shown: Vec<(&Exploration, Vec<&CellResult<'_>>, Vec<Value>)> = Vec::new();
    for (figure, plot, exploration) in plots {
        let drawn = exploration.cells.iter().filter_map(|id| results.get(id.as_str()).copied());
        let drawn: Vec<&CellResult<'_>> = drawn.collect();
        let xs = x_choices(plot, exploration, &drawn);
        let cells = drawn.iter().map(|c| cell_data(c, exploration, &xs, &mut numbers)).collect();
        figures.push(figure_data(figure, plot, exploration, &xs, &mut numbers));
        shown.push((exploration, drawn, cells));
    }
    for (exploration, drawn, cells) in &mut shown {
        if numbers.bytes() + bytes_of_replicates(exploration, drawn) > MOST_WITH_REPLICATES {
            continue;
        }
        for (result, cell) in drawn.iter().zip(cells) {
            let runs = runs(result, exploration).into_iter();
            let slices: Vec<_> = runs.map(|run| numbers.add(run.iter().copied())).collect();
            cell["runs"] = replicates(&slices);
        }
    }
    for (figure, (_, _, cells)) in figures.iter_mut().zip(shown) {
        figure["cells"] = json!(cells);
    }
    for figure in experiment.figures.iter().filter(|figure| figure.exploration.is_none()) {
        if let Body::Plot(plot) = &figure.body {
            figures.push(plot_data(figure, plot, fixed_figure(plot, &mut numbers)));
        }
    }
    let maps = experiment.figures.iter().filter_map(|figure| match &figure.body {
        Body::Maps(maps) => Some(maps_data(figure, maps)),
        Body::Plot(_) => None,
    });
    let manifest = &experiment.plan.manifest;
    json!({
        "numbers": numbers.blocks(),
        "styles": styles(),
        "figures": figures,
        "maps": maps.collect::<Vec<_>>(),
        // What a saved drawing says of itself.
        "experiment": experiment.plan.experiment,
        "question": manifest.question,
        "origin": sources::cited(manifest.source.as_deref().unwrap_or_default()),
    })
}

/// A figure of maps.
fn maps_data(figure: &Figure, maps: &Maps) -> Value {
    let entry = |entry: &LegendEntry| {
        json!({
            "label": entry.name(),
            "color": color_index(entry.style().color),
            "patch": entry.is_patch(),
        })
    };
    json!({
        "id": figure.id,
        "title": figure.title,
        "x": maps.x,
        "y": maps.y,
        // What a reader may choose to see in the squares.
        "choices": choices(maps),
        "maps": maps.maps.iter().map(map_data).collect::<Vec<_>>(),
        "legend": maps.legend.iter().map(entry).collect::<Vec<_>>(),
    })
}

/// What the squares of some maps can show.
fn choices(maps: &Maps) -> &'static [&'static str] {
    match maps.maps.iter().flat_map(|map| &map.squares).next().map(|square| &square.value) {
        Some(SquareValue::Stability(_)) => {
            &["runs that diverged", "ρ of second moments", "ρ of the mean"]
        }
        _ => &["the winner", "how far ahead"],
    }
}

/// A map whose squares have no texts: of each its place, the number of who is best, how far ahead, and a remark.
fn dense_data(map: &Map, dense: &DenseMap) -> Value {
    let shown: Vec<Vec<String>> = map.squares.iter().map(Square::shows).collect();
    let winners = unique(shown.iter().map(|shows| shows[0].clone()));
    let square = |((square, shows), remark): ((&Square, &Vec<String>), &String)| {
        let winner = winners.iter().position(|winner| *winner == shows[0]);
        json!([square.x, square.y, winner, shows[1], remark])
    };
    let squares = map.squares.iter().zip(&shown).zip(&dense.remarks).map(square);
    json!({
        "x": map.x,
        "y": map.y,
        "values": dense.values,
        "squares": squares.collect::<Vec<_>>(),
        "winners": winners,
    })
}

fn map_data(map: &Map) -> Value {
    match &map.dense {
        Some(dense) => dense_data(map, dense),
        // A text for each choice.
        None => chart::map_values(map, |color| json!(color_index(color)), "shows", Square::shows),
    }
}

/// Bytes that the replicates of a figure would take.
fn bytes_of_replicates(exploration: &Exploration, cells: &[&CellResult<'_>]) -> usize {
    let rows = |cell: &&CellResult<'_>| -> usize {
        // The runs on one of several instances are one sequence, their mean.
        let runs_of_sequence = cell.runs.count / cell.runs.sample_size().max(1);
        match exploration.x {
            XAxis::Rounds(_) => {
                let traces = cell.runs.along().iter().step_by(runs_of_sequence.max(1));
                traces.map(|trace| trace.rows()).sum()
            }
            XAxis::Cells(_) => cell.runs.sample_size(),
        }
    };
    cells.iter().map(rows).sum::<usize>() * 16 / 3
}

/// What the y axis shows of each replicate of a cell: a sequence over recorded rounds, or one
/// sequence of all last values.
fn runs<'c>(cell: &'c CellResult<'_>, exploration: &Exploration) -> Vec<Cow<'c, [f64]>> {
    match exploration.x {
        XAxis::Rounds(_) => cell.runs.columns(exploration.y),
        XAxis::Cells(_) => cell.runs.finals(exploration.y).into_iter().map(Cow::Owned).collect(),
    }
}

/// What the script needs of a figure of curves, whether of cells or of exact values; `more` is what
/// it needs besides.
fn plot_data(figure: &Figure, plot: &Plot, more: Value) -> Value {
    let kinds = plot.legend.iter().filter(|entry| matches!(entry, LegendEntry::Prediction(_)));
    let mut data = json!({
        "id": figure.id,
        "title": figure.title,
        "y": plot.y,
        "scale_x": plot.scale_x,
        "scale_y": plot.scale_y,
        "layout": {
            // Panels in a row.
            "columns": figure.columns.clamp(1, plot.panels.len().max(1)),
            "frames": chart::frames(plot),
        },
        // The point whose value labels say, and whether they compare it with the lowest.
        "labels": plot.labels,
        // The index of the panel that is drawn large, if one is.
        "large": figure.large,
        // The predictions in the legend: name, and dash pattern.
        "kinds": kinds.map(|entry| (entry.name(), entry.style().dash.index())).collect::<Vec<_>>(),
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    data
}

/// A figure of curves, without its cells.
fn figure_data(
    figure: &Figure,
    plot: &Plot,
    exploration: &Exploration,
    xs: &[(String, String)],
    numbers: &mut Numbers,
) -> Value {
    let bands = measured::offered_bands(exploration.band);
    let more = json!({
        // Whether a cell is a curve, or a point.
        "rounds": matches!(exploration.x, XAxis::Rounds(_)),
        // The quantity or setting on the x axis, and what a reader may choose instead: names, and
        // titles of the axis.
        "x": xs[0].0,
        "xs": xs,
        "band": exploration.band,
        // The bands that a reader may choose, of which each cell has the ends in this order.
        "bands": bands,
        // What each number of a sample is of.
        "unit": exploration.unit,
        "cells": [],
        // The manifest's panels first, then those that a reader may choose.
        "views": exploration.views.iter().map(view_data).collect::<Vec<_>>(),
        "theory": predictions(plot, &exploration.cells, numbers),
        // Slopes of reference lines.
        "references": exploration.slopes,
    });
    plot_data(figure, plot, more)
}

/// What a reader may choose for the x axis: what the figure has there first, then every cost that
/// grows; names, and titles of the axis.
fn x_choices(
    plot: &Plot,
    exploration: &Exploration,
    cells: &[&CellResult<'_>],
) -> Vec<(String, String)> {
    let own = match &exploration.x {
        XAxis::Rounds(quantity) => *quantity,
        XAxis::Cells(name) => return vec![(short(name).to_owned(), plot.x.clone())],
    };
    let grows = |q: Quantity| {
        let last = |c: &&CellResult<'_>| {
            c.runs.columns(q).iter().any(|x| x.last().is_some_and(|x| *x > 0.0))
        };
        cells.iter().any(last)
    };
    let others = Quantity::COSTS.into_iter().filter(|q| *q != own && grows(*q));
    let all = std::iter::once(own).chain(others);
    all.map(|q| (q.name().to_owned(), q.formula().to_owned())).collect()
}

/// A cell of a figure.
fn cell_data(
    result: &CellResult<'_>,
    exploration: &Exploration,
    xs: &[(String, String)],
    numbers: &mut Numbers,
) -> Value {
    let samples = MeasuredSamples::new(result, &exploration.x, exploration.y);
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
    json!({
        "id": result.cell.id.as_str(),
        // Its name in addresses: its label with every setting that varies.
        "name": cell_name(result.cell),
        "n": means.first().map_or(0, |point| point.n),
        "diverged": result.runs.diverged,
        "x": x,
        "mean": numbers.add(means.iter().map(|p| p.y)),
        // By what labels compare it with other curves, where that is not the mean.
        "geometric": geometric,
        // The lower and the upper ends of each band that the figure offers.
        "bands": bands,
        // Each number of the samples by itself, until a run diverged.
        "runs": [],
    })
}

/// The predictions of a figure, each of a cell once, although a cell may be in several panels.
fn predictions(plot: &Plot, cells: &[String], numbers: &mut Numbers) -> Vec<Value> {
    let indices: HashMap<&str, usize> =
        cells.iter().enumerate().map(|(i, id)| (id.as_str(), i)).collect();
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for series in plot.series() {
        let Some(prediction) = series.line.prediction() else { continue };
        let mut add = |id: &String, rows: Option<Slice>, y: Slice| {
            if let Some(cell) = indices.get(id.as_str()).filter(|c| seen.insert((**c, prediction)))
            {
                all.push(json!({
                    "cell": cell,
                    // The words before the curve's name: `first order for`.
                    "words": words_before(prediction),
                    "dash": series.line.style().dash.index(),
                    // Its rounds among the cell's; all of them if there is none.
                    "rows": rows,
                    "y": y,
                }));
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
