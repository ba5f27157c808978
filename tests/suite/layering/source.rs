//! Reads Rust as far as the checks of layers and shapes need it: words without comments,
//! which items are compiled for tests alone, and which paths the others name.
//!
//! *Invariant*: where this reader errs, it takes code of tests for code of the program, and
//! never the other way round.

use crate::support::{files_with, root};
use proc_macro2::{Ident, TokenTree};
use std::path::{Path, PathBuf};
use std::{fs, mem::take, sync::LazyLock};
use syn::parse::{Parse, ParseBuffer, ParseStream, Parser};
use syn::{Attribute, Field, Item, Meta, Result, Stmt, Token, Variant};
use syn::{buffer::Cursor, ext::IdentExt, punctuated::Punctuated, token::Brace};

/// The source folders of the workspace.
pub const SOURCES: [&str; 5] =
    ["src", "crates/core/src", "crates/runner/src", "crates/evidence/src", "crates/python/src"];

/// Every source file of the workspace. They are read once.
pub fn files() -> &'static [Source] {
    static FILES: LazyLock<Vec<Source>> =
        LazyLock::new(|| SOURCES.into_iter().flat_map(Source::below).collect());
    &FILES
}

/// The source files below a folder that belong to a layer: no roots of crates, and no tests.
pub fn modules(folder: &str) -> Vec<&'static Source> {
    // A module that only tests have declares its own modules as if they were of the program.
    let of_program = files().iter().filter(|file| !is_of_tests(&file.module));
    let both = of_program.flat_map(|file| declared(&file.code)).find(|own| is_of_tests(own));
    assert!(both.is_none(), "{both:?} is a module of tests and of the program");
    let mut all: Vec<&Source> = files().iter().filter(|file| !is_of_tests(&file.module)).collect();
    all.retain(|file| file.file.starts_with(folder) && file.module != "crate::");
    assert!(all.len() > 5, "the sources of {folder} were found");
    all
}

/// Whether a module is compiled for tests alone.
pub fn is_of_tests(module: &str) -> bool {
    static TESTS: LazyLock<Vec<&str>> =
        LazyLock::new(|| files().iter().flat_map(|file| declared(&file.tests)).collect());
    TESTS.iter().any(|test| module.starts_with(test))
}

/// The modules with files of their own that some words declare.
fn declared(code: &str) -> impl Iterator<Item = &str> {
    code.split(' ').filter_map(|word| word.strip_prefix("mod;"))
}

/// A source file, as lines of words with spaces around them. A path, or one of the paths of a
/// `use`, is a word such as `std::fs::`, and in the workspace whole: `crate::theory::moments::`.
pub struct Source {
    /// Its path below the root of the workspace.
    pub file: PathBuf,
    pub module: String,
    /// What is compiled for more than tests, and what for tests alone.
    pub code: String,
    pub tests: String,
}

impl Source {
    /// The files in a folder of the workspace.
    pub fn below(folder: &str) -> Vec<Self> {
        files_with(&root().join(folder), "rs").iter().map(|file| Self::at(file)).collect()
    }

    pub fn at(file: &Path) -> Self {
        Self::new(file.strip_prefix(root()).unwrap(), &fs::read_to_string(file).unwrap())
    }

    pub fn new(file: &Path, text: &str) -> Self {
        let (module, mut words) = (module_of(file), Words::new());
        let reader = |input: ParseStream| read(&mut words, input, [&module, &[]], false);
        reader.parse_str(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        let [code, tests] = [false, true].map(|of_tests| {
            let mut lines = vec![String::new(); text.lines().count()];
            let words = words.iter().filter(|(.., tests)| *tests == of_tests);
            words.for_each(|(word, line, _)| lines[line - 1] += &format!(" {word}"));
            lines.join(" \n") + " "
        });
        Self { file: file.to_owned(), module: whole(&module), code, tests }
    }
}

/// Words, with the line of each, and whether it is compiled for tests alone.
type Words = Vec<(String, usize, bool)>;

/// Reads what is in a module and, in braces of a `use`, after the beginning of a path.
fn read(words: &mut Words, input: ParseStream, at: [&[String]; 2], tests: bool) -> Result<()> {
    let [module, path] = at;
    let inner = input.fork().call(Attribute::parse_inner)?;
    let all = tests || inner.iter().any(|own| is_test(&own.meta));
    words.extend((all && !tests).then(|| (format!("mod;{}", whole(module)), 1, true)));
    let (mut end, mut before) = (input.cursor(), vec![]);
    while !input.is_empty() {
        end = for_tests(input).unwrap_or(end);
        let (line, tests) = (input.span().start().line, all || input.cursor() < end);
        let is_used = !path.is_empty() || words.last().is_some_and(|(word, ..)| word == "use");
        if is_used && input.parse::<Option<Token![as]>>()?.is_some() {
            input.parse::<TokenTree>()?;
        } else if input.peek(Ident::peek_any) && (is_used || input.peek2(Token![::])) {
            let (path, is_begun) = read_path(input, module, path.to_vec())?;
            words.push((if is_begun { "::".to_owned() } else { whole(&path) }, line, tests));
            before = if is_begun { path } else { vec![] };
        } else {
            let (token, own) = (input.parse::<TokenTree>()?, module_here(words, module));
            if let TokenTree::Group(group) = token {
                let [open, close] = [group.span_open(), group.span_close()];
                words.push((open.source_text().unwrap(), line, tests));
                let at = [own.as_deref().unwrap_or(module), &take(&mut before)];
                let inner = |input: ParseStream| read(words, input, at, tests);
                inner.parse2(group.stream())?;
                words.push((close.source_text().unwrap(), close.start().line, tests));
                continue;
            }
            let text = token.to_string();
            let own = own.filter(|_| text == ";").map(|own| format!("mod;{}", whole(&own)));
            let is_long = text.contains(char::is_whitespace) || text.contains("::");
            let text = if is_long { "\"" } else { text.trim_start_matches("r#") };
            words.push((text.to_owned(), line, tests));
            words.extend(own.map(|own| (own, line, tests)));
        }
    }
    Ok(())
}

/// The module that the last words declare.
fn module_here(words: &Words, module: &[String]) -> Option<Vec<String>> {
    let last: Vec<&str> = words.iter().rev().take(6).map(|(word, ..)| &**word).collect();
    let (around, name) = match last[..] {
        [_, "mod", _, file, _, "path"] => (&module[..module.len() - 1], file),
        [name, "mod", ..] => (module, name),
        _ => return None,
    };
    Some([around, &[name.trim_matches('"').trim_end_matches(".rs").to_owned()]].concat())
}

fn whole(path: &[String]) -> String {
    path.iter().map(|part| format!("{part}::")).collect()
}

/// The path that is here, and whether braces go on with it, as in a `use`.
fn read_path(
    input: ParseStream,
    module: &[String],
    mut path: Vec<String>,
) -> Result<(Vec<String>, bool)> {
    loop {
        match input.call(Ident::parse_any)?.unraw().to_string().as_str() {
            "self" if path.is_empty() => path = module.to_vec(),
            "self" => {}
            "super" if path.is_empty() => path = module[..module.len() - 1].to_vec(),
            "super" => drop(path.pop()),
            // The crates of the workspace: their modules have one set of names.
            own if path.is_empty() && (own == "crate" || own.starts_with("exactfed")) => {
                path.push("crate".to_owned());
            }
            part => path.push(part.to_owned()),
        }
        let goes_on = input.parse::<Option<Token![::]>>()?.is_some();
        if !goes_on || !input.peek(Ident::peek_any) {
            // All of a crate, or whatever is there: `*`, `<`, or `$name` in a macro.
            let is_begun = goes_on && input.peek(Brace);
            let is_whole = !is_begun && (goes_on || path.len() == 1);
            path.extend(is_whole.then(|| "*".to_owned()));
            return Ok((path, is_begun));
        }
    }
}

/// The module that a file is in its crate.
fn module_of(file: &Path) -> Vec<String> {
    let inside = SOURCES.iter().find_map(|folder| file.strip_prefix(folder).ok());
    let file = Path::new("crate").join(inside.unwrap_or(file).with_extension(""));
    let mut module: Vec<String> = file.iter().map(|part| part.display().to_string()).collect();
    module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
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
    let kinds: [fn(ParseStream) -> bool; 4] = [
        |input| Item::parse(input).is_ok(),
        |input| Field::parse_named(input).is_ok(),
        |input| Stmt::parse(input).is_ok(),
        |input| Variant::parse(input).is_ok(),
    ];
    let end =
        |ahead: ParseBuffer<'a>, is: &fn(ParseStream) -> bool| is(&ahead).then(|| ahead.cursor());
    kinds.iter().find_map(|is| end(input.fork(), is))
}
