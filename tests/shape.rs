//! The shape of the sources: short functions, small structs, one meaning for each type name.
//!
//! Sources are formatted by rustfmt, so an item ends at the first line that consists of its
//! own indentation and a closing brace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// Modules whose whole text is for tests.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests")
}

/// The Rust sources below these folders, by their path below the root.
fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

const PROGRAM: &[&str] = &["src", "crates/core/src", "crates/runner/src"];
const EVERYTHING: &[&str] = &[
    "src",
    "crates/core/src",
    "crates/runner/src",
    "crates/runner/examples",
    "examples",
    "benches",
    "tests",
    "fuzz/src",
    "fuzz/targets",
];

/// An item of a source file.
struct Item<'a> {
    name: &'a str,
    /// From the line of its name to its closing brace.
    lines: Vec<&'a str>,
}

/// The items that one of these keywords begins, at any depth.
fn items<'a>(text: &'a str, keywords: &[&str]) -> Vec<Item<'a>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let indentation = &line[..line.len() - line.trim_start().len()];
        let Some(name) = keywords.iter().find_map(|keyword| declared(line.trim_start(), keyword))
        else {
            continue;
        };
        let end = format!("{indentation}}}");
        let is_end = |line: &str| line == end || line == format!("{indentation}}};");
        let ends_here = line.ends_with(';') || line.ends_with('}');
        let length = match ends_here {
            true => Some(1),
            false => lines[first..].iter().position(|line| is_end(line)).map(|last| last + 1),
        };
        let Some(length) = length else { continue };
        found.push(Item { name, lines: lines[first..first + length].to_vec() });
    }
    found
}

/// The name that a line declares with this keyword.
fn declared<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        };
        rest = rest.strip_prefix(' ')?;
    }
    for qualifier in ["const ", "unsafe ", "async "] {
        rest = rest.strip_prefix(qualifier).unwrap_or(rest);
    }
    let name = rest.strip_prefix(keyword)?.strip_prefix(' ')?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

/// The number of named fields of a struct.
fn fields(item: &Item<'_>) -> usize {
    let Some(first) = item.lines.first() else { return 0 };
    let depth = first.len() - first.trim_start().len() + 4;
    let is_field = |line: &&&str| {
        let text = line.trim_start();
        let name = text.strip_prefix("pub").map_or(text, |rest| {
            let rest = rest.strip_prefix('(').and_then(|r| r.split_once(')')).map_or(rest, |r| r.1);
            rest.trim_start()
        });
        let word = name.split(':').next().unwrap_or_default();
        line.len() - text.len() == depth
            && name.contains(": ")
            && !word.is_empty()
            && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#')
    };
    item.lines.iter().skip(1).filter(is_field).count()
}

/// Functions that are too long, with their lines.
fn long_functions(file: &Path, text: &str) -> Vec<String> {
    let long = items(text, &["fn"]).into_iter().filter(|item| item.lines.len() > MOST_LINES);
    long.map(|item| format!("{}: {} has {} lines", file.display(), item.name, item.lines.len()))
        .collect()
}

/// Structs that are too large, with their fields.
fn large_structs(file: &Path, text: &str) -> Vec<String> {
    let is_allowed = |item: &Item<'_>| LARGE_STRUCTS.iter().any(|(name, _)| *name == item.name);
    let large = items(text, &["struct"]).into_iter();
    let large = large.filter(|item| fields(item) > MOST_FIELDS && !is_allowed(item));
    large.map(|item| format!("{}: {} has {}", file.display(), item.name, fields(&item))).collect()
}

#[test]
fn functions_are_short() {
    let long = |(file, text): &(PathBuf, String)| long_functions(file, text);
    let found: Vec<String> = sources(EVERYTHING).iter().flat_map(long).collect();
    assert!(found.is_empty(), "functions of more than {MOST_LINES} lines:\n{}", found.join("\n"));
    let planted = format!("    pub const fn f() {{\n{}    }}\n", "        g();\n".repeat(59));
    assert_eq!(long_functions(Path::new("a.rs"), &planted), ["a.rs: f has 61 lines"]);
}

#[test]
fn structs_are_small() {
    let large = |(file, text): &(PathBuf, String)| large_structs(file, text);
    let found: Vec<String> = sources(EVERYTHING).iter().flat_map(large).collect();
    assert!(found.is_empty(), "structs of more than {MOST_FIELDS} fields:\n{}", found.join("\n"));
    let some: String =
        (0..13).map(|i| format!("    /// One.\n    pub(super) f{i}: u8,\n")).collect();
    let planted = format!("pub struct S<'a> {{\n{some}}}\n");
    assert_eq!(large_structs(Path::new("a.rs"), &planted), ["a.rs: S has 13"]);
}

/// A name that several modules define is hard to search for and to talk about.
#[test]
fn type_names_have_one_meaning() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources(PROGRAM).iter().filter(|(file, _)| !is_test(file)) {
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for item in items(text, &["struct", "enum", "trait", "type"]) {
            let is_associated = item.lines[0].starts_with(' ') && item.lines[0].contains("type ");
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
