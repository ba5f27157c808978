//! Calls Slurm's programs: `sbatch`, `squeue` and `scancel`.

use super::script;
use crate::cli::outcome::Failure;
use std::process::{Command, Output};

/// The identifier of a job, or of an array of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// The number that Slurm gave it, in digits.
    pub number: String,
    /// The cluster that runs it; `None` where Slurm has only one.
    cluster: Option<String>,
}

impl Id {
    /// Parses the output of `sbatch --parsable`, which is `number` or `number;cluster`; `None` of anything
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        let (number, cluster) = match line.split_once(';') {
            Some((number, cluster)) => (number, Some(cluster.to_owned())),
            None => (line, None),
        };
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        is_number.then(|| Self { number: number.to_owned(), cluster })
    }

    /// The option by which Slurm's programs find the job, as their argument; empty where they need none.
    fn cluster(&self) -> Vec<String> {
        self.cluster.iter().map(|name| format!("--clusters={name}")).collect()
    }
}

/// Runs a command that submits a job, `sbatch` and its arguments, and returns the identifier of the job.
///
/// # Errors
/// The message of `sbatch`, or that it is not installed.
pub fn submit(words: &[String]) -> Result<Id, Failure> {
    let output = Command::new("sbatch").args(words.iter().skip(1)).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::input(
            "error: `sbatch` was not found: submit on a machine with Slurm, or pass --dry-run to print the scripts",
        ),
        _ => Failure::input(format!("error: sbatch cannot be started: {e}")),
    })?;
    let (stdout, stderr) = texts(&output);
    match Id::parse(&stdout).filter(|_| output.status.success()) {
        Some(id) => Ok(id),
        None => Err(Failure::input(refusal(words, &stdout, &stderr))),
    }
}

/// The message that a job was not accepted: what `sbatch` printed on either stream, and the command.
fn refusal(words: &[String], stdout: &str, stderr: &str) -> String {
    let stdout = stdout.trim();
    let stderr = stderr.trim();
    let mut message = match stderr {
        "" => format!("error: sbatch printed \"{stdout}\" instead of the number of a job"),
        _ => format!("error: sbatch refused: {stderr}"),
    };
    if stderr.contains("array") {
        message += "\n  fewer --tasks may help: the number of tasks must be below MaxArraySize (see `scontrol show config`)";
    }
    message + "\n  the command was: " + &script::typed(words)
}

/// Cancels a job that was just submitted. Errors are ignored: it may have ended.
pub fn cancel(id: &Id) {
    let _ = Command::new("scancel").args(id.cluster()).arg(&id.number).output();
}

/// The state of a task that waits or runs.
pub struct TaskState {
    /// The number of the job to whose array it belongs.
    pub job: String,
    /// Its state as Slurm calls it, such as `RUNNING`.
    pub state: String,
    /// Whether it starts only after somebody releases it.
    pub is_held: bool,
}

impl TaskState {
    /// Reads a line of `squeue`: the number of the job, the state, and the reason why it waits; `None` if the
    /// line has not these parts.
    pub fn read(line: &str) -> Option<Self> {
        let mut parts = line.trim().splitn(3, ' ');
        let job = parts.next()?.to_owned();
        let state = parts.next()?.to_owned();
        // Reasons of Slurm: JobHeldUser, JobHeldAdmin, launch failed requeued held.
        let is_held = parts.next().is_some_and(|reason| reason.to_lowercase().contains("held"));
        Some(Self { job, state, is_held })
    }
}

/// The states of all tasks of these jobs, which are on one cluster, that wait or run; empty once all have ended. `None`
/// if `squeue` cannot be started or fails, so that nothing is known. Lines that are no states are left out.
pub fn states(ids: [&Id; 2]) -> Option<Vec<TaskState>> {
    let numbers = ids.map(|id| id.number.clone()).join(",");
    // The format is what [`TaskState::read`] reads; `--array` prints a line for each task.
    let output = Command::new("squeue")
        .args(ids[0].cluster())
        .args(["--noheader", "--array", "--format=%F %T %r", "--jobs", &numbers])
        .output()
        .ok()?;
    let (stdout, stderr) = texts(&output);
    if !output.status.success() {
        // Slurm has forgotten jobs that ended long ago.
        return stderr.contains("Invalid job id").then(Vec::new);
    }
    Some(stdout.lines().filter_map(TaskState::read).collect())
}

/// The commands by which a user shows and cancels these jobs, which are the array and the merge.
pub fn commands(ids: [&Id; 2]) -> [String; 2] {
    let cluster: String = ids[0].cluster().iter().map(|c| format!(" {c}")).collect();
    let [tasks, merge] = ids.map(|id| id.number.as_str());
    [format!("squeue{cluster} -j {tasks},{merge}"), format!("scancel{cluster} {tasks} {merge}")]
}

/// What a program printed on standard output and on standard error.
fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_a_number_and_perhaps_a_cluster() {
        let id = |number: &str, cluster: Option<&str>| {
            Some(Id { number: number.into(), cluster: cluster.map(str::to_owned) })
        };
        assert_eq!(Id::parse("12\n"), id("12", None));
        assert_eq!(Id::parse("12;north\n"), id("12", Some("north")));
        for none in ["", "\n", "Submitted batch job 12", ";north", "-1"] {
            assert_eq!(Id::parse(none), None, "{none:?}");
        }
    }
}
