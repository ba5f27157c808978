//! Files of a git revision, read by the `git` command without a checkout.

use crate::files::{Error, error};
use std::path::Path;
use std::process::{Command, Output};

fn git(arguments: &[&str]) -> Result<Output, Error> {
    let here = Path::new("git");
    Command::new("git").args(arguments).output().map_err(|e| error(here, e))
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().next().unwrap_or("git failed").trim_start_matches("fatal: ").to_owned()
}

/// The commit that a revision names.
///
/// # Errors
/// What git says if it names none.
pub fn commit(revision: &str) -> Result<String, Error> {
    let peeled = format!("{revision}^{{commit}}");
    let output = git(&["rev-parse", "--verify", "--end-of-options", &peeled])?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let message = format!(
        "is neither a results folder, a reports folder nor a git revision ({})",
        said(&output)
    );
    Err(error(Path::new(revision), message))
}

/// The files of this name below a folder of a commit: path and text.
///
/// # Errors
/// What git says.
pub fn files(commit: &str, folder: &str, name: &str) -> Result<Vec<(String, String)>, Error> {
    let output = git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit])?;
    if !output.status.success() {
        return Err(error(Path::new(commit), said(&output)));
    }
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = |path: &&str| {
        let inside = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        inside && path.rsplit('/').next() == Some(name)
    };
    let mut files = Vec::new();
    for path in listing.split('\0').filter(wanted) {
        let output = git(&["cat-file", "blob", &format!("{commit}:{path}")])?;
        if !output.status.success() {
            return Err(error(Path::new(path), said(&output)));
        }
        files.push((path.to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    Ok(files)
}
