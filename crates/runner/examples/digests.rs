//! The digests of manifests, without a results folder:
//! `cargo run --release --locked -p exactfed-runner --example digests -- experiments/smoke/*.toml`.
//!
//! Prints what `exactfed digest` prints after `exactfed run`, and on standard
//! error which path the kernels take. It needs neither polars nor a terminal, so that it builds
//! for any target: `scripts/portability.sh` runs it on other processors.

use exactfed_core::kernel::InstructionSet;
use exactfed_runner::manifest::Source;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::{Done, Silent, prepare, run};
use exactfed_runner::trace::digest;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Mutex;

const USAGE: &str = "usage: digests [--threads N] [--set KEY=VALUE]... MANIFEST...";

/// What is asked for.
struct Asked {
    threads: usize,
    overrides: Vec<String>,
    files: Vec<String>,
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { threads: 1, overrides: Vec::new(), files: Vec::new() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} is followed by nothing\n{USAGE}"));
        match word.as_str() {
            "--threads" => {
                let text = value()?;
                asked.threads = text.parse().map_err(|_| format!("--threads {text}: a count"))?;
            }
            "--set" => asked.overrides.push(value()?),
            option if option.starts_with('-') => return Err(format!("what is {option}?\n{USAGE}")),
            _ => asked.files.push(word),
        }
    }
    if asked.files.is_empty() { Err(USAGE.into()) } else { Ok(asked) }
}

/// `id digest` of every cell of a manifest.
fn lines(file: &str, asked: &Asked) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("error: {file}: {e}"))?;
    let overrides = asked.overrides.clone();
    let source = Source { name: file.to_owned(), text, overrides, ..Source::default() };
    let plan = Plan::new(file.to_owned(), source, &exactfed_runner::plan::UNREAD)
        .map_err(|e| e.to_string())?;
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).map_err(|bad| {
        let faults = bad.iter().map(|b| format!("error: {file}: `{}`: {}", b.key, b.message));
        faults.collect::<Vec<_>>().join("\n")
    })?;
    let lines = Mutex::new(Vec::new());
    let keep = |done: Done<'_>| {
        let line = format!("{} {}", done.cell.id, digest(&done.traces));
        lines.lock().map_err(|_| "error: a thread panicked".to_owned())?.push(line);
        Ok::<(), String>(())
    };
    let failed = run(&prepared, asked.threads, &Silent, keep)?;
    if let Some(first) = failed.first() {
        return Err(format!("error: {file}: cell {} failed: {}", first.cell.id, first.reason));
    }
    lines.into_inner().map_err(|_| "error: a thread panicked".to_owned())
}

fn all() -> Result<BTreeSet<String>, String> {
    let asked = asked(std::env::args().skip(1))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(asked.threads).build();
    let pool = pool.map_err(|e| format!("error: {} threads: {e}", asked.threads))?;
    eprintln!("{} {:?}", std::env::consts::ARCH, InstructionSet::best());
    let mut found = BTreeSet::new();
    for file in &asked.files {
        found.extend(pool.install(|| lines(file, &asked))?);
    }
    Ok(found)
}

fn main() -> ExitCode {
    match all() {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::from(2)
        }
    }
}
