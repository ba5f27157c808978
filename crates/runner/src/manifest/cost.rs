//! What runs pay, as manifests name it: the quantities that are costs, and the costs at which
//! runs are compared.

use super::{Prices, Quantity};
use exactfed_core::federated::Cost;
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

    /// The units, each with an amount for the documentation.
    const UNITS: [(Quantity, f64); 7] = [
        (Quantity::Communications, 500.0),
        (Quantity::Gradients, 10_000.0),
        (Quantity::LocalSteps, 10_000.0),
        (Quantity::OracleCalls, 100_000.0),
        (Quantity::VectorsSent, 5000.0),
        (Quantity::Bytes, 1e6),
        (Quantity::Seconds, 60.0),
    ];

    /// The choices of a schema, one for each unit.
    pub fn choices(describe: impl Fn(Quantity) -> String) -> impl Iterator<Item = Value> {
        Self::UNITS.into_iter().map(move |(unit, example)| {
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

/// The schema allows one unit.
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

impl Quantity {
    /// The costs of a run.
    pub const COSTS: [Self; 7] = [
        Self::Communications,
        Self::LocalSteps,
        Self::OracleCalls,
        Self::Gradients,
        Self::VectorsSent,
        Self::Bytes,
        Self::Seconds,
    ];

    /// What has been paid in this unit; `None` of a quantity that is measured.
    pub fn of_cost(self, cost: &Cost, prices: &Prices) -> Option<f64> {
        Some(match self {
            Self::Communications => cost.communications as f64,
            Self::LocalSteps => cost.local_steps as f64,
            Self::OracleCalls => cost.oracle_calls as f64,
            Self::Gradients => cost.sequential_calls as f64,
            Self::VectorsSent => cost.vectors_sent as f64,
            Self::Bytes => cost.bytes_sent as f64,
            Self::Seconds => {
                let bytes = prices.bandwidth.map_or(0.0, |rate| cost.bytes_sent as f64 / rate);
                let (latency, call) = (prices.latency, prices.call);
                latency * cost.communications as f64 + bytes + call * cost.sequential_calls as f64
            }
            _ => return None,
        })
    }
}
