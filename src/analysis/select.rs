//! Which cells go where: panels, and names for what is left.

use super::Result;
use crate::plan::{Setting, short};

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
    let mut combinations: Vec<Vec<&Setting>> = vec![Vec::new()];
    for name in names {
        let values = distinct(cells, name);
        combinations = combinations
            .iter()
            .flat_map(|head| {
                values.iter().map(move |value| {
                    let mut all = head.clone();
                    all.push(*value);
                    all
                })
            })
            .collect();
    }
    let group = |values: Vec<&Setting>| {
        let fits = |cell: &Result| {
            names
                .iter()
                .zip(&values)
                .all(|(name, value)| cell.cell.settings.get(name).is_none_or(|have| have == *value))
        };
        let parts = names.iter().zip(&values).map(|(name, value)| title(name, value, cells));
        Group {
            title: parts.collect::<Vec<_>>().join(", "),
            values: values.iter().map(ToString::to_string).collect(),
            cells: cells.iter().copied().filter(|cell| fits(cell)).collect(),
        }
    };
    combinations.into_iter().map(group).filter(|g| !g.cells.is_empty()).collect()
}

/// A setting's value in the title of a panel, brief if it is still told apart from
/// the others of these cells.
pub fn title(name: &str, value: &Setting, cells: &[&Result]) -> String {
    match brief(value, &distinct(cells, name)) {
        Some(brief) => pretty(name, &Setting::Text(brief)),
        None => pretty(name, value),
    }
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
    let mut values: Vec<&Setting> = Vec::new();
    for value in cells.iter().filter_map(|c| c.cell.settings.get(name)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// What tells a cell apart from those of its label, beside what is `known`.
pub fn details(cell: &Result, known: &[&str]) -> String {
    let settings = &cell.cell.settings;
    let shown = |path: &&String| {
        let taken = known.iter().filter_map(|name| settings.path(name));
        !taken.into_iter().any(|taken| taken == path.as_str())
    };
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
