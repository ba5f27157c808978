//! `run`: runs the missing cells of experiments.

mod follower;
mod following;
mod options;
mod prepared;
mod session;
mod status;

pub use follower::{Follower, Workload};
pub use options::RunOptions;
pub use prepared::PreparedRun;
pub use status::{Phase, RunStatus};

use super::manifests::Manifests;
use super::outcome::{Code, Failure};
use crate::evidence::tuned;
use crate::store::Store;
use exactfed_runner::plan::Plan;
use exactfed_runner::runner::Silent;
use std::path::PathBuf;

/// What is written of the progress of a run.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum LogFormat {
    /// The status that the pages of --live show, a line of JSON at most every second, and messages
    Json,
}

#[derive(clap::Args)]
#[command(after_help = "\
With --live, open the page whose path is printed in a browser: it shows the progress, and reloads \
itself when cells were stored. In the end the pages are those of `exactfed report`, also after an \
interruption.

Example: exactfed run experiments/scafflsa/fig1-high.toml --threads 2")]
pub struct Args {
    #[command(flatten)]
    pub manifests: Manifests,
    #[command(flatten)]
    pub options: RunOptions,
    /// Add replicates until every claim is supported or refuted: the claims are judged at the
    /// manifest's replicates, at twice as many, and so on, at levels that add up to 5 %
    #[arg(long, conflicts_with_all = ["only", "shard"])]
    pub until_decided: bool,
    /// The most replicates of --until-decided [default: 16 times the manifest's]
    #[arg(long, value_name = "R", requires = "until_decided")]
    pub max_replicates: Option<u64>,
    /// Write the progress for programs, in place of text for people
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "until_decided")]
    pub log: Option<LogFormat>,
    /// Write the reports as cells are stored, in pages that reload themselves
    #[arg(long, conflicts_with_all = ["until_decided", "log"])]
    pub live: bool,
    /// Folder of the reports of --live
    #[arg(long, value_name = "DIR", default_value = "reports", requires = "live")]
    pub reports: PathBuf,
}

/// The plans of manifests that are to be run. Where a list names the cells (`--only`), they have the cells
/// of all stages that results decide so far, since the list may name these; without a list, a run finds
/// them by itself.
pub fn plans(manifests: &Manifests, options: &RunOptions) -> Result<Vec<Plan>, Failure> {
    let plans = manifests.plans()?;
    if options.only.is_none() {
        return Ok(plans);
    }
    // A list may name cells that follow from results.
    let store = Store::open(&options.out)?;
    let all = plans.into_iter().map(|plan| tuned::all_stages(plan, &store));
    Ok(all.collect::<Result<_, _>>()?)
}

/// The command `run` without `--live` and `--until-decided`, which other files do: runs the missing cells. The progress
/// is shown on standard error, or written there for programs with `--log json`, which implies `--quiet`.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = plans(&args.manifests, &args.options)?;
    let Some(LogFormat::Json) = args.log else {
        return PreparedRun::new(&plans, &args.options, None)?.execute(&Silent);
    };
    let options = RunOptions { quiet: true, ..args.options.clone() };
    let mut run = PreparedRun::new(&plans, &options, None)?;
    let log = RunStatus::new(run.workloads(), |_| ()).logged();
    let code = run.execute(&log)?;
    log.end(code);
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Results, Status};
    use exactfed_runner::manifest::Source;
    use exactfed_runner::runner::fault;

    /// After a panic in one cell its reason is stored and so are the other cells, and the cell is not run
    /// again unless that is asked for.
    #[test]
    fn a_failed_cell_is_remembered_until_it_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let text = include_str!("../../../experiments/smoke/diverging.toml")
            .replace("seed = ", "seed = 77");
        let source = Source { name: "t".into(), text, ..Source::default() };
        let plan = crate::evidence::plan("t".into(), source).unwrap_or_else(|e| panic!("{e}"));
        let id = plan.cells[1].id.to_string();
        let total = plan.cells.len();
        let plans = vec![plan];
        let run = |rerun_failed| {
            let out = folder.path().join("r");
            let threads = Some(2);
            let options =
                RunOptions { out, threads, rerun_failed, quiet: true, ..RunOptions::default() };
            PreparedRun::new(&plans, &options, None)
                .and_then(|mut run| run.execute(&Silent))
                .unwrap_or_else(|e| panic!("{}", e.message))
        };
        let status = || Store::open(&folder.path().join("r")).unwrap().status("t", &id);
        let stored = || Store::open(&folder.path().join("r")).unwrap().ids("t").unwrap().len();
        fault::set(Some(&id));
        assert_eq!(run(false), Code::SomeFailed);
        assert_eq!(stored(), total - 1);
        let Status::Failed(reason) = status() else { panic!("{:?}", status()) };
        assert!(reason.starts_with("replicate "), "{reason}");
        assert!(reason.contains("struck by a test (crates/runner/src/runner/mod.rs:"), "{reason}");
        fault::set(None);
        assert_eq!(run(false), Code::SomeFailed, "it failed before, and is left alone");
        assert_eq!(stored(), total - 1);
        assert_eq!(run(true), Code::Done);
        assert_eq!((stored(), status()), (total, Status::Done));
        assert_eq!(run(false), Code::Done);
    }
}
