//! The folder of a submission, `<out>/.slurm/<number>/`: `todo`, the list of cells;
//! `experiments`, the manifests at submission; `exactfed`, the program; the scripts, the logs,
//! and `tasks` with one results folder per task, which is removed once every cell of `todo` is
//! in the results.
//!
//! *Invariant*: a folder that is dropped before its jobs are submitted is removed.

use super::script::Job;
use super::slurm::{Id, commands};
use crate::cli::outcome::Failure;
use crate::cli::shard;
use crate::store::Store;
use exactfed_core::words::{quoted, shell_word};
use exactfed_runner::files::{Error, create_below, error, read_regular_text, write_synced};
use exactfed_runner::plan::Plan;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder of all submissions below the results.
const ALL: &str = ".slurm";

/// The command that runs this program again, where that is not the executable of the process.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the command, with its first arguments, by which another process can run this program: for
/// a process that is an interpreter. Only the first call has an effect.
pub fn set_program(command: Vec<OsString>) {
    let _ = PROGRAM.set(command);
}

/// The path of the folder of the next submission into the results `out`: the number after the last. It is
/// not created.
pub fn next_folder(out: &Path) -> PathBuf {
    let last = existing(out).into_iter().map(|(number, _)| number).max().unwrap_or(0);
    out.join(ALL).join((last + 1).to_string())
}

/// The numbers and folders of all submissions into the results `out`, in increasing order.
fn existing(out: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(out.join(ALL)).into_iter().flatten().flatten();
    let numbered =
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let mut all: Vec<(u64, PathBuf)> = numbered.collect();
    all.sort();
    all
}

/// The path of an experiment's manifest in the folder of a submission.
pub fn manifest_path(folder: &Path, plan: &Plan) -> PathBuf {
    folder.join("experiments").join(&plan.experiment).join("experiment.toml")
}

/// Refuses a list of cells, `experiment/id` a line, if one is in an earlier submission into the results `out`
/// that is not merged yet: it would be computed twice. The message says how to merge that submission.
pub fn refuse_submitted(out: &Path, list: &str) -> Result<(), Failure> {
    let cells: HashSet<&str> = list.lines().collect();
    for (_, folder) in existing(out) {
        // A merge that ended with 4 has merged everything that the tasks have left.
        let ended = read_regular_text(&folder.join("ended")).unwrap_or_default();
        if !folder.join("tasks").is_dir() || ended.trim() == "4" {
            continue;
        }
        let theirs = read_regular_text(&folder.join("todo")).unwrap_or_default();
        let theirs = shard::parse_lines(&theirs);
        let both = theirs.iter().filter(|(_, line)| cells.contains(line.as_str())).count();
        if both > 0 {
            let watch = read_regular_text(&folder.join("jobs")).unwrap_or_default();
            let merge = quoted(&folder.join("merge.sh").to_string_lossy());
            return Err(Failure::input(format!(
                "error: {both} of these cells are submitted already and not merged, in {}\n  wait for its jobs; if they are gone, merge the finished cells: sh {merge}\n{}",
                folder.display(),
                watch.lines().map(|line| format!("  {line}\n")).collect::<String>()
            )));
        }
    }
    Ok(())
}

/// The folder of a submission whose jobs are not submitted yet; it is removed when this is dropped, unless
/// they were.
pub struct SubmissionFolder<'a> {
    job: &'a Job,
    /// The outermost folder that was created for it, which may be the results folder.
    made: PathBuf,
    /// Whether the jobs were submitted.
    submitted: bool,
}

impl<'a> SubmissionFolder<'a> {
    /// Creates the folder of a job and writes everything that the tasks and the merge read: the manifests of
    /// these plans, the `list` of cells, the `scripts` by their names, and a copy of the program.
    ///
    /// # Errors
    /// If a file cannot be written; no files are left then.
    pub fn write(
        store: &Store,
        job: &'a Job,
        plans: &[Plan],
        list: &str,
        scripts: &[(&str, String)],
    ) -> Result<Self, Failure> {
        let new = job.folder.ancestors().take_while(|folder| !folder.exists());
        let made = new.last().unwrap_or(&job.folder).to_owned();
        // From now on a failure removes what is written.
        let folder = Self { job, made, submitted: false };
        store.create()?;
        let own = &job.folder;
        let tasks = own.join("tasks");
        create_below(&job.out, &tasks)?;
        let experiments = Store::open(&own.join("experiments"))?;
        experiments.create()?;
        plans.iter().try_for_each(|plan| experiments.write_experiment(plan))?;
        write_synced(&own.join("todo"), list.as_bytes())?;
        for (name, script) in scripts {
            write_synced(&own.join(name), script.as_bytes())?;
        }
        copy_program(&own.join("exactfed"))?;
        Ok(folder)
    }

    /// Keeps the folder, and writes into it how the jobs (`ids`: the array, the merge) are watched and
    /// cancelled. The results take over these plans, so that reports follow their manifests from now on, as
    /// after a run.
    ///
    /// # Errors
    /// If a file cannot be written; the jobs are submitted all the same.
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

impl Drop for SubmissionFolder<'_> {
    fn drop(&mut self) {
        if !self.submitted {
            let _ = fs::remove_dir_all(&self.made);
        }
    }
}

/// Copies this program to a path, so that a later build does not affect the tasks. Where the process is an
/// interpreter of Python (see [`set_program`]), it writes a script that calls the package instead, which
/// must not be upgraded before the tasks have ended.
fn copy_program(to: &Path) -> Result<(), Error> {
    if let Some(command) = PROGRAM.get() {
        let words: Vec<String> = command
            .iter()
            .map(|word| word.to_str().map(shell_word))
            .collect::<Option<_>>()
            .ok_or_else(|| error(to, "the path of the interpreter is not valid UTF-8"))?;
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
        write_synced(to, script.as_bytes())?;
        #[cfg(unix)]
        fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(|e| error(to, e))?;
        return Ok(());
    }
    let own = std::env::current_exe().map_err(|e| error(to, e))?;
    fs::copy(&own, to).map(drop).map_err(|e| error(to, e))
}
