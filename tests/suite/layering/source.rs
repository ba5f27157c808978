//! Reads Rust as far as the checks of layers and shapes need it: words without comments,
//! which items are compiled for tests alone, and which paths the others name.
//!
//! *Invariant*: where this reader errs, it takes code of tests for code of the program, and
//! never the other way round.

#![allow(dead_code)]

use crate::support::{files_with, root};
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The source folders of the workspace.
pub const SOURCES: [&str; 5] =
    ["src", "crates/core/src", "crates/runner/src", "crates/evidence/src", "crates/python/src"];

/// Every source file of the workspace, by its path below the root. They are read once.
pub fn files() -> &'static [(PathBuf, Source)] {
    static FILES: LazyLock<Vec<(PathBuf, Source)>> = LazyLock::new(read);
    &FILES
}

fn read() -> Vec<(PathBuf, Source)> {
    let mut all = Vec::new();
    for folder in SOURCES {
        let files = files_with(&root().join(folder), "rs");
        assert!(files.len() > 8, "the sources of {folder} were found");
        all.extend(files.into_iter().map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let file = file.strip_prefix(root()).unwrap().to_owned();
            let source = Source::new(&inside(&file), &text);
            (file, source)
        }));
    }
    all
}

/// The path of a source file within its crate.
pub fn inside(file: &Path) -> PathBuf {
    let folder = SOURCES.iter().find(|folder| file.starts_with(folder));
    file.strip_prefix(folder.expect("a source file")).unwrap().to_owned()
}

/// Whether a file is the root of a crate: it belongs to no layer.
pub fn is_root(file: &Path) -> bool {
    ["lib.rs", "main.rs"].map(PathBuf::from).contains(&inside(file))
}

/// The files that are compiled for tests alone.
pub fn test_modules(files: &[(PathBuf, Source)]) -> Vec<Vec<String>> {
    files.iter().flat_map(|(_, source)| source.test_modules.clone()).collect()
}

/// Every source file that belongs to a layer, tests apart.
pub fn modules() -> Vec<&'static (PathBuf, Source)> {
    let all = files();
    let tests = test_modules(all);
    let both = all.iter().flat_map(|(_, source)| source.declared()).find(|m| tests.contains(m));
    assert!(both.is_none(), "{both:?} is a module of tests and of the program");
    let is_module = |(file, source): &&(PathBuf, Source)| {
        !is_root(file) && !tests.iter().any(|test| source.module.starts_with(test))
    };
    all.iter().filter(is_module).collect()
}

#[derive(Clone, Debug)]
pub struct Word {
    /// An identifier, `::`, a literal that begins with its quote, or one other character.
    pub text: String,
    pub line: usize,
    /// The module that it is in.
    pub module: Arc<[String]>,
}

/// A path such as `crate::theory::moments`, or one of the paths of a `use`.
#[derive(Clone, Debug)]
pub struct Named {
    /// From the root of the crate if it begins there, which `super` may do too.
    pub local: bool,
    pub parts: Vec<String>,
    pub line: usize,
}

/// A source file, split into what is compiled for tests alone and the rest.
pub struct Source {
    /// The path of its module: `["theory", "moments"]`.
    pub module: Vec<String>,
    pub code: Vec<Word>,
    pub tests: Vec<Word>,
    /// Modules with files of their own that are compiled for tests alone.
    pub test_modules: Vec<Vec<String>>,
}

impl Source {
    /// The text of a file that is at this path below `src/`.
    pub fn new(file: &Path, text: &str) -> Self {
        Self::of(file, words_in(text, &module_of(file)))
    }

    /// The words of a file that is at this path below `src/`.
    pub fn of(file: &Path, words: Vec<Word>) -> Self {
        let module = module_of(file);
        let mut source = Self { module, code: vec![], tests: vec![], test_modules: vec![] };
        let all: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if all.starts_with(&["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
            source.test_modules.push(source.module.clone());
            source.tests = words;
            return source;
        }
        let mut i = 0;
        while i < all.len() {
            let attribute = if all[i..].starts_with(&["#", "["]) { group(&all, i + 1) } else { i };
            if attribute > i && is_test(&all[i + 2..attribute - 1]) {
                let end = item(&all, attribute);
                let declared = declared(&words[attribute..end]).pop();
                let elsewhere = elsewhere(&all[attribute..end]);
                // In the same directory, as long as no inline module is around it.
                let elsewhere = elsewhere.map(|name| module_of(&file.with_file_name(name)));
                source.test_modules.extend(declared.map(|own| elsewhere.unwrap_or(own)));
                source.tests.extend_from_slice(&words[i..end]);
                i = end;
            } else {
                source.code.push(words[i].clone());
                i += 1;
            }
        }
        source
    }

    /// Modules with files of their own that are compiled for more than tests.
    pub fn declared(&self) -> Vec<Vec<String>> {
        declared(&self.code)
    }

    /// All paths that the code names, tests apart.
    pub fn paths(&self) -> Vec<Named> {
        paths(&self.code)
    }
}

/// The module that a file below `src/` is.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
    let mut module: Vec<String> = parts.collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// The file that one of these attributes says a module is in.
fn elsewhere<'a>(attributes: &[&'a str]) -> Option<&'a str> {
    let found = attributes.windows(3).find(|three| three[..2] == ["path", "="])?;
    found[2].strip_prefix('"')?.strip_suffix('"')
}

/// Modules with files of their own that some words declare.
fn declared(words: &[Word]) -> Vec<Vec<String>> {
    let is_declared = |three: &&[Word]| three[0].text == "mod" && three[2].text == ";";
    let path = |three: &[Word]| [&three[0].module[..], &[three[1].text.clone()]].concat();
    words.windows(3).filter(is_declared).map(path).collect()
}

/// Whether an attribute asks for tests: `cfg(test)`, or `cfg(all(…, test, …))`.
fn is_test(attribute: &[&str]) -> bool {
    let ["cfg", "(", inner @ .., ")"] = attribute else { return false };
    let ["all", "(", all @ .., ")"] = inner else { return inner == ["test"] };
    let mut depth = 0;
    all.iter().enumerate().any(|(i, word)| {
        depth += i32::from(*word == "(") - i32::from(*word == ")");
        let begins = i == 0 || all[i - 1] == ",";
        let ends = all.get(i + 1).is_none_or(|next| *next == ",");
        depth == 0 && *word == "test" && begins && ends
    })
}

/// The place after the group of brackets that begins here.
fn group(all: &[&str], begin: usize) -> usize {
    let mut depth = 0;
    for (i, word) in all.iter().enumerate().skip(begin) {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    all.len()
}

/// The place after the item, statement or field that begins here, after more attributes.
/// It ends with a semicolon, with its first braces, or before the braces around it;
/// what is no item ends with a comma too.
fn item(all: &[&str], begin: usize) -> usize {
    const ITEMS: &str = "mod fn struct enum impl use const static type trait extern unsafe async \
                         macro_rules let";
    let mut i = begin;
    while all[i..].starts_with(&["#", "["]) {
        i = group(all, i + 1);
    }
    let mut first = i;
    if all.get(first) == Some(&"pub") {
        first += 1;
        if all.get(first) == Some(&"(") {
            first = group(all, first);
        }
    }
    let is_item = all.get(first).is_some_and(|word| ITEMS.split(' ').any(|item| item == *word));
    while i < all.len() {
        match all[i] {
            "{" => return group(all, i),
            "(" | "[" => i = group(all, i),
            ")" | "]" | "}" => return i,
            ";" => return i + 1,
            "," if !is_item => return i + 1,
            _ => i += 1,
        }
    }
    i
}

/// All paths that some words name.
pub fn paths(code: &[Word]) -> Vec<Named> {
    let all: Vec<&str> = code.iter().map(|word| word.text.as_str()).collect();
    let (mut found, mut i) = (Vec::new(), 0);
    while i < all.len() {
        let after = if i == 0 { "" } else { all[i - 1] };
        let mut some = Vec::new();
        let begin = i;
        if all[i] == "use" && all.get(i + 1) != Some(&"<") {
            i = tree(&all, i + 1, &[], &mut some);
        } else if is_name(all[i]) && !["::", "."].contains(&after) {
            let mut path = vec![all[i].to_owned()];
            while all.get(i + 1) == Some(&"::") && all.get(i + 2).is_some_and(|w| is_name(w)) {
                path.push(all[i + 2].to_owned());
                i += 2;
            }
            some.push(path);
            i += 1;
        } else {
            i += 1;
        }
        // A name that stands alone is no path.
        let paths = some.into_iter().filter(|path| all[begin] == "use" || path.len() > 1);
        found.extend(paths.map(|path| resolved(path, &code[begin])));
    }
    found
}

/// The paths of a `use`, from here on; the place after them.
fn tree(all: &[&str], mut i: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    while i < all.len() {
        match all[i] {
            "::" => i += 1,
            "{" => {
                let end = group(all, i) - 1;
                i += 1;
                while i < end {
                    i = tree(all, i, &path, found);
                    i += usize::from(matches!(all.get(i), Some(&("," | ";"))));
                }
                return end + 1;
            }
            "as" => i += 2,
            name if name == "*" || is_name(name) => {
                path.push(name.to_owned());
                i += 1;
            }
            _ => break,
        }
    }
    if path.len() > prefix.len().max(1) && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    found.push(path);
    // Whatever this is, the reader goes on.
    if matches!(all.get(i), Some(&("," | "}" | ";")) | None) { i } else { i + 1 }
}

/// The crates of the workspace: their modules have one set of names.
fn is_own(name: &str) -> bool {
    matches!(name, "crate" | "exactfed" | "exactfed_core" | "exactfed_runner" | "exactfed_evidence")
}

/// A path from the root of its crate, if it leads to one of the workspace.
fn resolved(path: Vec<String>, at: &Word) -> Named {
    let line = at.line;
    let mut base = match path[0].as_str() {
        name if is_own(name) => vec![],
        "self" | "super" => at.module.to_vec(),
        _ => return Named { local: false, parts: path, line },
    };
    let mut rest = path.as_slice();
    while let [first, more @ ..] = rest {
        match first.as_str() {
            "self" => {}
            name if is_own(name) => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = more;
    }
    base.extend_from_slice(rest);
    Named { local: true, parts: base, line }
}

pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words of a text.
pub fn words(text: &str) -> Vec<Word> {
    words_in(text, &[])
}

/// The words of a text within a module.
pub fn words_in(text: &str, module: &[String]) -> Vec<Word> {
    let mut all = Vec::new();
    flatten(text.parse().unwrap_or_else(|e| panic!("{e} in\n{text}")), &module.into(), &mut all);
    all
}

fn flatten(stream: TokenStream, module: &Arc<[String]>, all: &mut Vec<Word>) {
    let word = |text: &str, line| Word { text: text.to_owned(), line, module: module.clone() };
    let mut half = false;
    for token in stream {
        let line = token.span().start().line;
        let (text, was_half) = (token.to_string(), std::mem::take(&mut half));
        match token {
            TokenTree::Group(group) if is_doc(&group) => {
                while all.pop_if(|word| ["#", "!"].contains(&&*word.text)).is_some() {}
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace | Delimiter::None => ("{", "}"),
                };
                let below = match all.as_slice() {
                    [.., before, name] if before.text == "mod" && open == "{" => {
                        [&module[..], std::slice::from_ref(&name.text)].concat().into()
                    }
                    _ => module.clone(),
                };
                all.push(word(open, line));
                flatten(group.stream(), &below, all);
                all.push(word(close, group.span_close().start().line));
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && was_half => {
                all.last_mut().expect("its first half").text.push(':');
            }
            TokenTree::Punct(punct) => {
                half = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                all.push(word(&text, line));
            }
            _ => all.push(word(
                text.strip_prefix("r#").filter(|_| !text.contains('"')).unwrap_or(&text),
                line,
            )),
        }
    }
}

/// Whether these are the brackets of an attribute that a comment stands for.
fn is_doc(group: &Group) -> bool {
    let mut inner = group.stream().into_iter().map(|token| token.to_string());
    inner.next().is_some_and(|name| name == "doc") && inner.next().is_some_and(|is| is == "=")
}
