//! Compares the criterion benches of another revision with those of the working tree.
//!
//! `cargo bench --bench compare -- BASE [--rounds 10] [--threshold 1.05]
//! [--filter REGEX] [--bench NAME]...`, or `make bench-compare BASE=...`.
//!
//! Both are built, then run alternately, so that changes of the machine's speed affect
//! both. A time is `slower` only if the whole 95 % interval of the ratio head
//! over base lies above the threshold; then the exit code is 1. Bad input is
//! exit code 2. Writes `target/bench/compare.md`.

#[path = "compare/build.rs"]
mod build;
#[path = "support/mod.rs"]
mod support;

use build::Executables;
use clap::builder::PossibleValuesParser;
use clap::{Parser, value_parser};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use support::{Value, Verdict, digits, geometric_mean, table, verdict};

/// The benches that can be compared; the first two are the default.
const BENCHES: [&str; 5] = ["local_step", "round", "pipeline", "problems", "moments"];

/// The arguments of the command line.
#[derive(Parser)]
struct Args {
    /// A git revision to compare with
    base: String,
    /// Runs of each bench
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(2..))]
    rounds: u64,
    /// The ratio from which a time is slower
    #[arg(long, default_value_t = 1.05, value_parser = threshold)]
    threshold: f64,
    /// A regular expression of ids
    #[arg(long)]
    filter: Option<String>,
    /// A bench to compare; cargo adds an option without a name
    #[arg(long = "bench", num_args = 0..=1, value_parser = PossibleValuesParser::new(BENCHES))]
    benches: Vec<String>,
}

fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number >= 1.0);
    number.ok_or_else(|| "it is a number of 1 or more".to_owned())
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.benches.is_empty() {
        args.benches = BENCHES[..2].iter().map(|name| (*name).to_owned()).collect();
    }
    match compare(&args) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(1),
        Err(message) => {
            eprintln!("compare: {message}");
            ExitCode::from(2)
        }
    }
}

/// The times of an id, one per round.
#[derive(Default)]
struct Times {
    base: Vec<f64>,
    head: Vec<f64>,
}

/// Compares the benches; returns whether any is slower.
fn compare(args: &Args) -> Result<bool, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let commit = build::commit(root, &args.base)?;
    let base_root = build::worktree(root, &commit)?;
    let in_both = |name: &&String| build::has(root, name) && build::has(&base_root, name);
    let names: Vec<&str> = args.benches.iter().filter(in_both).map(String::as_str).collect();
    let missing: Vec<&str> =
        args.benches.iter().map(String::as_str).filter(|n| !names.contains(n)).collect();
    if names.is_empty() {
        return Err(format!("{} and the working tree share no bench {missing:?}", args.base));
    }
    if !missing.is_empty() {
        eprintln!("compare: not in both: {}", missing.join(", "));
    }
    let target = root.join("target/bench-compare/target");
    if !target.exists() {
        eprintln!("compare: the first build of a base takes some minutes, later ones do not");
    }
    let base = build::built(&base_root, &names, Some(&target))?;
    let head = build::built(root, &names, None)?;
    let mut times = BTreeMap::new();
    for round in 0..args.rounds {
        eprintln!("compare: round {} of {}", round + 1, args.rounds);
        for name in &names {
            run_both(args, name, round % 2 == 1, (&base_root, &base), (root, &head), &mut times)?;
        }
    }
    let (page, slower) = page(args, &commit, &times);
    let file = support::target().join("bench/compare.md");
    let parent = file.parent().unwrap_or(root);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&file, &page))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    print!("{page}");
    Ok(slower)
}

/// Runs one bench of both revisions; the first one alternates.
fn run_both(
    args: &Args,
    name: &str,
    head_first: bool,
    base: (&Path, &Executables),
    head: (&Path, &Executables),
    times: &mut BTreeMap<String, Times>,
) -> Result<(), String> {
    for is_head in [head_first, !head_first] {
        let (root, executables) = if is_head { head } else { base };
        let executable = executables.get(name).ok_or_else(|| format!("{name} was not built"))?;
        for (id, time) in measured(args, root, executable)? {
            let times = times.entry(id).or_default();
            if is_head { times.head.push(time) } else { times.base.push(time) }
        }
    }
    Ok(())
}

/// The nanoseconds of every id of an executable.
fn measured(args: &Args, root: &Path, executable: &Path) -> Result<Vec<(String, f64)>, String> {
    let home = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut command = Command::new(executable);
    command
        .args(["--bench", "--warm-up-time", "0.2", "--measurement-time", "0.5"])
        .args(["--sample-size", "10", "--noplot"])
        .args(&args.filter)
        .current_dir(root)
        .env("CARGO_MANIFEST_DIR", root)
        .env("CRITERION_HOME", home.path())
        .stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("{}: {e}", executable.display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
        return Err(format!("{} ended with {}: {last}", executable.display(), output.status));
    }
    let timings = support::timings(home.path(), None)?;
    Ok(timings.into_iter().map(|t| (t.id.clone(), t.each().value)).collect())
}

/// The page, and whether any bench is slower.
fn page(args: &Args, commit: &str, times: &BTreeMap<String, Times>) -> (String, bool) {
    let (mut rows, mut verdicts) = (Vec::new(), BTreeSet::new());
    let mut alone = [Vec::new(), Vec::new()];
    for (id, times) in times {
        if times.base.is_empty() || times.head.is_empty() {
            alone[usize::from(times.base.is_empty())].push(id.as_str());
            continue;
        }
        let ratios: Vec<f64> = times.head.iter().zip(&times.base).map(|(h, b)| h / b).collect();
        let ratio = geometric_mean(&ratios);
        let verdict = verdict(ratio, args.threshold);
        verdicts.insert(verdict.name());
        let mean = |times: &[f64]| digits(geometric_mean(times).value);
        let (base, head) = (mean(&times.base), mean(&times.head));
        rows.push(vec![id.clone(), base, head, ratio_text(ratio), verdict.name().into()]);
    }
    let mut out = format!(
        "# The working tree beside {} ({})\n\n{} rounds, threshold {}. Times in ns of an element.\n\n",
        args.base,
        &commit[..commit.len().min(12)],
        args.rounds,
        args.threshold
    );
    out += &table(&["id", "base", "head", "head over base (95 % interval)", "verdict"], &rows);
    for (ids, name) in alone.iter().zip(["base", "head"]).filter(|(ids, _)| !ids.is_empty()) {
        out += &format!("\nOnly in {name}: {}.\n", ids.join(", "));
    }
    if verdicts.contains(Verdict::Undecided.name()) {
        out += "\nUndecided: the interval is too wide; more --rounds would help.\n";
    }
    (out, verdicts.contains(Verdict::Slower.name()))
}

fn ratio_text(ratio: Value) -> String {
    match ratio.interval {
        Some((low, high)) => format!("{:.3} ({low:.3} to {high:.3})", ratio.value),
        None => format!("{:.3}", ratio.value),
    }
}
