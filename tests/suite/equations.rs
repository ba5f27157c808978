//! The equations of docs/THEORY.md: each is named by the sources that compute it, as
//! `THEORY (4.2)`, and the sources name no others.

use crate::support::{files_with, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The number of an equation: of its section, and within that.
type Number = (u32, u32);

/// The number at the beginning of a text, in parentheses, and what follows it.
fn number(text: &str) -> Option<(Number, &str)> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')')?;
    let (section, place) = inside.split_once('.')?;
    let read = |digits: &str| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    Some(((read(section)?, read(place)?), rest))
}

/// The numbers of the equations of a document, in its order: a number begins a line of a block of
/// text.
fn defined(document: &str) -> Vec<Number> {
    let blocks = document.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix("text\n"));
    blocks.flat_map(str::lines).filter_map(|line| number(line).map(|(number, _)| number)).collect()
}

/// All numbers in parentheses of a text.
fn referred(text: &str) -> BTreeSet<Number> {
    text.match_indices('(').filter_map(|(at, _)| number(&text[at..]).map(|found| found.0)).collect()
}

/// The numbers that the comments of a source with this beginning name: `THEORY (2.5)`, or a list
/// `THEORY (2.5), (2.6)`, which may be broken between lines. In a span of code it is an example.
fn named(source: &str, begin: &str) -> BTreeSet<Number> {
    let comments = source.lines().filter_map(|line| line.trim_start().strip_prefix(begin));
    let comments: Vec<&str> =
        comments.map(|line| line.trim_start_matches(['/', '!']).trim()).collect();
    let comments = comments.join(" ");
    let mut found = BTreeSet::new();
    for (at, word) in comments.match_indices("THEORY ") {
        let is_example = comments[..at].ends_with('`');
        let mut list = Some(&comments[at + word.len()..]).filter(|_| !is_example);
        while let Some((one, rest)) = list.and_then(number) {
            found.insert(one);
            list = rest.strip_prefix(", ");
        }
    }
    found
}

/// Whether a file holds tests alone.
fn is_of_tests(file: &Path) -> bool {
    file.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"))
}

/// What is wrong with the numbers of a document and of the sources that name them.
fn faults(document: &str, sources: &BTreeMap<String, String>) -> Vec<String> {
    let all = defined(document);
    let known: BTreeSet<Number> = all.iter().copied().collect();
    let mut found = Vec::new();
    let mut next = (1, 1);
    for number in &all {
        if *number != next && *number != (next.0 + 1, 1) {
            found.push(format!("{number:?} does not follow the equation before it"));
        }
        next = (number.0, number.1 + 1);
    }
    let unknown = |numbers: BTreeSet<Number>, place: &str| -> Vec<String> {
        let others = numbers.difference(&known);
        others.map(|number| format!("{place} names {number:?}, which does not exist")).collect()
    };
    found.extend(unknown(referred(document), "the document"));
    let mut anywhere = BTreeSet::new();
    for (name, text) in sources {
        found.extend(unknown(named(text, "//"), name));
        // What documents an item, not a module.
        anywhere.extend(named(text, "///"));
    }
    found.extend(
        known.difference(&anywhere).map(|number| format!("nothing is documented as {number:?}")),
    );
    found
}

#[test]
fn equations_of_documents_are_named_by_the_sources() {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let document = read(&root().join("docs/THEORY.md"));
    let mut files = files_with(&root().join("crates/core/src"), "rs");
    files.retain(|file| !is_of_tests(file));
    assert!(files.len() > 100 && defined(&document).len() > 40, "they were found");
    let name = |file: &Path| file.strip_prefix(root()).unwrap().display().to_string();
    let sources = files.iter().map(|file| (name(file), read(file))).collect();
    let faults = faults(&document, &sources);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn equations_that_documents_or_sources_lack_are_found() {
    let document = "Text (1.1).\n```text\n(1.1)  a\n(1.2)  b, by (1.1)\n        c\n```\n\
                    (1.2) and (51) are\n```sh\n(7.7)\n```\n```text\n(2.1)  d\n```\n";
    let of = |document: &str, source: &str| {
        faults(document, &BTreeMap::from([("a.rs".to_owned(), source.to_owned())]))
    };
    let sound = "//! Here `THEORY (8.8)` is an example, and THEORY (2.1) is not.\n\
                 /// It is THEORY (1.1), (1.2).\nfn a() {} // THEORY (1.1)\n    /// It is THEORY\n    \
                 /// (2.1), (9) and SCAFFLSA (9.9).\n";
    assert_eq!(defined(document), [(1, 1), (1, 2), (2, 1)]);
    assert_eq!(named(sound, "///"), BTreeSet::from([(1, 1), (1, 2), (2, 1)]));
    assert_eq!(named(sound, "//!"), BTreeSet::from([(2, 1)]));
    let without_code = document.replace("(7.7)", "");
    assert_eq!(of(&without_code, sound), Vec::<String>::new());
    for (from, to, fault) in [
        ("(1.2).", "(1.3).", "a.rs names (1, 3), which does not exist"),
        ("(1.2).", "and (1.2).", "nothing is documented as (1, 2)"),
        ("(2.1), (9)", "(9)", "nothing is documented as (2, 1)"),
        ("(2.1) is", "(2.2) is", "a.rs names (2, 2), which does not exist"),
        ("THEORY (1.1)", "SCAFFLSA (1.1)", "nothing is documented as (1, 1)"),
    ] {
        let found = of(&without_code, &sound.replacen(from, to, 1));
        assert!(found.iter().any(|found| found == fault), "{fault}: {found:?}");
    }
    for (from, to, fault) in [
        ("(1.2)  b", "(1.3)  b", "(1, 3) does not follow the equation before it"),
        ("(1.2)  b", "(1.1)  b", "(1, 1) does not follow the equation before it"),
        ("Text (1.1)", "Text (1.4)", "the document names (1, 4), which does not exist"),
        ("(2.1)  d", "(2.1)  d\n(2.2)  e", "nothing is documented as (2, 2)"),
    ] {
        let found = of(&without_code.replacen(from, to, 1), sound);
        assert!(found.iter().any(|found| found == fault), "{fault}: {found:?}");
    }
}
