//! Figures of lines: a curve for each cell of a quantity over a cost, or a final quantity over a
//! setting or another quantity.

use crate::cells::costs::STATED;
use crate::cells::panels::panels;
use crate::cells::runs::TraceNeeds;
use crate::cells::sample_unit::SampleUnit;
use crate::cells::symbols::quantity_symbol;
use crate::cells::{CellResult, rounding_floor, setting_text};
use crate::figures::curves::{curves, views};
use crate::figures::kind::{DrawnCells, DrawnFigure, DrawnFrom, TheoryKind};
use crate::figures::measured::{self, x_value};
use crate::figures::predicted_lines;
use crate::figures::sample::{
    FEW_CURVES, MOST_CURVES, MOST_PANELS, MOST_POINTS, ShownCells, by_rank, few, sentence, shown,
};
use crate::predictions::Theory;
use crate::scene::figure::{
    Band, Body, CurveValue, Exploration, Figure, Panel, Plot, Point, Scale, Series, View, XAxis,
};
use crate::scene::line::{Curve, Line, Reference};
use crate::stats::mean;
use exactfed_core::words::{enumerated, thousands};
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::manifest::{ComparedAt, Prediction, Quantity};
use exactfed_runner::plan::{Cell, selected, short};
use std::collections::BTreeMap;

/// A figure of lines, as a manifest asks for it by a table of any kind that draws lines.
pub struct LineFigure<'a> {
    /// The keys that all figures have.
    pub common: &'a FigureKeys,
    /// What the x axis shows.
    pub x: XAxis,
    /// What the y axis shows: one quantity, or several of one unit ([`Quantity::axis_unit`]), each of which has panels
    /// of its own. Several have no predictions.
    pub y: &'a [Quantity],
    /// Where a figure over a setting shows each cell: at this cost or target, or at the last round if there is none.
    pub at: Option<ComparedAt>,
    /// What the band shows.
    pub band: Band,
    /// The predictions that are drawn with the curves.
    pub theory: &'a [TheoryKind],
    /// Scale of the x axis.
    pub scale_x: Scale,
    /// The slope of a dotted reference line on logarithmic axes; `None` for no such line.
    pub slope: Option<f64>,
}

impl<'a> LineFigure<'a> {
    /// The names of settings that the names of curves need not have: first the settings that the x axis shows, its
    /// own one at their head; then those by which the manifest selects the figure's cells, if all `cells` that have
    /// them have the same value. [`views`] offers no panels by the first one.
    pub fn settings_outside_names(&self, cells: &[&Cell]) -> Vec<&str> {
        let mut settings: Vec<&str> = match &self.x {
            XAxis::Rounds(_) => Vec::new(),
            // γH changes with the step size as well.
            XAxis::Cells(x) if short(x) == "path-length" => vec![x, "step-size"],
            XAxis::Cells(x) => vec![x],
        };
        let selected_by = self.common.only.iter().flat_map(|only| only.0.keys());
        settings.extend(
            selected_by
                .filter(|key| {
                    let mut values = cells.iter().filter_map(|cell| cell.settings.get(key));
                    let first = values.next();
                    values.all(|value| Some(value) == first)
                })
                .map(String::as_str),
        );
        settings
    }

    /// The first of its quantities, which is the only one in a figure with predictions or over a setting.
    pub fn first(&self) -> Quantity {
        self.y[0]
    }

    /// The index of the panel that is drawn large: the first one with a cell that the manifest's key `large` selects.
    /// Without the key, and if there are few panels but more than two, the panel in which the curves end farthest
    /// apart, unless the panels are of several quantities. `groups` has the title and the cells (as indices among
    /// `cells`) of each of `panels`, or of those of the first quantity. `None` if all panels are equally large.
    fn large(
        &self,
        groups: &[(String, Vec<usize>)],
        cells: &[&CellResult<'_>],
        panels: &[Panel],
    ) -> Option<usize> {
        if let Some(wanted) = &self.common.large {
            return groups.iter().position(|(_, indices)| {
                indices.iter().any(|i: &usize| selected(cells[*i].cell, wanted))
            });
        }
        let few = self.y.len() == 1 && (3..=MOST_OTHERS + 1).contains(&panels.len());
        let spreads = panels.iter().map(spread_of_ends).enumerate().filter(|_| few);
        spreads.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(i, _)| i)
    }

    /// The title of the x axis: the symbol of a setting or of a quantity. A name that both have is the setting if a
    /// cell has it.
    fn title_of_x(&self, cells: &[&CellResult<'_>]) -> String {
        let name = match &self.x {
            XAxis::Rounds(quantity) => return quantity.formula().to_owned(),
            XAxis::Cells(name) => name,
        };
        let is_setting = cells.iter().any(|c| c.cell.settings.get(name).is_some());
        match Quantity::named(name).filter(|_| !is_setting) {
            Some(quantity) => quantity_symbol(quantity, cells),
            None => setting_text::symbol(name),
        }
    }

    /// The title of the y axis of quantities with these names: the name of one, and the unit of several, whose names
    /// the panels have.
    fn title_of_y(&self, names: &[String]) -> String {
        match self.first().axis_unit() {
            Some(unit) if names.len() > 1 => unit.title().to_owned(),
            _ => enumerated(names),
        }
    }

    /// The lines of the panel of the quantity `y` and the cells with these `indices`, whose curves are those of `view`.
    fn lines_of_panel(
        &self,
        y: Quantity,
        view: &View,
        indices: &[usize],
        cells: &[&CellResult<'_>],
        theory: &Theory<'_>,
    ) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        match &self.x {
            XAxis::Rounds(x) => {
                for index in indices {
                    let curve = &view.curves[view.curve_of_cell[*index]];
                    series.extend(self.over_rounds(*x, y, cells[*index], curve, theory));
                }
            }
            XAxis::Cells(x) => {
                let mut groups: BTreeMap<usize, Vec<&CellResult<'_>>> = BTreeMap::new();
                for i in indices {
                    groups.entry(view.curve_of_cell[*i]).or_default().push(cells[*i]);
                }
                for (curve, cells) in groups {
                    series.extend(self.over_cells(x, y, &cells, &view.curves[curve], theory));
                }
            }
        }
        let reference = self.slope.and_then(|slope| reference_line(&series, slope));
        series.extend(reference);
        series
    }

    /// The lines of a cell in a figure over the cost `x`, with a point per recorded round: its mean over replicates,
    /// up to the first divergence, and then each prediction for it that is drawn. A prediction of fewer than two
    /// points is left out. The axes are `x` and `y`.
    fn over_rounds(
        &self,
        x: Quantity,
        y: Quantity,
        cell: &CellResult<'_>,
        curve: &Curve,
        theory: &Theory<'_>,
    ) -> Vec<Series> {
        let points = measured::points(cell, &self.x, y, self.band);
        let count = points.len();
        let id = &cell.cell.id;
        let mut all = vec![Series {
            diverged: cell.runs.diverged,
            cells: vec![id.to_string()],
            rows: (0..count).collect(),
            ..Series::new(Line::Measured(curve.clone()), points)
        }];
        let columns = cell.runs.columns(x);
        let mean_x = |row: usize| {
            mean(&columns.iter().filter_map(|c| c.get(row).copied()).collect::<Vec<_>>())
        };
        // The rows of each prediction that is drawn, with their points.
        let mut predicted: Vec<(Prediction, Vec<(usize, Point)>)> = Vec::new();
        for prediction in predicted_lines::all_predictions(self.theory) {
            if prediction == Prediction::ExactBias {
                // A level of the squared exact bias, up to the last round that is drawn.
                let bias = cell.exact_bias.filter(|b| *b > 0.0 && y == Quantity::SqError);
                if let Some(bias) = bias.filter(|_| count > 1) {
                    // The second row, because a logarithmic axis does not show the first.
                    let level = [0, 1, count - 1].map(|row| (row, Point::bare(mean_x(row), bias)));
                    predicted.push((Prediction::ExactBias, level.to_vec()));
                }
                continue;
            }
            let Some(values) = theory.curve(id, y, prediction) else { continue };
            let points =
                values.iter().enumerate().map(|(row, y)| (row, Point::bare(mean_x(row), *y)));
            let drawn = points.filter(|(_, p)| p.x.is_finite() && p.y > 0.0);
            predicted.push((prediction, drawn.collect()));
        }
        for (prediction, drawn) in predicted {
            // One point makes no line.
            if drawn.len() > 1 {
                let (rows, points) = drawn.into_iter().unzip();
                let line = Line::Predicted(curve.clone(), prediction);
                all.push(Series { cells: vec![id.to_string()], rows, ..Series::new(line, points) });
            }
        }
        all
    }

    /// The lines of a curve in a figure over the setting or final quantity `x`, with a point per cell of the curve, of
    /// the last round: what was measured, and then each prediction that is drawn. A prediction of fewer than two points
    /// is left out. A cell with a run that diverged has no measured point, and may have predicted ones.
    fn over_cells(
        &self,
        x: &str,
        y: Quantity,
        cells: &[&CellResult<'_>],
        curve: &Curve,
        theory: &Theory<'_>,
    ) -> Vec<Series> {
        let measured = through(Line::Measured(curve.clone()), cells, |cell| match self.at {
            None => measured::points(cell, &self.x, y, self.band).pop(),
            Some(_) => {
                let sample = cell.runs.sample(y, self.at).ok()?;
                Some(measured::point(x_value(cell, x)?, &sample, y, self.band))
            }
        });
        let diverged = cells.iter().map(|c| c.runs.diverged).sum();
        let measured = Series { diverged, ..measured };
        let mut all = vec![measured];
        for prediction in predicted_lines::all_predictions(self.theory) {
            let predicted = through(Line::Predicted(curve.clone(), prediction), cells, |cell| {
                let x = x_value(cell, x)?;
                let y = theory.curve(&cell.cell.id, y, prediction)?.pop()?;
                (y > 0.0).then(|| Point::bare(x, y))
            });
            if predicted.points.len() > 1 {
                all.push(predicted);
            }
        }
        all
    }
}

impl<'a> DrawnFigure<'a> for LineFigure<'a> {
    /// It needs theory if it draws predictions, and exact moments round by round if it draws these of a quantity that
    /// is no average over rounds.
    fn cells(&self) -> DrawnCells<'a> {
        let has_moments = self.theory.contains(&TheoryKind::ExactMoments);
        DrawnCells {
            most_followed: matches!(self.x, XAxis::Rounds(_)).then_some(MOST_CURVES),
            predictions: self.theory,
            needs_theory: !self.theory.is_empty(),
            needs_moments: self.first().average().is_none() && has_moments,
            ..DrawnCells::new(self.common)
        }
    }

    /// All cells that it may show, or a sample of them if they have too many curves, panels or points.
    fn shown_cells(&self, all: &[CellResult<'_>]) -> ShownCells {
        match &self.x {
            XAxis::Rounds(_) => cells_over_costs(self, all),
            XAxis::Cells(x) => cells_over_setting(self, x, all),
        }
    }

    /// A figure over rounds needs its quantities along the traces, and all costs: a page offers each curve over any
    /// of them. Other figures need a cost or a target, or the last round alone, which is always read.
    fn add_needs(&self, needs: &mut TraceNeeds) {
        if let XAxis::Rounds(x) = self.x {
            needs.along.extend(Quantity::COSTS.into_iter().chain([x]));
            needs.along.extend(self.y);
        }
        needs.add_at(self.at, STATED.into_iter().chain(self.y.iter().copied()));
    }

    /// Draws the panels of the manifest's view for each quantity: of each curve the measured line and its predictions,
    /// and a reference line. A page gets all other views as well, with which its script draws the figure anew.
    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure {
        let theory = from.theory;
        let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
        let views = views(&self.common.panels, &self.settings_outside_names(&plain), cells);
        let by_settings = &views[0];
        let groups = by_settings.groups.clone();
        let mut lines_of_panels = Vec::new();
        for y in self.y {
            for (_, indices) in &groups {
                lines_of_panels.push(self.lines_of_panel(*y, by_settings, indices, cells, theory));
            }
        }
        let names: Vec<String> = self.y.iter().map(|y| quantity_symbol(*y, cells)).collect();
        let views = match self.y {
            [_] => views,
            _ => views.into_iter().map(|view| view.with_quantities(&names)).collect(),
        };
        let own = &views[0];
        let mut panels = Vec::new();
        for ((title, _), series) in own.groups.iter().zip(lines_of_panels) {
            panels.push(Panel { title: title.clone(), series });
        }
        let large = self.large(&groups, cells, &panels);
        let x = self.title_of_x(cells);
        let legend = predicted_lines::legend(&panels, &own.curves, self.theory);
        let scale_y = Scale::for_quantity(self.first());
        let zero_below = self.y.iter().map(|y| rounding_floor(*y)).fold(0.0, f64::max);
        let labels = CurveValue { zero_below, ..CurveValue::last(scale_y) };
        let title = format!("{} over {x}", enumerated(&names));
        let y = self.title_of_y(&names);
        let plot = Plot { panels, legend, x, y, scale_x: self.scale_x, scale_y, labels };
        let caption = self.caption(cells, &plot, theory);
        let is_over_instances = cells.iter().any(|cell| cell.is_over_instances());
        let exploration = Exploration {
            x: self.x.clone(),
            y: self.y.to_vec(),
            band: self.band,
            cells: cells.iter().map(|c| c.cell.id.to_string()).collect(),
            views,
            unit: if is_over_instances { SampleUnit::Instance } else { SampleUnit::Run },
            slopes: self.slope.into_iter().collect(),
            without_moments: predicted_lines::without_moments(self.theory, cells, theory),
        };
        // A row of panels for each quantity, so that those of one setting are below one another.
        let row = if self.y.len() > 1 && groups.len() > 1 { groups.len().min(4) } else { 4 };
        let figure = Figure::new(self.common, title, caption, row, Body::Plot(plot));
        // The script of a page draws other views from the values at the last round.
        let exploration = self.at.is_none().then_some(exploration);
        Figure { large, exploration, ..figure }
    }
}

/// The cells that a figure over a cost draws, each of which is a curve: all of them if they are at most
/// [`MOST_CURVES`]. If they are more, a sample in each panel that is spread evenly by the final mean, and of the
/// panels too if they are many.
fn cells_over_costs(figure: &LineFigure<'_>, all: &[CellResult<'_>]) -> ShownCells {
    let cells = shown(figure.common, all);
    let ranked_by = figure.first();
    if cells.len() <= MOST_CURVES {
        return ShownCells::new(all, cells);
    }
    let (groups, panels_note) = few(panels(&figure.common.panels, &cells), MOST_PANELS, "panels");
    let each = (FEW_CURVES / groups.len().max(1)).max(2);
    let groups = groups
        .into_iter()
        .map(|group| by_rank(group.cells, each, |cell| ranked_by.loss(cell.final_mean(ranked_by))));
    let shown_cells = ShownCells::new(all, groups.flatten());
    let mut notes = vec![format!(
        "{} of {} curves are drawn, spread evenly from the {} to the {} final mean of {} in each panel (cells whose runs diverged rank last)",
        shown_cells.cells.len(),
        thousands(cells.len()),
        ranked_by.best_mean(),
        ranked_by.worst_mean(),
        ranked_by.formula()
    )];
    notes.extend(panels_note);
    ShownCells { note: sentence(&notes), ..shown_cells }
}

/// The cells that a figure over the setting or quantity `x` draws, each of which is a point: all of them if there are
/// few panels, curves and points. Of too many panels, curves by their best value, or points of a curve from left to
/// right, it draws a sample that is spread evenly.
fn cells_over_setting(figure: &LineFigure<'_>, x: &str, all: &[CellResult<'_>]) -> ShownCells {
    let mut cells = shown(figure.common, all);
    let count = cells.len();
    let mut notes = Vec::new();
    let groups = panels(&figure.common.panels, &cells);
    if groups.len() > MOST_PANELS {
        let (groups, note) = few(groups, MOST_PANELS, "panels");
        notes.extend(note);
        cells = ShownCells::new(all, groups.into_iter().flat_map(|group| group.cells)).among(all);
    }
    let known: Vec<&str> = figure.common.panels.iter().map(String::as_str).collect();
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let known = [known, figure.settings_outside_names(&plain)].concat();
    let (names, curve_of_cell) = curves(&plain, &known, &[]);
    let mut curves: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); names.len()];
    cells.iter().zip(curve_of_cell).for_each(|(cell, curve)| curves[curve].push(cell));
    if curves.len() > MOST_CURVES {
        let y = figure.first();
        curves = by_rank(curves, FEW_CURVES, |curve| {
            let losses = curve.iter().map(|cell| y.loss(cell.final_mean(y)));
            losses.fold(f64::INFINITY, f64::min)
        });
        let best = y.best_mean();
        let worst = y.worst_mean();
        let own = if y.more_is_better() { "largest" } else { "least" };
        notes.push(format!(
            "{} of {} curves are drawn, spread evenly from the {best} to the {worst} of their {own} values",
            curves.len(),
            thousands(names.len())
        ));
    }
    if curves.iter().map(Vec::len).sum::<usize>() > MOST_POINTS {
        let each = (MOST_POINTS / curves.len().max(1)).max(2);
        curves = curves
            .into_iter()
            .map(|curve| by_rank(curve, each, |cell| x_value(cell, x).unwrap_or(f64::INFINITY)))
            .collect();
        notes.push(format!(
            "of each curve at most {each} points are drawn, spread evenly from left to right"
        ));
    }
    if notes.is_empty() {
        return ShownCells::new(all, cells);
    }
    let shown_cells = ShownCells::new(all, curves.into_iter().flatten());
    notes.push(format!("the points are {} of {} cells", shown_cells.cells.len(), thousands(count)));
    ShownCells { note: sentence(&notes), ..shown_cells }
}

/// The most panels beside or below one that is large without being asked for.
const MOST_OTHERS: usize = 4;

/// A reference slope is not drawn if it is nowhere farther from a curve, upwards, than the first number of decades
/// plus the second number times the decades that the slope spans.
const COINCIDE: (f64, f64) = (0.02, 0.01);

/// How many times higher the highest curve of a panel ends than the lowest; 0 of a panel without curves.
fn spread_of_ends(panel: &Panel) -> f64 {
    let measured = panel.series.iter().filter(|s| s.line.is_measured());
    let ends = measured.filter_map(|s| s.points.last()).map(|p| p.y).filter(|y| *y > 0.0);
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(l, h), y| (l.min(y), h.max(y)));
    if low <= high { high / low } else { 0.0 }
}

/// A line through the points that `point` gives for some cells, from left to right. A cell without a point (`None`)
/// is left out.
pub fn through(
    line: Line,
    cells: &[&CellResult<'_>],
    point: impl Fn(&CellResult<'_>) -> Option<Point>,
) -> Series {
    let mut points: Vec<(String, Point)> =
        cells.iter().filter_map(|cell| Some((cell.cell.id.to_string(), point(cell)?))).collect();
    points.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    let (cells, points) = points.into_iter().unzip();
    Series { cells, ..Series::new(line, points) }
}

/// A reference line of this slope on logarithmic axes, by which one sees where curves leave the power law. It begins
/// at the first point of the first measured curve with at least two points that have a place on such axes, and is as
/// wide as all lines of the panel. `None` if there is no such curve, if all points are at one place across, or if
/// some curve lies on the line.
fn reference_line(series: &[Series], slope: f64) -> Option<Series> {
    let measured = series.iter().filter(|s| s.line.is_measured()).map(placed_points);
    let curves: Vec<Vec<Point>> = measured.filter(|points| points.len() > 1).collect();
    let from = *curves.first()?.first()?;
    let all = series.iter().flat_map(placed_points);
    let ends = all.fold((from.x, from.x), |(low, high), p| (low.min(p.x), high.max(p.x)));
    let at = |x: f64| Point::bare(x, from.y * libm::pow(x / from.x, slope));
    let near = COINCIDE.0 + COINCIDE.1 * (slope * libm::log10(ends.1 / ends.0)).abs();
    let line = Line::Reference(Reference::Slope(slope));
    let is_drawn = ends.0 < ends.1
        && !curves
            .iter()
            .any(|points| points.iter().all(|p| libm::log10(p.y / at(p.x).y).abs() <= near));
    is_drawn.then(|| Series::new(line, vec![at(ends.0), at(ends.1)]))
}

/// The points of a series that have a place on logarithmic axes.
fn placed_points(series: &Series) -> Vec<Point> {
    let all = series.points.iter().copied();
    all.filter(|p| [p.x, p.y].iter().all(|v| v.is_finite() && *v > 0.0)).collect()
}
