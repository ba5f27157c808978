//! `[[figure.<kind>]]`: what a report draws. Figures change no number.

use super::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All figures of a manifest; where there is none, reports draw the squared error of every
/// cell over communications.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Table {
    /// Curves of a metric over a cost.
    pub convergence: Vec<Convergence>,
    /// A metric at the end over a setting.
    pub scaling: Vec<Scaling>,
    /// Which algorithm wins, over two settings.
    pub winners: Vec<Winners>,
    /// Where runs diverge, over two settings.
    pub stability: Vec<Stability>,
}

/// `[[figure.convergence]]`: a curve per cell, a panel per value of `panels`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Convergence {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// What is drawn: any quantity that is recorded.
    #[serde(default)]
    pub y: Quantity,
    /// Against what: any quantity that is recorded.
    #[serde(default = "communications")]
    pub x: Quantity,
    /// What the band around a mean is.
    #[serde(default)]
    pub band: Band,
    /// Predictions to draw beside the curves.
    #[serde(default)]
    pub theory: Vec<Theory>,
    /// Labels of the algorithms that are drawn; all by default.
    #[serde(default)]
    #[schemars(example = EXAMPLE_LABELS)]
    pub labels: Vec<String>,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    #[schemars(example = EXAMPLE_PANELS)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
    /// Scale of the x axis.
    #[serde(default)]
    pub scale_x: Scale,
}

impl Default for Convergence {
    fn default() -> Self {
        Self {
            id: None,
            title: None,
            y: Quantity::default(),
            x: communications(),
            band: Band::default(),
            theory: Vec::new(),
            labels: Vec::new(),
            panels: Vec::new(),
            columns: None,
            scale_x: Scale::default(),
        }
    }
}

/// Examples for the documentation.
const EXAMPLE_LABELS: [&str; 1] = ["FedAvg"];
const EXAMPLE_PANELS: [&str; 1] = ["local-steps"];
const EXAMPLE_MAPS: [&str; 1] = ["clients"];

fn communications() -> Quantity {
    Quantity::Communications
}

fn logarithmic() -> Scale {
    Scale::Log
}

/// `[[figure.scaling]]`: a curve per algorithm of a final metric over a setting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Scaling {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// What is drawn: any quantity that is recorded, at the last round.
    #[serde(default)]
    pub y: Quantity,
    /// A setting whose values are numbers, or any quantity that is recorded, at
    /// the last round (its mean over the runs). `path-length` is γH, H the
    /// largest E_k or 1/p.
    #[schemars(example = &"step-size")]
    pub x: String,
    /// What the band around a mean is.
    #[serde(default)]
    pub band: Band,
    /// Slope of a dotted line, on log axes, through the first curve's first point.
    #[serde(default)]
    #[schemars(example = -1.0)]
    pub reference_slope: Option<f64>,
    /// Predictions to draw beside the curves.
    #[serde(default)]
    pub theory: Vec<Theory>,
    /// Scale of the x axis.
    #[serde(default = "logarithmic")]
    pub scale_x: Scale,
    /// Labels of the algorithms that are drawn; all by default.
    #[serde(default)]
    #[schemars(example = EXAMPLE_LABELS)]
    pub labels: Vec<String>,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    #[schemars(example = EXAMPLE_PANELS)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
}

/// `[[figure.winners]]`: a map over two settings of which algorithm has the
/// smallest mean of a final metric, by what factor, and how sure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Winners {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// What must be small: any quantity that is recorded, at the last round.
    #[serde(default)]
    pub metric: Quantity,
    /// The setting across.
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The setting upwards.
    #[schemars(example = &"local-steps")]
    pub y: String,
    /// Labels of the algorithms that are drawn; all by default.
    #[serde(default)]
    #[schemars(example = EXAMPLE_LABELS)]
    pub labels: Vec<String>,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    #[schemars(example = EXAMPLE_PANELS)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
}

/// `[[figure.stability]]`: a map over two settings of how many runs diverged, a panel
/// per algorithm and value of `panels`. On linear problems with independent noise each
/// square also tells the spectral radius of a round's exact map of second moments, and
/// of the mean's: below 1 they stay bounded. Where runs and theory differ it is marked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Stability {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    #[schemars(example = &"fig1")]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    #[schemars(example = &"Figure 1")]
    pub title: Option<String>,
    /// The setting across.
    #[serde(default = "step_size")]
    #[schemars(example = &"step-size")]
    pub x: String,
    /// The setting upwards.
    #[serde(default = "local_steps")]
    #[schemars(example = &"local-steps")]
    pub y: String,
    /// Labels of the algorithms that are drawn; all by default.
    #[serde(default)]
    #[schemars(example = EXAMPLE_LABELS)]
    pub labels: Vec<String>,
    /// Settings that tell panels apart, outermost first, beside the algorithm.
    #[serde(default)]
    #[schemars(example = EXAMPLE_MAPS)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    #[schemars(range(min = 1), example = 2)]
    pub columns: Option<usize>,
}

fn step_size() -> String {
    "step-size".into()
}

fn local_steps() -> String {
    "local-steps".into()
}

/// What the band around a mean is, over replicates.
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

/// A prediction beside a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Theory {
    /// ‖lim E θ_t − θ*‖² (SCAFFLSA Thm 4.1).
    ExactBias,
    /// What infinitely many replicates would give (linear problems).
    ExactMoments,
    /// The bias to first order in the step size (RR Thm 4, SLIDES).
    FirstOrder,
    /// The same with the next term, which is not divided by N.
    SecondOrder,
    /// The bias by a closure beyond first order.
    Closure,
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
