//! `[[figure.scaling]]`: a curve for each algorithm of a quantity at the last round over a setting.

use super::kind::{FigureOf, TheoryKind};
use super::line_figure::LineFigure;
use crate::scene::figure::{Band, Scale, XAxis};
use exactfed_runner::manifest::figure::FigureKeys;
use exactfed_runner::manifest::{ComparedAt, Quantity};
use exactfed_runner::plan::{Checker, KindKeys, shows};
use schemars::JsonSchema;
use serde::Deserialize;

/// A curve for each algorithm, of a quantity at the last round, or at a cost or a target, over a setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScalingKeys {
    /// The quantity that is drawn, if it is recorded.
    #[serde(default)]
    pub y: Quantity,
    /// The cost or the target at which y is drawn, as in `[compare]`; by default the last round. With
    /// `y = "communications"` and a target the curves show what runs pay until the target; cells with a
    /// run that does not reach it are omitted and counted.
    #[schemars(example = ComparedAt::EXAMPLE)]
    pub at: Option<ComparedAt>,
    /// What is on the x axis: a setting whose values are numbers, or a recorded quantity (its
    /// mean over the runs, at the last round). `path-length` is γH, with H the largest E_k or 1/p.
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The band around a mean.
    #[serde(default)]
    pub band: Band,
    /// Slope of a dotted line, on log axes, through the first curve's first point.
    #[schemars(example = -1.0)]
    pub reference_slope: Option<f64>,
    /// Predictions that are drawn with the curves.
    #[serde(default)]
    pub theory: Vec<TheoryKind>,
    /// Scale of the x axis.
    #[serde(default = "logarithmic")]
    pub scale_x: Scale,
}

fn logarithmic() -> Scale {
    Scale::Log
}

impl KindKeys<FigureKeys> for ScalingKeys {
    const DEFAULT_QUANTITY_KEY: Option<&'static str> = Some("y");

    /// Notes what is wrong with the table: x must be a setting with numbers or a recorded quantity (`local-steps` is both:
    /// its setting is drawn, and as a quantity it is always recorded), y must be recorded, predictions need θ*, and the
    /// slope must be finite.
    fn check(figure: &FigureOf<Self>, table: &mut Checker<'_>) {
        table.axis_of_numbers("x", &figure.x);
        if let Some(x) = Quantity::named(&figure.x) {
            table.quantity("x", x);
        }
        table.quantity("y", figure.y);
        if let Some(at) = figure.at {
            table.compared_at("at", at, figure.y, |cell| shows(&figure.common, cell));
            let message = "predictions are of the last round: delete `at` or `theory`";
            table.require(figure.theory.is_empty(), "theory", message);
        }
        table.predictions("theory", !figure.theory.is_empty());
        let slope = figure.reference_slope.unwrap_or_default();
        let message = format!("`reference-slope` must be finite, not {slope}");
        table.require(slope.is_finite(), "reference-slope", message);
    }
}

/// The figure of lines that a table `[[figure.scaling]]` asks for: each cell is a point of a curve over a setting.
pub fn over_setting(figure: &FigureOf<ScalingKeys>) -> LineFigure<'_> {
    LineFigure {
        common: &figure.common,
        x: XAxis::Cells(figure.x.clone()),
        y: std::slice::from_ref(&figure.y),
        at: figure.at,
        band: figure.band,
        theory: &figure.theory,
        scale_x: figure.scale_x,
        slope: figure.reference_slope,
    }
}
