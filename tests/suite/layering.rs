//! The layers of ARCHITECTURE.md: imports go down only, and some modules must
//! not know some things at all.

pub mod source;

use crate::support::{files_with, root};
use source::{
    Named, SOURCES, Source, Word, files, inside, is_root, modules, paths, test_modules, words,
    words_in,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module may import from its own layer's members listed here and below.
const LAYERS: &[&[&str]] = &[
    &["rng", "sources", "words", "flattened", "definition"],
    &["kernel"],
    &["linalg"],
    &["problem"],
    &["federated"],
    &["algorithm", "theory"],
    &["registry"],
    &["files", "panics"],
    &["data"],
    &["quantity"],
    &["manifest"],
    &["registered"],
    &["plan"],
    &["trace"],
    &["runner"],
    &["stats"],
    &["results"],
    &["cells"],
    &["predictions"],
    &["scene"],
    &["ranking"],
    &["frontier"],
    &["kinds"],
    &["figures"],
    &["claims"],
    &["needs"],
    &["looks"],
    &["bound_rows", "tuning", "unplanned"],
    &["study"],
    &["table"],
    &["evidence"],
    &["store"],
    &["compare"],
    &["chart"],
    &["report"],
    &["cli"],
    &["python"],
];

/// The workspace has no member whose sources these tests do not read.
#[test]
fn every_member_is_read() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let mut members: Vec<String> = vec!["src".to_owned()];
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        members.push(format!("{}/src", member.as_str().unwrap()));
    }
    assert_eq!(members, SOURCES);
}

/// Where a file breaks the layers.
fn breaks(file: &Path, source: &Source) -> Vec<String> {
    let layer: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(i, names)| names.iter().map(move |n| (*n, i)))
        .collect();
    let module = source.module[0].as_str();
    let mine = *layer.get(module).unwrap_or_else(|| panic!("{module} has no layer"));
    let mut found = Vec::new();
    for Named { parts, line, .. } in source.paths().into_iter().filter(|path| path.local) {
        let place = format!("{}:{line}", file.display());
        let Some(name) = parts.first().filter(|name| *name != "*") else {
            found.push(format!("{place}: names the whole crate, which hides what it imports"));
            continue;
        };
        let apart = [("theory", "federated"), ("theory", "algorithm"), ("federated", "theory")];
        match layer.get(name.as_str()) {
            None => found.push(format!("{place}: `{name}` has no layer")),
            Some(_) if apart.contains(&(module, name)) => {
                found.push(format!("{place}: {module} must not know {name}"));
            }
            Some(theirs) if name != module && *theirs >= mine => {
                found.push(format!("{place}: {module} imports {name}"));
            }
            Some(_) => {}
        }
    }
    // Each of these could bring in what no path shows.
    for (i, word) in source.code.iter().enumerate() {
        let after = |n: usize| source.code.get(i + n).map_or("", |word| word.text.as_str());
        let hidden = match word.text.as_str() {
            "#" => after(1) == "[" && after(2) == "path",
            "include" => after(1) == "!",
            "extern" => after(1) == "crate",
            _ => false,
        };
        if hidden {
            found.push(format!("{}:{}: hides what it imports", file.display(), word.line));
        }
    }
    found
}

#[test]
fn imports_go_down_only() {
    let found: Vec<String> = modules().iter().flat_map(|(file, s)| breaks(file, s)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Which members of which folders import each other: a file, or a folder with all that is in it.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The imports between the members of each folder.
fn imports_within_folders(sources: &[&Source]) -> Imports {
    let known: BTreeSet<&[String]> =
        sources.iter().flat_map(|s| (1..=s.module.len()).map(|n| &s.module[..n])).collect();
    let mut imports = Imports::new();
    for source in sources {
        for path in source.paths().into_iter().filter(|path| path.local) {
            let both = source.module.iter().zip(&path.parts);
            let shared = both.take_while(|(own, other)| own == other).count();
            let member = |of: &[String]| {
                let member = of.get(..=shared)?;
                known.contains(member).then(|| member.to_vec())
            };
            if let (Some(own), Some(other)) = (member(&source.module), member(&path.parts)) {
                imports.entry(own).or_default().insert(other);
            }
        }
    }
    imports
}

/// What is left of imports once all is taken away, again and again, that imports nothing or that
/// nothing imports.
fn circles(mut imports: Imports) -> Vec<Vec<String>> {
    loop {
        let left: BTreeSet<Vec<String>> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|others| others.retain(|other| left.contains(other)));
        let imported: BTreeSet<Vec<String>> = imports.values().flatten().cloned().collect();
        imports.retain(|own, others| !others.is_empty() && imported.contains(own));
        if imports.len() == left.len() {
            return left.into_iter().collect();
        }
    }
}

#[test]
fn files_of_a_folder_import_each_other_in_no_circle() {
    for folder in SOURCES {
        let of_crate = modules().into_iter().filter(|(file, _)| file.starts_with(folder));
        let mut sources: Vec<&Source> = of_crate.map(|(_, source)| source).collect();
        assert_eq!(circles(imports_within_folders(&sources)), Vec::<Vec<String>>::new());

        let import = imports_within_folders(&sources).into_iter().find(|(own, _)| own.len() > 1);
        let (own, others) = import.expect("files import each other");
        let back = format!("use crate::{}::X;", own.join("::"));
        let other = others.first().expect("an import");
        let back = Source::new(&PathBuf::from(other.join("/")).with_extension("rs"), &back);
        sources.push(&back);
        let found = circles(imports_within_folders(&sources));
        assert!(found.contains(&own) && found.contains(other), "{own:?}, {other:?}: {found:?}");
    }
}

/// Folders whose faces, their `mod.rs`, hold nothing that their other files need.
const WITH_FACES: [&str; 1] = ["cli"];

/// The imports of a file from the face of its folder or of one around it, which stands above it:
/// paths that lead to none of the known modules there.
fn imports_up(file: &Path, source: &Source, known: &BTreeSet<&[String]>) -> Vec<String> {
    let is_up = |path: &Named| {
        let faces = (1..source.module.len()).map(|n| &source.module[..n]);
        let mut around = faces.filter(|face| path.parts.starts_with(face));
        around
            .any(|face| path.parts.get(..=face.len()).is_none_or(|member| !known.contains(member)))
    };
    let paths = source.paths().into_iter().filter(|path| path.local && is_up(path));
    paths
        .map(|path| format!("{}:{}: {}", file.display(), path.line, path.parts.join("::")))
        .collect()
}

#[test]
fn no_file_imports_from_the_face_of_its_folder() {
    let all = modules();
    let known: BTreeSet<&[String]> = all.iter().map(|(_, source)| &source.module[..]).collect();
    for folder in WITH_FACES {
        let own = || all.iter().filter(|(_, source)| source.module[0] == folder);
        let found: Vec<String> = own().flat_map(|(file, s)| imports_up(file, s, &known)).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));

        let (file, source) =
            own().find(|(_, source)| source.module.len() > 2).expect("a subfolder");
        let text = fs::read_to_string(root().join(file)).unwrap();
        let own = words_in(&text, &source.module);
        for planted in ["use super::Planted;", "fn f() { crate::FOLDER::planted() }"] {
            let planted = followed(file, &own, &planted.replace("FOLDER", folder));
            assert_eq!(imports_up(file, &planted, &known).len(), 1, "{}", file.display());
        }
    }
}

/// A file whose words are followed by others.
fn followed(file: &Path, own: &[Word], further: &str) -> Source {
    let module = own.first().map_or(&[][..], |word| &word.module[..]);
    Source::of(&inside(file), [own, &words_in(further, module)].concat())
}

/// However a file of theory comes to name the engine, on its last line, it is found.
#[test]
fn theory_that_names_the_engine_is_found() {
    let files = files_with(&root().join("crates/core/src/theory"), "rs");
    let theory: Vec<&(PathBuf, Source)> =
        modules().into_iter().filter(|(_, source)| source.module[0] == "theory").collect();
    assert!(theory.len() > 5 && files.len() > theory.len(), "there are tests among them");
    for (file, source) in theory {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let own = words_in(&text, &source.module);
        let up = "super::".repeat(source.module.len());
        for planted in [
            "use crate::federated;".to_owned(),
            "pub use crate::federated::Terms as Choice;".to_owned(),
            "use crate::{linalg, federated::{self as engine}};".to_owned(),
            "use crate::r#federated::Terms;".to_owned(),
            "use crate /* below */ :: federated;".to_owned(),
            format!("use {up}federated::Terms;"),
            format!("use {up}{{linalg, federated}};"),
            format!("use self::{up}algorithm as a;"),
            format!("mod inner {{ fn f() {{ super::{up}federated::run() }} }}"),
            "fn f() { let _ = crate::federated::Terms::default(); }".to_owned(),
            "fn f<T: Into<crate::federated::Terms>>() {}".to_owned(),
            "fn f() { <crate::algorithm::FedAvg as Default>::default(); }".to_owned(),
            "macro_rules! m { () => { $crate::federated::run() } }".to_owned(),
            "#[cfg(not(test))]\nuse crate::federated;".to_owned(),
            "#[cfg(any(test, feature = \"fuzz\"))]\nuse crate::federated;".to_owned(),
            "struct S { #[cfg(test)] a: u8, b: crate::federated::Terms }".to_owned(),
            "use crate::*;".to_owned(),
            "use crate as root;".to_owned(),
            "use exactfed_core::federated;".to_owned(),
        ] {
            let found = breaks(file, &followed(file, &own, &planted));
            assert_eq!(found.len(), 1, "{}: {planted}: {found:?}", file.display());
        }
        for allowed in [
            "#[cfg(test)]\nmod late { use crate::federated; }",
            "#[cfg(all(unix, test))]\n#[allow(unused)]\nfn f<A, B>() { crate::federated::run() }",
            "struct S { #[cfg(test)] a: crate::federated::Terms, b: u8 }",
            "// use crate::federated;\n/* crate::federated /* */ crate::federated */",
            "const S: &str = r#\"\" crate::federated\"#; const C: char = '\"';",
        ] {
            let found = breaks(file, &followed(file, &own, allowed));
            assert!(found.is_empty(), "{}: {allowed}: {found:?}", file.display());
        }
    }
}

/// Whether a path leads into one of these modules of the standard library.
fn is_standard(path: &Named, modules: &[&str]) -> bool {
    let is_root = ["std", "core", "alloc"].contains(&path.parts[0].as_str());
    let inside = path.parts.get(1).map(String::as_str);
    !path.local && is_root && inside.is_none_or(|name| name == "*" || modules.contains(&name))
}

#[test]
fn libraries_have_one_user_each() {
    for (file, source) in modules() {
        let paths = source.paths();
        let owners: [(&str, &[&str]); 20] = [
            ("polars", &["store", "python"]),
            ("polars_arrow", &["store", "python"]),
            ("polars_parquet", &["store"]),
            ("pyo3", &["python"]),
            ("numpy", &["python"]),
            ("polars_parquet_format", &["store"]),
            ("npyz", &["data"]),
            ("zip", &["data"]),
            ("plotters", &["chart"]),
            ("ttf_parser", &["chart"]),
            ("dejavu", &["chart"]),
            ("usvg", &["chart"]),
            ("resvg", &["chart"]),
            ("svg2pdf", &["chart"]),
            ("png", &["chart"]),
            ("minijinja", &["report"]),
            ("rand_chacha", &["rng"]),
            ("clap", &["cli"]),
            ("hyper", &["cli"]),
            ("tokio", &["cli"]),
        ];
        for (library, owners) in owners {
            let user = paths.iter().find(|path| !path.local && path.parts[0] == library);
            let is_owner = owners.contains(&source.module[0].as_str());
            assert!(user.is_none() || is_owner, "{} uses {user:?}", file.display());
        }
    }
}

/// The package whose files all do no I/O: the core. There are no exceptions.
const WITHOUT_IO: &str = "crates/core/src";

/// What a file does that its package must not: I/O, or a look at a clock or the environment.
fn io(file: &Path, source: &Source) -> Vec<String> {
    if !file.starts_with(WITHOUT_IO) {
        return Vec::new();
    }
    let outside = ["fs", "io", "env", "time", "net", "process"];
    let paths = source.paths().into_iter().filter(|path| is_standard(path, &outside));
    let printing = ["println", "eprintln", "print", "eprint", "dbg"];
    let said = source.code.iter().filter(|word| printing.contains(&word.text.as_str()));
    let paths = paths.map(|path| format!("{}: uses {:?}", file.display(), path.parts));
    paths.chain(said.map(|word| format!("{}: says {}", file.display(), word.text))).collect()
}

#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    let mut checked = BTreeSet::new();
    for (file, source) in modules() {
        assert_eq!(io(file, source), Vec::<String>::new());
        if file.starts_with(WITHOUT_IO) {
            let text = fs::read_to_string(root().join(file)).unwrap();
            let own = words_in(&text, &source.module);
            for planted in ["use std::fs;", "use std::{io, fmt};", "fn f() { println!(); }"] {
                let planted = followed(file, &own, planted);
                assert_eq!(io(file, &planted).len(), 1, "{}", file.display());
            }
            checked.insert(source.module[0].clone());
        }
    }
    // Each module that the core makes public is one of those that were checked.
    let text = fs::read_to_string(root().join(WITHOUT_IO).join("lib.rs")).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(checked, named.map(str::to_owned).collect());
}

#[test]
fn no_module_says_unsafe_unless_it_is_listed() {
    for (file, source) in modules() {
        let is_exception = UNSAFE.iter().any(|[.., place]| file.starts_with(place));
        let says = source.code.iter().any(|word| word.text == "unsafe");
        assert!(is_exception || !says, "{} says unsafe", file.display());
    }
}

/// What may be unsafe: the file that allows it, the module, and where that is.
const UNSAFE: [[&str; 3]; 6] = [
    ["crates/core/src/lib.rs", "pub mod kernel;", "crates/core/src/kernel"],
    [PYTHON, "mod algorithm;", "crates/python/src/python/algorithm.rs"],
    [PYTHON, "mod arrow;", "crates/python/src/python/arrow.rs"],
    [PYTHON, "mod clients;", "crates/python/src/python/clients.rs"],
    [PYTHON, "mod plan;", "crates/python/src/python/plan.rs"],
    [PYTHON, "mod watch;", "crates/python/src/python/watch.rs"],
];
const PYTHON: &str = "crates/python/src/python/mod.rs";
/// The roots that deny it, where others forbid it.
const DENIED: [&str; 2] = ["crates/core/src/lib.rs", "crates/python/src/lib.rs"];

/// Tests too, and what stands outside the library: nobody may say it but the kernels, and what
/// passes memory to Python, for each of which it is allowed once.
#[test]
fn unsafe_is_allowed_where_it_is_listed_alone() {
    let lint = "unsafe_code";
    let mut files = vec![root().join("build.rs")];
    for folder in SOURCES.iter().chain(&["examples", "crates/runner/examples", "tests"]) {
        files.extend(files_with(&root().join(folder), "rs"));
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let file = file.strip_prefix(root()).unwrap();
        let denies = DENIED.iter().any(|root| file == Path::new(root));
        let is_exception = UNSAFE.iter().any(|[.., place]| file.starts_with(place));
        let allowed = UNSAFE.iter().filter(|[at, ..]| file == Path::new(at));
        let allowed: Vec<String> =
            allowed.map(|[_, module, _]| format!("#[allow(unsafe_code)]\n{module}")).collect();
        assert!(allowed.iter().all(|allow| text.matches(allow.as_str()).count() == 1));
        assert!(!denies || text.contains("#![deny(unsafe_code)]"));
        if denies || !allowed.is_empty() {
            let count = usize::from(denies) + allowed.len();
            assert_eq!(text.matches(lint).count(), count, "{} allows more", file.display());
        } else if SOURCES.iter().any(|folder| file.starts_with(folder)) && is_root(file) {
            assert!(text.contains("#![forbid(unsafe_code)]"));
        } else if !is_exception {
            let says = |word: &Word| [lint, "unsafe"].contains(&word.text.as_str());
            assert!(!words(&text).iter().any(says), "{} says unsafe", file.display());
        }
    }
}

#[test]
fn chart_and_report_see_evidence_alone() {
    for (file, source) in modules() {
        if !["chart", "report"].contains(&source.module[0].as_str()) {
            continue;
        }
        for path in source.paths().into_iter().filter(|path| path.local) {
            let banned =
                ["store", "runner", "federated", "algorithm", "problem", "theory", "trace"];
            let name = &path.parts[0];
            assert!(!banned.contains(&name.as_str()), "{} imports {path:?}", file.display());
        }
    }
}

/// What in the code of tests waits without a deadline, or starts what could be waited for so.
fn waits(file: &Path, code: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |line: usize, what: &str| {
        found.push(format!("{}:{line}: {what}: see tests/support/process.rs", file.display()));
    };
    for (i, word) in code.iter().enumerate() {
        let near = |from: usize, wanted: &[&str]| {
            let near = code.iter().skip(from).map(|word| word.text.as_str());
            near.take(wanted.len()).eq(wanted.iter().copied())
        };
        match word.text.as_str() {
            name @ ("Command" | "Condvar" | "Barrier" | "mpsc" | "stdin" | "TcpListener"
            | "UdpSocket" | "UnixListener" | "UnixStream") => note(word.line, name),
            name @ ("join" | "recv" | "wait" | "park")
                if i > 0 && code[i - 1].text == "." && near(i + 1, &["(", ")"]) =>
            {
                note(word.line, name);
            }
            _ => {}
        }
    }
    for Named { parts, line, .. } in paths(code) {
        for pair in parts.windows(2) {
            let [module, name] = [0, 1].map(|i| pair[i].as_str());
            let is_bad = match module {
                "thread" => !["sleep", "self"].contains(&name),
                "process" => name == "*",
                "TcpStream" => name == "connect",
                _ => false,
            };
            if is_bad {
                note(line, &format!("{module}::{name}"));
            }
        }
    }
    found
}

/// Tests start programs, and wait for anything, through the one module that sets a deadline.
#[test]
fn tests_wait_for_nothing_without_a_deadline() {
    let mut found = Vec::new();
    let mut outside = vec![root().join("benches/support/mod.rs")];
    for folder in ["tests", "examples", "crates/runner/examples"] {
        outside.extend(files_with(&root().join(folder), "rs"));
    }
    outside.retain(|file| *file != root().join("tests/support/process.rs"));
    for file in outside {
        found.extend(waits(&file, &words(&fs::read_to_string(&file).unwrap())));
    }
    let all = files();
    let tests = test_modules(all);
    for (file, source) in all {
        found.extend(waits(file, &source.tests));
        if tests.iter().any(|test| source.module.starts_with(test)) {
            found.extend(waits(file, &source.code));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    for planted in [
        "std::process::Command::new(\"git\").status();",
        "use std::process::*;",
        "use std::{process::{Command as C}};",
        "let _ = child.wait();",
        "let _ = thread.join().unwrap();",
        "fn f(r: Receiver<()>) { r.recv(); }",
        "std::thread::spawn(|| ());",
        "use std::thread::{scope, sleep};",
        "std::net::TcpStream::connect(\"localhost:1\");",
    ] {
        assert!(!waits(Path::new("planted"), &words(planted)).is_empty(), "{planted}");
    }
    let allowed = "path.join(\"Command\"); names.join(\", \"); std::thread::sleep(time);";
    assert_eq!(waits(Path::new("allowed"), &words(allowed)), Vec::<String>::new());
}
