//! The layers of ARCHITECTURE.md: imports go down only, and some modules must
//! not know some things at all.

pub mod source;

use crate::support::root;
use source::{SOURCES, Source, Word, files, is_of_tests, lines, modules};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module may import from its own layer's members listed here and below.
const LAYERS: &str = "rng sources words flattened definition < kernel < linalg < problem \
    < federated < algorithm theory < registry < files panics < data < quantity < manifest \
    < registered < plan < trace < runner < stats < results < cells < predictions < scene < ranking \
    < frontier < kinds < figures < claims < needs < looks < bound_rows tuning unplanned < study \
    < table < evidence < store < compare < chart < report < cli < python";

fn layer(module: &str) -> Option<usize> {
    let mut layers = LAYERS.split(" < ");
    layers.position(|members| members.split(' ').any(|member| member == module))
}

/// What a check finds in a file, and in which lines.
type Found = Vec<(usize, String)>;

#[track_caller]
fn finds_nothing<'a>(
    check: impl Fn(&Source) -> Found,
    sources: impl IntoIterator<Item = &'a Source>,
) {
    let found = sources.into_iter().flat_map(|source| {
        let place = |(line, what)| format!("{}:{line}: {what}", source.file.display());
        check(source).into_iter().map(place).collect::<Vec<_>>()
    });
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

/// At the end of a file, a check finds each of the bad lines once, and no other.
#[track_caller]
fn finds(check: impl Fn(&Source) -> Found, source: &Source, bad: &[&str], others: &[&str]) {
    let text = [&[source.text.trim_end()], bad, others].concat().join("\n");
    let first = source.text.trim_end().lines().count() + 1;
    let mut found = check(&Source::new(&source.file, text));
    found.sort();
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    let expected: Vec<usize> = (first..first + bad.len()).collect();
    assert_eq!(lines, expected, "{}: {found:#?}", source.file.display());
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

/// Where a file breaks the layers.
fn breaks(source: &Source) -> Found {
    let module = source.module[0].as_str();
    let mine = layer(module).unwrap_or_else(|| panic!("{module} has no layer"));
    let up = source.paths().filter_map(|path| {
        let what = match path.parts.first().map_or("*", String::as_str) {
            "*" => "names the whole crate, which hides what it imports".to_owned(),
            name => match layer(name) {
                None => format!("`{name}` has no layer"),
                Some(_) if (module, name) == ("theory", "federated") => {
                    format!("{module} must not know {name}")
                }
                Some(theirs) if name != module && theirs >= mine => {
                    format!("{module} imports {name}")
                }
                Some(_) => return None,
            },
        };
        Some((path.line, what))
    });
    // Each of these could bring in what no path shows.
    let hidden = ["# [ path", "include !", "extern crate"];
    let hidden = hidden.iter().flat_map(|what| lines(&source.code, what));
    up.chain(hidden.map(|line| (line, "hides what it imports".to_owned()))).collect()
}

#[test]
fn imports_go_down_only() {
    finds_nothing(breaks, modules());
}

/// Which members of which folders import each other: a file, or a folder with all that is in it.
type Imports<'a> = BTreeMap<&'a [String], BTreeSet<&'a [String]>>;

/// The imports between the members of each folder.
fn imports_within_folders<'a>(sources: &[&'a Source]) -> Imports<'a> {
    let known: BTreeSet<&[String]> =
        sources.iter().flat_map(|s| (1..=s.module.len()).map(|n| &s.module[..n])).collect();
    let mut imports = Imports::new();
    for source in sources {
        for path in source.paths() {
            let both = source.module.iter().zip(&path.parts);
            let shared = both.take_while(|(own, other)| own == other).count();
            let member = |of: &'a [String]| of.get(..=shared).filter(|of| known.contains(of));
            if let (Some(own), Some(other)) = (member(&source.module), member(&path.parts)) {
                imports.entry(own).or_default().insert(other);
            }
        }
    }
    imports
}

/// What is left of imports once all is taken away, again and again, that imports nothing or that
/// nothing imports.
fn circles(mut imports: Imports) -> Vec<String> {
    loop {
        let left: BTreeSet<&[String]> = imports.keys().copied().collect();
        imports.values_mut().for_each(|others| others.retain(|other| left.contains(other)));
        let imported: BTreeSet<&[String]> = imports.values().flatten().copied().collect();
        imports.retain(|own, others| !others.is_empty() && imported.contains(own));
        if imports.len() == left.len() {
            return left.iter().map(|own| own.join("::")).collect();
        }
    }
}

#[test]
fn files_of_a_folder_import_each_other_in_no_circle() {
    for folder in SOURCES {
        let mut sources = modules();
        sources.retain(|source| source.file.starts_with(folder));
        let imports = imports_within_folders(&sources);
        assert_eq!(circles(imports.clone()), Vec::<String>::new());

        let (own, others) = imports.iter().find(|(own, _)| own.len() > 1).expect("an import");
        let (own, other) = (own.join("::"), others.first().expect("another file"));
        let file = Path::new(folder).join(other.join("/")).with_extension("rs");
        let back = Source::new(&file, format!("use crate::{own}::X;"));
        sources.push(&back);
        let found = circles(imports_within_folders(&sources));
        assert!(found.contains(&own) && found.contains(&other.join("::")), "{own}: {found:?}");
    }
}

/// A folder's face, its `mod.rs`, holds nothing that its other files need, and stands above them:
/// paths that lead to the face, or one around the file, and to none of the modules there.
#[test]
fn no_file_imports_from_the_face_of_its_folder() {
    let known: BTreeSet<&[String]> = modules().iter().map(|source| &source.module[..]).collect();
    let up = |source: &Source| {
        let is_up = |path: &&Word| {
            let faces = (1..source.module.len()).map(|n| &source.module[..n]);
            let mut around = faces.filter(|face| path.parts.starts_with(face));
            let member = |face: &[String]| path.parts.get(..=face.len());
            around.any(|face| member(face).is_none_or(|member| !known.contains(member)))
        };
        source.paths().filter(is_up).map(|path| (path.line, path.parts.join("::"))).collect()
    };
    let mut own = modules();
    own.retain(|source| source.module[0] == "cli");
    finds_nothing(up, own.iter().copied());
    let inner = own.iter().find(|source| source.module.len() > 2).expect("a subfolder");
    finds(up, inner, &["use super::Planted;", "fn f() { crate::cli::planted() }"], &[]);
}

/// However a file of theory comes to name the engine, on its last line, it is found.
#[test]
fn theory_that_names_the_engine_is_found() {
    let mut theory = modules();
    theory.retain(|source| source.module[0] == "theory");
    let count = Source::below("crates/core/src/theory").len();
    assert!(theory.len() > 5 && count > theory.len(), "there are tests among them");
    for source in theory {
        let up = "super::".repeat(source.module.len());
        let bad = [
            "use crate::federated;",
            "pub use crate::federated::Terms as Choice;",
            "use crate::{linalg, federated::{self as engine}};",
            "use crate::r#federated::Terms;",
            "use crate /* below */ :: federated;",
            &format!("use {up}federated::Terms;"),
            &format!("use {up}{{linalg, federated}};"),
            &format!("use self::{up}algorithm as a;"),
            &format!("mod inner {{ fn f() {{ super::{up}federated::run() }} }}"),
            "fn f() { let _ = crate::federated::Terms::default(); }",
            "fn f() { assert!(crate::federated::run()); }",
            "fn f<T: Into<crate::federated::Terms>>() {}",
            "fn f() { <crate::algorithm::FedAvg as Default>::default(); }",
            "macro_rules! m { () => { $crate::federated::run() } }",
            "macro_rules! m { () => { use $crate::{federated::Terms, linalg}; } }",
            "macro_rules! m { ($m:ident) => { use crate::$m; } }",
            "#[cfg(not(test))] use crate::federated;",
            "#[cfg(any(test, feature = \"fuzz\"))] use crate::federated;",
            "struct S { #[cfg(test)] a: u8, b: crate::federated::Terms }",
            "use crate::*;",
            "use crate as root;",
            "use exactfed_core::federated;",
            "#[path = \"other.rs\"] mod other;",
            "include!(\"other.rs\");",
            "extern crate alloc;",
        ];
        let allowed = [
            "#[cfg(test)] mod late { use crate::federated; }",
            "#[cfg(all(unix, test))] #[allow(unused)] fn f<A, B>() { crate::federated::run() }",
            "struct S { #[cfg(test)] a: crate::federated::Terms, b: u8 }",
            "enum E { #[cfg(test)] A(crate::federated::Terms), B }",
            "fn f() { #[cfg(test)] let a = crate::federated::run(); }",
            "// use crate::federated;",
            "/* crate::federated /* */ crate::federated */",
            "const S: &str = r#\"\" crate::federated\"#; const C: char = '\"';",
        ];
        finds(breaks, source, &bad, &allowed);
    }
}

/// The modules that may use some libraries, and which.
const USERS: [(&str, &str); 7] = [
    ("chart", "plotters ttf_parser dejavu usvg resvg svg2pdf png"),
    ("cli", "clap hyper tokio"),
    ("data", "npyz zip"),
    ("python", "polars polars_arrow pyo3 numpy"),
    ("report", "minijinja"),
    ("rng", "rand_chacha"),
    ("store", "polars polars_arrow polars_parquet polars_parquet_format"),
];

#[test]
fn libraries_have_one_user_each() {
    let foreign = |source: &Source| {
        let paths = source.code.iter().filter(|path| !path.local && path.parts.len() > 1);
        let is_foreign = |path: &&Word| {
            let has = |libraries: &str| libraries.split(' ').any(|name| name == path.parts[0]);
            let mut users = USERS.iter().filter(|(_, libraries)| has(libraries)).peekable();
            users.peek().is_some() && users.all(|(user, _)| source.module[0] != *user)
        };
        paths.filter(is_foreign).map(|path| (path.line, path.parts.join("::"))).collect()
    };
    finds_nothing(foreign, modules());
}

/// What a file of the core must not do: I/O, or look at a clock or the environment.
fn io(source: &Source) -> Found {
    let outside = ["fs", "io", "env", "time", "net", "process", "*", "self"];
    let is_outside = |path: &&Word| {
        let is_standard = ["std", "core", "alloc"].contains(&path.parts[0].as_str());
        let inside = path.parts.get(1).is_some_and(|name| outside.contains(&name.as_str()));
        !path.local && is_standard && inside
    };
    let paths = source.code.iter().filter(|path| !path.parts.is_empty()).filter(is_outside);
    let paths = paths.map(|path| (path.line, path.parts.join("::")));
    let printing = ["println", "eprintln", "print", "eprint", "dbg"].into_iter();
    let said = printing
        .flat_map(|name| lines(&source.code, name).into_iter().map(|line| (line, name.to_owned())));
    paths.chain(said).collect()
}

/// There are no exceptions.
#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    let mut core = modules();
    core.retain(|source| source.file.starts_with("crates/core/src"));
    finds_nothing(io, core.iter().copied());
    for source in &core {
        let bad = ["use std::fs;", "use std::{io, fmt};", "fn f() { println!(); }"];
        finds(io, source, &bad, &[]);
    }
    // Each module that the core makes public is one of those that were checked.
    let text = fs::read_to_string(root().join("crates/core/src/lib.rs")).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let checked: BTreeSet<&str> = core.iter().map(|source| source.module[0].as_str()).collect();
    assert_eq!(checked, named.collect());
}

/// What may be unsafe: the file that allows it, how it declares the modules, and these.
const UNSAFE: [(&str, &str, &[&str]); 2] = [
    ("crates/core/src/lib.rs", "pub mod", &["kernel"]),
    ("crates/python/src/python/mod.rs", "mod", &["algorithm", "arrow", "clients", "plan", "watch"]),
];

fn may_be_unsafe(file: &Path) -> bool {
    let file = file.with_extension("");
    UNSAFE.iter().any(|(at, _, modules)| {
        modules.iter().any(|module| file.starts_with(Path::new(at).with_file_name(module)))
    })
}

#[test]
fn no_module_says_unsafe_unless_it_is_listed() {
    let modules = modules().into_iter().filter(|source| !may_be_unsafe(&source.file));
    let says = |source: &Source| {
        lines(&source.code, "unsafe").into_iter().map(|line| (line, "unsafe".to_owned())).collect()
    };
    finds_nothing(says, modules);
}

/// Tests too, and what stands outside the library: nobody may say it but the kernels, and what
/// passes memory to Python, for each of which it is allowed once.
#[test]
fn unsafe_is_allowed_where_it_is_listed_alone() {
    let build = [Source::at(&root().join("build.rs"))];
    for source in files().iter().chain(&outside()).chain(&build) {
        let Source { file, text, .. } = source;
        let at = UNSAFE.iter().filter(|(at, ..)| file == Path::new(at));
        let mut allowed: Vec<String> = at
            .flat_map(|(_, keyword, modules)| modules.iter().map(move |name| (keyword, name)))
            .map(|(keyword, name)| format!("#[allow(unsafe_code)]\n{keyword} {name};"))
            .collect();
        // These roots deny it, where others forbid it.
        let denies = ["crates/core/src/lib.rs", "crates/python/src/lib.rs"];
        if denies.iter().any(|root| file == Path::new(root)) {
            allowed.push("#![deny(unsafe_code)]".to_owned());
        }
        let count = |part: &str| text.matches(part).count();
        if !allowed.is_empty() {
            assert!(allowed.iter().all(|allow| count(allow) == 1), "{}", file.display());
            assert_eq!(count("unsafe_code"), allowed.len(), "{} allows more", file.display());
        } else if source.module.is_empty() {
            assert!(text.contains("#![forbid(unsafe_code)]"), "{}", file.display());
        } else if !may_be_unsafe(file) {
            for word in source.code.iter().chain(&source.tests) {
                let says = ["unsafe_code", "unsafe"].iter().any(|text| word.is(text));
                assert!(!says, "{}:{} says unsafe", file.display(), word.line);
            }
        }
    }
}

#[test]
fn chart_and_report_see_evidence_alone() {
    let banned = ["store", "runner", "federated", "algorithm", "problem", "theory", "trace"];
    let sees = |source: &Source| {
        let paths = source.paths().filter(|path| banned.contains(&path.parts[0].as_str()));
        paths.map(|path| (path.line, path.parts.join("::"))).collect()
    };
    let mut both = modules();
    both.retain(|source| ["chart", "report"].contains(&source.module[0].as_str()));
    finds_nothing(sees, both);
}

/// The files of tests and examples, and what the benches share.
fn outside() -> Vec<Source> {
    let folders = ["benches/support", "crates/runner/examples", "examples", "tests"];
    folders.into_iter().flat_map(Source::below).collect()
}

/// What in the code of tests waits without a deadline, or starts what could be waited for so.
fn waits(code: &[Word]) -> Found {
    let names = "Command Condvar Barrier mpsc stdin TcpListener UdpSocket UnixListener UnixStream";
    let calls = [". join ( )", ". recv ( )", ". wait ( )", ". park ( )"];
    let said = names.split(' ').chain(calls);
    let said = said.flat_map(|what| lines(code, what).into_iter().map(move |line| (line, what)));
    let pairs = code.iter().flat_map(|word| word.parts.windows(2).map(|pair| (word.line, pair)));
    let pairs = pairs.filter_map(|(line, pair)| match [&*pair[0], &*pair[1]] {
        ["thread", "sleep" | "self"] => None,
        ["thread", _] => Some((line, "thread")),
        ["process", "*"] => Some((line, "process")),
        ["TcpStream", "connect"] => Some((line, "TcpStream")),
        _ => None,
    });
    let found = said.chain(pairs);
    found.map(|(line, what)| (line, format!("{what}: see tests/support/process.rs"))).collect()
}

/// Tests start programs, and wait for anything, through the one module that sets a deadline.
#[test]
fn tests_wait_for_nothing_without_a_deadline() {
    let of_tests = |source: &Source| waits(&source.tests);
    let of_all = |source: &Source| [waits(&source.code), waits(&source.tests)].concat();
    let mut outside = outside();
    outside.retain(|source| source.file != Path::new("tests/support/process.rs"));
    finds_nothing(of_all, &outside);
    finds_nothing(of_tests, files());
    finds_nothing(of_all, files().iter().filter(|source| is_of_tests(&source.module)));
    let bad = [
        "fn f() { std::process::Command::new(\"git\").status(); }",
        "use std::process::*;",
        "use std::{process::{Command as C}};",
        "fn f() { let _ = child.wait(); }",
        "fn f() { let _ = thread.join().unwrap(); }",
        "fn f(r: Receiver<()>) { r.recv(); }",
        "fn f() { std::thread::spawn(|| ()); }",
        "use std::thread::{scope, sleep};",
        "fn f() { std::net::TcpStream::connect(\"localhost:1\"); }",
    ];
    let allowed = ["fn f() { path.join(\"Command\"); names.join(\", \"); std::thread::sleep(t); }"];
    finds(of_all, &outside[0], &bad, &allowed);
}
