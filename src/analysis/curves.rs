//! Which curve of a figure each cell belongs to, what the curve is called and how it looks.
//!
//! *Invariant*: this is assigned once, here, for every set of panels that a page offers. The
//! drawing, the page's script and the LaTeX files read the assignment and number nothing
//! themselves.
//!
//! *Invariant*: no two curves of a figure share colour and mark, so that the predictions
//! beside them, which carry both, can be told apart as well.

use super::figure::{COLORS, Curve, DASHES, MARKS, Style, View};
use super::{CellResult, panels, setting_text};
use driftbench_runner::plan::{Cell, short};
use std::collections::{HashMap, HashSet};

/// What tells a curve: its algorithm, and the settings that the figure does not tell.
type Told<'a> = (&'a str, Vec<(&'a String, String)>);

/// The curves of some cells in their order, where panels and the x axis tell the settings
/// `known`; and the curve of each cell.
pub fn curves(cells: &[&Cell], known: &[&str]) -> (Vec<Curve>, Vec<usize>) {
    let mut places: HashMap<Told<'_>, usize> = HashMap::new();
    let (mut all, mut of): (Vec<Curve>, Vec<usize>) = (Vec::new(), Vec::new());
    for cell in cells {
        let told = setting_text::distinguishing_settings(cell, known);
        let value = |path: &String| cell.settings.get(path).map(ToString::to_string);
        let exact = told.iter().map(|(path, _)| (*path, value(path).unwrap_or_default()));
        let place = *places.entry((&cell.label, exact.collect())).or_insert(all.len());
        if place == all.len() {
            let settings: Vec<(String, String)> =
                told.into_iter().map(|(path, told)| (short(path).to_owned(), told)).collect();
            let (algorithm, style) = (cell.label.clone(), Style::default());
            let label = named(&algorithm, settings.iter().map(|(_, told)| told.clone()));
            all.push(Curve { label, algorithm, settings, style });
        }
        of.push(place);
    }
    let values = places.into_iter().map(|((_, exact), place)| (place, exact));
    tell_apart(&mut all, &values.collect());
    assign(&mut all);
    (all, of)
}

/// The name of a curve.
fn named(algorithm: &str, details: impl Iterator<Item = String>) -> String {
    std::iter::once(algorithm.to_owned()).chain(details).collect::<Vec<_>>().join(", ")
}

/// Names curves by the exact values of their settings where brief names are the same.
fn tell_apart(all: &mut [Curve], values: &HashMap<usize, Vec<(&String, String)>>) {
    let mut times: HashMap<String, usize> = HashMap::new();
    all.iter().for_each(|curve| *times.entry(curve.label.clone()).or_default() += 1);
    for (place, curve) in all.iter_mut().enumerate().filter(|(_, c)| times[&c.label] > 1) {
        let exact = values.get(&place).into_iter().flatten();
        let exact = exact.map(|(path, value)| format!("{} {value}", short(path)));
        curve.label = named(&curve.algorithm, exact);
    }
}

/// Gives every curve its look. Where algorithms come in several variants, the variant has
/// the colour and the algorithm the dash; else the algorithm has both. The mark depends on
/// both; where colour and mark are taken, the next free pair in a fixed order follows.
fn assign(all: &mut [Curve]) {
    let mut algorithms: HashMap<String, usize> = HashMap::new();
    let mut variants: HashMap<(Option<String>, String), usize> = HashMap::new();
    let mut taken = HashSet::new();
    for curve in all {
        let count = algorithms.len();
        let algorithm = *algorithms.entry(curve.algorithm.clone()).or_insert(count);
        let told: Vec<&str> = curve.settings.iter().map(|(_, told)| told.as_str()).collect();
        // An algorithm without variants is a variant of its own.
        let own = told.is_empty().then(|| curve.algorithm.clone());
        let count = variants.len();
        let variant = *variants.entry((own.clone(), told.join(", "))).or_insert(count);
        let turn = if own.is_some() { 0 } else { 5 * algorithm };
        let pair = |n: usize| ((variant + n / MARKS) % COLORS, (variant + turn + n) % MARKS);
        let free = (0..COLORS * MARKS).map(pair).find(|pair| taken.insert(*pair));
        let (color, mark) = free.unwrap_or(pair(0));
        curve.style = Style { color, dash: algorithm % DASHES, mark };
    }
}

/// Every view that a page offers of the cells of a figure: the manifest's panels first, then
/// one panel, then a panel for each value of each setting that varies. `across` are the
/// settings that the x axis tells.
pub fn views(asked: &[String], across: &[&str], cells: &[&CellResult<'_>]) -> Vec<View> {
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let places: HashMap<&str, usize> =
        plain.iter().enumerate().map(|(i, cell)| (cell.id.as_str(), i)).collect();
    let varied = plain.iter().flat_map(|cell| &cell.varied);
    let mut axes: Vec<&str> = Vec::new();
    for name in asked.iter().chain(varied).map(|name| short(name)) {
        if !axes.contains(&name) && across.first().is_none_or(|x| short(x) != name) {
            axes.push(name);
        }
    }
    let several = |name: &&str| panels::distinct(cells, name).len() > 1;
    let single = axes.iter().copied().filter(several).map(|name| vec![name.to_owned()]);
    let asked = asked.to_vec();
    let mut all: Vec<View> = Vec::new();
    for panels in [asked, Vec::new()].into_iter().chain(single) {
        let brief: Vec<String> = panels.iter().map(|name| short(name).to_owned()).collect();
        if all.iter().any(|view| view.panels == brief) {
            continue;
        }
        let known: Vec<&str> =
            panels.iter().map(String::as_str).chain(across.iter().copied()).collect();
        let (curves, of) = curves(&plain, &known);
        let groups = panels::panels(&panels, cells).into_iter().map(|group| {
            let here = group.cells.iter().filter_map(|c| places.get(c.cell.id.as_str()));
            (group.title, here.copied().collect())
        });
        all.push(View { panels: brief, groups: groups.collect(), curves, of });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use driftbench_runner::manifest::Source;
    use driftbench_runner::plan::Plan;
    use std::path::{Path, PathBuf};

    /// The plans of all published experiments and of those for tests.
    fn plans() -> Vec<Plan> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        let (mut open, mut files): (Vec<PathBuf>, Vec<PathBuf>) = (vec![root], Vec::new());
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|end| end == "toml") {
                    files.push(path);
                }
            }
        }
        let plan = |file: &PathBuf| {
            let (name, text) = (file.display().to_string(), std::fs::read_to_string(file).unwrap());
            let source = Source { name: name.clone(), text, ..Source::default() };
            Plan::new(name, source).unwrap_or_else(|rejected| panic!("{rejected}"))
        };
        files.iter().map(plan).collect()
    }

    /// What the panels and the x axis of each figure of curves tell, whether in the
    /// manifest's view or with panels for nothing or for any setting that varies.
    fn views_of(plan: &Plan) -> Vec<(Vec<String>, Vec<&Cell>)> {
        let table = &plan.manifest.figure;
        let convergence = table.convergence.iter().map(|f| (&f.labels, &f.panels, Vec::new()));
        let scaling = table.scaling.iter().map(|f| {
            let across = super::super::scaling::across_names(&f.x);
            (&f.labels, &f.panels, across.into_iter().map(str::to_owned).collect())
        });
        let mut all = Vec::new();
        for (labels, asked, across) in convergence.chain(scaling) {
            let named = |cell: &&Cell| labels.is_empty() || labels.contains(&cell.label);
            let cells: Vec<&Cell> = plan.cells.iter().filter(named).collect();
            let mut panels = vec![asked.clone(), Vec::new()];
            let varied: HashSet<&str> =
                cells.iter().flat_map(|c| &c.varied).map(|n| short(n)).collect();
            panels.extend(varied.into_iter().map(|name| vec![name.to_owned()]));
            all.extend(panels.into_iter().map(|p| ([p, across.clone()].concat(), cells.clone())));
        }
        all
    }

    #[test]
    fn no_two_curves_of_a_published_figure_look_alike() {
        let (mut figures, mut most) = (0, 0);
        for plan in plans() {
            for (known, cells) in views_of(&plan) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let (curves, of) = curves(&cells, &known);
                // A figure of more is thinned before its curves are made.
                if curves.len() > super::super::downsample::MOST_CURVES {
                    continue;
                }
                let labels: HashSet<&str> = curves.iter().map(|c| c.label.as_str()).collect();
                assert_eq!(labels.len(), curves.len(), "{}: {labels:?}", plan.experiment);
                let pairs: HashSet<(usize, usize)> =
                    curves.iter().map(|c| (c.style.color, c.style.mark)).collect();
                assert_eq!(pairs.len(), curves.len(), "{}: {labels:?}", plan.experiment);
                // Curves stand in the order of their first cells.
                let firsts: Vec<usize> =
                    (0..curves.len()).filter_map(|i| of.iter().position(|c| *c == i)).collect();
                assert!(firsts.len() == curves.len() && firsts.is_sorted());
                for (cell, curve) in cells.iter().zip(&of) {
                    assert_eq!(cell.label, curves[*curve].algorithm);
                }
                (figures, most) = (figures + 1, most.max(curves.len()));
            }
        }
        assert!(figures > 100 && most > 16, "{figures} views, at most {most} curves");
    }

    /// As many curves as a figure may have, of one algorithm and of many.
    #[test]
    fn as_many_curves_as_a_figure_may_have_look_different() {
        for variants in [1, 3, 8, 9, 25, 100] {
            let curve = |i: usize| {
                let (algorithm, variant) = (i / variants, i % variants);
                let settings = vec![("local-steps".to_owned(), format!("H = {variant}"))];
                let settings = if variants == 1 { Vec::new() } else { settings };
                let algorithm = format!("algorithm {algorithm}");
                let label = format!("{algorithm} {settings:?}");
                Curve { label, algorithm, settings, style: Style::default() }
            };
            let mut all: Vec<Curve> = (0..100).map(curve).collect();
            assign(&mut all);
            let pairs: HashSet<(usize, usize)> =
                all.iter().map(|c| (c.style.color, c.style.mark)).collect();
            assert_eq!(pairs.len(), 100, "{variants} variants");
        }
    }
}
