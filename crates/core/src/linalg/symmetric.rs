//! Eigenvalues and axes of small symmetric matrices, by rotations in a fixed order: their bits are the same on every
//! processor.

use super::Matrix;

/// A symmetric matrix as V diag(λ) Vᵀ.
#[derive(Clone, Debug)]
pub struct SymmetricEigen {
    /// The eigenvalues λ_i, in no order.
    pub values: Vec<f64>,
    /// V, whose column i is the axis of λ_i.
    pub axes: Matrix,
}

/// The most sweeps over all pairs of coordinates. A handful is enough.
const MOST_SWEEPS: usize = 60;

/// A pair of coordinates is left alone once its entry is at most this small relative to the geometric mean of its
/// diagonal entries, or to the largest entry of the matrix times the same.
const NEGLIGIBLE: f64 = f64::EPSILON / 4.0;

impl SymmetricEigen {
    /// The eigenvalues and axes of a symmetric matrix, by Jacobi's rotations: each makes one pair of entries off the
    /// diagonal 0.
    pub fn new(matrix: &Matrix) -> Self {
        let n = matrix.rows();
        let mut a = matrix.clone();
        let mut axes = Matrix::identity(n);
        let largest = matrix.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        for _ in 0..MOST_SWEEPS {
            let mut is_diagonal = true;
            for i in 0..n {
                for j in i + 1..n {
                    let apart = a[(i, j)].abs();
                    let size = libm::sqrt((a[(i, i)] * a[(j, j)]).abs());
                    if apart <= NEGLIGIBLE * size.max(NEGLIGIBLE * largest) {
                        continue;
                    }
                    is_diagonal = false;
                    rotate(&mut a, &mut axes, i, j);
                }
            }
            if is_diagonal {
                break;
            }
        }
        Self { values: (0..n).map(|i| a[(i, i)]).collect(), axes }
    }

    /// V diag(f(λ)) Vᵀ: the function f of the matrix.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Matrix {
        let n = self.values.len();
        let values: Vec<f64> = self.values.iter().map(|x| f(*x)).collect();
        let scaled = Matrix::from_fn(n, n, |i, k| self.axes[(i, k)] * values[k]);
        scaled.times_transposed(&self.axes)
    }

    /// The largest absolute value of an eigenvalue, the spectral norm.
    pub fn norm(&self) -> f64 {
        self.values.iter().fold(0.0, |most, x| most.max(x.abs()))
    }

    /// The smallest eigenvalue; infinite without any.
    pub fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Rotates coordinates i and j so that entry (i, j) of `a` becomes 0, and the columns of `axes` with them.
fn rotate(a: &mut Matrix, axes: &mut Matrix, i: usize, j: usize) {
    let n = a.rows();
    let half = (a[(j, j)] - a[(i, i)]) / (2.0 * a[(i, j)]);
    // The smaller root of t² + 2 half t = 1, the tangent of the angle.
    let tangent = half.signum() / (half.abs() + libm::sqrt(half * half + 1.0));
    let cosine = 1.0 / libm::sqrt(tangent * tangent + 1.0);
    let sine = tangent * cosine;
    for k in 0..n {
        let [x, y] = [a[(k, i)], a[(k, j)]];
        a[(k, i)] = cosine * x - sine * y;
        a[(k, j)] = sine * x + cosine * y;
        let [x, y] = [axes[(k, i)], axes[(k, j)]];
        axes[(k, i)] = cosine * x - sine * y;
        axes[(k, j)] = sine * x + cosine * y;
    }
    for k in 0..n {
        let [x, y] = [a[(i, k)], a[(j, k)]];
        a[(i, k)] = cosine * x - sine * y;
        a[(j, k)] = sine * x + cosine * y;
    }
    // What is 0 but for rounding.
    a[(i, j)] = 0.0;
    a[(j, i)] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::spectrum::{direction, rotated};
    use crate::rng::Stream;

    #[test]
    fn eigenvalues_and_axes_are_found() {
        let mut rng = Stream::shared_instance(3);
        for n in [1, 2, 5, 16] {
            let values: Vec<f64> = (0..n).map(|i| libm::pow(10.0, 0.4 * i as f64 - 3.0)).collect();
            let matrix = rotated(&values, &direction(n, &mut rng));
            let found = SymmetricEigen::new(&matrix);
            let mut sorted = found.values.clone();
            sorted.sort_by(f64::total_cmp);
            let most = values[n - 1];
            for (have, want) in sorted.iter().zip(&values) {
                assert!((have - want).abs() < 1e-14 * most, "{n}: {have} {want}");
            }
            let again = found.map(|x| x).plus(-1.0, &matrix);
            assert!(again.entries().iter().all(|x| x.abs() < 1e-14 * most), "{again:?}");
            let product = found.axes.times_transposed(&found.axes);
            let apart = product.plus(-1.0, &Matrix::identity(n));
            assert!(apart.entries().iter().all(|x| x.abs() < 1e-14), "{apart:?}");
            assert!((found.norm() - most).abs() < 1e-14 * most);
        }
    }

    #[test]
    fn equal_and_vanishing_eigenvalues_are_found() {
        for matrix in [
            Matrix::zeros(3, 3),
            Matrix::identity(3),
            Matrix::outer(&[1.0, 2.0, 2.0], &[1.0, 2.0, 2.0]),
        ] {
            let found = SymmetricEigen::new(&matrix);
            let again = found.map(|x| x).plus(-1.0, &matrix);
            assert!(again.entries().iter().all(|x| x.abs() < 1e-14), "{found:?}");
            assert!(found.least().abs() < 1e-14 || found.least() == 1.0);
        }
    }
}
