//! Logistic regression on generated sparse records.
//!
//! A record has k non-zeros, |N(0, 1)| in absolute value and then scaled to norm 1. The features
//! are distinct draws from P(j) ∝ (j + 1)^−a, so that few features are frequent and most are rare,
//! as in texts. Its label is +1 with probability σ(xᵀ(w + v_c)), where w ~ N(0, signal² I) is
//! common to all clients and v_c ~ N(0, heterogeneity² I) is the client's own.

use super::loss::{Loss, class_of_label};
use super::sparse::SparseLogistic;
use crate::kernel::alias::Alias;
use crate::kernel::exp::sigmoid;
use crate::kernel::{SparseRecords, SparseRows, dot};
use crate::problem::arrays::Files;
use crate::problem::cost::{ProblemCost, RecordCost, RecordCounts};
use crate::problem::fault::{Fault, Faults, MOST_SPARSE_FEATURES};
use crate::problem::form::{OracleForm, Visitor};
use crate::problem::penalty::Penalty;
use crate::problem::records::{InstanceInputs, Sampling};
use crate::problem::settings::OnRecords;
use crate::problem::size::{InstanceSize, MemoryPart};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logistic regression on generated records of which few features are not 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// d, the dimension of the records and of θ; 1 or more.
    #[schemars(range(min = 1), example = 47_236)]
    pub dimension: usize,
    /// The number of features of a record that are not 0; from 1 to d.
    #[schemars(range(min = 1), example = 75)]
    pub nonzeros: usize,
    /// The number of records that each client holds; 1 or more.
    #[schemars(range(min = 1), example = 200)]
    pub records: usize,
    /// N, the number of clients; 1 or more.
    #[schemars(range(min = 1), example = 100)]
    pub clients: usize,
    /// The exponent a of the frequencies (j + 1)^−a of features j = 0, 1, …; 0 or more.
    #[serde(default = "crate::problem::defaults::unit")]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub frequency_decay: f64,
    /// The standard deviation of xᵀw over the true parameters w that all clients share, 0 or more.
    #[serde(default = "crate::problem::defaults::unit")]
    #[schemars(range(min = 0.0), example = 4.0)]
    pub signal: f64,
    /// The standard deviation of xᵀv over the deviations v of a client's true parameters from the
    /// shared ones, 0 or more.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub heterogeneity: f64,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more; or a multiple of the smoothness of the losses without
    /// it. With 0, θ\* exists only if the classes of the records cannot be separated without an error; otherwise
    /// write `optimum = false` in `[record]`. Where records do not have full rank it is not unique, and errors
    /// are distances to the set of minimisers.
    #[schemars(extend("minimum" = 0.0), example = 0.001)]
    pub l2: Penalty,
    /// B, the number of records drawn for each gradient; 1 or more.
    #[serde(default = "crate::problem::defaults::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
    /// How the records of a gradient are drawn.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = Sampling::Reshuffled, extend("default" = "with-replacement"))]
    pub sampling: Sampling,
}

/// The class of each of these rows y x: the features of generated records are positive, so that their numbers have the
/// sign of the label.
fn labels_of_rows(rows: &SparseRows) -> Vec<u8> {
    rows.iter().map(|row| class_of_label(row.values[0])).collect()
}

/// How many features are drawn at most for each non-zero of a record, since a feature may be drawn again.
/// A record that lacks features then gets the most frequent ones that it does not have.
const ATTEMPTS: usize = 32;

impl crate::problem::settings::Settings for Settings {
    type Instance = SparseLogistic;

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let Self { dimension, nonzeros, .. } = *self;
        faults.at_least_one("dimension", dimension as u64);
        faults.require(dimension <= MOST_SPARSE_FEATURES, "dimension", || {
            format!("must be at most {MOST_SPARSE_FEATURES}, not {dimension}")
        });
        faults.at_least_one("nonzeros", nonzeros as u64);
        faults.require(nonzeros <= dimension.max(1), "nonzeros", || {
            format!("must be at most the dimension, {dimension}, not {nonzeros}")
        });
        faults.at_least_one("records", self.records as u64);
        faults.clients(self.clients);
        faults.memory("dimension", self.clients, dimension.saturating_mul(24));
        let bytes = self.records.saturating_mul(nonzeros).saturating_mul(12);
        faults.memory("records", self.clients, bytes);
        faults.non_negative("frequency-decay", self.frequency_decay);
        faults.non_negative("signal", self.signal);
        faults.non_negative("heterogeneity", self.heterogeneity);
        self.l2.check(&mut faults);
        faults.at_least_one("batch", self.batch as u64);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: None, classes: true, batch: self.batch })
    }

    /// Counts the operations of an oracle call, of the mean field and of a record, which is sparse; an oracle call is
    /// one of the exact oracle if `exact`.
    fn cost(&self, exact: bool) -> ProblemCost {
        let nonzeros = self.nonzeros as u64;
        let sizes = RecordCounts::drawn(self.clients, self.dimension, self.records, self.batch);
        sizes.cost(exact, RecordCost::sparse_logistic(nonzeros))
    }

    /// N, d, and the memory of the records and of the tables from which features are drawn.
    fn extent(&self) -> Option<InstanceSize> {
        let clients = self.clients;
        let dimension = self.dimension;
        let bytes = clients as f64 * self.records as f64 * (12 * self.nonzeros + 16) as f64;
        let what = format!("{clients} sets of {} records", self.records);
        let share = MemoryPart::new("records", bytes, what);
        let vectors = MemoryPart::new("dimension", 40.0 * dimension as f64, "tables of features");
        Some(InstanceSize { clients, dimension, parts: vec![share, vectors] })
    }

    /// Draws w from the stream that all clients share, and the records of each client, with its v, from its
    /// own; and searches for θ* unless `files` says otherwise. It reads no file.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<SparseLogistic, Fault> {
        let weights: Vec<(u32, f64)> = (0..self.dimension)
            .map(|j| (j as u32, libm::pow((j + 1) as f64, -self.frequency_decay)))
            .collect();
        let features = Alias::new(&weights);
        let mut rng = Stream::shared_instance(seed);
        let shared: Vec<f64> = (0..self.dimension).map(|_| self.signal * rng.gaussian()).collect();
        let loss = Loss { l2: self.l2.value(), margin: 0.0, batch: self.batch };
        let mut sets = Vec::with_capacity(self.clients);
        for client in 0..self.clients {
            let mut rng = Stream::client_instance(seed, client);
            sets.push(self.draw_set(&features, &shared, &mut rng));
        }
        let labels = sets.iter().map(labels_of_rows).collect();
        let records = SparseRecords::new(loss, sets).with_labels(labels);
        let given = InstanceInputs { optimum: files.optimum_search(), ..InstanceInputs::default() };
        SparseLogistic::new(loss, records, given)
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

impl Settings {
    /// Draws the true parameters and the records of a client, and returns the rows y x, one for each record.
    /// `features` is the table from which features are drawn by their frequencies, and `shared` is w, d numbers;
    /// `rng` is the client's stream of this instance.
    fn draw_set(&self, features: &Alias<u32>, shared: &[f64], rng: &mut Stream) -> SparseRows {
        let truth: Vec<f64> = if self.heterogeneity == 0.0 {
            shared.to_vec()
        } else {
            shared.iter().map(|w| w + self.heterogeneity * rng.gaussian()).collect()
        };
        let rows = (0..self.records).map(|_| {
            let columns = self.draw_columns(features, rng);
            let mut row: Vec<f64> = columns.iter().map(|_| rng.gaussian().abs()).collect();
            let norm = libm::sqrt(dot(&row, &row));
            let along = columns
                .iter()
                .zip(&row)
                .fold(0.0, |sum, (j, x)| sum + x / norm * truth[*j as usize]);
            let label = if rng.uniform() < sigmoid(along) { 1.0 } else { -1.0 };
            row.iter_mut().for_each(|x| *x *= label / norm);
            columns.into_iter().zip(row)
        });
        SparseRows::from_rows(self.dimension, rows)
    }

    /// Draws which features of a record are not 0: `nonzeros` distinct numbers of features, from 0, in increasing
    /// order. `nonzeros` must be at most d, as `check` demands.
    fn draw_columns(&self, features: &Alias<u32>, rng: &mut Stream) -> Vec<u32> {
        let mut columns = Vec::with_capacity(self.nonzeros);
        let drawn = (0..ATTEMPTS * self.nonzeros).map(|_| features.pick(rng.bits()));
        for column in drawn.chain(0..self.dimension as u32) {
            if let Err(place) = columns.binary_search(&column) {
                columns.insert(place, column);
            }
            if columns.len() == self.nonzeros {
                break;
            }
        }
        columns
    }
}
