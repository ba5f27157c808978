//! The folder of a submission, `<out>/.slurm/<number>/`: `todo`, the list of cells;
//! `experiments`, the manifests at submission; `exactfed`, the program; the scripts, the logs; `jobs`, how the jobs
//! are watched and cancelled; `ended`, the exit code of the merge once it has ended;
//! and `tasks` with one results folder per task, which the merge removes once every cell of `todo` is
//! in the results.
//!
//! *Invariant*: a number belongs to the process that has created its folder. If this process ends before the jobs are
//! submitted, it removes the contents of this folder alone; folders above it only if nothing is in them.

use super::slurm::{Id, commands};
use crate::cli::outcome::{self, Failure};
use crate::cli::shard;
use crate::store::Store;
use exactfed_core::words::{quoted, shell_word};
use exactfed_runner::files::{Error, create_below, error, read_regular_text, write_synced};
use exactfed_runner::plan::Plan;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
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

/// The path that the folder of the next submission into the results `out` would have: the number after the last. It is
/// not created, so that another submission may take it; [`SubmissionFolder::reserve`] creates one.
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

/// The path of an experiment's manifest in the folder of a submission, whose folder `experiments` is like a results
/// folder, so that it has copies of data files too.
pub fn manifest_path(folder: &Path, plan: &Plan) -> PathBuf {
    folder.join("experiments").join(&plan.experiment).join("experiment.toml")
}

/// Refuses a list of cells, `experiment/id` a line, if one is in an earlier submission into the results `out`
/// that is not merged yet: it would be computed twice. The message says how to merge that submission.
pub fn refuse_submitted(out: &Path, list: &str) -> Result<(), Failure> {
    let cells: HashSet<&str> = list.lines().collect();
    for (_, folder) in existing(out) {
        // Without `tasks`, all cells are merged. A merge that ended with 4 has merged everything that the tasks have
        // left.
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

/// The most times that a submission creates the folder of all submissions again, which others have removed.
const MOST_REMOVED: usize = 100;

/// Creates the folder of the next submission into the results `out`, which exist, and the folder of all submissions
/// unless it exists, and returns the path of the first. `before` is called before each attempt to create the first:
/// a test does then what other submissions may do.
///
/// # Errors
/// If one of the folders cannot be created.
fn create_next(out: &Path, before: impl Fn()) -> Result<PathBuf, Error> {
    let all = out.join(ALL);
    let mut removed = 0;
    create_below(out, &all)?;
    loop {
        let path = next_folder(out);
        before();
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            // Another submission has taken the number since the folders were listed.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            // Another submission has failed, and removed the folder of all submissions while nothing was in it.
            Err(e) if e.kind() == ErrorKind::NotFound && removed < MOST_REMOVED => {
                removed += 1;
                create_below(out, &all)?;
            }
            Err(e) => return Err(error(&path, e)),
        }
    }
}

/// The folder of a submission that this process has created; it is removed when this is dropped, unless the jobs were
/// submitted.
pub struct SubmissionFolder<'a> {
    /// The path of the folder, `<out>/.slurm/<number>`.
    pub path: PathBuf,
    /// Whether the jobs were submitted.
    submitted: bool,
    /// The results folder, which is dropped after the folder of the submission is removed from it.
    results: CreatedResults<'a>,
}

impl<'a> SubmissionFolder<'a> {
    /// Creates the folder of a submission into the results of `store`, whose absolute path is `out`, with the first
    /// number after all others that nobody takes meanwhile. It is empty; the results folder is created if there is
    /// none.
    ///
    /// # Errors
    /// If a folder cannot be created, or the results cannot be written. What was created is removed then.
    pub fn reserve(store: &'a Store, out: &Path) -> Result<Self, Failure> {
        let results = CreatedResults::create(store, out)?;
        let path = create_next(out, || ())?;
        Ok(Self { path, submitted: false, results })
    }

    /// Writes everything that the tasks and the merge read: the manifests of these plans, the `list` of cells, the
    /// `scripts` by their names, and a copy of the program.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(
        &self,
        plans: &[Plan],
        list: &str,
        scripts: &[(&str, String)],
    ) -> Result<(), Failure> {
        create_below(&self.path, &self.path.join("tasks"))?;
        let experiments = Store::open(&self.path.join("experiments"))?;
        experiments.create()?;
        plans.iter().try_for_each(|plan| experiments.write_experiment(plan))?;
        write_synced(&self.path.join("todo"), list.as_bytes())?;
        for (name, script) in scripts {
            write_synced(&self.path.join(name), script.as_bytes())?;
        }
        Ok(copy_program(&self.path.join("exactfed"))?)
    }

    /// Keeps the folder, and writes into it how the jobs (`ids`: the array, the merge) are watched and
    /// cancelled.
    ///
    /// # Errors
    /// If the file cannot be written; the jobs are submitted all the same.
    pub fn keep(&mut self, ids: [&Id; 2]) -> Result<(), Failure> {
        self.submitted = true;
        let [watch, cancel] = commands(ids);
        let jobs = format!("watch:   {watch}\ncancel:  {cancel}\n");
        Ok(write_synced(&self.path.join("jobs"), jobs.as_bytes())?)
    }

    /// The results take over these plans, so that reports follow their manifests from now on, as after a run. Where a
    /// run is at work on one of the experiments with another manifest, this waits until it ends, and says so.
    ///
    /// # Errors
    /// If a file cannot be written; the jobs are submitted all the same.
    pub fn take_over(&self, plans: &[Plan]) -> Result<(), Failure> {
        let busy = |name: &str| eprintln!("{}", outcome::waiting(name));
        Ok(plans.iter().try_for_each(|plan| self.results.store.take_over(plan, &busy))?)
    }
}

impl Drop for SubmissionFolder<'_> {
    /// Removes the folder with all that is in it, unless the jobs were submitted.
    fn drop(&mut self) {
        if self.submitted {
            return;
        }
        let _ = fs::remove_dir_all(&self.path);
        // The folder of all submissions stays if another one is in it.
        if let Some(all) = self.path.parent() {
            let _ = fs::remove_dir(all);
        }
    }
}

/// The results folder of a submission. If it was new, and nothing is in it when this is dropped, it is removed again:
/// the submission has failed, and nobody else has stored anything.
struct CreatedResults<'a> {
    store: &'a Store,
    /// Whether the folder had no marker, so that it held no results.
    is_new: bool,
    /// The folders that did not exist, from the results folder to the outermost one.
    new_folders: Vec<PathBuf>,
}

impl<'a> CreatedResults<'a> {
    /// Creates the results folder of `store`, whose absolute path is `out`, unless it exists.
    ///
    /// # Errors
    /// If it cannot be created or written. What was created is removed then.
    fn create(store: &'a Store, out: &Path) -> Result<Self, Failure> {
        let new_folders = out.ancestors().take_while(|folder| !folder.exists());
        let results = Self {
            store,
            is_new: Store::schema(out).is_none(),
            new_folders: new_folders.map(Path::to_owned).collect(),
        };
        // From now on a failure removes what is created.
        store.create()?;
        Ok(results)
    }
}

impl Drop for CreatedResults<'_> {
    /// Removes the results folder if it was new and is unused: after a submission that succeeded it is not.
    fn drop(&mut self) {
        if self.is_new {
            self.store.remove_unused(&self.new_folders);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of results that a test stores below the results folder, as another process would.
    const STORED: &str = "smoke/garnet/cells.parquet";

    /// Writes a file into a folder that may not exist yet.
    fn write_file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "kept").unwrap();
    }

    #[test]
    fn a_failed_submission_leaves_another_one_and_no_two_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new/results");
        let store = Store::open(&out).unwrap();
        let first = SubmissionFolder::reserve(&store, &out).unwrap();
        let second = SubmissionFolder::reserve(&store, &out).unwrap();
        assert_eq!(first.path, out.join(".slurm/1"));
        assert_eq!(second.path, out.join(".slurm/2"));
        let [todo, other] = [&first, &second].map(|submission| submission.path.join("todo"));
        write_file(&todo);
        write_file(&other);
        drop(second);
        assert!(todo.is_file() && !other.exists());
        // The first one had created the folders, and the second one leaves what it has written there.
        let mut third = SubmissionFolder::reserve(&store, &out).unwrap();
        third.submitted = true;
        let kept = third.path.join("todo");
        write_file(&kept);
        drop(third);
        drop(first);
        assert!(kept.is_file() && !todo.exists());
        assert_eq!(Store::schema(&out), Some(crate::store::SCHEMA));
    }

    #[test]
    fn a_failed_submission_leaves_results_that_another_process_has_stored_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new/results");
        let store = Store::open(&out).unwrap();
        let submission = SubmissionFolder::reserve(&store, &out).unwrap();
        write_file(&out.join(STORED));
        drop(submission);
        assert!(out.join(STORED).is_file() && !out.join(".slurm").exists());
        assert!(Store::open_existing(&out).is_ok());
    }

    /// A failed submission removes the empty folder of all submissions, also just after another one has created it.
    #[test]
    fn a_submission_creates_the_folder_of_all_again_if_another_one_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let attempts = std::cell::Cell::new(0);
        let remove_twice = || {
            attempts.set(attempts.get() + 1);
            if attempts.get() <= 2 {
                fs::remove_dir(out.join(ALL)).unwrap();
            }
        };
        assert_eq!(create_next(out, remove_twice).unwrap(), out.join(".slurm/1"));
        assert_eq!(attempts.get(), 3);
        assert_eq!(create_next(out, || ()).unwrap(), out.join(".slurm/2"));
        // Where the folder goes again and again, the submission fails in the end.
        let empty = tempfile::tempdir().unwrap();
        let remove = || fs::remove_dir(empty.path().join(ALL)).unwrap();
        assert!(create_next(empty.path(), remove).is_err());
    }

    #[test]
    fn a_failed_submission_leaves_nothing_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        let out = new.join("results");
        let store = Store::open(&out).unwrap();
        drop(SubmissionFolder::reserve(&store, &out).unwrap());
        assert!(!new.exists());
        // A folder that was there stays, as empty as it was.
        fs::create_dir_all(&out).unwrap();
        drop(SubmissionFolder::reserve(&store, &out).unwrap());
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    }
}
