//! Systems of linear equations, refined to the last bit.
//!
//! A system is solved by a factorisation (faer, whose bits differ between processors), which is
//! refined with residual and solution in double-double until it no longer changes.

use super::{Dd, Matrix};
use crate::kernel::outer::factor;
use crate::kernel::{axpy, dot};
use faer::linalg::solvers::Solve;
use thiserror::Error;

/// The most passes of refinement; a system that needs more counts as singular.
const MAX_PASSES: usize = 60;

/// The error that no solution of a system can be found in double precision: its matrix is singular, or nearly so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system has no solution in double precision")]
pub struct Singular;

/// The x with a x = b, for a square matrix: by LU with partial pivoting, refined in double-double, so that its bits do
/// not depend on the processor.
///
/// # Errors
/// [`Singular`] if a factor or the refinement breaks down.
///
/// # Panics
/// If the matrix is not square, or b has another length.
pub fn solve(a: &Matrix, b: &[f64]) -> Result<Vec<f64>, Singular> {
    let n = a.rows;
    assert!(a.cols == n && b.len() == n);
    let lu = faer::Mat::from_fn(n, n, |i, j| a[(i, j)]).partial_piv_lu();
    refined(a, b, |rhs| {
        let solved = lu.solve(faer::Mat::from_fn(n, 1, |i, _| rhs[i]));
        (0..n).map(|i| solved[(i, 0)]).collect()
    })
}

/// The X with a X = bᵀ, by a [`solve`] for each row of b.
///
/// # Errors
/// [`Singular`] if one of them breaks down.
pub fn solve_rows(a: &Matrix, b: &Matrix) -> Result<Matrix, Singular> {
    let columns = (0..b.rows).map(|j| solve(a, b.row(j))).collect::<Result<Vec<_>, _>>()?;
    Ok(Matrix::from_fn(a.rows, b.rows, |i, j| columns[j][i]))
}

/// The Cholesky factor L of a matrix A = L Lᵀ, whose bits do not depend on the processor.
pub struct Cholesky {
    /// L, n × n, whose upper triangle is undefined.
    factor: Matrix,
}

/// The Cholesky factor of a symmetric matrix, of which the lower triangle is read.
///
/// # Errors
/// [`Singular`] if it is not positive definite to working precision.
pub fn cholesky(mut a: Matrix) -> Result<Cholesky, Singular> {
    assert_eq!(a.rows, a.cols);
    if factor(&mut a.data, a.rows) { Ok(Cholesky { factor: a }) } else { Err(Singular) }
}

impl Cholesky {
    /// The x with A x = b, not refined: for a search whose steps need not be exact.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        let l = &self.factor;
        // Forwards through L, then backwards through Lᵀ.
        for i in 0..x.len() {
            let (known, rest) = x.split_at_mut(i);
            rest[0] = (rest[0] - dot(&l.row(i)[..i], known)) / l[(i, i)];
        }
        for i in (0..x.len()).rev() {
            let (left, rest) = x.split_at_mut(i);
            rest[0] /= l[(i, i)];
            axpy(-rest[0], &l.row(i)[..i], left);
        }
        x
    }
}

/// A lower bound on the least eigenvalue of every symmetric matrix within `error` of the symmetric matrix `a` in the
/// spectral norm, rounding errors included: the bound `known`, at least 0, if no larger one is found.
///
/// Where the factorisation of A − sI runs to its end in doubles, L Lᵀ differs from A − sI by at most
/// γ tr(L Lᵀ), and so no eigenvalue of A is below s − γ tr(A) with γ of (n + 1) roundings (Rump,
/// *Verification of positive definiteness*, BIT 46, 2006). The largest such s of a geometric sequence
/// is taken, since a bound to within its ratio is enough.
pub fn least_eigenvalue_bound(a: &Matrix, error: f64, known: f64) -> f64 {
    /// The ratio of the sequence of s.
    const RATIO: f64 = 0.25;
    let n = a.rows;
    let trace = a.trace();
    // Twice what the theorem asks for, with the roundings of the trace and of the shifted diagonal.
    let rounding = (n + 5) as f64 * f64::EPSILON * trace + error;
    let mut shift = RATIO * trace / n as f64;
    while shift - rounding > known {
        let shifted = a.plus(-shift, &Matrix::identity(n));
        if cholesky(shifted).is_ok() {
            return shift - rounding;
        }
        shift *= RATIO;
    }
    known
}

/// The x with a x = b: the solutions of an approximate `solver`, refined by residuals in double-double.
///
/// # Errors
/// As for [`refine`].
fn refined(
    a: &Matrix,
    b: &[f64],
    solver: impl Fn(&[f64]) -> Vec<f64>,
) -> Result<Vec<f64>, Singular> {
    refine(
        b,
        |residual| Ok(solver(residual)),
        |x, i| {
            let row = a.row(i).iter().zip(x);
            row.fold(Dd::from(b[i]), |sum, (&a, x)| sum.minus_product(a, *x)).hi
        },
    )
}

/// The solution x of a linear system with right side `rhs`, by iterative refinement: corrections are added to x in
/// double-double until they are negligible. `correction(r)` solves the system approximately for the right side r, and
/// `residual(x, i)` is entry i of the right side minus the left side at x. If corrections are right to one digit, no
/// bit of x depends on how they are computed, and so none depends on the processor.
///
/// # Errors
/// [`Singular`] if corrections fail, are not finite or do not shrink.
pub fn refine(
    rhs: &[f64],
    correction: impl Fn(&[f64]) -> Result<Vec<f64>, Singular>,
    residual: impl Fn(&[Dd], usize) -> f64,
) -> Result<Vec<f64>, Singular> {
    let mut x = vec![Dd::default(); rhs.len()];
    // The right side minus the left side at x.
    let mut left = rhs.to_vec();
    let mut last = f64::INFINITY;
    for _ in 0..MAX_PASSES {
        // The largest correction, and the largest number of x.
        let mut moved = 0.0_f64;
        let mut size = 0.0_f64;
        for (x, delta) in x.iter_mut().zip(correction(&left)?) {
            if !delta.is_finite() {
                return Err(Singular);
            }
            *x = x.plus(delta);
            moved = moved.max(delta.abs());
            size = size.max(x.hi.abs());
        }
        let change = if size > 0.0 { moved / size } else { 0.0 };
        // Corrections this small change no double that x is rounded to; those that consist of rounding errors
        // alone need not halve.
        if change < 1e-28 || (change < 1e-20 && change > 0.5 * last) {
            return Ok(x.into_iter().map(|x| x.hi).collect());
        }
        if !change.is_finite() || change > 0.5 * last {
            return Err(Singular);
        }
        last = change;
        for (i, left) in left.iter_mut().enumerate() {
            *left = residual(&x, i);
        }
    }
    Err(Singular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refined_solve_is_right_to_the_last_bit() {
        // Hilbert's matrix of order 8 (condition 1e10), scaled to integers, so
        // that b = A·(1, …, 8) is exact.
        let n = 8;
        let a = Matrix::from_fn(n, n, |i, j| 360_360.0 / (i + j + 1) as f64);
        let x: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        let exact = a.data.iter().all(|x| x.fract() == 0.0);
        assert!(exact);
        assert_eq!(solve(&a, &a.apply(&x)), Ok(x));
    }

    /// The perturbations include what another processor changes in faer's factors, and far more.
    #[test]
    fn no_bit_depends_on_the_solver() {
        let mut rng = crate::rng::Stream::shared_instance(7);
        let mut draw = || 2.0 * rng.uniform() - 1.0;
        for n in [1, 2, 3, 5, 8, 17, 40, 64, 100] {
            for _ in 0..20 {
                let a = Matrix::from_entries(n, n, (0..n * n).map(|_| draw()).collect());
                let b: Vec<f64> = (0..n).map(|_| draw()).collect();
                let x = solve(&a, &b).unwrap();
                for wrong in [1e-12, 1e-6, 1e-2] {
                    let lu = faer::Mat::from_fn(n, n, |i, j| a[(i, j)]).partial_piv_lu();
                    let noise: Vec<f64> = (0..n).map(|_| 1.0 + wrong * draw()).collect();
                    let other = refined(&a, &b, |rhs| {
                        let solved = lu.solve(faer::Mat::from_fn(n, 1, |i, _| rhs[i]));
                        (0..n).map(|i| noise[i] * solved[(i, 0)]).collect()
                    });
                    assert_eq!(other.as_ref(), Ok(&x), "n = {n}, {wrong}");
                }
            }
        }
    }

    /// Three records of many features and a ridge: the last corrections, of rounding errors
    /// alone, need not halve.
    #[test]
    fn corrections_of_rounding_errors_end_the_refinement() {
        let d = 784;
        let mut rng = crate::rng::Stream::shared_instance(3);
        for _ in 0..5 {
            let mut a = Matrix::identity(d).scaled(0.1);
            let mut b = vec![0.0; d];
            for _ in 0..3 {
                let x: Vec<f64> = (0..d).map(|_| rng.uniform()).collect();
                a.add_outer(1.0 / 3.0, &x, &x);
                let y = 10.0 * rng.uniform();
                b.iter_mut().zip(&x).for_each(|(b, x)| *b += y * x);
            }
            let x = solve(&a, &b).unwrap();
            let left = a.apply(&x).iter().zip(&b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(left < 1e-12, "{left}");
        }
    }

    #[test]
    fn a_factored_system_is_solved() {
        let n = 60;
        let a = Matrix::from_fn(n, n, |i, j| if i == j { 3.0 } else { 1.0 / (1 + i + j) as f64 });
        let x: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        let found = cholesky(a.clone()).map(|factor| factor.solve(&a.apply(&x))).unwrap();
        assert!(found.iter().zip(&x).all(|(found, x)| (found - x).abs() < 1e-12 * x.abs()));
        assert!(cholesky(Matrix::zeros(2, 2)).is_err());
    }

    #[test]
    fn eigenvalues_are_bounded_from_below() {
        // Eigenvalues ε and 2 − ε; and 1 alone.
        for epsilon in [0.5, 1e-3, 1e-10] {
            let a = Matrix::from_entries(2, 2, vec![1.0, 1.0 - epsilon, 1.0 - epsilon, 1.0]);
            let bound = least_eigenvalue_bound(&a, 0.0, 0.0);
            assert!((0.05 * epsilon..=epsilon).contains(&bound), "{epsilon}: {bound}");
            assert_eq!(least_eigenvalue_bound(&a, epsilon, 0.0), 0.0);
            // Of two bounds the larger one.
            assert_eq!(least_eigenvalue_bound(&a, 0.0, 2.0 * bound), 2.0 * bound);
            assert_eq!(least_eigenvalue_bound(&a, 0.0, 0.5 * bound), bound);
        }
        assert_eq!(least_eigenvalue_bound(&Matrix::from_fn(2, 2, |_, _| 1.0), 0.0, 0.0), 0.0);
        assert_eq!(least_eigenvalue_bound(&Matrix::zeros(2, 2), 0.0, 0.0), 0.0);
        assert_eq!(least_eigenvalue_bound(&Matrix::from_fn(1, 1, |_, _| f64::NAN), 0.0, 0.0), 0.0);
    }

    #[test]
    fn singular_systems_are_refused() {
        let a = Matrix::from_fn(3, 3, |i, j| (i * 3 + j) as f64);
        assert_eq!(solve(&a, &[1.0, 0.0, 0.0]), Err(Singular));
        assert_eq!(solve(&Matrix::zeros(2, 2), &[1.0, 1.0]), Err(Singular));
        let nearly = Matrix::from_fn(3, 3, |i, j| 0.1 * (i * 3 + j) as f64);
        assert_eq!(solve(&nearly, &[1.0, 0.0, 0.0]), Err(Singular));
    }
}
