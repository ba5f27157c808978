//! One meaning for each type name. That functions are short is a lint (`clippy.toml`).

use crate::layering::source::{Word, modules};
use std::collections::BTreeMap;

/// Type names that several modules define. Other modules write the module before them:
/// `garnet::Settings`.
const QUALIFIED: &[&str] = &["Args", "Settings", "Spec"];

/// The types that some words define, apart from associated ones.
fn types(words: &[Word]) -> Vec<&str> {
    let (mut found, mut depth) = (Vec::new(), 0);
    for pair in words.windows(2) {
        depth += i32::from(pair[0].is("{")) - i32::from(pair[0].is("}"));
        let is_item = ["struct", "enum", "trait"].iter().any(|keyword| pair[0].is(keyword));
        if is_item || depth == 0 && pair[0].is("type") {
            let is_name = |name: &&str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            found.extend(pair[1].parts.first().map(String::as_str).filter(is_name));
        }
    }
    found
}

/// A name that several modules define is hard to search for and to talk about.
#[test]
fn type_names_have_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in modules() {
        for name in types(&source.code) {
            let files = defined.entry(name.to_owned()).or_default();
            files.push(source.file.display().to_string());
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
