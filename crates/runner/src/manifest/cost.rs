//! What runs pay, as manifests name it: the quantities that are costs, and the costs at which
//! runs are compared.

use super::{Prices, Quantity};
use exactfed_core::federated::Cost;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, EnumAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// A cost at which runs are compared: each run at the last recorded round that costs at most
/// this.
#[derive(Clone, Copy, Debug, PartialEq)]
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

    /// The names of the units.
    pub const NAMES: [&str; 7] = {
        let mut names = [""; 7];
        let mut i = 0;
        while i < names.len() {
            names[i] = Self::UNITS[i].0.name();
            i += 1;
        }
        names
    };

    /// Reads the amount in the unit of this name.
    pub fn read<'de, A: VariantAccess<'de>>(name: &str, most: A) -> Result<Self, A::Error> {
        let unit = Self::UNITS.iter().find(|(unit, _)| unit.name() == name);
        let (unit, _) = unit.ok_or_else(|| de::Error::unknown_variant(name, &Self::NAMES))?;
        Ok(Self { unit: *unit, most: most.newtype_variant()? })
    }

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

impl<'de> Deserialize<'de> for AtCost {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = AtCost;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cost")
            }
            fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<AtCost, A::Error> {
                let (name, most) = from.variant::<String>()?;
                AtCost::read(&name, most)
            }
        }
        from.deserialize_enum("AtCost", &Self::NAMES, Reader)
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
