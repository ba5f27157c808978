//! The costs at which runs are compared, and prices.

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

    /// The choices of a schema that takes a cost, a table with one key for each unit. The key `at` of claims takes
    /// these among other values. `describe` returns the text of the reference of manifests for a unit.
    pub fn choices(describe: impl Fn(Quantity) -> String) -> impl Iterator<Item = Value> {
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

impl JsonSchema for AtCost {
    fn schema_name() -> Cow<'static, str> {
        "AtCost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let choices: Vec<Value> = Self::choices(|unit| unit.description().into()).collect();
        schemars::json_schema!({
            "description": "A cost at which runs are compared: each run at the last recorded round that costs at most this.",
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
