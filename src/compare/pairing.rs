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

use super::side::{SideCell, SideExperiment};
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

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
    pub before: String,
    /// Id after.
    pub after: String,
    /// The settings that differ.
    pub other: Vec<OtherSetting>,
}

impl Pair {
    /// A cell and itself.
    pub fn same(id: &str) -> Self {
        Self { before: id.into(), after: id.into(), other: Vec::new() }
    }
}

/// The settings in which counterparts must agree, beside their label, seed, and kinds of
/// algorithm and problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agree {
    /// All that determine the instance, its optimum and the start.
    Problem,
    /// No others.
    Kinds,
}

/// Whether a setting determines the instance, its optimum or the start.
fn is_of_problem(path: &str) -> bool {
    let top = path.split('.').next().unwrap_or_default();
    ["problem", "start", "instance", "seed"].contains(&top)
}

/// The counterparts among removed cells (`gone`) and added ones (`come`).
pub fn pairs(
    old: &SideExperiment,
    gone: &[String],
    new: &SideExperiment,
    come: &[String],
    agree: Agree,
) -> Vec<Pair> {
    if gone.is_empty() || come.is_empty() {
        return Vec::new();
    }
    let was: Vec<&SideCell> = gone.iter().map(|id| &old.cells[id]).collect();
    let is: Vec<&SideCell> = come.iter().map(|id| &new.cells[id]).collect();
    let (was, is) = NumberedCells::new(&was, &is, agree);
    let pair = |place: usize| {
        let before = was.nearest(&is, place)?;
        let back = is.nearest(&was, before)?;
        (back == place).then(|| {
            let (before, after) = (&gone[before], &come[place]);
            let other = differing(&old.cells[before], &new.cells[after]);
            Pair { before: before.clone(), after: after.clone(), other }
        })
    };
    (0..come.len()).into_par_iter().filter_map(pair).collect()
}

/// Cells as numbers, so that many can be compared with many.
struct NumberedCells {
    /// Cells that agree in what counterparts must agree in have one number.
    kinds: Vec<u32>,
    /// The values of a cell, side by side: one a path, in the order of paths; 0 where it has
    /// none. Equal texts have equal numbers.
    values: Vec<u32>,
    paths: usize,
    /// What each value is as a number, where it is one.
    numbers: Arc<[Option<f64>]>,
}

impl NumberedCells {
    /// The cells of both sides, by the paths along which any two of them may differ.
    fn new(was: &[&SideCell], is: &[&SideCell], agree: Agree) -> (Self, Self) {
        let all = || was.iter().chain(is);
        let mut paths: BTreeMap<&str, (Option<&str>, usize, bool)> = BTreeMap::new();
        for (path, value) in all().flat_map(|cell| cell.settings.iter()) {
            let seen = paths.entry(path).or_insert((Some(value), 0, false));
            seen.1 += 1;
            seen.2 |= seen.0 != Some(value);
        }
        let count = was.len() + is.len();
        let paths: Vec<&str> = paths
            .into_iter()
            .filter(|(_, (_, cells, several))| *several || *cells < count)
            .map(|(path, _)| path)
            .collect();
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut kinds: HashMap<_, u32> = HashMap::new();
        let mut numbers = vec![None];
        let mut grids = [was, is].map(|cells| {
            let mut grid = Self {
                kinds: Vec::with_capacity(cells.len()),
                values: Vec::with_capacity(cells.len() * paths.len()),
                paths: paths.len(),
                numbers: Arc::new([]),
            };
            for cell in cells {
                let next = kinds.len() as u32;
                let wanted = |path: &str| agree == Agree::Problem && is_of_problem(path);
                let problem = cell.settings.iter().filter(|(path, _)| wanted(path));
                let problem: Vec<(&str, &str)> = problem.collect();
                let kind = (&*cell.label, cell.settings.get("seed"), kinds_of(cell), problem);
                grid.kinds.push(*kinds.entry(kind).or_insert(next));
                for path in &paths {
                    let value = cell.settings.get(path).map_or(0, |value| {
                        *known.entry(value).or_insert_with(|| {
                            numbers.push(value.parse::<f64>().ok());
                            (numbers.len() - 1) as u32
                        })
                    });
                    grid.values.push(value);
                }
            }
            grid
        });
        let numbers: Arc<[Option<f64>]> = numbers.into();
        grids.iter_mut().for_each(|grid| grid.numbers = numbers.clone());
        grids.into()
    }

    fn row(&self, place: usize) -> &[u32] {
        &self.values[place * self.paths..(place + 1) * self.paths]
    }

    /// The cell that is nearest to one of the other grid, if no other is as near.
    fn nearest(&self, other: &Self, place: usize) -> Option<usize> {
        let (kind, row) = (other.kinds[place], other.row(place));
        let mut best: Option<((usize, f64), usize)> = None;
        let mut alone = true;
        for (mine, of) in self.kinds.iter().enumerate() {
            if *of != kind {
                continue;
            }
            let most = best.map_or(MOST, |((count, _), _)| count);
            let Some(found) = self.distance(self.row(mine), row, most) else { continue };
            let order = best.map(|(best, _)| found.0.cmp(&best.0).then(found.1.total_cmp(&best.1)));
            match order {
                None | Some(Ordering::Less) => (best, alone) = (Some((found, mine)), true),
                Some(Ordering::Equal) => alone = false,
                Some(Ordering::Greater) => {}
            }
        }
        best.filter(|_| alone).map(|(_, mine)| mine)
    }

    /// How many settings differ, and by how much; `None` if none does, or more than so many.
    fn distance(&self, a: &[u32], b: &[u32], most: usize) -> Option<(usize, f64)> {
        let (mut count, mut apart) = (0, 0.0);
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
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

/// The algorithms and problems that a cell's settings are of.
fn kinds_of(cell: &SideCell) -> BTreeSet<&str> {
    let two = |path: &'_ str| {
        let mut dots = path.match_indices('.').map(|(place, _)| place);
        let (top, end) = (dots.next()?, dots.next().unwrap_or(path.len()));
        matches!(&path[..top], "problem" | "algorithm").then_some(end)
    };
    cell.settings.keys().filter_map(|path| Some(&path[..two(path)?])).collect()
}

/// The settings that differ.
fn differing(a: &SideCell, b: &SideCell) -> Vec<OtherSetting> {
    let paths: BTreeSet<&str> = a.settings.keys().chain(b.settings.keys()).collect();
    let other = |path: &str| {
        let (a, b) = (a.settings.get(path), b.settings.get(path));
        let text = |value: Option<&str>| value.unwrap_or("–").to_owned();
        (a != b).then(|| OtherSetting { path: path.into(), before: text(a), after: text(b) })
    };
    paths.into_iter().filter_map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(label: &str, step: f64, steps: u32) -> SideCell {
        let settings = [
            ("seed", "1".to_owned()),
            ("problem.garnet.states", "9".into()),
            ("algorithm.fedavg.step-size", step.to_string()),
            ("algorithm.fedavg.local-steps", steps.to_string()),
        ];
        SideCell { label: label.into(), settings: settings.into(), ..SideCell::default() }
    }

    fn record(cells: &[(&str, SideCell)]) -> SideExperiment {
        let cells = cells.iter().map(|(id, cell)| ((*id).to_owned(), cell.clone()));
        SideExperiment { cells: cells.collect(), ..SideExperiment::default() }
    }

    fn found(old: &[(&str, SideCell)], new: &[(&str, SideCell)]) -> Vec<(String, String)> {
        let (old, new) = (record(old), record(new));
        let ids = |r: &SideExperiment| r.cells.keys().cloned().collect::<Vec<_>>();
        let pairs = pairs(&old, &ids(&old), &new, &ids(&new), Agree::Kinds);
        pairs.into_iter().map(|p| (p.before, p.after)).collect()
    }

    #[test]
    fn steps_of_a_grid_find_their_counterparts() {
        let old = [("a", cell("F", 0.01, 5)), ("b", cell("F", 0.02, 5))];
        let new = [("x", cell("F", 0.0202, 5)), ("y", cell("F", 0.0101, 5))];
        assert_eq!(found(&old, &new), [("b".into(), "x".into()), ("a".into(), "y".into())]);
        // The second has two as near: neither is its counterpart.
        let new = [("x", cell("F", 0.01, 5)), ("y", cell("F", 0.01, 5))];
        assert!(found(&old, &new).is_empty());
    }

    #[test]
    fn labels_seeds_and_kinds_must_agree() {
        let old = [("a", cell("F", 0.01, 5))];
        assert!(found(&old, &[("x", cell("G", 0.02, 5))]).is_empty());
        let other = |path: &str, value: &str| {
            let mut cell = cell("F", 0.02, 5);
            cell.settings.insert(path, value);
            cell
        };
        assert!(found(&old, &[("x", other("seed", "2"))]).is_empty());
        assert!(found(&old, &[("x", other("problem.lms.dimension", "2"))]).is_empty());
        assert_eq!(found(&old, &[("x", other("rounds", "2"))]).len(), 1);
        let mut many = other("rounds", "2");
        many.settings.insert("replicates", "3");
        many.settings.insert("oracle", "exact");
        assert!(found(&old, &[("x", many)]).is_empty(), "four settings are another cell");
    }

    #[test]
    fn settings_that_differ_are_listed() {
        let (old, new) = (record(&[("a", cell("F", 0.01, 5))]), cell("F", 0.0101, 5));
        let new = record(&[("x", new)]);
        let pairs = pairs(&old, &["a".into()], &new, &["x".into()], Agree::Problem);
        let path = "algorithm.fedavg.step-size".into();
        let other = OtherSetting { path, before: "0.01".into(), after: "0.0101".into() };
        assert_eq!(pairs[0].other, [other]);
    }
}
