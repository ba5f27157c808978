//! One meaning for each type name. That functions are short is a lint (`clippy.toml`).

use crate::layering::source::modules;
use std::{collections::BTreeMap, path::Path};

/// Type names that several modules define. Other modules write the module before them:
/// `garnet::Settings`.
const QUALIFIED: &[&str] = &["Args", "Settings", "Spec"];

/// A name that several modules define is hard to search for and to talk about.
#[test]
fn type_names_have_one_meaning() {
    let mut defined: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for source in modules("") {
        let (mut depth, mut keyword) = (0, "");
        for word in source.code.split_whitespace() {
            depth += i32::from(word == "{") - i32::from(word == "}");
            // Types further in are associated ones.
            let is_type =
                matches!(keyword, "struct" | "enum" | "trait") || keyword == "type" && depth == 0;
            if is_type && word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                defined.entry(word).or_default().push(&source.file);
            }
            keyword = word;
        }
    }
    assert!(defined.len() > 200, "the types were found");
    let several = |(name, files): &(&&str, &Vec<_>)| files.len() > 1 && !QUALIFIED.contains(name);
    let found: Vec<_> = defined.iter().filter(several).collect();
    assert!(found.is_empty(), "types of one name: {found:#?}");
    for name in ["Result", "Copy", "Option", "Vec", "String", "Box", "Ordering", "Iterator"] {
        assert!(!defined.contains_key(name), "{name} hides a name of the standard library");
    }
}
