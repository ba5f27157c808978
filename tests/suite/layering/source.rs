//! Reads Rust as far as the checks of layers and shapes need it: words without comments,
//! which items are compiled for tests alone, and which paths the others name.
//!
//! *Invariant*: where this reader errs, it takes code of tests for code of the program, and
//! never the other way round.

use crate::support::{files_with, root};
use proc_macro2::{Delimiter, Ident, TokenTree};
use std::path::{Path, PathBuf};
use std::{fs, sync::LazyLock};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser, discouraged::Speculative};
use syn::{Attribute, Expr, Field, Item, Lit, Meta, Stmt, Token, UseTree, Variant, buffer::Cursor};
use syn::{Result, punctuated::Punctuated};

/// The source folders of the workspace.
pub const SOURCES: [&str; 5] =
    ["src", "crates/core/src", "crates/runner/src", "crates/evidence/src", "crates/python/src"];

/// The crates of the workspace: their modules have one set of names.
const OWN: [&str; 5] =
    ["crate", "exactfed", "exactfed_core", "exactfed_runner", "exactfed_evidence"];

/// Every source file of the workspace. They are read once.
pub fn files() -> &'static [Source] {
    static FILES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        let read = |folder| {
            let files = Source::below(folder);
            assert!(files.len() > 8, "the sources of {folder} were found");
            files
        };
        SOURCES.into_iter().flat_map(read).collect()
    });
    &FILES
}

/// Every source file that belongs to a layer, which roots of crates do not, tests apart.
pub fn modules() -> Vec<&'static Source> {
    let both = files().iter().flat_map(|file| &file.declared).find(|own| is_of_tests(own));
    assert!(both.is_none(), "{both:?} is a module of tests and of the program");
    let files = files().iter();
    files.filter(|file| !file.module.is_empty() && !is_of_tests(&file.module)).collect()
}

/// Whether a module is compiled for tests alone.
pub fn is_of_tests(module: &[String]) -> bool {
    let mut tests = files().iter().flat_map(|file| &file.test_modules);
    tests.any(|test| module.starts_with(test))
}

/// A path such as `crate::theory::moments`, one of the paths of a `use`, or another word: a name,
/// a quote for any literal, or one other character.
pub struct Word {
    pub parts: Vec<String>,
    pub line: usize,
    /// A path in the workspace, which is from the root of its crate.
    pub local: bool,
}

impl Word {
    fn new(parts: &[String], line: usize, module: &[String]) -> Self {
        let is_own = |name: &str| OWN.contains(&name);
        let begins = parts.len() > 1 && ["self", "super"].contains(&parts[0].as_str());
        if !begins && (parts.len() == 1 || !is_own(&parts[0])) {
            return Self { parts: parts.to_vec(), line, local: false };
        }
        let mut path = if begins { module.to_vec() } else { vec![] };
        for part in parts {
            match part.as_str() {
                "super" => drop(path.pop()),
                name if name == "self" || is_own(name) => {}
                name => path.push(name.to_owned()),
            }
        }
        Self { parts: path, line, local: true }
    }

    pub fn is(&self, text: &str) -> bool {
        self.parts == [text]
    }
}

/// The lines where words with these among their parts follow each other.
pub fn lines(words: &[Word], wanted: &str) -> Vec<usize> {
    let wanted: Vec<&str> = wanted.split(' ').collect();
    let has = |(word, wanted): (&Word, &&str)| word.parts.iter().any(|part| part == wanted);
    let near = words.windows(wanted.len());
    near.filter(|near| near.iter().zip(&wanted).all(has)).map(|near| near[0].line).collect()
}

/// A source file, split into what is compiled for tests alone and the rest.
#[derive(Default)]
pub struct Source {
    /// Its path below the root of the workspace.
    pub file: PathBuf,
    pub text: String,
    /// The path of its module: `["theory", "moments"]`.
    pub module: Vec<String>,
    pub code: Vec<Word>,
    pub tests: Vec<Word>,
    /// Modules with files of their own that are compiled for more than tests.
    pub declared: Vec<Vec<String>>,
    /// Modules with files of their own that are compiled for tests alone.
    pub test_modules: Vec<Vec<String>>,
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
        let mut source = Self { file, module: module.clone(), ..Self::default() };
        let read = |input: ParseStream| {
            let attributes = input.fork().call(Attribute::parse_inner)?;
            let tests = attributes.iter().any(is_test);
            source.test_modules.extend(tests.then(|| module.clone()));
            source.read(input, &module, tests)
        };
        read.parse_str(&text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        Self { text, ..source }
    }

    /// All paths in the workspace that the code names, tests apart.
    pub fn paths(&self) -> impl Iterator<Item = &Word> {
        self.code.iter().filter(|word| word.local)
    }

    fn read(&mut self, input: ParseStream, module: &[String], in_tests: bool) -> Result<()> {
        let mut end = input.cursor();
        while !input.is_empty() {
            if let Some((until, item)) = for_tests(input) {
                end = until;
                self.test_modules.extend(item.and_then(|item| self.declared_by(&item, module)));
            }
            let tests = in_tests || input.cursor() < end;
            let words = if tests { &mut self.tests } else { &mut self.code };
            let named = match words.as_slice() {
                [.., keyword, name] if keyword.is("mod") => [module, &name.parts].concat(),
                _ => module.to_vec(),
            };
            let line = input.span().start().line;
            let mut add = |parts: &[String]| words.push(Word::new(parts, line, module));
            if input.peek(Token![use]) {
                add(&[input.call(text)?]);
                let ahead = input.fork();
                let _ = (ahead.parse::<Option<Token![$]>>(), ahead.parse::<Option<Token![::]>>());
                if let Ok(tree) = ahead.parse() {
                    input.advance_to(&ahead);
                    leaves(&tree, &[], &mut add);
                }
            } else if input.peek(Ident::peek_any) {
                let mut parts = vec![input.call(text)?];
                while input.peek(Token![::]) && input.peek3(Ident::peek_any) {
                    input.parse::<Token![::]>()?;
                    parts.push(input.call(text)?);
                }
                // Whatever follows: a macro may write `crate::$name`.
                parts.extend(
                    (parts.len() == 1 && input.peek(Token![::])).then(|| "self".to_owned()),
                );
                add(&parts);
            } else {
                match input.parse()? {
                    TokenTree::Group(group) => {
                        let (open, close) = match group.delimiter() {
                            Delimiter::Parenthesis => ("(", ")"),
                            Delimiter::Bracket => ("[", "]"),
                            Delimiter::Brace | Delimiter::None => ("{", "}"),
                        };
                        add(&[open.to_owned()]);
                        let inner = |inner: ParseStream| self.read(inner, &named, tests);
                        inner.parse2(group.stream())?;
                        let words = if tests { &mut self.tests } else { &mut self.code };
                        words.push(Word::new(&[close.to_owned()], line, module));
                    }
                    TokenTree::Literal(_) => add(&["\"".to_owned()]),
                    other => {
                        add(&[other.to_string()]);
                        if !tests && other.to_string() == ";" && named != module {
                            self.declared.push(named);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The module with a file of its own that an item is.
    fn declared_by(&self, item: &Item, module: &[String]) -> Option<Vec<String>> {
        let Item::Mod(item) = item else { return None };
        let elsewhere = item.attrs.iter().find_map(|attribute| {
            let pair = attribute.meta.require_name_value().ok()?;
            let Expr::Lit(value) = &pair.value else { return None };
            let Lit::Str(name) = &value.lit else { return None };
            pair.path.is_ident("path").then(|| name.value())
        });
        // In the same directory, as long as no inline module is around it.
        let elsewhere = elsewhere.map(|name| module_of(&self.file.with_file_name(name)));
        let own = || [module, &[item.ident.unraw().to_string()]].concat();
        item.content.is_none().then(|| elsewhere.unwrap_or_else(own))
    }
}

/// The module that a file is in its crate.
fn module_of(file: &Path) -> Vec<String> {
    let inside = SOURCES.iter().find_map(|folder| file.strip_prefix(folder).ok());
    let parts = inside.unwrap_or(file).with_extension("");
    let mut module: Vec<String> =
        parts.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    module
}

fn text(input: ParseStream) -> Result<String> {
    Ok(input.call(Ident::parse_any)?.unraw().to_string())
}

/// Adds the paths of a `use`; a name that stands alone is followed by `self`.
fn leaves(tree: &UseTree, before: &[String], add: &mut impl FnMut(&[String])) {
    let with = |name: &Ident| [before, &[name.unraw().to_string()]].concat();
    let alone = if before.is_empty() { &["self".to_owned()][..] } else { &[] };
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), add),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, add)),
        UseTree::Name(name) => add(&[&with(&name.ident), alone].concat()),
        UseTree::Rename(name) => add(&[&with(&name.ident), alone].concat()),
        UseTree::Glob(_) => add(&[before, &["*".to_owned()]].concat()),
    }
}

/// Whether an attribute asks for tests: `cfg(test)`, or `cfg(all(…, test, …))`.
fn is_test(attribute: &Attribute) -> bool {
    fn asks(meta: &Meta) -> bool {
        let Meta::List(list) = meta else { return meta.path().is_ident("test") };
        let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        let is_all = ["cfg", "all"].iter().any(|name| list.path.is_ident(name));
        is_all && inner.is_ok_and(|inner| inner.iter().any(asks))
    }
    attribute.path().is_ident("cfg") && asks(&attribute.meta)
}

/// The end of what begins here and is compiled for tests alone: an item, a field, a statement or
/// a variant.
fn for_tests<'a>(input: ParseStream<'a>) -> Option<(Cursor<'a>, Option<Item>)> {
    let attributes = input.peek(Token![#]).then(|| input.fork().call(Attribute::parse_outer));
    if !attributes?.ok()?.iter().any(is_test) {
        return None;
    }
    let readers: [fn(ParseStream) -> Result<Option<Item>>; 4] = [
        |input| input.parse().map(Some),
        |input| Field::parse_named(input).map(|_| None),
        |input| Stmt::parse(input).map(|_| None),
        |input| Variant::parse(input).map(|_| None),
    ];
    readers.iter().find_map(|read| {
        let ahead = input.fork();
        read(&ahead).ok().map(|item| (ahead.cursor(), item))
    })
}
