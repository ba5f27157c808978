//! Regularised logistic regression (RR §7), on synthetic blobs or, in
//! [`dataset`], on a user's records.
//!
//! f_c(θ) = E log(1 + exp(m − y xᵀθ)) + λ/2 ‖θ‖² over client c's records.
//! The oracle draws a batch of records with replacement.

pub mod dataset;
pub mod generated;
pub mod sparse;

use super::affine::{batch_covariance, batch_noise, batch_trace};
use super::arrays::Files;
use super::minimise::{self, Minimiser};
use super::record_loss::{self, RecordLoss, SetAt, SetFacts};
use super::{
    DrawSmoothness, Extent, Facts, Fault, Faults, Given, Problem, RecordMetrics, RecordSizes,
    RecordsOf, Share, generic,
};
pub use crate::kernel::LogisticLoss as Loss;
use crate::kernel::exp::sigmoid;
use crate::kernel::outer::add_rows;
use crate::kernel::records::{Link, RecordTables, Tangent};
use crate::kernel::{
    Cohort, CohortSteps, InstructionSet, Rows, axpy, dot, products, squared_distance,
};
use crate::linalg::Matrix;
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
    /// B, the number of records drawn with replacement in each oracle call; 1 or more.
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
        #[serde(default = "unit")]
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
        #[serde(default = "unit")]
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

fn unit() -> f64 {
    1.0
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

    fn linear(&self) -> bool {
        false
    }

    fn batch(&self) -> u64 {
        self.batch as u64
    }

    fn record_metrics(&self) -> RecordMetrics {
        RecordMetrics { loss: true, accuracy: true, test: false }
    }

    fn extent(&self) -> Option<Extent> {
        let (clients, dimension) = (self.clients, self.dimension);
        let sets = if self.split == SharedRecords::Own { clients } else { clients.min(2) };
        // Rows as they are drawn, rows padded to whole registers, weights.
        let row = 8.0 * (2 * dimension + 8) as f64;
        let bytes = sets as f64 * self.records as f64 * row;
        let what = format!("{sets} sets of {} records", self.records);
        Some(Extent { clients, dimension, shares: vec![Share::new("records", bytes, what)] })
    }

    fn build(&self, seed: u64, _files: &dyn Files) -> Result<Logistic, Fault> {
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
        Logistic::new(self.dimension, self.clients, loss, held.collect())
    }
}

/// An instance.
pub struct Logistic {
    d: usize,
    clients: usize,
    /// The clients' shares, if they are not equal; then each client has its own record set.
    client_shares: Option<Vec<f64>>,
    loss: Loss,
    /// The distinct record sets; client c holds set c modulo their number.
    tables: RecordTables,
    held: Vec<SetFacts>,
    /// The records of the test set, rows y x of d numbers.
    test_rows: Vec<f64>,
    optimum: Minimiser,
}

impl Logistic {
    /// The instance in which client c holds record set c modulo their number; each set is a
    /// list of rows y x of d numbers.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    pub fn new(d: usize, clients: usize, loss: Loss, held: Vec<Vec<f64>>) -> Result<Self, Fault> {
        Self::build(d, clients, loss, held, Given::default())
    }

    /// The instance in which each client holds its own record set, with what else is given.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    pub fn with(
        d: usize,
        loss: Loss,
        held: Vec<Vec<f64>>,
        given: Given<'_>,
    ) -> Result<Self, Fault> {
        Self::build(d, held.len(), loss, held, given)
    }

    /// The same instance with a test set, rows y x of d numbers.
    pub fn with_test(self, test_rows: Vec<f64>) -> Self {
        Self { test_rows, ..self }
    }

    fn build(
        d: usize,
        clients: usize,
        loss: Loss,
        held: Vec<Vec<f64>>,
        Given { shares: client_shares, optimum: known }: Given<'_>,
    ) -> Result<Self, Fault> {
        let tables = RecordTables::new(d, loss.l2, Link::Logistic { margin: loss.margin }, &held);
        let held = held.iter().map(|_| SetFacts::default()).collect();
        let (test_rows, optimum) = (Vec::new(), Minimiser::unknown(d));
        let mut instance =
            Self { d, clients, client_shares, loss, tables, held, test_rows, optimum };
        instance.optimum = record_loss::optimum(&instance, instance.shares(), known)?;
        Ok(instance)
    }

    /// The mean of `value` over records: of the clients, by their shares, or of the test set.
    fn mean_over(&self, of: RecordsOf, value: impl Fn(&[f64]) -> f64) -> Option<f64> {
        if of == RecordsOf::Test {
            let rows = self.test_rows.chunks_exact(self.d);
            let n = rows.len() as f64;
            return (n > 0.0).then(|| rows.fold(0.0, |sum, row| sum + value(row)) / n);
        }
        let set = |sum, (set, share)| {
            let rows = self.tables.rows(set);
            let n = rows.len() as f64;
            sum + share * rows.iter().fold(0.0, |sum, row| sum + value(row)) / n
        };
        Some(self.shares().fold(0.0, set))
    }

    /// The record sets, and the fraction of the clients that hold each, or the share of the one
    /// client that does.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        let (n, sets) = (self.clients, self.held.len());
        (0..sets).map(move |set| match &self.client_shares {
            Some(shares) => (set, shares[set]),
            None => (set, (n - set).div_ceil(sets) as f64 / n as f64),
        })
    }

    /// [`Problem::advance`] on a chosen instruction set, of which the bits are independent.
    pub fn advance_on(&self, path: InstructionSet, cohort: Cohort<'_, ()>) {
        let rest = if self.loss.batch == 1 {
            self.tables.advance_on(path, cohort, None)
        } else {
            Some(cohort)
        };
        if let Some(cohort) = rest {
            generic::advance(self, cohort);
        }
    }

    /// [`Problem::advance_linearised`] on a chosen instruction set, of which the bits are independent.
    fn advance_linearised_on<'a>(
        &self,
        path: InstructionSet,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>> {
        if self.loss.batch > 1 {
            return Some(cohort);
        }
        let tangent = Tangent { star: self.optimum(), weights: &|set| self.at_optimum(set) };
        self.tables.advance_on(path, cohort, Some(&tangent))
    }

    /// ∇f of a record set, λθ − E[s y x], from the weights s at θ.
    fn gradient(&self, set: usize, theta: &[f64], weights: &[f64]) -> Vec<f64> {
        let n = weights.len() as f64;
        let mut pull = vec![0.0; self.d];
        add_rows(self.tables.rows(set), weights, &mut pull);
        pull.iter().zip(theta).map(|(pull, theta)| self.loss.l2 * theta - pull / n).collect()
    }

    /// ∇²f of a record set, E[s(1 − s) x xᵀ] + λI, from the weights s.
    fn hessian(&self, set: usize, weights: &[f64]) -> Matrix {
        let n = weights.len() as f64;
        let factors: Vec<f64> = weights.iter().map(|s| s * (1.0 - s) / n).collect();
        let sum = Matrix::weighted_gram(self.tables.rows(set), &factors);
        sum.plus(self.loss.l2, &Matrix::identity(self.d))
    }
}

impl RecordLoss for Logistic {
    fn l2(&self) -> f64 {
        self.loss.l2
    }
    fn set_of(&self, client: usize) -> usize {
        client % self.held.len()
    }
    fn set_facts(&self, set: usize) -> &SetFacts {
        &self.held[set]
    }
    /// σ(m − y xᵀθ) of each record.
    fn at(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let mut weights = self.tables.errors(set, theta);
        weights.iter_mut().for_each(|error| *error = -*error);
        weights
    }
    fn mean_gradient(&self, sets: &[SetAt], theta: &[f64]) -> Vec<f64> {
        let mut mean = vec![0.0; self.d];
        for SetAt { set, share, at } in sets {
            axpy(*share, &self.gradient(*set, theta, at), &mut mean);
        }
        mean
    }
    /// share E[s(1 − s) x xᵀ] v.
    fn add_product(&self, set: usize, share: f64, weights: &[f64], v: &[f64], out: &mut [f64]) {
        let rows = self.tables.rows(set);
        let mut along = vec![0.0; rows.len()];
        products(rows, v, &mut along);
        let scale = share / rows.len() as f64;
        along.iter_mut().zip(weights).for_each(|(along, s)| *along *= scale * (s * (1.0 - s)));
        add_rows(rows, &along, out);
    }
    fn mean_hessian(&self, sets: &[SetAt]) -> Matrix {
        let mut sum = Matrix::zeros(self.d, self.d);
        if self.d <= minimise::MOST_REFINED {
            return sets
                .iter()
                .fold(sum, |sum, of| sum.plus(of.share, &self.hessian(of.set, &of.at)));
        }
        for SetAt { set, share, at } in sets {
            let scale = share / at.len() as f64;
            let factors: Vec<f64> = at.iter().map(|s| scale * (s * (1.0 - s))).collect();
            sum.add_to_lower_triangle(self.tables.rows(*set), &factors);
        }
        (0..self.d).for_each(|i| sum[(i, i)] += self.loss.l2);
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

/// log(1 + eᵘ).
fn softplus(u: f64) -> f64 {
    u.max(0.0) + libm::log1p(libm::exp(-u.abs()))
}

/// The noise of batches with the weight of a record linearised at θ*, s + s(1 − s)(u − u*), as a
/// map of `s`; λ adds no noise.
fn noise(batch: usize, s: &Matrix, rows: Rows<'_>, weights: &[f64]) -> Matrix {
    let records = rows.iter().zip(weights).map(|(row, weight)| {
        let mut w: Vec<f64> = row.iter().map(|x| weight * (1.0 - weight) * x).collect();
        w.push(-weight);
        (row, w)
    });
    batch_noise(batch, s, records)
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

impl Facts for Logistic {
    fn clients(&self) -> usize {
        self.clients
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.client_shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum.theta
    }
    fn optimum_error(&self) -> Option<f64> {
        Some(self.optimum.error)
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        self.optimum_of(self.set_of(client))
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        let set = self.set_of(client);
        field.copy_from_slice(&self.gradient(set, theta, &self.at(set, theta)));
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let set = self.set_of(client);
        self.hessian(set, self.at_optimum(set))
    }
    fn symmetric(&self) -> bool {
        true
    }
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        self.hessian_product(weights, x, out);
    }
    fn product_effort(&self) -> f64 {
        let records = (0..self.held.len()).map(|set| self.tables.rows(set).len()).sum::<usize>();
        (2 * records * self.d) as f64
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let set = self.set_of(client);
        batch_covariance(self.loss.batch, self.tables.rows(set), self.at_optimum(set))
    }
    fn noise_trace(&self, client: usize) -> f64 {
        let set = self.set_of(client);
        batch_trace(self.loss.batch, self.tables.rows(set), self.at_optimum(set))
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let set = self.set_of(client);
        Some(noise(self.loss.batch, s, self.tables.rows(set), self.at_optimum(set)))
    }
    /// −E s(1 − s)(1 − 2s)(xᵀMx) y x.
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        let set = self.set_of(client);
        let rows = self.tables.rows(set);
        let n = rows.len() as f64;
        let mut sum = vec![0.0; self.d];
        for (row, s) in rows.iter().zip(self.at_optimum(set)) {
            let third = s * (1.0 - s) * (1.0 - 2.0 * s);
            axpy(-third * dot(row, &m.apply(row)) / n, row, &mut sum);
        }
        Some(sum)
    }
    fn convexity(&self) -> Option<f64> {
        Some(self.loss.l2)
    }
    /// λ + ‖E xxᵀ‖/4, since σ' is at most 1/4.
    fn mean_smoothness(&self, client: usize) -> Option<f64> {
        let set = self.set_of(client);
        let halves = vec![0.5; self.tables.rows(set).len()];
        Some(self.hessian(set, &halves).symmetric_extremes()?.0)
    }
    /// E‖x‖³/(6√3), since |σ''| is at most 1/(6√3).
    fn third_derivative(&self, client: usize) -> Option<f64> {
        let rows = self.tables.rows(self.set_of(client));
        let cube = |row: &[f64]| libm::pow(dot(row, row), 1.5);
        let sum = rows.iter().map(cube).fold(0.0, |sum, x| sum + x);
        Some(sum / rows.len() as f64 / (6.0 * libm::sqrt(3.0)))
    }
    /// σ' is at most 1/4.
    fn draw_smoothness(&self) -> DrawSmoothness {
        let rows = (0..self.held.len()).flat_map(|set| self.tables.rows(set).iter());
        let longest = rows.map(|row| dot(row, row)).fold(0.0, f64::max);
        DrawSmoothness::AtMost(self.loss.l2 + longest / 4.0)
    }
    fn draws(&self) -> usize {
        self.held_records().map_or(1, |held| held.largest)
    }
    fn distribution(&self, client: usize) -> usize {
        self.set_of(client)
    }
    fn linear(&self) -> bool {
        false
    }
    fn batch(&self) -> u64 {
        self.loss.batch as u64
    }
    /// The mean of log(1 + exp(m − y xᵀθ)).
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |row| softplus(self.loss.margin - dot(theta, row)))
    }
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |row| predicted(dot(theta, row)))
    }
    /// The mean of Bregman divergences from θ*, where the gradient is 0, so that there is
    /// no cancellation close to θ*.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let mut gap = 0.5 * self.loss.l2 * squared_distance(theta, self.optimum());
        for (set, share) in self.shares() {
            let rows = self.tables.rows(set);
            let weight = share / rows.len() as f64;
            let along = |theta: &[f64]| {
                let mut along = vec![0.0; rows.len()];
                products(rows, theta, &mut along);
                along
            };
            for (here, there) in along(theta).into_iter().zip(along(self.optimum())) {
                gap += weight * divergence(self.loss.margin - here, self.loss.margin - there);
            }
        }
        Some(gap)
    }
}

impl Problem for Logistic {
    type State = ();

    #[inline(always)]
    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.tables.field(client, theta, self.loss.batch, |records| rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        self.advance_on(InstructionSet::best(), cohort);
    }

    fn advance_linearised<'a>(&self, cohort: Cohort<'a, ()>) -> Option<Cohort<'a, ()>> {
        self.advance_linearised_on(InstructionSet::best(), cohort)
    }

    fn held_records(&self) -> Option<RecordSizes> {
        let counts = (0..self.held.len()).map(|set| self.tables.records(set));
        Some(RecordSizes::of(self.d, counts))
    }

    fn advance_together(&self, runs: Vec<CohortSteps<'_, ()>>) {
        generic::advance_records_together(self, (&self.tables, self.loss.batch), runs);
    }

    fn has_twin(&self) -> bool {
        true
    }

    /// σ(u) ≈ s + s(1 − s)(u − u*) with s = σ(u*), record by record.
    #[inline(always)]
    fn linearised(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        let d = theta.len();
        let set = self.set_of(client);
        let weights = self.at_optimum(set);
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.loss.l2 * theta;
        }
        let star = &self.optimum()[..d];
        for _ in 0..self.loss.batch {
            let record = rng.index(weights.len());
            let row = &self.tables.row(set, record)[..d];
            let s = weights[record];
            let apart = crate::kernel::fold_sum(d, |i| row[i] * (star[i] - theta[i]));
            let weight = s + s * (1.0 - s) * apart;
            axpy(-weight / self.loss.batch as f64, row, field);
        }
    }
}

#[cfg(test)]
mod tests;
