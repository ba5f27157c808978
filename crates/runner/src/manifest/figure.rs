//! `[[figure.<kind>]]`: what a report draws. Figures change no number.

use super::claim::Selection;
use super::{AtCost, Quantity};
use exactfed_core::flattened::Flattened;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All figures of a manifest; where there is none, reports draw the squared error of every
/// cell over communications.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct FigureTables {
    /// Curves of a metric over a cost.
    pub convergence: Vec<Convergence>,
    /// A metric at the end over a setting.
    pub scaling: Vec<Scaling>,
    /// Which algorithm wins, over two settings.
    pub winners: Vec<Winners>,
    /// Where runs diverge, over two settings.
    pub stability: Vec<Stability>,
}

impl FigureTables {
    /// Gives each figure without an id its default, so that a figure is known by its id from the
    /// manifest to its file.
    pub fn name(&mut self) {
        fn name<T>(kind: &str, figures: &mut [Flattened<FigureKeys, T>]) {
            for (i, figure) in figures.iter_mut().enumerate() {
                let number = if i == 0 { String::new() } else { format!("-{}", i + 1) };
                figure.common.id.get_or_insert_with(|| format!("{kind}{number}"));
            }
        }
        name("convergence", &mut self.convergence);
        name("scaling", &mut self.scaling);
        name("winners", &mut self.winners);
        name("stability", &mut self.stability);
    }
}

/// Keys of every `[[figure.<kind>]]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct FigureKeys {
    /// Name of the figure's file; by default its kind and number.
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// Labels of the algorithms that are drawn; all by default.
    #[schemars(example = EXAMPLE_LABELS)]
    pub labels: Vec<String>,
    /// Settings of the cells that are drawn; all cells by default.
    #[schemars(example = serde_json::json!({ "dimension": 2 }))]
    pub only: Option<Selection>,
    /// Settings for whose values there are separate panels, outermost first. Maps of divergence
    /// have separate panels for the algorithms, too.
    #[schemars(example = EXAMPLE_PANELS)]
    pub panels: Vec<String>,
    /// Number of panels in a row.
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
    /// The settings of the panel that is drawn large; by default that in which the algorithms end
    /// farthest apart.
    #[schemars(example = serde_json::json!({ "local-steps": 100 }))]
    pub large: Option<Selection>,
}

impl FigureKeys {
    /// The id; that of a plan's figure is never empty ([`FigureTables::name`]).
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
}

/// `[[figure.convergence]]`
pub type Convergence = Flattened<FigureKeys, ConvergenceKeys>;
/// `[[figure.scaling]]`
pub type Scaling = Flattened<FigureKeys, ScalingKeys>;
/// `[[figure.winners]]`
pub type Winners = Flattened<FigureKeys, WinnersKeys>;
/// `[[figure.stability]]`
pub type Stability = Flattened<FigureKeys, StabilityKeys>;

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

/// Examples for the documentation.
const EXAMPLE_LABELS: [&str; 1] = ["FedAvg"];
const EXAMPLE_PANELS: [&str; 1] = ["local-steps"];

fn logarithmic() -> Scale {
    Scale::Log
}

/// A curve for each algorithm, of a quantity at the last round over a setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ScalingKeys {
    /// The quantity that is drawn, if it is recorded.
    #[serde(default)]
    pub y: Quantity,
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

/// A map over two settings: which algorithm has the smallest mean of a metric at the last
/// round or at a cost, by what factor, and whether the difference is significant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WinnersKeys {
    /// The quantity that ranks the algorithms, if it is recorded.
    #[serde(default)]
    pub metric: Quantity,
    /// The setting on the x axis.
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The setting on the y axis.
    #[schemars(example = &"local-steps")]
    pub y: String,
    /// The cost at which the algorithms are compared: of each run the last recorded round that costs
    /// at most this; by default the last round.
    #[schemars(example = AtCost::EXAMPLE)]
    pub at: Option<AtCost>,
}

/// A map over two settings: how many runs diverged. On linear problems with independent noise
/// each square also shows the spectral radii of the exact maps of a round, for second moments
/// and for the mean: they stay bounded if the radius is below 1. Squares where runs and theory
/// disagree are marked.
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

fn step_size() -> String {
    "step-size".into()
}

fn local_steps() -> String {
    "local-steps".into()
}

/// The band around a mean over replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// Mean ± standard deviation.
    #[default]
    Std,
    /// Mean ± standard error.
    Sem,
    /// 95 % interval of the mean, by Student's t.
    Ci95,
    /// From the 10 % to the 90 % quantile.
    Quantiles,
    /// No band.
    None,
}

impl Band {
    /// Its name in manifests and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Std => "std",
            Self::Sem => "sem",
            Self::Ci95 => "ci95",
            Self::Quantiles => "quantiles",
            Self::None => "none",
        }
    }
}

/// A prediction that a figure draws with its curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TheoryKind {
    /// The squared exact bias ‖lim E θ_t − θ*‖² (SCAFFLSA, Theorem 4.1).
    ExactBias,
    /// The means that infinitely many replicates would give (linear problems).
    ExactMoments,
    /// The bias to first order in the step size (RR, Theorem 4; SLIDES).
    FirstOrder,
    /// The bias with the next term, which is not divided by N.
    SecondOrder,
    /// The bias by a closure of the equations of the mean, beyond first order.
    Closure,
    /// tr(A⁻¹CA⁻ᵀ)/(NHn), the mean square error of the mean of n iterates with falling step sizes
    /// by the central limit theorem.
    Clt,
    /// The published bounds whose conditions hold.
    Bounds,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}
