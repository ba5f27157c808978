//! The figures of a manifest: what is wrong with them, and the one that is drawn where
//! none is asked for.

use super::validate::at;
use super::{Cell, Setting, SettingKey, short};
use crate::manifest::figure::{Convergence, Table};
use crate::manifest::read::Choice;
use crate::manifest::{Diagnostic, Manifest, Node};
use std::collections::{HashMap, HashSet};

/// Curves of a panel, and panels, up to which another setting is given panels of its own.
const CURVES: usize = 8;
const PANELS: usize = 16;

/// Slopes that no line has.
pub fn slopes(root: &Node, manifest: &Manifest) -> Vec<Diagnostic> {
    let wrong = |(i, slope): (usize, Option<f64>)| {
        let slope = slope.filter(|slope| !slope.is_finite())?;
        let path = format!("figure.scaling.{i}.reference-slope");
        let message = format!("`reference-slope` must be finite, not {slope}");
        Some(at(root, &path, &Choice::new(), message))
    };
    let all = manifest.figure.scaling.iter().map(|f| f.reference_slope);
    all.enumerate().filter_map(wrong).collect()
}

/// The figure of a manifest that asks for none: ‖θ_t − θ*‖² over communications, a panel for
/// each problem, start and budget, and for further settings while panels hold many curves.
pub fn default(cells: &[Cell]) -> Table {
    let mut varied: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for path in cells.iter().flat_map(|c| &c.varied) {
        let of_algorithm = path.starts_with("algorithm.");
        let name = if of_algorithm { short(path) } else { path.as_str() };
        if seen.insert(name) {
            varied.push(name);
        }
    }
    let (mut others, outer): (Vec<&str>, Vec<&str>) =
        varied.into_iter().partition(|name| !name.contains('.') && *name != "oracle");
    others.sort_by_key(|name| divided(cells, &[name]).len());
    let mut panels = outer;
    for name in others {
        let most = divided(cells, &panels).into_values().max().unwrap_or(0);
        let more: Vec<&str> = panels.iter().copied().chain([name]).collect();
        if most > CURVES && divided(cells, &more).len() <= PANELS {
            panels = more;
        }
    }
    let panels = panels.into_iter().map(str::to_owned).collect();
    Table {
        convergence: vec![Convergence { panels, ..Convergence::default() }],
        ..Table::default()
    }
}

/// How many cells have the same values of these settings.
fn divided<'a>(cells: &'a [Cell], names: &[&str]) -> HashMap<Vec<Option<SettingKey<'a>>>, usize> {
    let mut all = HashMap::new();
    for cell in cells {
        let values = names.iter().map(|name| cell.settings.get(name).map(Setting::key));
        *all.entry(values.collect()).or_default() += 1;
    }
    all
}
