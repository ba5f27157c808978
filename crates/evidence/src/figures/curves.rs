//! Which curve of a figure each cell belongs to, and the curve's name and style.
//!
//! *Invariant*: both are assigned here, once for every set of panels that a page offers. The
//! drawing and the page's script read the assignment and assign nothing themselves.
//!
//! *Invariant*: no two curves of a figure have the same colour and marker, because the
//! predictions beside them have both and must be distinguishable as well. An algorithm has the
//! colour of its family in every figure.

use crate::cells::setting_text::{distinguishing_settings, pretty};
use crate::cells::{CellResult, panels};
use crate::scene::family::family_of;
use crate::scene::figure::View;
use crate::scene::line::{Color, Curve, CurveSetting, DASHES, Dash, MARKERS, SHADES, Style, shade};
use exactfed_runner::plan::{Cell, Setting, short};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// What cells of one curve have in common: the label of the algorithm, and the paths and exact values of the settings
/// that neither panels nor the x axis show.
type CurveKey<'a> = (&'a str, Vec<(&'a String, String)>);

/// Divides cells into curves: returns the curves in the order of their first cells, with names and styles, and for
/// each cell the index of its curve. `known` are the names of the settings that do not distinguish curves, since
/// panels, the x axis or the selection of the cells show them; `panels` has the indices of the cells of each panel, so
/// that no shade shows a setting that changes with the panel.
pub fn curves(cells: &[&Cell], known: &[&str], panels: &[Vec<usize>]) -> (Vec<Curve>, Vec<usize>) {
    let mut indices: HashMap<CurveKey<'_>, usize> = HashMap::new();
    let mut curves: Vec<Curve> = Vec::new();
    let mut curve_of_cell: Vec<usize> = Vec::new();
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
            let family = family_of(cell);
            let style = Style::solid(Color::of_family(family));
            curves.push(Curve { settings: settings.collect(), ..Curve::new(&cell.label, style) });
        }
        curve_of_cell.push(index);
    }
    let mut curves_of_name: HashMap<String, usize> = HashMap::new();
    for curve in &curves {
        *curves_of_name.entry(curve.name()).or_default() += 1;
    }
    for curve in &mut curves {
        curve.has_exact_values = curves_of_name[&curve.name()] > 1;
    }
    let fixed = fixed_in_panels(&curves, &curve_of_cell, panels);
    assign_styles(&mut curves, &fixed);
    (curves, curve_of_cell)
}

/// The names of the settings of which no panel has two curves of one algorithm with different values: they change
/// with the panel, and a shade for them would say nothing there. There are no such names for fewer than two panels.
fn fixed_in_panels(
    curves: &[Curve],
    curve_of_cell: &[usize],
    panels: &[Vec<usize>],
) -> HashSet<String> {
    if panels.len() < 2 {
        return HashSet::new();
    }
    let mut fixed: HashSet<String> =
        curves.iter().flat_map(|curve| setting_names(&curve.settings)).collect();
    for panel in panels {
        let mut values: HashMap<(&str, &str), &Setting> = HashMap::new();
        for curve in panel.iter().map(|cell| &curves[curve_of_cell[*cell]]) {
            for CurveSetting { name, value, .. } in &curve.settings {
                let known = values.entry((&curve.algorithm, name)).or_insert(value);
                if *known != value {
                    fixed.remove(name);
                }
            }
        }
    }
    fixed
}

/// Gives every curve its style. The colour is that of the algorithm's family. Its shade shows the
/// settings except those that are `fixed` in every panel, the strongest for the largest value, or
/// the algorithm where a family has several without settings; the dash pattern shows which
/// algorithm of its family it is. Where colour and marker are taken, the next free marker follows.
pub fn assign_styles(curves: &mut [Curve], fixed: &HashSet<String>) {
    let mut algorithms = Vec::new();
    let mut algorithms_by_family = HashMap::<usize, Vec<String>>::new();
    for curve in &*curves {
        let of_family = algorithms_by_family.entry(curve.family).or_default();
        if !of_family.contains(&curve.algorithm) {
            of_family.push(curve.algorithm.clone());
        }
        if !algorithms.contains(&curve.algorithm) {
            algorithms.push(curve.algorithm.clone());
        }
    }
    let variants = shown_values(curves, fixed);
    let mut taken = HashSet::new();
    for curve in curves {
        let kin = &algorithms_by_family[&curve.family];
        let among_kin = place_of(curve, kin);
        let algorithm = place_of(curve, &algorithms);
        let shaded = shaded_settings(curve, fixed);
        // The rank of the curve's values among all values of these settings, and their number.
        let (variant, count) = match variants.get(&setting_names(&shaded)) {
            Some(known) => (known.iter().position(|v| *v == shaded), known.len()),
            None => (None, 0),
        };
        let (rank, all) = match variant {
            Some(variant) if count > 1 => (variant, count),
            _ => (among_kin, kin.len()),
        };
        let own = shade(rank, all);
        // The marker that is tried first: the next one for each algorithm, and the third next for each value.
        let first = algorithm + 3 * variant.unwrap_or(0);
        // Where these are taken: the next marker, then another shade, and of more than 96 curves of a family another
        // dash.
        let mut looks: Vec<(Color, usize, usize)> = Vec::new();
        for n in 0..DASHES * MARKERS * (1 + SHADES) {
            let marker = (first + n) % MARKERS;
            let tone = (own + n / MARKERS) % (1 + SHADES);
            let more_dashes = n / (MARKERS * (1 + SHADES));
            looks.push((Color::tone(curve.family, tone), marker, more_dashes));
        }
        let free = looks.iter().find(|look| taken.insert(**look));
        let (color, marker, more_dashes) = *free.unwrap_or(&looks[0]);
        let dash = Dash::Measured((among_kin + more_dashes) % DASHES);
        curve.style = Style { color, dash, marker };
    }
}

/// The index of a curve's algorithm in a list of algorithms.
fn place_of(curve: &Curve, algorithms: &[String]) -> usize {
    algorithms.iter().position(|algorithm| *algorithm == curve.algorithm).unwrap_or(0)
}

/// The names of some settings.
fn setting_names(settings: &[CurveSetting]) -> Vec<String> {
    settings.iter().map(|setting| setting.name.clone()).collect()
}

/// The settings of a curve that its shade shows: all but those that are `fixed` in every panel.
fn shaded_settings(curve: &Curve, fixed: &HashSet<String>) -> Vec<CurveSetting> {
    curve.settings.iter().filter(|s| !fixed.contains(&s.name)).cloned().collect()
}

/// The different values that shades show: for each list of names of shaded settings, the combinations of their values
/// that curves of any algorithm have, from the largest to the smallest; texts keep their order. The rank of a
/// combination decides on its shade, so that it has one shade whatever the algorithm.
fn shown_values(
    curves: &[Curve],
    fixed: &HashSet<String>,
) -> HashMap<Vec<String>, Vec<Vec<CurveSetting>>> {
    let mut all: HashMap<Vec<String>, Vec<Vec<CurveSetting>>> = HashMap::new();
    for curve in curves {
        let settings = shaded_settings(curve, fixed);
        if settings.is_empty() {
            continue;
        }
        let known = all.entry(setting_names(&settings)).or_default();
        if !known.contains(&settings) {
            known.push(settings);
        }
    }
    for combinations in all.values_mut() {
        combinations.sort_by(|a: &Vec<CurveSetting>, b: &Vec<CurveSetting>| {
            let each = a.iter().zip(b).map(|(a, b)| larger_first(a, b));
            each.fold(Ordering::Equal, Ordering::then)
        });
    }
    all
}

/// Orders the values of a setting: the larger number first. Texts are equal, so that a stable sort keeps their order.
fn larger_first(a: &CurveSetting, b: &CurveSetting) -> Ordering {
    match (&a.value, &b.value) {
        (Setting::Number(a), Setting::Number(b)) => b.total_cmp(a),
        _ => Ordering::Equal,
    }
}

/// Every view that a page offers of the cells of a figure, each with its panels and curves: first with the panels
/// that the manifest asks for, by these names of settings; then with one panel; then for each setting that varies
/// with a panel for each of its values. `unnamed` are the settings that the names of curves leave out. The first of
/// them is the setting of the x axis, if a setting is on it, by which none of the last views has panels.
pub fn views(manifest: &[String], unnamed: &[&str], cells: &[&CellResult<'_>]) -> Vec<View> {
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let indices: HashMap<&str, usize> =
        plain.iter().enumerate().map(|(i, cell)| (cell.id.as_str(), i)).collect();
    let varied = panels::varied(plain.iter().copied());
    let axes = manifest
        .iter()
        .map(String::as_str)
        .chain(varied)
        .map(short)
        .filter(|name| unnamed.first().is_none_or(|x| short(x) != *name));
    let axes =
        panels::unique(axes).into_iter().filter(|name| panels::distinct(cells, name).len() > 1);
    let single = axes.map(|name| vec![name.to_owned()]);
    let mut all: Vec<View> = Vec::new();
    for panels in [manifest.to_vec(), Vec::new()].into_iter().chain(single) {
        let brief: Vec<String> = panels.iter().map(|name| short(name).to_owned()).collect();
        if all.iter().any(|view| view.panels == brief) {
            continue;
        }
        let known: Vec<&str> =
            panels.iter().map(String::as_str).chain(unnamed.iter().copied()).collect();
        let groups: Vec<(String, Vec<usize>)> = panels::panels(&panels, cells)
            .into_iter()
            .map(|group| {
                let inside = group.cells.iter().filter_map(|c| indices.get(c.cell.id.as_str()));
                (group.title, inside.copied().collect())
            })
            .collect();
        let places: Vec<Vec<usize>> = groups.iter().map(|(_, cells)| cells.clone()).collect();
        let (curves, curve_of_cell) = curves(&plain, &known, &places);
        all.push(View { panels: brief, groups, curves, curve_of_cell });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::convergence::over_costs;
    use crate::figures::scaling::over_setting;
    use crate::scene::family::FAMILIES;
    use crate::simulated::published_manifests;
    use exactfed_runner::manifest::Source;
    use exactfed_runner::plan::{Plan, shows};
    use std::path::PathBuf;

    /// The plans of all published experiments and of those for tests.
    fn plans(root: PathBuf) -> Vec<Plan> {
        let plan = |file: PathBuf| {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).unwrap();
            let source = Source { name: name.clone(), text, ..Source::default() };
            crate::plan(name, source).unwrap_or_else(|rejected| panic!("{rejected}"))
        };
        let mut open = vec![root];
        let mut plans = Vec::new();
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|end| end == "toml") {
                    plans.push(plan(path));
                }
            }
        }
        plans
    }

    /// The settings that the panels and the x axis of each figure of curves show, in the
    /// manifest's view, without panels, and with panels for any setting that varies.
    fn views_of(plan: &Plan) -> Vec<(Vec<String>, Vec<&Cell>)> {
        let mut all = Vec::new();
        let lines = plan.figure_tables.iter().filter_map(|table| match table.kind {
            "convergence" => Some(over_costs(table.keys())),
            "scaling" => Some(over_setting(table.keys())),
            _ => None,
        });
        for figure in lines {
            let shown = |cell: &&Cell| shows(figure.common, cell);
            let cells: Vec<&Cell> = plan.cells.iter().filter(shown).collect();
            let unnamed = figure.settings_outside_names(&cells).into_iter();
            let on_x_axis: Vec<String> = unnamed.map(str::to_owned).collect();
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
        let Some(root) = published_manifests() else { return };
        let mut figures = 0;
        let mut most = 0;
        for plan in plans(root) {
            for (known, cells) in views_of(&plan) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let (curves, curve_of_cell) = curves(&cells, &known, &[]);
                // A figure of more is downsampled before its curves are made.
                if curves.len() > crate::figures::sample::MOST_CURVES {
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
                    // Every registered algorithm has a family of its own.
                    assert!(curves[*curve].family < FAMILIES - 1, "{}", cell.label);
                    assert_eq!(curves[*curve].style.color.family(), Some(curves[*curve].family));
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
                let name = "local-steps".to_owned();
                let text = format!("H = {}", i % variants);
                let value = Setting::Number((i % variants) as f64);
                let settings = vec![CurveSetting { name, value, text }];
                let settings = if variants == 1 { Vec::new() } else { settings };
                let algorithm = format!("algorithm {}", i / variants);
                let style = Style::solid(Color::of_family(i / variants));
                Curve { settings, ..Curve::new(&algorithm, style) }
            };
            let mut all: Vec<Curve> = (0..100).map(curve).collect();
            assign_styles(&mut all, &HashSet::new());
            let looks: HashSet<_> = all.iter().map(|c| c.style).collect();
            assert_eq!(looks.len(), 100, "{variants} variants");
            // Up to 96 curves of a family have colours and markers of their own.
            assert!(pairs(&all).len() >= 96, "{variants} variants");
        }
    }

    /// H goes with the panel and γ does not: γ is what shades show.
    #[test]
    fn a_setting_that_changes_with_the_panel_takes_no_shade() {
        let curve = |(h, step): (f64, f64)| {
            let setting = |name: &str, value| CurveSetting {
                name: name.into(),
                value: Setting::Number(value),
                text: format!("{name} = {value}"),
            };
            let settings = vec![setting("local-steps", h), setting("step-size", step)];
            Curve { settings, ..Curve::new("Scaffold", Style::solid(Color::of_family(2))) }
        };
        let shades = |panels: &[Vec<usize>]| {
            let mut all: Vec<Curve> =
                [(1.0, 0.1), (1.0, 0.2), (5.0, 0.1), (5.0, 0.2)].into_iter().map(curve).collect();
            let fixed = fixed_in_panels(&all, &[0, 1, 2, 3], panels);
            assign_styles(&mut all, &fixed);
            assert_eq!(pairs(&all).len(), 4);
            all.iter().map(|c| c.style.color).collect::<Vec<_>>()
        };
        let apart = shades(&[vec![0, 1], vec![2, 3]]);
        assert!(apart[..2] == apart[2..] && apart[0] != apart[1], "{apart:?}");
        let one = shades(&[vec![0, 1, 2, 3]]);
        assert_eq!(one.iter().collect::<HashSet<_>>().len(), 4, "{one:?}");
    }

    /// Settings with the same text are named by their values.
    #[test]
    fn curves_with_the_same_text_are_named_by_exact_values() {
        let curve = |has_exact_values| Curve {
            settings: vec![CurveSetting {
                name: "noise".into(),
                value: Setting::Text("markovian (lag 2)".into()),
                text: "markovian noise".into(),
            }],
            has_exact_values,
            ..Curve::new("FedLSA", Style::solid(Color::Neutral))
        };
        assert_eq!(curve(false).name(), "FedLSA, markovian noise");
        assert_eq!(curve(true).name(), "FedLSA, noise markovian (lag 2)");
    }
}
