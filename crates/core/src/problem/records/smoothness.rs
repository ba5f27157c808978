//! The smoothness of mean losses of records at every θ, without their penalty.

use super::instance::RecordProblem;
use super::loss::{RecordLoss, RecordSets};
use crate::linalg::Matrix;
use crate::linalg::lanczos::{Precision, spectral_norm};
use crate::problem::fault::MOST_DIMENSIONS;

/// The relative error of Lanczos' iteration that is small enough, and the most steps of it.
const PRECISION: Precision = Precision { relative: 1e-13, floor: 0.0, steps: 600 };
/// The relative error beyond which the result of the iteration is not used.
const LARGEST_ERROR: f64 = 1e-9;

impl<L: RecordLoss<S>, S: RecordSets> RecordProblem<L, S> {
    /// b ‖Σ_s a_s E w xxᵀ‖ over sets s of records with weights a_s in a mean, whose E is the mean over the records of a
    /// set: b is the bound on the second derivatives of ℓ by the products of a record, and w are the loss weights. With
    /// several classes it bounds the Hessians, and is not always reached. It is the largest eigenvalue of a d × d
    /// matrix or, of many sparse features, what Lanczos' iteration finds; `None` if that does not converge.
    pub(super) fn smoothness_of_sets(&self, sets: &[(usize, f64)]) -> Option<f64> {
        let features = self.records.features();
        let is_dense = self.records.dense_rows(0).is_some();
        if !is_dense && features > MOST_DIMENSIONS {
            return self.smoothness_by_iteration(sets);
        }
        let mut sum = Matrix::zeros(features, features);
        for (set, weight) in sets {
            let factors = self.second_derivative_bounds(*set, *weight);
            let of_set = match self.records.dense_rows(*set) {
                Some(rows) => Matrix::weighted_gram(rows, &factors),
                // The sum over a set of sparse records is divided by the number of its records.
                None => {
                    let n = self.records.records(*set) as f64;
                    self.records.gram(*set, |record, _, _| n * factors[record])
                }
            };
            sum = sum.plus(1.0, &of_set);
        }
        Some(sum.symmetric_extremes()?.0)
    }

    /// a b w_i/n of each record i of a set with n records, whose weight in a mean over sets is a = `weight`.
    fn second_derivative_bounds(&self, set: usize, weight: f64) -> Vec<f64> {
        let n = self.records.records(set);
        let mut factors = vec![weight * L::LARGEST_WEIGHT / n as f64; n];
        self.records.weigh(set, &mut factors);
        factors
    }

    /// [`Self::smoothness_of_sets`] by products of the records with vectors.
    fn smoothness_by_iteration(&self, sets: &[(usize, f64)]) -> Option<f64> {
        let mut factors = Vec::with_capacity(sets.len());
        for (set, weight) in sets {
            factors.push(self.second_derivative_bounds(*set, *weight));
        }
        let features = self.records.features();
        let is_symmetric = true;
        let found = spectral_norm(features, is_symmetric, PRECISION, |_, x, out| {
            out.fill(0.0);
            for ((set, _), factors) in sets.iter().zip(&factors) {
                let mut products = self.records.products(*set, x);
                products.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
                self.records.add_rows(*set, &products, out);
            }
        });
        (found.error <= LARGEST_ERROR * found.value).then_some(found.value)
    }
}
