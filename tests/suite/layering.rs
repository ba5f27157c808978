//! The layers of ARCHITECTURE.md: imports go down only, and some modules must
//! not know some things at all.

pub mod source;

use crate::support::root;
use source::{SOURCES, Source, modules};
use std::{collections::BTreeSet, fs};

/// A module may import from its own layer's members listed here and below.
const LAYERS: &str = "rng sources words flattened < compression < definition < client_sampling < round_program < kernel < linalg \
    < problem custom_metric \
    < federated < algorithm theory < moments < registry < files panics < hex < data < quantity < manifest \
    < registered < plan < trace < runner < errata < stats < results < cells < predictions < scene < ranking \
    < standings < frontier < kinds < figures < claims < needs < looks < bound_rows tuning unplanned < study \
    < table < evidence < store < compare < chart < report < cli < python";

fn layer(module: &str) -> usize {
    let mut layers = LAYERS.split(" < ").map(|members| members.split(' '));
    let layer = layers.position(|mut members| members.any(|member| member == module));
    layer.unwrap_or_else(|| panic!("{module} has no layer"))
}

/// The first part of a path within its crate.
fn top(path: &str) -> &str {
    path.split("::").nth(1).expect("a path")
}

/// The paths in the workspace that some code names.
fn paths(code: &str) -> impl Iterator<Item = &str> {
    code.split(' ').filter(|word| word.starts_with("crate::"))
}

fn lines(code: &str, is_bad: impl Fn(&str) -> bool) -> Vec<usize> {
    let all = code.lines().enumerate();
    all.filter(|(_, line)| is_bad(line)).map(|(before, _)| before + 1).collect()
}

/// Where some code says one of these in a line: words, or parts of paths.
fn says(code: &str, wanted: &str) -> Vec<usize> {
    let [code, wanted] = [code, wanted].map(|text| text.replace("::", " :: "));
    let wanted: Vec<String> = wanted.split(", ").map(|words| format!(" {words} ")).collect();
    lines(&code, |line| wanted.iter().any(|words| line.contains(words)))
}

/// A check finds nothing in these files.
#[track_caller]
fn passes<'a>(check: impl Fn(&Source) -> Vec<usize>, all: impl IntoIterator<Item = &'a Source>) {
    let found = all.into_iter().flat_map(|source| {
        let place = |line| format!("{}:{line}", source.file.display());
        check(source).into_iter().map(place).collect::<Vec<_>>()
    });
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

/// At the end of a file, a check finds each of the bad lines, and nothing else.
#[track_caller]
fn finds(check: impl Fn(&Source) -> Vec<usize>, source: &Source, bad: &str, others: &str) {
    let text = fs::read_to_string(root().join(&source.file)).unwrap();
    let first = text.lines().count() + 1;
    let mut found = check(&Source::new(&source.file, &[&text, bad.trim(), "\n", others].concat()));
    found.sort();
    let wanted: Vec<usize> = (first..first + bad.trim().lines().count()).collect();
    assert_eq!(found, wanted, "{}, then {bad}\n{others}", source.file.display());
}

/// The workspace has no member whose sources these tests do not read, but for the tools, which nothing
/// imports.
#[test]
fn every_member_is_read() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap().iter();
    let members =
        members.map(|member| member.as_str().unwrap()).filter(|member| *member != "tools");
    let members = members.map(|member| format!("{member}/src"));
    assert!(["src".to_owned()].into_iter().chain(members).eq(SOURCES));
}

/// Where a file breaks the layers, names a whole crate, or hides what it imports.
fn breaks(source: &Source) -> Vec<usize> {
    let own = top(&source.module);
    let is_up = |path: &str| {
        let name = top(path);
        let is_engine = (own, name) == ("theory", "federated");
        name == "*" || is_engine || name != own && layer(name) >= layer(own)
    };
    let hidden = says(&source.code, "# [ path, include !, extern crate, use {, use :");
    [lines(&source.code, |line| paths(line).any(is_up)), hidden].concat()
}

#[test]
fn imports_go_down_only() {
    passes(breaks, modules(""));
}

/// Which members of which folders import each other: a file, or a folder with all that is in it.
type Imports = BTreeSet<(String, String)>;

/// The imports between the members of each folder.
fn imports_within_folders(sources: &[&Source]) -> Imports {
    let known: BTreeSet<&str> = sources.iter().map(|source| &*source.module).collect();
    let mut imports = Imports::new();
    for source in sources {
        for path in paths(&source.code) {
            let parts = [&source.module, path].map(|path| path.split_inclusive("::"));
            let [own, other] = parts.clone();
            let shared = own.zip(other).take_while(|(own, other)| own == other).count();
            let [own, other] = parts.map(|parts| parts.take(shared + 1).collect::<String>());
            if own != other && known.contains(&*own) && known.contains(&*other) {
                imports.insert((own, other));
            }
        }
    }
    imports
}

/// What is left of imports once all are taken away, again and again, of what imports nothing or
/// what nothing imports.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let before = imports.len();
        let (own, others): (BTreeSet<_>, BTreeSet<_>) = imports.iter().cloned().unzip();
        imports.retain(|(from, to)| others.contains(from) && own.contains(to));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn files_of_a_folder_import_each_other_in_no_circle() {
    for folder in SOURCES {
        let mut sources = modules(folder);
        let imports = imports_within_folders(&sources);
        assert_eq!(circles(imports.clone()), Imports::new());

        let is_inner = |(own, _): &&(String, String)| own.split("::").count() > 3;
        let (own, other) = imports.iter().find(is_inner).expect("files import each other");
        let file = &sources.iter().find(|source| source.module == *other).unwrap().file;
        let back = Source::new(file, &format!("use {own}X;"));
        sources.push(&back);
        let found = circles(imports_within_folders(&sources));
        assert!(found.contains(&(other.clone(), own.clone())), "{own}, {other}: {found:?}");
    }
}

/// Where a file of a folder imports from a face around it, its `mod.rs`, or from a module there.
fn imports_from_face(source: &Source, folder: &[&Source]) -> Vec<usize> {
    let is_up = |path: &str| {
        let modules = folder.iter().map(|source| &source.module);
        let known = modules.filter(|module| path.starts_with(*module));
        let deepest = known.max_by_key(|module| module.len());
        deepest.is_some_and(|face| source.module != *face && source.module.starts_with(face))
    };
    // What a visibility names, as in `pub(in crate::kernel)`, is not imported.
    let code = source.code.replace(" ( in crate::", " ( in ");
    lines(&code, |line| paths(line).any(is_up))
}

/// A folder's face, its `mod.rs`, stands above its other files: none of their paths lead to a
/// face around them and to none of the modules there.
#[test]
fn no_file_imports_from_the_face_of_its_folder() {
    let libraries = ["crates/core/src/kernel", "crates/core/src/problem", "crates/runner/src/plan"];
    let program = ["src/chart", "src/cli", "src/compare", "src/store"];
    for folder in libraries.into_iter().chain(program) {
        let own = modules(folder);
        passes(|source| imports_from_face(source, &own), own.iter().copied());
    }
}

/// However a file comes to name a module above it, on its last line, it is found.
#[test]
fn planted_imports_are_found() {
    let bad = r#"
use crate::federated;
use UP::{linalg, federated};
mod inner { fn f() { super::UP::federated::run() } }
fn f<T: Into<crate::federated::Terms>>() { if crate::linalg::ON { std::mem::drop(1) } }
macro_rules! m { ($m:ident) => { use $crate::{federated, linalg}; } }
#[cfg(not(test))] use crate::federated;
use crate::*;
#[path = "other.rs"] mod other;"#;
    let allowed = r##"
#[cfg(test)] mod late { use crate::federated; }
struct S { #[cfg(test)] a: crate::federated::Terms, b: u8 }
// use crate::federated;
const S: &str = r#"" crate::federated"#; const C: char = '"';"##;
    let source = modules("crates/core/src/theory")[0];
    let up = vec!["super"; source.module.matches("::").count() - 1].join("::");
    finds(breaks, source, &bad.replace("UP", &up), allowed);
}

/// There are no exceptions.
#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    let bad = "println, eprintln, print, eprint, dbg, std::*, std::fs, std::io, std::env, std::time, \
        std::net, std::process, core::*, core::io, core::env, core::time, core::net, alloc::*";
    let io = |source: &Source| says(&source.code, bad);
    let core = modules("crates/core/src");
    passes(io, core.iter().copied());
    finds(io, core[0], "use std::fs;\nuse std::{io, fmt};\nfn f() { println!(); }", "");
    // Each module that the core makes public is one of those that were checked.
    let text = fs::read_to_string(root().join("crates/core/src/lib.rs")).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let checked: BTreeSet<&str> = core.iter().map(|source| top(&source.module)).collect();
    assert_eq!(checked, named.collect());
}

/// What may be unsafe, which the face of its folder allows.
const UNSAFE: &str = "crates/core/src/kernel crates/python/src/python/algorithm \
    crates/python/src/python/arrow crates/python/src/python/clients \
    crates/python/src/python/plan crates/python/src/python/problem \
    crates/python/src/python/watch";

#[test]
fn no_module_says_unsafe_unless_it_is_listed() {
    let is_safe = |source: &&Source| {
        let file = source.file.with_extension("");
        !UNSAFE.split(' ').any(|module| file.starts_with(module))
    };
    let safe = modules("").into_iter().filter(is_safe);
    passes(|source| says(&source.code, "unsafe"), safe);
}

#[test]
fn chart_and_report_see_evidence_alone() {
    let banned = "crate::store, crate::runner, crate::federated, crate::algorithm, crate::problem, \
        crate::theory, crate::trace";
    let both = ["src/chart", "src/report"].into_iter().flat_map(modules);
    passes(|source| says(&source.code, banned), both);
}
