//! Newton's method to the last bit, for optima without a formula.

use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, Singular, solve};

/// The most steps; a strongly convex function needs few.
const MAX_STEPS: usize = 500;

/// The root of `gradient`, from 0, by damped Newton steps: a step is halved until the
/// gradient shrinks, and the search ends at a fixed point, from which no step shrinks it.
/// So the result depends on no tolerance.
///
/// # Errors
/// [`Singular`] if a Hessian is, or if no fixed point was reached.
pub fn minimise(
    d: usize,
    gradient: impl Fn(&[f64]) -> Vec<f64>,
    hessian: impl Fn(&[f64]) -> Matrix,
) -> Result<Vec<f64>, Singular> {
    let mut x = vec![0.0; d];
    let mut g = gradient(&x);
    for _ in 0..MAX_STEPS {
        let size = dot(&g, &g);
        if size == 0.0 {
            return Ok(x);
        }
        let direction = solve(&hessian(&x), &g)?;
        let mut damping = 1.0;
        let accepted = loop {
            let mut next = x.clone();
            axpy(-damping, &direction, &mut next);
            if next == x {
                break None;
            }
            let g_next = gradient(&next);
            if dot(&g_next, &g_next) < size {
                break Some((next, g_next));
            }
            damping *= 0.5;
        };
        match accepted {
            Some(next) => (x, g) = next,
            None => return Ok(x),
        }
    }
    Err(Singular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_root_far_from_the_start() {
        // f' = sinh(x − 3), from 0: the gradient falls by e at each full step.
        let root = minimise(
            1,
            |x| vec![libm::sinh(x[0] - 3.0)],
            |x| Matrix::from_fn(1, 1, |_, _| libm::cosh(x[0] - 3.0)),
        );
        assert_eq!(root, Ok(vec![3.0]));
    }

    #[test]
    fn a_flat_function_has_no_unique_optimum() {
        assert_eq!(minimise(1, |_| vec![1.0], |_| Matrix::zeros(1, 1)), Err(Singular));
    }
}
