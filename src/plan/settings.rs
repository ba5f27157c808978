//! A cell's settings by name: what figures and tables call panels and axes.

use super::Identity;
use crate::manifest::Budget;
use crate::manifest::document::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A name, a flag, or a table in one line.
    Text(String),
}

/// A setting as a key of a map: equal settings have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingKey<'a> {
    /// The bits of a number; 0 has one sign.
    Number(u64),
    /// A text.
    Text(&'a str),
}

impl Setting {
    /// The setting as a key.
    pub fn key(&self) -> SettingKey<'_> {
        match self {
            Self::Number(value) => SettingKey::Number((value + 0.0).to_bits()),
            Self::Text(text) => SettingKey::Text(text),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// All settings of a cell by their dotted paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(pub BTreeMap<String, Setting>);

impl Settings {
    /// The settings of a cell.
    pub fn of(identity: &Identity, budget: &Budget) -> Self {
        let mut all = Self::default();
        let table = identity.canonical();
        for top in ["problem", "algorithm", "start", "oracle", "rounds"] {
            if let Some(value) = table.get(top) {
                all.add(top, value);
            }
        }
        let terms = &identity.algorithm.components()[0].terms;
        let length = Setting::Number(terms.step_size * terms.most_steps() as f64);
        all.0.insert("path-length".into(), length);
        for (name, value) in [
            ("budget.local-steps", budget.local_steps),
            ("budget.rounds", budget.rounds),
            ("budget.min-rounds", budget.min_rounds),
        ] {
            if let Some(value) = value {
                all.0.insert(name.into(), Setting::Number(value as f64));
            }
        }
        all
    }

    fn add(&mut self, path: &str, value: &toml::Value) {
        let setting = match value {
            toml::Value::Integer(value) => Setting::Number(*value as f64),
            toml::Value::Float(value) => Setting::Number(*value),
            other => Setting::Text(inline(other)),
        };
        self.0.insert(path.to_owned(), setting);
        if let toml::Value::Table(table) = value {
            for (key, value) in table {
                self.add(&format!("{path}.{key}"), value);
            }
        }
    }

    /// The setting that a name means here: a full path, or the last part of
    /// the path of a problem's or an algorithm's setting.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.path(name).and_then(|path| self.0.get(path))
    }

    /// The path of the setting that a name means here.
    pub fn path(&self, name: &str) -> Option<&str> {
        if let Some((path, _)) = self.0.get_key_value(name) {
            return Some(path);
        }
        // H is an algorithm's; the budget's local steps need their whole path.
        let named = |path: &&String| ends_with(path, name) && *path != "budget.local-steps";
        let ends = self.0.keys().filter(named);
        ends.min_by_key(|path| (rank(path), path.len())).map(String::as_str)
    }

    /// The short names of all settings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let kind = |path: &&String| {
            let depth = path.matches('.').count();
            depth > 1 || (depth == 1 && rank(path) > 1 && *path != "budget.local-steps")
        };
        self.0.keys().filter(kind).map(|path| short(path)).chain(["path-length"])
    }
}

fn ends_with(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

fn rank(path: &str) -> usize {
    let top = path.split('.').next().unwrap_or_default();
    ["algorithm", "problem"].iter().position(|t| *t == top).unwrap_or(2)
}

/// The last part of a path.
pub fn short(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A value as a manifest writes it, if it is a single one.
pub fn of_value(value: &Value) -> Option<Setting> {
    match value {
        Value::String(text) => Some(Setting::Text(text.clone())),
        Value::Integer(value) => value.map(|value| Setting::Number(value as f64)),
        Value::Float(value) => Some(Setting::Number(*value)),
        Value::Boolean(value) => Some(Setting::Text(value.to_string())),
        _ => None,
    }
}

/// A value in one line: `perturbed (kernel 0.02, reward 0.02)`.
fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join(", "),
        toml::Value::Table(table) => {
            let parts = table.iter().map(|(key, value)| match value {
                toml::Value::Table(inner) if inner.is_empty() => key.clone(),
                toml::Value::Table(_) => format!("{key} ({})", inline(value)),
                other => format!("{key} {}", inline(other)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        toml::Value::Float(value) => value.to_string(),
        other => other.to_string(),
    }
}
