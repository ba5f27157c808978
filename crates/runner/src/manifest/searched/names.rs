//! Algorithms of frontiers as manifests write them: a name, or a kind with the values of its keys.

use exactfed_core::algorithm::{Family, Spec};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A name for an algorithm with some of its settings.
pub struct AlgorithmVariant {
    /// Its name in manifests and tables.
    pub name: &'static str,
    /// Its name on pages.
    pub label: &'static str,
    /// Its family, which is its colour on pages.
    pub family: Family,
    /// What the variant does, for the reference of manifests.
    description: &'static str,
    /// The kind of the algorithm in `[[algorithm.<kind>]]`.
    pub(super) kind: &'static str,
    /// The keys that the variant sets, with their values.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    /// The keys of which several values are tried, unless the manifest writes others.
    pub(super) tried: &'static [(&'static str, &'static [f64])],
    /// Whether the variant has a number of local steps, over which the frontier searches.
    pub(super) has_local_steps: bool,
}

/// The name of SGD, of whose gradients budgets are multiples.
pub const SGD: &str = "sgd";

/// The key of the server step, which figures and tables treat apart from other settings.
pub(super) const SERVER_STEP: &str = "server-step";

/// All variants. Other algorithms have the names of their kinds.
pub const VARIANTS: [AlgorithmVariant; 4] = [
    AlgorithmVariant {
        name: SGD,
        label: "SGD",
        family: Family::Sgd,
        description: "One local step with a batch of one draw, then a communication.",
        kind: "minibatch-sgd",
        fixed: &[],
        tried: &[],
        has_local_steps: false,
    },
    AlgorithmVariant {
        name: "fedavg-server-step",
        label: "FedAvg, server step",
        family: Family::Others,
        description: "FedAvg whose server goes a multiple of the way to the clients' mean; the multiple is tuned.",
        kind: "fedavg",
        fixed: &[],
        tried: &[(SERVER_STEP, &[1.0, 2.0, 4.0, 8.0, 32.0, 128.0])],
        has_local_steps: true,
    },
    AlgorithmVariant {
        name: "richardson-romberg-independent",
        label: "Richardson-Romberg, own draws",
        family: Family::Others,
        description: "Richardson-Romberg extrapolation whose runs have draws of their own.",
        kind: "richardson-romberg",
        fixed: &[("coupling", "independent")],
        tried: &[],
        has_local_steps: true,
    },
    AlgorithmVariant {
        name: "scaffold-rr",
        label: "Scaffold-RR",
        family: Family::Scaffold,
        description: "Two runs of Scaffold on common draws, extrapolated and both paid for.",
        kind: "richardson-romberg",
        fixed: &[("over", "scaffold")],
        tried: &[],
        has_local_steps: true,
    },
];

/// The variant of this name.
pub fn variant(name: &str) -> Option<&'static AlgorithmVariant> {
    VARIANTS.iter().find(|variant| variant.name == name)
}

/// The name of an algorithm of a frontier.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AlgorithmName(String);

impl fmt::Debug for AlgorithmName {
    /// The name alone, as lists of what may be wrong have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AlgorithmName {
    /// The name, as manifests write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An algorithm of a frontier as it is written: a name, or a kind with the values of its keys.
#[derive(Clone, Debug)]
pub struct WrittenAlgorithm {
    /// A variant, or the kind of an algorithm.
    name: String,
    /// The keys whose values are tried and their values, by name.
    pub(super) tried: Vec<(String, Vec<f64>)>,
}

impl WrittenAlgorithm {
    /// The algorithm of this name without values of keys: those of its variant, if it is one, are tried.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), tried: Vec::new() }
    }

    /// Its name in manifests and tables.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// One value of a key, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenValues {
    One(f64),
    All(Vec<f64>),
}

impl<'de> Deserialize<'de> for WrittenAlgorithm {
    /// Reads a name, or a table with one kind and the values of its keys.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NameOrKeys {
            Name(String),
            Keys(BTreeMap<String, BTreeMap<String, WrittenValues>>),
        }
        let wrong = "an algorithm must be a name, or one kind with the values of its keys";
        let kinds = match NameOrKeys::deserialize(from) {
            Ok(NameOrKeys::Name(name)) => return Ok(Self::named(&name)),
            Ok(NameOrKeys::Keys(kinds)) if kinds.len() == 1 => kinds,
            _ => return Err(serde::de::Error::custom(wrong)),
        };
        let mut written = Self::named("");
        for (kind, keys) in kinds {
            written.name = kind;
            for (key, values) in keys {
                let values = match values {
                    WrittenValues::One(value) => vec![value],
                    WrittenValues::All(values) => values,
                };
                written.tried.push((key, values));
            }
        }
        Ok(written)
    }
}

impl Serialize for WrittenAlgorithm {
    /// Its name, which the default in the schema has.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

/// The schemas of all names that frontiers may give algorithms, with their descriptions: variants, kinds of built-in
/// algorithms, and any string for the kind of a custom one.
fn name_schemas() -> Vec<Schema> {
    let variants = VARIANTS
        .iter()
        .map(|variant| json_schema!({ "const": variant.name, "description": variant.description }));
    let kinds = Spec::ALL.iter().map(|info| {
        let description = format!("As `[[algorithm.{}]]`: {}.", info.kind, info.name);
        json_schema!({ "const": info.kind, "description": description })
    });
    let own = json_schema!({
        "type": "string",
        "description": "The kind of an algorithm that is defined in Python or Rust.",
    });
    variants.chain(kinds).chain([own]).collect()
}

impl JsonSchema for AlgorithmName {
    fn schema_name() -> Cow<'static, str> {
        "AlgorithmName".into()
    }

    /// A string. The reader of manifests takes any, since it may be the kind of a custom algorithm, and unknown names
    /// are noted later; the known ones are listed for docs/MANIFEST.md and for editors.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of an algorithm of a frontier.",
            "anyOf": name_schemas(),
        })
    }
}

impl JsonSchema for WrittenAlgorithm {
    fn schema_name() -> Cow<'static, str> {
        "FrontierAlgorithm".into()
    }

    /// A name, or a table with a name as its key. By this schema the reader of manifests tells the two apart; whether
    /// the table has one key, and the algorithm these settings, is checked later.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<AlgorithmName>();
        let values = json_schema!({
            "anyOf": [{ "type": "number" }, { "type": "array", "items": { "type": "number" } }],
        });
        let keys = json_schema!({
            "type": "object",
            "maxProperties": 1,
            "additionalProperties": { "type": "object", "additionalProperties": values },
            "description": "A name with the values of keys that are tried, such as `{ fedprox = { proximal = [0.1, 1.0] } }`.",
        });
        json_schema!({ "anyOf": [name, keys] })
    }
}
