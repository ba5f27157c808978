//! `reproduce`: runs every manifest and writes the reports.

use super::report::{self, FORMATS};
use super::run::{self, PreparedRun};
use super::{Code, Failure, Manifests};
use crate::report::Writer;
use crate::store::Store;
use exactfed_runner::runner::Silent;
use std::path::{Path, PathBuf};

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
    how: run::How,
}

pub fn run(args: Args) -> Result<Code, Failure> {
    let mut files = Vec::new();
    collect(&args.experiments, &mut files)
        .map_err(|e| Failure::input(format!("error: {}: {e}", args.experiments.display())))?;
    files.sort();
    if files.is_empty() {
        let folder = args.experiments.display();
        return Err(Failure::input(format!("error: {folder} contains no manifest (*.toml)")));
    }
    let (overrides, python, replicates) = Default::default();
    let plans = Manifests { files, overrides, replicates, python }.plans()?;
    let (code, writer) = {
        let mut run = PreparedRun::prepare(&plans, &args.how)?;
        // Before cells are run: a folder that cannot be written to costs nothing.
        let writer = Writer::new(&args.reports, &FORMATS)?;
        (run.execute(&Silent)?, writer)
    };
    let store = Store::open_existing(&args.how.out)?;
    let judged = report::publish(plans, &store, writer, args.how.quiet)?;
    // Failed cells are the more serious outcome: their code takes precedence.
    Ok(if code == Code::Done { judged } else { code })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
