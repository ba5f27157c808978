//! The shape of the sources: short functions, small structs, one meaning for each type name.

use crate::layering::source::{Word, group, is_name, modules, words};
use crate::support::{files_with, root};
use std::collections::BTreeMap;

/// The most lines of a function, its signature included.
const MOST_LINES: usize = 60;
/// The most fields of a struct.
const MOST_FIELDS: usize = 12;

/// Structs that may have more fields, with the reason.
const LARGE_STRUCTS: &[(&str, &str)] =
    &[("Manifest", "its fields are the keys at the top of a manifest")];

/// Type names that several modules define. Other modules write the module before them:
/// `garnet::Settings`.
const QUALIFIED: &[&str] = &["Args", "Settings", "Spec"];

/// The folders of all that is formatted.
const EVERYTHING: [&str; 7] =
    ["src", "crates", "examples", "benches", "tests", "fuzz/src", "fuzz/targets"];

/// An item of a source file.
struct Item<'a> {
    name: &'a str,
    /// From its keyword to its end.
    words: &'a [Word],
    /// Within how many braces it is.
    depth: usize,
}

impl Item<'_> {
    fn lines(&self) -> usize {
        self.words[self.words.len() - 1].line - self.words[0].line + 1
    }

    /// The number of named fields of a struct: one colon each, outside all inner brackets.
    fn fields(&self) -> usize {
        let texts: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let begin = texts.iter().position(|text| *text == "{").unwrap_or(texts.len());
        let (mut i, mut colons) = (begin + 1, 0);
        while i < texts.len() {
            colons += usize::from(texts[i] == ":");
            i = if ["(", "[", "{"].contains(&texts[i]) { group(&texts, i) } else { i + 1 };
        }
        colons
    }
}

/// The items that one of these keywords begins, at any depth.
fn items<'a>(words: &'a [Word], keywords: &[&str]) -> Vec<Item<'a>> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let (mut found, mut depth) = (Vec::new(), 0);
    for (first, pair) in texts.windows(2).enumerate() {
        match pair[0] {
            "{" => depth += 1,
            "}" => depth -= 1,
            keyword if keywords.contains(&keyword) && is_name(pair[1]) => {
                let mut end = first + 2;
                while end < texts.len() && !["{", "}", ";"].contains(&texts[end]) {
                    let is_open = ["(", "["].contains(&texts[end]);
                    end = if is_open { group(&texts, end) } else { end + 1 };
                }
                let is_body = texts.get(end) == Some(&"{");
                let end = if is_body { group(&texts, end) } else { texts.len().min(end + 1) };
                found.push(Item { name: pair[1], words: &words[first..end], depth });
            }
            _ => {}
        }
    }
    found
}

/// What of all sources is too large by a measure, and whether the measure sees it in `planted`.
fn too_large(measure: impl Fn(&str, &[Word]) -> Vec<String>, planted: &str) -> [Vec<String>; 2] {
    let files = EVERYTHING.iter().flat_map(|folder| files_with(&root().join(folder), "rs"));
    let found = files.flat_map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        measure(&file.strip_prefix(root()).unwrap().display().to_string(), &words(&text))
    });
    [found.collect(), measure("a.rs", &words(planted))]
}

#[test]
fn functions_are_short() {
    let long = |file: &str, words: &[Word]| {
        let items = items(words, &["fn"]).into_iter().filter(|item| item.lines() > MOST_LINES);
        items.map(|item| format!("{file}: {} has {} lines", item.name, item.lines())).collect()
    };
    let planted = format!("    pub const fn f() {{\n{}    }}\n", "        g();\n".repeat(59));
    let [found, planted] = too_large(long, &planted);
    assert!(found.is_empty(), "functions of more than {MOST_LINES} lines:\n{}", found.join("\n"));
    assert_eq!(planted, ["a.rs: f has 61 lines"]);
}

#[test]
fn structs_are_small() {
    let large = |file: &str, words: &[Word]| {
        let is_allowed = |item: &Item<'_>| LARGE_STRUCTS.iter().any(|(name, _)| *name == item.name);
        let items = items(words, &["struct"]).into_iter();
        let large = items.filter(|item| item.fields() > MOST_FIELDS && !is_allowed(item));
        large.map(|item| format!("{file}: {} has {}", item.name, item.fields())).collect()
    };
    let some: String =
        (0..13).map(|i| format!("    /// One.\n    pub(super) f{i}: [u8; 2],\n")).collect();
    let [found, planted] = too_large(large, &format!("pub struct S<'a> {{\n{some}}}\n"));
    assert!(found.is_empty(), "structs of more than {MOST_FIELDS} fields:\n{}", found.join("\n"));
    assert_eq!(planted, ["a.rs: S has 13"]);
}

/// A name that several modules define is hard to search for and to talk about.
#[test]
fn type_names_have_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, source) in modules() {
        for item in items(&source.code, &["struct", "enum", "trait", "type"]) {
            let is_associated = item.depth > 0 && item.words[0].text == "type";
            if !is_associated {
                defined.entry(item.name.to_owned()).or_default().push(file.display().to_string());
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
