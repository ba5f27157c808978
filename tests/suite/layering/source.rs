//! Reads Rust as far as the checks of layers and shapes need it: words without comments,
//! which items are compiled for tests alone, and which paths the others name.
//!
//! *Invariant*: where this reader errs, it takes code of tests for code of the program, and
//! never the other way round.

use crate::support::{files_with, root};
use proc_macro2::{Group, Ident, TokenTree};
use std::path::{Path, PathBuf};
use std::{fs, sync::LazyLock};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Field, Item, Meta, Result, Stmt, Token, Variant};
use syn::{buffer::Cursor, ext::IdentExt, punctuated::Punctuated, token::Brace};

/// The source folders of the workspace.
pub const SOURCES: [&str; 5] =
    ["src", "crates/core/src", "crates/runner/src", "crates/evidence/src", "crates/python/src"];

/// The crates of the workspace: their modules have one set of names.
const OWN: [&str; 5] =
    ["crate", "exactfed", "exactfed_core", "exactfed_runner", "exactfed_evidence"];

/// Every source file of the workspace. They are read once.
pub fn files() -> &'static [Source] {
    static FILES: LazyLock<Vec<Source>> =
        LazyLock::new(|| SOURCES.into_iter().flat_map(Source::below).collect());
    &FILES
}

/// The source files below a folder that belong to a layer: no roots of crates, and no tests.
pub fn modules(folder: &str) -> Vec<&'static Source> {
    let both = files().iter().flat_map(|file| declared(&file.code)).find(|own| is_of_tests(own));
    assert!(both.is_none(), "{both:?} is a module of tests and of the program");
    let mut all: Vec<&Source> = files().iter().filter(|file| !is_of_tests(&file.module)).collect();
    all.retain(|file| file.file.starts_with(folder) && !file.is_root());
    assert!(all.len() > 5, "the sources of {folder} were found");
    all
}

/// Whether a module is compiled for tests alone.
pub fn is_of_tests(module: &Path) -> bool {
    static TESTS: LazyLock<Vec<&Path>> =
        LazyLock::new(|| files().iter().flat_map(|file| declared(&file.tests)).collect());
    TESTS.iter().any(|test| module.starts_with(test))
}

/// The modules with files of their own that some words declare.
fn declared(words: &[Word]) -> impl Iterator<Item = &Path> {
    words.iter().filter_map(|word| word.path.strip_prefix("mod;").ok())
}

/// A path, with `/` for `::`, one of the paths of a `use`, or another word: a name, a literal, or
/// one other character. In the workspace paths are whole: `crate/theory/moments`.
pub struct Word {
    pub path: PathBuf,
    pub line: usize,
    tests: bool,
}

/// The lines where words follow each other that hold these parts of paths.
pub fn says(words: &[Word], wanted: &[&str]) -> Vec<usize> {
    let has = |word: &Word, part: &str| word.path.ancestors().any(|end| end.ends_with(part));
    let mut found = Vec::new();
    for wanted in wanted {
        let wanted: Vec<&str> = wanted.split(' ').collect();
        let all = |near: &&[Word]| near.iter().zip(&wanted).all(|(word, part)| has(word, part));
        found.extend(words.windows(wanted.len()).filter(all).map(|near| near[0].line));
    }
    found
}

/// A source file, split into what is compiled for tests alone and the rest.
pub struct Source {
    /// Its path below the root of the workspace.
    pub file: PathBuf,
    pub text: String,
    /// The path of its module: `crate/theory/moments`.
    pub module: PathBuf,
    pub code: Vec<Word>,
    pub tests: Vec<Word>,
}

impl Source {
    /// The files in a folder of the workspace.
    pub fn below(folder: &str) -> Vec<Self> {
        files_with(&root().join(folder), "rs").iter().map(|file| Self::at(file)).collect()
    }

    pub fn at(file: &Path) -> Self {
        Self::new(file.strip_prefix(root()).unwrap(), fs::read_to_string(file).unwrap())
    }

    pub fn new(file: &Path, text: String) -> Self {
        let (file, module) = (file.to_owned(), module_of(file));
        let mut reader = Reader { file: &file, words: vec![] };
        let read = |input: ParseStream| reader.read(input, &module, "".as_ref(), false);
        read.parse_str(&text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        let (tests, code) = reader.words.into_iter().partition(|word| word.tests);
        Self { file, text, module, code, tests }
    }

    pub fn is_root(&self) -> bool {
        self.module.parent() == Some("".as_ref())
    }

    /// All paths in the workspace that the code names, tests apart.
    pub fn paths(&self) -> impl Iterator<Item = &Word> {
        let is_whole =
            |word: &&Word| word.path.starts_with("crate") && word.path.iter().count() > 1;
        self.code.iter().filter(is_whole)
    }
}

struct Reader<'a> {
    file: &'a Path,
    words: Vec<Word>,
}

impl Reader<'_> {
    fn add(&mut self, path: impl AsRef<Path>, line: usize, tests: bool) {
        self.words.push(Word { path: path.as_ref().to_owned(), line, tests });
    }

    /// Reads what is in a module, and in the braces of a path of a `use`.
    fn read(&mut self, input: ParseStream, module: &Path, path: &Path, tests: bool) -> Result<()> {
        let inner = input.fork().call(Attribute::parse_inner)?;
        let all = tests || inner.iter().any(|own| is_test(&own.meta));
        if all && !tests {
            self.add(Path::new("mod;").join(module), 1, true);
        }
        let mut end = input.cursor();
        while !input.is_empty() {
            end = for_tests(input).unwrap_or(end);
            let (line, tests) = (input.span().start().line, all || input.cursor() < end);
            let is_use = self.words.last().is_some_and(|word| *word.path == *"use");
            if *path != *"" && input.parse::<Option<Token![as]>>()?.is_some() {
                input.parse::<TokenTree>()?;
            } else if input.peek(Ident::peek_any)
                && (is_use || *path != *"" || input.peek2(Token![::]))
            {
                self.path(input, module, path, tests)?;
            } else {
                let own = self.module_here(module);
                match input.parse()? {
                    TokenTree::Group(group) => {
                        let own = own.as_deref().unwrap_or(module);
                        self.group(&group, own, "".as_ref(), tests)?;
                    }
                    other => {
                        let text = other.to_string().replace('/', "|");
                        self.add(text.trim_start_matches("r#"), line, tests);
                        if let Some(own) = own.filter(|_| text == ";") {
                            self.add(Path::new("mod;").join(own), line, tests);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The module that the last words declare.
    fn module_here(&self, module: &Path) -> Option<PathBuf> {
        let last: Vec<&str> =
            self.words.iter().rev().take(6).map(|word| word.path.to_str().unwrap()).collect();
        match last[..] {
            [_, "mod", _, file, _, "path"] => {
                Some(module_of(&self.file.with_file_name(file.trim_matches('"'))))
            }
            [name, "mod", ..] => Some(module.join(name)),
            _ => None,
        }
    }

    fn group(&mut self, group: &Group, module: &Path, path: &Path, tests: bool) -> Result<()> {
        for span in [group.span_open(), group.span_close()] {
            self.add(span.source_text().expect("a bracket"), span.start().line, tests);
            let inner = |input: ParseStream| self.read(input, module, path, tests);
            if span.start() == group.span_open().start() {
                inner.parse2(group.stream())?;
            }
        }
        Ok(())
    }

    /// Reads a path, and all paths of a `use` from there.
    fn path(&mut self, input: ParseStream, module: &Path, path: &Path, tests: bool) -> Result<()> {
        let (line, mut path) = (input.span().start().line, path.to_owned());
        loop {
            let part = input.call(Ident::parse_any)?.unraw().to_string();
            if *path == *"" && ["self", "super"].contains(&part.as_str()) {
                path = module.to_owned();
            }
            match part.as_str() {
                "self" => {}
                "super" => drop(path.pop()),
                own if OWN.contains(&own) => path = "crate".into(),
                other => path.push(other),
            }
            if input.parse::<Option<Token![::]>>()?.is_none() {
                break;
            }
            if input.peek(Brace) {
                let group = input.parse()?;
                self.add("::", line, tests);
                return self.group(&group, module, &path, tests);
            }
            if !input.peek(Ident::peek_any) {
                path.push("*");
                break;
            }
        }
        // A crate as a whole.
        path.extend((path.iter().count() == 1).then_some("*"));
        self.add(path, line, tests);
        Ok(())
    }
}

/// The module that a file is in its crate.
fn module_of(file: &Path) -> PathBuf {
    let inside = SOURCES.iter().find_map(|folder| file.strip_prefix(folder).ok());
    let mut module = Path::new("crate").join(inside.unwrap_or(file).with_extension(""));
    if ["mod", "lib", "main"].iter().any(|name| module.ends_with(name)) {
        module.pop();
    }
    module
}

/// Whether an attribute asks for tests: `test`, `cfg(test)`, or `cfg(all(…, test, …))`.
fn is_test(attribute: &Meta) -> bool {
    let Meta::List(list) = attribute else { return attribute.path().is_ident("test") };
    let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let is_all = ["cfg", "all"].iter().any(|name| list.path.is_ident(name));
    is_all && inner.is_ok_and(|inner| inner.iter().any(is_test))
}

/// The end of what begins here for tests alone: an item, a field, a statement or a variant.
fn for_tests<'a>(input: ParseStream<'a>) -> Option<Cursor<'a>> {
    let attributes = input.fork().call(Attribute::parse_outer).ok()?;
    attributes.iter().find(|own| is_test(&own.meta))?;
    let readers: [fn(ParseStream) -> Result<()>; 4] = [
        |input| Item::parse(input).map(drop),
        |input| Field::parse_named(input).map(drop),
        |input| Stmt::parse(input).map(drop),
        |input| Variant::parse(input).map(drop),
    ];
    readers.iter().find_map(|read| {
        let ahead = input.fork();
        read(&ahead).ok().map(|()| ahead.cursor())
    })
}
