//! Kinds of problems and algorithms that are defined outside of this crate: their names and keys,
//! as manifests need them.
//!
//! A manifest is read by types that name their keys at compile time. The names of such a kind are
//! kept for the life of the program ([`interned`]), and which kinds there are is known to the
//! thread that reads ([`Kinds::during`]).

use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The value of a key.
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
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DefinedKey {
    /// Its name: lower-case letters and digits, with `-` between words.
    pub name: String,
    /// The values that it takes.
    #[serde(rename = "type")]
    pub of: KeyType,
    /// The value where it is not written; without one it must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<SettingValue>,
}

/// A kind of problems or algorithms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Definition {
    /// The name of its table: `[[algorithm.<kind>]]` or `[problem.<kind>]`.
    pub kind: String,
    /// Its name in figures.
    pub name: String,
    /// The version of its numbers: it enters the ids of cells.
    pub version: String,
    /// A hash of its source code, which enters the ids of cells too; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_hash: String,
    /// The source code, to be shown; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The keys of its table beside those that all have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<DefinedKey>,
}

/// Names that the canonical text of a cell has beside the keys.
const RESERVED: [&str; 6] =
    ["version", "source-hash", "label", "step-size", "average", "local-steps"];

impl From<bool> for SettingValue {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<u64> for SettingValue {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for SettingValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for SettingValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl SettingValue {
    /// Its type.
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
    /// A kind without keys of its own, of code in Rust, whose version says when its numbers change.
    pub fn new(kind: &str, name: &str, version: &str) -> Self {
        let [kind, name, version] = [kind, name, version].map(str::to_owned);
        let (source_hash, source, keys) = Default::default();
        Self { kind, name, version, source_hash, source, keys }
    }

    /// Adds a key with this value where it is not written, whose type is that of the key.
    pub fn key(mut self, name: &str, default: impl Into<SettingValue>) -> Self {
        let default = default.into();
        let (name, of) = (name.to_owned(), default.key_type());
        self.keys.push(DefinedKey { name, of, default: Some(default) });
        self
    }

    /// Adds a key of this type that must be written.
    pub fn required_key(mut self, name: &str, of: KeyType) -> Self {
        self.keys.push(DefinedKey { name: name.to_owned(), of, default: None });
        self
    }

    /// What is wrong with the definition, as a sentence; `built_in` are the kinds that exist.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, built_in: &[&str]) -> Result<(), String> {
        let plain = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && !name.ends_with('-')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        let rule = "must begin with a lower-case letter, and have lower-case letters, digits and single hyphens only";
        let kind = &self.kind;
        if !plain(kind) || kind.contains("--") {
            return Err(format!("the kind {kind:?} {rule}"));
        }
        if built_in.contains(&kind.as_str()) {
            return Err(format!("the kind {kind:?} is built in: give yours another name"));
        }
        if self.name.trim().is_empty() || self.version.trim().is_empty() {
            return Err(format!("{kind}: the name and the version must not be empty"));
        }
        for (i, DefinedKey { name, of, default }) in self.keys.iter().enumerate() {
            if !plain(name) || name.contains("--") {
                return Err(format!("{kind}: the key {name:?} {rule}"));
            }
            if RESERVED.contains(&name.as_str()) {
                return Err(format!("{kind}: the key {name:?} has a meaning of its own"));
            }
            if self.keys[..i].iter().any(|other| other.name == *name) {
                return Err(format!("{kind}: the key {name:?} is there twice"));
            }
            let fits = |value: &SettingValue| {
                let finite = !matches!(value, SettingValue::Number(x) if !x.is_finite());
                value.key_type() == *of && finite
            };
            if default.as_ref().is_some_and(|value| !fits(value)) {
                return Err(format!("{kind}: the default of {name:?} is not of its type"));
            }
        }
        Ok(())
    }
}

/// The values of a table's keys, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyValues(BTreeMap<&'static str, SettingValue>);

impl KeyValues {
    /// Every key and its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &SettingValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// The value of a key; `None` if the definition has no such key.
    pub fn get(&self, name: &str) -> Option<&SettingValue> {
        self.0.get(name)
    }

    /// The number that a key has, also of a whole one.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            SettingValue::Number(value) => Some(*value),
            SettingValue::Whole(value) => Some(*value as f64),
            SettingValue::Flag(_) | SettingValue::Text(_) => None,
        }
    }

    /// The whole number that a key has.
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            SettingValue::Whole(value) => Some(*value),
            _ => None,
        }
    }
}

/// What the canonical text of a cell says of a kind: its values, its version and the hash of its
/// source.
pub struct CanonicalValues<'a> {
    /// The definition.
    pub definition: &'a Definition,
    /// H, if there are local steps.
    pub local_steps: Option<u64>,
    /// The values of the keys.
    pub values: &'a KeyValues,
}

impl Serialize for CanonicalValues<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if let Some(steps) = self.local_steps {
            map.serialize_entry("local-steps", &steps)?;
        }
        for (name, value) in self.values.iter() {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("version", &self.definition.version)?;
        if !self.definition.source_hash.is_empty() {
            map.serialize_entry("source-hash", &self.definition.source_hash)?;
        }
        map.end()
    }
}

/// Reads the keys of a definition from a table, of which these are read beside them.
pub struct KeysSeed<'a> {
    /// The definition.
    pub definition: &'a Definition,
    /// Whether the table has the number of local steps.
    pub local_steps: bool,
}

/// H, if the table has it, and the values of the keys.
pub type KeysRead = (Option<u64>, KeyValues);

const LOCAL_STEPS: &str = "local-steps";

impl<'de> DeserializeSeed<'de> for KeysSeed<'_> {
    type Value = KeysRead;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<KeysRead, D::Error> {
        let keys = self.definition.keys.iter().map(|key| key.name.as_str());
        let names = keys.chain(self.local_steps.then_some(LOCAL_STEPS));
        from.deserialize_struct("keys", all_interned(names), self)
    }
}

impl<'de> Visitor<'de> for KeysSeed<'_> {
    type Value = KeysRead;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the settings of {}", self.definition.kind)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<KeysRead, M::Error> {
        let (mut steps, mut values) = (None, KeyValues::default());
        while let Some(name) = map.next_key::<String>()? {
            let key = self.definition.keys.iter().find(|key| key.name == name);
            match key {
                Some(key) => {
                    let value = map.next_value_seed(ValueSeed(key.of))?;
                    values.0.insert(interned(&key.name), value);
                }
                None => steps = Some(map.next_value()?),
            }
        }
        for DefinedKey { name, default, .. } in &self.definition.keys {
            let name = interned(name);
            match default {
                _ if values.0.contains_key(name) => {}
                Some(value) => {
                    values.0.insert(name, value.clone());
                }
                None => return Err(de::Error::missing_field(name)),
            }
        }
        match steps {
            None if self.local_steps => Err(de::Error::missing_field(LOCAL_STEPS)),
            _ => Ok((steps, values)),
        }
    }
}

/// Reads a value of this type.
struct ValueSeed(KeyType);

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = SettingValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<SettingValue, D::Error> {
        match self.0 {
            KeyType::Flag => bool::deserialize(from).map(SettingValue::Flag),
            KeyType::Whole => u64::deserialize(from).map(SettingValue::Whole),
            KeyType::Number => f64::deserialize(from).map(SettingValue::Number),
            KeyType::Text => String::deserialize(from).map(SettingValue::Text),
        }
    }
}

/// Kinds that are defined outside of this crate, by name.
#[derive(Debug)]
pub struct Kinds<T>(BTreeMap<&'static str, Arc<T>>);

impl<T> Clone for Kinds<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Kinds<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Kinds<T> {
    /// Adds a kind, in place of another of the name.
    pub fn insert(&mut self, kind: &str, value: Arc<T>) {
        self.0.insert(interned(kind), value);
    }

    /// The kind of this name.
    pub fn get(&self, kind: &str) -> Option<&Arc<T>> {
        self.0.get(kind)
    }

    /// These names and those of the kinds.
    pub fn names_with(&self, built_in: &[&str]) -> &'static [&'static str] {
        all_interned(built_in.iter().copied().chain(self.0.keys().copied()))
    }

    /// What `f` returns; meanwhile [`KnownKinds`] of this thread are these.
    pub fn during<R>(&self, known: &'static KnownKinds<T>, f: impl FnOnce() -> R) -> R {
        known.with(|current| {
            let before = current.replace(self.clone());
            let restore = Restore { current, before: Some(before) };
            let result = f();
            drop(restore);
            result
        })
    }
}

/// The kinds that a thread knows while it reads a manifest.
pub type KnownKinds<T> = std::thread::LocalKey<RefCell<Kinds<T>>>;

/// Restores what was known before, also after a panic.
struct Restore<'a, T> {
    current: &'a RefCell<Kinds<T>>,
    before: Option<Kinds<T>>,
}

impl<T> Drop for Restore<'_, T> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.current.replace(before);
        }
    }
}

static TEXTS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
static LISTS: LazyLock<Mutex<HashSet<&'static [&'static str]>>> = LazyLock::new(Mutex::default);

/// The text for the life of the program, in one copy.
pub fn interned(text: &str) -> &'static str {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    match texts.get(text) {
        Some(known) => known,
        None => {
            let new: &'static str = String::from(text).leak();
            texts.insert(new);
            new
        }
    }
}

/// A list of texts for the life of the program, in one copy.
fn all_interned<'a>(texts: impl Iterator<Item = &'a str>) -> &'static [&'static str] {
    let list: Vec<&'static str> = texts.map(interned).collect();
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    match lists.get(list.as_slice()) {
        Some(known) => known,
        None => {
            let new: &'static [&'static str] = list.leak();
            lists.insert(new);
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(definition: Definition) -> Result<(), String> {
        definition.check(&["fedavg"])
    }

    #[test]
    fn definitions_that_no_manifest_could_name_are_refused() {
        let sound = || Definition::new("fedavg-m", "FedAvgM", "1");
        assert_eq!(check(sound().key("beta", 0.9).key("flag", true)), Ok(()));
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
            let found = check(definition).unwrap_err();
            assert!(found.contains(said), "{found}");
        }
    }

    /// A definition that results store is the one that was registered, down to the types of its
    /// defaults.
    #[test]
    fn definitions_survive_their_text() {
        let own = Definition::new("own", "Own", "2")
            .key("whole", 3_u64)
            .key("number", 1.0)
            .key("text", "a")
            .required_key("flag", KeyType::Flag);
        let text = toml::to_string(&own).unwrap();
        assert_eq!(toml::from_str::<Definition>(&text).unwrap(), own, "{text}");
    }

    #[test]
    fn names_have_one_copy() {
        let kinds: Kinds<()> = Kinds(BTreeMap::from([("own", Arc::new(()))]));
        let names = kinds.names_with(&["a", "b"]);
        assert_eq!(names, ["a", "b", "own"]);
        assert!(std::ptr::eq(names, kinds.names_with(&["a", "b"])));
    }
}
