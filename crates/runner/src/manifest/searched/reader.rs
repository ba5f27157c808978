//! Makes a frontier's algorithms, at all choices of their tried settings, from what is written.

use super::algorithm::{SearchedAlgorithm, TriedSetting, settings_of};
use super::names::{AlgorithmVariant, VARIANTS, WrittenAlgorithm, variant};
use crate::manifest::entries::{self, TreeError};
use crate::manifest::schema::ManifestSchema;
use exactfed_core::algorithm::{AlgorithmInfo, Spec};
use exactfed_core::problem::Fault;
use thiserror::Error;
use toml::{Table, Value};

/// The most choices of values of an algorithm's keys.
const MOST_CHOICES: usize = 10_000;

/// Why tried values of settings make no algorithm.
#[derive(Debug, Error)]
enum ChoiceError {
    /// A key that must be written has no values.
    #[error("`{name}` needs values of `{key}`: write {{ {name} = {{ {key} = [ … ] }} }}")]
    MissingKey { name: String, key: String },
    /// A table with the values is no algorithm of the kind.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A value is out of range.
    #[error("`{}` of `{name}` {}", fault.key, fault.message)]
    Fault { name: String, fault: Fault },
}

/// What is wrong with an algorithm of a frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedFault {
    /// The place of the algorithm in the list of the frontier.
    pub place: usize,
    /// What is wrong.
    pub message: String,
    /// A name that is not known, and the names that are, from which the message suggests the nearest.
    pub unknown: Option<(String, Vec<String>)>,
}

/// The algorithms of a frontier, in their order, without those with which something is wrong; and what is wrong.
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
    /// The place of the algorithm in the list of the frontier.
    place: usize,
    /// The variant that the written name is, if it is one.
    variant: Option<&'static AlgorithmVariant>,
    /// The kind of the variant, or the written name.
    kind: &'a str,
    /// What is known of the kind, if it is built in.
    info: Option<&'static AlgorithmInfo>,
    faults: Vec<SearchedFault>,
}

impl<'a> SearchedReader<'a> {
    /// The reader of the algorithm at a place of the list.
    fn new(written: &'a WrittenAlgorithm, schema: &'a ManifestSchema, place: usize) -> Self {
        let variant = variant(written.name());
        let kind = variant.map_or(written.name(), |variant| variant.kind);
        let info = Spec::ALL.iter().find(|info| info.kind == kind);
        Self { written, schema, place, variant, kind, info, faults: Vec::new() }
    }

    /// Notes that something is wrong with the algorithm.
    fn fault(&mut self, message: String) {
        self.faults.push(SearchedFault { place: self.place, message, unknown: None });
    }

    /// Notes that a name is not among the known ones, so that the message can suggest one.
    fn unknown(&mut self, message: String, name: &str, known: Vec<String>) {
        let unknown = Some((name.to_owned(), known));
        self.faults.push(SearchedFault { place: self.place, message, unknown });
    }

    /// The algorithm with all settings that are tried, or everything that is wrong with it.
    fn read(mut self) -> Result<SearchedAlgorithm, Vec<SearchedFault>> {
        let own = self.schema.registry.algorithms.get(self.kind);
        if own.is_none() && self.info.is_none() {
            let variants = VARIANTS.iter().map(|variant| variant.name);
            let names = variants.chain(Spec::KINDS.iter().copied()).map(str::to_owned).collect();
            let name = self.written.name();
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
            name: self.written.name().to_owned(),
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

    /// The settings that are tried: keys that are written with their values, and other keys that the variant tries.
    /// Notes what is wrong with the written values.
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

    /// The schema of a table of the kind; null if there is no such kind.
    fn table(&self) -> &'a serde_json::Value {
        let entry = self.schema.at(&format!("algorithm.{}", self.kind));
        entry.map_or(&serde_json::Value::Null, |entry| self.schema.resolve(entry))
    }

    /// Notes what is wrong with the values that the manifest writes for a key: the frontier itself searches the key,
    /// the kind does not have it, or the key does not take such values. Whether they are in range shows when the
    /// algorithm is made of them.
    fn check_values(&mut self, key: &str, values: &[f64]) {
        let name = self.written.name();
        if key == "step-size" || Some(key) == self.local_steps_key() {
            let message = format!("the frontier itself searches `{key}` of `{name}`");
            return self.fault(message);
        }
        let keys = self.table()["properties"].as_object();
        let Some(schema) = keys.and_then(|keys| keys.get(key)) else {
            // Labels, averages of estimates and what the frontier searches are not suggested.
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
        let has_such_values = match self.schema.resolve(schema)["type"].as_str() {
            Some("integer") => values.iter().all(|value| value.fract() == 0.0 && *value >= 0.0),
            Some("number") => true,
            Some(_) => false,
            // A whole number or a fraction.
            None => self.schema.resolve(schema)["anyOf"].as_array().is_some(),
        };
        if !has_such_values {
            self.fault(format!("`{key}` of `{name}` has no such values"));
        }
    }

    /// The algorithm at each choice of one value for every tried setting. After the first fault, which is noted, no
    /// other choice is tried, and the choices are incomplete. They are counted before they are made.
    fn choices(&mut self, tried: &[TriedSetting]) -> Vec<Spec> {
        let counts = tried.iter().map(|setting| setting.values.len());
        let number = counts.fold(1, usize::saturating_mul);
        if number > MOST_CHOICES {
            let name = self.written.name();
            self.fault(format!(
                "the values of the keys of `{name}` make {number} combinations; at most {MOST_CHOICES} are tried: write fewer values"
            ));
            return Vec::new();
        }
        let mut choices = Vec::new();
        for choice in 0..number {
            match self.choice(&settings_of(tried, choice)) {
                Ok(spec) => choices.push(spec),
                Err(error) => {
                    self.fault(error.to_string());
                    break;
                }
            }
        }
        choices
    }

    /// The algorithm with these values of its tried settings. It is read from a table as a manifest would have it,
    /// with 1 as step size and number of local steps, which the search replaces.
    fn choice(&self, settings: &[(&str, f64)]) -> Result<Spec, ChoiceError> {
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
            // A key that does not take any number takes whole ones, and `cohort` fractions of the clients too.
            let is_number = properties[*key]["type"] == "number";
            let is_whole = !is_number && value.fract() == 0.0;
            let value = if is_whole { Value::Integer(*value as i64) } else { Value::Float(*value) };
            table.insert((*key).to_owned(), value);
        }
        let required = self.table()["required"].as_array().into_iter().flatten();
        for key in required.filter_map(serde_json::Value::as_str) {
            if !table.contains_key(key) {
                let name = self.written.name().to_owned();
                return Err(ChoiceError::MissingKey { name, key: key.to_owned() });
            }
        }
        let spec = entries::algorithm(
            &format!("algorithm.{}.0", self.kind),
            Value::Table(table),
            self.schema,
        )?;
        // What is wrong with a fraction of the clients, however many there are.
        let of_cohort = spec.cohort().and_then(|cohort| cohort.among(1).fault());
        let of_cohort = of_cohort.map(|message| Fault::new("cohort", message));
        match spec.check().into_iter().next().or(of_cohort) {
            Some(fault) => Err(ChoiceError::Fault { name: self.written.name().to_owned(), fault }),
            None => Ok(spec),
        }
    }
}
