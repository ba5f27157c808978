//! `[[figure.stability]]`: how many runs diverged, over two settings, with the spectral radii of
//! the exact recursions of moments.
//!
//! *Invariant*: results and theory are shown separately; where they differ the square is
//! outlined and neither is changed.

use crate::cells::CellResult;
use crate::cells::panels::{Group, Sides, distinct, panels, placed, unique};
use crate::cells::runs::TraceNeeds;
use crate::cells::setting_text::symbol;
use crate::figures::kind::{DrawnCells, DrawnFigure, DrawnFrom, FigureOf};
use crate::figures::map_axes::check_map;
use crate::figures::sample::{ShownCells, maps};
use crate::predictions::radii::radii;
use crate::scene::figure::{Body, Figure, NO_RESULTS};
use crate::scene::line::{Color, LegendEntry};
use crate::scene::map::{Map, Maps, Square, SquareValue, StabilityValue, blank_squares};
use exactfed_core::theory::exact::SpectralRadii;
use exactfed_core::words::joined;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{Checker, KindKeys, Setting};
use exactfed_runner::runner::Prepared;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashMap;

/// A map over two settings that shows how many runs diverged. On linear problems with independent
/// noise, each square also shows the spectral radii of the exact maps of a round, one for second
/// moments and one for the mean. Moments stay bounded if the radius is below 1. Squares where runs
/// and theory disagree are marked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StabilityKeys {
    /// The setting on the x axis.
    #[serde(default = "step_size")]
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The setting on the y axis.
    #[serde(default = "local_steps")]
    #[schemars(example = &"local-steps")]
    pub y: String,
}

/// The default setting on the x axis.
fn step_size() -> String {
    "step-size".into()
}

/// The default setting on the y axis.
fn local_steps() -> String {
    "local-steps".into()
}

impl KindKeys<FigureKeys> for StabilityKeys {
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        check_map(table, &figure.common.panels, [&figure.x, &figure.y]);
    }
}

impl<'a> DrawnFigure<'a> for &'a FigureOf<StabilityKeys> {
    fn cells(&self) -> DrawnCells<'a> {
        DrawnCells { needs_theory: true, ..DrawnCells::new(&self.common) }
    }

    fn shown_cells(&self, all: &[CellResult<'_>]) -> ShownCells {
        maps(&self.common, &self.x, &self.y, all)
    }

    fn add_needs(&self, _: &mut TraceNeeds) {}

    /// Draws a map for each algorithm and panel, in which a square shows how many runs of its cell diverged and,
    /// where theory knows them, the spectral radii of a round.
    fn draw<'c>(&self, cells: &[&'c CellResult<'c>], from: &DrawnFrom<'_, 'c>) -> Figure {
        let known: Vec<&Prepared<'_>> =
            cells.iter().filter_map(|c| from.theory.prepared(&c.cell.id)).collect();
        let radii: HashMap<&str, SpectralRadii> =
            known.par_iter().filter_map(|p| Some((p.cell.id.as_str(), radii(p).ok()?))).collect();
        let sides = (distinct(cells, &self.x), distinct(cells, &self.y));
        let mut maps = Vec::new();
        for label in unique(cells.iter().map(|c| &c.cell.label)) {
            let of_label: Vec<&CellResult<'_>> =
                cells.iter().copied().filter(|c| c.cell.label == *label).collect();
            for group in panels(&self.common.panels, &of_label) {
                let title = joined(&[label, &group.title]);
                let squares = squares(self, &sides, &group, &radii);
                maps.push(Map::new(title, &sides, squares));
            }
        }
        let squares: Vec<&Square> = maps.iter().flat_map(|map| &map.squares).collect();
        let mut legend = vec![
            LegendEntry::patch("no run diverged", Color::of_family(0)),
            LegendEntry::patch("runs diverged", Color::of_family(1)),
        ];
        legend.retain(|entry| squares.iter().any(|s| s.color() == entry.style().color));
        legend.extend((!radii.is_empty()).then_some(LegendEntry::Threshold));
        let caption = caption(cells, &maps, radii.len());
        let body = Body::Maps(Maps { maps, legend, x: symbol(&self.x), y: symbol(&self.y) });
        Figure::new(&self.common, "Where runs diverge".into(), caption, 2, body)
    }
}

/// The squares of a map, one for each cell of the panel that has both settings of the axes: how many of its runs
/// diverged, and the spectral radii of its round, by the id of the cell, where they are known.
fn squares(
    spec: &FigureOf<StabilityKeys>,
    (xs, ys): &Sides<'_>,
    group: &Group<'_>,
    radii: &HashMap<&str, SpectralRadii>,
) -> Vec<Square> {
    let at_x = placed(xs);
    let at_y = placed(ys);
    let mut squares = Vec::new();
    for cell in &group.cells {
        let place = |places: &HashMap<&Setting, usize>, name: &str| {
            places.get(cell.cell.settings.get(name)?).copied()
        };
        let (Some(x), Some(y)) = (place(&at_x, &spec.x), place(&at_y, &spec.y)) else { continue };
        let runs = cell.runs.count;
        let diverged = cell.runs.diverged;
        let radii = radii.get(cell.cell.id.as_str()).copied();
        let value = SquareValue::Stability(StabilityValue { runs, diverged, radii });
        squares.push(Square { x, y, value });
    }
    squares
}

/// The caption of the maps: how many runs diverged, what the spectral radii say, and on how many squares the two
/// differ. `known` is the number of cells with known radii.
fn caption(cells: &[&CellResult<'_>], maps: &[Map], known: usize) -> String {
    if cells.is_empty() {
        return NO_RESULTS.into();
    }
    let n = cells.iter().map(|c| c.runs.count).max().unwrap_or(0);
    let mut caption = format!(
        "How many of n = {n} runs diverged, that is, left the range of numbers, within their rounds: the stronger the colour, the more."
    );
    if known == 0 {
        caption.push_str(
            " No spectral radius is known: the field is not linear, or theory does not follow its moments.",
        );
    } else {
        caption.push_str(" ρ: the spectral radius of one round's exact linear map of the second moments; below it the radius of the map of the mean. The heavy line separates ρ < 1 from ρ ≥ 1.");
        if maps
            .iter()
            .flat_map(|m| &m.squares)
            .filter_map(Square::stability)
            .any(|s| s.radii.is_some_and(|r| r.square == f64::INFINITY))
        {
            caption.push_str(" ρ = ∞: second moments are infinite after one round, since its random number of local steps has no bound.");
        }
        if known < cells.len() {
            let without = cells.len() - known;
            caption.push_str(&format!(" It is not known for {without} of {} cells.", cells.len()));
        }
    }
    let squares = maps.iter().flat_map(|m| &m.squares);
    let marked: Vec<&StabilityValue> =
        squares.filter_map(Square::stability).filter(|s| s.differs()).collect();
    let calm = marked.iter().filter(|s| s.diverged == 0).count();
    let wild = marked.len() - calm;
    if calm > 0 {
        caption.push_str(&format!(
            " In {calm} of the squares (≠) ρ is not below 1 and no run diverged: runs are finite, and growth may need more rounds to leave the range of numbers; or second moments grow by ever rarer runs while almost every run converges."
        ));
    }
    if wild > 0 {
        caption.push_str(&format!(
            " In {wild} of the squares (≠) ρ is below 1 and runs diverged, which exact moments do not explain."
        ));
    }
    caption.push_str(&blank_squares(maps));
    caption
}
