//! Who computed a result: program, commit, and whether the tree was dirty.

use serde::{Deserialize, Serialize};
use std::process::Command;

/// Who computed a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit of the repository that the program was run in, or "unknown".
    pub commit: String,
    /// Whether its work tree differed from the commit.
    pub dirty: bool,
}

impl Provenance {
    /// The provenance of what is computed now.
    pub fn now() -> Self {
        let commit = git(&["rev-parse", "HEAD"]);
        let dirty = git(&["status", "--porcelain"]).is_some_and(|out| !out.is_empty());
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: commit.unwrap_or_else(|| "unknown".into()),
            dirty,
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
