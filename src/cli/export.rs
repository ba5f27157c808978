//! `export`: all rows of all cells in one file.

use super::code::load_for_problems;
use super::outcome::{Code, Failure};
use super::report;
use crate::evidence::tuned;
use crate::store::Store;
use crate::store::export::{ExportFormat, Exported, export};
use exactfed_core::words::{count, nearest};
use exactfed_runner::plan::Plan;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
The file has one row per replicate and recorded round (docs/FORMAT.md), sorted by experiment, \
cell in the order of the grid, replicate and round; a metric that a cell did not record is null. Cells of earlier settings \
are included, with last_run = false; the label is that of the last run. Every setting in which the cells of an experiment differ has a \
column, so that a group-by over these columns mixes no cells. CSV omits the column `settings`. An \
existing file is replaced; a pipe or a device is written into. Damaged cells are reported and omitted; the exit code is then 4.

Example: exactfed export results --out results.parquet")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    /// File to write, ending in .parquet or .csv
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Export only this experiment (may be repeated)
    #[arg(long = "experiment", value_name = "NAME")]
    experiments: Vec<String>,
    /// File of Python code that defines problems of the results (may be repeated)
    #[arg(long, value_name = "FILE")]
    run_code: Vec<PathBuf>,
    /// Print errors only
    #[arg(long, short)]
    quiet: bool,
}

/// The command `export`: writes the rows of all cells of the chosen experiments to one file.
///
/// # Errors
/// If no cell has results, or the file cannot be written. Damaged cells are printed and set the code.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let format = format(&args.out)?;
    let store = Store::open_existing(&args.results)?;
    load_for_problems(&store, &args.run_code)?.iter().for_each(|line| eprintln!("{line}"));
    let plans = plans(&store, &args.experiments)?;
    let Exported { cells, rows, damaged } = export(&store, &plans, &args.out, format)?;
    for error in &damaged {
        eprintln!("error: {error}");
    }
    if cells == 0 {
        let results = args.results.display();
        return Err(Failure::input(format!("error: {results}: no cell has results yet")));
    }
    if !args.quiet {
        let [rows, cells] = [count(rows, "row"), count(cells, "cell")];
        let experiments = count(plans.len(), "experiment");
        eprintln!("{}: {rows} of {cells} of {experiments}", args.out.display());
    }
    if damaged.is_empty() {
        return Ok(Code::Done);
    }
    let damaged = count(damaged.len(), "damaged cell");
    eprintln!("{damaged} left out; `exactfed run` computes damaged cells again");
    Ok(Code::SomeFailed)
}

/// The format that the ending of a file's name asks for; an error if it is neither `.parquet` nor `.csv`.
fn format(file: &Path) -> Result<ExportFormat, Failure> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("parquet") => Ok(ExportFormat::Parquet),
        Some("csv") => Ok(ExportFormat::Csv),
        _ => Err(Failure::input(format!(
            "error: --out {}: the name must end in .parquet or .csv",
            file.display()
        ))),
    }
}

/// The plans of the stored experiments with these names, or of all if there are no names, in the order of all names.
/// They have the cells of all stages of tuning that results decide so far.
///
/// # Errors
/// If there are no results of a name, or a manifest in the results cannot be read.
fn plans(store: &Store, names: &[String]) -> Result<Vec<Plan>, Failure> {
    let mut all = store.experiments()?;
    let known: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
    if let Some(name) = names.iter().find(|n| !known.contains(&n.as_str())) {
        let hint = nearest(name, &known).map_or(String::new(), |hint| format!("\n  {hint}"));
        return Err(Failure::input(format!(
            "error: --experiment {name}: there are no results of this name (allowed: {}){hint}",
            known.join(", ")
        )));
    }
    all.retain(|e| names.is_empty() || names.contains(&e.name));
    let plan = |experiment| Ok(tuned::all_stages(report::plan(experiment)?, store)?);
    all.into_iter().map(plan).collect()
}
