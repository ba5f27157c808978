//! Names of cells: the label, and the settings that distinguish cells of one label.

use super::side::{SideCell, SideExperiment, differing_paths};
use crate::evidence::pretty;
use std::collections::BTreeMap;

/// The settings that distinguish an experiment's cells of one label, by path: whether they have
/// several values, or some cells lack them.
pub struct CellNames(BTreeMap<String, bool>);

impl CellNames {
    /// The names of the cells of an experiment.
    pub fn new(experiment: &SideExperiment) -> Self {
        let mut labels: BTreeMap<&str, Vec<&SideCell>> = BTreeMap::new();
        let cells = experiment.cells.values();
        cells.for_each(|cell| labels.entry(&cell.label).or_default().push(cell));
        let mut paths = BTreeMap::new();
        for cells in labels.values() {
            for path in differing_paths(cells.iter().copied()) {
                let mut values = cells.iter().filter_map(|cell| cell.settings.at_path(&path));
                let first = values.next();
                *paths.entry(path).or_default() |= values.any(|value| Some(value) != first);
            }
        }
        Self(paths)
    }

    /// The name of a cell.
    pub fn name(&self, cell: &SideCell) -> String {
        let mut parts = vec![cell.label.to_string()];
        for (path, several) in &self.0 {
            let Some(value) = cell.settings.at_path(path) else { continue };
            let value = pretty(path, value);
            // A choice with settings of its own: its name suffices, but for those that vary.
            let steps: Vec<&str> = path.split('.').collect();
            let part = match steps[..] {
                [_, _, _, choice, _] if *several => format!("{choice} {value}"),
                [_, _, _, choice, _] => choice.to_owned(),
                _ => value,
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(", ")
    }
}
