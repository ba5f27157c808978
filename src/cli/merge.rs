//! `merge`: merges several results folders into one.

use super::outcome::{self, Code, Failure};
use super::shard;
use crate::store::merge::{Conflict, CopiedCells, MergeSources};
use crate::store::{Status, Store};
use exactfed_core::words::count;
use exactfed_runner::manifest::Source;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
Cells are checked by their checksums. Where several folders contain the same cell, its numbers \
must be equal; if they are not, none of them is copied and the exit code is 1. Damaged cells are \
reported and omitted; if no folder has a sound copy, the exit code is 4. Folders of different \
versions of exactfed are not merged, nor folders with different manifests of one experiment, \
unless --manifest-of states which manifest the reports follow. Existing cells of --out stay; it may \
be one of the folders.

Example: exactfed merge laptop/results cluster/results --out results")]
pub struct Args {
    /// Results folders to merge
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
    /// Folder of the merged results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Cells that must be there in the end, listed as for `run --only`: each is read again
    /// from --out after the merge, and the exit code is 4 if one is missing or damaged
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// The folder whose manifest is taken if folders hold different ones of an experiment;
    /// reports show the cells of that manifest
    #[arg(long, value_name = "RESULTS")]
    manifest_of: Option<PathBuf>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

/// The most entries of a list that are printed.
const NAMED: usize = 20;

/// The command `merge`: copies the cells of several results folders into one. Cells with contradictory numbers are not
/// copied and set the code [`Code::Refuted`]; damaged cells without a sound copy, and expected cells that are not there
/// in the end, set [`Code::SomeFailed`].
///
/// # Errors
/// If the folders cannot be mixed; then nothing is copied.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let expected = args.expect.as_deref().map(shard::lines).transpose()?.unwrap_or_default();
    let folders = open(&args.results, &args.out)?;
    let mut sources = MergeSources::new(&folders, None)?;
    if let Some(folder) = &args.manifest_of {
        let place = folders.iter().position(|store| real_path(&store.root) == real_path(folder));
        sources.preferred = Some(place.ok_or_else(|| {
            let folder = folder.display();
            Failure::input(format!("error: --manifest-of {folder}: is none of these folders"))
        })?);
    }
    check_mixable(&sources, &folders)?;
    let copied = sources.copy(&|name| eprintln!("{}", outcome::waiting(name)))?;
    // Copying has read the folder `out` again: conflicts and damaged files are asked for only now.
    let conflicts = sources.conflicts();
    if !args.quiet {
        let CopiedCells { new, had, healed } = copied;
        let mut line =
            format!("{}: {} copied, {had} there before", args.out.display(), count(new, "cell"));
        if healed > 0 {
            line += &format!(", {} quarantined and replaced", count(healed, "damaged cell"));
        }
        eprintln!("{line}");
    }
    for (e, sound) in sources.damaged() {
        let rest = if sound { "another folder's copy is sound" } else { "left out" };
        eprintln!("error: {e}; {rest}");
    }
    let missing = missing(&expected, &args.out)?;
    if let Some(file) = args.expect.as_deref().filter(|_| !missing.is_empty()) {
        let without = missing.len();
        let all = count(expected.len(), "cell");
        eprintln!("error: without results: {without} of the {all} of {}:", file.display());
        print_list(&missing);
    }
    if !conflicts.is_empty() {
        eprintln!(
            "error: {} with other numbers in another folder; none is copied:",
            count(conflicts.len(), "cell")
        );
        let lines: Vec<String> = conflicts.iter().map(|c| describe(c, &folders)).collect();
        print_list(&lines);
        return Ok(Code::Refuted);
    }
    let complete = missing.is_empty() && sources.damaged().all(|(_, sound)| sound);
    Ok(if complete { Code::Done } else { Code::SomeFailed })
}

/// The lines of the expected cells (`id` or `experiment/id`, with the numbers of the lines) that have no sound results
/// in the folder `out` after the merge: every file is read from the disk and checked again, since the caller may remove
/// the merged folders. A line with an id alone is about a cell of any experiment.
fn missing<'a>(expected: &'a [(usize, String)], out: &Path) -> Result<Vec<&'a str>, Failure> {
    let store = Store::open(out)?;
    let names: Vec<String> = if expected.is_empty() || !out.is_dir() {
        Vec::new()
    } else {
        store.listing()?.into_iter().map(|(name, _)| name).collect()
    };
    let done = |name: &str, id: &str| store.status(name, id) == Status::Done;
    let absent = |line: &&str| match line.rsplit_once('/') {
        Some((name, id)) => !done(name, id),
        None => !names.iter().any(|name| done(name, line)),
    };
    let lines: Vec<&str> = expected.iter().map(|(_, line)| line.as_str()).collect();
    Ok(lines.into_par_iter().filter(absent).collect())
}

/// Opens the folder `out`, which comes first since it is written, and then the folders of results, each once;
/// `out` may be one of them.
///
/// # Errors
/// If a folder has no results, or `out` is the only one and does not exist.
fn open(results: &[PathBuf], out: &Path) -> Result<Vec<Store>, Failure> {
    let mut seen = vec![real_path(out)];
    let mut all = vec![Store::open(out)?];
    for folder in results {
        let store = Store::open_existing(folder)?;
        if !seen.contains(&real_path(folder)) {
            seen.push(real_path(folder));
            all.push(store);
        }
    }
    if all[0].root.is_dir() || all.len() > 1 {
        return Ok(all);
    }
    Err(Failure::input("error: there is nothing to merge"))
}

/// The path of a folder without symbolic links, by which folders are compared; a path that does not exist
/// stays as it is.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Refuses to merge folders with cells of different versions of exactfed, with different manifests of an
/// experiment (unless one is preferred), or with different planned looks at verdicts.
fn check_mixable(sources: &MergeSources<'_>, folders: &[Store]) -> Result<(), Failure> {
    let name = |folder: usize| folders[folder].root.display();
    let mut wrong = Vec::new();
    let versions = sources.versions();
    if versions.len() > 1 {
        let mut message = "error: the cells are of different versions of exactfed, which may \
                           differ in what they compute; run them again with one version:"
            .to_owned();
        for (version, by) in &versions {
            for (folder, cells) in by {
                message +=
                    &format!("\n  {version}: {} of {}", count(*cells, "cell"), name(*folder));
            }
        }
        wrong.push(message);
    }
    for [(a, first), (b, second)] in sources.different_manifests() {
        wrong.push(format!(
            "error: {}: {} and {} were run with different manifests ({}): nothing was merged; with --manifest-of RESULTS all cells are, and reports follow the manifest of that folder",
            first.name,
            name(a),
            name(b),
            difference(&first.source, &second.source)
        ));
    }
    for (experiment, [(a, first), (b, second)]) in sources.different_looks() {
        wrong.push(format!(
            "error: {experiment}: {} planned looks at verdicts up to {} replicates and {} up to {}, which merged would be more looks than either planned: run one of them again with other noise (--set noise-seed=…)",
            name(a),
            first.most,
            name(b),
            second.most
        ));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::input(wrong.join("\n"))) }
}

/// In what two manifests of an experiment, which do not mean the same, differ, in words: the number of the first line
/// of the text that differs, the overrides of the command line, and the data files.
fn difference(a: &Source, b: &Source) -> String {
    let mut parts = Vec::new();
    if let Some(line) = a.text.lines().zip(b.text.lines()).position(|(a, b)| a != b) {
        parts.push(format!("first in line {}", line + 1));
    } else if a.text.lines().count() != b.text.lines().count() {
        parts.push("one is longer".to_owned());
    }
    if a.overrides != b.overrides {
        let sets = |source: &Source| match source.overrides.as_slice() {
            [] => "none".to_owned(),
            all => all.join(" "),
        };
        parts.push(format!("--set: {} against {}", sets(a), sets(b)));
    }
    if a.files != b.files {
        parts.push("data files".to_owned());
    }
    parts.join("; ")
}

/// A line about a cell that has other numbers in other folders: the digest of each version and the folders
/// that hold it.
fn describe(conflict: &Conflict, folders: &[Store]) -> String {
    let mut digests = Vec::new();
    for (digest, holders) in &conflict.digests {
        let holders = holders.iter().map(|folder| folders[*folder].root.display().to_string());
        digests.push(format!("{digest} in {}", holders.collect::<Vec<_>>().join(", ")));
    }
    format!("{}/{}: {}", conflict.cell.0, conflict.cell.1, digests.join("; "))
}

/// Prints the first [`NAMED`] lines, indented, and how many follow.
fn print_list<T: AsRef<str>>(lines: &[T]) {
    for line in lines.iter().take(NAMED) {
        eprintln!("  {}", line.as_ref());
    }
    if lines.len() > NAMED {
        eprintln!("  and {} more", lines.len() - NAMED);
    }
}
