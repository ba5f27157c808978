//! The folder of a submission, `<out>/.slurm/<number>/`: `todo`, the cells; `experiments`,
//! the manifests as they were; `driftbench`, the program; the scripts, logs, and a results
//! folder a task in `tasks`, which is gone when every cell of `todo` is found in the results.
//!
//! *Invariant*: it is removed again if it is dropped before its jobs are submitted.

use super::Failure;
use super::script::Job;
use super::slurm::{Id, commands};
use crate::cli::shard;
use crate::store::Store;
use driftbench_core::words::quoted;
use driftbench_runner::files::{Error, error, write_synced};
use driftbench_runner::plan::Plan;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const ALL: &str = ".slurm";

/// The folder that the next submission has.
pub fn next(out: &Path) -> PathBuf {
    let last = existing(out).into_iter().map(|(number, _)| number).max().unwrap_or(0);
    out.join(ALL).join((last + 1).to_string())
}

fn existing(out: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(out.join(ALL)).into_iter().flatten().flatten();
    let numbered =
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let mut all: Vec<(u64, PathBuf)> = numbered.collect();
    all.sort();
    all
}

/// Where an experiment's manifest is kept.
pub fn experiment(folder: &Path, plan: &Plan) -> PathBuf {
    folder.join("experiments").join(&plan.experiment).join("experiment.toml")
}

/// Refuses cells that an earlier submission has, as long as it is not merged.
pub fn not_submitted_yet(out: &Path, list: &str) -> Result<(), Failure> {
    let cells: HashSet<&str> = list.lines().collect();
    for (_, folder) in existing(out) {
        // A merge that ended with 4 has merged all that the tasks have left.
        let ended = fs::read_to_string(folder.join("ended")).unwrap_or_default();
        if !folder.join("tasks").is_dir() || ended.trim() == "4" {
            continue;
        }
        let theirs = shard::lines(&folder.join("todo")).unwrap_or_default();
        let both = theirs.iter().filter(|(_, line)| cells.contains(line.as_str())).count();
        if both > 0 {
            let watch = fs::read_to_string(folder.join("jobs")).unwrap_or_default();
            let merge = quoted(&folder.join("merge.sh").to_string_lossy());
            return Err(Failure::input(format!(
                "error: {both} of these cells are submitted already and not merged, in {}\n  wait for its jobs; or, when they are gone, merge what is finished: sh {merge}\n{}",
                folder.display(),
                watch.lines().map(|line| format!("  {line}\n")).collect::<String>()
            )));
        }
    }
    Ok(())
}

/// A folder whose jobs are not submitted yet.
pub struct Folder<'a> {
    job: &'a Job,
    /// The outermost folder that was made for it.
    made: PathBuf,
    submitted: bool,
}

impl<'a> Folder<'a> {
    /// Writes all that the jobs read.
    pub fn write(
        store: &Store,
        job: &'a Job,
        plans: &[Plan],
        list: &str,
        scripts: &[(&str, String)],
    ) -> Result<Self, Failure> {
        let new = job.folder.ancestors().take_while(|folder| !folder.exists());
        let made = new.last().unwrap_or(&job.folder).to_owned();
        let folder = Self { job, made, submitted: false };
        store.create()?;
        let own = &job.folder;
        let tasks = own.join("tasks");
        fs::create_dir_all(&tasks).map_err(|e| error(&tasks, e))?;
        let experiments = Store::open(&own.join("experiments"))?;
        experiments.create()?;
        plans.iter().try_for_each(|plan| experiments.write_experiment(plan))?;
        write_synced(&own.join("todo"), list.as_bytes())?;
        for (name, script) in scripts {
            write_synced(&own.join(name), script.as_bytes())?;
        }
        program(&own.join("driftbench"))?;
        Ok(folder)
    }

    /// Notes the jobs. Results tell from now on of these manifests, as when they are run.
    pub fn submitted(
        mut self,
        store: &Store,
        plans: &[Plan],
        ids: [&Id; 2],
    ) -> Result<(), Failure> {
        self.submitted = true;
        let [watch, cancel] = commands(ids);
        let jobs = format!("watch:   {watch}\ncancel:  {cancel}\n");
        write_synced(&self.job.folder.join("jobs"), jobs.as_bytes())?;
        Ok(plans.iter().try_for_each(|plan| store.write_experiment(plan))?)
    }
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        if !self.submitted {
            let _ = fs::remove_dir_all(&self.made);
        }
    }
}

/// Copies this program, so that building it anew changes no task.
fn program(to: &Path) -> Result<(), Error> {
    let own = std::env::current_exe().map_err(|e| error(to, e))?;
    fs::copy(&own, to).map(drop).map_err(|e| error(to, e))
}
