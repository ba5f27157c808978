//! Regularised logistic regression (RR §7), on synthetic blobs or, in
//! [`dataset`], on a user's records.
//!
//! f_c(θ) = E log(1 + exp(m − y xᵀθ)) + λ/2 ‖θ‖² over client c's records.
//! The oracle draws a batch of records with replacement.

pub mod dataset;
pub mod generated;
mod loss;
pub mod sparse;

use super::arrays::Files;
use super::cost::{ProblemCost, RecordCost, RecordCounts};
use super::fault::{Fault, Faults};
use super::form::{OracleForm, Visitor};
use super::penalty::Penalty;
use super::records::{InstanceInputs, Sampling};
use super::settings::OnRecords;
use super::size::{InstanceSize, MemoryPart};
use crate::rng::Stream;
use loss::class_of_label;
pub use loss::{Logistic, Loss, dense_tables};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logistic regression on synthetic records of two classes (RR, section 7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// d, the dimension of the records and of θ; 1 or more.
    #[schemars(range(min = 1), example = 5)]
    pub dimension: usize,
    /// The number of records that each client holds; 1 or more.
    #[schemars(range(min = 1), example = 100)]
    pub records: usize,
    /// N, the number of clients; 1 or more.
    #[schemars(range(min = 1), example = 10)]
    pub clients: usize,
    /// The two blobs of records, and which records clients hold.
    #[schemars(example = Data::Noisy { spread: 3.0, separation: 1.0 })]
    pub data: Data,
    /// Whether clients with the same distribution also hold the same records.
    #[serde(default)]
    pub split: SharedRecords,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; or a multiple of the smoothness of the losses without
    /// it. With 0, θ\* exists only if the classes of the records cannot be separated without an error; otherwise
    /// write `optimum = false` in `[record]`. Where records do not have full rank it is not unique, and errors
    /// are distances to the set of minimisers.
    #[schemars(extend("minimum" = 0.0), example = 0.1)]
    pub l2: Penalty,
    /// m, subtracted from the margin of each record; RR, section 7 prints 1, the usual loss has 0.
    #[serde(default)]
    #[schemars(example = 0.0)]
    pub margin: f64,
    /// B, the number of records drawn for each gradient; 1 or more.
    #[serde(default = "crate::problem::defaults::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
    /// How the records of a gradient are drawn.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = Sampling::Reshuffled, extend("default" = "with-replacement"))]
    pub sampling: Sampling,
}

/// The two blobs, of label ±1 and centre ±separation (1, …, 1)/√d.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// All clients have the same distribution.
    Noisy {
        /// The standard deviation of a blob in each direction, 0 or more.
        #[schemars(range(min = 0.0), example = 1.0)]
        spread: f64,
        /// The distance of a blob's centre from 0, 0 or more.
        #[serde(default = "crate::problem::defaults::unit")]
        #[schemars(range(min = 0.0), example = 1.0)]
        separation: f64,
    },
    /// Clients 0, 2, 4, … hold records of the blobs; clients 1, 3, 5, … hold records that
    /// were perturbed and whose labels were shuffled.
    Heterogeneous {
        /// The standard deviation of a blob in each direction, 0 or more.
        #[schemars(range(min = 0.0), example = 1.0)]
        spread: f64,
        /// The distance of a blob's centre from 0, 0 or more.
        #[serde(default = "crate::problem::defaults::unit")]
        #[schemars(range(min = 0.0), example = 1.0)]
        separation: f64,
        /// The standard deviation of the perturbation in each direction, 0 or more.
        #[schemars(range(min = 0.0), example = 1.0)]
        perturbation: f64,
    },
}

/// The numbers that describe the blobs, whichever kind of [`Data`] states them.
struct Blobs {
    /// The standard deviation of a blob in each direction.
    spread: f64,
    /// The distance of a blob's centre from 0.
    separation: f64,
    /// The standard deviation of the perturbation in each direction; 0 if nothing is perturbed.
    perturbation: f64,
}

impl Data {
    /// The blobs of these data.
    fn blobs(self) -> Blobs {
        match self {
            Self::Noisy { spread, separation } => Blobs { spread, separation, perturbation: 0.0 },
            Self::Heterogeneous { spread, separation, perturbation } => {
                Blobs { spread, separation, perturbation }
            }
        }
    }
}

/// Which records clients with the same distribution hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharedRecords {
    /// Such clients hold the same records, so that their oracles have the same distribution.
    #[default]
    Same,
    /// Every client holds records of its own, drawn from that distribution.
    Own,
}

impl super::settings::Settings for Settings {
    type Instance = Logistic;

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.dimension("dimension", self.dimension);
        faults.at_least_one("records", self.records as u64);
        faults.clients(self.clients);
        // Clients with the same distribution share a set, and there are at most two distributions.
        let sets = if self.split == SharedRecords::Own { self.clients } else { 2 };
        let bytes = self.records.saturating_mul(self.dimension).saturating_mul(8);
        faults.memory("records", sets, bytes);
        faults.at_least_one("batch", self.batch as u64);
        self.l2.check(&mut faults);
        let margin = self.margin;
        faults.require(margin.is_finite(), "margin", || format!("must be finite, not {margin}"));
        let Blobs { spread, separation, perturbation } = self.data.blobs();
        faults.non_negative("data.spread", spread);
        faults.non_negative("data.separation", separation);
        faults.non_negative("data.perturbation", perturbation);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: None, classes: true, batch: self.batch })
    }

    /// Counts the operations of an oracle call, of the mean field and of a record, which is dense; an oracle call is
    /// one of the exact oracle if `exact`.
    fn cost(&self, exact: bool) -> ProblemCost {
        let d = self.dimension;
        let sizes = RecordCounts::drawn(self.clients, d, self.records, self.batch);
        sizes.cost(exact, RecordCost::logistic(d as u64))
    }

    /// N, d, and the memory of the records of all sets.
    fn extent(&self) -> Option<InstanceSize> {
        let clients = self.clients;
        let dimension = self.dimension;
        let sets = if self.split == SharedRecords::Own { clients } else { clients.min(2) };
        // Each number twice, as it is drawn and in rows that are padded to whole registers, and the weights
        // of records at θ*.
        let row = 8.0 * (2 * dimension + 8) as f64;
        let bytes = sets as f64 * self.records as f64 * row;
        let what = format!("{sets} sets of {} records", self.records);
        let parts = vec![MemoryPart::new("records", bytes, what)];
        Some(InstanceSize { clients, dimension, parts })
    }

    /// Draws the sets of records, each from the stream of the first client that holds it, and searches for θ* unless
    /// `files` says otherwise. It reads no file.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Logistic, Fault> {
        let distributions = match self.data {
            Data::Noisy { .. } => 1,
            Data::Heterogeneous { .. } => 2,
        };
        let sets = match self.split {
            SharedRecords::Same => self.clients.min(distributions),
            SharedRecords::Own => self.clients,
        };
        let mut held = Vec::with_capacity(sets);
        let mut labels = Vec::with_capacity(sets);
        for set in 0..sets {
            let is_shuffled = set % distributions == 1;
            let set = draw_set(self, is_shuffled, &mut Stream::client_instance(seed, set));
            held.push(set.rows);
            labels.push(set.labels);
        }
        let loss = Loss { l2: self.l2.value(), margin: self.margin, batch: self.batch };
        let records = dense_tables(self.dimension, &loss, &held).with_labels(labels);
        let given = InstanceInputs {
            clients: Some(self.clients),
            optimum: files.optimum_search(),
            ..InstanceInputs::default()
        };
        Logistic::new(loss, records, given)
    }

    /// Builds the instance and calls the visitor with it, in this form of its oracle, which draws records as `sampling`
    /// says.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        self.sampling.visit(self.build(seed, files)?, form, visitor)
    }
}

/// The label of record i of a set, 1 or −1: the two classes take turns.
fn label(i: usize) -> f64 {
    if i.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// The records of a set.
struct DrawnSet {
    /// The rows y x of d numbers, one after the other, where y is the label: the loss needs x and y by their product
    /// alone.
    rows: Vec<f64>,
    /// The class of each record: 1 if y is 1, and 0 if it is −1.
    labels: Vec<u8>,
}

/// Draws the records of a set. If the set is `shuffled`, as those of clients 1, 3, 5, … of
/// heterogeneous data are, records are perturbed and their labels are permuted, so that the label says nothing of the
/// blob.
fn draw_set(settings: &Settings, shuffled: bool, rng: &mut Stream) -> DrawnSet {
    let d = settings.dimension;
    let n = settings.records;
    let Blobs { spread, separation, perturbation } = settings.data.blobs();
    let along = separation / libm::sqrt(d as f64);
    let mut x: Vec<f64> = Vec::with_capacity(n * d);
    for i in 0..n {
        x.extend((0..d).map(|_| label(i) * along + spread * rng.gaussian()));
    }
    let mut labels: Vec<f64> = (0..n).map(label).collect();
    if shuffled {
        x.iter_mut().for_each(|x| *x += perturbation * rng.gaussian());
        labels = rng.distinct(n, n).into_iter().map(label).collect();
    }
    for (row, y) in x.chunks_exact_mut(d).zip(&labels) {
        row.iter_mut().for_each(|x| *x *= y);
    }
    DrawnSet { rows: x, labels: labels.into_iter().map(class_of_label).collect() }
}

#[cfg(test)]
mod tests;
