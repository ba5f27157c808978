//! A problem or an algorithm as it enters cells: what all cells that have it share.

use super::settings::{self, Part, Setting};
use driftbench_core::problem::Fault;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A problem or an algorithm, for all cells that have it.
pub struct SpecParts<T> {
    /// What it is.
    pub spec: Arc<T>,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
    /// Its table of the canonical text.
    pub text: String,
    /// Its settings.
    pub settings: Part,
}

/// A table's canonical text, and its settings by their paths.
pub fn text_and_settings(top: &str, spec: &impl Serialize) -> (String, BTreeMap<String, Setting>) {
    let value = toml::Value::try_from(spec).expect("settings are plain tables");
    let mut all = BTreeMap::new();
    settings::add(&mut all, top, &value);
    (toml::Table::from_iter([(top.to_owned(), value)]).to_string(), all)
}
