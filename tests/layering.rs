//! The layers of ARCHITECTURE.md: imports go down only, and some modules must
//! not know some things at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A module may import from its own layer's members listed here and below.
const LAYERS: &[&[&str]] = &[
    &["rng", "linalg", "stats", "panics"],
    &["kernel"],
    &["problem"],
    &["federated"],
    &["algorithm", "theory"],
    &["files", "data"],
    &["manifest"],
    &["plan"],
    &["trace"],
    &["runner"],
    &["store"],
    &["analysis"],
    &["chart"],
    &["report"],
    &["cli"],
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every source file's module and its text without tests.
fn modules() -> Vec<(String, String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut all = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&root).unwrap().with_extension("");
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        if module == "lib" || module == "main" || file.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap().to_owned();
        let code: String = code
            .lines()
            .filter(|l| !l.trim_start().starts_with("//"))
            .map(|l| format!("{l}\n"))
            .collect();
        all.push((module, code, file));
    }
    assert!(all.len() > 30, "the sources were found");
    all
}

/// The modules that `crate::` and `crate::{…}` name in a text.
fn imports(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let list = rest.strip_prefix('{').map_or(rest, |inner| inner.split('}').next().unwrap());
        let one = |part: &str| {
            part.trim()
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or("")
                .to_owned()
        };
        if rest.starts_with('{') {
            names.extend(list.split(',').map(one))
        } else {
            names.push(one(rest))
        }
    }
    names
}

#[test]
fn imports_go_down_only() {
    let layer: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(i, names)| names.iter().map(move |n| (*n, i)))
        .collect();
    for (module, code, file) in modules() {
        let mine = *layer.get(module.as_str()).unwrap_or_else(|| panic!("{module} has no layer"));
        for name in imports(&code) {
            let Some(&theirs) = layer.get(name.as_str()) else { continue };
            assert!(name == module || theirs < mine, "{}: {module} imports {name}", file.display());
        }
    }
}

#[test]
fn theory_and_engine_do_not_know_each_other() {
    for (module, code, file) in modules() {
        let names = imports(&code);
        let knows = |name: &str| names.iter().any(|n| n == name);
        if module == "theory" {
            assert!(!knows("federated") && !knows("algorithm"), "{}", file.display());
        }
        if module == "federated" || module == "algorithm" {
            assert!(!knows("theory"), "{}", file.display());
        }
    }
}

#[test]
fn libraries_have_one_user_each() {
    for (module, code, file) in modules() {
        for (library, owners) in [
            ("polars", &["store", "data"][..]),
            ("polars_parquet_format", &["data"]),
            ("npyz", &["data"]),
            ("zip", &["data"]),
            ("plotters", &["chart"]),
            ("minijinja", &["report"]),
            ("rand_chacha", &["rng"]),
            ("clap", &["cli"]),
        ] {
            let uses = code.contains(&format!("use {library}::"))
                || code.contains(&format!(" {library}::"));
            assert!(
                !uses || owners.contains(&module.as_str()),
                "{} uses {library}",
                file.display()
            );
        }
    }
}

#[test]
fn the_core_does_no_io_and_reads_no_clock() {
    for (module, code, file) in modules() {
        if ["rng", "linalg", "stats", "kernel", "problem", "federated", "algorithm", "theory"]
            .contains(&module.as_str())
        {
            for word in [
                "std::fs",
                "std::io",
                "std::env",
                "std::time",
                "std::net",
                "std::process",
                "println!",
            ] {
                assert!(!code.contains(word), "{} mentions {word}", file.display());
            }
        }
        assert!(module == "kernel" || !code.contains("unsafe "), "{} says unsafe", file.display());
    }
}

/// Tests too, and what stands outside the library: nobody but the kernels may say it,
/// and `src/lib.rs` allows it once, for them.
#[test]
fn unsafe_is_allowed_in_the_kernels_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lint = concat!("unsafe", "_code");
    let mut files = vec![root.join("build.rs")];
    ["src", "examples", "tests"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if file == root.join("src/lib.rs") {
            assert!(text.contains(&format!("#![deny({lint})]")));
            assert_eq!(text.matches(&format!("#[allow({lint})]\npub mod kernel;")).count(), 1);
            assert_eq!(text.matches(lint).count(), 2, "src/lib.rs allows it once");
        } else if file == root.join("src/main.rs") {
            assert!(text.contains(&format!("#![forbid({lint})]")));
        } else if !file.starts_with(root.join("src/kernel")) {
            assert!(!text.contains(lint), "{} speaks of {lint}", file.display());
            for begin in ["fn ", "{", "impl ", "trait ", "extern "] {
                let word = format!("{} {begin}", "unsafe");
                assert!(!text.contains(&word), "{} says {word}", file.display());
            }
        }
    }
}

#[test]
fn chart_and_report_see_analysis_alone() {
    for (module, code, file) in modules() {
        if module == "chart" || module == "report" {
            for name in imports(&code) {
                let banned =
                    ["store", "runner", "federated", "algorithm", "problem", "theory", "trace"];
                assert!(!banned.contains(&name.as_str()), "{} imports {name}", file.display());
            }
        }
    }
}
