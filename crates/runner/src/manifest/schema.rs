//! What a manifest may say, made from the types that read it: JSON Schema for
//! editors, and docs/MANIFEST.md for readers. Neither is written by hand, so
//! neither can go stale.

use super::Manifest;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The JSON Schema of a manifest.
pub fn json() -> Value {
    let mut schema = schemars::schema_for!(Manifest).to_value();
    tidy(&mut schema);
    // What may be an axis of the grid may be an array of such values.
    let mut varied = Vec::new();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (key, value) in properties.iter_mut().filter(|(key, _)| Manifest::may_vary(key)) {
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
    schema
}

/// What serde's types imply and schemars does not say: unknown keys are
/// errors, TOML has no null, and a name stands for its empty table.
fn tidy(schema: &mut Value) {
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
            // serde does not write labels down; that says nothing of manifests.
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
fn definition(value: &Value) -> Option<String> {
    Some(value.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned())
}

/// Lets an array of such values stand where one is meant.
fn or_array(value: &mut Value) {
    let tables = value.get("items").is_some_and(|items| items.get("$ref").is_some());
    if value.get("type").is_some_and(|kind| kind == "array") && tables {
        return;
    }
    let Some(object) = value.as_object_mut() else { return };
    let mut kept = Map::new();
    for key in ["description", "default", "examples"] {
        kept.extend(object.remove(key).map(|v| (key.to_owned(), v)));
    }
    let one = Value::Object(std::mem::take(object));
    kept.insert("anyOf".into(), json!([one, { "type": "array", "items": one, "minItems": 1 }]));
    *object = kept;
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

/// docs/MANIFEST.md.
pub fn markdown() -> String {
    let mut schema = schemars::schema_for!(Manifest).to_value();
    tidy(&mut schema);
    let page = Page { defs: &schema["$defs"] };
    let mut out = String::from(INTRODUCTION);
    page.section(&mut out, "Top level", &schema, "");
    for (table, array) in [("problem", ""), ("algorithm", "["), ("figure", "["), ("claim", "[")] {
        let close = array.replace('[', "]");
        let kinds = page.resolve(&schema["properties"][table]);
        for (kind, value) in page.kinds(kinds) {
            let whole = page.resolve(value.get("items").unwrap_or(value));
            let head = format!("{array}[{table}.{kind}]{close}");
            page.section(&mut out, &format!("`{head}`"), whole, "");
        }
    }
    for table in ["start", "budget", "record", "prices"] {
        let value = page.resolve(&schema["properties"][table]);
        page.section(&mut out, &format!("`[{table}]`"), value, "");
    }
    out
}

const INTRODUCTION: &str = "# Manifests

<!-- Made by `make docs` from the types that read manifests; a test compares. -->

Every key of a manifest: what it is, its type, its range and default, and an example. Keys
without a default are needed, unless the type says `optional`. Unknown keys are errors.

A manifest has one `[problem.<kind>]`, one `[start]`, one `[budget]` and at least one
`[[algorithm.<kind>]]`; `[record]`, `[prices]`, `[[figure.<kind>]]` and `[[claim.<kind>]]` are
optional.

Where one value is meant, any setting of `problem`, `start`, `budget`, `algorithm` and `oracle`
may be an array: an axis of the grid; where a list is meant, a list of lists. `zip = [[\"step-size\", \"local-steps\"]]` makes axes move
together; an axis is in one zip at most. Paths of data files are relative to the manifest's
folder.

A manifest's own path names its results: the part below the last folder called `experiments`,
or else its file name, without `.toml`. It has letters, digits, `-`, `_` and `.` only, and no
part of it begins with a dot or is the name of something that results or reports consist of:
`figures`, 16 hexadecimal digits, `pack-` and these, or a name that ends as their files do
(`README.md`, `experiment.toml`). Names that differ only in upper and lower case are refused.

Writing out a default changes no cell.

For an editor that reads JSON Schema: `driftbench schema > manifest.schema.json`, and
`#:schema ./manifest.schema.json` as the first line of a manifest.
";

/// A key of a manifest, ready to be printed.
struct Row {
    key: String,
    kind: String,
    range: String,
    default: String,
    example: String,
    meaning: String,
}

struct Page<'a> {
    defs: &'a Value,
}

impl<'a> Page<'a> {
    fn resolve(&self, value: &'a Value) -> &'a Value {
        match definition(value) {
            Some(name) => &self.defs[&name],
            None => value,
        }
    }

    /// The kinds of a table: its properties, or the one property of each choice.
    fn kinds(&self, table: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let of = |value: &'a Value| value.get("properties").and_then(Value::as_object);
        match table.get("oneOf").and_then(Value::as_array) {
            Some(choices) => {
                let one = |choice| of(choice).and_then(|p| p.iter().next());
                choices.iter().filter_map(one).map(|(k, v)| (k.as_str(), v)).collect()
            }
            None => of(table).into_iter().flatten().map(|(k, v)| (k.as_str(), v)).collect(),
        }
    }

    fn section(&self, out: &mut String, head: &str, value: &'a Value, prefix: &str) {
        let mut rows = Vec::new();
        self.rows(&mut rows, value, prefix);
        let _ = write!(out, "\n## {head}\n");
        if let Some(text) = value.get("description").and_then(Value::as_str) {
            let text = line(text);
            if !text.starts_with('`') && !head.starts_with("Top") {
                let _ = write!(out, "\n{text}\n");
            }
        }
        out.push_str("\n| key | type | range | default | example | meaning |\n");
        out.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for row in rows {
            let Row { key, kind, range, default, example, meaning } = row;
            let code = |text: &str| {
                if text.is_empty() { "–".to_owned() } else { format!("`{text}`") }
            };
            let range = if range.is_empty() { "–".into() } else { range };
            let _ = writeln!(
                out,
                "| {} | {kind} | {range} | {} | {} | {} |",
                code(&key),
                code(&default),
                code(&example),
                meaning.replace('|', "\\|")
            );
        }
    }

    /// A row for every key of a table, or every choice of an enumeration.
    fn rows(&self, rows: &mut Vec<Row>, value: &'a Value, prefix: &str) {
        let required: Vec<&str> = value
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(Value::Array(choices)) = value.get("oneOf") {
            choices.iter().for_each(|choice| self.choice(rows, choice, prefix));
            return;
        }
        for (key, property) in
            value.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let key = format!("{prefix}{key}");
            let target = self.resolve(property);
            let is_needed = required.contains(&key.rsplit('.').next().unwrap_or_default());
            let top = prefix.is_empty()
                && [
                    "problem",
                    "algorithm",
                    "figure",
                    "claim",
                    "start",
                    "budget",
                    "record",
                    "prices",
                ]
                .contains(&key.as_str());
            if !top {
                rows.push(self.row(&key, property, target, is_needed));
                let below = format!("{key}.");
                if let Some(items) = target.get("items") {
                    self.members(rows, self.resolve(items), &key);
                }
                match (target.get("oneOf"), target.get("properties")) {
                    (Some(_), _) => self.rows(rows, target, &key),
                    (_, Some(_)) => self.rows(rows, target, &below),
                    _ => {}
                }
            }
        }
    }

    /// A row for each name that a list may hold.
    fn members(&self, rows: &mut Vec<Row>, items: &'a Value, key: &str) {
        let choices = items.get("oneOf").and_then(Value::as_array);
        for choice in choices.into_iter().flatten() {
            let Some(name) = choice.get("const") else { continue };
            let meaning = choice.get("description").and_then(Value::as_str).map(line);
            let written = format!("{key} = [{}]", toml(name));
            rows.push(Row {
                key: written.clone(),
                kind: "a name".into(),
                range: String::new(),
                default: String::new(),
                example: written,
                meaning: meaning.unwrap_or_default(),
            });
        }
    }

    fn row(&self, key: &str, property: &Value, target: &Value, needed: bool) -> Row {
        let text = |value: &Value| value.get("description").and_then(Value::as_str).map(line);
        let default = property.get("default").map(toml).unwrap_or_default();
        let example = property.get("examples").and_then(|e| e.get(0)).map(toml);
        let mut kind = self.kind(property);
        if !needed && default.is_empty() {
            kind.push_str(", optional");
        }
        Row {
            key: key.to_owned(),
            kind,
            range: range(property),
            example: example.unwrap_or_else(|| self.example(target, &default)),
            default,
            meaning: text(property).or_else(|| text(target)).unwrap_or_default(),
        }
    }

    /// A choice of an enumeration: a name, or a name with a value.
    fn choice(&self, rows: &mut Vec<Row>, choice: &'a Value, key: &str) {
        let meaning = choice.get("description").and_then(Value::as_str).map(line);
        let meaning = meaning.unwrap_or_default();
        let equals = |value: &str| {
            if key.is_empty() { value.to_owned() } else { format!("{key} = {value}") }
        };
        let of = |written: String, kind: &str| Row {
            key: written.clone(),
            kind: kind.into(),
            range: String::new(),
            default: String::new(),
            example: written,
            meaning: meaning.clone(),
        };
        if let Some(name) = choice.get("const") {
            rows.push(of(equals(&toml(name)), "a name"));
        }
        for name in choice.get("enum").and_then(Value::as_array).into_iter().flatten() {
            rows.push(of(equals(&toml(name)), "a name"));
        }
        for (name, inner) in
            choice.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let target = self.resolve(inner);
            let empty = target.get("properties").is_none() && target["type"] == "object";
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            if empty {
                continue; // its name alone is another choice
            }
            let example = inner.get("examples").and_then(|e| e.get(0)).map(toml);
            let value = example.unwrap_or_else(|| self.example(target, ""));
            let written = if key.is_empty() {
                format!("{name} = {value}")
            } else {
                format!("{key} = {{ {name} = {value} }}")
            };
            let mut row = of(written, &self.kind(inner));
            row.key = below.clone();
            rows.push(row);
            self.rows(rows, target, &format!("{below}."));
        }
    }

    /// An example of a value: its default, or the simplest there is.
    fn example(&self, target: &Value, default: &str) -> String {
        if !default.is_empty() {
            return default.to_owned();
        }
        if let Some(Value::Object(properties)) = target.get("properties") {
            let required = target.get("required").and_then(Value::as_array);
            let parts = properties.iter().filter(|(key, _)| {
                required.is_some_and(|list| list.iter().any(|name| name == key.as_str()))
            });
            let part = |(key, value): (&String, &Value)| {
                let example = value.get("examples").and_then(|e| e.get(0)).map(toml);
                format!("{key} = {}", example.unwrap_or_else(|| self.example(value, "")))
            };
            return format!("{{ {} }}", parts.map(part).collect::<Vec<_>>().join(", "));
        }
        if let Some(Value::Array(choices)) = target.get("oneOf") {
            return choices.iter().find_map(|c| c.get("const")).map(toml).unwrap_or_default();
        }
        match target.get("type").and_then(Value::as_str) {
            Some("integer") => "1".into(),
            Some("number") => "0.5".into(),
            Some("boolean") => "true".into(),
            Some("string") => "\"…\"".into(),
            Some("array") => format!("[{}]", self.example(&target["items"], "")),
            _ => String::new(),
        }
    }

    fn kind(&self, value: &Value) -> String {
        if let Some(name) = definition(value) {
            let target = &self.defs[&name];
            return if target.get("oneOf").is_some() || target.get("enum").is_some() {
                "a choice".into()
            } else {
                self.kind(target)
            };
        }
        match value.get("type").and_then(Value::as_str) {
            Some("integer") => "whole number".into(),
            Some("number") => "number".into(),
            Some("boolean") => "true or false".into(),
            Some("string") => "string".into(),
            Some("array") => format!("array of: {}", self.kind(&value["items"])),
            Some("object") => "table".into(),
            _ => "a choice".into(),
        }
    }
}

/// A doc comment in one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn range(value: &Value) -> String {
    let bound = |key: &str| value.get(key).and_then(Value::as_f64);
    if let Some(low) = bound("exclusiveMinimum") {
        return format!("above {low}");
    }
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} or more"),
        (None, Some(high)) => format!("{high} or less"),
        (None, None) => String::new(),
    }
}

/// A value as TOML writes it.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let parts = table.iter().map(|(key, value)| format!("{key} = {}", toml(value)));
            let parts = parts.collect::<Vec<_>>().join(", ");
            if parts.is_empty() { "{}".into() } else { format!("{{ {parts} }}") }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_type_an_example_and_a_meaning() {
        let page = markdown();
        let mut keys = 0;
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 6, "{row}");
            assert!(!cells[1].is_empty() && cells[4].len() > 2 && cells[5].len() > 3, "{row}");
            assert!(!cells[4].contains("\"…\""), "an example is missing: {row}");
            keys += 1;
        }
        assert!(keys > 150, "{keys} keys");
    }

    /// Examples that are whole values must be read as what they stand for.
    #[test]
    fn examples_are_toml() {
        for row in markdown().lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let example = cells[4].trim_matches('`');
            let text = if example.contains(" = ") && !example.starts_with(['{', '[', '"']) {
                example.to_owned()
            } else {
                format!("key = {example}")
            };
            assert!(::toml::from_str::<::toml::Table>(&text).is_ok(), "{row}\n{text}");
        }
    }
}
