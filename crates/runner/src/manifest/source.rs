//! A manifest as it was given, with all that reading it needs.

use crate::data::TableReader;
use exactfed_core::algorithm::custom::CustomDefinition;
use exactfed_core::custom_metric::CustomMetricDefinition;
use exactfed_core::definition::Definition;
use exactfed_core::problem::arrays::FileSize;
use exactfed_core::registry::Registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A manifest as it was given: text, where it came from, and `--set`s. Serialised as results
/// store it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    /// The file, as messages name it.
    #[serde(rename = "manifest")]
    pub name: String,
    /// `key=value` from the command line, in order.
    pub overrides: Vec<String>,
    /// Whether there is no such file, since the manifest was given as a text or a dict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfiled: bool,
    /// The text of the manifest.
    pub text: String,
    /// Hashes of data files as they were when the cells were planned, by path;
    /// what is not here is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// How many lines and numbers data files have, by path, for those that were read.
    #[serde(skip)]
    pub sizes: BTreeMap<String, FileSize>,
    /// Data files in memory, by the path that the manifest names: they are read from here instead
    /// of from the disk. Results keep a copy of each, so that they can be read without these.
    #[serde(skip)]
    pub in_memory: BTreeMap<String, Arc<[u8]>>,
    /// The folder of the copies of data files that results keep, if the manifest is one of results, which anybody may
    /// have written; `None` for the manifest of a user.
    #[serde(skip)]
    pub copies: Option<PathBuf>,
    /// What reads Parquet tables; without it they are refused.
    #[serde(skip)]
    pub tables: Option<TableReader>,
    /// The algorithms of the manifest that are defined outside of this program, as they were when
    /// the cells were planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub algorithms: Vec<CustomDefinition>,
    /// The definition of the problem if it is defined outside of this program, as it was when the cells were planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Definition>,
    /// The metrics of the manifest that are defined outside of this program, as they were when the cells were planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<CustomMetricDefinition>,
    /// What manifests may name beside the built-in algorithms and problems.
    #[serde(skip)]
    pub registry: Registry,
}

impl Source {
    /// Whether it is the manifest that results keep, as opposed to one that a user names or wrote. Anybody may have
    /// written results, so that of the Python code which such a manifest names only the package's own algorithms are
    /// loaded.
    pub fn is_stored(&self) -> bool {
        self.copies.is_some()
    }

    /// The definition of the problem that results were computed with, if its code is not registered, or other code is:
    /// results of a problem are read by the program that defines it. `None` for the manifest of a user.
    pub fn problem_without_code(&self) -> Option<&Definition> {
        let stored = self.problem.as_ref()?;
        let registered = self.registry.problems.get(&stored.kind);
        let is_same = registered.is_some_and(|problem| problem.definition == *stored);
        if is_same { None } else { Some(stored) }
    }
}
