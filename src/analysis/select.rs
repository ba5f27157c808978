//! Which cells go where: panels, and names for what is left.

use super::CellResult;
use driftbench_runner::plan::{Cell, Setting, SettingKey, short};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The cells of a panel.
pub struct Group<'a> {
    /// What tells it apart.
    pub title: String,
    /// The values that do.
    pub values: Vec<String>,
    /// Its cells.
    pub cells: Vec<&'a CellResult<'a>>,
}

/// The cells by the values of some settings, the first outermost, values in
/// the order of the cells. A cell without one of the settings belongs to every
/// value of it: FedAvg has no coupling and stands beside either.
pub fn panels<'a>(names: &[String], cells: &[&'a CellResult<'a>]) -> Vec<Group<'a>> {
    let values: Vec<Vec<&Setting>> = names.iter().map(|name| distinct(cells, name)).collect();
    let places: Vec<HashMap<SettingKey<'_>, usize>> = values.iter().map(|v| placed(v)).collect();
    // By where they stand in each of the lists, so that no combination without a cell is met.
    let mut groups: BTreeMap<Vec<usize>, Vec<&'a CellResult<'a>>> = BTreeMap::new();
    for cell in cells {
        let mut stands = vec![Vec::new()];
        for (name, places) in names.iter().zip(&places) {
            let here = match cell.cell.settings.get(name).and_then(|v| places.get(&v.key())) {
                Some(place) => *place..*place + 1,
                None => 0..places.len(),
            };
            let longer = |head: &Vec<usize>| -> Vec<Vec<usize>> {
                here.clone().map(|i| head.iter().copied().chain([i]).collect()).collect()
            };
            stands = stands.iter().flat_map(longer).collect();
        }
        stands.into_iter().for_each(|stand| groups.entry(stand).or_default().push(cell));
    }
    let told = |(name, values): (&String, &Vec<&Setting>)| titled(name, values);
    let titles: Vec<Vec<String>> = names.iter().zip(&values).map(told).collect();
    let group = |(chosen, cells): (Vec<usize>, Vec<&'a CellResult<'a>>)| Group {
        title: chosen.iter().zip(&titles).map(|(i, of)| &*of[*i]).collect::<Vec<_>>().join(", "),
        values: chosen.iter().zip(&values).map(|(i, of)| of[*i].to_string()).collect(),
        cells,
    };
    groups.into_iter().map(group).collect()
}

/// Where each value is in a list.
pub fn placed<'a>(values: &[&'a Setting]) -> HashMap<SettingKey<'a>, usize> {
    values.iter().enumerate().map(|(i, value)| (value.key(), i)).collect()
}

/// The values of a setting in the titles of panels, brief where they are still told apart
/// from the others.
fn titled(name: &str, values: &[&Setting]) -> Vec<String> {
    let mut heads: HashMap<&str, usize> = HashMap::new();
    values.iter().filter_map(|v| head(v)).for_each(|h| *heads.entry(h).or_default() += 1);
    let one = |value: &&Setting| match head(value).filter(|head| heads[head] == 1) {
        Some(head) => pretty(name, &Setting::Text(head.to_owned())),
        None => pretty(name, value),
    };
    values.iter().map(one).collect()
}

/// A text without what it says in brackets.
fn head(value: &Setting) -> Option<&str> {
    match value {
        Setting::Text(text) => text.split(" (").next(),
        Setting::Number(_) => None,
    }
}

/// The values of a setting in the order of the cells.
pub fn distinct<'a>(cells: &[&'a CellResult<'a>], name: &str) -> Vec<&'a Setting> {
    let mut seen = HashSet::new();
    let values = cells.iter().filter_map(|cell| cell.cell.settings.get(name));
    values.filter(|value| seen.insert(value.key())).collect()
}

/// What tells a cell apart from those of its label, beside what is `known`.
pub fn details(cell: &CellResult<'_>, known: &[&str]) -> String {
    let told = details_of(cell.cell, known).into_iter().map(|(_, told)| told);
    told.collect::<Vec<_>>().join(", ")
}

/// The same setting by setting: its path, and how the field writes it.
pub fn details_of<'a>(cell: &'a Cell, known: &[&str]) -> Vec<(&'a String, String)> {
    let taken: Vec<&str> = known.iter().filter_map(|name| cell.settings.path(name)).collect();
    told_of(cell).filter(|(path, _)| !taken.contains(&path.as_str())).collect()
}

/// The settings that vary over a grid and that a cell has, as the field writes them.
pub fn told_of(cell: &Cell) -> impl Iterator<Item = (&String, String)> {
    let settings = &cell.settings;
    let varied = cell.varied.iter();
    varied.filter_map(|path| settings.get(path).map(|value| (path, pretty(path, value))))
}

/// A setting as the field writes it.
pub fn pretty(name: &str, value: &Setting) -> String {
    match (short(name), value) {
        ("step-size", _) => format!("γ = {value}"),
        ("local-steps", _) => format!("H = {value}"),
        ("path-length", _) => format!("γH = {value}"),
        ("communication-probability", _) => format!("p = {value}"),
        ("proximal", _) => format!("μ = {value}"),
        ("cohort", _) => format!("L = {value}"),
        ("steps-per-client", _) => format!("E = {value}"),
        ("batch-per-client", _) => format!("B = {value}"),
        ("gradient-heterogeneity", _) => format!("ζ₁ = {value}"),
        ("hessian-heterogeneity", _) => format!("ζ₂ = {value}"),
        ("normalised", Setting::Text(text)) => {
            if text == "true" {
                "γ/E".into()
            } else {
                "γ as it is".into()
            }
        }
        ("noise", Setting::Text(text)) => format!("{text} noise"),
        ("clients", _) => format!("N = {value}"),
        ("dimension" | "features", _) => format!("d = {value}"),
        ("l2", _) => format!("λ = {value}"),
        ("average", Setting::Text(text)) if text == "none" => "iterates".into(),
        ("average", _) => "averaged".into(),
        ("start", Setting::Text(text)) => match text.as_str() {
            "zero" | "zero true" => "from 0".into(),
            "limit" | "limit true" => "from the limit".into(),
            "offset" => "from an offset".into(),
            "offset 0" => "from θ*".into(),
            other => format!("from {other}"),
        },
        ("heterogeneity" | "data", _) => value.to_string(),
        ("coupling", _) => format!("{value} noise"),
        ("split", _) => format!("{value} records"),
        (name, _) => format!("{name} {value}"),
    }
}

/// Whether a figure with these labels draws a cell; without labels it draws every cell.
pub fn has_label(labels: &[String], cell: &Cell) -> bool {
    labels.is_empty() || labels.contains(&cell.label)
}
