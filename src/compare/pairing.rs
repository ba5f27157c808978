//! Counterparts: cells of the same algorithm under the same label on the same kind of problem,
//! which differ in a few settings.
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

/// The most settings that may differ between counterparts.
const MOST: usize = 3;

/// A setting that differs between a cell and its counterpart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherSetting {
    /// The full path of the setting.
    pub path: String,
    /// Its value before as a text; `–` if the cell does not have it.
    pub before: String,
    /// Its value after as a text; `–` if the cell does not have it.
    pub after: String,
}

/// Two cells that are compared with one another: a cell that both sides have, or counterparts with different settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// Id of the cell on the side before.
    pub before: CellId,
    /// Id of the cell on the side after.
    pub after: CellId,
    /// The settings that differ; empty if the ids are the same.
    pub other: Vec<OtherSetting>,
}

/// The settings in which counterparts must agree, in addition to their label, seeds, and kinds of
/// algorithm and problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agree {
    /// All that determine the instance, its optimum and the start, and the quantity by which runs are
    /// compared.
    Problem,
    /// No others.
    Kinds,
}

/// What counterparts must have in common. Cells with the same value are in one group, within which counterparts are
/// sought.
#[derive(PartialEq, Eq, Hash)]
struct Common<'a> {
    label: &'a str,
    seed: Option<&'a Setting>,
    noise_seed: Option<&'a Setting>,
    /// Paths that name the kinds of its algorithm and problem, such as `problem.garnet`.
    kinds: BTreeSet<&'a str>,
    /// The settings that determine the instance, its optimum and the start; empty for [`Agree::Kinds`].
    of_problem: Vec<(&'a str, &'a Setting)>,
    /// The quantity by which runs are compared; `None` for [`Agree::Kinds`].
    compared_by: Option<Quantity>,
}

impl<'a> Common<'a> {
    /// What the counterparts of a cell must have in common with it.
    fn new(cell: &'a SideCell, agree: Agree) -> Self {
        let mut common = Self {
            label: &cell.label,
            seed: cell.settings.at_path("seed"),
            noise_seed: cell.settings.at_path("noise-seed"),
            kinds: cell.settings.iter().filter_map(|(path, _)| kind_path(path)).collect(),
            of_problem: Vec::new(),
            compared_by: None,
        };
        if agree == Agree::Problem {
            let settings = cell.settings.iter();
            common.of_problem = settings.filter(|(path, _)| is_of_problem(path)).collect();
            common.compared_by = Some(cell.compared_by());
        }
        common
    }
}

/// The part of a path that names a kind of algorithm or problem: `problem.garnet` of
/// `problem.garnet.states`. `None` for other paths.
fn kind_path(path: &str) -> Option<&str> {
    let mut dots = path.match_indices('.').map(|(place, _)| place);
    let top_end = dots.next()?;
    let kind_end = dots.next().unwrap_or(path.len());
    if matches!(&path[..top_end], "problem" | "algorithm") { Some(&path[..kind_end]) } else { None }
}

/// Whether the setting at a path determines the instance, its optimum or the start.
fn is_of_problem(path: &str) -> bool {
    let top = path.split('.').next().unwrap_or_default();
    ["problem", "start", "instance", "seed"].contains(&top)
}

/// The cells without a cell of the same id on the other side that have in common what counterparts must.
#[derive(Default)]
struct PairingGroup<'a> {
    /// Cells that only the side before has.
    removed: Vec<(CellId, &'a SideCell)>,
    /// Cells that only the side after has.
    added: Vec<(CellId, &'a SideCell)>,
}

/// Finds counterparts among the cells `removed`, which only the side `old` has, and the cells `added`, which only the
/// side `new` has, of an experiment. Returns the pairs in the order of the ids after, and takes their cells out of the
/// two lists, so that a later call with less to agree on, or a list of lone cells, has only the rest.
pub fn take_pairs(
    old: &SideExperiment,
    removed: &mut Vec<CellId>,
    new: &SideExperiment,
    added: &mut Vec<CellId>,
    agree: Agree,
) -> Vec<Pair> {
    let mut groups: HashMap<Common<'_>, PairingGroup<'_>> = HashMap::new();
    for id in &*removed {
        let cell = &old.cells[id];
        groups.entry(Common::new(cell, agree)).or_default().removed.push((*id, cell));
    }
    for id in &*added {
        let cell = &new.cells[id];
        groups.entry(Common::new(cell, agree)).or_default().added.push((*id, cell));
    }
    let mut pairs: Vec<Pair> = groups.into_values().flat_map(pairs_of_group).collect();
    // The order of groups in the map is random.
    pairs.sort_by_key(|pair| pair.after);
    let before: BTreeSet<CellId> = pairs.iter().map(|pair| pair.before).collect();
    let after: BTreeSet<CellId> = pairs.iter().map(|pair| pair.after).collect();
    removed.retain(|id| !before.contains(id));
    added.retain(|id| !after.contains(id));
    pairs
}

/// The counterparts among the cells of a group: a removed and an added cell, each of which is the only one nearest to
/// the other and differs from it in at most [`MOST`] settings. A cell without such a counterpart is in no pair.
fn pairs_of_group(group: PairingGroup<'_>) -> Vec<Pair> {
    if group.removed.is_empty() || group.added.is_empty() {
        return Vec::new();
    }
    let removed = 0..group.removed.len();
    let cells = [group.removed, group.added].concat();
    let added = removed.end..cells.len();
    let numbered = NumberedCells::new(&cells.iter().map(|(_, cell)| *cell).collect::<Vec<_>>());
    let mutual_pair = |after: usize| -> Option<Pair> {
        let before = numbered.nearest(after, removed.clone())?;
        if numbered.nearest(before, added.clone())? != after {
            return None;
        }
        let (before_id, was) = cells[before];
        let (after_id, is) = cells[after];
        Some(Pair { before: before_id, after: after_id, other: differing_settings(was, is) })
    };
    added.clone().into_par_iter().filter_map(mutual_pair).collect()
}

/// Cells by those of their settings in which they differ, each value replaced by a small integer: every removed cell is
/// compared with every added one, and integers are compared fast.
struct NumberedCells {
    /// A row per cell, with an integer for the value of each setting: equal values have equal integers, and 0 stands
    /// for a setting that the cell does not have.
    rows: Vec<Vec<u32>>,
    /// The value that each integer stands for, if it is a number; `None` for texts and for the absence of a setting.
    numbers: Vec<Option<f64>>,
}

/// How far two cells are apart.
#[derive(Clone, Copy)]
struct SettingsDistance {
    /// The number of settings that differ.
    count: usize,
    /// By how much the values of these settings differ, summed over the settings: the absolute logarithm of the ratio
    /// of positive numbers, the absolute difference of other numbers, and a large number for all else.
    apart: f64,
}

impl SettingsDistance {
    /// Compares the numbers of differing settings, and then how far their values are apart.
    fn total_cmp(self, other: Self) -> Ordering {
        self.count.cmp(&other.count).then(self.apart.total_cmp(&other.apart))
    }
}

impl NumberedCells {
    /// Replaces the values of the settings in which these cells differ by integers; the rows are in the order of the
    /// cells.
    fn new(cells: &[&SideCell]) -> Self {
        let paths = differing_paths(cells.iter().copied());
        let mut known: HashMap<&Setting, u32> = HashMap::new();
        let mut numbers = vec![None];
        let mut rows = Vec::new();
        for cell in cells {
            let mut row = Vec::new();
            for path in &paths {
                let Some(value) = cell.settings.at_path(path) else {
                    row.push(0);
                    continue;
                };
                row.push(*known.entry(value).or_insert_with(|| {
                    numbers.push(value.number());
                    (numbers.len() - 1) as u32
                }));
            }
            rows.push(row);
        }
        Self { rows, numbers }
    }

    /// The index of the cell nearest to the cell with the index `place`, among the cells with the indices `among`.
    /// `None` if two are equally near, or if no cell differs in one to [`MOST`] settings.
    fn nearest(&self, place: usize, among: Range<usize>) -> Option<usize> {
        let mut nearest: Option<(usize, SettingsDistance)> = None;
        let mut is_alone = true;
        for candidate in among {
            let most = nearest.map_or(MOST, |(_, distance)| distance.count);
            let Some(distance) = self.distance(candidate, place, most) else { continue };
            let order = match nearest {
                Some((_, best)) => distance.total_cmp(best),
                None => Ordering::Less,
            };
            match order {
                Ordering::Less => {
                    nearest = Some((candidate, distance));
                    is_alone = true;
                }
                Ordering::Equal => is_alone = false,
                Ordering::Greater => {}
            }
        }
        match nearest {
            Some((candidate, _)) if is_alone => Some(candidate),
            _ => None,
        }
    }

    /// The distance between the cells with the indices `a` and `b`; `None` if no setting differs, or more than `most`
    /// do.
    fn distance(&self, a: usize, b: usize, most: usize) -> Option<SettingsDistance> {
        let mut distance = SettingsDistance { count: 0, apart: 0.0 };
        for (a, b) in self.rows[a].iter().zip(&self.rows[b]) {
            if a == b {
                continue;
            }
            distance.count += 1;
            if distance.count > most {
                return None;
            }
            distance.apart += match (self.numbers[*a as usize], self.numbers[*b as usize]) {
                (Some(a), Some(b)) if a > 0.0 && b > 0.0 => libm::log(a / b).abs(),
                (Some(a), Some(b)) => (a - b).abs(),
                // A value that is no number, or that one cell lacks, counts as farther than numbers usually are apart.
                _ => 1e3,
            };
        }
        if distance.count > 0 { Some(distance) } else { None }
    }
}

/// The settings in which two cells differ, with the values of both, in the order of their paths.
fn differing_settings(was: &SideCell, is: &SideCell) -> Vec<OtherSetting> {
    let mut settings = Vec::new();
    for path in differing_paths([was, is]) {
        let before = setting_text(was, &path);
        let after = setting_text(is, &path);
        settings.push(OtherSetting { path, before, after });
    }
    settings
}

/// The text of a cell's setting; `–` if the cell does not have it.
fn setting_text(cell: &SideCell, path: &str) -> String {
    match cell.settings.at_path(path) {
        Some(setting) => setting.to_string(),
        None => "–".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::side::id_of;
    use super::*;

    /// A cell of FedAvg on a Garnet problem with this step size and `more` settings, without results.
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

    /// The counterparts among the cells before and after, each with its name, of which none is on both sides.
    fn found(old: &[(&str, SideCell)], new: &[(&str, SideCell)]) -> Vec<Pair> {
        let old = side(old);
        let new = side(new);
        let mut removed: Vec<CellId> = old.cells.keys().copied().collect();
        let mut added: Vec<CellId> = new.cells.keys().copied().collect();
        take_pairs(&old, &mut removed, &new, &mut added, Agree::Kinds)
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
