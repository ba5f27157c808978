//! Slurm's programs, by their names: `sbatch`, `squeue`, `scancel`.

use super::{Failure, script};
use std::process::{Command, Output};

/// A job as Slurm knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    number: String,
    cluster: Option<String>,
}

impl Id {
    /// What `sbatch --parsable` prints: a number, or number;cluster.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        let (number, cluster) = match line.split_once(';') {
            Some((number, cluster)) => (number, Some(cluster.to_owned())),
            None => (line, None),
        };
        let whole = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        whole.then(|| Self { number: number.to_owned(), cluster })
    }

    /// Its number.
    pub fn number(&self) -> &str {
        &self.number
    }

    fn cluster(&self) -> Vec<String> {
        self.cluster.iter().map(|name| format!("--clusters={name}")).collect()
    }
}

/// Submits a job: `sbatch` and its arguments.
///
/// # Errors
/// What `sbatch` said, or that it is not there.
pub fn submit(words: &[String]) -> Result<Id, Failure> {
    let output = Command::new("sbatch").args(words.iter().skip(1)).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Failure::input(
            "error: there is no `sbatch` here: submit where Slurm's programs are, or look at what would be submitted with --dry-run",
        ),
        _ => Failure::input(format!("error: sbatch cannot be started: {e}")),
    })?;
    let (said, wrong) = texts(&output);
    match Id::parse(&said).filter(|_| output.status.success()) {
        Some(id) => Ok(id),
        None => Err(Failure::input(refused(words, &said, &wrong))),
    }
}

/// Why a job was not taken.
fn refused(words: &[String], said: &str, wrong: &str) -> String {
    let (said, wrong) = (said.trim(), wrong.trim());
    let mut message = match wrong {
        "" => format!("error: sbatch printed no job's number but \"{said}\""),
        _ => format!("error: sbatch refused: {wrong}"),
    };
    if wrong.contains("array") {
        message += "\n  fewer --tasks may help: `scontrol show config` tells MaxArraySize, which the number of tasks must be below";
    }
    message + "\n  the command was: " + &script::typed(words)
}

/// Cancels a job that was just submitted; that it is gone is as good.
pub fn cancel(id: &Id) {
    let _ = Command::new("scancel").args(id.cluster()).arg(&id.number).output();
}

/// The states of what is still waiting or running of these jobs; `None` if Slurm does
/// not answer now.
pub fn states(ids: [&Id; 2]) -> Option<Vec<(String, String)>> {
    let numbers = ids.map(|id| id.number.clone()).join(",");
    let output = Command::new("squeue")
        .args(ids[0].cluster())
        .args(["--noheader", "--array", "--format=%F %T", "--jobs", &numbers])
        .output()
        .ok()?;
    let (said, wrong) = texts(&output);
    if !output.status.success() {
        // Jobs that ended long ago.
        return wrong.contains("Invalid job id").then(Vec::new);
    }
    let line = |line: &str| {
        let (number, state) = line.trim().split_once(' ')?;
        Some((number.to_owned(), state.to_owned()))
    };
    Some(said.lines().filter_map(line).collect())
}

/// How to watch and how to cancel these jobs.
pub fn commands(ids: [&Id; 2]) -> [String; 2] {
    let cluster: String = ids[0].cluster().iter().map(|c| format!(" {c}")).collect();
    let [tasks, merge] = ids.map(|id| id.number.as_str());
    [format!("squeue{cluster} -j {tasks},{merge}"), format!("scancel{cluster} {tasks} {merge}")]
}

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
