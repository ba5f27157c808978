//! `[[figure.<kind>]]`: what a report draws. Figures change no number.

use serde::{Deserialize, Serialize};

/// All figures of a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Table {
    /// Curves of a metric over a cost.
    pub convergence: Vec<Convergence>,
    /// A metric at the end over a setting.
    pub scaling: Vec<Scaling>,
    /// Which algorithm wins, over two settings.
    pub winners: Vec<Winners>,
}

/// `[[figure.convergence]]`: a curve per cell, a panel per value of `panels`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Convergence {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    pub title: Option<String>,
    /// The metric.
    #[serde(default)]
    pub y: Metric,
    /// The cost.
    #[serde(default)]
    pub x: CostAxis,
    /// What the band around a mean is.
    #[serde(default)]
    pub band: Band,
    /// Predictions to draw beside the curves.
    #[serde(default)]
    pub theory: Vec<Theory>,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    pub columns: Option<usize>,
    /// Scale of the x axis.
    #[serde(default)]
    pub scale_x: Scale,
}

/// `[[figure.scaling]]`: a curve per algorithm of a final metric over a setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scaling {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    pub title: Option<String>,
    /// The metric, at the last round.
    #[serde(default)]
    pub y: Metric,
    /// The setting; its values must be numbers.
    pub x: String,
    /// What the band around a mean is.
    #[serde(default)]
    pub band: Band,
    /// Slope of a dotted line, on log axes, through the first curve's first point.
    #[serde(default)]
    pub reference_slope: Option<f64>,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    pub columns: Option<usize>,
}

/// `[[figure.winners]]`: a map over two settings of which algorithm has the
/// smallest mean of a final metric, by what factor, and how sure.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Winners {
    /// Name of the figure's file; by default its kind and number.
    #[serde(default)]
    pub id: Option<String>,
    /// Heading; by default made from what is drawn.
    #[serde(default)]
    pub title: Option<String>,
    /// The metric, at the last round.
    #[serde(default)]
    pub metric: Metric,
    /// The setting across.
    pub x: String,
    /// The setting upwards.
    pub y: String,
    /// Settings that tell panels apart, outermost first.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Panels in a row.
    #[serde(default)]
    pub columns: Option<usize>,
}

/// What is measured of an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// ‖θ_t − θ*‖².
    #[default]
    SqError,
    /// ‖θ_t − lim E θ_t‖²: the error less the exact bias (linear problems).
    SqErrorLimit,
}

/// What a run has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostAxis {
    /// Rounds.
    #[default]
    Communications,
    /// Local steps of one client.
    LocalSteps,
    /// Oracle evaluations of all clients.
    OracleCalls,
    /// Vectors sent by all, up and down.
    VectorsSent,
}

/// What the band around a mean is, over replicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// A prediction beside a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theory {
    /// ‖lim E θ_t − θ*‖² (SCAFFLSA Thm 4.1).
    ExactBias,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}
