//! The algorithms of frontiers: their names, and the values of their settings that are tried.

use super::entries;
use super::schema::ManifestSchema;
use exactfed_core::algorithm::minibatch_sgd::MinibatchSgd;
use exactfed_core::algorithm::{AlgorithmInfo, Family, Settings, Spec};
use exactfed_core::round_program::RoundSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// A name for an algorithm with some of its settings.
pub struct AlgorithmVariant {
    /// Its name in manifests and tables.
    pub name: &'static str,
    /// Its name on pages.
    pub label: &'static str,
    /// Its family, which is its colour on pages.
    pub family: Family,
    /// What it does.
    description: &'static str,
    /// The kind of the algorithm.
    kind: &'static str,
    /// The keys that have one value.
    fixed: &'static [(&'static str, &'static str)],
    /// The keys whose values are tried.
    tried: &'static [(&'static str, &'static [f64])],
    /// Whether the number of local steps is a setting.
    has_local_steps: bool,
}

/// The name of SGD, of whose gradients budgets are multiples.
pub const SGD: &str = "sgd";

/// The key of the server step, by which figures and tables know it.
const SERVER_STEP: &str = "server-step";

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
    name: String,
    tried: Vec<(String, Vec<f64>)>,
}

impl WrittenAlgorithm {
    /// The algorithm of this name, with the usual values of its keys.
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

/// The schemas of all names, with descriptions: those of variants, then those of kinds.
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

/// A setting of which several values are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedSetting {
    /// Its key in manifests.
    pub key: String,
    /// The values, in the order in which they are tried.
    pub values: Vec<f64>,
}

/// An algorithm of a frontier. A frontier has each name once.
#[derive(Clone, Debug)]
pub struct SearchedAlgorithm {
    /// Its name in manifests and tables.
    pub name: String,
    /// Its name on pages.
    pub label: String,
    /// The settings beyond γ and H of which several values are tried.
    pub tried: Vec<TriedSetting>,
    /// The settings of each choice among these values. Their γ and H are not those of the search.
    pub choices: Vec<Spec>,
    /// Whether the number of local steps is a setting.
    pub has_local_steps: bool,
}

impl PartialEq for SearchedAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What is wrong with an algorithm of a frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedFault {
    /// Its place in the list.
    pub place: usize,
    /// What is wrong.
    pub message: String,
    /// A name that is not known, and those that are.
    pub unknown: Option<(String, Vec<String>)>,
}

/// Reads the algorithms of a frontier.
pub fn read_all(
    written: &[WrittenAlgorithm],
    schema: &ManifestSchema,
) -> (Vec<SearchedAlgorithm>, Vec<SearchedFault>) {
    let mut all = Vec::new();
    let mut faults = Vec::new();
    for (place, one) in written.iter().enumerate() {
        match SearchedReader::new(one, schema, place).read() {
            Ok(algorithm) => all.push(algorithm),
            Err(wrong) => faults.extend(wrong),
        }
    }
    (all, faults)
}

/// Reads an algorithm of a frontier.
struct SearchedReader<'a> {
    written: &'a WrittenAlgorithm,
    schema: &'a ManifestSchema,
    place: usize,
    variant: Option<&'static AlgorithmVariant>,
    kind: &'a str,
    info: Option<&'static AlgorithmInfo>,
    faults: Vec<SearchedFault>,
}

impl<'a> SearchedReader<'a> {
    fn new(written: &'a WrittenAlgorithm, schema: &'a ManifestSchema, place: usize) -> Self {
        let variant = variant(&written.name);
        let kind = variant.map_or(written.name.as_str(), |variant| variant.kind);
        let info = Spec::ALL.iter().find(|info| info.kind == kind);
        Self { written, schema, place, variant, kind, info, faults: Vec::new() }
    }

    fn fault(&mut self, message: String) {
        self.faults.push(SearchedFault { place: self.place, message, unknown: None });
    }

    fn unknown(&mut self, message: String, name: &str, known: Vec<String>) {
        let unknown = Some((name.to_owned(), known));
        self.faults.push(SearchedFault { place: self.place, message, unknown });
    }

    fn read(mut self) -> Result<SearchedAlgorithm, Vec<SearchedFault>> {
        let own = self.schema.registry.algorithms.get(self.kind);
        if own.is_none() && self.info.is_none() {
            let variants = VARIANTS.iter().map(|variant| variant.name);
            let names = variants.chain(Spec::KINDS.iter().copied()).map(str::to_owned).collect();
            let name = &self.written.name;
            self.unknown(format!("no algorithm is called \"{name}\""), name, names);
            return Err(self.faults);
        }
        let tried = self.tried();
        let has_local_steps = match self.variant {
            Some(variant) => variant.has_local_steps,
            None => self.local_steps_key().is_some(),
        };
        let mut choices = Vec::new();
        if self.faults.is_empty() {
            choices = self.choices(&tried);
        }
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let label = match (self.variant, own, self.info) {
            (Some(variant), ..) => variant.label,
            (None, Some(own), _) => &own.known.definition.name,
            (None, None, info) => info.map_or(self.kind, |info| info.name),
        };
        Ok(SearchedAlgorithm {
            name: self.written.name.clone(),
            label: label.to_owned(),
            tried,
            choices,
            has_local_steps,
        })
    }

    /// The key with the number of local steps, if the kind has one.
    fn local_steps_key(&self) -> Option<&'static str> {
        let key = self.info.map_or("local-steps", |info| (info.local_steps_key)());
        self.table()["properties"].get(key).map(|_| key)
    }

    /// The values that are tried: those that are written, and those of a variant of which nothing is written.
    fn tried(&mut self) -> Vec<TriedSetting> {
        let mut tried = Vec::new();
        for (key, values) in &self.written.tried {
            self.check_values(key, values);
            tried.push(TriedSetting { key: key.clone(), values: values.clone() });
        }
        for (key, values) in self.variant.map_or(&[] as &[_], |variant| variant.tried) {
            if tried.iter().all(|setting| setting.key != *key) {
                tried.push(TriedSetting { key: (*key).to_owned(), values: values.to_vec() });
            }
        }
        tried
    }

    /// The schema of the tables of the kind.
    fn table(&self) -> &'a serde_json::Value {
        let entry = self.schema.at(&format!("algorithm.{}", self.kind));
        entry.map_or(&serde_json::Value::Null, |entry| self.schema.resolve(entry))
    }

    /// Notes what is wrong with the values of a key.
    fn check_values(&mut self, key: &str, values: &[f64]) {
        let name = &self.written.name;
        if key == "step-size" || Some(key) == self.local_steps_key() {
            let message = format!("the frontier itself searches `{key}` of `{name}`");
            return self.fault(message);
        }
        let keys = self.table()["properties"].as_object();
        let Some(schema) = keys.and_then(|keys| keys.get(key)) else {
            let searched = ["label", "average", "step-size", "local-steps"];
            let keys = keys.into_iter().flat_map(|keys| keys.keys().map(String::as_str));
            let keys =
                keys.filter(|key| !searched.contains(key) && Some(*key) != self.local_steps_key());
            let known = keys.map(str::to_owned).collect();
            return self.unknown(format!("`{name}` has no key `{key}`"), key, known);
        };
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return self.fault(format!("`{key}` must have finite numbers, at least one"));
        }
        let is_whole = |value: &f64| value.fract() == 0.0 && *value >= 0.0;
        let has_such_values = match self.schema.resolve(schema)["type"].as_str() {
            Some("integer") => values.iter().all(is_whole),
            Some("number") => true,
            Some(_) => false,
            // A whole number or a fraction.
            None => self.schema.resolve(schema)["anyOf"].as_array().is_some(),
        };
        if !has_such_values {
            self.fault(format!("`{key}` of `{name}` has no such values"));
        }
    }

    /// The settings of each choice among the tried values.
    fn choices(&mut self, tried: &[TriedSetting]) -> Vec<Spec> {
        let number = tried.iter().map(|setting| setting.values.len()).product();
        let mut choices = Vec::new();
        for choice in 0..number {
            match self.choice(&settings_of(tried, choice)) {
                Ok(spec) => choices.push(spec),
                Err(message) => {
                    self.fault(message);
                    break;
                }
            }
        }
        choices
    }

    fn choice(&self, settings: &[(&str, f64)]) -> Result<Spec, String> {
        let mut table = Table::new();
        table.insert("step-size".into(), Value::Float(1.0));
        if let Some(key) = self.local_steps_key() {
            table.insert(key.into(), Value::Integer(1));
        }
        for (key, value) in self.variant.map_or(&[] as &[_], |variant| variant.fixed) {
            table.insert((*key).into(), Value::String((*value).into()));
        }
        let properties = &self.table()["properties"];
        for (key, value) in settings {
            let is_number = properties[*key]["type"] == "number";
            let is_whole = !is_number && value.fract() == 0.0;
            let value = if is_whole { Value::Integer(*value as i64) } else { Value::Float(*value) };
            table.insert((*key).to_owned(), value);
        }
        let required = self.table()["required"].as_array().into_iter().flatten();
        for key in required.filter_map(serde_json::Value::as_str) {
            if !table.contains_key(key) {
                return Err(format!(
                    "`{}` needs values of `{key}`: write {{ {} = {{ {key} = [ … ] }} }}",
                    self.written.name, self.written.name
                ));
            }
        }
        let spec = entries::algorithm(
            &format!("algorithm.{}.0", self.kind),
            Value::Table(table),
            self.schema,
        )?;
        match spec.check().into_iter().next() {
            Some(fault) => {
                Err(format!("`{}` of `{}` {}", fault.key, self.written.name, fault.message))
            }
            None => Ok(spec),
        }
    }
}

/// The values of a choice: the first setting changes from one choice to the next.
fn settings_of(tried: &[TriedSetting], choice: usize) -> Vec<(&str, f64)> {
    let mut rest = choice;
    let mut settings = Vec::new();
    for TriedSetting { key, values } in tried {
        settings.push((key.as_str(), values[rest % values.len()]));
        rest /= values.len();
    }
    settings
}

impl SearchedAlgorithm {
    /// SGD: one step in each round.
    pub fn sgd() -> Self {
        let own = MinibatchSgd { batch: 1, cohort: None };
        Self {
            name: SGD.to_owned(),
            label: "SGD".to_owned(),
            tried: Vec::new(),
            choices: vec![Spec::MinibatchSgd(Settings::plain(1.0, own))],
            has_local_steps: false,
        }
    }

    /// The further settings of a choice, by key.
    pub fn settings(&self, choice: usize) -> Vec<(&str, f64)> {
        settings_of(&self.tried, choice)
    }

    /// The algorithm with these settings.
    pub fn spec(&self, settings: &RoundSettings) -> Spec {
        self.choices[settings.choice].with_scale(settings.step_size, settings.local_steps)
    }

    /// The server step of a choice, if that is what is tried, and 1 otherwise.
    pub fn server_step(&self, choice: usize) -> f64 {
        let settings = self.settings(choice);
        settings.iter().find(|(key, _)| *key == SERVER_STEP).map_or(1.0, |(_, value)| *value)
    }

    /// What tables call a key of a further setting.
    pub fn setting_words(&self, key: &str) -> String {
        if self.is_own() { key.to_owned() } else { key.replace('-', " ") }
    }

    /// Whether a choice has the largest of several server steps.
    pub fn has_largest_server_step(&self, choice: usize) -> bool {
        let steps = self.tried.iter().find(|setting| setting.key == SERVER_STEP);
        steps.is_some_and(|steps| {
            let most = steps.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            steps.values.len() > 1 && self.server_step(choice) == most
        })
    }

    /// Whether what is called local steps are the gradients of one batch.
    pub fn counts_batches(&self) -> bool {
        let info = self.choices.first().and_then(Spec::info);
        self.has_local_steps && info.is_some_and(|info| (info.local_steps_key)() == "batch")
    }

    /// Whether it has several runs on common draws.
    pub fn shares_draws(&self) -> bool {
        self.choices.iter().any(Spec::shares_draws)
    }

    /// The largest number of runs of which a choice's estimate is a combination.
    pub fn most_runs(&self) -> usize {
        self.choices.iter().map(|spec| spec.components().len()).max().unwrap_or(1)
    }

    /// Whether it is defined outside of the program.
    pub fn is_own(&self) -> bool {
        self.choices.iter().any(Spec::is_own)
    }

    /// Its kind, if there is no code for it.
    pub fn lacks_code(&self) -> Option<&str> {
        self.choices.first()?.lacks_code()
    }
}
