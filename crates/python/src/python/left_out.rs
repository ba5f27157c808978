//! What a figure of curves leaves out, in words: a drawing by matplotlib has no caption that says
//! so, and readers would take what is drawn for all.

use exactfed::chart;
use exactfed::evidence::{
    Body, CellResult, Experiment, Exploration, Figure, Plot, Scale, Series, XAxis, x_value,
};
use exactfed::plan::shows;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most names of curves in a list.
const MOST_NAMED: usize = 6;

/// Why no point of a cell is drawn. The sentences on what is left out come in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The x axis is a setting that the cell's algorithm does not have.
    NoSetting,
    /// The x axis is a cost that the cell's algorithm never pays.
    StaysAt0,
    /// Some of its runs diverged.
    Diverged,
    /// The x axis is logarithmic and the cell's value is not above 0.
    NotPositive,
    /// Its values are not finite, were not recorded, or lie outside of the axes.
    NoValue,
}

impl Reason {
    /// Why no point of a cell is drawn, which the caller has found: the first reason that applies.
    fn new(cell: &CellResult<'_>, shown: &Exploration, plot: &Plot) -> Self {
        let mut series = plot.series().filter(|series| series.cells == [cell.cell.id.as_str()]);
        if matches!(shown.x, XAxis::Rounds(_)) && series.any(has_no_width) {
            return Self::StaysAt0;
        }
        let x = match &shown.x {
            XAxis::Cells(name) if !has_setting(cell, name) => return Self::NoSetting,
            XAxis::Cells(name) => x_value(cell, name),
            XAxis::Rounds(_) => None,
        };
        match x {
            _ if cell.runs.diverged > 0 => Self::Diverged,
            Some(x) if x <= 0.0 && plot.scale_x == Scale::Log => Self::NotPositive,
            _ => Self::NoValue,
        }
    }

    /// The end of a sentence that says how many curves or points are left out.
    fn in_words(self, shown: &Exploration) -> String {
        let x = match &shown.x {
            XAxis::Cells(name) => name,
            XAxis::Rounds(quantity) => quantity.name(),
        };
        match self {
            Self::NoSetting => format!("without the setting `{x}`"),
            Self::StaysAt0 => format!("where `{x}` stays 0"),
            Self::Diverged => "with runs that diverged".to_owned(),
            Self::NotPositive => format!("where `{x}` is not above 0 on a logarithmic axis"),
            Self::NoValue => {
                let names: Vec<&str> = shown.y.iter().map(|y| y.name()).collect();
                format!("without a value of `{}` inside the axes", names.join("` or `"))
            }
        }
    }
}

/// Whether a cell has a value on an x axis of this name: a setting that it has, or a quantity, which all cells have.
fn has_setting(cell: &CellResult<'_>, name: &str) -> bool {
    cell.cell.settings.get(name).is_some() || exactfed::manifest::Quantity::named(name).is_some()
}

/// Whether a curve of a figure over rounds or costs would be a vertical line at 0, since its algorithm has no such
/// cost; such a curve is not drawn.
pub fn stays_at_0(figure: &Figure, series: &Series) -> bool {
    let over_rounds = |shown: &Exploration| matches!(shown.x, XAxis::Rounds(_));
    figure.exploration.as_ref().is_some_and(over_rounds) && has_no_width(series)
}

/// Whether all points of a curve, two or more, have x = 0.
fn has_no_width(series: &Series) -> bool {
    series.points.len() > 1 && series.points.iter().all(|point| point.x == 0.0)
}

/// Sentences on what a figure leaves out of the cells that its manifest asks for: whole curves, single points, and
/// cells beyond a sample. Empty if it draws them all, or is no figure of curves.
pub fn left_out(figure: &Figure, experiment: &Experiment<'_>) -> Vec<String> {
    let (Body::Plot(plot), Some(shown)) = (&figure.body, &figure.exploration) else {
        return Vec::new();
    };
    // The first view has the panels and curves of the manifest, which are those that are drawn.
    let view = &shown.views[0];
    let drawn = drawn_cells(figure, plot);
    let cells: HashMap<&str, &CellResult<'_>> =
        experiment.cells.iter().map(|cell| (cell.cell.id.as_str(), cell)).collect();
    // The ids of the cells of each curve. A view has the curves of all cells once for each quantity, of which the first
    // suffices.
    let mut of_curve: Vec<Vec<&str>> = vec![Vec::new(); view.curves.len()];
    shown.cells.iter().zip(&view.curve_of_cell).for_each(|(id, i)| of_curve[*i].push(id));
    // The names of the curves without any point, and the numbers of cells without one in other curves.
    let mut curves: BTreeMap<Reason, Vec<String>> = BTreeMap::new();
    let mut points: BTreeMap<Reason, usize> = BTreeMap::new();
    for (curve, ids) in view.curves.iter().zip(&of_curve) {
        let hidden = ids.iter().filter(|id| !drawn.contains(**id)).filter_map(|id| cells.get(id));
        let reasons: Vec<Reason> = hidden.map(|cell| Reason::new(cell, shown, plot)).collect();
        match reasons.first() {
            Some(reason) if reasons.len() == ids.len() => {
                curves.entry(*reason).or_default().push(curve.name());
            }
            _ => reasons.iter().for_each(|reason| *points.entry(*reason).or_default() += 1),
        }
    }
    let of_curves = curves.iter().map(|(reason, names)| {
        let some = names.len();
        let all = view.curves.len();
        format!("{some} of {all} curves {} ({})", reason.in_words(shown), listed(names))
    });
    let of_points = points.iter().map(|(reason, count)| {
        let all = shown.cells.len();
        format!("{count} of {all} points, of curves that are drawn, {}", reason.in_words(shown))
    });
    let tables = &experiment.plan.figure_tables;
    let table = tables.iter().map(|table| table.common()).find(|table| table.id() == figure.id);
    let is_asked_for = |cell: &&CellResult<'_>| table.is_some_and(|own| shows(own, cell.cell));
    let all = experiment.cells.iter().filter(is_asked_for).count();
    let beyond = all.saturating_sub(shown.cells.len());
    let sampled = (beyond > 0)
        .then(|| format!("{beyond} of {all} cells, since a figure of so many shows a sample"));
    // A sentence on the cells for which exact moments are asked for and not known.
    let without = shown.without_moments.clone();
    sampled.into_iter().chain(of_curves).chain(of_points).chain(without).collect()
}

/// Whether the x axis of a figure over a setting is logarithmic although cells have values of 0 or less, which have no
/// place on it: a figure that a user defines in place of the manifest's figures then gets a linear axis.
pub fn needs_linear_axis(figure: &Figure, experiment: &Experiment<'_>) -> bool {
    let (Body::Plot(plot), Some(shown)) = (&figure.body, &figure.exploration) else {
        return false;
    };
    let XAxis::Cells(name) = &shown.x else { return false };
    let ids: HashSet<&str> = shown.cells.iter().map(String::as_str).collect();
    let cells = experiment.cells.iter().filter(|cell| ids.contains(cell.cell.id.as_str()));
    plot.scale_x == Scale::Log && cells.filter_map(|cell| x_value(cell, name)).any(|x| x <= 0.0)
}

/// The ids of the cells with at least one measured point inside the axes of a panel; predictions do not count.
fn drawn_cells<'a>(figure: &Figure, plot: &'a Plot) -> HashSet<&'a str> {
    let frames = chart::frames(plot);
    let mut drawn = HashSet::new();
    for (panel, frame) in plot.panels.iter().zip(&frames) {
        let is_inside = |[low, high]: [f64; 2], scale: Scale, value: f64| {
            let at = if scale == Scale::Log { libm::log10(value) } else { value };
            let room = 1e-9 * (high - low).abs();
            at >= low - room && at <= high + room
        };
        let is_drawn = |one: &&Series| one.line.is_measured() && !stays_at_0(figure, one);
        for series in panel.series.iter().filter(is_drawn) {
            // A curve along rounds has one cell for all points; one over a setting has a cell for each.
            let ids = (0..series.points.len()).map(|i| &series.cells[i % series.cells.len()]);
            let inside = series.points.iter().zip(ids).filter(|(point, _)| {
                is_inside(frame.x, plot.scale_x, point.x)
                    && is_inside(frame.y, plot.scale_y, point.y)
            });
            drawn.extend(inside.map(|(_, id)| id.as_str()));
        }
    }
    drawn
}

/// The first [`MOST_NAMED`] names of a list in words, and how many follow.
fn listed(names: &[String]) -> String {
    let mut text = names[..names.len().min(MOST_NAMED)].join("; ");
    if names.len() > MOST_NAMED {
        text.push_str(&format!("; and {} more", names.len() - MOST_NAMED));
    }
    text
}
