//! The types of a manifest, as a user writes it.
//!
//! *Invariant*: derived types are the only schema; [`read`] finds unknown keys, wrong types
//! and unknown names, all at once. The module `plan` checks whether values make sense.

pub mod amendment;
pub mod axis;
pub mod claim;
pub mod document;
pub mod entries;
pub mod figure;
pub mod frontier;
pub mod kinds;
pub mod phase;
mod prediction;
mod published;
pub mod read;
pub mod reference;
pub mod schema;
pub mod searched;
mod source;
pub mod tune;

use crate::quantity::MeasuredOn;
pub use crate::quantity::{
    AtCost, AxisUnit, ComparedAt, Metric, Prices, Quantity, TimeAverage, Until,
};
pub use document::{Diagnostic, Node, Place, Rejected};
use exactfed_core::algorithm::custom::CustomDefinition;
use exactfed_core::custom_metric::CustomMetric;
use exactfed_core::problem::{self, OracleForm};
use kinds::{AlgorithmEntry, AlgorithmTables};
pub use prediction::{Prediction, add_bounds};
pub use published::Published;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
pub use source::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An experiment.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// The heading of the experiment's page.
    #[schemars(example = &"FedLSA against SCAFFLSA")]
    pub title: String,
    /// The question that the experiment asks. The index groups experiments by it.
    #[schemars(example = &"Do control variates remove the bias?")]
    pub question: Option<String>,
    /// The headline of the page and, after an empty line, a sentence with intervals and settings.
    /// Numbers are written as `{{ … }}`, with the [functions of `analysis`](#analysis). Without this
    /// key, or if a claim that the text names with `holds` has another verdict, the page has a
    /// headline from the ranking.
    #[schemars(example = &"FedAvg's error is {{ times(cell(\"FedAvg\"), cell(\"Scaffold\")) }} times Scaffold's")]
    pub finding: Option<String>,
    /// Where the settings come from.
    #[schemars(example = &"SCAFFLSA, Figure 1(b)")]
    pub source: Option<String>,
    /// `[published]`.
    pub published: Option<Published>,
    /// Paragraphs for the report. Numbers from the results are written as `{{ … }}`, with these
    /// [functions](#analysis).
    ///
    /// | function | what it writes |
    /// | --- | --- |
    /// | `cell("FedLSA", local_steps=10)` | the cell of this label with these settings, for the other functions: `mean(cell("FedLSA"))`; they call it a or b below. With `[tune]`, the settings contain the selected values, which a first run shows, and the numbers are those of the fresh runs; `estimate` and the other functions of claims need no settings |
    /// | `mean(a)` | the mean of ‖θ − θ*‖² at the last round, with its 95 % interval |
    /// | `ratio(a, b)` | how many times larger the mean of a is than that of b, with its 95 % interval over paired runs |
    /// | `value(a)`, `times(a, b)` | the same two numbers with two digits and without an interval, for a headline |
    /// | `mean(a, of="lyapunov")` | the mean of another quantity; `ratio`, `value` and `times` take `of` too |
    /// | `limit(a)`, `ratio_limit(a, b)` | mean and ratio of the squared distance from the exact limit |
    /// | `bias(a)` | the squared exact bias ‖lim E θ − θ*‖²; a figure must draw the exact bias |
    /// | `overtaken(a, b)` | the number of clients between those of a and b at which the squared bias is as large as the variance, interpolated on logarithms; the whole text is shown only if the squared bias is the smaller of the two at a and the larger at b. It needs the averages `bias` and `covariance` |
    /// | `diverged(a)` | how many runs diverged, such as "3 of 10" |
    /// | `estimate("id")` | the estimate of the claim of this id, with its interval |
    /// | `number("id")` | the same with two digits and without an interval |
    /// | `nearest("id")` | the cell or round of that estimate, if the claim is about several: the one that is nearest to the limit of the claim, or farthest beyond it |
    /// | `least_certain("id")`, `weakest("id")` | the estimate with the least support, and its cell or round |
    /// | `smallest("id")`, `largest("id")` | the smallest and the largest estimate of the claim's cells or rounds |
    /// | `supported("id")` | for how many of them the claim holds by itself, such as "112 of 113" |
    /// | `holds("id")`, `refuted("id")`, `undecided("id")` | nothing; the whole text is shown only if the claim is supported, refuted or inconclusive |
    /// | `least("fedavg", clients=10, target=0.01, price=1000)` | the communications of an algorithm on a frontier, where its cost at this price is least; without `price` it is the middle price of the frontier |
    /// | `least(…, budget=4)` | the fewest communications within this budget |
    /// | `least(…, of="local-steps")` | another number of that point |
    #[schemars(example = &"FedLSA ends at {{ mean(cell(\"FedLSA\")) }}.")]
    pub analysis: Option<String>,
    /// What the page shows below its headline: its first figure, or its claims, for a finding that
    /// they draw and no figure does.
    #[serde(default)]
    pub opens_with: Opening,
    /// Seed of all random streams. Another seed draws other noise and, where something of the
    /// problem is drawn, another instance: other records, for example, or another division of those
    /// of a data file.
    #[schemars(example = 2024)]
    pub seed: u64,
    /// Seed of the noise of runs alone, by default `seed`. Another one draws new runs on the same
    /// instances, so that a pilot study and the runs after it are about one problem.
    #[schemars(example = 2)]
    pub noise_seed: Option<u64>,
    /// Number of independent runs of each cell, on each instance.
    #[schemars(range(min = 1), example = 10)]
    pub replicates: u64,
    /// Number of instances of the problem. They are drawn independently, with `replicates` runs on
    /// each, and intervals are over instances. The first instance is that of the seed. Each of the
    /// others is the one of another seed, with its own noise. With a data file, instances are random
    /// divisions of the same records, and the intervals are about such divisions, not about new
    /// records.
    #[schemars(range(min = 1), example = 20, extend("default" = 1))]
    pub instances: Option<u64>,
    /// Whether oracles are noisy.
    #[serde(default)]
    pub oracle: Oracle,
    /// Whether replicates share one instance of the problem.
    #[serde(default)]
    pub instance: InstanceMode,
    /// Lists of axes, by name, whose values are taken together instead of in all combinations.
    #[serde(default)]
    #[schemars(example = serde_json::json!([["step-size", "local-steps"]]))]
    pub zip: Vec<Vec<String>>,
    /// Files or installed modules with Python code that defines algorithms of the manifest, such as
    /// `exactfed.algorithms`. Paths of files are relative to the manifest's folder. The Python
    /// package alone runs this code, when it reads the manifest. In the `experiment.toml` of
    /// results the key loads nothing.
    #[serde(default)]
    #[schemars(example = serde_json::json!(["momentum.py"]))]
    pub python: Vec<String>,
    /// `[problem.<kind>]`.
    #[serde(skip)]
    #[schemars(!skip, with = "problem::Spec")]
    problem: Option<problem::Spec>,
    /// The start θ_0 of all runs.
    pub start: Option<Start>,
    /// The length of a run.
    pub budget: Option<Budget>,
    /// What is recorded of a run.
    #[serde(default)]
    pub record: Record,
    /// Prices of the simulated wall clock; they do not change any run.
    pub prices: Option<Prices>,
    /// Settings of which each algorithm gets the value that is best for it.
    pub tune: Option<tune::Tune>,
    /// How the page ranks the algorithms.
    #[serde(default)]
    pub compare: Compare,
    /// `[[algorithm.<kind>]]`.
    #[serde(skip)]
    #[schemars(!skip, with = "AlgorithmTables", default)]
    pub algorithm: Vec<AlgorithmEntry>,
    /// The definitions of the custom algorithms: first of those in `algorithm`, kind by kind in the order of the text,
    /// and then of others that frontiers name.
    #[serde(skip)]
    pub definitions: Vec<CustomDefinition>,
    /// `[[frontier]]`.
    #[serde(default)]
    pub frontier: Vec<frontier::Frontier>,
    /// `[[phase]]`.
    #[serde(default)]
    pub phase: Vec<phase::PhaseMap>,
    /// `[[figure.<kind>]]`.
    #[serde(default)]
    #[schemars(with = "figure::FigureTables")]
    pub figure: toml::Table,
    /// `[[claim.<kind>]]`.
    #[serde(default)]
    #[schemars(with = "claim::ClaimTables")]
    pub claim: toml::Table,
    /// `[[amendment]]`.
    #[serde(default)]
    pub amendment: Vec<amendment::Amendment>,
}

impl Manifest {
    /// The problem at the first value of every axis.
    pub fn problem(&self) -> &problem::Spec {
        self.problem.as_ref().expect("the schema requires a problem")
    }

    /// The cost or the target at which the page ranks the algorithms: that of `[compare]`, or else that at which they
    /// are tuned. `None` if they are ranked after the last round.
    pub fn ranked_at(&self) -> Option<ComparedAt> {
        let tuned = self.tune.as_ref().and_then(|tune| tune.at);
        self.compare.at.or(tuned)
    }

    /// The quantity by which the page ranks the algorithms: that by which they are tuned, or without `[tune]` that of
    /// `[compare]`, or else the quantity by which the manifest compares runs. The plan has put the latter into a
    /// `[tune]` that names no metric.
    pub fn ranked_by(&self) -> Quantity {
        let tuned = self.tune.as_ref().map(|tune| tune.metric);
        tuned.or(self.compare.metric).unwrap_or_else(|| self.quantity_compared_at(self.compare.at))
    }

    /// The quantity by which runs are compared at a cost or a target, or at the last round, unless another one is
    /// named: communications at a target, where all runs have come to the same value, and otherwise the quantity by
    /// which the manifest compares runs.
    pub fn quantity_compared_at(&self, at: Option<ComparedAt>) -> Quantity {
        match at {
            Some(ComparedAt::Target { .. }) => Quantity::Communications,
            Some(ComparedAt::Cost(_)) | None => self.record.default_quantity(),
        }
    }
}

/// What a page shows below its headline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Opening {
    /// The first figure.
    #[default]
    Figure,
    /// The claims, with their estimates drawn.
    Claims,
}

/// Whether oracles are noisy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// Oracles with the problem's noise.
    #[default]
    Stochastic,
    /// Oracles that return the mean field: FedAvg becomes FedAvg-D.
    Exact,
}

impl Oracle {
    /// The form of the problem that is run.
    pub fn form(self) -> OracleForm {
        if self == Self::Exact { OracleForm::Exact } else { OracleForm::Own }
    }
}

/// Whether replicates share one instance of the problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceMode {
    /// All share one instance, which the seed determines. Replicates differ in their noise alone.
    #[default]
    Fixed,
    /// Each replicate has its own instance, which the seed and the number of the replicate
    /// determine.
    PerReplicate,
}

impl InstanceMode {
    /// Whether all replicates share one instance, which is the default and no part of what is hashed.
    pub fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}

/// Relative differences below this are of no practical importance, by default.
pub const PRACTICAL_MARGIN: f64 = 0.05;

/// How the page ranks the algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Compare {
    /// The cost or the target at which the algorithms are compared. At a cost each run is measured at its
    /// last recorded round that costs at most this; at a target (`at = { until = { metric = "sq-error",
    /// target = 1e-4 } }`) at the first recorded round at which it has come to the target, and goes on.
    /// By default each is compared after its last round, or at the cost or target of `[tune]`.
    #[schemars(example = ComparedAt::EXAMPLE)]
    pub at: Option<ComparedAt>,
    /// The quantity by which the algorithms are ranked; `metric` of `[tune]` takes its place there. By
    /// default it is `sq-error`, or without θ* the first loss that is recorded, and at a target
    /// `communications`. A cost ranks them by what they have paid until the target of `at`, or the target
    /// `until` of `[budget]`: an algorithm with a run that does not reach it within the budget is named,
    /// with the median of its runs' costs, and has no rank.
    #[schemars(example = &"communications")]
    pub metric: Option<Quantity>,
    /// The margin of practical importance. Where the intervals of ratios of errors end below 1 plus
    /// this, the headline of the page says that there is no practical difference. Losses often
    /// differ by less than 5 %: there 0.01 may be a better choice.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub margin: f64,
}

impl Default for Compare {
    fn default() -> Self {
        Self { at: None, metric: None, margin: PRACTICAL_MARGIN }
    }
}

/// The start θ_0 of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// θ* plus this number in every entry.
    Offset(f64),
    /// This point: d numbers.
    Point(Vec<f64>),
    /// The zero vector: write `true`.
    Zero(bool),
    /// The exact limit of the algorithm's mean, θ* plus its exact bias (linear problems): write
    /// `true`.
    Limit(bool),
}

/// The length of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Budget {
    /// The number of local steps of one client in all rounds, TH. It is rounded up to whole rounds
    /// of H (the largest E_k; 1/p; the batch of mini-batch SGD).
    #[schemars(range(min = 1), example = 10_000)]
    pub local_steps: Option<u64>,
    /// The number of rounds, T.
    #[schemars(range(min = 1), example = 100)]
    pub rounds: Option<u64>,
    /// The most communications: T is the largest number of rounds that costs at most this. With
    /// `gradients` as well, a run ends at that of the two limits which it reaches first.
    #[schemars(range(min = 1), example = 1000)]
    pub communications: Option<u64>,
    /// The most gradients of one client: T is the largest number of rounds that costs at most this.
    /// In each round the slowest client counts, and a batch of B counts B. Under random
    /// communication a round counts by its mean. Rounds of an algorithm in Python count by what it says of
    /// them (`calls_per_step`, or else one gradient per local step), and may cost more: `at` in
    /// `[compare]` and `[tune]` compares at gradients that were counted.
    #[schemars(range(min = 1), example = 10_000)]
    pub gradients: Option<u64>,
    /// The least number of rounds.
    #[schemars(range(min = 1), example = 50)]
    pub min_rounds: Option<u64>,
    /// A target at which a run ends before its budget: at the first recorded round whose value of the
    /// metric has come down to it, or up to it if the metric is an accuracy. A run that does not
    /// reach it makes all rounds. A run that has ended keeps its last values, and costs no more,
    /// where it is averaged or compared with runs that go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = Until { metric: Quantity::TestAccuracy, target: 0.9 })]
    pub until: Option<Until>,
}

/// What is recorded of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Record {
    /// About this many rounds are recorded, the first and the last among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 200, extend("default" = 200))]
    pub points: Option<u64>,
    /// The distance between recorded rounds, in place of `points`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 1)]
    pub every: Option<u64>,
    /// How `points` are spaced.
    pub spacing: Spacing,
    /// Whether θ itself is recorded.
    #[schemars(example = true)]
    pub iterates: bool,
    /// What is measured in addition to ‖θ_t − θ*‖² and, on linear problems, ‖θ_t − lim E θ_t‖². A
    /// metric is left out for algorithms and problems that do not have it. Losses and accuracies
    /// are refused where there are no such records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!(["sq-error-clients", "lyapunov"]))]
    pub metrics: Vec<Metric>,
    /// The definitions of those `metrics` that are defined outside of this program, with their code. Their versions and
    /// sources enter the ids of cells, since they determine what is recorded.
    #[serde(
        skip_deserializing,
        serialize_with = "own_metrics",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(skip)]
    pub own: Vec<Arc<CustomMetric>>,
    /// The point r from which `sq-error-reference` is the squared distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = ReferencePoint::OptimumOfClient(0))]
    pub reference: Option<ReferencePoint>,
    /// Vectors and matrices that are averaged over the rounds after the burn-in, one value per run.
    /// Claims about biases and covariances are tested on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = serde_json::json!(["bias"]))]
    pub averages: Vec<TimeAverage>,
    /// The fraction of the rounds before `averages` begin, in [0, 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0), example = 0.1, extend("default" = 0.1))]
    pub burn_in: Option<f64>,
    /// Whether θ* is found before the first step, and ‖θ_t − θ*‖² is recorded. On records without a
    /// closed form it is found by Newton's method, which may take minutes in thousands of unknowns:
    /// `false` saves this time where losses and accuracies are enough. Then nothing that needs θ* may
    /// be asked for. Figures and rankings that name no quantity are of the first loss among
    /// `metrics`, or else of the first metric, in place of `sq-error`. It is always `false` on a problem of your own whose
    /// θ* is not known.
    #[serde(skip_serializing_if = "is_true")]
    #[schemars(example = false, extend("default" = true))]
    pub optimum: bool,
}

/// Writes of each metric what the id of a cell has of it: its name, its version and the hash of its source.
fn own_metrics<S: Serializer>(metrics: &[Arc<CustomMetric>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(metrics.iter().map(|metric| {
        let known = &metric.known.definition;
        [("name", &known.kind), ("version", &known.version), ("source-hash", &known.source_hash)]
            .into_iter()
            .collect::<BTreeMap<_, _>>()
    }))
}

/// A point from which distances are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReferencePoint {
    /// This point: d numbers.
    Point(Vec<f64>),
    /// The optimum of the client of this number, counted from 0: the root of its own mean field, or the
    /// minimiser of its own loss. Clients of a split by column are in the sorted order of its values.
    OptimumOfClient(usize),
}

/// Whether a flag is true, which is its default: serde calls this to leave it out of what is hashed.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Record {
    fn default() -> Self {
        Self {
            // Without `every` as well, the default is `plan::record::POINTS`.
            points: None,
            every: None,
            spacing: Spacing::default(),
            iterates: false,
            metrics: Vec::new(),
            own: Vec::new(),
            reference: None,
            averages: Vec::new(),
            // The default is `BURN_IN`.
            burn_in: None,
            optimum: true,
        }
    }
}

/// The fraction of the rounds before averages begin, where `burn_in` is not written.
pub const BURN_IN: f64 = 0.1;

impl Record {
    /// The quantity by which runs are compared unless another one is named: ‖θ − θ*‖². Where θ* is left out, it is the
    /// first loss that is recorded. Without a loss it is the first metric that is not about control variates, which
    /// few algorithms have, and `sq-error` if nothing else is recorded either.
    pub fn default_quantity(&self) -> Quantity {
        if self.optimum {
            return Quantity::SqError;
        }
        // The first loss is preferred to any metric, wherever it is in the list.
        let mut metrics = self.metrics.iter();
        let loss = metrics.find(|metric| matches!(metric.measured().0, MeasuredOn::Loss(_)));
        let any = self.metrics.iter().find(|metric| metric.measured().0 != MeasuredOn::Variates);
        loss.or(any).map(|metric| metric.quantity()).unwrap_or_default()
    }

    /// The metric that is defined outside of this program, if this is one of those that are recorded.
    pub fn own_metric(&self, metric: Metric) -> Option<&CustomMetric> {
        let own = self.own.iter().find(|own| own.known.definition.kind == metric.name());
        own.map(|own| &**own)
    }

    /// The number of rounds of a run of this many rounds before its averages begin.
    pub fn rounds_before(&self, rounds: u64) -> u64 {
        (self.burn_in.unwrap_or(BURN_IN) * rounds as f64) as u64
    }
}

/// How recorded rounds are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Evenly.
    #[default]
    Linear,
    /// Evenly in the logarithm.
    Log,
}
