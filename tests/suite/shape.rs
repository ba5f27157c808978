//! One meaning for each type name. That functions are short is a lint (`clippy.toml`).

use crate::layering::source::{Word, is_name, modules};
use std::collections::BTreeMap;

/// Type names that several modules define. Other modules write the module before them:
/// `garnet::Settings`.
const QUALIFIED: &[&str] = &["Args", "Settings", "Spec"];

/// A keyword that defines a type, the type's name, and within how many braces it stands.
fn types(words: &[Word]) -> Vec<(&str, &str, usize)> {
    let (mut found, mut depth) = (Vec::new(), 0);
    for pair in words.windows(2) {
        match (pair[0].text.as_str(), pair[1].text.as_str()) {
            ("{", _) => depth += 1,
            ("}", _) => depth -= 1,
            (keyword @ ("struct" | "enum" | "trait" | "type"), name) if is_name(name) => {
                found.push((keyword, name, depth));
            }
            _ => {}
        }
    }
    found
}

/// A name that several modules define is hard to search for and to talk about.
#[test]
fn type_names_have_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, source) in modules() {
        for (keyword, name, depth) in types(&source.code) {
            let is_associated = depth > 0 && keyword == "type";
            if !is_associated {
                defined.entry(name.to_owned()).or_default().push(file.display().to_string());
            }
        }
    }
    assert!(defined.len() > 200, "the types were found");
    let is_ambiguous = |name: &str, files: &[String]| files.len() > 1 && !QUALIFIED.contains(&name);
    let found: Vec<String> = defined
        .iter()
        .filter(|(name, files)| is_ambiguous(name, files))
        .map(|(name, files)| format!("{name}: {}", files.join(", ")))
        .collect();
    assert!(found.is_empty(), "types of one name:\n{}", found.join("\n"));
    for name in ["Result", "Copy", "Option", "Vec", "String", "Box", "Ordering", "Iterator"] {
        assert!(!defined.contains_key(name), "{name} hides a name of the standard library");
    }
}
