//! Which curve of a figure each cell belongs to, and the curve's name and style.
//!
//! *Invariant*: both are assigned here, once for every set of panels that a page offers. The
//! drawing, the page's script and the LaTeX files read the assignment and assign nothing
//! themselves.
//!
//! *Invariant*: no two curves of a figure have the same colour and marker, because the
//! predictions beside them have both and must be distinguishable as well.

use super::figure::View;
use super::line::{COLORS, Color, Curve, CurveSetting, DASHES, Dash, MARKERS, Style};
use super::setting_text::{distinguishing_settings, pretty};
use super::{CellResult, panels};
use driftbench_runner::plan::{Cell, short};
use std::collections::{HashMap, HashSet};

/// An algorithm, and the exact values of the settings that the figure does not show.
type CurveKey<'a> = (&'a str, Vec<(&'a String, String)>);

/// The curves of some cells in their order, where panels and the x axis show the settings
/// `known`; and the index of the curve of each cell.
pub fn curves(cells: &[&Cell], known: &[&str]) -> (Vec<Curve>, Vec<usize>) {
    let mut indices: HashMap<CurveKey<'_>, usize> = HashMap::new();
    let (mut curves, mut curve_of_cell): (Vec<Curve>, Vec<usize>) = (Vec::new(), Vec::new());
    for cell in cells {
        let settings = distinguishing_settings(cell, known);
        let exact = settings.iter().map(|(path, value)| (*path, value.to_string()));
        let index = *indices.entry((&cell.label, exact.collect())).or_insert(curves.len());
        if index == curves.len() {
            let settings = settings.into_iter().map(|(path, value)| CurveSetting {
                name: short(path).to_owned(),
                value: value.clone(),
                text: pretty(path, value),
            });
            let (settings, style) = (settings.collect(), Style::solid(Color::Neutral));
            curves.push(Curve { settings, ..Curve::new(&cell.label, style) });
        }
        curve_of_cell.push(index);
    }
    let mut count: HashMap<String, usize> = HashMap::new();
    curves.iter().for_each(|curve| *count.entry(curve.name()).or_default() += 1);
    curves.iter_mut().for_each(|curve| curve.exact = count[&curve.name()] > 1);
    assign_styles(&mut curves);
    (curves, curve_of_cell)
}

/// Gives every curve its style. Where algorithms have several variants, the colour depends on
/// the variant and the dash pattern on the algorithm; otherwise both depend on the algorithm.
/// The marker depends on both. Where colour and marker are taken, the next free pair in a fixed
/// order follows.
fn assign_styles(curves: &mut [Curve]) {
    let mut algorithms: HashMap<String, usize> = HashMap::new();
    let mut variants: HashMap<(Option<String>, Vec<String>), usize> = HashMap::new();
    let mut taken = HashSet::new();
    for curve in curves {
        let count = algorithms.len();
        let algorithm = *algorithms.entry(curve.algorithm.clone()).or_insert(count);
        let texts: Vec<String> = curve.settings.iter().map(|s| s.text.clone()).collect();
        // An algorithm without variants is a variant of its own.
        let own = texts.is_empty().then(|| curve.algorithm.clone());
        let turn = if own.is_some() { 0 } else { 5 * algorithm };
        let count = variants.len();
        let variant = *variants.entry((own, texts)).or_insert(count);
        let pair = |n: usize| ((variant + n / MARKERS) % COLORS, (variant + turn + n) % MARKERS);
        let free = (0..COLORS * MARKERS).map(pair).find(|pair| taken.insert(*pair));
        let (color, marker) = free.unwrap_or(pair(0));
        let (color, dash) = (Color::Palette(color), Dash::Measured(algorithm % DASHES));
        curve.style = Style { color, dash, marker };
    }
}

/// Every view that a page offers of the cells of a figure: the panels of the manifest first, then
/// one panel, then a panel for each value of each setting that varies. `on_x_axis` are the
/// settings that the x axis shows.
pub fn views(manifest: &[String], on_x_axis: &[&str], cells: &[&CellResult<'_>]) -> Vec<View> {
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let indices: HashMap<&str, usize> =
        plain.iter().enumerate().map(|(i, cell)| (cell.id.as_str(), i)).collect();
    let varied = plain.iter().flat_map(|cell| &*cell.varied);
    let axes = manifest.iter().chain(varied).map(|name| short(name));
    let axes = axes.filter(|name| on_x_axis.first().is_none_or(|x| short(x) != *name));
    let several = |name: &&str| panels::distinct(cells, name).len() > 1;
    let axes = panels::unique(axes).into_iter().filter(several);
    let single = axes.map(|name| vec![name.to_owned()]);
    let mut all: Vec<View> = Vec::new();
    for panels in [manifest.to_vec(), Vec::new()].into_iter().chain(single) {
        let brief: Vec<String> = panels.iter().map(|name| short(name).to_owned()).collect();
        if all.iter().any(|view| view.panels == brief) {
            continue;
        }
        let known: Vec<&str> =
            panels.iter().map(String::as_str).chain(on_x_axis.iter().copied()).collect();
        let (curves, curve_of_cell) = curves(&plain, &known);
        let groups = panels::panels(&panels, cells).into_iter().map(|group| {
            let inside = group.cells.iter().filter_map(|c| indices.get(c.cell.id.as_str()));
            (group.title, inside.copied().collect())
        });
        all.push(View { panels: brief, groups: groups.collect(), curves, curve_of_cell });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::line_figure::LineFigure;
    use super::*;
    use driftbench_runner::manifest::Source;
    use driftbench_runner::plan::{Plan, Setting};
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

    /// The settings that the panels and the x axis of each figure of curves show, in the
    /// manifest's view, without panels, and with panels for any setting that varies.
    fn views_of(plan: &Plan) -> Vec<(Vec<String>, Vec<&Cell>)> {
        let mut all = Vec::new();
        for figure in LineFigure::all(&plan.manifest.figure) {
            let on_x_axis = figure.settings_on_x_axis().into_iter().map(str::to_owned);
            let on_x_axis: Vec<String> = on_x_axis.collect();
            let labels = &figure.common.labels;
            let cells: Vec<&Cell> =
                plan.cells.iter().filter(|cell| panels::has_label(labels, cell)).collect();
            let mut panels = vec![figure.common.panels.clone(), Vec::new()];
            let varied: HashSet<&str> =
                cells.iter().flat_map(|c| &*c.varied).map(|n| short(n)).collect();
            panels.extend(varied.into_iter().map(|name| vec![name.to_owned()]));
            all.extend(
                panels.into_iter().map(|p| ([p, on_x_axis.clone()].concat(), cells.clone())),
            );
        }
        all
    }

    /// The pairs of colour and marker of some curves.
    fn pairs(curves: &[Curve]) -> HashSet<(Color, usize)> {
        curves.iter().map(|c| (c.style.color, c.style.marker)).collect()
    }

    #[test]
    fn no_two_curves_of_a_published_figure_have_one_style_or_name() {
        let (mut figures, mut most) = (0, 0);
        for plan in plans() {
            for (known, cells) in views_of(&plan) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let (curves, curve_of_cell) = curves(&cells, &known);
                // A figure of more is downsampled before its curves are made.
                if curves.len() > super::super::downsample::MOST_CURVES {
                    continue;
                }
                let names: HashSet<String> = curves.iter().map(Curve::name).collect();
                assert_eq!(names.len(), curves.len(), "{}: {names:?}", plan.experiment);
                assert_eq!(pairs(&curves).len(), curves.len(), "{}: {names:?}", plan.experiment);
                // Curves stand in the order of their first cells.
                let first = |curve: usize| curve_of_cell.iter().position(|c| *c == curve);
                let firsts: Vec<usize> = (0..curves.len()).filter_map(first).collect();
                assert!(firsts.len() == curves.len() && firsts.is_sorted());
                for (cell, curve) in cells.iter().zip(&curve_of_cell) {
                    assert_eq!(cell.label, curves[*curve].algorithm);
                }
                (figures, most) = (figures + 1, most.max(curves.len()));
            }
        }
        assert!(figures > 100 && most > 16, "{figures} views, at most {most} curves");
    }

    /// As many curves as a figure may have, of one algorithm and of many.
    #[test]
    fn as_many_curves_as_a_figure_may_have_differ_in_style() {
        for variants in [1, 3, 8, 9, 25, 100] {
            let curve = |i: usize| {
                let (name, text) = ("local-steps".to_owned(), format!("H = {}", i % variants));
                let value = Setting::Number((i % variants) as f64);
                let settings = vec![CurveSetting { name, value, text }];
                let settings = if variants == 1 { Vec::new() } else { settings };
                let algorithm = format!("algorithm {}", i / variants);
                Curve { settings, ..Curve::new(&algorithm, Style::solid(Color::Neutral)) }
            };
            let mut all: Vec<Curve> = (0..100).map(curve).collect();
            assign_styles(&mut all);
            assert_eq!(pairs(&all).len(), 100, "{variants} variants");
        }
    }

    /// Settings with the same text are named by their values.
    #[test]
    fn curves_with_the_same_text_are_named_by_exact_values() {
        let curve = |exact| Curve {
            settings: vec![CurveSetting {
                name: "noise".into(),
                value: Setting::Text("markovian (lag 2)".into()),
                text: "markovian noise".into(),
            }],
            exact,
            ..Curve::new("FedLSA", Style::solid(Color::Neutral))
        };
        assert_eq!(curve(false).name(), "FedLSA, markovian noise");
        assert_eq!(curve(true).name(), "FedLSA, noise markovian (lag 2)");
    }
}
