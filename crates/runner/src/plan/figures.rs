//! The figures of a manifest: what is wrong with them, and the default figure.

use super::cell::Cell;
use super::checker::Checker;
use super::frontier::frontier_figures;
use super::kinds::{EvidenceKinds, KindTable};
use super::phase::phase_figures;
use super::settings::{Setting, short};
use super::tuning::Tuning;
use crate::manifest::Manifest;
use crate::manifest::figure::FigureKeys;
use crate::quantity::Quantity;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The ids of all figures of a manifest, each with the path of its table; of the figures of a frontier or a map this
/// is the path of the frontier or the map. They are kind by kind, maps and frontiers last, and not in the order of the
/// text ([`Plan::figures`](super::Plan::figures)).
pub fn figure_ids(manifest: &Manifest, tables: &[KindTable<FigureKeys>]) -> Vec<(String, String)> {
    let figures =
        tables.iter().map(|figure| (figure.common().id().to_owned(), figure.path.clone()));
    figures.chain(phase_figures(manifest)).chain(frontier_figures(manifest)).collect()
}

impl Checker<'_> {
    /// Notes what is wrong with the figures: with their ids, panels and labels, and with the keys of their kinds.
    pub fn figures(&mut self, tables: &[KindTable<FigureKeys>]) {
        let others = frontier_figures(self.manifest).chain(phase_figures(self.manifest));
        let mut ids: HashSet<String> = others.map(|(id, _)| id).collect();
        for figure in tables {
            let id = figure.common().id();
            let message = format!("a figure's id names its file: \"{id}\" cannot");
            let is_new = ids.insert(id.to_owned());
            self.table(&figure.path, |checker| {
                checker.check_id(id, message, "figures", is_new);
                checker.panels(figure.common());
                checker.labels(figure.common());
            });
        }
        tables.iter().for_each(|figure| figure.check(self));
    }

    /// Notes what is wrong with the keys of a figure that select cells and panels.
    fn panels(&mut self, figure: &FigureKeys) {
        let panels = &figure.panels;
        for (i, name) in panels.iter().enumerate() {
            self.setting(&format!("panels.{i}"), name);
        }
        self.distinct("panels", panels.iter());
        if let Some(only) = &figure.only {
            self.selection("only", only);
        }
        if let Some(large) = &figure.large {
            self.selection("large", large);
            for key in large.0.keys().filter(|key| !panels.contains(key)) {
                let message = format!("`{key}` has no panels of its own");
                let allowed = panels.join(", ");
                self.note(&format!("large.{key}"), message, |d| d.allowing(allowed));
            }
        }
        let some = figure.columns != Some(0);
        self.require(some, "columns", "`columns` must be 1 or more, not 0");
    }

    /// Notes labels that a figure names and no algorithm of the manifest has.
    fn labels(&mut self, figure: &FigureKeys) {
        let known: BTreeSet<&str> = self.cells.iter().map(|c| c.label.as_str()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        for (i, label) in figure.labels.iter().enumerate() {
            if !known.contains(&label.as_str()) {
                let message = format!("no algorithm is called \"{label}\"");
                self.note(&format!("labels.{i}"), message, |d| d.naming(label, &known));
            }
        }
    }
}

/// The number of curves in a panel above which the default figure has panels for another setting.
const CURVES: usize = 8;
/// The most panels that the default figure has.
const PANELS: usize = 16;

/// The one figure of a manifest without figures: the quantity by which it compares runs over communications, with a
/// panel for each problem, start, budget and oracle that the grid varies, and for further settings while panels hold
/// more than [`CURVES`] curves and there are at most [`PANELS`] panels. Tuned settings (`tuning`, `None` if there are
/// none) have no panels. It is of the first of the `kinds` of figures.
pub fn default_figures(
    kinds: &EvidenceKinds,
    cells: &[Cell],
    tuning: Option<&Tuning>,
    quantity: Quantity,
) -> Vec<KindTable<FigureKeys>> {
    let mut varied: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    let all = cells.iter().flat_map(|cell| &*cell.varied);
    // What is tuned has one value for each curve.
    for path in all.filter(|path| !tuning.is_some_and(|tuning| tuning.has(path))) {
        let of_algorithm = path.starts_with("algorithm.");
        let name = if of_algorithm { short(path) } else { path.as_str() };
        if seen.insert(name) {
            varied.push(name);
        }
    }
    // A name with a dot is the path of a setting of the problem, the start or the budget.
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
    let figure = toml::Table::from_iter([("panels".to_owned(), panels.into())]);
    let tree = toml::Table::from_iter([(kinds.figures[0].name.to_owned(), vec![figure].into())]);
    let tables = KindTable::read("figure", kinds.figures, tree, quantity);
    tables.expect("the first kind of figure has defaults for all keys")
}

/// How many cells have the same values of these settings, by these values; `None` stands for a setting that a cell
/// lacks.
fn cells_by_values<'a>(
    cells: &'a [Cell],
    names: &[&str],
) -> HashMap<Vec<Option<&'a Setting>>, usize> {
    let mut all = HashMap::new();
    for cell in cells {
        let values = names.iter().map(|name| cell.settings.get(name));
        *all.entry(values.collect()).or_default() += 1;
    }
    all
}
