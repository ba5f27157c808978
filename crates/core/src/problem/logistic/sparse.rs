//! Logistic regression on sparse records: the loss of [`super::Logistic`], with local steps
//! whose cost grows with the non-zeros of a record instead of d ([`SparseRecords::advance`]).
//!
//! A *set* is the records that a client holds: client c holds set c modulo the number of sets. Rows are y x, where y is
//! the label, 1 or −1; the functions below call a row x. `at` are the numbers of a set, one per record, from which the
//! loss has residuals and weights at a point.

use super::loss::Loss;
use crate::kernel::{Cohort, InstructionSet, Rows, SparseRecords};
use crate::linalg::Matrix;
use crate::problem::records::{RecordLoss, RecordPlace, RecordProblem, RecordSets, SetTerm};

/// An instance of logistic regression on sparse records.
pub type SparseLogistic = RecordProblem<Loss, SparseRecords>;

impl SparseRecords {
    /// out ← out + share E f x xᵀ, with E the mean over the records of a set, d × d, and f = `factor(i)` of record i.
    /// `out` has d² numbers, however sparse the records are: it is for facts that are matrices, and for the search
    /// for θ* in few unknowns.
    fn add_products(
        &self,
        set: usize,
        share: f64,
        factor: impl Fn(usize) -> f64,
        out: &mut Matrix,
    ) {
        let share = share / self.records(set) as f64;
        for (record, row) in self.sets[set].iter().enumerate() {
            let factor = factor(record);
            for (i, x) in row.iter() {
                row.iter().for_each(|(j, y)| out[(i, j)] += share * factor * x * y);
            }
        }
    }
}

/// Sums over sparse records of one product xᵀθ each. What each function computes is stated by [`RecordSets`].
impl RecordSets for SparseRecords {
    fn features(&self) -> usize {
        self.sets[0].dim()
    }
    fn sets(&self) -> usize {
        self.sets.len()
    }
    fn dense_rows(&self, _set: usize) -> Option<Rows<'_>> {
        None
    }
    fn records(&self, set: usize) -> usize {
        self.sets[set].len()
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
    fn multiplications(&self) -> usize {
        self.sets.iter().map(|set| set.values().len()).sum()
    }
    fn products(&self, set: usize, v: &[f64]) -> Vec<f64> {
        self.sets[set].iter().map(|row| row.dot(v)).collect()
    }
    fn visit_record(&self, set: usize, record: usize, mut visit: impl FnMut(usize, f64)) {
        self.sets[set].row(record).iter().for_each(|(feature, value)| visit(feature, value));
    }
    fn add_rows(&self, set: usize, factors: &[f64], out: &mut [f64]) {
        self.sets[set].iter().zip(factors).for_each(|(row, factor)| row.add_to(*factor, out));
    }
    /// ‖x‖² of each record of a set.
    fn squares(&self, set: usize) -> Vec<f64> {
        let rows = self.sets[set].iter();
        rows.map(|row| row.values.iter().fold(0.0, |sum, x| sum + x * x)).collect()
    }
    /// xᵀ m x of a record, 1 × 1.
    fn contracted(&self, set: usize, record: usize, m: &Matrix) -> Matrix {
        let row = self.sets[set].row(record);
        let square = row.iter().fold(0.0, |sum, (i, x)| sum + x * row.sum(|j| m[(i, j)]));
        Matrix::from_entries(1, 1, vec![square])
    }
    /// The mean of w x xᵀ over a set, d × d, with w = `weight(i, 0, 0)` of record i.
    fn gram(&self, set: usize, weight: impl Fn(usize, usize, usize) -> f64) -> Matrix {
        let mut sum = Matrix::zeros(self.features(), self.features());
        self.add_products(set, 1.0, |i| weight(i, 0, 0), &mut sum);
        sum
    }
    /// ∇²f of the weighted mean of the losses of sets, whose weights must sum to 1, d × d, with the penalty and with
    /// all entries.
    fn mean_hessian(&self, loss: &impl RecordLoss<Self>, sets: &[SetTerm]) -> Matrix {
        let mut sum = Matrix::identity(self.features()).scaled(loss.l2());
        for SetTerm { set, share, at } in sets {
            let second_derivative = self.second_derivatives(loss, *set, at);
            self.add_products(*set, *share, |i| second_derivative(i, 0, 0), &mut sum);
        }
        sum
    }
    fn hessian(&self, loss: &impl RecordLoss<Self>, set: usize, at: &[f64]) -> Matrix {
        self.mean_hessian(loss, &[SetTerm { set, share: 1.0, at: at.to_vec() }])
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
        let row = self.sets[place.set].row(place.record);
        let mut along = [row.sum(|j| theta[j] - star[j])];
        factors(&mut along);
        row.add_to(along[0], field);
    }
    /// Takes the local steps of a cohort and returns `None`: there is a kernel for all of them, also with a proximal
    /// term or with means of several oracle calls. It is the same on all processors, and B is that of the stored
    /// loss, so that neither argument is read.
    fn advance_on<'a>(
        &self,
        _path: InstructionSet,
        _batch: usize,
        cohort: Cohort<'a, ()>,
    ) -> Option<Cohort<'a, ()>> {
        self.advance(cohort);
        None
    }
    fn sparse(&self) -> Option<&SparseRecords> {
        Some(self)
    }
}

#[cfg(test)]
#[path = "sparse_tests.rs"]
mod tests;
