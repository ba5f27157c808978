//! Cells selected by their label and settings, as claims and figures name them.

use super::places::Checker;
use super::{Cell, Setting};
use crate::manifest::claim::{Scalar, Selection};
use crate::manifest::figure::FigureKeys;
use exactfed_core::words::nearest;
use std::collections::BTreeSet;

/// Whether a figure shows a cell: all cells, unless it names labels or settings.
pub fn shows(figure: &FigureKeys, cell: &Cell) -> bool {
    let FigureKeys { labels, only, .. } = figure;
    (labels.is_empty() || labels.contains(&cell.label))
        && only.as_ref().is_none_or(|only| selected(cell, only))
}

/// Whether a cell is of a selection.
pub fn selected(cell: &Cell, selection: &Selection) -> bool {
    selection.0.iter().all(|(key, wanted)| fits(cell, key, wanted))
}

fn fits(cell: &Cell, key: &str, wanted: &Scalar) -> bool {
    match (key, wanted) {
        (_, Scalar::Any(all)) => all.iter().any(|one| fits(cell, key, one)),
        ("label", wanted) => cell.label == wanted.to_string(),
        _ => match (cell.settings.get(key), wanted) {
            (Some(Setting::Number(have)), Scalar::Number(wanted)) => have == wanted,
            (Some(Setting::Text(have)), Scalar::Text(wanted)) => have.starts_with(wanted),
            _ => false,
        },
    }
}

impl Checker<'_> {
    /// A selection must name known settings and at least one cell.
    pub fn selection(&mut self, path: &str, selection: &Selection) {
        let known: BTreeSet<&str> = self.known.iter().copied().chain(["label"]).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let mut sound = true;
        for key in selection.0.keys() {
            let there = self.cells.iter().any(|c| c.settings.get(key).is_some());
            if key != "label" && !there {
                let message = format!("no cell has a setting `{key}`");
                self.note(&format!("{path}.{key}"), message, |d| d.naming(key, &known));
                sound = false;
            }
        }
        if sound && !self.cells.iter().any(|cell| selected(cell, selection)) {
            let labels: BTreeSet<&str> = self.cells.iter().map(|c| c.label.as_str()).collect();
            let labels: Vec<&str> = labels.into_iter().collect();
            let wanted = selection.0.get("label").map(ToString::to_string).unwrap_or_default();
            let hint = nearest(&wanted, &labels).filter(|_| !labels.contains(&wanted.as_str()));
            let allowed = format!("labels {}", labels.join(", "));
            let message = "this selection matches no cell";
            self.note(path, message, |d| d.hinting(hint).allowing(allowed));
        }
    }
}
