//! The scripts of a submission: assignments of variables followed by a fixed text.
//!
//! *Invariant*: the shell reads every path as one word, whatever characters it contains; no
//! text is substituted within a script.

use crate::cli::outcome::Failure;
use exactfed_core::words::{quoted, shell_word};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The fixed part of the script of a task.
const TASK: &str = include_str!("../../../templates/slurm/task.sh");
/// The fixed part of the script of the merge.
const MERGE: &str = include_str!("../../../templates/slurm/merge.sh");

/// How often in a row a task may end early without having finished a cell.
const TRIES: u32 = 3;

/// The paths and numbers of a submission that its scripts and commands need.
pub struct Job {
    /// The directory of the call: relative paths in manifests begin there.
    pub here: PathBuf,
    /// The folder of the submission.
    pub folder: PathBuf,
    /// The results folder.
    pub out: PathBuf,
    /// The folder of the reports.
    pub reports: PathBuf,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of threads of each task.
    pub threads: u64,
    /// The manifests in the submission's folder.
    pub experiments: Vec<PathBuf>,
    /// The Python code of these manifests, which no manifest in results loads by itself.
    pub code: BTreeSet<PathBuf>,
}

impl Job {
    /// The scripts of the tasks and of the merge, by their names in the folder of the submission.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub fn scripts(&self) -> Result<[(&'static str, String); 2], Failure> {
        Ok([("task.sh", self.task()?), ("merge.sh", self.merge()?)])
    }

    /// The script that each task of the array runs; the task finds its number in a variable of Slurm. Its positional
    /// arguments (`set --`) are the code and the manifests, which it passes to `exactfed run`.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    fn task(&self) -> Result<String, Failure> {
        let mut script = self.head("A task of `exactfed submit`.")?;
        let _ = writeln!(script, "tasks={}\nthreads={}\ntries={TRIES}", self.tasks, self.threads);
        let code = self.code.iter().map(|code| Ok(format!("--python={}", path(code)?)));
        let files = self.experiments.iter().map(|file| path(file));
        let words: Vec<String> = code.chain(files).collect::<Result<_, Failure>>()?;
        let _ = writeln!(script, "set -- {}", words.join(" "));
        Ok(script + TASK)
    }

    /// The script of the job that runs after all tasks and merges their folders.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    fn merge(&self) -> Result<String, Failure> {
        let mut script = self.head("The merge of `exactfed submit`.")?;
        let out = path(&self.out)?;
        let reports = path(&self.reports)?;
        let _ = writeln!(script, "out={out}\nreports={reports}");
        Ok(script + MERGE)
    }

    /// The first lines of a script: its title in a comment, and the variables that both scripts use.
    fn head(&self, title: &str) -> Result<String, Failure> {
        let here = path(&self.here)?;
        let job = path(&self.folder)?;
        Ok(format!("#!/bin/sh\n# {title}\nhere={here}\njob={job}\n"))
    }
}

/// A path as a quoted word of a shell script.
///
/// # Errors
/// If it is not UTF-8.
fn path(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().ok_or_else(|| {
        Failure::input(format!(
            "error: {}: the path is not UTF-8 and cannot be written into a script",
            path.display()
        ))
    })?;
    Ok(quoted(text))
}

/// A command as a user types it into a shell: each word is quoted where it needs it.
pub fn typed(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::process::Program;

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        for text in ["a b", "it's", "\"$HOME\" `x` \\ *", "ключ\nnew line", "", "-n", "@JOB@ %a"]
        {
            let script = format!("printf %s {}", quoted(text));
            let said = Program::new("sh").args(["-c", &script]).run();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
        let words = ["sbatch", "--chdir=/a b", ""].map(str::to_owned);
        assert_eq!(typed(&words), "sbatch '--chdir=/a b' ''");
    }
}
