//! docs/MANIFEST.md: every key of a manifest, from the types that read it.

use super::schema::{definition, has_free_keys};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// docs/MANIFEST.md, from the schema of the types, with the kinds of figures and claims. `exactfed schema --markdown`
/// prints it, and a test compares it with the file.
///
/// # Panics
/// If one of the keys in [`USED`] is no key of its section.
pub fn markdown(schema: &Value) -> String {
    let mut uses = BTreeMap::new();
    count_uses(schema, &mut uses);
    let mut page = ReferencePage {
        schema,
        uses,
        out: String::new(),
        head: String::new(),
        notes: String::new(),
        used: BTreeMap::new(),
    };
    page.write_section("Top level", "", schema, &TABLES.map(|(table, _)| table));
    for (table, pattern) in TABLES {
        let table = page.resolve(&schema["properties"][table]);
        if pattern.contains("<kind>") {
            page.write_kinds(table, pattern);
        } else {
            let value = page.resolve(table.get("items").unwrap_or(table));
            page.write_section(&format!("`{pattern}`"), description(value), value, &[]);
        }
    }
    page.write_shared_values();
    let rows: String = USED.iter().map(|used| page.used[used].as_str()).collect();
    include_str!("reference.txt").replacen("{rows}\n", &rows, 1) + &page.out
}

/// The keys that most manifests use, which a table at the top of the page lists. The first text is a part of the
/// heading of the section of a key, and the second is the key as its row there begins.
const USED: [(&str, &str); 24] = [
    ("Top level", "seed"),
    ("Top level", "replicates"),
    ("Top level", "instances"),
    ("Top level", "tune.over"),
    ("Top level", "tune.range"),
    ("Dataset", "file"),
    ("Dataset", "label"),
    ("Dataset", "split"),
    ("Dataset", "weights"),
    ("Dataset", "test"),
    ("`[budget]`", "rounds"),
    ("`[budget]`", "communications"),
    ("`[record]`", "metrics"),
    ("`[[algorithm.<kind>]]`", "step-size"),
    ("`[[algorithm.fedavg]]`", "local-steps"),
    ("`[[algorithm.fedavg]]`", "cohort"),
    ("`[compare]`", "at"),
    ("`[[figure.<kind>]]`", "panels"),
    ("`[[figure.convergence]]`", "y"),
    ("`[[figure.convergence]]`", "x"),
    ("`[[claim.<kind>]]`", "statement"),
    ("`[[claim.less]]`", "left"),
    ("`[[claim.less]]`", "right"),
    ("`[[claim.less]]`", "factor"),
];

/// The tables that have sections of their own, by their keys, and how manifests write them.
const TABLES: [(&str, &str); 12] = [
    ("problem", "[problem.<kind>]"),
    ("algorithm", "[[algorithm.<kind>]]"),
    ("start", "[start]"),
    ("budget", "[budget]"),
    ("record", "[record]"),
    ("prices", "[prices]"),
    ("compare", "[compare]"),
    ("frontier", "[[frontier]]"),
    ("phase", "[[phase]]"),
    ("figure", "[[figure.<kind>]]"),
    ("claim", "[[claim.<kind>]]"),
    ("amendment", "[[amendment]]"),
];

/// The fewest names with which a choice of several keys has a section of its own, to which these keys link. A choice
/// of fewer names is listed at each key.
const MANY_NAMES: usize = 3;

/// Counts how often each definition of a schema is referred to, in this value and all within it.
fn count_uses<'a>(value: &'a Value, uses: &mut BTreeMap<&'a str, usize>) {
    if let Some(name) = definition(value) {
        *uses.entry(name).or_default() += 1;
    }
    match value {
        Value::Object(object) => object.values().for_each(|value| count_uses(value, uses)),
        Value::Array(items) => items.iter().for_each(|value| count_uses(value, uses)),
        _ => {}
    }
}

/// The keys of a table and the schemas of their values; none of a schema that is no table.
fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table["properties"].as_object().into_iter().flatten()
}

/// The choices of an enumeration, and where a value may be of several types the names among these.
fn choices<'a>(value: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
    let names = entries(value, "anyOf").filter(|one| one.get("const").is_some());
    entries(value, "oneOf").chain(names)
}

/// The entries of the array that a schema has at this key; none if it has no such array.
fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn is_required(table: &Value, key: &str) -> bool {
    entries(table, "required").any(|name| name == key)
}

/// The names of a choice that take no values: one (`const`) or several with one description (`enum`).
fn names(choice: &Value) -> impl Iterator<Item = &Value> {
    choice.get("const").into_iter().chain(entries(choice, "enum"))
}

fn description(value: &Value) -> &str {
    value["description"].as_str().unwrap_or_default()
}

/// A text as a cell of a Markdown table, or as a paragraph: in a single line, with bars escaped.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn code_or_dash(text: &str) -> String {
    if text.is_empty() { "–".to_owned() } else { format!("`{text}`") }
}

/// The page while it is written, section by section.
struct ReferencePage<'a> {
    schema: &'a Value,
    /// How often each definition is referred to.
    uses: BTreeMap<&'a str, usize>,
    /// The text of the page so far, without its beginning.
    out: String,
    /// The heading of the current section.
    head: String,
    /// The paragraphs after the first of the descriptions of keys, which stand below the table of the section.
    notes: String,
    /// The rows of the keys in [`USED`] that were written so far, for the table at the top.
    used: BTreeMap<(&'static str, &'static str), String>,
}

impl<'a> ReferencePage<'a> {
    /// A schema, or the definition that it refers to.
    fn resolve(&self, value: &'a Value) -> &'a Value {
        definition(value).map_or(value, |name| &self.schema["$defs"][name])
    }

    /// The name of the definition of a key's value, or of the items of its list, if that definition has a section of
    /// its own to which the key links ([`Self::is_listed_once`]).
    fn shared<'v>(&self, property: &'v Value) -> Option<&'v str> {
        let name = definition(property).or_else(|| definition(property.get("items")?))?;
        self.is_listed_once(name).then_some(name)
    }

    /// The definition that [`Self::shared`] gives, if it is a choice among names and not a table.
    fn shared_names<'v>(&self, property: &'v Value) -> Option<&'v str> {
        self.shared(property).filter(|name| choices(&self.schema["$defs"][*name]).next().is_some())
    }

    /// Whether a definition is used more than once and has so many names that it is listed once for all uses.
    fn is_listed_once(&self, name: &str) -> bool {
        let definition = &self.schema["$defs"][name];
        let choices = choices(definition).count() + properties(definition).count();
        self.uses.get(name).is_some_and(|uses| *uses > 1) && choices >= MANY_NAMES
    }

    /// Writes the sections of a table that has kinds, which manifests write as `pattern` says: for arrays of tables,
    /// whose pattern begins with two brackets, one for the keys that all kinds have, and one for each kind. Kinds with
    /// one schema are in one section.
    fn write_kinds(&mut self, kinds: &'a Value, pattern: &str) {
        let mut sections: Vec<(String, &'a Value)> = Vec::new();
        let choices = entries(kinds, "oneOf").flat_map(properties).chain(properties(kinds));
        for (kind, value) in choices {
            let head = format!("`{}`", pattern.replace("<kind>", kind));
            let value = self.resolve(value.get("items").unwrap_or(value));
            match sections.iter_mut().find(|(_, known)| std::ptr::eq(*known, value)) {
                Some((heads, _)) => *heads = format!("{heads}, {head}"),
                None => sections.push((head, value)),
            }
        }
        let first = sections.first().filter(|_| pattern.starts_with("[[")).map(|(_, value)| *value);
        let keys = first.into_iter().flat_map(properties).map(|(key, _)| key.as_str());
        let (common, others): (Vec<&str>, Vec<&str>) = keys.partition(|key| {
            sections.iter().all(|(_, value)| {
                first.is_some_and(|first| first["properties"][key] == value["properties"][key])
            })
        });
        if let Some(first) = first {
            let text = "These keys are the same for all kinds.";
            self.write_section(&format!("Every `{pattern}`"), text, first, &others);
        }
        for (head, value) in sections {
            self.write_section(&head, description(value), value, &common);
        }
    }

    /// Writes a section: a heading, a text unless it is empty, and a row for every key of a table but those in
    /// `without`.
    fn write_section(&mut self, head: &str, text: &str, value: &'a Value, without: &[&str]) {
        let _ = write!(self.out, "\n## {head}\n");
        head.clone_into(&mut self.head);
        if !text.is_empty() {
            let _ = write!(self.out, "\n{}\n", one_line(text));
        }
        let from = self.out.len();
        self.write_keys(value, "", without);
        if self.out.len() == from {
            self.out.push_str("\nIt has no keys of its own.\n");
            return;
        }
        self.out.insert_str(from, "\n| key | type | range | default | example | meaning |\n| --- | --- | --- | --- | --- | --- |\n");
        self.out.push_str(&std::mem::take(&mut self.notes));
    }

    /// Writes rows for the choices of an enumeration, and for all keys of a table but those in `without`, each
    /// followed by rows for the keys of its value. `prefix` is the path of the table with its dot, or empty.
    fn write_keys(&mut self, value: &'a Value, prefix: &str, without: &[&str]) {
        choices(value).for_each(|choice| self.write_choice(choice, prefix));
        for (key, property) in properties(value) {
            if without.contains(&key.as_str()) {
                continue;
            }
            let path = format!("{prefix}{key}");
            self.write_key(&path, property, is_required(value, key));
            let target = self.resolve(property);
            if self.shared(property).is_some() {
                continue;
            }
            if let Some(items) = target.get("items") {
                let items = self.resolve(items);
                entries(items, "oneOf").for_each(|choice| self.write_names_of_items(choice, &path));
            }
            for kind in entries(target, "anyOf") {
                if self.shared_names(kind).is_none() {
                    let kind = self.resolve(kind);
                    let end = if kind.get("oneOf").is_some() { "" } else { "." };
                    self.write_keys(kind, &format!("{path}{end}"), &[]);
                }
            }
            let end = if target.get("oneOf").is_some() { "" } else { "." };
            self.write_keys(target, &format!("{path}{end}"), &[]);
        }
    }

    /// Writes the row of the key at a path, as optional if it has no default and is not `required`. The first paragraph
    /// of its description is in the row; any others are kept as notes.
    fn write_key(&mut self, path: &str, property: &'a Value, required: bool) {
        let target = self.resolve(property);
        let default = property.get("default").map(toml).unwrap_or_default();
        let mut kind = self.type_with_link(property);
        if !required && default.is_empty() {
            kind.push_str(", optional");
        }
        let meaning = [description(property), description(target)]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let example = self.example(property, &default);
        let (meaning, note) = meaning.split_once("\n\n").unwrap_or((meaning, ""));
        if !note.is_empty() {
            let _ = write!(self.notes, "\n### `{path}`\n\n{note}\n");
        }
        self.write_row(&[path, &kind, &range(property), &default, &example, meaning]);
    }

    /// Writes a row, whose first, fourth and fifth cells are code. A row of a key in [`USED`] is also kept, shortened,
    /// for the table at the top.
    fn write_row(&mut self, [key, kind, range, default, example, meaning]: &[&str; 6]) {
        let default = code_or_dash(default);
        let example = code_or_dash(example);
        let meaning = one_line(meaning);
        if let Some(used) = USED.iter().find(|used| self.head.contains(used.0) && used.1 == *key) {
            let first = meaning.split(". ").next().unwrap_or_default().trim_end_matches('.');
            let section = anchor(&self.head);
            let row = format!("| [`{key}`](#{section}) | {} | {first} | {example} |\n", used.0);
            self.used.insert(*used, row);
        }
        let _ = writeln!(
            self.out,
            "| `{key}` | {kind} | {range} | {default} | {example} | {meaning} |"
        );
    }

    /// Writes a row for each name of a choice that the items of the list at a path may be.
    fn write_names_of_items(&mut self, choice: &Value, path: &str) {
        for name in names(choice) {
            let key = format!("{path} = [{}]", toml(name));
            self.write_row(&[&key, "a name", "–", "", "", description(choice)]);
        }
    }

    /// Writes the rows of a choice of the enumeration at a path: a name, or a name with a value and the keys of this
    /// value. Without a path, the enumeration is the section itself.
    fn write_choice(&mut self, choice: &'a Value, path: &str) {
        for name in names(choice) {
            let value = toml(name);
            let example = if path.is_empty() { value } else { format!("{path} = {value}") };
            self.write_row(&[&example, "a name", "–", "", "", description(choice)]);
        }
        for (name, inner) in properties(choice) {
            let target = self.resolve(inner);
            let has_keys = target.get("properties").is_some() || has_free_keys(target);
            if target["type"] == "object" && !has_keys {
                continue; // The name alone is another choice.
            }
            let value = self.example(inner, "");
            let (below, example) = match path {
                "" => (name.clone(), format!("{name} = {value}")),
                path => (format!("{path}.{name}"), format!("{path} = {{ {name} = {value} }}")),
            };
            self.write_row(&[
                &below,
                &self.type_in_words(inner),
                "–",
                "",
                &example,
                description(choice),
            ]);
            let end = if target.get("oneOf").is_some() { "" } else { "." };
            self.write_keys(target, &format!("{below}{end}"), &[]);
        }
    }

    /// Writes a section for each definition that several keys share, if one of them links to it.
    fn write_shared_values(&mut self) {
        let shared: Vec<&str> =
            self.uses.keys().filter(|name| self.is_listed_once(name)).copied().collect();
        for name in shared {
            let definition = &self.schema["$defs"][name];
            if self.out.contains(&link(name)) {
                self.write_section(&heading_of(name), description(definition), definition, &[]);
            }
        }
    }

    /// An example of a value as TOML: the one that its schema has, or else its default, or the simplest value of its
    /// type; empty if the type has none. `default` is the default as TOML, or empty.
    fn example(&self, value: &'a Value, default: &str) -> String {
        if let Some(example) = entries(value, "examples").next() {
            return toml(example);
        }
        if !default.is_empty() {
            return default.to_owned();
        }
        let target = self.resolve(value);
        if target.get("properties").is_some() {
            let parts = properties(target)
                .filter(|(key, _)| is_required(target, key))
                .map(|(key, value)| format!("{key} = {}", self.example(value, "")));
            return format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "));
        }
        if let Some(name) = choices(target).find_map(|choice| choice.get("const")) {
            return toml(name);
        }
        match target["type"].as_str() {
            Some("integer") => "1".into(),
            Some("number") => "0.5".into(),
            Some("boolean") => "true".into(),
            Some("string") => "\"…\"".into(),
            Some("array") => format!("[{}]", self.example(&target["items"], "")),
            _ => String::new(),
        }
    }

    /// What a value is, in words, with a link to the section of the names that it or the items of its list may be, if
    /// they have a section.
    fn type_with_link(&self, value: &Value) -> String {
        match self.shared(value) {
            Some(name) if value.get("items").is_some() => format!("array of: {}", link(name)),
            Some(name) => link(name),
            None => self.type_in_words(value),
        }
    }

    /// What a value is, in words: its type, or a link to the definition of its names.
    fn type_in_words(&self, value: &Value) -> String {
        if let Some(name) = definition(value) {
            let target = &self.schema["$defs"][name];
            if choices(target).next().is_some()
                && self.is_listed_once(name)
                && target.get("oneOf").is_none()
            {
                return link(name);
            }
            let is_choice = target.get("oneOf").is_some() || target.get("enum").is_some();
            return if is_choice { "a choice".into() } else { self.type_in_words(target) };
        }
        if value.get("anyOf").is_some() {
            let kinds = entries(value, "anyOf").map(|one| match self.shared_names(one) {
                Some(_) => self.type_with_link(one),
                None => self.type_in_words(one),
            });
            return kinds.collect::<Vec<_>>().join(" or ");
        }
        match value["type"].as_str() {
            Some("integer") => "whole number".into(),
            Some("number") => "number".into(),
            Some("boolean") => "true or false".into(),
            Some("string") => "string".into(),
            Some("array") => format!("array of: {}", self.type_in_words(&value["items"])),
            Some("object") if has_free_keys(value) => {
                format!("table of: {}", self.type_in_words(&value["additionalProperties"]))
            }
            Some("object") => "table".into(),
            _ => "a choice".into(),
        }
    }
}

/// The heading of the section of a definition, from its name: "Time average" for `TimeAverage`.
fn heading_of(name: &str) -> String {
    let mut words = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && c.is_uppercase() {
            words.push(' ');
        }
        if i > 0 { words.extend(c.to_lowercase()) } else { words.push(c) }
    }
    words
}

/// A Markdown link to the section of the definition of this name.
fn link(name: &str) -> String {
    let words = heading_of(name).to_lowercase();
    format!("[{words}](#{})", anchor(&words))
}

/// The anchor that GitHub gives a heading, by which links find it.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

/// The numbers that a schema allows, in words such as "above 0" or "1 or more"; a dash if it has no limits.
fn range(value: &Value) -> String {
    if let Some(low) = value["exclusiveMinimum"].as_f64() {
        return format!("above {low}");
    }
    match (value["minimum"].as_f64(), value["maximum"].as_f64()) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} or more"),
        (None, Some(high)) => format!("{high} or less"),
        (None, None) => "–".to_owned(),
    }
}

/// A value of a schema, such as a default or an example, as TOML writes it in one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let parts = table
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml(value)))
                .collect::<Vec<_>>()
                .join(", ");
            if parts.is_empty() { "{}".into() } else { format!("{{ {parts} }}") }
        }
        other => other.to_string(),
    }
}
