//! The minimiser of a convex function without a formula, by Newton's method.
//!
//! Up to [`MOST_REFINED`] unknowns each step solves with a refined factorisation and the search
//! ends at a fixed point, from which no step shrinks the gradient. With more unknowns, gradients are
//! sums of many terms, in whose rounding errors such a search would wander; it ends when a step close
//! to the minimiser no longer halves the gradient, or when ‖∇f‖/μ as computed is 1e-12. Steps
//! then come from Cholesky's factorisation, and above some 1500 unknowns (fewer where a product
//! with the Hessian costs little) from conjugate gradients.
//!
//! *Invariant*: every operation has a fixed order, so the bits of a minimiser are equal on
//! every machine.

use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, Singular, cholesky, solve};

/// The most unknowns for which the search ends at a fixed point, and is so short that its result is not
/// worth caching.
pub const MOST_REFINED: usize = 32;
/// The most unknowns for which the Hessian is factored, unless the function says otherwise.
pub const MOST_FACTORED: usize = 1500;
/// The most Newton steps; a strongly convex function needs few.
const MOST_STEPS: usize = 500;
/// The computed ‖∇f‖/μ at which a search in many unknowns ends.
const CLOSE: f64 = 1e-12;
/// The size of a gradient, relative to the gradient at the start, below which it consists of rounding
/// errors if a step no longer halves it. A larger gradient may shrink by less than half far from the
/// minimiser too, where steps are damped.
const SMALL: f64 = 1e-8;
/// The most conjugate-gradient iterations of one Newton step.
const MOST_ITERATIONS: usize = 1000;

/// A twice differentiable, convex function f of d unknowns. It remembers the point of
/// the last gradient, at which its Hessian and products with it are computed.
pub trait Objective {
    /// d, the number of unknowns.
    fn dim(&self) -> usize;
    /// μ > 0, a lower bound on the eigenvalues of all Hessians; `None` if f is not known to be strongly convex, so that
    /// it may have several minimisers or none.
    fn convexity(&self) -> Option<f64>;
    /// Whether f is known to have no minimiser, since it falls for ever along `direction`, d numbers.
    fn falls_along(&self, _direction: &[f64]) -> bool {
        false
    }
    /// ∇f(θ), d numbers; θ becomes the point at which Hessians are computed.
    fn gradient(&mut self, theta: &[f64]) -> Vec<f64>;
    /// ∇²f v at the point of the last gradient, d numbers.
    fn product(&self, v: &[f64]) -> Vec<f64>;
    /// ∇²f at the point of the last gradient, d × d, plus a multiple of the projection on the directions along which f
    /// is known to be flat, if there are any, which makes it regular. With more than [`MOST_REFINED`] unknowns only its lower
    /// triangle is read, so that the upper one may be undefined.
    fn hessian(&self) -> Matrix;
    /// The most unknowns for which factoring the Hessian takes less time than conjugate gradients.
    fn most_factored(&self) -> usize {
        MOST_FACTORED
    }
}

/// An approximate minimiser, and what is known of its error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Minimiser {
    /// θ, d numbers.
    pub theta: Vec<f64>,
    /// ‖∇f(θ)‖/μ as the search computed it, or ‖∇f(θ)‖ if μ is not known; its bits show whether a cached θ is the minimiser of a given
    /// function ([`Minimiser::is_at`]). It is no bound on the distance to the minimiser, since gradients have
    /// rounding errors.
    pub residual: f64,
    /// A bound on the distance to the minimiser that counts all rounding errors.
    pub error: f64,
}

/// How θ* is found where no formula gives it.
#[derive(Clone, Copy, Debug, Default)]
pub enum OptimumSearch<'k> {
    /// The minimiser is searched for.
    #[default]
    New,
    /// The result of an earlier search, from a cache, is taken if it is the minimiser of the same function;
    /// else the minimiser is searched for.
    Known(&'k Minimiser),
    /// There is no search, because nothing needs θ*: the minimiser stays unknown.
    LeftOut,
}

impl Minimiser {
    /// Stands for the minimiser of a function of d unknowns that was not searched for. θ is NaN, so that
    /// nothing can be computed from it unnoticed.
    pub fn unknown(d: usize) -> Self {
        Self { theta: vec![f64::NAN; d], residual: f64::INFINITY, error: f64::INFINITY }
    }

    /// Whether the minimiser was searched for; `false` for [`Minimiser::unknown`] alone.
    pub fn is_searched(&self) -> bool {
        self.residual.is_finite()
    }

    /// Whether the bound on the error says anything: it is at most ‖θ‖, or at most 1. A search whose result
    /// is not known in this sense has failed.
    pub fn is_known(&self) -> bool {
        self.error <= norm(&self.theta).max(1.0)
    }

    /// Whether θ is the result of a search for the minimiser of this very `f`: its residual, computed again,
    /// has the bits of the one that is kept. θ must have as many numbers as `f` has unknowns.
    pub fn is_at(&self, f: &mut impl Objective) -> bool {
        norm(&f.gradient(&self.theta)) / f.convexity().unwrap_or(1.0) == self.residual
    }
}

/// An approximate minimiser of `f`, by Newton's method from 0, whose steps are halved until the gradient
/// shrinks. It returns the last point even where it found no minimum, which its `residual` shows, and ends where f is
/// known to fall for ever along the point. Its `error` is always
/// infinite, until the caller computes a bound. The point at which `f` computes Hessians afterwards need not be θ.
pub fn minimise(f: &mut impl Objective) -> Minimiser {
    let refined = f.dim() <= MOST_REFINED;
    let close = f.convexity().filter(|_| !refined).map_or(0.0, |convexity| CLOSE * convexity);
    let mut theta = vec![0.0; f.dim()];
    let mut gradient = f.gradient(&theta);
    let first = norm(&gradient);
    for _ in 0..MOST_STEPS {
        let size = norm(&gradient);
        if size <= close || f.falls_along(&theta) {
            break;
        }
        let direction = newton_direction(f, &gradient, size / first);
        let Some(next) = damp_step(f, &theta, &direction, size) else { break };
        (theta, gradient) = next;
        if !refined && size <= SMALL * first && norm(&gradient) > 0.5 * size {
            break;
        }
    }
    let residual = norm(&gradient) / f.convexity().unwrap_or(1.0);
    Minimiser { theta, residual, error: f64::INFINITY }
}

/// The Newton step (∇²f)⁻¹g at the point of the last gradient, for a gradient g that is more exact than
/// the one that `f` computes: the bound on the error of a minimiser is sharpened by it. `None` if there are
/// too many unknowns for a factorisation of the Hessian.
pub fn factored_step(f: &impl Objective, gradient: &[f64]) -> Option<Vec<f64>> {
    let is_factored = f.dim() <= MOST_REFINED.max(f.most_factored());
    // Where the factorisation fails, conjugate gradients solve to their smallest tolerance, as 0 says.
    is_factored.then(|| newton_direction(f, gradient, 0.0))
}

/// ‖x‖, also where squares are too small or too large for double precision.
fn norm(x: &[f64]) -> f64 {
    let square = dot(x, x);
    if (1e-280..1e280).contains(&square) {
        return libm::sqrt(square);
    }
    let most = x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if most == 0.0 || !most.is_finite() {
        return libm::sqrt(square);
    }
    let parts: Vec<f64> = x.iter().map(|x| x / most).collect();
    most * libm::sqrt(dot(&parts, &parts))
}

/// The Newton direction (∇²f)⁻¹g for `gradient` g, d numbers, with the Hessian at the point of the last gradient that
/// `f` computed; the step goes against it. `progress` is the size of the gradient relative to the one at the start of
/// the search: conjugate gradients, which solve in place of a factorisation where there are many unknowns, need not
/// be more exact than this, within limits.
fn newton_direction(f: &impl Objective, gradient: &[f64], progress: f64) -> Vec<f64> {
    let d = f.dim();
    let direct = if d <= MOST_REFINED {
        let hessian = f.hessian();
        solve(&hessian, gradient).or_else(|_| Ok(cholesky(hessian)?.solve(gradient)))
    } else if d <= f.most_factored() {
        cholesky(f.hessian()).map(|factors| factors.solve(gradient))
    } else {
        Err(Singular)
    };
    // Also where rounding errors hide that the Hessian is positive definite.
    direct.unwrap_or_else(|_| conjugate_gradients(f, gradient, progress.clamp(1e-6, 0.1)))
}

/// The first of the points θ − direction, θ − direction/2, θ − direction/4, … whose gradient is shorter than
/// `size`, the length of the gradient at θ, and its gradient. `None` if the points become θ itself before,
/// or have a NaN: the search has ended.
fn damp_step(
    f: &mut impl Objective,
    theta: &[f64],
    direction: &[f64],
    size: f64,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut damping = 1.0;
    loop {
        let mut next = theta.to_vec();
        axpy(-damping, direction, &mut next);
        if next == theta || next.iter().any(|x| x.is_nan()) {
            return None;
        }
        let gradient = f.gradient(&next);
        if norm(&gradient) < size {
            return Some((next, gradient));
        }
        damping *= 0.5;
    }
}

/// The x with ‖∇²f x − b‖ ≤ tolerance ‖b‖, by conjugate gradients from 0, with the Hessian at the point of the last
/// gradient; what is found after [`MOST_ITERATIONS`] is returned whatever its residual. b must not be 0: then x would
/// be NaN.
fn conjugate_gradients(f: &impl Objective, b: &[f64], tolerance: f64) -> Vec<f64> {
    let mut x = vec![0.0; b.len()];
    let mut residual = b.to_vec();
    let mut along = b.to_vec();
    let mut square = dot(b, b);
    let enough = tolerance * tolerance * square;
    for _ in 0..MOST_ITERATIONS {
        let product = f.product(&along);
        let length = square / dot(&along, &product);
        axpy(length, &along, &mut x);
        axpy(-length, &product, &mut residual);
        let next = dot(&residual, &residual);
        if next <= enough || !next.is_finite() {
            break;
        }
        let share = next / square;
        for (along, residual) in along.iter_mut().zip(&residual) {
            *along = residual + share * *along;
        }
        square = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum of functions of one unknown each, with the derivatives sinh(x_i − 3) or, if it is `flat`, 1,
    /// which have no root.
    struct Separable {
        flat: bool,
        theta: Vec<f64>,
    }

    impl Separable {
        fn curved(d: usize) -> Self {
            Self { flat: false, theta: vec![0.0; d] }
        }

        fn flat(d: usize) -> Self {
            Self { flat: true, theta: vec![0.0; d] }
        }

        fn curvature(&self, i: usize) -> f64 {
            if self.flat { 0.0 } else { libm::cosh(self.theta[i] - 3.0) }
        }
    }

    impl Objective for Separable {
        fn dim(&self) -> usize {
            self.theta.len()
        }
        fn convexity(&self) -> Option<f64> {
            Some(1.0)
        }
        fn gradient(&mut self, theta: &[f64]) -> Vec<f64> {
            self.theta = theta.to_vec();
            if self.flat {
                return vec![1.0; theta.len()];
            }
            theta.iter().map(|x| libm::sinh(x - 3.0)).collect()
        }
        fn product(&self, v: &[f64]) -> Vec<f64> {
            v.iter().enumerate().map(|(i, v)| self.curvature(i) * v).collect()
        }
        fn hessian(&self) -> Matrix {
            let d = self.dim();
            Matrix::from_fn(d, d, |i, j| if i == j { self.curvature(i) } else { 0.0 })
        }
    }

    /// Up to [`MOST_REFINED`] unknowns the root is exact; with more it is within the residual, by Cholesky's
    /// factorisation and by conjugate gradients.
    #[test]
    fn finds_a_root_far_from_the_start() {
        // From 0 the gradient falls by e at each full step.
        let found = minimise(&mut Separable::curved(1));
        assert_eq!((found.theta, found.residual), (vec![3.0], 0.0));
        for d in [40, MOST_FACTORED + 1] {
            let found = minimise(&mut Separable::curved(d));
            assert!(found.residual <= CLOSE, "{}", found.residual);
            assert!(found.theta.iter().all(|x| (x - 3.0).abs() <= found.residual));
        }
    }

    #[test]
    fn a_flat_function_has_a_large_residual() {
        for d in [1, 40] {
            let found = minimise(&mut Separable::flat(d));
            assert!(found.residual >= 1.0, "{}", found.residual);
        }
    }

    /// Lengths are right where squares underflow or overflow, and an error of up to the length of θ counts as known.
    #[test]
    fn lengths_beyond_the_squares_of_double_precision() {
        for scale in [1e-200, 1e-160, 1.0, 1e160, 1e200] {
            let have = norm(&[3.0 * scale, -4.0 * scale]) / scale;
            assert!((have - 5.0).abs() < 1e-14, "{scale}: {have}");
        }
        assert_eq!(norm(&[0.0, 0.0]), 0.0);
        assert!(norm(&[f64::NAN, 1.0]).is_nan() && norm(&[f64::INFINITY]) == f64::INFINITY);
        let vague = Minimiser { theta: vec![3.0, 4.0], residual: 0.0, error: 6.0 };
        assert!(!vague.is_known() && Minimiser { error: 5.0, ..vague }.is_known());
    }
}
