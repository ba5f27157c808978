//! Extreme eigenvalues of large matrices, of which only products with vectors are known.
//!
//! Lanczos' iteration builds an orthonormal basis from a fixed pseudo-random start, and the
//! matrix within it, which is tridiagonal. Its extreme eigenvalues (Ritz values) lie within the
//! spectrum, and each is at most β|s| from an eigenvalue of the matrix, with β the norm of the
//! next direction and s the last number of the Ritz vector. Early in the iteration that
//! eigenvalue need not be the extreme one, so the stated error is at least the distance that the
//! Ritz value moved in the second half of the steps. Where convergence is geometric, that
//! distance is about as small as β|s|; where it is slow, the rest of the way is shorter. This is
//! no proof: the error would be larger if the start had almost no part along the eigenvector.
//!
//! *Invariant*: every operation has a fixed order, so the bits are equal on every machine.

use crate::kernel::outer::add_rows;
use crate::kernel::{Rows, axpy, dot, products};
use crate::rng::Stream;

/// The seed of the pseudo-random start of the iteration.
const SEED: u64 = 1950;
/// A next direction of this size, relative to the matrix, consists of rounding errors.
const ROUNDING: f64 = 1e-14;
/// The square of a Ritz vector, relative to that of its last number, at which the vector has
/// converged; a larger one could overflow.
const ENOUGH: f64 = 1e200;

/// A number, and how far it may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approximation {
    /// The number that was found.
    pub value: f64,
    /// About the largest distance between `value` and the exact number.
    pub error: f64,
}

/// The extreme eigenvalues of a symmetric matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// The largest eigenvalue, not above the exact one.
    pub largest: Approximation,
    /// The smallest eigenvalue, not below the exact one.
    pub smallest: Approximation,
}

impl Extremes {
    /// The spectral norm: the largest absolute value of an eigenvalue, not above the exact one.
    pub fn norm(&self) -> Approximation {
        let largest = self.largest;
        let smallest = self.smallest;
        let value = largest.value.max(-smallest.value);
        let most = (largest.value + largest.error).max(smallest.error - smallest.value);
        Approximation { value, error: most - value }
    }
}

/// The extreme eigenvalues of a symmetric d × d matrix, by Lanczos' iteration, after at most `steps` products, fewer
/// once they are good `enough`. `product(x, out)` writes the matrix times x to `out`, d numbers, all of which it must
/// set. `d` and `steps` are 1 or more. If products are not finite, neither are the errors.
pub fn extremes(
    d: usize,
    steps: usize,
    enough: impl Fn(&Extremes) -> bool,
    mut product: impl FnMut(&[f64], &mut [f64]),
) -> Extremes {
    let mut rng = Stream::shared_instance(SEED);
    let mut next: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
    let mut basis = Vec::new();
    let mut inner = Tridiagonal::default();
    let mut size = libm::sqrt(dot(&next, &next));
    // The largest and the smallest Ritz value after each step.
    let mut history: Vec<[f64; 2]> = Vec::new();
    loop {
        basis.extend(next.iter().map(|x| x / size));
        let vectors = Rows::new(&basis, d, d);
        let last = vectors.row(vectors.len() - 1);
        product(last, &mut next);
        let along = dot(last, &next);
        axpy(-along, last, &mut next);
        if let Some(before) = vectors.len().checked_sub(2) {
            axpy(-size, vectors.row(before), &mut next);
        }
        // Orthogonalised against all vectors again: what rounding leaves along them would grow to copies of
        // eigenvalues.
        let mut overlaps = vec![0.0; vectors.len()];
        products(vectors, &next, &mut overlaps);
        overlaps.iter_mut().for_each(|overlap| *overlap = -*overlap);
        add_rows(vectors, &overlaps, &mut next);
        size = libm::sqrt(dot(&next, &next));
        inner.diagonal.push(along);
        inner.beside.push(size);
        let mut found = inner.extremes();
        history.push([found.largest.value, found.smallest.value]);
        if history.len() == d || size <= ROUNDING * found.norm().value {
            return found;
        }
        // The errors are at least how far the values moved in the second half of the steps.
        let earlier = history[(history.len() - 1) / 2];
        for (now, earlier) in [&mut found.largest, &mut found.smallest].into_iter().zip(earlier) {
            let moved = (now.value - earlier).abs();
            if moved > now.error {
                now.error = moved;
            }
        }
        if history.len() >= steps || enough(&found) || !size.is_finite() {
            return found;
        }
    }
}

/// The conditions under which [`spectral_norm`] ends its iteration.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// The error of the norm, relative to the norm, that is small enough.
    pub relative: f64,
    /// The error of the norm that is small enough whatever the norm is.
    pub floor: f64,
    /// The most steps of the iteration, whatever the error is after them.
    pub steps: usize,
}

impl Precision {
    /// Whether the error of a norm is small enough.
    fn is_met_by(&self, norm: Approximation) -> bool {
        norm.error <= (self.relative * norm.value).max(self.floor)
    }
}

/// The spectral norm of a d × d matrix to this precision, with its error, by Lanczos' iteration.
/// `product(transposed, x, out)` writes the matrix, or its transpose, times x to `out`; the transpose is not asked
/// for if the matrix is `symmetric`.
pub fn spectral_norm(
    d: usize,
    symmetric: bool,
    precision: Precision,
    mut product: impl FnMut(bool, &[f64], &mut [f64]),
) -> Approximation {
    let steps = precision.steps;
    if symmetric {
        return extremes(
            d,
            steps,
            |found| precision.is_met_by(found.norm()),
            |x, out| product(false, x, out),
        )
        .norm();
    }
    // The eigenvalues of the transpose times the matrix are the squares of the singular values.
    let mut between = vec![0.0; d];
    let squares = extremes(
        d,
        steps,
        |found| precision.is_met_by(root_of_largest(found)),
        |x, out| {
            product(false, x, &mut between);
            product(true, &between, out);
        },
    );
    root_of_largest(&squares)
}

/// The square root, with its error, of the largest eigenvalue of a positive semidefinite matrix: the spectral norm of A
/// if the matrix is AᵀA.
fn root_of_largest(found: &Extremes) -> Approximation {
    let square = found.largest.value.max(0.0);
    let value = libm::sqrt(square);
    Approximation { value, error: libm::sqrt(square + found.largest.error) - value }
}

/// The tridiagonal matrix VᵀAV of the iteration, for the large matrix A and the basis V.
#[derive(Default)]
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// The numbers beside the diagonal, and at the end the norm of the next direction, β.
    beside: Vec<f64>,
}

impl Tridiagonal {
    /// The extreme eigenvalues of this matrix. The error of each is β|s|, a bound on its distance from some eigenvalue
    /// of the large matrix.
    fn extremes(&self) -> Extremes {
        let n = self.diagonal.len();
        Extremes { largest: self.eigenvalue(n), smallest: self.eigenvalue(1) }
    }

    /// Eigenvalue number `rank`, counted from the smallest, which is number 1, with its error β|s|.
    fn eigenvalue(&self, rank: usize) -> Approximation {
        let value = self.bisect(rank);
        Approximation { value, error: self.residual(value) }
    }

    /// Eigenvalue number `rank`, counted from 1, by bisection from an interval that holds all eigenvalues
    /// (Gershgorin) until its ends are neighbouring doubles.
    fn bisect(&self, rank: usize) -> f64 {
        let inside = &self.beside[..self.beside.len() - 1];
        let widest = inside.iter().fold(0.0_f64, |most, x| most.max(*x));
        let largest = self.diagonal.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let reach = largest + 2.0 * widest;
        let mut low = -reach;
        let mut high = reach;
        loop {
            let middle = 0.5 * (low + high);
            // Neighbouring doubles have no middle. The condition also ends the search if a bound is NaN.
            if !(low < middle && middle < high) {
                return middle;
            }
            if self.count_below(middle) >= rank { high = middle } else { low = middle }
        }
    }

    /// How many eigenvalues of this matrix T are below x: as many as the elimination of T − x I has negative pivots
    /// (Sturm).
    fn count_below(&self, x: f64) -> usize {
        let mut count = 0;
        let mut pivot = 1.0;
        for (i, diagonal) in self.diagonal.iter().enumerate() {
            let beside = if i == 0 { 0.0 } else { self.beside[i - 1] };
            pivot = diagonal - x - beside * beside / pivot;
            // A pivot of 0 cannot be divided by; this one belongs to a matrix that differs by less than
            // the rounding errors.
            if pivot == 0.0 {
                pivot = f64::MIN_POSITIVE;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    }

    /// A bound on the distance of an eigenvalue `value` of this matrix from an eigenvalue of the large one: β|s|, with
    /// s the last number of its eigenvector of length 1. The eigenvector is computed from its last number, which is
    /// taken as 1, to the first: in this direction rounding errors do not grow where the extremes have converged.
    fn residual(&self, value: f64) -> f64 {
        let n = self.diagonal.len();
        // The square of the eigenvector's length, and its numbers at i + 1 and at i.
        let mut square = 0.0;
        let mut after = 0.0;
        let mut here = 1.0;
        for i in (0..n).rev() {
            square += here * here;
            if square > ENOUGH {
                break;
            }
            if i > 0 {
                let right = if i + 1 < n { self.beside[i] * after } else { 0.0 };
                let before = ((value - self.diagonal[i]) * here - right) / self.beside[i - 1];
                after = here;
                here = before;
            }
        }
        self.beside[n - 1] / libm::sqrt(square)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    const EXACT: f64 = 1e-10;

    /// A matrix with Gaussian entries, of which the symmetric part is taken if it shall be `symmetric`.
    fn random(d: usize, symmetric: bool) -> Matrix {
        let mut rng = Stream::shared_instance(d as u64);
        let all = Matrix::from_entries(d, d, (0..d * d).map(|_| rng.gaussian()).collect());
        if symmetric { all.symmetric_part() } else { all }
    }

    /// A relative error of 1e-6, after at most `steps` steps.
    fn within(steps: usize) -> Precision {
        Precision { relative: 1e-6, floor: 0.0, steps }
    }

    /// The product with a matrix as [`extremes`] takes it.
    fn apply(matrix: &Matrix) -> impl Fn(&[f64], &mut [f64]) {
        |x, out| out.copy_from_slice(&matrix.apply(x))
    }

    #[test]
    fn extremes_are_those_of_the_dense_decomposition_within_their_bounds() {
        let symmetric = true;
        for d in [1, 2, 3, 7, 40, 150, 300] {
            let matrix = random(d, symmetric);
            let (largest, smallest) = matrix.symmetric_extremes().unwrap();
            for (steps, precision) in [(5, 0.0), (20, 0.0), (d, 1e-6)] {
                let enough = |e: &Extremes| e.norm().error <= precision * e.norm().value;
                let found = extremes(d, steps, enough, apply(&matrix));
                let above = found.largest.value - largest;
                let below = smallest - found.smallest.value;
                assert!(above < EXACT && below < EXACT, "{d}: {found:?}");
                assert!(-above <= found.largest.error + EXACT, "{d}, {steps}: {found:?} {largest}");
                assert!(-below <= found.smallest.error + EXACT, "{d}, {steps}: {found:?}");
                let norm = found.norm();
                let exact = largest.max(-smallest);
                assert!((exact - norm.value).abs() <= norm.error + EXACT, "{norm:?} {exact}");
                assert!(steps < d || norm.error <= 1e-6 * exact + EXACT, "{d}: {norm:?}");
            }
        }
    }

    #[test]
    fn norms_are_those_of_the_dense_decomposition_within_their_bounds() {
        for d in [1, 2, 5, 60, 200] {
            for symmetric in [true, false] {
                let matrix = random(d, symmetric);
                let transpose = matrix.transpose();
                let exact = matrix.spectral_norm().unwrap();
                for steps in [4, 15, d] {
                    let found = spectral_norm(d, symmetric, within(steps), |other, x, out| {
                        assert!(!(symmetric && other));
                        apply(if other { &transpose } else { &matrix })(x, out);
                    });
                    let off = exact - found.value;
                    assert!(-EXACT < off && off <= found.error + EXACT, "{d}: {found:?} {exact}");
                    assert!(steps < d || found.error <= 1e-6 * exact + EXACT, "{d}: {found:?}");
                }
            }
        }
    }

    /// Few distinct eigenvalues: the basis ends before d.
    #[test]
    fn a_matrix_of_low_rank_takes_few_steps() {
        let d = 500;
        let mut rng = Stream::shared_instance(2);
        let u: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
        let square = dot(&u, &u);
        let mut count = 0;
        let found = extremes(
            d,
            d,
            |_| false,
            |x: &[f64], out: &mut [f64]| {
                count += 1;
                let along = dot(&u, x);
                out.iter_mut().zip(x).zip(&u).for_each(|((out, x), u)| *out = 0.5 * x + along * u);
            },
        );
        assert!(count <= 4, "{count}");
        assert!((found.largest.value / (0.5 + square) - 1.0).abs() < 1e-12, "{found:?}");
        assert!((found.smallest.value - 0.5).abs() < 1e-9, "{found:?}");
        let symmetric = false;
        let zero = spectral_norm(d, symmetric, within(d), |_, _, out| out.fill(0.0));
        assert_eq!(zero, Approximation { value: 0.0, error: 0.0 });
    }

    /// Eigenvalues are dense at the small end of the spectrum, where the iteration converges slowly. The error that is
    /// stated after few steps is large enough.
    #[test]
    fn an_unfinished_iteration_states_a_larger_bound() {
        let values: Vec<f64> = (0..2000).map(|i| libm::exp(-0.007 * f64::from(i))).collect();
        let apply = |x: &[f64], out: &mut [f64]| {
            out.iter_mut().zip(x).zip(&values).for_each(|((out, x), value)| *out = x * value);
        };
        let exact = values[values.len() - 1];
        let mut last = f64::INFINITY;
        for steps in [10, 40, 160] {
            let found = extremes(values.len(), steps, |_| false, apply).smallest;
            assert!(found.value - exact <= found.error, "{steps}: {found:?}, not {exact}");
            assert!(found.error < last);
            last = found.error;
        }
        assert!(last > 0.1 * exact, "{last}, {exact}");
    }

    #[test]
    fn what_is_not_a_number_ends_the_iteration() {
        let found = extremes(9, 9, |_| false, |_, out| out.fill(f64::NAN));
        assert!(found.norm().error.is_nan());
    }
}
