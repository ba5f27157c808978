//! Builds the benches of two revisions.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Executables of benches by name.
pub type Executables = BTreeMap<String, PathBuf>;

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.map_err(|e| format!("git cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().last().unwrap_or("git failed").trim_start_matches("fatal: ").to_owned())
}

/// The commit of a revision.
///
/// # Errors
/// If there is no repository, or no such revision.
pub fn commit(root: &Path, revision: &str) -> Result<String, String> {
    git(root, &["rev-parse", "--git-dir"])?;
    let peeled = format!("{revision}^{{commit}}");
    git(root, &["rev-parse", "--verify", "--end-of-options", &peeled])
        .map_err(|error| format!("{revision} is no git revision ({error})"))
}

/// A checkout of a commit under `target`. An existing one is moved to the commit, so that
/// little is rebuilt.
///
/// # Errors
/// The error message of git.
pub fn worktree(root: &Path, commit: &str) -> Result<PathBuf, String> {
    let folder = root.join("target/bench-compare/base");
    let top = git(&folder, &["rev-parse", "--show-toplevel"]).ok().map(PathBuf::from);
    let own = top.and_then(|top| top.canonicalize().ok());
    if own.is_some() && own == folder.canonicalize().ok() {
        git(&folder, &["checkout", "--detach", "--force", "--quiet", commit])?;
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    git(root, &["worktree", "prune"])?;
    let path = folder.display().to_string();
    git(root, &["worktree", "add", "--detach", "--force", &path, commit])?;
    Ok(folder)
}

/// Whether a revision has this bench.
pub fn has(root: &Path, name: &str) -> bool {
    let benches = root.join("benches");
    benches.join(name).with_extension("rs").exists() || benches.join(name).join("main.rs").exists()
}

/// Builds the benches of a revision, in this target folder or in the default one.
///
/// # Errors
/// If they do not build.
pub fn built(root: &Path, names: &[&str], target: Option<&Path>) -> Result<Executables, String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(["bench", "--locked", "--no-run", "--message-format=json"]);
    for name in names {
        command.args(["--bench", name]);
    }
    if let Some(target) = target {
        command.arg("--target-dir").arg(target);
    }
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo cannot be run: {e}"))?;
    if !output.status.success() {
        return Err(format!("{} does not build", root.display()));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(messages.lines().filter_map(executable).collect())
}

/// The bench and the executable in a message of cargo.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let kinds = message["target"]["kind"].as_array()?;
    let path = message["executable"].as_str()?;
    let name = message["target"]["name"].as_str()?;
    kinds.iter().any(|kind| kind == "bench").then(|| (name.to_owned(), path.into()))
}
