//! The figures of a manifest, as values that charts draw.

pub mod curves;
pub mod frontier;
pub mod kind;
pub mod line_figure;
mod lines;
pub mod predicted_lines;
pub mod profile;
pub mod ranking_map;
pub mod sample;
pub mod stability;

use crate::cells::CellResult;
use crate::frontier::ComputedFrontier;
use crate::predictions::Theory;
use crate::ranking::{ComparedPoint, Rankings};
use crate::scene::figure::Figure;
use exactfed_runner::manifest::figure::FigureTables;
use exactfed_runner::plan::Plan;
use kind::DrawnFigure;
use line_figure::LineFigure;
use sample::Sample;
use std::collections::HashMap;

/// The figures of cells that a manifest asks for, each with the cells that it draws.
pub struct Figures<'a>(Vec<(Box<dyn DrawnFigure<'a> + 'a>, Sample)>);

impl<'a> Figures<'a> {
    /// Chooses the cells of each.
    pub fn new(plan: &'a Plan, cells: &[CellResult<'_>]) -> Self {
        let all = drawn_figures(&plan.manifest.figure).into_iter();
        let sampled = all.map(|figure| {
            let sample = figure.sample(cells);
            (figure, sample)
        });
        Self(sampled.collect())
    }

    /// Each figure, with the indices of the cells that it draws.
    pub fn iter(&self) -> impl Iterator<Item = (&dyn DrawnFigure<'a>, &[usize])> {
        self.0.iter().map(|(figure, sample)| (&**figure, &sample.cells[..]))
    }

    /// The cells that figures compare with one another, by which quantity and at which cost.
    pub fn compared<'c>(
        &self,
        cells: &'c [CellResult<'c>],
    ) -> impl Iterator<Item = ComparedPoint<'c>> {
        self.0.iter().flat_map(|(figure, sample)| figure.compared(&sample.among(cells)))
    }

    /// All figures that the manifest of a plan asks for, in its order.
    pub fn draw<'c>(
        &self,
        plan: &Plan,
        cells: &'c [CellResult<'c>],
        theory: &Theory<'_>,
        rankings: &Rankings<'c>,
        frontiers: &[ComputedFrontier<'_>],
    ) -> Vec<Figure> {
        let drawn = self.0.iter().map(|(figure, sample)| {
            let figure = figure.draw(&sample.among(cells), theory, rankings);
            Figure { caption: figure.caption.clone() + &sample.note, ..figure }
        });
        let all = drawn.chain(frontiers.iter().flat_map(frontier::figures));
        let mut all: HashMap<String, Figure> = all.map(|f| (f.id.clone(), f)).collect();
        let drawn = |id: &String| all.remove(id).expect("every figure of a plan has its id");
        plan.figures.iter().map(drawn).collect()
    }
}

/// The figures of cells that a manifest asks for, kind by kind.
pub fn drawn_figures(table: &FigureTables) -> Vec<Box<dyn DrawnFigure<'_> + '_>> {
    let mut all: Vec<Box<dyn DrawnFigure<'_> + '_>> = Vec::new();
    all.extend(table.convergence.iter().map(|f| Box::new(LineFigure::over_costs(f)) as Box<_>));
    all.extend(table.scaling.iter().map(|f| Box::new(LineFigure::over_setting(f)) as Box<_>));
    all.extend(table.winners.iter().map(|f| Box::new(f) as Box<_>));
    all.extend(table.stability.iter().map(|f| Box::new(f) as Box<_>));
    all
}
