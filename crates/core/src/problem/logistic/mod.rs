//! Regularised logistic regression (RR §7), on synthetic blobs or, in
//! [`dataset`], on a user's records.
//!
//! f_c(θ) = E log(1 + exp(m − y xᵀθ)) + λ/2 ‖θ‖² over client c's records.
//! The oracle draws a batch of records with replacement.

pub mod dataset;
pub mod generated;
pub mod sparse;

use super::arrays::Files;
use super::cost::{Held, RecordCost, dense_call};
use super::records::{InstanceInputs, RecordLoss, RecordProblem, RecordSets};
use super::{Fault, Faults, InstanceSize, MemoryPart, OnRecords, ProblemCost};
pub use crate::kernel::LogisticLoss as Loss;
use crate::kernel::exp::sigmoid;
use crate::kernel::records::{Link, RecordTables};
use crate::linalg::{DD_EPSILON, DD_EXP_ERROR, Dd, Matrix};
use crate::rng::Stream;
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
    /// λ, the weight of the penalty λ/2 ‖θ‖², above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub l2: f64,
    /// m, subtracted from the margin of each record; RR, section 7 prints 1, the usual loss has 0.
    #[serde(default)]
    #[schemars(example = 0.0)]
    pub margin: f64,
    /// B, the number of records drawn with replacement for each gradient; 1 or more.
    #[serde(default = "super::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
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
        #[serde(default = "crate::problem::unit")]
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
        #[serde(default = "crate::problem::unit")]
        #[schemars(range(min = 0.0), example = 1.0)]
        separation: f64,
        /// The standard deviation of the perturbation in each direction, 0 or more.
        #[schemars(range(min = 0.0), example = 1.0)]
        perturbation: f64,
    },
}

impl Data {
    /// Spread, separation and perturbation.
    fn parts(self) -> (f64, f64, f64) {
        match self {
            Self::Noisy { spread, separation } => (spread, separation, 0.0),
            Self::Heterogeneous { spread, separation, perturbation } => {
                (spread, separation, perturbation)
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

impl super::Settings for Settings {
    type Instance = Logistic;

    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.dimension("dimension", self.dimension);
        faults.at_least_one("records", self.records as u64);
        faults.clients(self.clients);
        let sets = if self.split == SharedRecords::Own { self.clients } else { 2 };
        let bytes = self.records.saturating_mul(self.dimension).saturating_mul(8);
        faults.memory("records", sets, bytes);
        faults.at_least_one("batch", self.batch as u64);
        faults.positive("l2", self.l2);
        let margin = self.margin;
        faults.require(margin.is_finite(), "margin", || format!("must be finite, not {margin}"));
        let (spread, separation, perturbation) = self.data.parts();
        faults.non_negative("data.spread", spread);
        faults.non_negative("data.separation", separation);
        faults.non_negative("data.perturbation", perturbation);
        faults.0
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: None, classes: true, batch: self.batch })
    }

    fn cost(&self, exact: bool) -> ProblemCost {
        let (held, d) = (self.records, self.dimension);
        let sizes = Held::drawn(self.clients, d, held, self.batch);
        sizes.cost(exact, RecordCost::logistic(dense_call(d as u64), d as u64))
    }

    fn extent(&self) -> Option<InstanceSize> {
        let (clients, dimension) = (self.clients, self.dimension);
        let sets = if self.split == SharedRecords::Own { clients } else { clients.min(2) };
        // Rows as they are drawn, rows padded to whole registers, weights.
        let row = 8.0 * (2 * dimension + 8) as f64;
        let bytes = sets as f64 * self.records as f64 * row;
        let what = format!("{sets} sets of {} records", self.records);
        let parts = vec![MemoryPart::new("records", bytes, what)];
        Some(InstanceSize { clients, dimension, parts })
    }

    fn build(&self, seed: u64, files: &dyn Files) -> Result<Logistic, Fault> {
        let distributions = match self.data {
            Data::Noisy { .. } => 1,
            Data::Heterogeneous { .. } => 2,
        };
        let sets = match self.split {
            SharedRecords::Same => self.clients.min(distributions),
            SharedRecords::Own => self.clients,
        };
        let held = (0..sets).map(|set| {
            draw(self, set % distributions == 1, &mut Stream::client_instance(seed, set))
        });
        let loss = Loss { l2: self.l2, margin: self.margin, batch: self.batch };
        let records = dense(self.dimension, &loss, &held.collect::<Vec<_>>());
        let given = InstanceInputs {
            clients: Some(self.clients),
            optimum: files.optimum_search(),
            ..InstanceInputs::default()
        };
        Logistic::new(loss, records, given)
    }
}

/// An instance on dense records.
pub type Logistic = RecordProblem<Loss, RecordTables>;

/// Dense rows y x of d numbers, in sets.
pub fn dense(d: usize, loss: &Loss, sets: &[Vec<f64>]) -> RecordTables {
    RecordTables::new(d, loss.l2, Link::Logistic { margin: loss.margin }, sets)
}

/// The numbers of a record y x are s = σ(m − y xᵀθ), and δ = −s.
impl<S: RecordSets> RecordLoss<S> for Loss {
    /// σ' is at most 1/4.
    const LARGEST_WEIGHT: f64 = 0.25;
    /// σ'' = σ'(1 − 2σ).
    const SELF_CONCORDANCE: f64 = 1.0;
    /// |σ''| is at most 1/(6√3).
    const INVERSE_THIRD: Option<f64> = Some(6.0 * 1.732_050_807_568_877_2);
    const SHARES_FIRST: bool = true;

    fn l2(&self) -> f64 {
        self.l2
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn record_numbers(&self, records: &S, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut weights = records.products(set, theta);
        weights.iter_mut().for_each(|along| *along = sigmoid(self.margin - *along));
        weights
    }
    fn residuals(&self, _records: &S, _set: usize, at: &[f64]) -> Vec<f64> {
        at.iter().map(|s| -s).collect()
    }
    /// The error of σ is at most a quarter of that of m − u, and that of its operations.
    fn extended_numbers(&self, _: &S, _set: usize, _: usize, u: &mut [Dd], error: f64) -> f64 {
        let z = u[0].negated().plus(self.margin);
        let rounding = DD_EPSILON * (self.margin.abs() + u[0].hi.abs());
        u[0] = extended_sigmoid(z);
        0.25 * (error + 2.0 * rounding) + 4.0 * DD_EXP_ERROR
    }
    fn extended_residuals(&self, _: &S, _set: usize, _record: usize, numbers: &mut [Dd]) {
        numbers[0] = numbers[0].negated();
    }
    fn extended_change(&self, numbers: &[Dd], v: &mut [Dd]) {
        let s = numbers[0];
        v[0] = s.times(s.negated().plus(1.0)).times(v[0]);
    }
    fn weight(&self, at: &[f64], i: usize, _k: usize, _l: usize) -> f64 {
        at[i] * (1.0 - at[i])
    }
    fn linearised(&self, _records: &S, (_, record): (usize, usize), at: &[f64], v: &mut [f64]) {
        let s = at[record];
        v[0] = s * (1.0 - s) * v[0] - s;
    }
    /// The sum of log(1 + exp(m − y xᵀθ)).
    fn losses(&self, records: &S, set: usize, theta: &[f64]) -> f64 {
        let along = records.products(set, theta);
        along.iter().fold(0.0, |sum, along| sum + softplus(self.margin - along))
    }
    fn hits(&self, records: &S, set: usize, theta: &[f64]) -> Option<f64> {
        let along = records.products(set, theta);
        Some(along.into_iter().fold(0.0, |sum, along| sum + predicted(along)))
    }
    fn divergences(
        &self,
        records: &S,
        set: usize,
        _at: &[f64],
        [theta, star]: [&[f64]; 2],
    ) -> Vec<f64> {
        let pairs = records.products(set, theta).into_iter().zip(records.products(set, star));
        pairs.map(|(here, there)| divergence(self.margin - here, self.margin - there)).collect()
    }
    /// −E s(1 − s)(1 − 2s)(xᵀMx) y x.
    fn curvature(&self, records: &S, set: usize, at: &[f64], m: &Matrix) -> Vec<f64> {
        let n = at.len() as f64;
        let factor = |(record, s): (usize, &f64)| {
            let third = s * (1.0 - s) * (1.0 - 2.0 * s);
            -third * records.contracted(set, record, m)[(0, 0)] / n
        };
        let factors: Vec<f64> = at.iter().enumerate().map(factor).collect();
        let mut sum = vec![0.0; m.rows()];
        records.add_rows(set, &factors, &mut sum);
        sum
    }
}

/// softplus(u) − softplus(v) − σ(v)(u − v), 0 or more, to a few ulps also
/// where u is close to v.
fn divergence(u: f64, v: f64) -> f64 {
    let (s, step) = (sigmoid(v), u - v);
    if step.abs() < 1e-2 {
        // Taylor's series of softplus at v, from its second derivative on.
        let w = s * (1.0 - s);
        let third = w * (1.0 - 2.0 * s);
        let fourth = w * (1.0 - 6.0 * w);
        let fifth = third * (1.0 - 12.0 * w);
        let sixth = w * (1.0 - 30.0 * w + 120.0 * w * w);
        let tail = fifth / 120.0 + step * sixth / 720.0;
        return step
            * step
            * (w / 2.0 + step * (third / 6.0 + step * (fourth / 24.0 + step * tail)));
    }
    softplus(u) - softplus(v) - s * step
}

/// σ(z) in double-double, from e^−|z|, which is taken to be 0 below e^−700.
fn extended_sigmoid(z: Dd) -> Dd {
    let falling = if z.hi < 0.0 { z } else { z.negated() };
    let power = if falling.hi < -700.0 { Dd::default() } else { falling.exp() };
    let above = if z.hi < 0.0 { power } else { Dd::from(1.0) };
    above.over(power.plus(1.0))
}

/// log(1 + eᵘ).
fn softplus(u: f64) -> f64 {
    u.max(0.0) + libm::log1p(libm::exp(-u.abs()))
}

/// Whether a record's class is predicted, from y xᵀθ: 1 or 0, and half on the boundary.
fn predicted(along: f64) -> f64 {
    match along {
        along if along > 0.0 => 1.0,
        0.0 => 0.5,
        _ => 0.0,
    }
}

/// Rows y x of one distribution; with `shuffled`, perturbed and with permuted labels.
fn draw(settings: &Settings, shuffled: bool, rng: &mut Stream) -> Vec<f64> {
    let (d, n) = (settings.dimension, settings.records);
    let (spread, separation, perturbation) = settings.data.parts();
    let label = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
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
    for (row, y) in x.chunks_exact_mut(d).zip(labels) {
        row.iter_mut().for_each(|x| *x *= y);
    }
    x
}

#[cfg(test)]
mod tests;
