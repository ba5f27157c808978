//! Kinds of problems and algorithms that are defined outside of this crate: their names and keys,
//! from which a reader of manifests makes the schema of their tables.

use crate::compression::Compressor;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The value that a manifest gives to a key of a custom kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number, 0 or more.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// What values a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyType {
    /// `true` or `false`.
    Flag,
    /// Whole numbers, 0 or more.
    Whole,
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Texts of compressors, such as `rand-k:3` ([`Compressor`]).
    Compressor,
    /// Texts of unbiased compressors.
    UnbiasedCompressor,
}

/// A key that a custom kind adds to its table in a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DefinedKey {
    /// Its name: lower-case letters and digits, with `-` between words.
    pub name: String,
    /// The values that it takes.
    #[serde(rename = "type")]
    pub of: KeyType,
    /// The value where a manifest does not write the key. `None` if every manifest must write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<SettingValue>,
}

/// A kind of problems or algorithms that is defined outside of this crate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Definition {
    /// The name of its table: `[[algorithm.<kind>]]` or `[problem.<kind>]`.
    pub kind: String,
    /// Its name in figures.
    pub name: String,
    /// The version of what it computes. It enters the ids of cells, so that results of another version are not reused.
    pub version: String,
    /// A hash of its source code, which enters the ids of cells too; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_hash: String,
    /// The source code, to be shown; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The keys of its table in addition to the keys that every problem or every algorithm has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<DefinedKey>,
}

/// What a name of a kind or of a key must be.
const NAME_RULE: &str = "must begin with a lower-case letter, and have lower-case letters, digits and single hyphens only";

/// Why manifests could not name a kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DefinitionError {
    /// The name of the kind is no name of a table.
    #[error("the kind {kind:?} {NAME_RULE}")]
    KindName {
        /// The kind.
        kind: String,
    },
    /// A kind of this crate has the name.
    #[error("the kind {kind:?} is built in: give yours another name")]
    BuiltIn {
        /// The kind.
        kind: String,
    },
    /// Figures and the ids of cells need the name and the version.
    #[error("{kind}: the name and the version must not be empty")]
    Unnamed {
        /// The kind.
        kind: String,
    },
    /// A key cannot be written in a manifest or has no single meaning.
    #[error("{kind}: {error}")]
    Key {
        /// The kind.
        kind: String,
        /// What is wrong with the key.
        error: KeyError,
    },
}

/// Why a key of a kind cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The name is not one of a key.
    #[error("the key {0:?} {NAME_RULE}")]
    Name(String),
    /// Every kind has a key of this name.
    #[error("the key {0:?} has a meaning of its own")]
    Reserved(String),
    /// Two keys have the name.
    #[error("the key {0:?} is there twice")]
    Twice(String),
    /// The default is no value that the key could have.
    #[error("the default of {0:?} is not of its type")]
    DefaultType(String),
}

/// Names that no key of a custom kind may have: keys that every algorithm or many of them have, and names that the
/// canonical text of a cell uses for the version and the source.
const RESERVED: [&str; 6] =
    ["version", "source-hash", "label", "step-size", "average", "local-steps"];

macro_rules! values_of_settings {
    ($($type:ty: $variant:ident),*) => {
        $(impl From<$type> for SettingValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}
values_of_settings!(bool: Flag, u64: Whole, f64: Number, &str: Text);

impl KeyType {
    /// Whether keys of this type take a value.
    pub fn takes(self, value: &SettingValue) -> bool {
        match (self, value) {
            (Self::Compressor, SettingValue::Text(text)) => text.parse::<Compressor>().is_ok(),
            (Self::UnbiasedCompressor, SettingValue::Text(text)) => {
                Compressor::unbiased_from_str(text).is_ok()
            }
            _ => value.key_type() == self,
        }
    }
}

impl SettingValue {
    /// The type of the keys that take any value of this kind.
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::Flag(_) => KeyType::Flag,
            Self::Whole(_) => KeyType::Whole,
            Self::Number(_) => KeyType::Number,
            Self::Text(_) => KeyType::Text,
        }
    }
}

impl Definition {
    /// A kind without keys, whose source code is not stored: code in Rust. Its author has to change `version` whenever
    /// it computes other numbers. Names are checked when it is registered ([`Definition::check`]).
    pub fn new(kind: &str, name: &str, version: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
            source_hash: String::new(),
            source: String::new(),
            keys: Vec::new(),
        }
    }

    /// Adds a key with this default, which manifests need not write. The type of the default is the type of the key:
    /// 1.0 makes a key of numbers, and 1_u64 one of whole numbers.
    pub fn key(mut self, name: &str, default: impl Into<SettingValue>) -> Self {
        let default = default.into();
        let name = name.to_owned();
        let of = default.key_type();
        self.keys.push(DefinedKey { name, of, default: Some(default) });
        self
    }

    /// Adds a key of compressors with this default, which manifests need not write. The code gets the value as a text.
    pub fn compressor_key(mut self, name: &str, default: Compressor) -> Self {
        let default = Some(SettingValue::Text(default.to_string()));
        self.keys.push(DefinedKey { name: name.to_owned(), of: KeyType::Compressor, default });
        self
    }

    /// Adds a key of this type without a default, which every manifest must write.
    pub fn required_key(mut self, name: &str, of: KeyType) -> Self {
        self.keys.push(DefinedKey { name: name.to_owned(), of, default: None });
        self
    }

    /// Checks that manifests can name the kind and its keys. `built_in` are the kinds of this crate, whose names it
    /// must not have.
    ///
    /// # Errors
    /// The first thing that is wrong, in the order of the kind, its name and version, and its keys.
    pub fn check(&self, built_in: &[&str]) -> Result<(), DefinitionError> {
        let kind = &self.kind;
        if !is_table_name(kind) {
            return Err(DefinitionError::KindName { kind: kind.clone() });
        }
        if built_in.contains(&kind.as_str()) {
            return Err(DefinitionError::BuiltIn { kind: kind.clone() });
        }
        if self.name.trim().is_empty() || self.version.trim().is_empty() {
            return Err(DefinitionError::Unnamed { kind: kind.clone() });
        }
        for (place, key) in self.keys.iter().enumerate() {
            let earlier = &self.keys[..place];
            check_key(key, earlier)
                .map_err(|error| DefinitionError::Key { kind: kind.clone(), error })?;
        }
        Ok(())
    }

    /// What the canonical text of a cell, from which the cell's id is computed, says of settings of this kind: the
    /// values of its keys, its version and the hash of its source. `local_steps` is H, `None` if the kind has no such
    /// key.
    pub fn canonical<'a>(
        &'a self,
        local_steps: Option<u64>,
        values: &'a KeyValues,
    ) -> CanonicalValues<'a> {
        let Self { version, source_hash, .. } = self;
        CanonicalValues { local_steps, values, version, source_hash }
    }
}

/// Checks that manifests can write a key, given the keys of the same kind that come before it.
///
/// # Errors
/// The first thing that is wrong: the name, or a default that is not of the key's type or not finite.
fn check_key(key: &DefinedKey, earlier: &[DefinedKey]) -> Result<(), KeyError> {
    let DefinedKey { name, of, default } = key;
    if !is_table_name(name) {
        return Err(KeyError::Name(name.clone()));
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(KeyError::Reserved(name.clone()));
    }
    if earlier.iter().any(|other| other.name == *name) {
        return Err(KeyError::Twice(name.clone()));
    }
    if let Some(value) = default {
        let is_finite = !matches!(value, SettingValue::Number(x) if !x.is_finite());
        if !of.takes(value) || !is_finite {
            return Err(KeyError::DefaultType(name.clone()));
        }
    }
    Ok(())
}

/// Whether a kind or a key may have this name: lower-case letters and digits, with single hyphens
/// between words, and a letter first.
fn is_table_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(|word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
}

/// The values of the keys that a custom kind adds to its table, by the names of the keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyValues(BTreeMap<String, SettingValue>);

impl KeyValues {
    /// Every key and its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SettingValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a key; `None` if the definition has no such key.
    pub fn get(&self, name: &str) -> Option<&SettingValue> {
        self.0.get(name)
    }

    /// The value of a key of numbers, or of whole numbers; `None` if the key has another type or does not exist.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            SettingValue::Number(value) => Some(*value),
            SettingValue::Whole(value) => Some(*value as f64),
            SettingValue::Flag(_) | SettingValue::Text(_) => None,
        }
    }

    /// The value of a key of compressors; `None` if the key has another type or does not exist.
    pub fn compressor(&self, name: &str) -> Option<Compressor> {
        match self.get(name)? {
            SettingValue::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The value of a key of whole numbers; `None` if the key has another type or does not exist.
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            SettingValue::Whole(value) => Some(*value),
            _ => None,
        }
    }

    /// These values, to which the defaults of those keys are added that have no value yet. A key without a default gets
    /// none: the schema of manifests demands that it is written.
    pub fn with_defaults(mut self, keys: &[DefinedKey]) -> Self {
        for DefinedKey { name, default, .. } in keys {
            if let Some(value) = default {
                self.0.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        self
    }
}

/// What the canonical text of a cell says of settings of a custom kind ([`Definition::canonical`]).
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CanonicalValues<'a> {
    /// H, if there are local steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    local_steps: Option<u64>,
    #[serde(flatten)]
    values: &'a KeyValues,
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    source_hash: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A definition in which nothing is wrong, without keys.
    fn sound() -> Definition {
        Definition::new("fedavg-m", "FedAvgM", "1")
    }

    #[test]
    fn definitions_that_no_manifest_could_name_are_refused() {
        let with_keys = sound().key("beta", 0.9).key("flag", true);
        assert_eq!(with_keys.check(&["fedavg"]), Ok(()));
        for (definition, said) in [
            (Definition::new("FedAvgM", "x", "1"), "lower-case"),
            (Definition::new("a--b", "x", "1"), "single hyphens"),
            (Definition::new("fedavg", "x", "1"), "built in"),
            (Definition::new("own", "", "1"), "must not be empty"),
            (sound().key("step-size", 1.0), "a meaning of its own"),
            (sound().key("β", 1.0), "the key \"β\" must begin"),
            (sound().key("a", 1.0).key("a", 1.0), "twice"),
            (sound().key("a", f64::NAN), "not of its type"),
        ] {
            let found = definition.check(&["fedavg"]).unwrap_err().to_string();
            assert!(found.contains(said), "{found}");
        }
    }

    #[test]
    fn keys_of_compressors_take_texts_of_compressors() {
        let top_k: Compressor = "top-k:2".parse().unwrap();
        let mut own = sound().compressor_key("compressor", top_k);
        assert_eq!(own.check(&[]), Ok(()));
        let values = KeyValues::default().with_defaults(&own.keys);
        assert_eq!(values.compressor("compressor"), Some(top_k));
        own.keys[0].default = Some("top-k".into());
        let error = own.check(&[]).unwrap_err().to_string();
        assert!(error.contains("the default of \"compressor\" is not of its type"), "{error}");
    }

    /// Results store definitions as text. One that is read again equals the one that was registered, down to the types
    /// of its defaults.
    #[test]
    fn definitions_survive_their_text() {
        let own = Definition::new("own", "Own", "2")
            .key("whole", 3_u64)
            .key("number", 1.0)
            .key("text", "a")
            .compressor_key("compressor", "qsgd:4:max".parse().unwrap())
            .required_key("flag", KeyType::Flag);
        let text = toml::to_string(&own).unwrap();
        assert_eq!(toml::from_str::<Definition>(&text).unwrap(), own, "{text}");
    }
}
