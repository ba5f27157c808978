//! The mean of the losses of sets of records, as a function that can be minimised. A *set* is the records that a client
//! holds; `numbers` of a set, or `at`, are what a loss computes once of each of its records at a point
//! ([`RecordLoss::record_numbers`]).

use super::loss::{RecordLoss, RecordSets, SetTerm};
use crate::linalg::Matrix;
use crate::problem::minimise::Objective;

/// The weighted mean, over sets, of the mean loss of a set's records with the penalty: the loss of a client, or
/// of all clients.
pub(super) struct MeanLoss<'a, L, S> {
    loss: &'a L,
    records: &'a S,
    /// The sets with their weights, and their numbers at the point of the last gradient, none before it.
    sets: Vec<SetTerm>,
    /// The projection on the directions along which the function is flat, if there are any.
    flat: Option<&'a Matrix>,
}

impl<'a, L: RecordLoss<S>, S: RecordSets> MeanLoss<'a, L, S> {
    /// The weighted mean of the losses of these sets, each given by the number of the set and its weight; the weights
    /// must sum to 1, since the penalty is added once in Hessians. A gradient must be computed before a Hessian or a
    /// product with it: that decides the point at which they are.
    pub(super) fn new(
        loss: &'a L,
        records: &'a S,
        shares: impl IntoIterator<Item = (usize, f64)>,
    ) -> Self {
        Self {
            loss,
            records,
            sets: shares
                .into_iter()
                .map(|(set, share)| SetTerm { set, share, at: Vec::new() })
                .collect(),
            flat: None,
        }
    }

    /// This function, whose Hessians are made regular by a multiple of `flat`, the projection on the directions along
    /// which it is flat.
    pub(super) fn with_flat_directions(self, flat: Option<&'a Matrix>) -> Self {
        Self { flat, ..self }
    }
}

impl<L: RecordLoss<S>, S: RecordSets> Objective for MeanLoss<'_, L, S> {
    fn dim(&self) -> usize {
        self.records.features() * self.records.classes()
    }
    /// λ, if there is a penalty.
    fn convexity(&self) -> Option<f64> {
        Some(self.loss.l2()).filter(|l2| *l2 > 0.0)
    }
    /// Whether the direction separates the classes of all records and there is no penalty: then the losses of all
    /// records fall along it.
    fn falls_along(&self, direction: &[f64]) -> bool {
        self.convexity().is_none()
            && self.sets.iter().all(|of| {
                let hits = self.loss.hits(self.records, of.set, direction);
                hits.is_some_and(|hits| hits.iter().all(|hit| *hit == 1.0))
            })
    }
    /// ∇f(θ), after which Hessians are computed at this θ.
    fn gradient(&mut self, theta: &[f64]) -> Vec<f64> {
        let Self { loss, records, .. } = *self;
        let sets = self.sets.iter_mut();
        sets.for_each(|of| of.at = loss.record_numbers(records, of.set, theta));
        let mut mean = vec![0.0; theta.len()];
        records.mean_gradient(loss, &self.sets, theta, &mut mean);
        mean
    }
    /// ∇²f v at the point of the last gradient, from products of the records with v.
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut mean: Vec<f64> = v.iter().map(|v| self.loss.l2() * v).collect();
        for SetTerm { set, share, at } in &self.sets {
            add_hessian_product(self.loss, self.records, *set, *share, at, v, &mut mean);
        }
        mean
    }
    fn hessian(&self) -> Matrix {
        let mut hessian = self.records.mean_hessian(self.loss, &self.sets);
        if let Some(flat) = self.flat {
            let scale = hessian.trace() / hessian.rows() as f64;
            hessian.add(scale, flat);
        }
        hessian
    }
    fn most_factored(&self) -> usize {
        L::MOST_FACTORED
    }
}

/// out ← out + share E ∇²ℓ v, the mean over the records of a set, without the penalty, at the point at which the set's
/// numbers are `at`; v and `out` have as many numbers as θ.
pub(super) fn add_hessian_product<L: RecordLoss<S>, S: RecordSets>(
    loss: &L,
    records: &S,
    set: usize,
    share: f64,
    at: &[f64],
    v: &[f64],
    out: &mut [f64],
) {
    let mut along = records.products(set, v);
    loss.change(at, share / records.records(set) as f64, &mut along);
    records.weigh(set, &mut along);
    records.add_rows(set, &along, out);
}
