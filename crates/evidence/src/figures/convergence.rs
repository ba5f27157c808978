//! `[[figure.convergence]]`: a curve for each cell of a quantity over a cost.

use super::kind::{FigureOf, TheoryKind};
use super::line_figure::LineFigure;
use crate::scene::figure::{Band, Scale, XAxis};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::plan::{Checker, KindKeys};
use schemars::JsonSchema;
use serde::Deserialize;

/// A curve for each cell, of a quantity over the costs of a run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ConvergenceKeys {
    /// The quantity that is drawn, if it is recorded.
    pub y: Quantity,
    /// The quantity on the x axis, if it is recorded.
    pub x: Quantity,
    /// The band around a mean.
    pub band: Band,
    /// Predictions that are drawn with the curves.
    pub theory: Vec<TheoryKind>,
    /// Scale of the x axis.
    pub scale_x: Scale,
}

impl Default for ConvergenceKeys {
    fn default() -> Self {
        Self {
            y: Quantity::default(),
            x: Quantity::Communications,
            band: Band::default(),
            theory: Vec::new(),
            scale_x: Scale::default(),
        }
    }
}

impl KindKeys<FigureKeys> for ConvergenceKeys {
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = Some("y");

    /// Notes what is wrong with the table: the quantities on both axes must be recorded, and predictions need θ*.
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        table.quantity("x", figure.x);
        table.quantity("y", figure.y);
        table.predictions("theory", !figure.theory.is_empty());
    }
}

/// The figure of lines that a table `[[figure.convergence]]` asks for: each cell is a curve of a quantity over a
/// cost, round by round.
pub fn over_costs(figure: &FigureOf<ConvergenceKeys>) -> LineFigure<'_> {
    LineFigure {
        common: &figure.common,
        x: XAxis::Rounds(figure.x),
        y: figure.y,
        band: figure.band,
        theory: &figure.theory,
        scale_x: figure.scale_x,
        slope: None,
    }
}
