//! Which cells a figure draws where there are more than a reader can tell apart, or a browser
//! can open.
//!
//! *Invariant*: a figure of so few is drawn whole; any other says how many it draws of how
//! many, and how they were chosen: not the best alone, but spread evenly from the smallest to
//! the largest of what they end with.

use super::curves::curves;
use super::{CellResult, panels, scaling};
use crate::stats::mean;
use driftbench_core::words::thousands;
use driftbench_runner::manifest::figure::{Convergence, Scaling, Stability, Table, Winners};
use driftbench_runner::plan::{Cell, Setting};
use std::collections::{BTreeSet, HashSet};

/// Curves of a figure.
pub const MOST_CURVES: usize = 100;
/// Curves of a figure that has more.
const FEW_CURVES: usize = 48;
/// Panels of a figure.
const MOST_PANELS: usize = 32;
/// Points of a figure over a setting: each is a cell.
const MOST_POINTS: usize = 1000;
/// Values along a side of a map, and squares of all maps of a figure.
const MOST_SIDE: usize = 40;
const MOST_SQUARES: usize = 600;

/// The cells that a figure draws, and what its caption says of the others.
pub struct Sample {
    /// Places of the cells among all, in their order.
    pub cells: Vec<usize>,
    /// What was left out; empty if nothing was.
    pub note: String,
}

impl Sample {
    fn new(all: &[CellResult<'_>], these: &[&CellResult<'_>], note: String) -> Self {
        let these: HashSet<&str> = these.iter().map(|cell| cell.cell.id.as_str()).collect();
        let here = |place: &usize| these.contains(all[*place].cell.id.as_str());
        Self { cells: (0..all.len()).filter(here).collect(), note }
    }

    /// The cells themselves.
    pub fn among<'a>(&self, all: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().map(|place| &all[*place]).collect()
    }
}

/// What the figures of a manifest draw, kind by kind in their order.
pub struct FigureCells {
    /// `[[figure.convergence]]`.
    pub convergence: Vec<Sample>,
    /// `[[figure.scaling]]`.
    pub scaling: Vec<Sample>,
    /// `[[figure.winners]]`.
    pub winners: Vec<Sample>,
    /// `[[figure.stability]]`.
    pub stability: Vec<Sample>,
}

impl FigureCells {
    /// What each figure draws of these cells.
    pub fn new(table: &Table, cells: &[CellResult<'_>]) -> Self {
        Self {
            convergence: table.convergence.iter().map(|f| convergence(f, cells)).collect(),
            scaling: table.scaling.iter().map(|f| scaling(f, cells)).collect(),
            winners: table.winners.iter().map(|f| winners(f, cells)).collect(),
            stability: table.stability.iter().map(|f| stability(f, cells)).collect(),
        }
    }
}

/// The cells of these labels.
fn only<'a>(labels: &[String], cells: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
    cells.iter().filter(|cell| panels::has_label(labels, cell.cell)).collect()
}

/// The curves of a figure over a cost.
fn convergence(figure: &Convergence, every: &[CellResult<'_>]) -> Sample {
    let cells = only(&figure.common.labels, every);
    if cells.len() <= MOST_CURVES {
        return Sample::new(every, &cells, String::new());
    }
    let all = cells.len();
    let end = |cell: &&CellResult<'_>| cell.finals(figure.y).map_or(f64::INFINITY, |v| mean(&v));
    let (groups, mut notes) = few_panels(panels::panels(&figure.common.panels, &cells));
    let each = (FEW_CURVES / groups.len().max(1)).max(2);
    let groups = groups.into_iter().map(|group| by_rank(group.cells, each, end));
    let cells = in_order(&cells, groups.flatten());
    let formula = figure.y.formula();
    notes.insert(
        0,
        format!(
            "{} of {} curves are drawn, spread evenly from the smallest to the largest final mean of {formula} in each panel (cells whose runs diverged rank last)",
            cells.len(),
            thousands(all)
        ),
    );
    Sample::new(every, &cells, told(&notes))
}

/// The curves of a figure over a setting.
fn scaling(figure: &Scaling, every: &[CellResult<'_>]) -> Sample {
    let mut cells = only(&figure.common.labels, every);
    let (all, mut notes) = (cells.len(), Vec::new());
    let groups = panels::panels(&figure.common.panels, &cells);
    if groups.len() > MOST_PANELS {
        let (groups, note) = few_panels(groups);
        notes = note;
        cells = in_order(&cells, groups.into_iter().flat_map(|group| group.cells));
    }
    let known: Vec<&str> = figure.common.panels.iter().map(String::as_str).collect();
    let known = [known, scaling::settings_of_axis(&figure.x)].concat();
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let (found, of) = curves(&plain, &known);
    let mut curves: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); found.len()];
    cells.iter().zip(of).for_each(|(cell, place)| curves[place].push(cell));
    if curves.len() > MOST_CURVES {
        let count = curves.len();
        let end =
            |cell: &&CellResult<'_>| cell.finals(figure.y).map_or(f64::INFINITY, |v| mean(&v));
        curves = by_rank(curves, FEW_CURVES, |curve| {
            curve.iter().map(end).fold(f64::INFINITY, f64::min)
        });
        notes.push(format!(
            "{} of {} curves are drawn, spread evenly from the smallest to the largest of their least values",
            curves.len(),
            thousands(count)
        ));
    }
    if curves.iter().map(Vec::len).sum::<usize>() > MOST_POINTS {
        let each = (MOST_POINTS / curves.len().max(1)).max(2);
        let x = |cell: &&CellResult<'_>| scaling::x_value(cell, &figure.x).unwrap_or(f64::INFINITY);
        curves = curves.into_iter().map(|curve| by_rank(curve, each, x)).collect();
        notes.push(format!(
            "of each curve at most {each} points are drawn, spread evenly from left to right"
        ));
    }
    if notes.is_empty() {
        return Sample::new(every, &cells, String::new());
    }
    let cells = in_order(&cells, curves.into_iter().flatten());
    notes.push(format!("{} of {} cells stand behind them", cells.len(), thousands(all)));
    Sample::new(every, &cells, told(&notes))
}

/// The squares of a figure of maps.
fn winners(figure: &Winners, every: &[CellResult<'_>]) -> Sample {
    maps(every, &figure.common.labels, &figure.common.panels, (&figure.x, &figure.y))
}

/// The squares of a figure of maps, one a label.
fn stability(figure: &Stability, every: &[CellResult<'_>]) -> Sample {
    maps(every, &figure.common.labels, &figure.common.panels, (&figure.x, &figure.y))
}

fn maps<'a>(
    every: &'a [CellResult<'a>],
    labels: &[String],
    panels: &[String],
    (x, y): (&str, &str),
) -> Sample {
    let cells = only(labels, every);
    let (xs, ys) = (panels::distinct(&cells, x), panels::distinct(&cells, y));
    let groups = panels::panels(panels, &cells);
    let (wide, high) = (xs.len().min(MOST_SIDE), ys.len().min(MOST_SIDE));
    let most = (MOST_SQUARES / (wide * high).max(1)).clamp(1, MOST_PANELS);
    let fits = xs.len() == wide && ys.len() == high;
    if fits && (groups.len() <= most || cells.len() <= MOST_SQUARES) {
        return Sample::new(every, &cells, String::new());
    }
    let count = groups.len();
    let groups = evenly(groups, most);
    let mut notes = Vec::new();
    if groups.len() < count {
        notes.push(format!("{} of {} maps are drawn", groups.len(), thousands(count)));
    }
    if !fits {
        notes.push(format!(
            "{wide} of {} values across and {high} of {} upwards are drawn, spread evenly",
            thousands(xs.len()),
            thousands(ys.len())
        ));
    }
    let shown = |values: Vec<&'a Setting>, most: usize| -> BTreeSet<String> {
        evenly(values, most).iter().map(ToString::to_string).collect()
    };
    let (xs, ys) = (shown(xs, wide), shown(ys, high));
    let here = |cell: &&'a CellResult<'a>| {
        let among = |name: &str, of: &BTreeSet<String>| {
            cell.cell.settings.get(name).is_none_or(|value| of.contains(&value.to_string()))
        };
        among(x, &xs) && among(y, &ys)
    };
    let inside = groups.into_iter().flat_map(|group| group.cells).filter(here);
    Sample::new(every, &in_order(&cells, inside), told(&notes))
}

fn few_panels<'a>(groups: Vec<panels::Group<'a>>) -> (Vec<panels::Group<'a>>, Vec<String>) {
    let count = groups.len();
    let groups = evenly(groups, MOST_PANELS);
    let notes = match groups.len() < count {
        true => vec![format!("{} of {} panels are drawn", groups.len(), thousands(count))],
        false => Vec::new(),
    };
    (groups, notes)
}

/// So many of a list at even ranks of a number, the first and the last among them.
fn by_rank<T>(mut all: Vec<T>, most: usize, of: impl Fn(&T) -> f64) -> Vec<T> {
    if all.len() > most {
        all.sort_by_cached_key(|one| Ranked(of(one)));
    }
    evenly(all, most)
}

/// A number that has an order.
#[derive(Clone, Copy, PartialEq)]
struct Ranked(f64);

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// So many of a list, evenly spread, the first and the last among them.
fn evenly<T>(all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let last = all.len() - 1;
    let place = |i: usize| i * last / most.saturating_sub(1).max(1);
    let places: BTreeSet<usize> = (0..most).map(place).collect();
    all.into_iter().enumerate().filter(|(i, _)| places.contains(i)).map(|(_, one)| one).collect()
}

/// These cells in the order of all, each once.
fn in_order<'a>(
    all: &[&'a CellResult<'a>],
    these: impl Iterator<Item = &'a CellResult<'a>>,
) -> Vec<&'a CellResult<'a>> {
    let these: BTreeSet<&str> = these.map(|cell| cell.cell.id.as_str()).collect();
    all.iter().copied().filter(|cell| these.contains(cell.cell.id.as_str())).collect()
}

fn told(notes: &[String]) -> String {
    let mut text = notes.join("; ");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    format!(" {text}: all cells are in summary.csv, all rounds in what `driftbench export` writes.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_spread_evenly_and_keeps_both_ends() {
        assert_eq!(evenly((0..10).collect(), 10), (0..10).collect::<Vec<_>>());
        assert_eq!(evenly((0..101).collect(), 5), [0, 25, 50, 75, 100]);
        assert_eq!(evenly((0..1000).collect(), 3), [0, 499, 999]);
        assert_eq!(evenly(vec![7, 8, 9], 1), [7]);
        let values = vec![3.0, f64::INFINITY, 1.0, 2.0, 5.0];
        assert_eq!(by_rank(values.clone(), 3, |v| *v), [1.0, 3.0, f64::INFINITY]);
        assert_eq!(by_rank(values.clone(), 5, |v| *v), values);
    }
}
