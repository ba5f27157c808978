//! Figures of lines: a curve for each cell of a quantity over a cost, or a final quantity over a
//! setting or another quantity.

use crate::cells::costs::paid_costs;
use crate::cells::panels::panels;
use crate::cells::runs::TraceNeeds;
use crate::cells::symbols::quantity_symbol;
use crate::cells::{CellResult, rounding_floor, setting_text};
use crate::figures::curves::{curves, views};
use crate::figures::kind::{DrawnCells, DrawnFigure, DrawnFrom, TheoryKind};
use crate::figures::measured::{self, band_name, x_value};
use crate::figures::predicted_lines;
use crate::figures::sample::{
    FEW_CURVES, MOST_CURVES, MOST_PANELS, MOST_POINTS, ShownCells, by_rank, few, sentence, shown,
};
use crate::predictions::Theory;
use crate::ranking::grid_points;
use crate::scene::figure::{
    Band, Body, CurveValue, Exploration, Figure, NO_RESULTS, Panel, Plot, Point, SampleUnit, Scale,
    Series, XAxis,
};
use crate::scene::line::{Curve, Line, Reference};
use crate::stats::mean;
use exactfed_core::words::thousands;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::manifest::{Prediction, Quantity};
use exactfed_runner::plan::{Cell, selected, short};
use std::collections::BTreeMap;

/// A figure of lines, as a manifest asks for it.
pub struct LineFigure<'a> {
    /// The keys that all figures have.
    pub common: &'a FigureKeys,
    /// What the x axis shows.
    pub x: XAxis,
    /// What the y axis shows.
    pub y: Quantity,
    /// What the band shows.
    pub band: Band,
    /// The predictions that are drawn with the curves.
    pub theory: &'a [TheoryKind],
    /// Scale of the x axis.
    pub scale_x: Scale,
    /// Slope of a dotted line.
    pub slope: Option<f64>,
}

impl<'a> LineFigure<'a> {
    /// The settings that the x axis shows, so that names of curves need not, itself first; and
    /// those by which the figure's cells are selected and that have one value in all of them.
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

    /// The panel that is drawn large: that of the manifest; of a few panels that in which the
    /// algorithms end farthest apart.
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
        let few = (3..=MOST_OTHERS + 1).contains(&panels.len());
        let spreads = panels.iter().map(spread).enumerate().filter(|_| few);
        spreads.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(i, _)| i)
    }

    /// The title of the x axis: the symbol of a setting or of a quantity.
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

    /// A cell round by round: its mean over replicates, up to the first divergence, and the
    /// predictions for it.
    fn over_rounds(
        &self,
        x: Quantity,
        cell: &CellResult<'_>,
        curve: &Curve,
        theory: &Theory<'_>,
    ) -> Vec<Series> {
        let points = measured::points(cell, &self.x, self.y, self.band);
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
        for kind in self.theory {
            if *kind == TheoryKind::ExactBias {
                let bias = cell.exact_bias.filter(|b| *b > 0.0 && self.y == Quantity::SqError);
                if let Some(bias) = bias.filter(|_| count > 1) {
                    // The second row, because a logarithmic axis does not show the first.
                    let level = [0, 1, count - 1].map(|row| (row, Point::bare(mean_x(row), bias)));
                    predicted.push((Prediction::ExactBias, level.to_vec()));
                }
                continue;
            }
            for prediction in predicted_lines::predictions(*kind) {
                let Some(values) = theory.curve(id, self.y, prediction) else { continue };
                let points =
                    values.iter().enumerate().map(|(row, y)| (row, Point::bare(mean_x(row), *y)));
                let drawn = points.filter(|(_, p)| p.x.is_finite() && p.y > 0.0);
                predicted.push((prediction, drawn.collect()));
            }
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

    /// The cells of a curve, a point each: what was measured, and the predictions for them.
    fn over_cells(
        &self,
        x: &str,
        cells: &[&CellResult<'_>],
        curve: &Curve,
        theory: &Theory<'_>,
    ) -> Vec<Series> {
        let measured = through(Line::Measured(curve.clone()), cells, |cell| {
            measured::points(cell, &self.x, self.y, self.band).pop()
        });
        let diverged = cells.iter().map(|c| c.runs.diverged).sum();
        let measured = Series { diverged, ..measured };
        let mut all = vec![measured];
        for prediction in self.theory.iter().flat_map(|kind| predicted_lines::predictions(*kind)) {
            let predicted = through(Line::Predicted(curve.clone(), prediction), cells, |cell| {
                let x = x_value(cell, x)?;
                let y = theory.curve(&cell.cell.id, self.y, prediction)?.pop()?;
                (y > 0.0).then(|| Point::bare(x, y))
            });
            if predicted.points.len() > 1 {
                all.push(predicted);
            }
        }
        all
    }

    fn caption(&self, cells: &[&CellResult<'_>], plot: &Plot, theory: &Theory<'_>) -> String {
        if plot.series().all(|s| s.points.is_empty()) {
            return nothing(cells);
        }
        let y = &plot.y;
        let runs = crate::cells::sample_in_words(cells);
        let band = band_name(self.band);
        let over_rounds = matches!(self.x, XAxis::Rounds(_));
        let mut caption = match self.y.average() {
            _ if over_rounds => format!("Mean of {y} over n = {runs}; {band}."),
            Some(_) => {
                format!(
                    "{y}, from averages over the rounds after the burn-in, of n = {runs}; {band}."
                )
            }
            None => format!("Mean of {y} at the last round over n = {runs}; {band}."),
        };
        if !over_rounds && self.y.average().is_none() {
            caption.push_str(&costs_of_points(cells));
        }
        if let XAxis::Rounds(x) = self.x
            && cells.iter().any(|cell| uneven(cell, x))
        {
            caption.push_str(
                " Runs have different costs at the same recorded round; the x axis shows their mean.",
            );
        }
        if plot.labels.is_ranked && cells.iter().any(|cell| cell.is_over_instances()) {
            caption.push_str(
                " Ratios next to the curves are of geometric means over the instances, as in the ranking.",
            );
        }
        if self.band != Band::None {
            caption.push_str(
                " A band that reaches beyond the panel, or down to 0, is clipped at its edge.",
            );
        }
        if over_rounds
            && plot.series().any(|s| s.line.is_measured() && s.points.iter().any(|p| p.y == 0.0))
        {
            caption.push_str(" A mean of 0 is omitted, because the axis is logarithmic.");
        }
        if plot.series().any(|s| matches!(s.line, Line::Reference(_))) {
            caption.push_str(
                " Grey dots: a reference slope through the first point of the first curve.",
            );
        }
        caption.push_str(&predicted_lines::caption(self.theory, self.y, plot, cells, theory));
        let with_bias = over_rounds && self.theory.contains(&TheoryKind::ExactBias);
        if with_bias && cells.iter().all(|cell| cell.exact_bias.is_none()) {
            caption.push_str(
                " The exact bias is not known: the field is not linear, or draws are not independent.",
            );
        }
        caption.push_str(&diverged_text(cells, over_rounds));
        caption
    }
}

/// What a caption says about the cells with runs that diverged.
fn diverged_text(cells: &[&CellResult<'_>], over_rounds: bool) -> String {
    let all = cells.len();
    let diverged = cells.iter().filter(|c| c.runs.diverged > 0).count();
    match diverged {
        0 => String::new(),
        _ if over_rounds => format!(
            " Runs diverged in {diverged} of {all} cells (✕): the curve of such a cell ends where the first run diverged."
        ),
        _ => format!(" {diverged} of {all} cells have runs that diverged and are omitted."),
    }
}

impl<'a> DrawnFigure<'a> for LineFigure<'a> {
    fn cells(&self) -> DrawnCells<'a> {
        let has_moments = self.theory.contains(&TheoryKind::ExactMoments);
        DrawnCells {
            most_followed: matches!(self.x, XAxis::Rounds(_)).then_some(MOST_CURVES),
            predictions: self.theory,
            needs_theory: !self.theory.is_empty(),
            needs_moments: self.y.average().is_none() && has_moments,
            ..DrawnCells::new(self.common)
        }
    }

    fn shown_cells(&self, all: &[CellResult<'_>]) -> ShownCells {
        match &self.x {
            XAxis::Rounds(_) => cells_over_costs(self, all),
            XAxis::Cells(x) => cells_over_setting(self, x, all),
        }
    }

    /// A page offers each curve over any cost.
    fn add_needs(&self, needs: &mut TraceNeeds) {
        if let XAxis::Rounds(x) = self.x {
            needs.along.extend(Quantity::COSTS.into_iter().chain([x, self.y]));
        }
    }

    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure {
        let theory = from.theory;
        let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
        let views = views(&self.common.panels, &self.settings_outside_names(&plain), cells);
        let own = &views[0];
        let mut panels = Vec::new();
        for (title, indices) in &own.groups {
            let mut series: Vec<Series> = Vec::new();
            match &self.x {
                XAxis::Rounds(x) => {
                    for index in indices {
                        let curve = &own.curves[own.curve_of_cell[*index]];
                        series.extend(self.over_rounds(*x, cells[*index], curve, theory));
                    }
                }
                XAxis::Cells(x) => {
                    let mut groups: BTreeMap<usize, Vec<&CellResult<'_>>> = BTreeMap::new();
                    for i in indices {
                        groups.entry(own.curve_of_cell[*i]).or_default().push(cells[*i]);
                    }
                    for (curve, cells) in groups {
                        series.extend(self.over_cells(x, &cells, &own.curves[curve], theory));
                    }
                }
            }
            let reference = self.slope.and_then(|slope| reference(&series, slope));
            series.extend(reference);
            panels.push(Panel { title: title.clone(), series });
        }
        let large = self.large(&own.groups, cells, &panels);
        let x = self.title_of_x(cells);
        let y = quantity_symbol(self.y, cells);
        let legend = predicted_lines::legend(&panels, &own.curves, self.theory);
        let scale_y = Scale::for_quantity(self.y);
        let labels = CurveValue { zero_below: rounding_floor(self.y), ..CurveValue::last(scale_y) };
        let plot = Plot { panels, legend, x, y, scale_x: self.scale_x, scale_y, labels };
        let title = format!("{} over {}", plot.y, plot.x);
        let caption = self.caption(cells, &plot, theory);
        let is_over_instances = cells.iter().any(|cell| cell.is_over_instances());
        let exploration = Exploration {
            x: self.x.clone(),
            y: self.y,
            band: self.band,
            cells: cells.iter().map(|c| c.cell.id.to_string()).collect(),
            views,
            unit: if is_over_instances { SampleUnit::Instance } else { SampleUnit::Run },
            slopes: self.slope.into_iter().collect(),
            without_moments: predicted_lines::without_moments(self.theory, cells, theory),
        };
        let figure = Figure::new(self.common, title, caption, 4, Body::Plot(plot));
        Figure { large, exploration: Some(exploration), ..figure }
    }
}

/// The cells that a figure over a cost draws: each is a curve.
fn cells_over_costs(figure: &LineFigure<'_>, all: &[CellResult<'_>]) -> ShownCells {
    let cells = shown(figure.common, all);
    if cells.len() <= MOST_CURVES {
        return ShownCells::new(all, cells);
    }
    let (groups, panels_note) = few(panels(&figure.common.panels, &cells), MOST_PANELS, "panels");
    let each = (FEW_CURVES / groups.len().max(1)).max(2);
    let groups = groups
        .into_iter()
        .map(|group| by_rank(group.cells, each, |cell| figure.y.loss(cell.final_mean(figure.y))));
    let shown_cells = ShownCells::new(all, groups.flatten());
    let mut notes = vec![format!(
        "{} of {} curves are drawn, spread evenly from the {} to the {} final mean of {} in each panel (cells whose runs diverged rank last)",
        shown_cells.cells.len(),
        thousands(cells.len()),
        figure.y.best_mean(),
        figure.y.worst_mean(),
        figure.y.formula()
    )];
    notes.extend(panels_note);
    ShownCells { note: sentence(&notes), ..shown_cells }
}

/// The cells that a figure over a setting draws: each is a point.
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
        curves = by_rank(curves, FEW_CURVES, |curve| {
            let losses = curve.iter().map(|cell| figure.y.loss(cell.final_mean(figure.y)));
            losses.fold(f64::INFINITY, f64::min)
        });
        let best = figure.y.best_mean();
        let worst = figure.y.worst_mean();
        let own = if figure.y.more_is_better() { "largest" } else { "least" };
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

/// What the runs behind the points have cost, as the end of a caption: algorithms are compared at
/// each grid point, and one algorithm with nothing.
fn costs_of_points(cells: &[&CellResult<'_>]) -> String {
    let (_, points) = grid_points(cells);
    let mut points: Vec<&[&CellResult<'_>]> = points.iter().map(|p| &p.cells[..]).collect();
    if points.is_empty() {
        points = cells.chunks(1).collect();
    }
    let costs = paid_costs(&points, None);
    if costs.is_empty() { costs } else { format!(" {costs}") }
}

/// Panels, at most, beside or below one that is large without being asked for.
const MOST_OTHERS: usize = 4;

/// A reference slope that is nowhere farther from a curve is not drawn: decades, and their share
/// of those that the slope spans.
const COINCIDE: (f64, f64) = (0.02, 0.01);

/// How many times higher the highest curve of a panel ends than the lowest.
fn spread(panel: &Panel) -> f64 {
    let measured = panel.series.iter().filter(|s| s.line.is_measured());
    let ends = measured.filter_map(|s| s.points.last()).map(|p| p.y).filter(|y| *y > 0.0);
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(l, h), y| (l.min(y), h.max(y)));
    if low <= high { high / low } else { 0.0 }
}

/// Whether the runs of a cell differ in a quantity at one round.
fn uneven(cell: &CellResult<'_>, quantity: Quantity) -> bool {
    let columns = cell.runs.columns(quantity);
    let Some((first, others)) = columns.split_first() else { return false };
    others.iter().any(|other| first.iter().zip(other.iter()).any(|(a, b)| a != b))
}

/// Why a figure is empty, in words.
fn nothing(cells: &[&CellResult<'_>]) -> String {
    let diverged = cells.iter().filter(|c| c.runs.diverged > 0).count();
    let why = match (cells.len(), diverged) {
        (0, _) => return NO_RESULTS.into(),
        (all, diverged) if all == diverged => "runs of every cell diverged",
        _ => "no cell has results for this metric",
    };
    format!("The figure is empty: {why}.")
}

/// A line through the points of some cells, from left to right.
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

/// A line of this slope through the first point of the first measured curve with two points that
/// have a place on logarithmic axes, over all that is drawn, so that one sees where curves leave it; `None` where there is no such curve,
/// only one place across, or a curve on which the line lies.
fn reference(series: &[Series], slope: f64) -> Option<Series> {
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
