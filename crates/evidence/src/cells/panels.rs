//! The panels of a figure: which cells each panel shows, and its title.

use crate::cells::CellResult;
use crate::cells::setting_text::pretty;
use exactfed_runner::plan::{Cell, Setting};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

/// The cells of a panel, or of a grid point.
pub struct Group<'a> {
    /// The settings that distinguish this group from the others, as one text.
    pub title: String,
    /// Each of these settings with its value as text.
    pub settings: Arc<[String]>,
    /// The value of each of these settings, in the same order.
    pub values: Vec<Setting>,
    /// The cells that have these values.
    pub cells: Vec<&'a CellResult<'a>>,
}

/// Groups cells by their values of the settings `names`, a group for each combination of values that a cell has. Groups
/// are in the order of the values of the first setting, then of the second and so on, values in the order of the cells.
/// A cell without one of the settings belongs to every value of it: FedAvg has no coupling and is in the panels of
/// each. A setting that no cell has is left out of `names`; without any setting all cells are one group.
pub fn panels<'a>(names: &[String], cells: &[&'a CellResult<'a>]) -> Vec<Group<'a>> {
    let has_values = |name: &&String| cells.iter().any(|c| c.cell.settings.get(name).is_some());
    let names: Vec<&String> = names.iter().filter(has_values).collect();
    let values: Vec<Vec<&Setting>> = names.iter().map(|name| distinct(cells, name)).collect();
    let places: Vec<HashMap<&Setting, usize>> = values.iter().map(|v| placed(v)).collect();
    // Keyed by the index of each value, so that combinations without a cell do not occur.
    let mut groups: BTreeMap<Vec<usize>, Vec<&'a CellResult<'a>>> = BTreeMap::new();
    for cell in cells {
        // A cell without one of the settings has a key for every value of that setting.
        let mut keys: Vec<Vec<usize>> = vec![Vec::new()];
        for (name, known) in names.iter().zip(&places) {
            let indices = places_of(cell, name, known);
            let mut longer = Vec::new();
            for key in &keys {
                for index in indices.clone() {
                    longer.push(key.iter().copied().chain([index]).collect());
                }
            }
            keys = longer;
        }
        keys.into_iter().for_each(|key| groups.entry(key).or_default().push(cell));
    }
    let titles: Vec<Vec<String>> =
        names.iter().zip(&values).map(|(name, values)| value_titles(name, values)).collect();
    groups
        .into_iter()
        .map(|(chosen, cells)| {
            let settings: Arc<[String]> =
                chosen.iter().zip(&titles).map(|(i, of)| of[*i].clone()).collect();
            let values = chosen.iter().zip(&values).map(|(i, of)| of[*i].clone()).collect();
            Group { title: settings.join(", "), settings, values, cells }
        })
        .collect()
}

/// The values on the x axis and on the y axis of a map.
pub type Sides<'a> = (Vec<&'a Setting>, Vec<&'a Setting>);

/// The index of each value in a list of different values.
pub fn placed<'a>(values: &[&'a Setting]) -> HashMap<&'a Setting, usize> {
    values.iter().enumerate().map(|(i, value)| (*value, i)).collect()
}

/// The index of a cell's value of the setting `name` among the `known` values, as a range; the indices of all values if
/// the cell has no such setting.
pub fn places_of(
    cell: &CellResult<'_>,
    name: &str,
    known: &HashMap<&Setting, usize>,
) -> Range<usize> {
    match cell.cell.settings.get(name).and_then(|value| known.get(value)) {
        Some(place) => *place..*place + 1,
        None => 0..known.len(),
    }
}

/// The text of each value of a setting in the titles of panels. What is in brackets is left out if no other value has
/// the same text before its bracket.
fn value_titles(name: &str, values: &[&Setting]) -> Vec<String> {
    // How many values have each text before their bracket.
    let mut heads: HashMap<&str, usize> = HashMap::new();
    values.iter().filter_map(|v| before_bracket(v)).for_each(|h| *heads.entry(h).or_default() += 1);
    values
        .iter()
        .map(|value| match before_bracket(value).filter(|head| heads[head] == 1) {
            Some(head) => pretty(name, &Setting::Text(head.into())),
            None => pretty(name, value),
        })
        .collect()
}

/// What a text says before its first bracket, the whole text if it has none; `None` for a number.
fn before_bracket(value: &Setting) -> Option<&str> {
    match value {
        Setting::Text(text) => text.split(" (").next(),
        Setting::Number(_) => None,
    }
}

/// Each value once, in the order in which they first occur.
pub fn unique<T: Clone + Eq + Hash>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    all.filter(|value| seen.insert(value.clone())).collect()
}

/// The values of each key, keys in the order in which they first occur and values in their order.
pub fn grouped<K: Clone + Eq + Hash, V>(all: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups = Vec::<(K, Vec<V>)>::new();
    let mut places = HashMap::new();
    for (key, value) in all {
        let place: usize = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(value);
    }
    groups
}

/// The paths of the settings that the grid varies for some of these cells, each once, in the order of the cells.
pub fn varied<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<&'a str> {
    // Many cells share one list, which is looked at once.
    let mut seen: HashSet<*const [String]> = HashSet::new();
    let lists =
        cells.map(|cell| &*cell.varied).filter(|list| seen.insert(std::ptr::from_ref(*list)));
    unique(lists.flatten().map(String::as_str))
}

/// The values of a setting that these cells have, each once, in the order of the cells.
pub fn distinct<'a>(cells: &[&'a CellResult<'a>], name: &str) -> Vec<&'a Setting> {
    unique(cells.iter().filter_map(|cell| cell.cell.settings.get(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::runs::Runs;
    use crate::{simulated, wrong};

    /// The title of each panel, and how many cells it has, of FedLSA and SCAFFLSA at two numbers of local steps.
    fn titles(names: &[&str]) -> Vec<(String, usize)> {
        let plan = simulated::plan(wrong::manifest(2, "[1, 4]"));
        let results: Vec<CellResult<'_>> =
            plan.cells.iter().map(|cell| simulated::result(cell, Runs::default())).collect();
        let cells: Vec<&CellResult<'_>> = results.iter().collect();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let groups = panels(&names, &cells).into_iter();
        groups.map(|group| (group.title, group.cells.len())).collect()
    }

    #[test]
    fn a_setting_that_no_cell_has_makes_no_panels() {
        let all = titles(&[]);
        assert_eq!(all.len(), 1);
        assert_eq!(titles(&["coupling"]), all);
        let by_steps = titles(&["local-steps"]);
        assert_eq!(by_steps.len(), 2);
        assert_eq!(titles(&["coupling", "local-steps"]), by_steps);
    }
}
