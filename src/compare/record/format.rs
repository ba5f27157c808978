//! The form of both files: their names, the columns of `finals.csv`, the keys of `record.toml`, and
//! the hash that connects them.

use super::super::claims::SideClaim;
use crate::stats::looks::Looks;
use exactfed_runner::files::sha256;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of the file with the settings that all cells share.
pub const RECORD: &str = "record.toml";
/// The name of the file with the final errors.
pub const FINALS: &str = "finals.csv";

/// The word in [`FINALS`] in place of the final error of a replicate that diverged.
pub const DIVERGED: &str = "diverged";
/// The field in [`FINALS`] of a setting whose text is empty. An empty field could not say so: it means
/// that the cell does not have the setting. `inert`, through which all other texts are written, writes
/// none of them so.
pub const EMPTY_TEXT: &str = "'";
/// The first columns of [`FINALS`]. After them comes a column for each setting that varies among cells.
pub const HEAD: [&str; 3] = ["cell", "digest", "label"];
/// The last columns of [`FINALS`]: the number of replicates of the cell, how many of them diverged, and
/// the final errors of the first [`MOST_KEPT`] of them.
pub const TAIL: [&str; 3] = ["runs", "diverged", "finals"];

/// The most replicates of a cell whose final errors are written: the most pairs for which the note on
/// diffs (docs/notes/diff.md) has the coverage of the interval.
pub const MOST_KEPT: usize = 20;

/// Reports of this schema have the final errors of all replicates, and therefore no counts.
pub const SCHEMA_OF_ALL_RUNS: u32 = 1;
/// The columns after the settings in reports of [`SCHEMA_OF_ALL_RUNS`].
pub const TAIL_OF_ALL_RUNS: [&str; 1] = ["finals"];

/// The contents of [`RECORD`].
#[derive(Serialize, Deserialize)]
pub struct RecordFile {
    /// The version of the form of both files.
    pub schema: u32,
    /// The seed of the experiment's manifest.
    pub seed: u64,
    /// Hash of the manifest and its overrides.
    pub manifest: String,
    /// Hash of [`FINALS`].
    pub finals: String,
    /// The looks that were planned for the cells, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
    /// The settings that all cells share, by path.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The claims of the experiment with their verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim: Vec<SideClaim>,
}

/// The SHA-256 of a text as hexadecimal digits. A text with the line ends of Windows has the same hash as
/// with those of Unix.
pub fn hash(text: &str) -> String {
    sha256(same_line_ends(text).as_bytes())
}

/// A text with the line ends of Unix: git may have changed them on Windows.
pub fn same_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}
