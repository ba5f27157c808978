//! `[[claim.<kind>]]`: statements that are tested against the results. Claims
//! change no number; a report gives a verdict on each.

use super::frontier::{FrontierConstantKeys, FrontierLessKeys, FrontierSlopeKeys};
use super::{AtCost, Prediction, Quantity, TimeAverage};
use exactfed_core::flattened::Flattened;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Examples for the documentation.
const EXAMPLE_STATEMENTS: [&str; 1] = ["RR Theorem 1"];

/// Keys of every `[[claim.<kind>]]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimKeys {
    /// Name of the claim, which no other claim of the manifest has.
    #[schemars(example = &"scaffold-below-fedavg")]
    pub id: String,
    /// What is claimed, in a sentence.
    #[schemars(example = &"Scaffold goes on where FedAvg stops at its bias")]
    pub statement: String,
    /// Where it is claimed.
    #[schemars(example = &"RR, section 7")]
    pub source: Option<String>,
    /// The statements of the registered sources that it is about, by name: the page says whether
    /// its cells meet their conditions.
    #[serde(default)]
    #[schemars(example = EXAMPLE_STATEMENTS)]
    pub statements: Vec<String>,
    /// Id of the figure that shows it.
    #[schemars(example = &"fig1")]
    pub figure: Option<String>,
    /// The verdict that is expected; all but `supported` need a `reason`. If a claim ends
    /// otherwise, refuted or not tested for instance, `report` exits with code 1.
    #[serde(default)]
    pub expected: Expected,
    /// Why it is not expected to be supported.
    #[schemars(example = &"the printed sign is wrong")]
    pub reason: Option<String>,
    /// Name of a disagreement between or within sources that the claim bears on.
    #[schemars(example = &"RR Table 1, sign of the stochasticity bias")]
    pub dispute: Option<String>,
    /// The side of the dispute that it states.
    #[schemars(example = &"minus (SLIDES, RR second version)")]
    pub side: Option<String>,
}

/// `[[claim.less]]` and `[[claim.at-least]]`
pub type Inequality = Flattened<ClaimKeys, ComparisonKeys>;
/// `[[claim.slope]]`
pub type Slope = Flattened<ClaimKeys, SlopeKeys>;
/// `[[claim.matches]]`
pub type Matches = Flattened<ClaimKeys, MatchesKeys>;
/// `[[claim.reaches]]`
pub type Reaches = Flattened<ClaimKeys, ReachesKeys>;
/// `[[claim.frontier-slope]]`
pub type FrontierSlope = Flattened<ClaimKeys, FrontierSlopeKeys>;
/// `[[claim.frontier-constant]]`
pub type FrontierConstant = Flattened<ClaimKeys, FrontierConstantKeys>;
/// `[[claim.frontier-less]]`
pub type FrontierLess = Flattened<ClaimKeys, FrontierLessKeys>;

/// The mean of a metric is at most (`less`) or at least (`at-least`) `factor` times that of
/// other cells, a prediction or a number. Cells of both sides are paired by the label and the
/// settings that the selections leave open, and the claim must hold for every pair.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ComparisonKeys {
    /// The quantity that is compared.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells of which it is claimed.
    #[schemars(example = Selection::example("Scaffold"))]
    pub left: Selection,
    /// The cells that they are compared with; or
    #[schemars(example = Selection::example("FedAvg"))]
    pub right: Option<Selection>,
    /// a prediction of theory for the same cells; or
    pub prediction: Option<Prediction>,
    /// a number.
    #[schemars(example = 0.01)]
    pub value: Option<f64>,
    /// Factor on the right side, above 0.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.5)]
    pub factor: f64,
    /// When they are compared.
    #[serde(default)]
    pub at: When,
}

/// The slope of the logarithm of a metric's mean over that of a setting is `value`, up to
/// `margin`. Cells that differ in the label or in another setting have separate slopes, and the
/// claim must hold for each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlopeKeys {
    /// The quantity whose slope is taken.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells.
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// The setting along which the slope is taken, a number in every cell.
    #[schemars(example = &"step-size")]
    pub over: String,
    /// The slope that is claimed.
    #[schemars(example = 1.0)]
    pub value: f64,
    /// How far the slope may be from it, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub margin: f64,
    /// Takes the slope of what it costs to bring the mean of the metric down to a target.
    pub reaching: Option<Reaching>,
    /// When the metric is measured.
    #[serde(default)]
    pub at: When,
}

/// The mean of a metric, or of a vector that is averaged over rounds, equals a prediction, that
/// of other cells or a number up to a relative margin: an equivalence test, for every cell or
/// pair.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MatchesKeys {
    /// The quantity that is measured; or
    pub metric: Option<Quantity>,
    /// a vector, compared in norm; by default the metric `sq-error`.
    pub average: Option<TimeAverage>,
    /// The cells.
    #[schemars(example = Selection::example("FedAvg"))]
    pub of: Selection,
    /// A prediction of theory for them; or
    pub prediction: Option<Prediction>,
    /// other cells; or
    #[schemars(example = Selection::example("Scaffold"))]
    pub right: Option<Selection>,
    /// a number.
    #[schemars(example = 0.01)]
    pub value: Option<f64>,
    /// The relative margin, above 0; with `order`, at the smallest value of
    /// the setting.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub margin: f64,
    /// Order of the remainder: the margin grows with this power of `over`.
    #[schemars(example = 1.0)]
    pub order: Option<f64>,
    /// The setting that the remainder is a power of.
    #[schemars(example = &"step-size")]
    pub over: Option<String>,
    /// When it is measured.
    #[serde(default)]
    pub at: When,
}

/// The mean of a metric comes down to a target within a cost: a number, or the number of rounds
/// after which a published bound is below the target.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReachesKeys {
    /// The quantity that must come down.
    #[serde(default)]
    pub metric: Quantity,
    /// The cells.
    #[schemars(example = Selection::example("SCAFFLSA"))]
    pub of: Selection,
    /// Target and cost.
    pub reaching: Reaching,
    /// The most that it may cost; or
    #[schemars(example = 500.0)]
    pub within: Option<f64>,
    /// the rounds after which this published bound is below the target, with the constants of the
    /// instance.
    pub prediction: Option<Prediction>,
}

fn one() -> f64 {
    1.0
}

/// All claims of a manifest.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ClaimTables {
    /// A metric is at most another.
    pub less: Vec<Inequality>,
    /// A metric is at least another.
    pub at_least: Vec<Inequality>,
    /// The slope of a metric over a setting.
    pub slope: Vec<Slope>,
    /// A metric or a vector against a prediction.
    pub matches: Vec<Matches>,
    /// The cost to reach a target.
    pub reaches: Vec<Reaches>,
    /// The slope of a frontier over the target.
    pub frontier_slope: Vec<FrontierSlope>,
    /// A frontier against powers of N and ε.
    pub frontier_constant: Vec<FrontierConstant>,
    /// A frontier below another.
    pub frontier_less: Vec<FrontierLess>,
}

impl ClaimTables {
    /// The common keys of all claims, with the claims' paths in the manifest.
    pub fn all(&self) -> Vec<(String, &ClaimKeys)> {
        fn with_paths<'t, T>(
            kind: &'static str,
            claims: &'t [Flattened<ClaimKeys, T>],
        ) -> impl Iterator<Item = (String, &'t ClaimKeys)> {
            let claims = claims.iter().enumerate();
            claims.map(move |(i, claim)| (format!("claim.{kind}.{i}"), &claim.common))
        }
        with_paths("less", &self.less)
            .chain(with_paths("at-least", &self.at_least))
            .chain(with_paths("slope", &self.slope))
            .chain(with_paths("matches", &self.matches))
            .chain(with_paths("reaches", &self.reaches))
            .chain(with_paths("frontier-slope", &self.frontier_slope))
            .chain(with_paths("frontier-constant", &self.frontier_constant))
            .chain(with_paths("frontier-less", &self.frontier_less))
            .collect()
    }
}

/// What is expected of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// The data support it.
    #[default]
    Supported,
    /// The data refute it, for the given reason.
    Refuted,
    /// It cannot be tested, for the given reason.
    NotTested,
}

/// When a metric is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = When::add_costs)]
pub enum When {
    /// At the last round.
    #[default]
    End,
    /// At the recorded round closest to this one.
    Round(u64),
    /// The mean over the recorded rounds of the second half, run by run.
    Stationary,
    /// At every recorded round but the first; the claim must hold at each.
    EveryRound,
    /// At the last recorded round of each run that costs at most this.
    #[serde(untagged)]
    #[schemars(skip, !untagged)]
    Cost(AtCost),
}

impl When {
    /// The cost at which the metric is measured, if it is at one.
    pub fn cost(self) -> Option<AtCost> {
        match self {
            Self::Cost(at) => Some(at),
            _ => None,
        }
    }

    fn add_costs(schema: &mut schemars::Schema) {
        let text = |unit: Quantity| {
            let unit = unit.formula();
            format!("At the last recorded round of each run that costs at most so many {unit}.")
        };
        if let Some(serde_json::Value::Array(choices)) = schema.get_mut("oneOf") {
            choices.extend(AtCost::choices(text));
        }
    }
}

/// A target, and the unit of the cost to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Reaching {
    /// The target, above 0; multiplied by the value of the setting `per`, if it is given.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub target: f64,
    /// A setting that the target is a multiple of.
    #[schemars(example = &"step-size")]
    pub per: Option<String>,
    /// The unit of the cost.
    #[serde(default = "communications")]
    pub cost: Quantity,
}

fn communications() -> Quantity {
    Quantity::Communications
}

/// Cells by their label and their settings: `{ label = "FedAvg", local-steps = 10 }`. A list
/// selects several values, and a text selects tables whose text begins with it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Selection(pub BTreeMap<String, Scalar>);

impl Selection {
    fn example(label: &str) -> serde_json::Value {
        serde_json::json!({ "label": label })
    }
}

/// A value in a selection. The reader makes a text of a flag.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A name or a flag.
    Text(String),
    /// Any of these.
    Any(Vec<Scalar>),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::Any(all) => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(" or "))
            }
        }
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["number", "string", "boolean", "array"] })
    }
}
