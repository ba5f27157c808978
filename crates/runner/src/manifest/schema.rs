//! The JSON Schema of manifests, for editors, from the types that read them.

use super::Manifest;
use super::axis::may_vary;
use serde_json::{Map, Value, json};

/// The JSON Schema of a manifest.
pub fn json() -> Value {
    let mut schema = schemars::schema_for!(Manifest).to_value();
    tidy(&mut schema);
    // What may be an axis of the grid may be an array of such values.
    let mut varied = Vec::new();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (key, value) in properties.iter_mut().filter(|(key, _)| may_vary(key)) {
            if let Some(name) = definition(value) {
                varied.push(name);
            }
            if key != "algorithm" && key != "budget" {
                or_array(value);
            }
        }
    }
    let mut done = Vec::new();
    while let Some(name) = varied.pop() {
        if done.contains(&name) {
            continue;
        }
        axes(&mut schema["$defs"][&name], &mut varied);
        done.push(name);
    }
    let tables = properties_of(&schema["$defs"]["AlgorithmTables"]);
    for name in tables {
        // `[tune]` may provide what else is required.
        if let Some(required) = schema["$defs"][&name]["required"].as_array_mut() {
            required.retain(|key| key != "step-size");
        }
    }
    schema
}

/// The definitions of the items of a table's arrays.
fn properties_of(table: &Value) -> Vec<String> {
    let properties = table["properties"].as_object();
    let items = properties.into_iter().flat_map(|all| all.values());
    items.filter_map(|value| definition(&value["items"])).collect()
}

/// Adds what schemars does not know: unknown keys are errors, TOML has no null, and a name stands
/// for its empty table.
pub fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("properties") {
                object.insert("additionalProperties".into(), json!(false));
            }
            if object.get("type").is_some_and(|kind| kind == "object")
                && !object.contains_key("properties")
                && !object.contains_key("additionalProperties")
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

/// The name alone, for a choice that is a table without settings.
fn empty_table(choice: &Value) -> Option<Value> {
    let properties = choice.get("properties")?.as_object()?;
    let (name, inner) = properties.iter().next()?;
    let empty = inner.get("type")? == "object" && inner.get("properties").is_none();
    let description = choice.get("description").cloned().unwrap_or_default();
    empty.then(|| json!({ "type": "string", "const": name, "description": description }))
}

/// The name of the definition that a value refers to.
pub fn definition(value: &Value) -> Option<String> {
    Some(value.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned())
}

/// Lets an array of such values stand where one is meant.
fn or_array(value: &mut Value) {
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

/// Lets every setting below be an axis; notes the definitions that it refers to.
fn axes(schema: &mut Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            found.extend(definition(&Value::Object(object.clone())));
            let mut settings = object.remove("properties");
            object.values_mut().for_each(|value| axes(value, found));
            if let Some(Value::Object(properties)) = &mut settings {
                for value in properties.values_mut() {
                    axes(value, found);
                    or_array(value);
                }
            }
            object.extend(settings.map(|settings| ("properties".to_owned(), settings)));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| axes(value, found)),
        _ => {}
    }
}
