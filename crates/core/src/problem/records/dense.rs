//! Sums over dense records whose losses depend on one product xᵀθ each: the storage of logistic regression
//! and of ridge regression. What each function computes is stated by [`RecordSets`].
//!
//! A *set* is the records that a client holds. E is the mean over the records of a set, x are the d features of a
//! record (times its label in logistic regression), δ is its residual, the derivative of its loss by xᵀθ, and w its
//! weight, the second derivative. `at` are the numbers of a set, one per record, from which the loss has δ and w at a
//! point.

use super::loss::{RecordLoss, RecordPlace, RecordSets, SetTerm};
use crate::kernel::outer::add_rows;
use crate::kernel::records::RecordTables;
use crate::kernel::{Cohort, InstructionSet, Rows, axpy, dot, fold_sum, products};
use crate::linalg::Matrix;
use crate::problem::minimise::MOST_REFINED;

impl RecordSets for RecordTables {
    fn sets(&self) -> usize {
        self.sets()
    }
    fn dense_rows(&self, set: usize) -> Option<Rows<'_>> {
        Some(self.rows(set))
    }
    fn labels(&self, set: usize) -> Option<&[u8]> {
        self.labels(set)
    }
    fn loss_weights(&self, set: usize) -> Option<&[f64]> {
        self.loss_weights(set)
    }
    fn with_loss_weights(self, loss_weights: Vec<Vec<f64>>) -> Self {
        self.with_loss_weights(loss_weights)
    }
    /// xᵀv of each record of a set.
    fn products(&self, set: usize, v: &[f64]) -> Vec<f64> {
        let mut along = vec![0.0; self.records(set)];
        products(self.rows(set), v, &mut along);
        along
    }
    fn add_rows(&self, set: usize, factors: &[f64], out: &mut [f64]) {
        add_rows(self.rows(set), factors, out);
    }
    /// xᵀ m x of a record, 1 × 1.
    fn contracted(&self, set: usize, record: usize, m: &Matrix) -> Matrix {
        let row = self.row(set, record);
        Matrix::from_entries(1, 1, vec![dot(row, &m.apply(row))])
    }
    /// The mean of w x xᵀ over a set, d × d, with w = `weight(i, 0, 0)` of record i.
    fn gram(&self, set: usize, weight: impl Fn(usize, usize, usize) -> f64) -> Matrix {
        let n = self.records(set);
        let weights: Vec<f64> = (0..n).map(|i| weight(i, 0, 0) / n as f64).collect();
        Matrix::weighted_gram(self.rows(set), &weights)
    }
    /// out ← out + share times the mean of δ x over a set, with a residual δ for each record. Each residual is divided
    /// by their number before it is multiplied by the share, an order on which the bits of results depend.
    fn add_pull(&self, set: usize, share: f64, mut residuals: Vec<f64>, out: &mut [f64]) {
        let n = residuals.len() as f64;
        residuals.iter_mut().for_each(|delta| *delta = share * (*delta / n));
        add_rows(self.rows(set), &residuals, out);
    }
    /// ∇f(θ) of the weighted mean of the losses of sets, whose numbers must be those at θ, into `out`, d numbers. The
    /// penalty's gradient is added set by set, an order on which the bits of results depend.
    fn mean_gradient<L>(&self, loss: &L, sets: &[SetTerm], theta: &[f64], out: &mut [f64])
    where
        L: RecordLoss<Self>,
    {
        out.fill(0.0);
        for SetTerm { set, share, at } in sets {
            let mut pull = vec![0.0; out.len()];
            let n = at.len() as f64;
            add_rows(self.rows(*set), &self.weighted_residuals(loss, *set, at), &mut pull);
            for ((out, pull), theta) in out.iter_mut().zip(pull).zip(theta) {
                *out += share * (loss.l2() * theta + pull / n);
            }
        }
    }
    /// ∇²f of the weighted mean of the losses of sets, d × d, with the penalty, where the weights must sum to 1. With
    /// more than [`MOST_REFINED`] features only the lower triangle is computed, which is all that the search for an
    /// optimum reads, and the upper one is undefined.
    fn mean_hessian(&self, loss: &impl RecordLoss<Self>, sets: &[SetTerm]) -> Matrix {
        let d = self.features();
        let mut sum = Matrix::zeros(d, d);
        if d <= MOST_REFINED {
            sets.iter().for_each(|of| sum.add(of.share, &self.hessian(loss, of.set, &of.at)));
            return sum;
        }
        for SetTerm { set, share, at } in sets {
            let scale = share / at.len() as f64;
            let second_derivative = self.second_derivatives(loss, *set, at);
            let factors: Vec<f64> =
                (0..at.len()).map(|i: usize| scale * second_derivative(i, 0, 0)).collect();
            sum.add_to_lower_triangle(self.rows(*set), &factors);
        }
        (0..d).for_each(|i| sum[(i, i)] += loss.l2());
        sum
    }
    /// The trace of the covariance of an oracle call on a set: (E δ² ‖x‖² − ‖E δ x‖²)/B, without a d × d
    /// matrix. The residuals δ are those at the point at which `at` was computed.
    fn noise_trace(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> f64 {
        let residuals = self.weighted_residuals(loss, set, at);
        let n = at.len() as f64;
        let pairs = self.rows(set).iter().zip(&residuals);
        let second = pairs.fold(0.0, |sum, (x, delta)| sum + delta * delta / n * dot(x, x));
        let mut mean = vec![0.0; self.features()];
        self.add_pull(set, 1.0, residuals, &mut mean);
        (second - dot(&mean, &mean)) / loss.batch() as f64
    }
    #[inline(always)]
    fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        next_record: impl FnMut() -> usize,
        out: &mut [f64],
    ) {
        self.field(client, theta, batch, next_record, out);
    }
    /// field ← field + f x of a record, where `factors` gets the product xᵀ(θ − θ*) as a slice of one number and
    /// replaces it by f.
    #[inline(always)]
    fn add_linearised(
        &self,
        place: RecordPlace,
        [theta, star]: [&[f64]; 2],
        factors: impl FnOnce(&mut [f64]),
        field: &mut [f64],
    ) {
        let d = theta.len();
        let row = &self.row(place.set, place.record)[..d];
        let star = &star[..d];
        let mut along = [fold_sum(d, |i| row[i] * (theta[i] - star[i]))];
        factors(&mut along);
        axpy(along[0], row, field);
    }
    /// Takes the local steps of a cohort if they are plain (without a proximal term and without means of several calls)
    /// and on single records, and there is a kernel for this number of features; else takes none and returns the
    /// cohort.
    fn advance_on<'a>(
        &self,
        path: InstructionSet,
        batch: usize,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>> {
        match (batch, cohort.extended) {
            (1, None) => self.advance_on(path, cohort, None),
            _ => Some(cohort),
        }
    }
    fn tables(&self) -> Option<&RecordTables> {
        Some(self)
    }
}
