//! The layers of ARCHITECTURE.md: imports go down only, and some modules must
//! not know some things at all.

pub mod source;

use crate::support::root;
use source::{SOURCES, Source, files, is_of_tests, modules};
use std::{collections::BTreeSet, fs, path::Path};

/// A module may import from its own layer's members listed here and below.
const LAYERS: &str = "rng sources words flattened definition < kernel < linalg < problem \
    < federated < algorithm theory < registry < files panics < data < quantity < manifest \
    < registered < plan < trace < runner < stats < results < cells < predictions < scene < ranking \
    < frontier < kinds < figures < claims < needs < looks < bound_rows tuning unplanned < study \
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

/// Whether some code says one of these: words, or parts of paths.
fn says(code: &str, wanted: impl IntoIterator<Item = &'static str>) -> bool {
    let code = code.replace("::", " :: ");
    wanted.into_iter().any(|wanted| code.contains(&format!(" {wanted} ")))
}

/// A check finds nothing in these files.
#[track_caller]
fn passes<'a>(check: impl Fn(&Source) -> Vec<usize>, all: impl IntoIterator<Item = &'a Source>) {
    let place = |source: &Source, line| format!("{}:{line}", source.file.display());
    let places =
        |source| check(source).into_iter().map(|line| place(source, line)).collect::<Vec<_>>();
    let found: Vec<String> = all.into_iter().flat_map(places).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// At the end of a file, a check finds each of the bad lines, and nothing else.
#[track_caller]
fn finds(check: impl Fn(&Source) -> Vec<usize>, source: &Source, bad: &str, others: &str) {
    let text = fs::read_to_string(root().join(&source.file)).unwrap();
    let first = text.lines().count() + 1;
    let found = check(&Source::new(&source.file, &[&text, bad.trim(), "\n", others].concat()));
    let wanted: Vec<usize> = (first..first + bad.trim().lines().count()).collect();
    assert_eq!(found, wanted, "{}, then {bad}\n{others}", source.file.display());
}

/// The workspace has no member whose sources these tests do not read.
#[test]
fn every_member_is_read() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap().iter();
    let members = members.map(|member| format!("{}/src", member.as_str().unwrap()));
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
    let hidden = ["# [ path", "include !", "extern crate", "use {", "use :"];
    lines(&source.code, |line| paths(line).any(is_up) || says(line, hidden))
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
    let import = |own: &str, other: &str| {
        let parts = [own, other].map(|path| path.split_inclusive("::"));
        let [own, other] = parts.clone();
        let shared = own.zip(other).take_while(|(own, other)| own == other).count();
        let [own, other] = parts.map(|parts| parts.take(shared + 1).collect::<String>());
        let is_import = own != other && known.contains(&*own) && known.contains(&*other);
        is_import.then_some((own, other))
    };
    let of = |source: &&Source| {
        paths(&source.code).filter_map(|path| import(&source.module, path)).collect::<Vec<_>>()
    };
    sources.iter().flat_map(of).collect()
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

/// A folder's face, its `mod.rs`, stands above its other files: none of their paths lead to a
/// face around them and to none of the modules there.
#[test]
fn no_file_imports_from_the_face_of_its_folder() {
    let own = modules("src/cli");
    let up = |source: &Source| {
        let is_up = |path: &str| {
            let modules = own.iter().map(|source| &source.module);
            let known = modules.filter(|module| path.starts_with(*module));
            let deepest = known.max_by_key(|module| module.len());
            deepest.is_some_and(|face| source.module != *face && source.module.starts_with(face))
        };
        lines(&source.code, |line| paths(line).any(is_up))
    };
    passes(up, own.iter().copied());
    let inner = own.iter().find(|source| source.module.split("::").count() > 4).unwrap();
    finds(up, inner, "use super::Planted;\nfn f() { crate::cli::planted() }", "");
}

/// However a file of theory comes to name the engine, on its last line, it is found.
#[test]
fn theory_that_names_the_engine_is_found() {
    let bad = r#"
use crate::federated;
pub use crate::federated::Terms as Choice;
use crate::{linalg, federated::{self as engine}};
use crate::r#federated::Terms;
use UP::{linalg, federated};
use self::UP::algorithm as a;
mod inner { fn f() { super::UP::federated::run() } }
fn f<T: Into<crate::federated::Terms>>() { assert!(true) }
fn f() { assert!(<crate::algorithm::FedAvg as Default>::default()); }
macro_rules! m { ($m:ident) => { $crate::federated::run() } }
macro_rules! m { ($m:ident) => { use $crate::{federated, linalg}; } }
macro_rules! m { ($m:ident) => { use crate::$m; } }
#[cfg(not(test))] use crate::federated;
#[cfg(any(test, feature = "fuzz"))] use crate::federated;
struct S { #[cfg(test)] a: u8, b: crate::federated::Terms }
use crate::*;
use crate as root;
use exactfed_core::federated;
#[path = "other.rs"] mod other;
include!("other.rs");
extern crate alloc;"#;
    let allowed = r##"
#[cfg(test)] mod late { use crate::federated; }
#[cfg(all(unix, test))] #[allow(unused)] fn f<A, B>() { crate::federated::run() }
struct S { #[cfg(test)] a: crate::federated::Terms, b: u8 }
fn f() { #[cfg(test)] let a = crate::federated::run(); }
// use crate::federated;
/* crate::federated /* */ crate::federated */
const S: &str = r#"" crate::federated"#; const C: char = '"';"##;
    let theory = modules("crates/core/src/theory");
    let count = Source::below("crates/core/src/theory").len();
    assert!(count > theory.len(), "there are tests among them");
    for source in theory {
        let up = vec!["super"; source.module.matches("::").count() - 1].join("::");
        finds(breaks, source, &bad.replace("UP", &up), allowed);
    }
}

/// Libraries, and the modules that may use them.
const LIBRARIES: [(&str, &str); 8] = [
    ("polars polars_arrow", "store python"),
    ("polars_parquet polars_parquet_format", "store"),
    ("pyo3 numpy", "python"),
    ("npyz zip", "data"),
    ("plotters ttf_parser dejavu usvg resvg svg2pdf png", "chart"),
    ("minijinja", "report"),
    ("rand_chacha", "rng"),
    ("clap hyper tokio", "cli"),
];

#[test]
fn libraries_have_one_user_each() {
    let foreign = |source: &Source| {
        let is_user = |users: &str| users.split(' ').any(|user| user == top(&source.module));
        let others = LIBRARIES.iter().filter(|(_, users)| !is_user(users));
        let others: Vec<&str> = others.flat_map(|(libraries, _)| libraries.split(' ')).collect();
        let is_foreign =
            |path: &str| path.split_once("::").is_some_and(|(name, _)| others.contains(&name));
        lines(&source.code, |line| line.split(' ').any(is_foreign))
    };
    passes(foreign, modules(""));
}

/// There are no exceptions.
#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    let outside = ["*", "fs", "io", "env", "time", "net", "process"];
    let does_io = |path: &str| {
        let mut parts = path.split("::");
        let is_standard = parts.next().is_some_and(|name| ["std", "core", "alloc"].contains(&name));
        is_standard && parts.next().is_some_and(|name| outside.contains(&name))
    };
    let printing = ["println", "eprintln", "print", "eprint", "dbg"];
    let is_bad = |line: &str| says(line, printing) || line.split(' ').any(does_io);
    let io = |source: &Source| lines(&source.code, is_bad);
    let core = modules("crates/core/src");
    passes(io, core.iter().copied());
    for source in &core {
        finds(io, source, "use std::fs;\nuse std::{io, fmt};\nfn f() { println!(); }", "");
    }
    // Each module that the core makes public is one of those that were checked.
    let text = fs::read_to_string(root().join("crates/core/src/lib.rs")).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let checked: BTreeSet<&str> = core.iter().map(|source| top(&source.module)).collect();
    assert_eq!(checked, named.collect());
}

/// What may be unsafe: a folder, whose face allows it, and how that declares the module.
const UNSAFE: [(&str, &str); 6] = [
    ("crates/core/src", "pub mod kernel"),
    ("crates/python/src/python", "mod algorithm"),
    ("crates/python/src/python", "mod arrow"),
    ("crates/python/src/python", "mod clients"),
    ("crates/python/src/python", "mod plan"),
    ("crates/python/src/python", "mod watch"),
];

fn is_safe(source: &Source) -> bool {
    let file = source.file.with_extension("");
    let mut places = UNSAFE.iter().map(|(folder, module)| {
        Path::new(folder).join(module.trim_start_matches("pub ").trim_start_matches("mod "))
    });
    !places.any(|place| file.starts_with(place))
}

#[test]
fn no_module_says_unsafe_unless_it_is_listed() {
    let safe = modules("").into_iter().filter(|source| is_safe(source));
    passes(|source| lines(&source.code, |line| says(line, ["unsafe"])), safe);
}

/// Tests too, and what stands outside the library: nobody may say it but the kernels, and what
/// passes memory to Python, for each of which it is allowed once.
#[test]
fn unsafe_is_allowed_where_it_is_listed_alone() {
    for source in files().iter().chain(&outside()).filter(|source| is_safe(source)) {
        let (folder, is_root) = (source.file.parent().unwrap(), source.module == "crate::");
        let is_face = is_root || source.file.ends_with("mod.rs");
        let here = UNSAFE.iter().filter(|(at, _)| is_face && folder == Path::new(at));
        let mut wanted: Vec<String> =
            here.map(|(_, module)| format!(" # [ allow ( unsafe_code ) ] {module} ; ")).collect();
        if is_root {
            let denies = UNSAFE.iter().any(|(at, _)| Path::new(at).starts_with(folder));
            let lint = if denies { "deny" } else { "forbid" };
            wanted.push(format!(" # ! [ {lint} ( unsafe_code ) ] "));
        }
        let code = source.code.replace(" \n", "");
        let is_said = wanted.iter().all(|wanted| code.matches(wanted).count() == 1);
        assert!(is_said, "{}: {wanted:?}", source.file.display());
        let words = [code.split(' '), source.tests.split(' ')].into_iter().flatten();
        let said = words.filter(|word| ["unsafe", "unsafe_code"].contains(word)).count();
        assert_eq!(said, wanted.len(), "{} says unsafe", source.file.display());
    }
}

#[test]
fn chart_and_report_see_evidence_alone() {
    let banned = ["store", "runner", "federated", "algorithm", "problem", "theory", "trace"];
    let sees = |line: &str| paths(line).any(|path| banned.contains(&top(path)));
    let both = ["src/chart", "src/report"].into_iter().flat_map(modules);
    passes(|source| lines(&source.code, sees), both);
}

/// The files of tests and examples, what the benches share, and the build script.
fn outside() -> Vec<Source> {
    let folders = ["benches/support", "crates/runner/examples", "examples", "tests"];
    let build = Source::at(&root().join("build.rs"));
    folders.into_iter().flat_map(Source::below).chain([build]).collect()
}

/// Whether a line of tests waits without a deadline, or starts what could be waited for so.
fn waits(line: &str) -> bool {
    let names = "Command Condvar Barrier mpsc stdin TcpListener UdpSocket UnixListener UnixStream";
    let calls = [". join ( )", ". recv ( )", ". wait ( )", ". park ( )"];
    let paths = ["process :: *", "TcpStream :: connect"];
    let is_thread = |word: &str| word.contains("thread::") && !word.contains("thread::sleep::");
    says(line, names.split(' ').chain(calls).chain(paths)) || line.split(' ').any(is_thread)
}

/// Tests start programs, and wait for anything, through the one module that sets a deadline:
/// `tests/support/process.rs`.
#[test]
fn tests_wait_for_nothing_without_a_deadline() {
    let of_tests = |source: &Source| lines(&source.tests, waits);
    let all = |source: &Source| [lines(&source.code, waits), of_tests(source)].concat();
    let apart = ["tests/support/process.rs", "build.rs"].map(Path::new);
    let mut outside = outside();
    outside.retain(|source| !apart.contains(&&*source.file));
    passes(all, &outside);
    passes(of_tests, files());
    passes(all, files().iter().filter(|source| is_of_tests(&source.module)));
    let bad = r#"
fn f() { std::process::Command::new("git").status(); }
use std::process::*;
use std::{process::{Command as C}};
fn f() { let _ = child.wait(); }
fn f() { let _ = thread.join().unwrap(); }
fn f(r: Receiver<()>) { r.recv(); }
fn f() { std::thread::spawn(|| ()); }
use std::thread::{scope, sleep};
fn f() { std::net::TcpStream::connect("localhost:1"); }"#;
    let allowed = r#"fn f() { path.join("Command"); names.join(", "); std::thread::sleep(time); }"#;
    finds(all, &outside[0], bad, allowed);
}
