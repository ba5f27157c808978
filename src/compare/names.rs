//! Names of cells: the label, and the settings that distinguish cells of one label.

use super::side::{SideCell, SideExperiment};
use crate::analysis::pretty;
use exactfed_runner::plan::Setting;
use std::collections::{BTreeMap, BTreeSet};

/// The settings that distinguish an experiment's cells of one label, by path: whether they have
/// several values, or some cells lack them.
pub struct Names(BTreeMap<String, bool>);

impl Names {
    /// The names of the cells of an experiment.
    pub fn new(experiment: &SideExperiment) -> Self {
        let mut labels: BTreeMap<&str, Vec<&SideCell>> = BTreeMap::new();
        let cells = experiment.cells.values();
        cells.for_each(|cell| labels.entry(&cell.label).or_default().push(cell));
        let mut paths = BTreeMap::new();
        for cells in labels.values() {
            let all: BTreeSet<&str> = cells.iter().flat_map(|c| c.settings.keys()).collect();
            for path in all {
                let values = cells.iter().map(|cell| cell.settings.get(path));
                let values: BTreeSet<Option<&str>> = values.collect();
                if values.len() > 1 {
                    let several = values.iter().flatten().count() > 1;
                    *paths.entry(path.to_owned()).or_default() |= several;
                }
            }
        }
        Self(paths)
    }

    /// The name of a cell.
    pub fn name(&self, cell: &SideCell) -> String {
        let mut parts = vec![cell.label.clone()];
        for (path, several) in &self.0 {
            let Some(value) = cell.settings.get(path) else { continue };
            let value = pretty(path, &Setting::Text(value.to_owned()));
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
