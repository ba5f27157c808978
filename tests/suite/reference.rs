//! The schema and the reference page: made from the types, true of manifests.

use crate::support::{Bench, edited, files_with, root, smoke};
use serde_json::{Value, json};

fn schema() -> Value {
    let output = Bench::new().run(&["schema"]).expect(0);
    serde_json::from_str(&output.out).unwrap()
}

/// Whether a value satisfies a schema of the few keywords that ours uses; a
/// keyword that it does not know fails the test.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else { return schema != &json!(false) };
    keywords.iter().all(|(keyword, rule)| {
        let list = || rule.as_array().unwrap().iter();
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "format" => {
                true
            }
            "$ref" => {
                let name = rule.as_str().unwrap().rsplit('/').next().unwrap();
                valid(root, &root["$defs"][name], value)
            }
            "type" if rule.is_array() => {
                list().any(|one| valid(root, &json!({ "type": one }), value))
            }
            "type" => match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "const" => value == rule,
            "enum" => list().any(|one| one == value),
            "minimum" => value.as_f64().is_none_or(|x| x >= rule.as_f64().unwrap()),
            "exclusiveMinimum" => value.as_f64().is_none_or(|x| x > rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|x| x <= rule.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()),
            "maxProperties" => {
                value.as_object().is_none_or(|o| o.len() as u64 <= rule.as_u64().unwrap())
            }
            "items" => value.as_array().is_none_or(|a| a.iter().all(|v| valid(root, rule, v))),
            "required" => value
                .as_object()
                .is_none_or(|o| list().all(|key| o.contains_key(key.as_str().unwrap()))),
            "properties" => value.as_object().is_none_or(|o| {
                o.iter().all(|(key, v)| rule.get(key).is_none_or(|schema| valid(root, schema, v)))
            }),
            "additionalProperties" if rule != &json!(false) => {
                value.as_object().is_none_or(|o| o.values().all(|v| valid(root, rule, v)))
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                value.as_object().is_none_or(|o| {
                    o.keys().all(|key| known.is_some_and(|known| known.contains_key(key)))
                })
            }
            "anyOf" => list().any(|one| valid(root, one, value)),
            "oneOf" => list().filter(|one| valid(root, one, value)).count() == 1,
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    })
}

fn read(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn every_manifest_satisfies_the_schema() {
    let schema = schema();
    let files = files_with(&root().join("experiments"), "toml");
    assert!(files.len() > 25, "{} manifests", files.len());
    for file in files {
        let value = read(&std::fs::read_to_string(&file).unwrap());
        assert!(valid(&schema, &schema, &value), "{}", file.display());
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema = schema();
    let bench = Bench::new();
    let good = std::fs::read_to_string(smoke("garnet.toml")).unwrap();
    for (from, to) in [
        ("states = 10", "state = 10"),
        ("states = 10", "states = \"ten\""),
        ("states = 10", ""),
        ("[problem.garnet]", "[problem.granet]"),
        ("offset = 1.0", "offset = true"),
        ("points = 10", "points = [10, 20]"),
        ("x = \"communications\"", "x = \"rounds\""),
        ("{ independent = {} }", "{ independent = { kernel = 1.0 } }"),
        ("seed = 7", "seed = -7"),
        ("[[algorithm.fedlsa]]", "[[algorithm.fedsla]]"),
        ("clients = [3, 8]", "clients = []"),
        ("step-size = 0.", "step-size = 0.0 # 0."),
    ] {
        let bad = edited(&good, &[(from, to)]);
        bench.write("bad.toml", &bad);
        bench.run(&["check", "bad.toml"]).expect(2);
        assert!(!valid(&schema, &schema, &read(&bad)), "{to}");
    }
    for (from, to) in [
        ("states = 10", "states = [10, 12]"),
        ("{ independent = {} }", "\"independent\""),
        ("offset = 1.0", "offset = [0.0, 1.0]"),
        ("{ kernel = 0.02,", "{ kernel = [0.02, 0.2],"),
    ] {
        let other = edited(&good, &[(from, to)]);
        bench.write("good.toml", &other);
        bench.run(&["check", "good.toml"]).expect(0);
        assert!(valid(&schema, &schema, &read(&other)), "{to}");
    }
}

#[test]
fn the_reference_page_is_what_the_types_say() {
    let output = Bench::new().run(&["schema", "--markdown"]).expect(0);
    let kept = std::fs::read_to_string(root().join("docs/MANIFEST.md")).unwrap();
    assert!(kept == output.out, "docs/MANIFEST.md is stale: run `make docs`");
}

#[test]
fn the_keys_that_people_use_lead_to_their_entries() {
    let page = exactfed::evidence::KINDS.reference();
    let (_, rest) = page.split_once("## The keys that people use\n").unwrap();
    let (used, sections) = rest.split_once("\n## ").unwrap();
    let rows: Vec<&str> = used.lines().filter(|line| line.starts_with("| [`")).collect();
    assert!(rows.len() >= 20, "{used}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [link, section, text, example] = cells[..] else { panic!("not four cells: {row}") };
        let key = link.split('`').nth(1).unwrap();
        let entries = sections.split("\n## ").filter(|entries| {
            entries.lines().next().is_some_and(|heading| heading.contains(section))
        });
        let is_entry = |line: &&str| line.starts_with(&format!("| `{key}` |"));
        let entries: Vec<&str> = entries.flat_map(str::lines).filter(is_entry).collect();
        assert!(entries.len() == 1 && entries[0].contains(text), "{row}: {entries:?}");
        assert!(!text.is_empty() && example != "–", "{row}");
    }
}

/// The page on own algorithms lists every compressor with the formulas that the program has.
#[test]
fn the_page_lists_every_compressor() {
    let page = include_str!("../../docs/EXTENDING.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for info in exactfed::compression::COMPRESSORS {
        let omega = info.omega.map_or("Biased".to_owned(), |omega| format!("ω = {omega}"));
        let said = format!("sends {}. {omega}. Bits: {}.", info.sends, info.bits);
        let item = format!("- `{}` (", info.form());
        assert!(page.contains(&said) && page.contains(&item), "{item} … {said}");
    }
}
