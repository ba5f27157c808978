//! The figures of a manifest, as values that charts draw.

pub mod curves;
pub mod downsample;
pub mod frontier;
pub mod line_figure;
pub mod predicted_lines;
pub mod profile;
pub mod ranking_map;
pub mod stability;

use crate::cells::CellResult;
use crate::frontier::ComputedFrontier;
use crate::predictions::Theory;
use crate::ranking::{ComparedPoint, Rankings};
use crate::scene::figure::Figure;
use downsample::FigureCells;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::Plan;
use line_figure::LineFigure;
use std::collections::HashMap;

/// The cells of each square of the ranking maps, by which quantity and at which cost they are
/// compared.
pub fn squares<'a>(
    plan: &'a Plan,
    cells: &'a [CellResult<'a>],
    shown: &'a FigureCells,
) -> impl Iterator<Item = ComparedPoint<'a>> {
    plan.manifest.figure.winners.iter().flat_map(|figure| {
        let chosen = shown.of(&figure.common).among(cells);
        let places = ranking_map::compared_cells(figure, &chosen);
        places.into_iter().map(|cells| (cells, figure.metric, figure.at))
    })
}

/// The figures that a manifest asks for, in its order.
pub fn figures<'a>(
    plan: &Plan,
    cells: &'a [CellResult<'a>],
    shown: &FigureCells,
    theory: &Theory<'_>,
    rankings: &Rankings<'a>,
    frontiers: &[ComputedFrontier<'_>],
) -> Vec<Figure> {
    let table = &plan.manifest.figure;
    let noted = |common: &FigureKeys, draw: &dyn Fn(&[&'a CellResult<'a>]) -> Figure| {
        let chosen = shown.of(common);
        let figure = draw(&chosen.among(cells));
        Figure { caption: figure.caption.clone() + &chosen.note, ..figure }
    };
    let lines = LineFigure::all(table).map(|f| noted(f.common, &|c| f.draw(c, theory)));
    let winners = table.winners.iter();
    let winners = winners.map(|f| noted(&f.common, &|c| ranking_map::figure(f, c, rankings)));
    let stability = table.stability.iter();
    let stability = stability.map(|f| noted(&f.common, &|c| stability::figure(f, c, theory)));
    let of_frontiers = frontiers.iter().flat_map(frontier::figures);
    let all = lines.chain(winners).chain(stability).chain(of_frontiers);
    let mut all: HashMap<String, Figure> = all.map(|figure| (figure.id.clone(), figure)).collect();
    let drawn = |id: &String| all.remove(id).expect("every figure of a plan is drawn under its id");
    plan.figures.iter().map(drawn).collect()
}
