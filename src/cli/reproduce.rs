//! `reproduce`: runs every manifest and writes the reports, each as soon as its experiment has ended.

use super::manifests::Manifests;
use super::outcome::{Code, Failure};
use super::pages::{Changes, ChangingResults, LivePages};
use super::run::{self, Follower, PreparedRun};
use exactfed_runner::panics::lock;
use exactfed_runner::runner::Observer;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed reproduce (called by `make reproduce`)")]
pub struct Args {
    /// Folder of the manifests
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    #[command(flatten)]
    options: run::RunOptions,
}

pub fn run(args: Args) -> Result<Code, Failure> {
    let files = manifests_below(&args.experiments)
        .map_err(|e| Failure::input(format!("error: {}: {e}", args.experiments.display())))?;
    if files.is_empty() {
        let folder = args.experiments.display();
        return Err(Failure::input(format!("error: {folder} contains no manifest (*.toml)")));
    }
    let (overrides, python, replicates) = Default::default();
    let plans = Manifests { files, overrides, replicates, python }.plans()?;
    let mut run = PreparedRun::new(&plans, &args.options, None)?;
    // Before cells are run: a folder that cannot be written to costs nothing.
    let options = &args.options;
    let pages = LivePages::new(Some(&plans), &options.out, &args.reports, options.quiet)?;
    let (finished, stop) = (FinishedExperiments::default(), run.interrupt().stop.clone());
    let code = pages.during(&finished, &stop, || run.execute(&finished))?;
    if code == Code::Interrupted {
        // The pages of experiments that have ended are complete.
        return Ok(code);
    }
    // Signals have their default effect from now on.
    drop(run);
    // Failed cells are the more serious outcome: their code takes precedence.
    Ok(pages.write_final()?.and(code))
}

/// The experiments whose cells were run, each of which changes its page once.
#[derive(Default)]
struct FinishedExperiments(Mutex<Changes>);

impl Observer for FinishedExperiments {}

impl Follower for FinishedExperiments {
    fn ends(&self, experiment: &str) {
        lock(&self.0).insert(experiment.to_owned(), 1);
    }
}

impl ChangingResults for FinishedExperiments {
    fn changes(&self) -> Changes {
        lock(&self.0).clone()
    }
}

/// The manifests below a folder, sorted.
pub fn manifests_below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut open, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
