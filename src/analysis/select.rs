//! Which cells go where: panels, and names for what is left.

use super::Result;
use crate::plan::{Setting, SettingKey, short};
use std::collections::{HashMap, HashSet};

/// The cells of a panel.
pub struct Group<'a> {
    /// What tells it apart.
    pub title: String,
    /// The values that do.
    pub values: Vec<String>,
    /// Its cells.
    pub cells: Vec<&'a Result>,
}

/// The cells by the values of some settings, the first outermost, values in
/// the order of the cells. A cell without one of the settings belongs to every
/// value of it: FedAvg has no coupling and stands beside either.
pub fn panels<'a>(names: &[String], cells: &'a [&'a Result]) -> Vec<Group<'a>> {
    let values: Vec<Vec<&Setting>> = names.iter().map(|name| distinct(cells, name)).collect();
    let places: Vec<HashMap<SettingKey<'_>, usize>> = values
        .iter()
        .map(|values| values.iter().enumerate().map(|(i, value)| (value.key(), i)).collect())
        .collect();
    // Where each cell stands in each of the lists, if it has the setting.
    let stands: Vec<Vec<Option<usize>>> = cells
        .iter()
        .map(|cell| {
            let place = |(name, places): (&String, &HashMap<SettingKey<'_>, usize>)| {
                cell.cell.settings.get(name).and_then(|value| places.get(&value.key()).copied())
            };
            names.iter().zip(&places).map(place).collect()
        })
        .collect();
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for values in &values {
        let longer = |head: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..values.len()).map(|i| head.iter().copied().chain([i]).collect()).collect()
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    let group = |chosen: Vec<usize>| {
        let fits = |stands: &[Option<usize>]| {
            stands.iter().zip(&chosen).all(|(have, want)| have.is_none_or(|have| have == *want))
        };
        let inside = cells.iter().zip(&stands).filter(|(_, stands)| fits(stands));
        let cells: Vec<&Result> = inside.map(|(cell, _)| *cell).collect();
        if cells.is_empty() {
            return None;
        }
        let chosen = || names.iter().zip(&values).zip(&chosen).map(|((n, v), i)| (n, v, v[*i]));
        let title = chosen().map(|(name, values, value)| title(name, value, values));
        Some(Group {
            title: title.collect::<Vec<_>>().join(", "),
            values: chosen().map(|(_, _, value)| value.to_string()).collect(),
            cells,
        })
    };
    combinations.into_iter().filter_map(group).collect()
}

/// A setting's value in the title of a panel, brief if it is still told apart from
/// the others.
fn title(name: &str, value: &Setting, among: &[&Setting]) -> String {
    match brief(value, among) {
        Some(brief) => pretty(name, &Setting::Text(brief)),
        None => pretty(name, value),
    }
}

/// What each of these cells is called in the title of a panel of this setting, if it
/// has the setting.
pub fn titles(name: &str, cells: &[&Result]) -> Vec<Option<String>> {
    let values = distinct(cells, name);
    let told: HashMap<SettingKey<'_>, String> =
        values.iter().map(|value| (value.key(), title(name, value, &values))).collect();
    let of = |c: &&Result| told.get(&c.cell.settings.get(name)?.key()).cloned();
    cells.iter().map(of).collect()
}

/// A text without what it says in brackets, if that still tells it apart.
fn brief(value: &Setting, among: &[&Setting]) -> Option<String> {
    let head = |s: &Setting| match s {
        Setting::Text(text) => text.split(" (").next().map(str::to_owned),
        Setting::Number(_) => None,
    };
    let mine = head(value)?;
    let same = among.iter().filter(|s| head(s).as_ref() == Some(&mine)).count();
    (same == 1).then_some(mine)
}

/// The values of a setting in the order of the cells.
pub fn distinct<'a>(cells: &'a [&'a Result], name: &str) -> Vec<&'a Setting> {
    let mut seen = HashSet::new();
    let values = cells.iter().filter_map(|cell| cell.cell.settings.get(name));
    values.filter(|value| seen.insert(value.key())).collect()
}

/// What tells a cell apart from those of its label, beside what is `known`.
pub fn details(cell: &Result, known: &[&str]) -> String {
    let settings = &cell.cell.settings;
    let taken: Vec<&str> = known.iter().filter_map(|name| settings.path(name)).collect();
    let shown = |path: &String| !taken.contains(&path.as_str());
    let parts = told(cell).filter(|(path, _)| shown(path)).map(|(_, told)| told);
    parts.collect::<Vec<_>>().join(", ")
}

/// The settings that vary over a grid and that a cell has, as the field writes them.
pub fn told(cell: &Result) -> impl Iterator<Item = (&String, String)> {
    let settings = &cell.cell.settings;
    let varied = cell.cell.varied.iter();
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
            "zero true" => "from 0".into(),
            "limit true" => "from the limit".into(),
            "offset 0" => "from θ*".into(),
            other => format!("from {other}"),
        },
        ("heterogeneity" | "data", _) => value.to_string(),
        ("coupling", _) => format!("{value} noise"),
        ("split", _) => format!("{value} records"),
        (name, _) => format!("{name} {value}"),
    }
}
