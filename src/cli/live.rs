//! `run --live` and `watch`: runs the missing cells, and meanwhile writes reports whose pages reload
//! themselves.
//!
//! *Invariant*: in the end the results and the pages are those of `run` and `report`, also after an
//! interruption (`tests/suite/run_live.rs`).

use super::manifests::Manifests;
use super::outcome::{Code, Failure};
use super::pages::LivePages;
use super::run::{self, Phase, PreparedRun, RunOptions, RunStatus};
use exactfed_runner::panics::beside;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The arguments of `watch`, the short form of `run --live`.
#[derive(clap::Args)]
#[command(after_help = "\
Short for `exactfed run --live`, whose help says more.

Example: exactfed watch experiments/scafflsa/fig1-high.toml")]
pub struct Args {
    #[command(flatten)]
    pub manifests: Manifests,
    #[command(flatten)]
    pub options: RunOptions,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub reports: PathBuf,
}

/// Time between two writes of the status, which pages look at as often.
const BETWEEN_STATUSES: Duration = Duration::from_secs(1);

/// Runs the missing cells of manifests, and writes the reports of all experiments in the results into the folder
/// `reports`: again and again while cells are run, and in the end.
///
/// # Errors
/// If the manifests cannot be planned or prepared, or nothing can be written into the folder. Later failures
/// are printed, appear on the pages, and set the code.
pub fn run(manifests: &Manifests, options: &RunOptions, reports: &Path) -> Result<Code, Failure> {
    let plans = run::plans(manifests, options)?;
    let mut run = PreparedRun::new(&plans, options, None)?;
    let experiments = plans.iter().map(|plan| plan.experiment.clone()).collect();
    let pages = LivePages::new(None, &options.out, reports, options.quiet)?;
    let pages = Arc::new(pages.reloading(experiments)?);
    let pages_at_exit = pages.clone();
    let status = RunStatus::new(run.workloads(), move |status| {
        conclude(Code::Interrupted, &pages_at_exit, status);
    });
    // Before the first page, which looks for it.
    pages.write_status(status.read())?;
    Ok(beside(
        |ended| write_statuses(&pages, &status, ended),
        || execute(&mut run, &pages, &status),
    ))
}

/// Runs the cells, writes pages meanwhile, and then the final pages. Returns the exit code of the command.
fn execute(run: &mut PreparedRun<'_>, pages: &LivePages<'_>, status: &RunStatus) -> Code {
    let stop = run.interrupt().stop.clone();
    let ran = pages.during(status, &stop, || run.execute(status));
    let code = ran.unwrap_or_else(|failure| report_failure(failure, status));
    conclude(code, pages, status)
}

/// Writes the status, which open pages read, every second until `ended` is disconnected, which happens when the run has
/// ended and its final pages are written.
fn write_statuses(pages: &LivePages<'_>, status: &RunStatus, ended: Receiver<()>) {
    while ended.recv_timeout(BETWEEN_STATUSES) == Err(RecvTimeoutError::Timeout) {
        // If there is no room for it, the pages and the results report that.
        let _ = pages.write_status(status.read());
    }
}

/// Prints a failure of the run or of its pages, adds it to the status, and returns its exit code.
fn report_failure(failure: Failure, status: &RunStatus) -> Code {
    eprintln!("{}", failure.message.trim_end());
    status.add_error(failure.message);
    failure.code
}

/// Writes the final pages of a run that ended with this code, and returns the exit code of the command. It is also
/// called, in another thread than the run, when the process is about to end during a round.
fn conclude(code: Code, pages: &LivePages<'_>, status: &RunStatus) -> Code {
    status.enter(Phase::Reporting);
    let judged = pages.write_final().unwrap_or_else(|failure| report_failure(failure, status));
    // Failed cells are the more serious outcome: their code takes precedence.
    judged.and(code)
}
