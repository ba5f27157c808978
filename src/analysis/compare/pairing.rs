//! Cells that are not the same and yet counterparts: the same algorithm under the
//! same label on the same kind of problem, with a few other settings.
//!
//! Ids are hashes of all settings, so that a step size of 0.0101 for 0.01 makes
//! one cell go and another come. No stream depends on the settings, so that the
//! two can still be compared run by run.
//!
//! *Invariant*: a pair is told only if it is unambiguous: each is the other's one
//! nearest, by the number of settings that differ and then by how far.

use super::{Cell, Record};
use std::collections::BTreeSet;

/// Settings that may differ between counterparts.
const MOST: usize = 3;

/// A setting with another value: path, before, after.
pub type Other = (String, String, String);

/// Two cells that are counterparts.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Id before.
    pub before: String,
    /// Id after.
    pub after: String,
    /// The settings that differ.
    pub other: Vec<Other>,
}

impl Pair {
    /// A cell and itself.
    pub fn same(id: &str) -> Self {
        Self { before: id.into(), after: id.into(), other: Vec::new() }
    }
}

/// The counterparts among cells that are gone and cells that have come.
pub fn pairs(old: &Record, gone: &[String], new: &Record, come: &[String]) -> Vec<Pair> {
    let pair = |after: &String| {
        let before = nearest(&new.cells[after], old, gone)?;
        let back = nearest(&old.cells[before], new, come)?;
        let other = differing(&old.cells[before], &new.cells[after]);
        (back == after).then(|| Pair { before: before.clone(), after: after.clone(), other })
    };
    come.iter().filter_map(pair).collect()
}

fn nearest<'a>(cell: &Cell, among: &Record, ids: &'a [String]) -> Option<&'a String> {
    let all = ids.iter().filter_map(|id| Some((distance(cell, &among.cells[id])?, id)));
    unique(all.collect())
}

/// The one nearest, if no other is as near.
fn unique(mut all: Vec<((usize, f64), &String)>) -> Option<&String> {
    let order = |a: &(usize, f64), b: &(usize, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    all.sort_by(|a, b| order(&a.0, &b.0));
    match all.as_slice() {
        [first, second, ..] if order(&first.0, &second.0).is_eq() => None,
        [first, ..] => Some(first.1),
        [] => None,
    }
}

/// How many settings differ, and by how much; `None` if the cells are no
/// counterparts: other labels, seeds, algorithms or problems, or too many settings.
fn distance(a: &Cell, b: &Cell) -> Option<(usize, f64)> {
    let kinds = |cell: &Cell| -> BTreeSet<String> {
        let two = |path: &String| {
            let mut parts = path.split('.');
            let (top, kind) = (parts.next()?, parts.next()?);
            matches!(top, "problem" | "algorithm").then(|| format!("{top}.{kind}"))
        };
        cell.settings.keys().filter_map(two).collect()
    };
    if a.label != b.label || a.settings.get("seed") != b.settings.get("seed") {
        return None;
    }
    let other = differing(a, b);
    if other.is_empty() || other.len() > MOST || kinds(a) != kinds(b) {
        return None;
    }
    let apart = |(_, a, b): &Other| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) if a > 0.0 && b > 0.0 => libm::log(a / b).abs(),
        (Ok(a), Ok(b)) => (a - b).abs(),
        // Names are as far from one another as numbers can be.
        _ => 1e3,
    };
    Some((other.len(), other.iter().map(apart).sum()))
}

/// The settings that differ; one that a side does not have is `–`.
fn differing(a: &Cell, b: &Cell) -> Vec<Other> {
    let paths: BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
    let value = |cell: &Cell, path: &String| cell.settings.get(path).cloned();
    let other = |path: &String| {
        let (a, b) = (value(a, path), value(b, path));
        let told = |value: Option<String>| value.unwrap_or_else(|| "–".into());
        (a != b).then(|| (path.clone(), told(a), told(b)))
    };
    paths.into_iter().filter_map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(label: &str, step: f64, steps: u32) -> Cell {
        let settings = [
            ("seed", "1".to_owned()),
            ("problem.garnet.states", "9".into()),
            ("algorithm.fedavg.step-size", step.to_string()),
            ("algorithm.fedavg.local-steps", steps.to_string()),
        ];
        let settings = settings.map(|(path, value)| (path.to_owned(), value));
        Cell { label: label.into(), settings: settings.into(), ..Cell::default() }
    }

    fn record(cells: &[(&str, Cell)]) -> Record {
        let cells = cells.iter().map(|(id, cell)| ((*id).to_owned(), cell.clone()));
        Record { cells: cells.collect(), ..Record::default() }
    }

    fn found(old: &[(&str, Cell)], new: &[(&str, Cell)]) -> Vec<(String, String)> {
        let (old, new) = (record(old), record(new));
        let ids = |r: &Record| r.cells.keys().cloned().collect::<Vec<_>>();
        let pairs = pairs(&old, &ids(&old), &new, &ids(&new));
        pairs.into_iter().map(|p| (p.before, p.after)).collect()
    }

    #[test]
    fn steps_of_a_grid_find_their_counterparts() {
        let old = [("a", cell("F", 0.01, 5)), ("b", cell("F", 0.02, 5))];
        let new = [("x", cell("F", 0.0202, 5)), ("y", cell("F", 0.0101, 5))];
        assert_eq!(found(&old, &new), [("b".into(), "x".into()), ("a".into(), "y".into())]);
        // The second has two as near: neither is told.
        let new = [("x", cell("F", 0.01, 5)), ("y", cell("F", 0.01, 5))];
        assert!(found(&old, &new).is_empty());
    }

    #[test]
    fn labels_seeds_and_kinds_tell_apart() {
        let old = [("a", cell("F", 0.01, 5))];
        assert!(found(&old, &[("x", cell("G", 0.02, 5))]).is_empty());
        let other = |path: &str, value: &str| {
            let mut cell = cell("F", 0.02, 5);
            cell.settings.insert(path.into(), value.into());
            cell
        };
        assert!(found(&old, &[("x", other("seed", "2"))]).is_empty());
        assert!(found(&old, &[("x", other("problem.lms.dimension", "2"))]).is_empty());
        assert_eq!(found(&old, &[("x", other("rounds", "2"))]).len(), 1);
        let mut many = other("rounds", "2");
        many.settings.insert("replicates".into(), "3".into());
        many.settings.insert("oracle".into(), "exact".into());
        assert!(found(&old, &[("x", many)]).is_empty(), "four settings are another cell");
    }

    #[test]
    fn what_differs_is_told() {
        let (old, new) = (record(&[("a", cell("F", 0.01, 5))]), cell("F", 0.0101, 5));
        let new = record(&[("x", new)]);
        let pairs = pairs(&old, &["a".into()], &new, &["x".into()]);
        let other = ("algorithm.fedavg.step-size".into(), "0.01".into(), "0.0101".into());
        assert_eq!(pairs[0].other, [other]);
    }
}
