//! `report`: HTML and Markdown from results.

use super::{Code, Failure};
use crate::analysis::{Experiment, analyse};
use crate::files::Error;
use crate::manifest::Source;
use crate::plan::Plan;
use crate::report::{Entry, Writer};
use crate::store::Store;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench report results --out reports")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    out: PathBuf,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let store = Store::open_existing(&args.results)?;
    write(plans(&store)?, &store, &args.out, args.quiet)
}

/// The experiments of a results folder, as they were last run.
pub fn plans(store: &Store) -> Result<Vec<Plan>, Failure> {
    let mut plans = Vec::new();
    for experiment in store.experiments()? {
        let source = Source {
            name: experiment.manifest,
            text: experiment.text,
            overrides: experiment.overrides,
            files: experiment.files,
        };
        plans.push(Plan::new(experiment.name, source).map_err(Failure::input)?);
    }
    Ok(plans)
}

/// Analyses these plans and writes their pages, several side by side.
pub fn write(plans: Vec<Plan>, store: &Store, out: &Path, quiet: bool) -> Result<Code, Failure> {
    let writer = Writer::new(out)?;
    let one = |plan: Plan| -> Result<(Entry, Vec<Told>), Error> {
        let experiment = analyse(plan, store)?;
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
        let index = out.join("index.html");
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
    fn of(experiment: &Experiment) -> Vec<Self> {
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
