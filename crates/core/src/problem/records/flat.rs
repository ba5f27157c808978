//! What is known of a loss of records without a penalty from its records alone: along which directions it is flat, how
//! exactly its curvature is known, and whether a set by itself has an optimum.

use super::loss::{RecordLoss, RecordSets};
use super::mean_loss::MeanLoss;
use crate::kernel::dot;
use crate::linalg::{RowSpace, least_eigenvalue_bound};
use crate::problem::minimise::{Objective as _, minimise};

/// The most unknowns of a loss that is not quadratic and has no penalty: that its minimiser exists is proven from a
/// factorisation of the Hessian.
pub(super) const MOST_UNKNOWNS: usize = 1500;

/// The space that the records of these sets span, as vectors of as many numbers as there are features.
pub(super) fn space_of_records<S: RecordSets>(
    records: &S,
    sets: impl Iterator<Item = usize>,
) -> RowSpace {
    let d = records.features();
    let rows = sets.flat_map(|set| (0..records.records(set)).map(move |record| (set, record)));
    RowSpace::new(
        d,
        rows.map(|(set, record)| {
            let mut row = vec![0.0; d];
            records.visit_record(set, record, |feature, value| row[feature] = value);
            row
        }),
    )
}

/// A bound on the rounding errors of the Hessian of a weighted mean of the losses of sets that was summed in doubles at θ,
/// in the spectral norm. A term W ⊗ xxᵀ has a norm of at most ‖x‖², since no eigenvalue of W is above 1, and each operation
/// adds an error of this size: those of sums, those of the products with θ, whose errors change W by as much as its
/// size, and a few for W itself and for the projection on flat directions, which is multiplied by a mean eigenvalue.
pub(super) fn rounding_of_hessian<S: RecordSets>(
    records: &S,
    shares: impl IntoIterator<Item = (usize, f64)>,
    theta: &[f64],
) -> f64 {
    let size = libm::sqrt(dot(theta, theta));
    let mut sum = 0.0;
    for (set, share) in shares {
        let mut squares = records.squares(set);
        let longest = squares.iter().fold(0.0_f64, |most, square| most.max(*square));
        records.weigh(set, &mut squares);
        let mean = squares.iter().fold(0.0, |sum, square| sum + square) / squares.len() as f64;
        let products = 4.0 * records.features() as f64 * libm::sqrt(longest) * size;
        let operations = (squares.len() + records.sets() + 16 * records.classes() + 40) as f64;
        sum += share * (operations + products) * mean;
    }
    sum * f64::EPSILON
}

/// θ_c* of the clients that hold a set, d numbers, if the loss of the set has a single minimiser and a search shows that it
/// exists. It is not bounded how far it is from the result.
pub(super) fn local_optimum<L: RecordLoss<S>, S: RecordSets>(
    loss: &L,
    records: &S,
    set: usize,
) -> Option<Vec<f64>> {
    if L::OF_DIFFERENCES || records.features() > MOST_UNKNOWNS {
        return None;
    }
    if space_of_records(records, std::iter::once(set)).rank() < records.features() {
        return None;
    }
    let mut own = MeanLoss::new(loss, records, [(set, 1.0)]);
    let theta = minimise(&mut own).theta;
    if own.falls_along(&theta) {
        return None;
    }
    let gradient = own.gradient(&theta);
    let least = least_eigenvalue_bound(
        &own.hessian(),
        rounding_of_hessian(records, [(set, 1.0)], &theta),
        0.0,
    );
    let longest = records.squares(set).into_iter().fold(0.0, f64::max);
    let slope = L::SELF_CONCORDANCE * libm::sqrt(longest * dot(&gradient, &gradient));
    // As in the proof for all clients, with room for the rounding errors of the gradient.
    (2.0 * slope < least).then_some(theta)
}
