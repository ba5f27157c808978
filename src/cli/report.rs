//! `report`: HTML and Markdown from results.

use super::{Code, Failure};
use crate::analysis::{Experiment, analyse};
use crate::manifest::Source;
use crate::plan::Plan;
use crate::report;
use crate::store::{self, Store};
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
    store.experiments()?.into_iter().map(plan).collect()
}

/// An experiment as it was last run.
pub fn plan(experiment: store::Experiment) -> Result<Plan, Failure> {
    let source = Source {
        name: experiment.manifest,
        text: experiment.text,
        overrides: experiment.overrides,
        files: experiment.files,
    };
    Plan::new(experiment.name, source).map_err(Failure::input)
}

/// Analyses these plans and writes their pages.
pub fn write(plans: Vec<Plan>, store: &Store, out: &Path, quiet: bool) -> Result<Code, Failure> {
    let experiments: Vec<Experiment> =
        plans.into_iter().map(|plan| analyse(plan, store)).collect::<Result<_, _>>()?;
    std::fs::create_dir_all(out)
        .map_err(|e| Failure::input(format!("error: {}: {e}", out.display())))?;
    report::write(&experiments, out)?;
    let mut code = Code::Done;
    for experiment in &experiments {
        let name = &experiment.plan.experiment;
        for claim in &experiment.claims {
            if claim.fails() {
                code = Code::Refuted;
                eprintln!("{name}: the claim \"{}\" is refuted: {}", claim.id, claim.statement);
            }
            if claim.surprises() && !quiet {
                eprintln!(
                    "{name}: the claim \"{}\" was expected to be refuted and is supported",
                    claim.id
                );
            }
        }
    }
    if !quiet {
        let index = out.join("index.html");
        eprintln!("{} reports; begin at {}", experiments.len(), index.display());
    }
    Ok(code)
}
