//! What a user writes: the types of a manifest, and nothing of their meaning.
//!
//! *Invariant*: derived types are the only schema; unknown keys, wrong types
//! and unknown names are found by [`read`], all at once. Whether a value makes
//! sense is the plan's business.

mod at;
pub mod document;
pub mod figure;
pub mod read;

use crate::{algorithm, problem};
pub use document::{Diagnostic, Node, Place, Rejected, Source};
use serde::{Deserialize, Serialize};

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// What the experiment shows.
    pub title: String,
    /// Where its settings come from.
    #[serde(default)]
    pub source: Option<String>,
    /// Text that the report prints beside the numbers: paragraphs, with
    /// `{{ … }}` for figures from the results.
    #[serde(default)]
    pub analysis: Option<String>,
    /// Seed of every stream.
    pub seed: u64,
    /// Independent runs of each cell.
    pub replicates: u64,
    /// Whether oracles are noisy.
    #[serde(default)]
    pub oracle: Oracle,
    /// Axes that move together, by name.
    #[serde(default)]
    pub zip: Vec<Vec<String>>,
    /// `[problem.<kind>]`.
    pub problem: problem::Spec,
    /// θ_0.
    pub start: Start,
    /// How long a run goes on.
    pub budget: Budget,
    /// What is kept of a run.
    #[serde(default)]
    pub record: Record,
    /// `[[algorithm.<kind>]]`.
    pub algorithm: algorithm::Table,
    /// `[[figure.<kind>]]`.
    #[serde(default)]
    pub figure: figure::Table,
}

impl Manifest {
    /// Whether the setting at this path may be an axis of the grid.
    pub fn may_vary(path: &str) -> bool {
        let top = path.split('.').next().unwrap_or_default();
        matches!(top, "problem" | "start" | "budget" | "algorithm" | "oracle")
    }
}

/// Whether oracles are noisy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// The problem's own noise.
    #[default]
    Stochastic,
    /// The mean field: FedAvg becomes FedAvg-D.
    Exact,
}

/// θ_0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// θ* plus this in every entry.
    Offset(f64),
    /// This point, d numbers.
    Point(Vec<f64>),
    /// 0.
    Zero(bool),
    /// The exact limit of the algorithm's mean: θ* plus its exact bias
    /// (linear problems).
    Limit(bool),
}

/// How long a run goes on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Budget {
    /// TH, local steps of one client; or
    #[serde(default)]
    pub local_steps: Option<u64>,
    /// T, rounds.
    #[serde(default)]
    pub rounds: Option<u64>,
    /// Rounds at least.
    #[serde(default)]
    pub min_rounds: Option<u64>,
}

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Record {
    /// About this many rounds, the first and the last among them; or
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
    /// every so many rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// How `points` are spaced.
    pub spacing: Spacing,
    /// Whether θ itself is kept.
    pub iterates: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self { points: None, every: None, spacing: Spacing::Linear, iterates: false }
    }
}

/// How recorded rounds are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly in the logarithm.
    Log,
}
