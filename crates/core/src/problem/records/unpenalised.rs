//! The optimum of a mean loss of records without a penalty, which need not exist, and need not be unique.
//!
//! The loss depends on θ through products of its rows with records alone, so that it is flat along the directions that
//! are orthogonal to all records, and, where only differences of the products matter, along common changes of the rows.
//! Orthogonal to these it is strictly convex. So all minimisers are an affine space of these directions
//! ([`OptimumSet`]), if there are any; of these θ* is the one of least length.

use super::flat::{MOST_UNKNOWNS, rounding_of_hessian, space_of_records};
use super::instance::RecordProblem;
use super::loss::{RecordLoss, RecordSets};
use super::mean_loss::MeanLoss;
use super::optimum_bound::{Convexity, extended_gradient, optimum_error};
use crate::kernel::{Rows, axpy};
use crate::linalg::{Matrix, RowSpace, cholesky, least_eigenvalue_bound};
use crate::problem::facts::Facts as _;
use crate::problem::fault::Fault;
use crate::problem::minimise::{Minimiser, Objective as _, minimise};
use crate::problem::optimum_set::OptimumSet;

/// How often the solution of least squares is corrected by the gradient there. Each correction multiplies its error by
/// the rounding errors of the matrix of the system, times its condition number.
const CORRECTIONS: usize = 6;

/// An optimum without a penalty.
pub(super) struct Found {
    /// θ*, the minimiser of least length, with a bound on its distance from the set of all.
    pub optimum: Minimiser,
    /// All minimisers, if there are several.
    pub set: Option<OptimumSet>,
}

/// The optimum of a loss with affine fields, whose gradient in the coordinates of the space that records span is a linear
/// system of as many unknowns as the space has dimensions; in contrast to the system for θ it is regular.
///
/// # Errors
/// A [`Fault`] of `l2` if records are so close to linearly dependent that this system has no solution in double
/// precision.
pub(super) fn solve_least_squares<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    space: RowSpace,
) -> Result<Found, Fault> {
    if space.rank() == 0 {
        // Records of zeros alone: the loss is the same everywhere.
        let optimum = Minimiser { theta: vec![0.0; space.dim()], residual: 0.0, error: 0.0 };
        return Ok(Found { optimum, set: OptimumSet::new(space, 1, false) });
    }
    let matrix = matrix_in(problem, &space);
    let records = &problem.records;
    let all: usize = (0..records.sets()).map(|set| records.records(set)).sum();
    let terms = all + space.dim() + space.rank();
    let rounding = terms as f64 * 4.0 * f64::EPSILON * matrix.trace();
    let least = least_eigenvalue_bound(&matrix, rounding, 0.0);
    let factors = cholesky(matrix).map_err(|_| singular_system())?;
    let step = |gradient: &[f64]| space.combine(&factors.solve(&space.coordinates(gradient)));
    let mut theta = vec![0.0; space.dim()];
    for _ in 0..CORRECTIONS {
        axpy(-1.0, &step(&extended_gradient(problem, &theta)), &mut theta);
    }
    if theta.iter().any(|x| !x.is_finite()) {
        return Err(singular_system());
    }
    let error =
        optimum_error(problem, &theta, Convexity::Everywhere(least), |gradient: &[f64]| {
            Some(step(gradient))
        });
    let optimum = Minimiser { theta, residual: 0.0, error };
    Ok(Found { optimum, set: OptimumSet::new(space, 1, false) })
}

/// The fault of a system of least squares without a solution in double precision.
pub(super) fn singular_system() -> Fault {
    let message = "the records are too close to linearly dependent for double precision: a positive λ makes the system regular";
    Fault::new("l2", message)
}

/// The mean over clients of E zzᵀ, r × r, with z the coordinates of a record in the space, of r dimensions.
fn matrix_in<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    space: &RowSpace,
) -> Matrix {
    let records = &problem.records;
    let mut sum = Matrix::zeros(space.rank(), space.rank());
    for (set, share) in problem.shares() {
        let count = records.records(set);
        let mut coordinates = Vec::with_capacity(count * space.rank());
        for record in 0..count {
            let mut row = vec![0.0; space.dim()];
            records.visit_record(set, record, |feature, value| row[feature] = value);
            coordinates.extend(space.coordinates(&row));
        }
        let rows = Rows::new(&coordinates, space.rank(), space.rank());
        sum.add(1.0, &Matrix::weighted_gram(rows, &vec![share / count as f64; count]));
    }
    sum
}

/// The optimum of a loss that is not quadratic, by a search, or the optimum `known` of an earlier one.
///
/// # Errors
/// A [`Fault`] of `l2` if there is no minimiser, as where the classes of the records can be separated, or if it is not
/// known whether there is one.
pub(super) fn search<L: RecordLoss<S>, S: RecordSets>(
    problem: &RecordProblem<L, S>,
    known: Option<&Minimiser>,
) -> Result<Found, Fault> {
    let records = &problem.records;
    let unknowns = problem.dim();
    if unknowns > MOST_UNKNOWNS {
        return Err(no_optimum(&format!(
            "without a penalty θ* is found of at most {MOST_UNKNOWNS} unknowns; here are {unknowns}"
        )));
    }
    let space = space_of_records(records, 0..records.sets());
    let set = OptimumSet::new(space, records.classes(), L::OF_DIFFERENCES);
    let flat = set.as_ref().map(OptimumSet::within);
    let mut mean =
        MeanLoss::new(&problem.loss, records, problem.shares()).with_flat_directions(flat.as_ref());
    if let Some(known) = known.filter(|known| known.is_at(&mut mean)) {
        return Ok(Found { optimum: known.clone(), set });
    }
    let mut optimum = minimise(&mut mean);
    if mean.falls_along(&optimum.theta) {
        return Err(no_optimum(
            "θ* does not exist without a penalty: the classes of the records are separated without an error, so that the loss falls for ever as θ grows",
        ));
    }
    mean.gradient(&optimum.theta);
    let hessian = mean.hessian();
    let least = least_eigenvalue_bound(
        &hessian,
        rounding_of_hessian(records, problem.shares(), &optimum.theta),
        0.0,
    );
    let factors = cholesky(hessian).ok();
    let convexity = Convexity::AtPoint(least);
    optimum.error = optimum_error(problem, &optimum.theta, convexity, |gradient: &[f64]| {
        Some(factors?.solve(gradient))
    });
    if optimum.is_known() {
        return Ok(Found { optimum, set });
    }
    Err(no_optimum(
        "θ* may not exist without a penalty: nothing shows that the loss has a minimiser, as where the classes of the records can nearly be separated",
    ))
}

/// The fault that θ* is not known, for this reason.
fn no_optimum(reason: &str) -> Fault {
    let advice = "a positive λ makes it exist, and `optimum = false` in [record] leaves it out";
    Fault::new("l2", format!("{reason}; {advice}"))
}

#[cfg(test)]
#[path = "unpenalised_tests.rs"]
mod tests;
