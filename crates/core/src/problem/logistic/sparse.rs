//! Logistic regression on sparse records: the loss of [`super::Logistic`], with local steps
//! whose cost grows with the non-zeros of a record instead of d ([`crate::kernel::SparseSteps`]).
//!
//! *Invariant*: d × d matrices are made only by the facts that are such matrices, and by the
//! search for an optimum in few unknowns.

use super::{Loss, divergence, noise, predicted, softplus};
use crate::kernel::exp::sigmoid;
use crate::kernel::{
    Cohort, LocalSteps, Proximal, Rows, SparseRow, SparseRows, SparseSteps, Support, SupportRound,
    dot, squared_distance,
};
use crate::linalg::Matrix;
use crate::problem::minimise::Minimiser;
use crate::problem::record_loss::{self, RecordLoss, SetAt, SetFacts};
use crate::problem::{DrawSmoothness, Facts, Fault, Given, Problem, RecordsOf};
use crate::rng::Stream;

/// An instance.
pub struct SparseLogistic {
    d: usize,
    loss: Loss,
    /// Each client's records, times their labels.
    sets: Vec<SparseRows>,
    /// What these touch, where that is little.
    supports: Option<Vec<Support>>,
    /// The clients' shares, if they are not equal.
    client_shares: Option<Vec<f64>>,
    held: Vec<SetFacts>,
    /// The records of the test set, likewise times their labels.
    test_rows: Option<SparseRows>,
    optimum: Minimiser,
}

impl SparseLogistic {
    /// The instance in which each client holds one of these sets of rows y x.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    ///
    /// # Panics
    /// If there is no set, one is empty, or they differ in d.
    pub fn new(loss: Loss, sets: Vec<SparseRows>) -> Result<Self, Fault> {
        Self::with(loss, sets, Given::default())
    }

    /// The same with what else is given.
    ///
    /// # Errors
    /// A [`Fault`] of `l2` if Newton's method finds no optimum.
    ///
    /// # Panics
    /// As [`SparseLogistic::new`], and if there are not as many shares as sets.
    pub fn with(
        loss: Loss,
        sets: Vec<SparseRows>,
        Given { shares: client_shares, optimum: known }: Given<'_>,
    ) -> Result<Self, Fault> {
        let d = sets[0].dim();
        assert!(sets.iter().all(|set| set.dim() == d && !set.is_empty()));
        assert!(client_shares.as_ref().is_none_or(|shares| shares.len() == sets.len()));
        let held = sets.iter().map(|_| SetFacts::default()).collect();
        let (test_rows, optimum) = (None, Minimiser::unknown(d));
        let supports = Support::of_all(&sets);
        let mut instance =
            Self { d, loss, sets, supports, client_shares, held, test_rows, optimum };
        instance.optimum = record_loss::optimum(&instance, instance.shares(), known)?;
        Ok(instance)
    }

    /// The same instance with a test set, rows y x.
    pub fn with_test(self, test_rows: SparseRows) -> Self {
        Self { test_rows: Some(test_rows), ..self }
    }

    /// The clients and their shares.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> {
        (0..self.sets.len()).map(|client| (client, self.share(client)))
    }

    /// The mean of `value` over records: of the clients, by their shares, or of the test set.
    fn mean_over(&self, of: RecordsOf, value: impl Fn(SparseRow<'_>) -> f64) -> Option<f64> {
        let mean =
            |set: &SparseRows| set.iter().fold(0.0, |sum, row| sum + value(row)) / set.len() as f64;
        match of {
            RecordsOf::Test => self.test_rows.as_ref().map(mean),
            RecordsOf::Clients => {
                Some(self.shares().fold(0.0, |sum, (k, share)| sum + share * mean(&self.sets[k])))
            }
        }
    }

    /// out ← out − share E[s y x], from the weights s of a client's records.
    fn add_pull(&self, client: usize, share: f64, weights: &[f64], out: &mut [f64]) {
        let share = share / weights.len() as f64;
        for (row, s) in self.sets[client].iter().zip(weights) {
            row.add_to(-share * s, out);
        }
    }

    /// out ← out + share E[f x xᵀ], with a factor for each record of a client.
    fn add_products(&self, client: usize, share: f64, factors: &[f64], out: &mut Matrix) {
        let share = share / factors.len() as f64;
        for (row, factor) in self.sets[client].iter().zip(factors) {
            for (i, x) in row.iter() {
                row.iter().for_each(|(j, y)| out[(i, j)] += share * factor * x * y);
            }
        }
    }

    fn supports(&self) -> &[Support] {
        self.supports.as_deref().unwrap_or_default()
    }

    fn steps<'a>(&'a self, proximal: Proximal<'a>) -> SparseSteps<'a> {
        SparseSteps { sets: &self.sets, loss: self.loss, proximal }
    }
}

/// s(1 − s) of each weight s.
fn curvatures(weights: &[f64]) -> Vec<f64> {
    weights.iter().map(|s| s * (1.0 - s)).collect()
}

impl RecordLoss for SparseLogistic {
    fn l2(&self) -> f64 {
        self.loss.l2
    }
    fn set_facts(&self, set: usize) -> &SetFacts {
        &self.held[set]
    }
    /// σ(m − y xᵀθ) of each record.
    fn at(&self, set: usize, theta: &[f64]) -> Vec<f64> {
        let weight = |row: SparseRow<'_>| sigmoid(self.loss.margin - row.dot(theta));
        self.sets[set].iter().map(weight).collect()
    }
    fn mean_gradient(&self, sets: &[SetAt], theta: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = theta.iter().map(|theta| self.loss.l2 * theta).collect();
        sets.iter().for_each(|of| self.add_pull(of.set, of.share, &of.at, &mut mean));
        mean
    }
    /// share E[s(1 − s) x xᵀ] v.
    fn add_product(&self, set: usize, share: f64, weights: &[f64], v: &[f64], out: &mut [f64]) {
        let share = share / weights.len() as f64;
        for (row, s) in self.sets[set].iter().zip(weights) {
            let factor = s * (1.0 - s);
            row.add_to(share * factor * row.dot(v), out);
        }
    }
    fn mean_hessian(&self, sets: &[SetAt]) -> Matrix {
        let mut sum = Matrix::identity(self.d).scaled(self.loss.l2);
        for SetAt { set, share, at } in sets {
            self.add_products(*set, *share, &curvatures(at), &mut sum);
        }
        sum
    }
}

impl Facts for SparseLogistic {
    fn clients(&self) -> usize {
        self.sets.len()
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
        self.optimum_of(client)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.loss.l2 * theta;
        }
        self.add_pull(client, 1.0, &self.at(client, theta), field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        let mut sum = Matrix::identity(self.d).scaled(self.loss.l2);
        let factors = curvatures(self.at_optimum(client));
        self.add_products(client, 1.0, &factors, &mut sum);
        sum
    }
    fn symmetric(&self) -> bool {
        true
    }
    fn jacobian_product(&self, weights: &[(usize, f64)], _: bool, x: &[f64], out: &mut [f64]) {
        self.hessian_product(weights, x, out);
    }
    fn product_effort(&self) -> f64 {
        (2 * self.sets.iter().map(|set| set.values().len()).sum::<usize>()) as f64
    }
    /// tr E s² xxᵀ is E s² ‖x‖².
    fn noise_trace(&self, client: usize) -> f64 {
        let weights = self.at_optimum(client);
        let mut mean = vec![0.0; self.d];
        self.add_pull(client, 1.0, weights, &mut mean);
        let squares = self.sets[client].iter().zip(weights).map(|(row, s)| {
            let row = row.values.iter().fold(0.0, |sum, x| sum + x * x);
            s * s * row
        });
        let second = squares.fold(0.0, |sum, square| sum + square) / weights.len() as f64;
        (second - dot(&mean, &mean)) / self.loss.batch as f64
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        let weights = self.at_optimum(client);
        let squares: Vec<f64> = weights.iter().map(|s| s * s).collect();
        let mut sum = Matrix::zeros(self.d, self.d);
        self.add_products(client, 1.0, &squares, &mut sum);
        let mut mean = vec![0.0; self.d];
        self.add_pull(client, 1.0, weights, &mut mean);
        sum.add_outer(-1.0, &mean, &mean);
        sum.scaled(1.0 / self.loss.batch as f64)
    }
    /// As for dense records, which these become here.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let dense = self.sets[client].to_dense();
        let rows = Rows::new(&dense, self.d, self.d);
        Some(noise(self.loss.batch, s, rows, self.at_optimum(client)))
    }
    fn convexity(&self) -> Option<f64> {
        Some(self.loss.l2)
    }
    /// σ' is at most 1/4.
    fn draw_smoothness(&self) -> DrawSmoothness {
        let square = |row: SparseRow<'_>| row.values.iter().fold(0.0, |sum, x| sum + x * x);
        let longest = self.sets.iter().flat_map(|set| set.iter().map(square)).fold(0.0, f64::max);
        DrawSmoothness::AtMost(self.loss.l2 + longest / 4.0)
    }
    /// −E s(1 − s)(1 − 2s)(xᵀMx) y x.
    fn curvature(&self, client: usize, m: &Matrix) -> Option<Vec<f64>> {
        let n = self.sets[client].len() as f64;
        let mut sum = vec![0.0; self.d];
        for (row, s) in self.sets[client].iter().zip(self.at_optimum(client)) {
            let third = s * (1.0 - s) * (1.0 - 2.0 * s);
            let square = row.iter().fold(0.0, |sum, (i, x)| sum + x * row.sum(|j| m[(i, j)]));
            row.add_to(-third * square / n, &mut sum);
        }
        Some(sum)
    }
    fn draws(&self) -> usize {
        self.sets.iter().map(SparseRows::len).max().unwrap_or(1)
    }
    fn linear(&self) -> bool {
        false
    }
    fn batch(&self) -> u64 {
        self.loss.batch as u64
    }
    fn loss(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |row| softplus(self.loss.margin - row.dot(theta)))
    }
    fn accuracy(&self, theta: &[f64], of: RecordsOf) -> Option<f64> {
        self.mean_over(of, |row| predicted(row.dot(theta)))
    }
    /// As for dense records: Bregman divergences from θ*.
    fn suboptimality(&self, theta: &[f64]) -> Option<f64> {
        let (margin, star) = (self.loss.margin, self.optimum());
        let mut gap = 0.5 * self.loss.l2 * squared_distance(theta, star);
        for (client, share) in self.shares() {
            let share = share / self.sets[client].len() as f64;
            for row in self.sets[client].iter() {
                gap += share * divergence(margin - row.dot(theta), margin - row.dot(star));
            }
        }
        Some(gap)
    }
}

impl Problem for SparseLogistic {
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
        self.steps(Proximal::NONE).field(client, theta, |records| rng.index(records), field);
    }

    fn advance(&self, cohort: Cohort<'_, ()>) {
        self.steps(Proximal::NONE).advance(cohort);
    }

    fn advance_extended(&self, cohort: Cohort<'_, ()>, proximal: Proximal<'_>) {
        self.steps(proximal).advance(cohort);
    }

    fn has_supports(&self, plans: &[LocalSteps], weight: f64) -> bool {
        let proximal = Proximal { weight, ..Proximal::NONE };
        self.supports.is_some() && self.steps(proximal).has_passes(plans)
    }

    fn advance_on_supports(&self, cohort: Cohort<'_, ()>, proximal: Proximal<'_>) {
        self.steps(proximal).advance_on_supports(self.supports(), cohort);
    }

    fn mean_on_supports(&self, round: SupportRound<'_>, weight: f64, after: &mut [f64]) {
        let proximal = Proximal { weight, anchor: round.start };
        self.steps(proximal).mean_on_supports(self.supports(), round, after);
    }

    fn has_twin(&self) -> bool {
        true
    }

    /// As for dense records.
    #[inline(always)]
    fn linearised(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        let (set, weights) = (&self.sets[client], self.at_optimum(client));
        let star = self.optimum();
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = self.loss.l2 * theta;
        }
        for _ in 0..self.loss.batch {
            let record = rng.index(set.len());
            let (row, s) = (set.row(record), weights[record]);
            let weight = s + s * (1.0 - s) * row.sum(|j| star[j] - theta[j]);
            row.add_to(-weight / self.loss.batch as f64, field);
        }
    }
}

#[cfg(test)]
#[path = "sparse_tests.rs"]
mod tests;
