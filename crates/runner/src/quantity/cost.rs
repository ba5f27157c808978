//! The costs at which runs are compared, and prices.

use super::{Quantity, QuantityKind};
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

    /// The names of the units.
    pub const NAMES: [&str; Quantity::COSTS.len()] = {
        let mut names = [""; Quantity::COSTS.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Quantity::COSTS[i].name();
            i += 1;
        }
        names
    };

    /// Reads the amount in the unit of this name.
    pub fn read<'de, A: VariantAccess<'de>>(name: &str, most: A) -> Result<Self, A::Error> {
        let unit = Quantity::COSTS.into_iter().find(|unit| unit.name() == name);
        let unit = unit.ok_or_else(|| de::Error::unknown_variant(name, &Self::NAMES))?;
        Ok(Self { unit, most: most.newtype_variant()? })
    }

    /// The choices of a schema, one for each unit.
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

impl<'de> Deserialize<'de> for AtCost {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct CostReader;
        impl<'de> Visitor<'de> for CostReader {
            type Value = AtCost;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cost")
            }
            fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<AtCost, A::Error> {
                let (name, most) = from.variant::<String>()?;
                AtCost::read(&name, most)
            }
        }
        from.deserialize_enum("AtCost", &Self::NAMES, CostReader)
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
/// bandwidth + call × oracle calls of the slowest client of each round.
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
    /// Seconds that an oracle call takes, 0 or more; a batch of B takes B times as long.
    #[schemars(range(min = 0.0), example = 1e-4)]
    pub call: f64,
}

impl Prices {
    /// The simulated seconds of so many communications, bytes sent by all, and oracle calls of the
    /// slowest client of each round.
    pub fn seconds(&self, communications: f64, bytes: f64, calls: f64) -> f64 {
        let sending = self.bandwidth.map_or(0.0, |bandwidth| bytes / bandwidth);
        self.latency * communications + sending + self.call * calls
    }
}
