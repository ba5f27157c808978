//! The names of experiments, which are paths below `results/` and `reports/`.
//!
//! *Invariant*: the folder and files of an experiment never coincide with those of another
//! experiment or with other files that the program writes, neither in results nor in reports,
//! even if one experiment is below another (`a` and `a/b`) and on file systems that ignore
//! case.

use crate::store::is_cell;
use std::path::{Path, PathBuf};

/// The endings of the files that the program writes into results and reports.
const OWN_ENDINGS: &[&str] =
    &[".toml", ".md", ".html", ".csv", ".json", ".jsonl", ".svg", ".tex", ".parquet"];

/// The rule, as messages print it.
const RULE: &str = "letters, digits, - _ . only, no part beginning with a dot; no part may be \
     `figures`, 16 hexadecimal digits or `pack-` followed by these, contain `.damaged-`, or end \
     like the files of results and reports (.toml .md .html .csv .json .jsonl .svg .tex .parquet)";

/// The path of a manifest names no experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "error: {}: the name of an experiment comes from the path of its manifest and cannot contain \"{part}\"\n  = allowed: {RULE}\n",
    file.display()
)]
pub struct NameError {
    /// The manifest.
    pub file: PathBuf,
    /// The part of the name that is not allowed.
    pub part: String,
}

/// The name of a manifest's experiment: its path below the last folder called `experiments`
/// or, if there is none, the file name, in both cases without the ending. The parts are joined by `/` on every system.
///
/// # Errors
/// If the rule does not allow that name.
pub fn from_manifest(file: &Path) -> Result<String, NameError> {
    let whole = file.with_extension("");
    let parts: Vec<String> =
        whole.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let last = parts.len().saturating_sub(1);
    let from = parts.iter().rposition(|p| p == "experiments").map_or(last, |i| i + 1);
    let name = parts[from.min(last)..].join("/");
    check(&name, file)?;
    Ok(name)
}

/// Checks that the rule allows the name of an experiment, which comes from the manifest `file`.
///
/// # Errors
/// The file, the part of the name that is not allowed, and the rule.
pub fn check(name: &str, file: &Path) -> Result<(), NameError> {
    let Some(part) = name.split('/').find(|part| !is_allowed(part)) else { return Ok(()) };
    Err(NameError { file: file.to_owned(), part: part.to_owned() })
}

/// Whether a part of a name, between two `/`, follows [`RULE`].
fn is_allowed(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let lower = part.to_ascii_lowercase();
    // A pack is named by the hash of its bytes; early releases put `pack-` before it.
    !part.is_empty()
        && part.chars().all(plain)
        && !part.starts_with('.')
        && lower != "figures"
        && !is_cell(lower.strip_prefix("pack-").unwrap_or(&lower))
        && !lower.contains(".damaged-")
        && !OWN_ENDINGS.iter().any(|end| lower.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_other_file_of_results_or_reports() {
        for name in ["a", "A/b", "v1.0", "claims", "index", "book/lms_2", "pack-1", "0123"] {
            assert!(check(name, Path::new("m.toml")).is_ok(), "{name}");
        }
        for name in [
            "",
            "a//b",
            ".a",
            "a/..",
            "a b",
            "figures",
            "a/Figures",
            "experiment.toml",
            "README.md",
            "a/index.html",
            "a/summary.csv",
            "exactfed.toml",
            "a/0123456789abcdef",
            "0123456789ABCDEF",
            "pack-0123456789abcdef",
            "a/0123456789abcdef.damaged-1",
        ] {
            assert!(check(name, Path::new("m.toml")).is_err(), "{name}");
        }
    }

    #[test]
    fn a_manifest_names_its_experiment() {
        let name = |path: &str| from_manifest(Path::new(path));
        assert_eq!(name("experiments/a/b.toml"), Ok("a/b".into()));
        assert_eq!(name("x/experiments/y/experiments/c.toml"), Ok("c".into()));
        assert_eq!(name("/tmp/some where/c.toml"), Ok("c".into()));
        assert!(name("experiments/a b.toml").unwrap_err().to_string().contains("\"a b\""));
        assert!(name("..").is_err());
    }
}
