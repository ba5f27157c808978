//! Which cells a figure of lines draws, and what it needs of them.

use crate::cells::CellResult;
use crate::cells::panels::panels;
use crate::cells::runs::TraceNeeds;
use crate::figures::curves::curves;
use crate::figures::kind::{DrawnCells, DrawnFigure, DrawnFrom, TheoryKind};
use crate::figures::line_figure::{LineFigure, x_value};
use crate::figures::sample::{
    FEW_CURVES, MOST_CURVES, MOST_PANELS, MOST_POINTS, Sample, by_rank, few_panels, sentence, shown,
};
use crate::scene::figure::{Figure, XAxis};
use exactfed_core::words::thousands;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::plan::Cell;

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

    fn sample(&self, all: &[CellResult<'_>]) -> Sample {
        match &self.x {
            XAxis::Rounds(_) => curves_over_costs(self, all),
            XAxis::Cells(x) => curves_over_setting(self, x, all),
        }
    }

    /// A page offers each curve over any cost.
    fn add_needs(&self, needs: &mut TraceNeeds) {
        if let XAxis::Rounds(x) = self.x {
            needs.along.extend(Quantity::COSTS.into_iter().chain([x, self.y]));
        }
    }

    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure {
        LineFigure::draw(self, cells, from.theory)
    }
}

/// The cells of a figure over a cost: each is a curve.
fn curves_over_costs(figure: &LineFigure<'_>, all: &[CellResult<'_>]) -> Sample {
    let cells = shown(figure.common, all);
    if cells.len() <= MOST_CURVES {
        return Sample::new(all, cells);
    }
    let (groups, panels_note) = few_panels(panels(&figure.common.panels, &cells));
    let each = (FEW_CURVES / groups.len().max(1)).max(2);
    let last = |cell: &&CellResult<'_>| cell.final_mean(figure.y);
    let groups = groups.into_iter().map(|group| by_rank(group.cells, each, last));
    let sample = Sample::new(all, groups.flatten());
    let mut notes = vec![format!(
        "{} of {} curves are drawn, spread evenly from the smallest to the largest final mean of {} in each panel (cells whose runs diverged rank last)",
        sample.cells.len(),
        thousands(cells.len()),
        figure.y.formula()
    )];
    notes.extend(panels_note);
    Sample { note: sentence(&notes), ..sample }
}

/// The cells of a figure over a setting: each is a point.
fn curves_over_setting(figure: &LineFigure<'_>, x: &str, all: &[CellResult<'_>]) -> Sample {
    let mut cells = shown(figure.common, all);
    let (count, mut notes) = (cells.len(), Vec::new());
    let groups = panels(&figure.common.panels, &cells);
    if groups.len() > MOST_PANELS {
        let (groups, note) = few_panels(groups);
        notes.extend(note);
        cells = Sample::new(all, groups.into_iter().flat_map(|group| group.cells)).among(all);
    }
    let known: Vec<&str> = figure.common.panels.iter().map(String::as_str).collect();
    let plain: Vec<&Cell> = cells.iter().map(|c| c.cell).collect();
    let known = [known, figure.settings_outside_names(&plain)].concat();
    let (names, curve_of_cell) = curves(&plain, &known, &[]);
    let mut curves: Vec<Vec<&CellResult<'_>>> = vec![Vec::new(); names.len()];
    cells.iter().zip(curve_of_cell).for_each(|(cell, curve)| curves[curve].push(cell));
    if curves.len() > MOST_CURVES {
        let least = |curve: &Vec<&CellResult<'_>>| {
            curve.iter().map(|cell| cell.final_mean(figure.y)).fold(f64::INFINITY, f64::min)
        };
        curves = by_rank(curves, FEW_CURVES, least);
        notes.push(format!(
            "{} of {} curves are drawn, spread evenly from the smallest to the largest of their least values",
            curves.len(),
            thousands(names.len())
        ));
    }
    if curves.iter().map(Vec::len).sum::<usize>() > MOST_POINTS {
        let each = (MOST_POINTS / curves.len().max(1)).max(2);
        let x = |cell: &&CellResult<'_>| x_value(cell, x).unwrap_or(f64::INFINITY);
        curves = curves.into_iter().map(|curve| by_rank(curve, each, x)).collect();
        notes.push(format!(
            "of each curve at most {each} points are drawn, spread evenly from left to right"
        ));
    }
    if notes.is_empty() {
        return Sample::new(all, cells);
    }
    let sample = Sample::new(all, curves.into_iter().flatten());
    notes.push(format!("the points are {} of {} cells", sample.cells.len(), thousands(count)));
    Sample { note: sentence(&notes), ..sample }
}
