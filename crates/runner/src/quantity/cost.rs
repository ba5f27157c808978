//! The costs and targets at which runs are compared, and prices.

use super::{Quantity, QuantityKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A cost at which runs are compared: each run at the last recorded round that costs at most
/// this.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<Quantity, f64>")]
pub struct AtCost {
    /// The unit, one of the costs.
    pub unit: Quantity,
    /// The most that is paid in it, above 0.
    pub most: f64,
}

impl AtCost {
    /// An example for the documentation.
    pub const EXAMPLE: Self = Self { unit: Quantity::Communications, most: 500.0 };

    /// The choices of a schema that takes a cost, a table with one key for each unit. `describe` returns the text of
    /// the reference of manifests for a unit.
    fn choices(describe: impl Fn(Quantity) -> String) -> impl Iterator<Item = Value> {
        Quantity::COSTS.into_iter().map(move |unit| {
            let example = match unit.info().kind {
                QuantityKind::Count(_, example) => example,
                _ => 60.0,
            };
            json!({
                "description": describe(unit),
                "type": "object",
                "properties": {
                    unit.name(): { "type": "number", "format": "double", "examples": [example] }
                },
                "required": [unit.name()],
            })
        })
    }
}

impl Serialize for AtCost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_newtype_variant("AtCost", 0, self.unit.name(), &self.most)
    }
}

/// A table of a manifest has one unit, as its schema says; a table of several would be read by the first of them.
impl TryFrom<BTreeMap<Quantity, f64>> for AtCost {
    type Error = &'static str;
    fn try_from(one: BTreeMap<Quantity, f64>) -> Result<Self, Self::Error> {
        let (unit, most) = one.into_iter().next().ok_or("a cost has a unit")?;
        Ok(Self { unit, most })
    }
}

/// A target of a run: a number to which a quantity comes down, or up if more of it is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Until {
    /// The quantity, which must be recorded.
    #[schemars(example = &"test-accuracy")]
    pub metric: Quantity,
    /// The target, above 0, of an accuracy at most 1.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.9)]
    pub target: f64,
}

impl Until {
    /// Whether a value of the metric meets the target: it is at most the target, or at least if it is an accuracy.
    pub fn is_met(&self, value: f64) -> bool {
        self.metric.meets(value, self.target)
    }

    /// The target in words: "test accuracy is at least 0.9".
    pub fn words(&self) -> String {
        let bound = if self.metric.more_is_better() { "at least" } else { "at most" };
        format!("{} is {bound} {}", self.metric.formula(), self.target)
    }
}

/// Where runs are compared, each run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ComparedAt {
    /// At the first recorded round at which a run has come to a target. What it has paid by then is the cost to reach
    /// the target; of a run that does not reach it this cost is not known.
    Target {
        /// The target.
        until: Until,
    },
    /// At the last recorded round that costs at most this.
    Cost(AtCost),
}

impl ComparedAt {
    /// An example for the documentation.
    pub const EXAMPLE: Self = Self::Cost(AtCost::EXAMPLE);

    /// The target, if runs are compared at one.
    pub fn target(self) -> Option<Until> {
        match self {
            Self::Target { until } => Some(until),
            Self::Cost(_) => None,
        }
    }

    /// The choices of a schema that takes a cost or a target: a table with one key for each unit, or with the key
    /// `until`. The key `at` of claims takes these among other values. `describe` returns the text of the reference of
    /// manifests for a unit.
    pub fn choices(describe: impl Fn(Quantity) -> String) -> impl Iterator<Item = Value> {
        let target = json!({
            "description": "At the first recorded round at which the value of a run comes to a target: down to it, or up to it if the metric is an accuracy. With a cost as the metric that is compared, this is what runs pay until the target; where a run does not reach it, its cost is not known.",
            "type": "object",
            "properties": { "until": { "$ref": "#/$defs/Until" } },
            "required": ["until"],
        });
        AtCost::choices(describe).chain([target])
    }
}

impl JsonSchema for ComparedAt {
    fn schema_name() -> Cow<'static, str> {
        "ComparedAt".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // The choices refer to the definition of a target, which is made here where nothing else has made it.
        generator.subschema_for::<Until>();
        let choices: Vec<Value> = Self::choices(|unit| unit.description().into()).collect();
        schemars::json_schema!({
            "description": "Where runs are compared: each run at the last recorded round that costs at most this, or at the first one at which it has come to a target.",
            "oneOf": choices,
        })
    }
}

/// Prices of the simulated wall clock: seconds = latency × communications + bytes sent by all /
/// bandwidth + call × gradients of the slowest client of each round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Prices {
    /// Seconds that a communication takes in addition to sending its bytes, 0 or more.
    #[schemars(range(min = 0.0), example = 0.05)]
    pub latency: f64,
    /// Bytes per second through the server's link, which all clients share; above 0, by
    /// default without limit.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1e6)]
    pub bandwidth: Option<f64>,
    /// Seconds that a gradient takes, 0 or more; a batch of B takes B times as long.
    #[schemars(range(min = 0.0), example = 1e-4)]
    pub call: f64,
}

impl Prices {
    /// The simulated seconds of a run so far: of this number of communications, of bytes sent in both directions by all
    /// clients, and of gradients (`calls`) of the slowest client of each round.
    pub fn seconds(&self, communications: f64, bytes: f64, calls: f64) -> f64 {
        let sending = self.bandwidth.map_or(0.0, |bandwidth| bytes / bandwidth);
        self.latency * communications + sending + self.call * calls
    }
}
