//! Counterparts: cells of the same algorithm under the same label on the same kind of problem,
//! of which a few settings differ.
//!
//! Ids are hashes of all settings, so that a step size of 0.0101 instead of 0.01 removes one
//! cell and adds another. No random stream depends on the settings, so that the two can still be
//! compared run by run.
//!
//! *Invariant*: pairs are unambiguous: each cell is the one nearest to the other, by the number
//! of settings that differ and then by how far they differ. Cells that are compared run by run
//! have the same problem, instance and start, since errors with respect to another θ*, or from
//! another start, cannot be compared.

use super::side::{SideCell, SideExperiment, differing_paths};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::{CellId, Setting};
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Settings that may differ between counterparts.
const MOST: usize = 3;

/// A setting whose value changed; `–` where a cell does not have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherSetting {
    /// Its path.
    pub path: String,
    /// Its value before.
    pub before: String,
    /// Its value after.
    pub after: String,
}

/// Two cells that are counterparts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// Id before.
    pub before: CellId,
    /// Id after.
    pub after: CellId,
    /// The settings that differ.
    pub other: Vec<OtherSetting>,
}

/// The settings in which counterparts must agree, beside their label, seed, and kinds of
/// algorithm and problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agree {
    /// All that determine the instance, its optimum and the start, and the quantity by which runs are
    /// compared.
    Problem,
    /// No others.
    Kinds,
}

/// What counterparts have in common: their label, seeds, kinds and settings, and by which quantity they
/// are compared, if they are.
type Common<'a> = (
    &'a str,
    [Option<&'a Setting>; 2],
    BTreeSet<&'a str>,
    Vec<(&'a str, &'a Setting)>,
    Option<Quantity>,
);

/// What a cell has in common with its counterparts.
fn common(cell: &SideCell, agree: Agree) -> Common<'_> {
    let settings = || cell.settings.iter();
    // The algorithms and problems that its settings are of.
    let kind = |path: &'_ str| {
        let mut dots = path.match_indices('.').map(|(place, _)| place);
        let (top, end) = (dots.next()?, dots.next().unwrap_or(path.len()));
        matches!(&path[..top], "problem" | "algorithm").then_some(end)
    };
    let kinds = settings().filter_map(|(path, _)| Some(&path[..kind(path)?])).collect();
    // What determines the instance, its optimum and the start.
    let of_problem = |path: &str| {
        let top = path.split('.').next().unwrap_or_default();
        agree == Agree::Problem && ["problem", "start", "instance", "seed"].contains(&top)
    };
    let seeds = ["seed", "noise-seed"].map(|path| cell.settings.at_path(path));
    let compared_by = (agree == Agree::Problem).then(|| cell.compared_by());
    let of_problem = settings().filter(|(path, _)| of_problem(path)).collect();
    (&cell.label, seeds, kinds, of_problem, compared_by)
}

/// The counterparts among removed cells (`gone`) and added ones (`come`), which are taken from
/// these lists.
pub fn take_pairs(
    old: &SideExperiment,
    gone: &mut Vec<CellId>,
    new: &SideExperiment,
    come: &mut Vec<CellId>,
    agree: Agree,
) -> Vec<Pair> {
    let mut groups: HashMap<Common<'_>, [Vec<(CellId, &SideCell)>; 2]> = HashMap::new();
    for (side, (ids, cells)) in [(&*gone, &old.cells), (&*come, &new.cells)].iter().enumerate() {
        for (id, cell) in ids.iter().map(|id| (*id, &cells[id])) {
            groups.entry(common(cell, agree)).or_default()[side].push((id, cell));
        }
    }
    let mut pairs: Vec<Pair> = groups.into_values().flat_map(pairs_of_group).collect();
    pairs.sort_by_key(|pair| pair.after);
    let before: BTreeSet<CellId> = pairs.iter().map(|pair| pair.before).collect();
    let after: BTreeSet<CellId> = pairs.iter().map(|pair| pair.after).collect();
    gone.retain(|id| !before.contains(id));
    come.retain(|id| !after.contains(id));
    pairs
}

/// The counterparts among cells of both sides that have in common what counterparts must.
fn pairs_of_group([gone, come]: [Vec<(CellId, &SideCell)>; 2]) -> Vec<Pair> {
    if gone.is_empty() || come.is_empty() {
        return Vec::new();
    }
    let all = [gone.as_slice(), &come].concat();
    let rows = NumberedCells::new(&all.iter().map(|(_, cell)| *cell).collect::<Vec<_>>());
    let pair = |after: usize| {
        let before = rows.nearest(after, 0..gone.len())?;
        let back = rows.nearest(before, gone.len()..all.len())?;
        let ((before, was), (id, is)) = (all[before], all[after]);
        (back == after).then(|| Pair { before, after: id, other: differing(was, is) })
    };
    (gone.len()..all.len()).into_par_iter().filter_map(pair).collect()
}

/// The settings in which cells differ as small numbers, so that many cells can be compared with
/// many.
struct NumberedCells {
    /// The values of a cell, side by side: equal values have equal numbers; 0 where it has none.
    rows: Vec<Vec<u32>>,
    /// What each value is as a number, where it is one.
    numbers: Vec<Option<f64>>,
}

impl NumberedCells {
    fn new(cells: &[&SideCell]) -> Self {
        let paths = differing_paths(cells.iter().copied());
        let mut known: HashMap<&Setting, u32> = HashMap::new();
        let mut numbers = vec![None];
        let mut number = |value: &Setting| {
            numbers.push(value.number());
            (numbers.len() - 1) as u32
        };
        let rows = cells.iter().map(|cell| {
            let values = paths.iter().map(|path| cell.settings.at_path(path));
            let values = values
                .map(|value| value.map_or(0, |v| *known.entry(v).or_insert_with(|| number(v))));
            values.collect()
        });
        Self { rows: rows.collect(), numbers }
    }

    /// The cell of these places that is nearest to one, if no other is as near.
    fn nearest(&self, of: usize, among: Range<usize>) -> Option<usize> {
        let mut best: Option<((usize, f64), usize)> = None;
        let mut alone = true;
        for place in among {
            let most = best.map_or(MOST, |((count, _), _)| count);
            let Some(found) = self.distance(place, of, most) else { continue };
            let order = best.map(|(best, _)| found.0.cmp(&best.0).then(found.1.total_cmp(&best.1)));
            match order {
                None | Some(Ordering::Less) => (best, alone) = (Some((found, place)), true),
                Some(Ordering::Equal) => alone = false,
                Some(Ordering::Greater) => {}
            }
        }
        best.filter(|_| alone).map(|(_, place)| place)
    }

    /// How many settings differ, and by how much; `None` if none does, or more than so many.
    fn distance(&self, a: usize, b: usize, most: usize) -> Option<(usize, f64)> {
        let (mut count, mut apart) = (0, 0.0);
        for (a, b) in self.rows[a].iter().zip(&self.rows[b]).filter(|(a, b)| a != b) {
            count += 1;
            if count > most {
                return None;
            }
            apart += match (self.numbers[*a as usize], self.numbers[*b as usize]) {
                (Some(a), Some(b)) if a > 0.0 && b > 0.0 => libm::log(a / b).abs(),
                (Some(a), Some(b)) => (a - b).abs(),
                // Names are as far from one another as numbers can be.
                _ => 1e3,
            };
        }
        (count > 0).then_some((count, apart))
    }
}

/// The settings that differ.
fn differing(a: &SideCell, b: &SideCell) -> Vec<OtherSetting> {
    let text = |cell: &SideCell, path: &str| {
        cell.settings.at_path(path).map_or_else(|| "–".into(), Setting::to_string)
    };
    let other = |path: String| OtherSetting { before: text(a, &path), after: text(b, &path), path };
    differing_paths([a, b]).into_iter().map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::super::side::id_of;
    use super::*;

    fn cell(label: &str, step: f64, more: &[(&str, &str)]) -> SideCell {
        let step = step.to_string();
        let settings = [
            ("seed", "1"),
            ("problem.garnet.states", "9"),
            ("algorithm.fedavg.step-size", &step),
            ("algorithm.fedavg.local-steps", "5"),
        ];
        SideCell::new(label, settings.iter().chain(more).copied())
    }

    fn side(cells: &[(&str, SideCell)]) -> SideExperiment {
        let cells = cells.iter().map(|(id, cell)| (id_of(id), cell.clone()));
        SideExperiment { cells: cells.collect(), ..SideExperiment::default() }
    }

    fn found(old: &[(&str, SideCell)], new: &[(&str, SideCell)]) -> Vec<Pair> {
        let (old, new) = (side(old), side(new));
        let [mut gone, mut come] = [&old, &new].map(|side| side.cells.keys().copied().collect());
        take_pairs(&old, &mut gone, &new, &mut come, Agree::Kinds)
    }

    #[test]
    fn steps_of_a_grid_find_their_counterparts() {
        let old = [("a", cell("F", 0.01, &[])), ("b", cell("F", 0.02, &[]))];
        let new = [("x", cell("F", 0.0202, &[])), ("y", cell("F", 0.0101, &[]))];
        let pairs = found(&old, &new);
        let ids: Vec<(CellId, CellId)> = pairs.iter().map(|p| (p.before, p.after)).collect();
        let expected = [("b", "x"), ("a", "y")].map(|(a, b)| (id_of(a), id_of(b)));
        assert_eq!(ids, expected);
        let path = "algorithm.fedavg.step-size".into();
        let other = OtherSetting { path, before: "0.01".into(), after: "0.0101".into() };
        assert_eq!(pairs[1].other, [other]);
        // The second has two as near: neither is its counterpart.
        let new = [("x", cell("F", 0.01, &[])), ("y", cell("F", 0.01, &[]))];
        assert!(found(&old, &new).is_empty());
    }

    #[test]
    fn labels_seeds_and_kinds_must_agree() {
        let count = |label: &str, more: &[(&str, &str)]| {
            found(&[("a", cell("F", 0.01, &[]))], &[("x", cell(label, 0.02, more))]).len()
        };
        assert_eq!(count("G", &[]), 0);
        assert_eq!(count("F", &[("seed", "2")]), 0);
        assert_eq!(count("F", &[("noise-seed", "2")]), 0);
        assert_eq!(count("F", &[("problem.lms.dimension", "2")]), 0);
        assert_eq!(count("F", &[("rounds", "2")]), 1);
        let four = [("rounds", "2"), ("replicates", "3"), ("oracle", "exact")];
        assert_eq!(count("F", &four), 0, "four settings are another cell");
    }
}
