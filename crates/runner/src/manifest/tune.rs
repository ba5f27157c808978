//! `[tune]`: settings of which each algorithm gets the value that is best for it.

use super::{ComparedAt, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// For each algorithm, and at each point of the grid, one or more of its settings are chosen by
/// experiment: all candidates are run, and that with the best mean of a metric is selected.
/// What figures, claims and the ranking show are fresh runs of what was selected, with noise of
/// their own; the mean of the runs by which it was selected would be too good. All algorithms
/// begin with the same candidates and have the same noise.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tune {
    /// The setting that is tuned. A list names several settings, and the candidates are all
    /// combinations of their values. An algorithm that lacks one of the settings is tuned over the
    /// others.
    #[schemars(example = &"step-size")]
    pub over: SettingNames,
    /// The smallest and the largest candidate. `ratio` determines how many are between them. For
    /// several settings it is a table with a range for each.
    #[schemars(example = serde_json::json!([1e-3, 1.0]))]
    pub range: Option<PerSetting>,
    /// The candidates themselves, in place of a range. They are not extended. For several settings
    /// it is a table with a list for each.
    #[schemars(example = serde_json::json!([0.01, 0.1]))]
    pub values: Option<PerSetting>,
    /// The largest ratio of two neighbouring candidates of a range, above 1.
    #[serde(default = "ratio")]
    #[schemars(extend("exclusiveMinimum" = 1.0), example = 1.5)]
    pub ratio: f64,
    /// The number of runs of each candidate on each instance, in place of the manifest's
    /// `replicates`.
    #[schemars(range(min = 1), example = 10)]
    pub replicates: Option<u64>,
    /// The number of fresh runs of each selected candidate: 20 without this key. With several
    /// instances, it is the number of runs on each of as many fresh instances, and the manifest's
    /// `replicates` without this key.
    #[schemars(range(min = 1), example = 20)]
    pub evaluate: Option<u64>,
    /// The quantity whose mean selects a candidate, if it is recorded, and by which the page ranks
    /// the algorithms. The smallest mean is best, or the largest if the quantity is an accuracy:
    /// ratios then are of the error rate, 1 minus the accuracy. A candidate is never selected if one
    /// of its runs diverged.
    #[serde(default)]
    pub metric: Quantity,
    /// The cost or the target at which candidates are compared and the page ranks the algorithms, as
    /// in `[compare]`. Without it each run is compared after its last round. At a target the default
    /// metric is `communications`, and a candidate is not selected if a run does not reach the target.
    #[schemars(example = ComparedAt::EXAMPLE)]
    pub at: Option<ComparedAt>,
    /// Whether candidates race: each is run on the first third of its instances, or has the first third of
    /// its runs on a single instance, and is stopped there if its mean is certain to be worse than
    /// the best one's. All others are run to the end, with the same numbers as without a race. There
    /// is no race where a third is fewer than 5.
    #[serde(default = "race")]
    #[schemars(example = false)]
    pub race: bool,
    /// How many times candidates are added if the best one is at the edge of its range, or next to
    /// a candidate that diverged. At the edge, three further candidates are added beyond it. Next
    /// to a candidate that diverged, one is added between the two. Values that the manifest could
    /// not have are left out, such as a `cohort` of more than all clients. `run` asks before the
    /// additional candidates take longer than was planned.
    #[serde(default = "extend")]
    #[schemars(example = 3)]
    pub extend: u64,
}

fn ratio() -> f64 {
    1.5
}

fn extend() -> u64 {
    3
}

fn race() -> bool {
    true
}

/// One name or several.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SettingNames {
    /// A name.
    One(String),
    /// A list of names.
    Several(Vec<String>),
}

impl SettingNames {
    /// All names, in the order of the text.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// A list of numbers for the one setting that is tuned, or a table with a list for each.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerSetting {
    /// A list for the only tuned setting.
    One(Vec<f64>),
    /// A list for each tuned setting.
    Each(BTreeMap<String, CandidateList>),
}

/// The numbers of a tuned setting, or a table of one unit with these numbers, such as
/// `{ over-L = [0.1, 2.0] }`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CandidateList {
    /// The numbers themselves.
    Numbers(Vec<f64>),
    /// Multiples of a constant of the problem, by its unit.
    Multiples(BTreeMap<String, Vec<f64>>),
}

/// The number of fresh runs of a selected candidate on a single instance, where `evaluate` is not written.
pub const EVALUATE: u64 = 20;

/// The loss by which a candidate with this mean of the metric is selected, the smaller the better: the mean, or for an
/// accuracy 1 minus the mean. It is infinite where the mean is NaN, so that such a candidate is never selected.
pub fn loss(metric: Quantity, mean: f64) -> f64 {
    if mean.is_nan() { f64::INFINITY } else { metric.loss(mean) }
}

/// A setting that is tuned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunedSetting {
    /// Its key in an algorithm's table.
    pub key: String,
    /// The candidates of all algorithms, increasing.
    pub values: Vec<f64>,
    /// The ratio of successive candidates of a range, by which candidates beyond it are added; `None` for listed
    /// values, to which none are added.
    pub ratio: Option<f64>,
    /// Whether the candidates are whole numbers, so that added ones are too.
    pub whole: bool,
}
