//! `reproduce`: runs every manifest and writes the reports, each as soon as its experiment has ended.

use super::manifests::Manifests;
use super::outcome::{Code, Failure};
use super::pages::{Changes, ChangingResults, LivePages};
use super::run::{self, Follower, PreparedRun};
use crate::report::PublishedElsewhere;
use exactfed_runner::manifest::Published;
use exactfed_runner::panics::lock;
use exactfed_runner::runner::Observer;
use serde::Deserialize;
use std::fmt::Display;
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
    /// Name of an experiment that is run, and whose page is written, before all others (may be repeated)
    #[arg(long, value_name = "NAME")]
    first: Vec<String>,
    /// Folder of manifests of published experiments that need a data set or Python, and are not run: the index names
    /// their authors, if there is such a folder
    #[arg(long, value_name = "DIR", default_value = "examples/others")]
    elsewhere: PathBuf,
    #[command(flatten)]
    options: run::RunOptions,
}

/// The command `reproduce`: runs all manifests below a folder, and writes the pages of each experiment as soon as it
/// has ended. Pages depend on these manifests alone, whatever else the results contain. Returns the code of the run, or
/// that of the report if no cell failed; after an interruption the final pages are not written.
pub fn run(args: Args) -> Result<Code, Failure> {
    let files = manifests_below(&args.experiments)
        .map_err(|e| Failure::input(format!("error: {}: {e}", args.experiments.display())))?;
    if files.is_empty() {
        let folder = args.experiments.display();
        return Err(Failure::input(format!("error: {folder} contains no manifest (*.toml)")));
    }
    let manifests =
        Manifests { files, overrides: Vec::new(), replicates: None, python: Vec::new() };
    let plans = manifests.plans()?;
    if let Some(name) = args.first.iter().find(|name| !plans.iter().any(|p| p.experiment == **name))
    {
        let folder = args.experiments.display();
        return Err(Failure::input(format!(
            "error: --first {name}: {folder} contains no experiment of this name"
        )));
    }
    let mut run = PreparedRun::new(&plans, &args.options, None)?.beginning_with(&args.first);
    // Before cells are run: a folder that cannot be written to costs nothing.
    let options = &args.options;
    let pages = LivePages::new(Some(&plans), &options.out, &args.reports, options.quiet)?
        .naming(published_elsewhere(&args.elsewhere)?);
    let finished =
        FinishedExperiments { changes: Mutex::default(), first: &args.first, pages: &pages };
    let stop = run.interrupt().stop.clone();
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

/// Notes which experiments have ended, whose pages are then written: each changes once.
struct FinishedExperiments<'a> {
    /// The experiments that have ended, each with one change.
    changes: Mutex<Changes>,
    /// The names of the experiments whose pages are written before any other experiment is run.
    first: &'a [String],
    pages: &'a LivePages<'a>,
}

impl Observer for FinishedExperiments<'_> {}

impl Follower for FinishedExperiments<'_> {
    /// Notes that the page of an experiment should be written, and writes it at once if `--first` names it.
    fn ends(&self, experiment: &str) {
        lock(&self.changes).insert(experiment.to_owned(), 1);
        if self.first.iter().any(|name| name == experiment) {
            self.pages.write_now(&self.changes());
        }
    }
}

impl ChangingResults for FinishedExperiments<'_> {
    fn changes(&self) -> Changes {
        lock(&self.changes).clone()
    }
}

/// What a manifest says of the published experiment that it runs again. Its other keys are not read, since algorithms and
/// problems in Python are not known here.
#[derive(Deserialize)]
struct NamedPublication {
    published: Option<Published>,
}

/// The published experiments whose manifests are in a folder; `None` if it does not exist, or names none.
///
/// # Errors
/// If the folder or a manifest cannot be read.
fn published_elsewhere(folder: &Path) -> Result<Option<PublishedElsewhere>, Failure> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let failed = |path: &Path, error: &dyn Display| {
        Failure::input(format!("error: {}: {error}", path.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| failed(folder, &e))?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut authors: Vec<String> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|e| failed(&file, &e))?;
        let named: NamedPublication = toml::from_str(&text).map_err(|e| failed(&file, &e))?;
        let Some(published) = named.published else { continue };
        if !authors.contains(&published.authors) {
            authors.push(published.authors);
        }
    }
    let folder = folder.display().to_string();
    Ok((!authors.is_empty()).then_some(PublishedElsewhere { folder, authors }))
}

/// The paths of all files `*.toml` in a folder and the folders below it, sorted.
fn manifests_below(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
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
