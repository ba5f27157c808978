//! `report`: HTML and Markdown from results.

use super::{Code, Failure};
use crate::analysis::{Experiment, analyse};
use crate::files::Error;
use crate::plan::Plan;
use crate::report::{self, Entry, Writer};
use crate::store::{self, Store};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
LaTeX is written beside the pages: tables.tex (booktabs), figures/<id>.tex (pgfplots) to \\input, \
and all.tex, which compiles by itself.

Example: driftbench report results --out reports --format html,md,latex")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    out: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["html", "md"])]
    format: Vec<Format>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Html,
    Md,
    Latex,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let store = Store::open_existing(&args.results)?;
    let format = |format: &Format| match format {
        Format::Html => report::Format::Html,
        Format::Md => report::Format::Md,
        Format::Latex => report::Format::Latex,
    };
    let formats: Vec<report::Format> = args.format.iter().map(format).collect();
    write_as(plans(&store)?, &store, &args.out, &formats, args.quiet)
}

/// The experiments of a results folder, as they were last run.
pub fn plans(store: &Store) -> Result<Vec<Plan>, Failure> {
    store.experiments()?.into_iter().map(plan).collect()
}

/// An experiment as it was last run.
pub fn plan(experiment: store::Experiment) -> Result<Plan, Failure> {
    let source = experiment.source();
    Plan::new(experiment.name, source).map_err(Failure::input)
}

/// Analyses these plans and writes their pages, several side by side.
pub fn write(plans: Vec<Plan>, store: &Store, out: &Path, quiet: bool) -> Result<Code, Failure> {
    write_as(plans, store, out, &[report::Format::Html, report::Format::Md], quiet)
}

fn write_as(
    plans: Vec<Plan>,
    store: &Store,
    out: &Path,
    formats: &[report::Format],
    quiet: bool,
) -> Result<Code, Failure> {
    let writer = Writer::new(out, formats)?;
    let one = |plan: Plan| -> Result<(Entry, Vec<Told>), Error> {
        let experiment = analyse(&plan, store)?;
        Ok((writer.page(&experiment)?, Told::of(&experiment)))
    };
    // Their order is that of the plans, and so are the first of their errors.
    let each: Vec<_> = plans.into_par_iter().with_max_len(1).map(one).collect();
    let (mut entries, mut code) = (Vec::new(), Code::Done);
    for one in each {
        let (entry, told) = one?;
        entries.push(entry);
        for told in told {
            if told.refuted {
                code = Code::Refuted;
            }
            if told.refuted || !quiet {
                eprintln!("{}", told.message);
            }
        }
    }
    let count = entries.len();
    writer.index(entries)?;
    if !quiet {
        let index = match formats {
            all if all.contains(&report::Format::Html) => out.join("index.html"),
            all if all.contains(&report::Format::Md) => out.join("README.md"),
            _ => out.to_owned(),
        };
        eprintln!("{count} reports; begin at {}", index.display());
    }
    Ok(code)
}

/// A claim that came out otherwise than the manifest expects.
struct Told {
    refuted: bool,
    message: String,
}

impl Told {
    fn of(experiment: &Experiment<'_>) -> Vec<Self> {
        let name = &experiment.plan.experiment;
        let told = experiment.claims.iter().filter_map(|claim| {
            let (id, refuted) = (&claim.id, claim.fails());
            let message = if refuted {
                format!("{name}: the claim \"{id}\" is refuted: {}", claim.statement)
            } else if claim.surprises() {
                format!("{name}: the claim \"{id}\" was expected to be refuted and is supported")
            } else {
                return None;
            };
            Some(Self { refuted, message })
        });
        told.collect()
    }
}
