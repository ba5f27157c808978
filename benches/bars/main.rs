//! The summary of `make bench`: every promised limit with its measurement.
//!
//! `cargo bench --bench bars -- [--quick] [--since FILE] [--only PART]`
//!
//! Reads criterion's results under `target/criterion` (with `--since`, only those newer
//! than the file), measures whole processes and the peers in Python (`$PYTHON`, by default
//! python3), and writes `target/bench/summary.md`, `summary.csv`, `growth.svg` and
//! `dimension.svg`. A limit that does not hold is reported and does not change the exit code.

mod beside;
mod growth;
mod machine;
mod manifest;
mod measure;
#[path = "../support/problems.rs"]
mod problems;
mod process;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod values;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::SystemTime;
use values::Values;

/// The arguments of the command line.
#[derive(Parser)]
struct Args {
    /// Leave out what takes minutes
    #[arg(long)]
    quick: bool,
    /// Read only results of criterion that are newer than this file
    #[arg(long, value_name = "FILE", value_parser = written)]
    since: Option<SystemTime>,
    /// Measure one part only: set-up, peers, threads, memory, cells or grid
    #[arg(long, value_name = "PART", value_parser = PossibleValuesParser::new(measure::ALL.map(|part| part.0)))]
    only: Option<String>,
    /// Cargo adds it
    #[arg(long, hide = true)]
    bench: bool,
}

/// When a file was written.
fn written(file: &str) -> Result<SystemTime, std::io::Error> {
    fs::metadata(file).and_then(|m| m.modified())
}

fn main() -> ExitCode {
    match summary(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bars: {message}");
            ExitCode::from(2)
        }
    }
}

fn summary(args: &Args) -> Result<(), String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let facts = machine::facts(cores);
    let timings = support::timings(&support::target().join("criterion"), args.since)?;
    let mut values = Values::default();
    values.timings = timings.into_iter().map(|t| (t.id.clone(), t)).collect();
    for (name, measure) in measure::ALL {
        if args.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        eprintln!("bars: measuring {name}");
        let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
        let context =
            measure::Context { quick: args.quick, cores, scratch: scratch.path().to_owned() };
        if let Err(why) = measure(&context, &mut values) {
            eprintln!("bars: {name} not measured: {why}");
            values.missing(name, why);
        }
    }
    let folder = support::target().join("bench");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (growth, dimension) = (growth::svg(&values)?, growth::over_dimension(&values)?);
    let bars = support::bars(&table::rows(&values));
    let page = page(&facts, &bars, &values, [growth.is_some(), dimension.is_some()]);
    write(&folder.join("growth.svg"), &growth.unwrap_or_default())?;
    write(&folder.join("dimension.svg"), &dimension.unwrap_or_default())?;
    write(&folder.join("summary.md"), &page)?;
    write(&folder.join("summary.csv"), &values.csv())?;
    print!("{bars}");
    println!("\nWritten to {}.", folder.join("summary.md").display());
    Ok(())
}

/// Writes a file, or removes it if the text is empty, so that none of an earlier run remains.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = match text {
        "" if path.exists() => fs::remove_file(path),
        "" => Ok(()),
        text => fs::write(path, text),
    };
    written.map_err(|e| format!("{}: {e}", path.display()))
}

fn page(
    facts: &[(&str, String)],
    bars: &str,
    values: &Values,
    [growth, dimension]: [bool; 2],
) -> String {
    let mut out = String::from("# What was measured\n\n");
    let facts: Vec<Vec<String>> =
        facts.iter().map(|(name, text)| vec![(*name).to_owned(), text.clone()]).collect();
    out += &support::table(&["machine", ""], &facts);
    out += "\n## Bars\n\nTimes are of a client step unless another unit is named.\n\n";
    out += bars;
    out += "\n## Results of criterion\n\n";
    let row = |t: &support::Timing| {
        let elements = t.elements.map_or("-".into(), |n| n.to_string());
        vec![
            t.id.clone(),
            t.each().with_unit("ns"),
            elements,
            t.iteration.times(1e-3).with_unit("µs"),
        ]
    };
    let rows: Vec<Vec<String>> = values.timings.values().map(row).collect();
    out += &support::table(&["id", "of an element", "elements", "of an iteration"], &rows);
    out += "\n## Measured on whole processes\n\n";
    let rows: Vec<Vec<String>> =
        values.measured.iter().map(|(id, (v, unit))| vec![id.clone(), v.with_unit(unit)]).collect();
    out += &support::table(&["id", "value"], &rows);
    if growth {
        out += "\n## Growth\n\n![Time over clients, local steps and dimension](growth.svg)\n";
    }
    if dimension {
        out += "\n## A step over d\n\n![Time of a client step beside numba's](dimension.svg)\n";
    }
    out
}
