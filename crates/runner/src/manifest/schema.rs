//! The schema of manifests, from the types that they are read into: for the reader, for
//! docs/MANIFEST.md, and as JSON Schema for editors.

use super::Source;
use super::axis::may_vary;
use crate::quantity::assign;
use exactfed_core::algorithm::AlgorithmKeys;
use exactfed_core::definition::{Definition, KeyType};
use exactfed_core::registry::Registry;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The schema by which a manifest is read, and the algorithms and problems that it may name beside the built-in ones.
pub struct ManifestSchema {
    /// The schema of a manifest, with the kinds of the registry.
    pub root: Value,
    /// The algorithms and problems that are registered, or that the manifest's results define.
    pub registry: Registry,
}

impl ManifestSchema {
    /// The schema by which the manifest of a source is read: the schema of its types (`of_types`), with the algorithms
    /// and problems that are registered for it, and the algorithms that its results define.
    pub fn new(of_types: &Value, source: &Source) -> Self {
        let mut root = of_types.clone();
        let mut registry = source.registry.clone();
        registry.define(&source.algorithms);
        registry.define_metrics(&source.metrics);
        let defs = &mut root["$defs"];
        for (name, metric) in &registry.metrics {
            let shown = &metric.known.definition.name;
            // Where all places are taken the name stays unknown, which is an error where it is listed.
            if assign(name, shown) {
                let choice = json!({ "const": name, "type": "string", "description": shown });
                for list in ["Metric", "Quantity"] {
                    let names = defs[list]["oneOf"].as_array_mut();
                    names.into_iter().for_each(|all| all.push(choice.clone()));
                }
            }
        }
        for (kind, algorithm) in &registry.algorithms {
            let mut common = schemars::schema_for!(AlgorithmKeys).to_value();
            tidy(&mut common);
            let known = &algorithm.known;
            let table = own_table(common, &known.definition, known.has_local_steps);
            defs["AlgorithmTables"]["properties"][kind] =
                json!({ "type": "array", "items": table });
        }
        for (kind, problem) in &registry.problems {
            let has_local_steps = false;
            let table = own_table(json!({}), &problem.definition, has_local_steps);
            let kinds = defs["Spec"]["oneOf"].as_array_mut();
            kinds.into_iter().for_each(|all| all.push(json!({ "properties": { kind: &table } })));
        }
        Self { root, registry }
    }

    /// The definition that a schema refers to, or itself.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        definition(schema).map_or(schema, |name| &self.root["$defs"][name])
    }

    /// The schema of the table at a path: of a top-level key such as `problem`, or of an algorithm's entry,
    /// `algorithm.<kind>` with or without its number. `None` if there is no such key or kind.
    pub fn at(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let table = self.root["properties"].get(parts.next()?)?;
        match parts.next() {
            None => Some(table),
            Some(kind) => self.resolve(table)["properties"].get(kind)?.get("items"),
        }
    }

    /// Whether the tables of an algorithm's kind may have a key. `entry` is the path of such a table.
    pub fn has_key(&self, entry: &str, key: &str) -> bool {
        let table = self.at(entry).map(|table| self.resolve(table));
        table.is_some_and(|table| table["properties"].get(key).is_some())
    }
}

/// Adds the keys of a custom algorithm or problem to the schema of a table, by which the reader of manifests checks the
/// table: any other key is unknown there. `table` has the keys that all algorithms have, and is empty for a problem. A
/// key without a default is required, and so is `local-steps`, which an algorithm with local steps has besides. The
/// JSON Schema for editors has no custom kinds.
fn own_table(mut table: Value, definition: &Definition, has_local_steps: bool) -> Value {
    let keys = definition.keys.iter().map(|key| (key.name.as_str(), key.of, key.default.is_none()));
    let local_steps = has_local_steps.then_some(("local-steps", KeyType::Whole, true));
    let mut required = table["required"].as_array().cloned().unwrap_or_default();
    for (name, of, is_required) in keys.chain(local_steps) {
        table["properties"][name] = key_schema(of);
        required.extend(is_required.then(|| name.into()));
    }
    table["required"] = required.into();
    table
}

/// The format of texts of compressors in the schema.
pub const COMPRESSOR: &str = "compressor";
/// The format of texts of unbiased compressors in the schema.
pub const UNBIASED_COMPRESSOR: &str = "unbiased-compressor";

/// The schema of a key of this type.
fn key_schema(of: KeyType) -> Value {
    match of {
        KeyType::Flag => json!({ "type": "boolean" }),
        KeyType::Whole => json!({ "type": "integer" }),
        KeyType::Number => json!({ "type": "number" }),
        KeyType::Text => json!({ "type": "string" }),
        KeyType::Compressor => json!({ "type": "string", "format": COMPRESSOR }),
        KeyType::UnbiasedCompressor => {
            json!({ "type": "string", "format": UNBIASED_COMPRESSOR })
        }
    }
}

/// The JSON Schema of manifests for editors, from the schema of their types: there every setting that may be an axis
/// may also be an array, and algorithms require no key. The reader uses the schema of the types, in which a setting is
/// one value: it takes an array for an axis by itself.
pub fn json_schema(of_types: &Value) -> Value {
    let mut schema = of_types.clone();
    // What may be an axis of the grid may be an array of such values.
    let mut varied = Vec::new();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (key, value) in properties.iter_mut().filter(|(key, _)| may_vary(key)) {
            varied.extend(definition(value).map(str::to_owned));
            // Algorithms are in arrays of tables already, and a whole budget is not offered as an axis.
            if key != "algorithm" && key != "budget" {
                allow_array(value);
            }
        }
    }
    let mut done = HashSet::new();
    while let Some(name) = varied.pop() {
        if done.insert(name.clone()) {
            allow_axes(&mut schema["$defs"][&name], &mut varied);
        }
    }
    let tables = schema["$defs"]["AlgorithmTables"]["properties"].as_object();
    let items = tables.into_iter().flat_map(|all| all.values());
    let entries: Vec<String> =
        items.filter_map(|value| definition(&value["items"]).map(str::to_owned)).collect();
    for name in entries {
        // `[tune]` may provide what is required.
        schema["$defs"][&name]["required"] = json!([]);
    }
    schema
}

/// Corrects a schema and all within it where schemars does not know how manifests are read: unknown keys are errors,
/// TOML has no null, and the name of a table without settings may stand for the table.
pub fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let is_table = object.get("type").is_some_and(|kind| kind == "object");
            if object.contains_key("properties")
                || is_table && !object.contains_key("additionalProperties")
            {
                object.insert("additionalProperties".into(), json!(false));
            }
            if let Some(Value::Array(kinds)) = object.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [one] = kinds.as_slice() {
                    let one = one.clone();
                    object.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
                if let [one] = choices.as_slice() {
                    let one = one.as_object().cloned().unwrap_or_default();
                    object.remove("anyOf");
                    object.extend(one);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("oneOf") {
                let names: Vec<Value> = choices.iter().filter_map(empty_table).collect();
                choices.extend(names);
            }
            // serde does not write labels; manifests may have them.
            object.remove("writeOnly");
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The schema of the name alone, for a choice that is a table without settings; `None` for any other choice.
fn empty_table(choice: &Value) -> Option<Value> {
    let properties = choice.get("properties")?.as_object()?;
    let (name, inner) = properties.iter().next()?;
    let is_table = inner.get("type")? == "object";
    let empty = is_table && inner.get("properties").is_none() && !has_free_keys(inner);
    let description = choice.get("description").cloned().unwrap_or_default();
    empty.then(|| json!({ "type": "string", "const": name, "description": description }))
}

/// Whether a schema is that of a table whose keys may have any names, such as labels of classes, and whose values all
/// have one schema.
pub fn has_free_keys(schema: &Value) -> bool {
    schema["additionalProperties"].is_object()
}

/// The name of the definition that a schema refers to; `None` if it is no reference.
pub fn definition(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Lets an array of such values stand where a schema asks for one value, for axes of the grid. A schema of an array of
/// tables stays as it is: its tables may not be axes, and the settings in them may.
fn allow_array(value: &mut Value) {
    let tables = value.get("items").is_some_and(|items| items.get("$ref").is_some());
    if value.get("type").is_some_and(|kind| kind == "array") && tables {
        return;
    }
    let Some(object) = value.as_object_mut() else { return };
    let mut outside = Map::new();
    for key in ["description", "default", "examples"] {
        outside.extend(object.remove(key).map(|v| (key.to_owned(), v)));
    }
    let one = Value::Object(std::mem::take(object));
    outside.insert("anyOf".into(), json!([one, { "type": "array", "items": one, "minItems": 1 }]));
    *object = outside;
}

/// Lets every setting in a schema be an axis, and adds to `found` the names of the definitions that it refers to, in
/// which settings may be axes too.
fn allow_axes(schema: &mut Value, found: &mut Vec<String>) {
    found.extend(definition(schema).map(str::to_owned));
    match schema {
        Value::Object(object) => {
            let mut settings = object.remove("properties");
            object.values_mut().for_each(|value| allow_axes(value, found));
            if let Some(Value::Object(properties)) = &mut settings {
                for value in properties.values_mut() {
                    allow_axes(value, found);
                    if has_free_keys(value) {
                        allow_array(&mut value["additionalProperties"]);
                    }
                    allow_array(value);
                }
            }
            object.extend(settings.map(|settings| ("properties".to_owned(), settings)));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| allow_axes(value, found)),
        _ => {}
    }
}
