//! Which cells a figure shows if it has more than a reader can distinguish or a browser can open.
//!
//! *Invariant*: a figure below the limits shows every cell. The caption of any other states how
//! many it shows of how many, and how they were chosen: evenly spread from the smallest to the
//! largest final value, not the best alone.

use crate::cells::CellResult;
use crate::cells::panels::{Group, distinct, panels};
use exactfed_core::words::thousands;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{Setting, shows};
use std::collections::{BTreeSet, HashSet};

/// The most curves with which a figure draws all of them.
pub const MOST_CURVES: usize = 100;
/// The number of curves that a figure draws if it has more than [`MOST_CURVES`].
pub const FEW_CURVES: usize = 48;
/// The most panels of a figure.
pub const MOST_PANELS: usize = 32;
/// The most points of a figure over a setting, each of which is a cell.
pub const MOST_POINTS: usize = 1000;
/// The most values along a side of a map.
const MOST_SIDE: usize = 40;
/// The most squares of all maps of a figure together.
const MOST_SQUARES: usize = 600;

/// The cells that a figure shows, and what its caption says about the others.
pub struct ShownCells {
    /// Indices of the shown cells among all cells of the experiment, in their order.
    pub cells: Vec<usize>,
    /// A sentence at the end of the caption about what was left out; empty if nothing was.
    pub note: String,
}

impl ShownCells {
    /// The cells `some` of all cells of the experiment, with nothing to say about the others. A cell may be given
    /// twice.
    pub fn new<'a>(
        all: &[CellResult<'_>],
        some: impl IntoIterator<Item = &'a CellResult<'a>>,
    ) -> Self {
        let ids: HashSet<&str> = some.into_iter().map(|cell| cell.cell.id.as_str()).collect();
        Self {
            cells: (0..all.len())
                .filter(|place: &usize| ids.contains(all[*place].cell.id.as_str()))
                .collect(),
            note: String::new(),
        }
    }

    /// The cells that the figure shows, taken from all cells of the experiment, whose indices it has.
    pub fn among<'a>(&self, all: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
        self.cells.iter().map(|index| &all[*index]).collect()
    }
}

/// The cells that a figure may show by its keys in the manifest, before any are left out because they are too many.
pub fn shown<'a>(figure: &FigureKeys, cells: &'a [CellResult<'a>]) -> Vec<&'a CellResult<'a>> {
    cells.iter().filter(|cell| shows(figure, cell.cell)).collect()
}

/// The cells that a figure of maps over the settings `x` and `y` draws, of all cells of the experiment: a sample of
/// the maps and of the values along their sides, spread evenly, if there are too many squares.
pub fn maps<'a>(common: &FigureKeys, x: &str, y: &str, all: &'a [CellResult<'a>]) -> ShownCells {
    let cells = shown(common, all);
    let xs = distinct(&cells, x);
    let ys = distinct(&cells, y);
    let groups = panels(&common.panels, &cells);
    let wide = xs.len().min(MOST_SIDE);
    let high = ys.len().min(MOST_SIDE);
    let most = (MOST_SQUARES / (wide * high).max(1)).clamp(1, MOST_PANELS);
    let fits = xs.len() == wide && ys.len() == high;
    if fits && (groups.len() <= most || cells.len() <= MOST_SQUARES) {
        return ShownCells::new(all, cells);
    }
    let (groups, note) = few(groups, most, "maps");
    let mut notes: Vec<String> = note.into_iter().collect();
    if !fits {
        notes.push(format!(
            "{wide} of {} values across and {high} of {} upwards are drawn, spread evenly",
            thousands(xs.len()),
            thousands(ys.len())
        ));
    }
    let xs = evenly_drawn(xs, wide);
    let ys = evenly_drawn(ys, high);
    let inside = groups
        .into_iter()
        .flat_map(|group| group.cells)
        .filter(|cell| is_among(cell, x, &xs) && is_among(cell, y, &ys));
    ShownCells { note: sentence(&notes), ..ShownCells::new(all, inside) }
}

/// At most this number of the values, spread evenly, as texts.
fn evenly_drawn(values: Vec<&Setting>, most: usize) -> BTreeSet<String> {
    evenly(values, most).iter().map(ToString::to_string).collect()
}

/// Whether a cell's value of a setting, as a text, is among those that are drawn. It is for a cell without the
/// setting, which stands at every value.
fn is_among(cell: &CellResult<'_>, name: &str, values: &BTreeSet<String>) -> bool {
    cell.cell.settings.get(name).is_none_or(|value| values.contains(&value.to_string()))
}

/// At most `most` of a figure's panels or maps, spread evenly, and a note for the caption if these are not all.
/// `noun` is what the note calls them.
pub fn few<'a>(
    groups: Vec<Group<'a>>,
    most: usize,
    noun: &str,
) -> (Vec<Group<'a>>, Option<String>) {
    let count = groups.len();
    let groups = evenly(groups, most);
    let note = format!("{} of {} {noun} are drawn", groups.len(), thousands(count));
    let note = (groups.len() < count).then_some(note);
    (groups, note)
}

/// At most `most` of some items, whose ranks are spread evenly if they are ordered by a number of each; the first and
/// the last are among them. If all are kept, their order is that of the list, and otherwise that of their ranks.
pub fn by_rank<T>(all: Vec<T>, most: usize, number: impl Fn(&T) -> f64) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let mut ranked: Vec<(f64, T)> = all.into_iter().map(|item| (number(&item), item)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    evenly(ranked, most).into_iter().map(|(_, item)| item).collect()
}

/// At most `most` items of a list in their order, evenly spread, the first and the last among them.
pub fn evenly<T>(all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    let last = all.len() - 1;
    let chosen: BTreeSet<usize> =
        (0..most).map(|i| i * last / most.saturating_sub(1).max(1)).collect();
    all.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, item)| item).collect()
}

/// Notes about what a figure leaves out as sentences after its caption, with a space before them; empty if there are
/// none.
pub fn sentence(notes: &[String]) -> String {
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
