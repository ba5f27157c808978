//! Which cells a figure shows if it has more than a reader can distinguish or a browser can open.
//!
//! *Invariant*: a figure below the limits shows every cell. The caption of any other states how
//! many it shows of how many, and how they were chosen: evenly spread from the smallest to the
//! largest final value, not the best alone.

use crate::cells::CellResult;
use crate::cells::panels::{Group, distinct, panels};
use crate::figures::curves::curves;
use crate::figures::line_figure::{LineFigure, x_value};
use crate::scene::figure::XAxis;
use exactfed_core::words::thousands;
use exactfed_runner::manifest::figure::{FigureKeys, FigureTables};
use exactfed_runner::plan::{Cell, Setting, shows};
use std::collections::{BTreeSet, HashMap, HashSet};

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

/// The cells that a figure shows, and what its caption says about the others.
pub struct Sample {
    /// Indices of the cells among all, in their order.
    pub cells: Vec<usize>,
    /// What was left out; empty if nothing was.
    pub note: String,
}

impl Sample {
    fn new<'a>(all: &[CellResult<'_>], some: impl IntoIterator<Item = &'a CellResult<'a>>) -> Self {
        let ids: HashSet<&str> = some.into_iter().map(|cell| cell.cell.id.as_str()).collect();
        let is_in = |place: &usize| ids.contains(all[*place].cell.id.as_str());
        Self { cells: (0..all.len()).filter(is_in).collect(), note: String::new() }
    }

    /// The cells themselves.
    pub fn among<'a>(&self, all: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().map(|index| &all[*index]).collect()
    }
}

/// The cells that the figures of a plan show, by the ids of the figures.
pub struct FigureCells(HashMap<String, Sample>);

impl FigureCells {
    /// What each figure shows of these cells.
    pub fn new(table: &FigureTables, cells: &[CellResult<'_>]) -> Self {
        let id = |common: &FigureKeys| common.id().to_owned();
        let lines = LineFigure::all(table).map(|figure| match &figure.x {
            XAxis::Rounds(_) => (id(figure.common), curves_over_costs(&figure, cells)),
            XAxis::Cells(x) => (id(figure.common), curves_over_setting(&figure, x, cells)),
        });
        let winners = table.winners.iter().map(|f| (&f.common, &f.x, &f.y));
        let stability = table.stability.iter().map(|f| (&f.common, &f.x, &f.y));
        let over_two = winners.chain(stability);
        let over_two = over_two.map(|(common, x, y)| (id(common), maps(common, (x, y), cells)));
        Self(lines.chain(over_two).collect())
    }

    /// What the figure with these keys shows.
    pub fn of(&self, common: &FigureKeys) -> &Sample {
        &self.0[common.id()]
    }
}

fn shown<'a>(figure: &FigureKeys, cells: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
    cells.iter().filter(|cell| shows(figure, cell.cell)).collect()
}

/// The cells of a figure over a cost: each is a curve.
fn curves_over_costs(figure: &LineFigure<'_>, all: &[CellResult<'_>]) -> Sample {
    let cells = shown(figure.common, all);
    if cells.len() <= MOST_CURVES {
        return Sample::new(all, cells);
    }
    let (groups, panels_note) = few_panels(panels(&figure.common.panels, &cells));
    let each = (FEW_CURVES / groups.len().max(1)).max(2);
    let last = |cell: &&CellResult<'_>| cell.final_mean(figure.y);
    let groups = groups.into_iter().map(|group| by_rank(group.cells, each, last));
    let sample = Sample::new(all, groups.flatten());
    let mut notes = vec![format!(
        "{} of {} curves are drawn, spread evenly from the smallest to the largest final mean of {} in each panel (cells whose runs diverged rank last)",
        sample.cells.len(),
        thousands(cells.len()),
        figure.y.formula()
    )];
    notes.extend(panels_note);
    Sample { note: sentence(&notes), ..sample }
}

/// The cells of a figure over a setting: each is a point.
fn curves_over_setting(figure: &LineFigure<'_>, x: &str, all: &[CellResult<'_>]) -> Sample {
    let mut cells = shown(figure.common, all);
    let (count, mut notes) = (cells.len(), Vec::new());
    let groups = panels(&figure.common.panels, &cells);
    if groups.len() > MOST_PANELS {
        let (groups, note) = few_panels(groups);
        notes.extend(note);
        cells = Sample::new(all, groups.into_iter().flat_map(|group| group.cells)).among(all);
    }
    let known: Vec<&str> = figure.common.panels.iter().map(String::as_str).collect();
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let known = [known, figure.settings_outside_names(plain.iter().copied())].concat();
    let (names, curve_of_cell) = curves(&plain, &known, &[]);
    let mut curves: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); names.len()];
    cells.iter().zip(curve_of_cell).for_each(|(cell, curve)| curves[curve].push(cell));
    if curves.len() > MOST_CURVES {
        let least = |curve: &Vec<&CellResult<'_>>| {
            curve.iter().map(|cell| cell.final_mean(figure.y)).fold(f64::INFINITY, f64::min)
        };
        curves = by_rank(curves, FEW_CURVES, least);
        notes.push(format!(
            "{} of {} curves are drawn, spread evenly from the smallest to the largest of their least values",
            curves.len(),
            thousands(names.len())
        ));
    }
    if curves.iter().map(Vec::len).sum::<usize>() > MOST_POINTS {
        let each = (MOST_POINTS / curves.len().max(1)).max(2);
        let x = |cell: &&CellResult<'_>| x_value(cell, x).unwrap_or(f64::INFINITY);
        curves = curves.into_iter().map(|curve| by_rank(curve, each, x)).collect();
        notes.push(format!(
            "of each curve at most {each} points are drawn, spread evenly from left to right"
        ));
    }
    if notes.is_empty() {
        return Sample::new(all, cells);
    }
    let sample = Sample::new(all, curves.into_iter().flatten());
    notes.push(format!("the points are {} of {} cells", sample.cells.len(), thousands(count)));
    Sample { note: sentence(&notes), ..sample }
}

/// The cells of a figure of maps over the settings `x` and `y`.
fn maps<'a>(common: &FigureKeys, (x, y): (&str, &str), all: &'a [CellResult<'a>]) -> Sample {
    let cells = shown(common, all);
    let (xs, ys) = (distinct(&cells, x), distinct(&cells, y));
    let groups = panels(&common.panels, &cells);
    let (wide, high) = (xs.len().min(MOST_SIDE), ys.len().min(MOST_SIDE));
    let most = (MOST_SQUARES / (wide * high).max(1)).clamp(1, MOST_PANELS);
    let fits = xs.len() == wide && ys.len() == high;
    if fits && (groups.len() <= most || cells.len() <= MOST_SQUARES) {
        return Sample::new(all, cells);
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
    let values = |values: Vec<&'a Setting>, most: usize| -> BTreeSet<String> {
        evenly(values, most).iter().map(ToString::to_string).collect()
    };
    let (xs, ys) = (values(xs, wide), values(ys, high));
    let is_among = |cell: &CellResult<'_>, name: &str, values: &BTreeSet<String>| {
        cell.cell.settings.get(name).is_none_or(|value| values.contains(&value.to_string()))
    };
    let inside = groups.into_iter().flat_map(|group| group.cells);
    let inside = inside.filter(|cell| is_among(cell, x, &xs) && is_among(cell, y, &ys));
    Sample { note: sentence(&notes), ..Sample::new(all, inside) }
}

/// At most [`MOST_PANELS`] of a figure's panels, and a note if these are not all.
fn few_panels<'a>(groups: Vec<Group<'a>>) -> (Vec<Group<'a>>, Option<String>) {
    let count = groups.len();
    let groups = evenly(groups, MOST_PANELS);
    let note = format!("{} of {} panels are drawn", groups.len(), thousands(count));
    let note = (groups.len() < count).then_some(note);
    (groups, note)
}

/// `most` items at even ranks of a number, the first and the last among them.
fn by_rank<T>(all: Vec<T>, most: usize, number: impl Fn(&T) -> f64) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let mut ranked: Vec<(f64, T)> = all.into_iter().map(|item| (number(&item), item)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    evenly(ranked, most).into_iter().map(|(_, item)| item).collect()
}

/// `most` items of a list, evenly spread, the first and the last among them.
fn evenly<T>(all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let last = all.len() - 1;
    let chosen: BTreeSet<usize> =
        (0..most).map(|i| i * last / most.saturating_sub(1).max(1)).collect();
    all.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, item)| item).collect()
}

/// The notes as a sentence after a caption; empty if there are none.
fn sentence(notes: &[String]) -> String {
    let mut text = notes.join("; ");
    let Some(first) = text.get(..1).map(str::to_uppercase) else { return text };
    text.replace_range(..1, &first);
    format!(" {text}. All cells are in summary.csv; `exactfed export` writes all rounds.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_evenly_and_has_both_ends() {
        assert_eq!(evenly((0..10).collect(), 10), (0..10).collect::<Vec<_>>());
        assert_eq!(evenly((0..101).collect(), 5), [0, 25, 50, 75, 100]);
        assert_eq!(evenly((0..1000).collect(), 3), [0, 499, 999]);
        assert_eq!(evenly(vec![7, 8, 9], 1), [7]);
        let values = vec![3.0, f64::INFINITY, 1.0, 2.0, 5.0];
        assert_eq!(by_rank(values.clone(), 3, |v| *v), [1.0, 3.0, f64::INFINITY]);
        assert_eq!(by_rank(values.clone(), 5, |v| *v), values);
    }
}
