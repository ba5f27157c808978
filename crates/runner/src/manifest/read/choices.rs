//! Values that may be of several types, and choices among names.

use super::{FRACTION, GIVEN, LABELS, Reader, keys};
use crate::manifest::document::{Diagnostic, Node, Value, below};
use crate::manifest::schema::has_free_keys;
use serde_json::Value as Schema;
use toml::{Table, Value as Toml};

/// A name that may be chosen, and the schema of its value; `None` if the name takes no value.
pub(super) type Variant<'a> = (&'a str, Option<&'a Schema>);

/// The names among which a schema lets manifests choose, each once; empty if the schema is no such choice.
pub(super) fn variants(schema: &Schema) -> Vec<Variant<'_>> {
    let mut all: Vec<Variant<'_>> = Vec::new();
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        let name = choice["const"].as_str().map(|name| (name, None));
        let properties = choice["properties"].as_object().into_iter().flatten();
        let tables = properties.map(|(name, schema)| (name.as_str(), Some(schema)));
        for variant in name.into_iter().chain(tables) {
            // Where a table may be empty, the schema has its name alone as a choice of its own.
            if all.iter().all(|(known, _)| *known != variant.0) {
                all.push(variant);
            }
        }
    }
    all
}

impl<'a> Reader<'a> {
    /// A value that may be of several types: it is read by the first of these schemas whose type is the written one. If
    /// there is none, the types that are allowed are noted.
    pub(super) fn read_any_of(
        &mut self,
        kinds: &'a [Schema],
        node: &Node,
        path: &str,
    ) -> Option<Toml> {
        let kinds: Vec<&Schema> = kinds.iter().map(|kind| self.schema.resolve(kind)).collect();
        let (written, unexpected) = match &node.value {
            Value::String(text) => ("string", format!("string {text:?}")),
            Value::Integer(value) => ("number", format!("floating point `{value}.0`")),
            Value::LongInteger { .. } => ("number", "integer beyond 64 bits".to_owned()),
            Value::Float(value) => ("number", format!("floating point `{value:?}`")),
            Value::Boolean(value) => ("boolean", format!("boolean `{value}`")),
            Value::Array(_) => ("array", "sequence".to_owned()),
            Value::Table(_) => ("object", "map".to_owned()),
            Value::Datetime => ("", "datetime".to_owned()),
        };
        let is_written = |kind: &&Schema| {
            kind["type"] == written || (written == "string" && !variants(kind).is_empty())
        };
        if let Some(kind) = kinds.iter().copied().find(is_written) {
            return self.read_value(kind, node, path);
        }
        let expected = kinds.iter().map(|kind| match kind["type"].as_str() {
            Some("array") if kind["items"]["type"] == "string" => "a list of strings",
            Some("array") if kind["items"]["type"] == "number" => "a list of numbers",
            Some("array") => "a list of names",
            Some("object") if kind["properties"].is_null() => {
                "a table with a list for each setting"
            }
            Some("object") => "a table",
            Some("string") => "a string",
            _ if !variants(kind).is_empty() => "a name",
            _ => "a number",
        });
        let or = if kinds[0]["type"] == "array" { ", or " } else { " or " };
        let expected = expected.collect::<Vec<_>>().join(or);
        self.note_at(node, path, format!("invalid type: {unexpected}, expected {expected}"))
    }

    /// One of these names, which is written as a string, or with its value as a table of one key, or by its value alone
    /// ([`implied_choice`]). The result is a string for a name without a value, and a table of one key for a name with a
    /// value, as serde reads variants of an enumeration.
    pub(super) fn read_variant(
        &mut self,
        all: &[Variant<'a>],
        node: &Node,
        path: &str,
    ) -> Option<Toml> {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let (name, place, content) = match (&node.value, implied_choice(&names, node)) {
            (_, Some(name)) => (name, &node.place, Some(node)),
            (Value::String(name), None) => (name.as_str(), &node.place, None),
            (Value::Table(entries), None) => match entries.as_slice() {
                [entry] => (entry.key.as_str(), &entry.place, Some(&entry.node)),
                several => {
                    let count = several.len();
                    let message = format!("expected exactly one of these keys, not {count}");
                    let place = several.get(1).map_or(&node.place, |entry| &entry.place);
                    let diagnostic = Diagnostic::new(Some(place.clone()), path, message);
                    return self.note(diagnostic.allowing(names.join(", ")));
                }
            },
            _ => {
                let number = if names.contains(&FRACTION) { "a number or " } else { "" };
                let what = format!("{number}one of {}", names.join(", "));
                return self.note_unexpected(node, path, &what);
            }
        };
        let Some((_, schema)) = all.iter().find(|(known, _)| *known == name) else {
            let message = format!("unknown name `{name}`");
            let diagnostic = Diagnostic::new(Some(place.clone()), path, message);
            return self.note(diagnostic.naming(name, &names));
        };
        match (schema, content) {
            (None, content) if content.is_none_or(is_empty_table) => {
                Some(Toml::String(name.to_owned()))
            }
            (None, _) => {
                self.note_at(node, path, format!("`{name}` takes no settings: write \"{name}\""))
            }
            (Some(schema), Some(content)) => {
                let value = self.read_value(schema, content, &below(path, name))?;
                Some(table_of_one(name, value))
            }
            (Some(schema), None) if schema["type"] != "object" || has_free_keys(schema) => {
                let message = format!("`{name}` needs a value: write {{ {name} = … }}");
                self.note_at(node, path, message)
            }
            (Some(schema), None) => {
                let keys: Vec<&str> = keys(schema).collect();
                if keys.is_empty() {
                    return Some(table_of_one(name, Toml::Table(Table::new())));
                }
                let message = format!("`{name}` needs settings: write {{ {name} = {{ … }} }}");
                let diagnostic = Diagnostic::new(Some(node.place.clone()), path, message);
                self.note(diagnostic.allowing(keys.join(", ")))
            }
        }
    }
}

/// The name that a node leaves out, since its value alone implies it: [`FRACTION`] for a number, [`GIVEN`] for a list and
/// [`LABELS`] for a table, where these are among the names. `None` if the node states a name, as a table does whose
/// single key is one of them.
fn implied_choice(names: &[&str], node: &Node) -> Option<&'static str> {
    let implied = match &node.value {
        Value::Integer(_) | Value::LongInteger { .. } | Value::Float(_) => FRACTION,
        Value::Array(_) => GIVEN,
        Value::Table(entries) => match entries.as_slice() {
            [] => return None,
            [entry] if names.contains(&entry.key.as_str()) => return None,
            _ => LABELS,
        },
        _ => return None,
    };
    names.contains(&implied).then_some(implied)
}

fn is_empty_table(node: &Node) -> bool {
    matches!(&node.value, Value::Table(entries) if entries.is_empty())
}

fn table_of_one(name: &str, value: Toml) -> Toml {
    Toml::Table(Table::from_iter([(name.to_owned(), value)]))
}
