//! Writing out a documented default changes no id: every setting of every table that the
//! JSON Schema gives a default for, and that enters a cell's id or could.

use exactfed::manifest::Source;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A table without and with one default written out, and where the default is.
type Pair = (Value, Value, String);

struct Schema {
    whole: Value,
}

impl Schema {
    /// What a value is: without references, and of an axis one value.
    fn resolved<'a>(&'a self, mut node: &'a Value) -> &'a Value {
        loop {
            node = match (node.get("$ref"), node.get("anyOf")) {
                (Some(name), _) => {
                    let name = name.as_str().unwrap().rsplit('/').next().unwrap();
                    &self.whole["$defs"][name]
                }
                (None, Some(choices)) => &choices[0],
                (None, None) => return node,
            };
        }
    }

    /// An example of a value: its own, or that of what it is.
    fn example(&self, node: &Value) -> Value {
        if let Some(example) = node.get("examples").and_then(|all| all.get(0)) {
            return example.clone();
        }
        let node = self.resolved(node);
        if let Some(example) = node.get("examples").and_then(|all| all.get(0)) {
            return example.clone();
        }
        match node.get("properties") {
            Some(_) => self.least(node),
            None => panic!("no example of {node}"),
        }
    }

    /// A table with nothing but what it needs.
    fn least(&self, node: &Value) -> Value {
        let needed = node.get("required").and_then(Value::as_array).into_iter().flatten();
        let needed = needed.map(|key| key.as_str().unwrap().to_owned());
        let example = |key: String| (key.clone(), self.example(&node["properties"][&key]));
        let mut table: Map<String, Value> = needed.map(example).collect();
        // Records are dealt to so many clients, unless a column says to whom.
        if node["properties"].get("split").is_some() && table.contains_key("file") {
            table.insert("clients".into(), json!(10));
        }
        Value::Object(table)
    }

    /// All pairs of a table, or of the choices of an enumeration.
    fn pairs(&self, node: &Value, path: &str) -> Vec<Pair> {
        let node = self.resolved(node);
        let mut all = Vec::new();
        for choice in node.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            for (name, inner) in choice["properties"].as_object().into_iter().flatten() {
                let wrap = |value: Value| json!({ name: value });
                let inner = self.pairs(inner, &format!("{path}.{name}"));
                all.extend(inner.into_iter().map(|(a, b, at)| (wrap(a), wrap(b), at)));
            }
        }
        let Some(properties) = node["properties"].as_object() else { return all };
        let base = self.least(node);
        let with = |key: &str, value: Value| {
            let mut table: Map<String, Value> = base.as_object().unwrap().clone();
            table.insert(key.to_owned(), value);
            Value::Object(table)
        };
        for (key, property) in properties {
            let at = format!("{path}.{key}");
            if let Some(default) = property.get("default") {
                all.push((base.clone(), with(key, default.clone()), at.clone()));
            }
            let tables = self.resolved(property).get("items").is_some();
            let inner = if tables { Vec::new() } else { self.pairs(property, &at) };
            all.extend(inner.into_iter().map(|(a, b, at)| (with(key, a), with(key, b), at)));
        }
        all
    }
}

/// A value as TOML writes it in one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let parts: Vec<String> =
                table.iter().map(|(k, v)| format!("{k} = {}", toml(v))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

const QUADRATIC: &str =
    "{ dimension = 2, clients = 4, spectrum = { from = 0.5, to = 1.0 }, noise = 1.0 }";

/// Ids of the cells of a manifest of these parts.
fn ids(folder: &std::path::Path, parts: &[(&str, String)]) -> Result<Vec<String>, String> {
    let part = |name: &str, usual: &str| {
        let own = parts.iter().find(|(key, _)| *key == name);
        own.map_or(usual.to_owned(), |(_, value)| value.clone())
    };
    let text = format!(
        "title = \"t\"\nseed = 1\nreplicates = 2\n{}\nproblem = {}\nstart = {{ offset = 1.0 }}\n\
         budget = {{ rounds = 100 }}\nrecord = {}\nalgorithm = {}\n",
        part("top", ""),
        part("problem", &format!("{{ quadratic = {QUADRATIC} }}")),
        part("record", "{ averages = [\"bias\"] }"),
        part("algorithm", "{ fedavg = [{ step-size = 0.1, local-steps = 2 }] }"),
    );
    let name = folder.join("m.toml").display().to_string();
    let source = Source { name, text: text.clone(), ..Source::default() };
    let plan = exactfed::evidence::plan("m".into(), source).map_err(|e| format!("{e}\n{text}"))?;
    Ok(plan.cells.into_iter().map(|cell| cell.id.to_string()).collect())
}

/// Adds what an algorithm needs beyond what its schema requires, since it may be tuned.
fn complete(table: &mut Value, has_key: impl Fn(&str) -> bool) {
    match has_key("local-steps") {
        true => table["local-steps"] = json!(10),
        false if has_key("communication-probability") => {
            table["communication-probability"] = json!(0.5);
        }
        false => (),
    }
    if has_key("proximal") {
        table["proximal"] = json!(0.1);
    }
    if table.get("step-size").is_none() {
        table["step-size"] = json!(0.1);
    }
}

#[test]
fn a_default_that_is_written_out_changes_no_id() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["lsa.npz", "chains.npz", "records.csv"] {
        std::fs::write(folder.path().join(file), file).unwrap();
    }
    let schema = Schema { whole: exactfed::evidence::KINDS.json_schema() };
    let properties = &schema.whole["properties"];
    let mut seen = BTreeSet::new();
    let mut same = |at: &str, a: &[(&str, String)], b: &[(&str, String)]| {
        let [a, b] =
            [a, b].map(|parts| ids(folder.path(), parts).unwrap_or_else(|e| panic!("{at}: {e}")));
        assert_eq!(a, b, "{at} changes ids when its default is written out");
        seen.insert(at.to_owned());
    };
    for (key, property) in properties.as_object().unwrap() {
        if let Some(default) = property.get("default").filter(|default| !default.is_object()) {
            same(key, &[], &[("top", format!("{key} = {}", toml(default)))]);
        }
    }
    for (a, b, at) in schema.pairs(&properties["problem"], "problem") {
        same(&at, &[("problem", toml(&a))], &[("problem", toml(&b))]);
    }
    for (a, b, at) in schema.pairs(&properties["record"], "record") {
        let [a, b] = [a, b].map(|mut table| {
            table["averages"] = json!(["bias"]);
            toml(&table)
        });
        same(&at, &[("record", a)], &[("record", b)]);
    }
    let kinds = schema.resolved(&properties["algorithm"]);
    for (kind, list) in kinds["properties"].as_object().unwrap() {
        let items = &schema.resolved(list)["items"];
        let has_key = |key: &str| schema.resolved(items)["properties"].get(key).is_some();
        for (a, b, at) in schema.pairs(items, &format!("algorithm.{kind}")) {
            let [a, b] = [a, b].map(|mut table| {
                complete(&mut table, has_key);
                // FedNova has no falling steps with a proximal term.
                if kind == "fednova" && table.get("decay").is_some() {
                    table.as_object_mut().unwrap().remove("proximal");
                }
                format!("{{ {kind} = [{}] }}", toml(&table))
            });
            let steps = ("problem", format!("{{ quadratic = {QUADRATIC} }}"));
            same(&at, &[("algorithm", a), steps.clone()], &[("algorithm", b), steps]);
        }
    }
    for must in [
        "oracle",
        "instance",
        "problem.logistic-dataset.dataset.label",
        "problem.garnet.noise",
        "problem.garnet.heterogeneity.perturbed.reward",
        "record.points",
        "record.burn-in",
        "algorithm.fedavg.server-step",
        "algorithm.fedavg.batch-per-client",
        "algorithm.scaffold.clock",
    ] {
        assert!(seen.contains(must), "{must} is not among {seen:#?}");
    }
}

/// A default that is described in words alone is not tested above: there is none but those that
/// are no one value.
#[test]
fn defaults_in_words_are_no_values() {
    let page = exactfed::evidence::KINDS.reference();
    let (settings, _) = page.split_once("`[[figure.<kind>]]`\n").unwrap();
    for row in settings.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [key, _, _, default, _, meaning] = cells[..] else { continue };
        let in_words = meaning.contains("by default") && default == "–";
        let no_value =
            ["`label`", "`cohort`", "`bandwidth`", "`frontier`", "`noise-seed`"].contains(&key);
        assert!(!in_words || no_value, "{row}");
    }
}
