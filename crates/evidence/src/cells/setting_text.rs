//! Settings as texts for readers: `γ = 0.1` instead of `step-size = 0.1`.

use exactfed_core::words::joined;
use exactfed_runner::plan::{Cell, Setting, short};

/// The label of a cell with the settings that distinguish it from the other cells of its label.
pub fn cell_name(cell: &Cell) -> String {
    joined(&[&cell.label, &details(cell, &[])])
}

/// The settings that distinguish a cell from the other cells of its label, as one text; empty if there are none. Left
/// out are those that `known` names, because a title or an axis shows them already.
pub fn details(cell: &Cell, known: &[&str]) -> String {
    let settings = distinguishing_settings(cell, known).into_iter();
    settings.map(|(path, value)| pretty(path, value)).collect::<Vec<_>>().join(", ")
}

/// The settings, except those that `known` names, that vary over the grid and that a cell has: the path of each, and
/// its value.
pub fn distinguishing_settings<'a>(
    cell: &'a Cell,
    known: &[&str],
) -> Vec<(&'a String, &'a Setting)> {
    let shown: Vec<&str> = known.iter().filter_map(|name| cell.settings.path(name)).collect();
    let varied = cell.varied.iter().filter(|path| !shown.contains(&path.as_str()));
    varied.filter_map(|path| Some((path, cell.settings.get(path)?))).collect()
}

/// The symbols of settings in the sources.
const SYMBOLS: [(&str, &str); 19] = [
    ("step-size", "γ"),
    ("local-steps", "H"),
    ("path-length", "γH"),
    ("communication-probability", "p"),
    ("proximal", "μ"),
    ("cohort", "L"),
    ("steps-per-client", "E"),
    ("batch-per-client", "B"),
    ("gradient-heterogeneity", "ζ₁"),
    ("hessian-heterogeneity", "ζ₂"),
    ("clients", "N"),
    ("dimension", "d"),
    ("features", "d"),
    ("l2", "λ"),
    ("alpha", "α"),
    ("beta", "β"),
    ("beta1", "β₁"),
    ("beta2", "β₂"),
    ("tau", "τ"),
];

/// The symbol of a setting, or else its name: the title of an axis.
pub fn symbol(name: &str) -> String {
    let name = short(name);
    let known = SYMBOLS.iter().find(|(of, _)| *of == name);
    known.map_or(name, |(_, symbol)| symbol).to_owned()
}

/// A setting with its value as text for readers, in the notation of the sources; `name` may be its path.
pub fn pretty(name: &str, value: &Setting) -> String {
    match (short(name), value) {
        (name, _) if SYMBOLS.iter().any(|(of, _)| *of == name) => {
            format!("{} = {value}", symbol(name))
        }
        ("normalised", Setting::Text(text)) if **text == *"true" => "γ/E".into(),
        ("normalised", Setting::Text(_)) => "γ as it is".into(),
        ("noise", Setting::Text(text)) => format!("{text} noise"),
        ("average", Setting::Text(text)) if **text == *"none" => "iterates".into(),
        ("average", _) => "averaged".into(),
        ("start", Setting::Text(_)) => match &*value.without_flag_value() {
            "zero" => "from 0".into(),
            "limit" => "from the limit".into(),
            "offset" => "from an offset".into(),
            "offset 0" => "from θ*".into(),
            other => format!("from {other}"),
        },
        ("heterogeneity" | "data", _) => value.to_string(),
        ("coupling", _) => format!("{value} noise"),
        ("split", Setting::Text(text)) => match text.strip_prefix("dirichlet ") {
            Some(alpha) => format!("Dirichlet split (α = {alpha})"),
            None => format!("{text} split"),
        },
        (name, _) => format!("{name} {value}"),
    }
}
