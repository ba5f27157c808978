//! Names of cells: the label, and the settings that distinguish cells of one label.

use super::side::{SideCell, SideExperiment, differing_paths};
use crate::evidence::pretty;
use std::collections::BTreeMap;

/// The settings that distinguish cells of one label in an experiment, by path. The flag is true if
/// such a setting has several values, and false if some cells merely lack it.
pub struct CellNames(BTreeMap<String, bool>);

impl CellNames {
    /// Finds the settings by which cells of one label differ anywhere in the experiment.
    pub fn new(experiment: &SideExperiment) -> Self {
        let mut labels: BTreeMap<&str, Vec<&SideCell>> = BTreeMap::new();
        for cell in experiment.cells.values() {
            labels.entry(&cell.label).or_default().push(cell);
        }
        let mut paths = BTreeMap::new();
        for cells in labels.values() {
            for path in differing_paths(cells.iter().copied()) {
                let mut values = cells.iter().filter_map(|cell| cell.settings.at_path(&path));
                let first = values.next();
                let has_several = values.any(|value| Some(value) != first);
                *paths.entry(path).or_default() |= has_several;
            }
        }
        Self(paths)
    }

    /// The name of a cell on pages: its label and the values of these settings, with commas between them. A setting
    /// that the cell lacks is not named. The cell is one of the experiment to which these names belong.
    pub fn name(&self, cell: &SideCell) -> String {
        let mut parts = vec![cell.label.to_string()];
        for (path, has_several) in &self.0 {
            let Some(setting) = cell.settings.at_path(path) else { continue };
            let value = pretty(path, setting);
            // A path of five steps is a setting of a choice, as `reward` of
            // `problem.garnet.heterogeneity.perturbed.reward` is of `perturbed`. The name of the choice is enough,
            // unless cells differ in the value of its setting.
            let steps: Vec<&str> = path.split('.').collect();
            let part = match steps[..] {
                [_, _, _, choice, _] if *has_several => format!("{choice} {value}"),
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
