//! The figures of a manifest, as values that charts draw.

mod convergence;
pub mod curves;
#[cfg(test)]
mod dummy;
pub mod frontier;
pub mod kind;
mod line_caption;
pub mod line_figure;
mod map_axes;
pub mod measured;
mod phase;
pub mod predicted_lines;
pub mod profile;
pub mod ranking_map;
pub mod sample;
mod scaling;
pub mod stability;

use crate::cells::CellResult;
use crate::kinds::kinds;
use crate::ranking::ComparedPoint;
use crate::scene::figure::Figure;
use convergence::{ConvergenceKeys, over_costs};
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{KindTable, Plan, TableKind};
use kind::{DrawnFigure, DrawnFrom};
use ranking_map::WinnersKeys;
use sample::ShownCells;
use scaling::{ScalingKeys, over_setting};
use stability::StabilityKeys;
use std::collections::HashMap;
use std::convert::identity;

/// The figures of cells that a manifest asks for, each with the cells that it draws.
pub struct Figures<'a>(Vec<(Box<dyn DrawnFigure<'a> + 'a>, ShownCells)>);

impl<'a> Figures<'a> {
    /// The figures of cells that a plan asks for, each with the cells that it draws of all cells of the experiment.
    pub fn new(plan: &'a Plan, cells: &[CellResult<'_>]) -> Self {
        let all = drawn_figures(plan).into_iter();
        let chosen = all.map(|figure| {
            let shown = figure.shown_cells(cells);
            (figure, shown)
        });
        Self(chosen.collect())
    }

    /// Each figure, with the indices of the cells that it draws among all cells of the experiment.
    pub fn iter(&self) -> impl Iterator<Item = (&dyn DrawnFigure<'a>, &[usize])> {
        self.0.iter().map(|(figure, shown)| (&**figure, &shown.cells[..]))
    }

    /// The groups of cells that figures compare with one another, with the quantity and the cost by which they do, of
    /// all figures; only maps of winners compare any. [`Rankings`](crate::ranking::Rankings) tests them together with
    /// the cells of the page's table, as one family of Holm's correction. `cells` are all cells of the experiment, in
    /// the order in which [`new`](Self::new) was given them.
    pub fn compared<'c>(
        &self,
        cells: &'c [CellResult<'c>],
    ) -> impl Iterator<Item = ComparedPoint<'c>> {
        self.0.iter().flat_map(|(figure, shown)| figure.compared(&shown.among(cells)))
    }

    /// Draws all figures that the manifest of a plan asks for, in its order, those of frontiers included. `cells` are
    /// all cells of the experiment; each caption ends with what is said about cells that are left out.
    pub fn draw<'c>(
        &self,
        plan: &Plan,
        cells: &'c [CellResult<'c>],
        from: &DrawnFrom<'_, 'c>,
    ) -> Vec<Figure> {
        let drawn = self.0.iter().map(|(figure, shown)| {
            let figure = figure.draw(&shown.among(cells), from);
            Figure { caption: figure.caption.clone() + &shown.note, ..figure }
        });
        let all = drawn.chain(from.frontiers.iter().flat_map(frontier::figures));
        let mut all: HashMap<String, Figure> = all.map(|f| (f.id.clone(), f)).collect();
        plan.figures
            .iter()
            .map(|id| all.remove(id).expect("every figure of a plan has its id"))
            .collect()
    }
}

kinds! {
    figures of FigureKeys, each by drawn_figure as dyn DrawnFigure<'_> + '_;
    "convergence", "Curves of a metric over a cost.", ConvergenceKeys, over_costs;
    "scaling", "A metric at the end over a setting.", ScalingKeys, over_setting;
    "winners", "Which algorithm wins, over two settings.", WinnersKeys, identity;
    "stability", "Where runs diverge, over two settings.", StabilityKeys, identity;
    #[cfg(test)]
    "dummy", "A final error over the number of clients.", dummy::DummyFigureKeys, dummy::over_clients;
}

/// The figures of cells that a plan asks for, kind by kind, without those of frontiers.
pub fn drawn_figures(plan: &Plan) -> Vec<Box<dyn DrawnFigure<'_> + '_>> {
    plan.figure_tables.iter().map(drawn_figure).collect()
}
