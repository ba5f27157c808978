//! The figures of a manifest: what is wrong with them, and the default figure.

use super::costs::unrecorded;
use super::frontier::frontier_figures;
use super::places::{Checker, PLAIN_NAMES, is_plain_name};
use super::settings::symbol;
use super::{Cell, Setting, SettingKey, short, shows};
use crate::manifest::document::nearest;
use crate::manifest::figure::{Convergence, FigureKeys, FigureTables};
use crate::manifest::{Manifest, Quantity};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A setting on an axis of a figure.
struct AxisKey<'a> {
    key: &'static str,
    setting: &'a str,
    /// Whether the values of the setting must be numbers.
    is_number: bool,
}

/// What the checks of a figure of any kind need.
struct CheckedFigure<'a> {
    /// Path of the figure in the manifest.
    path: String,
    common: &'a FigureKeys,
    axes: Vec<AxisKey<'a>>,
    /// Keys whose values are quantities.
    quantities: Vec<(&'static str, Quantity)>,
}

impl<'a> CheckedFigure<'a> {
    /// All figures of a manifest, in the order of their kinds.
    fn all(manifest: &'a Manifest) -> Vec<Self> {
        let figure = |kind: &str, i: usize, common: &'a FigureKeys, axes, quantities| Self {
            path: format!("figure.{kind}.{i}"),
            common,
            axes,
            quantities,
        };
        let axis = |key, setting, is_number| AxisKey { key, setting, is_number };
        let table = &manifest.figure;
        let mut all = Vec::new();
        for (i, f) in table.convergence.iter().enumerate() {
            all.push(figure("convergence", i, &f.common, vec![], vec![("x", f.x), ("y", f.y)]));
        }
        for (i, f) in table.scaling.iter().enumerate() {
            let x = Quantity::named(&f.x).map(|x| ("x", x)).filter(|_| f.x != "local-steps");
            let quantities = x.into_iter().chain([("y", f.y)]).collect();
            all.push(figure("scaling", i, &f.common, vec![axis("x", &f.x, true)], quantities));
        }
        for (i, f) in table.winners.iter().enumerate() {
            let axes = vec![axis("x", &f.x, false), axis("y", &f.y, false)];
            all.push(figure("winners", i, &f.common, axes, vec![("metric", f.metric)]));
        }
        for (i, f) in table.stability.iter().enumerate() {
            let axes = vec![axis("x", &f.x, false), axis("y", &f.y, false)];
            all.push(figure("stability", i, &f.common, axes, vec![]));
        }
        all
    }

    /// The two axes of a map.
    fn map_axes(&self) -> Option<[&AxisKey<'a>; 2]> {
        let [x, y] = self.axes.as_slice() else { return None };
        Some([x, y])
    }
}

/// Ids and paths of all figures of a plan's manifest.
pub fn figure_ids(manifest: &Manifest) -> Vec<(String, String)> {
    let figures =
        CheckedFigure::all(manifest).into_iter().map(|f| (f.common.id().to_owned(), f.path));
    figures.chain(frontier_figures(manifest)).collect()
}

/// Whether a manifest asks for figures of cells.
pub fn has_figures(manifest: &Manifest) -> bool {
    !CheckedFigure::all(manifest).is_empty()
}

/// Notes what is wrong with the figures.
pub fn check_figures(checker: &mut Checker<'_>) {
    let manifest = checker.manifest;
    let figures = CheckedFigure::all(manifest);
    for figure in &figures {
        checker.panels_and_axes(figure);
        checker.labels(figure);
        checker.quantities(figure);
    }
    if checker.found.is_empty() {
        figures.iter().for_each(|figure| checker.separate_squares(figure));
    }
    let mut ids = HashSet::new();
    ids.extend(frontier_figures(manifest).map(|(id, _)| id));
    for figure in &figures {
        checker.id(figure, ids.insert(figure.common.id().to_owned()));
        checker.rest(figure);
    }
    for (i, figure) in manifest.figure.winners.iter().enumerate() {
        let Some(at) = figure.at else { continue };
        let cells = checker.cells.iter().filter(|cell| shows(&figure.common, cell));
        checker.at_cost(&format!("figure.winners.{i}.at"), at, figure.metric, cells);
    }
    for (i, figure) in manifest.figure.scaling.iter().enumerate() {
        let slope = figure.reference_slope.unwrap_or_default();
        let message = format!("`reference-slope` must be finite, not {slope}");
        let path = format!("figure.scaling.{i}.reference-slope");
        checker.require(slope.is_finite(), &path, message);
    }
}

impl Checker<'_> {
    /// A setting must be one of some cell's and, on some axes, a number.
    fn setting(&mut self, path: &str, name: &str, is_number: bool) {
        let mut values = self.cells.iter().filter_map(|c| c.settings.get(name)).peekable();
        if values.peek().is_none() {
            if is_number && Quantity::named(name).is_some() {
                return;
            }
            let message = format!("no cell has a setting `{name}`");
            let hint = symbol(name, &self.known).or_else(|| nearest(name, &self.known));
            let allowed = self.known.join(", ");
            self.note(path, message, |d| d.hinting(hint).allowing(allowed));
        } else if is_number && let Some(text) = values.find(|v| matches!(v, Setting::Text(_))) {
            self.fault(path, format!("an axis needs numbers, but `{name}` is \"{text}\""));
        }
    }

    fn panels_and_axes(&mut self, figure: &CheckedFigure<'_>) {
        let panels = &figure.common.panels;
        for (i, name) in panels.iter().enumerate() {
            let path = format!("{}.panels.{i}", figure.path);
            self.setting(&path, name, false);
            self.require(!panels[..i].contains(name), &path, format!("`{name}` is listed twice"));
        }
        if let Some(only) = &figure.common.only {
            self.selection(&format!("{}.only", figure.path), only);
        }
        if let Some(large) = &figure.common.large {
            let path = format!("{}.large", figure.path);
            self.selection(&path, large);
            for key in large.0.keys().filter(|key| !panels.contains(key)) {
                let message = format!("`{key}` has no panels of its own");
                let allowed = panels.join(", ");
                self.note(&format!("{path}.{key}"), message, |d| d.allowing(allowed));
            }
        }
        for AxisKey { key, setting, is_number } in &figure.axes {
            self.setting(&format!("{}.{key}", figure.path), setting, *is_number);
        }
    }

    fn labels(&mut self, figure: &CheckedFigure<'_>) {
        let known: BTreeSet<&str> = self.cells.iter().map(|c| c.label.as_str()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        for (i, label) in figure.common.labels.iter().enumerate() {
            if !known.contains(&label.as_str()) {
                let message = format!("no algorithm is called \"{label}\"");
                let path = format!("{}.labels.{i}", figure.path);
                self.note(&path, message, |d| d.naming(label, &known));
            }
        }
    }

    fn quantities(&mut self, figure: &CheckedFigure<'_>) {
        for (key, quantity) in &figure.quantities {
            let ranked = *key == "metric" && quantity.is_fraction();
            let best = "a map shows where the mean is smallest, but of this more is better";
            let message = ranked.then(|| format!("`{}`: {best}", quantity.name()));
            if let Some(message) = message.or_else(|| unrecorded(self.manifest, *quantity)) {
                self.fault(&format!("{}.{key}", figure.path), message);
            }
        }
    }

    /// A square of a map must not pool cells of different settings.
    fn separate_squares(&mut self, figure: &CheckedFigure<'_>) {
        let Some([x, y]) = figure.map_axes().filter(|[x, y]| x.setting != y.setting) else {
            return;
        };
        let names =
            || figure.common.panels.iter().map(String::as_str).chain([x.setting, y.setting]);
        let mut squares: HashMap<(&str, Vec<Option<SettingKey<'_>>>), &Cell> = HashMap::new();
        for cell in self.cells {
            let values = names().map(|name| cell.settings.get(name).map(Setting::key));
            let square = (cell.label.as_str(), values.collect());
            let Some(other) = squares.insert(square, cell) else { continue };
            let differs =
                |path: &&String| cell.settings.at_path(path) != other.settings.at_path(path);
            let more: BTreeSet<&str> =
                cell.varied.iter().filter(differs).map(|path| short(path)).collect();
            let more: Vec<&str> = more.into_iter().collect();
            let message = format!("one square would hold several cells of \"{}\"", cell.label);
            let hint = format!("add to `panels`: {}", more.join(", "));
            return self.note(&figure.path, message, |d| d.hinting(Some(hint)));
        }
    }

    fn id(&mut self, figure: &CheckedFigure<'_>, is_new: bool) {
        let (path, id) = (format!("{}.id", figure.path), figure.common.id());
        if !is_plain_name(id) {
            let message = format!("a figure's id names its file: \"{id}\" cannot");
            self.note(&path, message, |d| d.allowing(PLAIN_NAMES));
        } else if !is_new {
            self.fault(&path, format!("two figures are called \"{id}\""));
        }
    }

    fn rest(&mut self, figure: &CheckedFigure<'_>) {
        if let Some([x, y]) = figure.map_axes().filter(|[x, y]| x.setting == y.setting) {
            let path = format!("{}.{}", figure.path, y.key);
            self.fault(&path, format!("`{}` is on both axes", x.setting));
        }
        let path = format!("{}.columns", figure.path);
        let some = figure.common.columns != Some(0);
        self.require(some, &path, "`columns` must be 1 or more, not 0");
    }
}

/// The most curves of a panel, and the most panels, up to which another setting has separate
/// panels.
const CURVES: usize = 8;
const PANELS: usize = 16;

/// The figure of a manifest without figures: ‖θ_t − θ*‖² over communications, with a panel for
/// each problem, start and budget, and for further settings while panels hold many curves.
pub fn default_figures(cells: &[Cell], tuned: &dyn Fn(&str) -> bool) -> FigureTables {
    let mut varied: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    // What is tuned has one value for each curve.
    for path in cells.iter().flat_map(|c| &*c.varied).filter(|path| !tuned(path)) {
        let of_algorithm = path.starts_with("algorithm.");
        let name = if of_algorithm { short(path) } else { path.as_str() };
        if seen.insert(name) {
            varied.push(name);
        }
    }
    let (mut others, outer): (Vec<&str>, Vec<&str>) =
        varied.into_iter().partition(|name| !name.contains('.') && *name != "oracle");
    others.sort_by_key(|name| cells_by_values(cells, &[name]).len());
    let mut panels = outer;
    for name in others {
        let most = cells_by_values(cells, &panels).into_values().max().unwrap_or(0);
        let more: Vec<&str> = panels.iter().copied().chain([name]).collect();
        if most > CURVES && cells_by_values(cells, &more).len() <= PANELS {
            panels = more;
        }
    }
    let mut figure = Convergence::default();
    figure.common.panels = panels.into_iter().map(str::to_owned).collect();
    FigureTables { convergence: vec![figure], ..FigureTables::default() }
}

/// The number of cells with the same values of these settings, by these values.
fn cells_by_values<'a>(
    cells: &'a [Cell],
    names: &[&str],
) -> HashMap<Vec<Option<SettingKey<'a>>>, usize> {
    let mut all = HashMap::new();
    for cell in cells {
        let values = names.iter().map(|name| cell.settings.get(name).map(Setting::key));
        *all.entry(values.collect()).or_default() += 1;
    }
    all
}
