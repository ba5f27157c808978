//! Tells the program which commit it is built from, for provenance.

use std::path::Path;
use std::process::Command;

/// What the program is made of: a change elsewhere does not make it dirty.
const PARTS: [&str; 6] = ["src", "crates", "templates", "build.rs", "Cargo.toml", "Cargo.lock"];

/// Names the commit where the sources are built outside of a repository, as a package.
const BUILD_COMMIT: &str = "EXACTFED_BUILD_COMMIT";

fn main() {
    for part in PARTS {
        println!("cargo:rerun-if-changed={part}");
    }
    if Path::new(".git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=.git/logs/HEAD");
    }
    println!("cargo:rerun-if-env-changed={BUILD_COMMIT}");
    // Only a repository whose top this package is; not one around it.
    let top = git(&["rev-parse", "--show-toplevel"]);
    let here = std::env::current_dir().ok();
    let own = top.is_some_and(|top| Path::new(&top).canonicalize().ok() == here);
    let given = std::env::var(BUILD_COMMIT).ok().filter(|commit| !commit.is_empty());
    let commit = own.then(|| git(&["rev-parse", "HEAD"])).flatten().or(given);
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(PARTS);
    let dirty = own && git(&status).is_some_and(|out| !out.is_empty());
    println!("cargo:rustc-env=EXACTFED_COMMIT={}", commit.unwrap_or_else(|| "unknown".into()));
    println!("cargo:rustc-env=EXACTFED_DIRTY={dirty}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
