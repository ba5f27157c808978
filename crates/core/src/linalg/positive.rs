//! Proofs that a linear map of second moments contracts, THEORY (5.5) of docs/THEORY.md.
//!
//! Let T be linear on tuples of symmetric matrices and map positive semidefinite ones to such, as the
//! exact recursion of second moments does. Its spectral radius ρ is below 1 *if and only if* some
//! X ⪰ 0 has X − T(X) ≻ 0. For T\* has an eigenvector Y ⪰ 0, Y ≠ 0, of eigenvalue ρ (Krein and Rutman),
//! so that (1 − ρ) ⟨Y, X⟩ = ⟨Y, X − T(X)⟩ > 0, where ⟨Y, X⟩ ≥ 0. If ρ < 1, then X = Σ Tᵏ(I) is such
//! an X, with X − T(X) = I.
//!
//! The formal fixed point of X = T(X) + C for the covariance C of the noise proves nothing: it exists
//! for nearly every T, and its diagonal, or the whole matrix if C does not reach the growing
//! directions, may be positive although ρ > 1. So X is sought for C = I, and what was found is
//! checked: that it is positive definite, and that X − T(X) ⪰ ½ I in spite of the rounding errors in
//! T(X), which grow with X, that is, with 1/(1 − ρ). That check fails before ρ reaches 1.

use super::iteration::rough_fixed_point;
use super::{Matrix, cholesky};
use crate::kernel::difference;

/// How a tuple of symmetric matrices, such as second moments of types of clients, is written as one vector: matrix
/// after matrix, the entries on and above its diagonal, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymmetricBlocks {
    /// The order of each matrix.
    orders: Vec<usize>,
}

impl SymmetricBlocks {
    /// Vectors of tuples of matrices of these orders.
    pub fn new(orders: impl IntoIterator<Item = usize>) -> Self {
        Self { orders: orders.into_iter().collect() }
    }

    /// The length of the vector: n(n + 1)/2 numbers for each matrix of order n.
    pub fn length(&self) -> usize {
        self.orders.iter().map(|n| n * (n + 1) / 2).sum()
    }

    /// For each number of a vector, in order, the index of its matrix, its row i and its column j ≥ i.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.orders
            .iter()
            .enumerate()
            .flat_map(|(block, n)| (0..*n).flat_map(move |i| (i..*n).map(move |j| (block, i, j))))
    }

    /// The vector of the tuple whose matrices are all identities, which is positive definite: powers of a map are
    /// applied to it.
    pub fn identity(&self) -> Vec<f64> {
        self.places().map(|(_, i, j)| f64::from(u8::from(i == j))).collect()
    }

    /// Whether the spectral radius of a linear map of such tuples that preserves positive semidefinite ones
    /// is below 1 beyond doubt, THEORY (5.5): then second moments that follow the map stay bounded. `map` applies it
    /// to a vector; `whole` makes its matrix, which is asked for only if it is small. `false` says that no proof was
    /// found, also where the radius is below 1 by less than rounding errors hide. That the map preserves positive
    /// semidefinite tuples is not checked, and without it nothing is proven.
    pub fn contracts(
        &self,
        map: impl Fn(&[f64]) -> Vec<f64>,
        whole: impl FnOnce() -> Matrix,
    ) -> bool {
        let identity = self.identity();
        if identity.is_empty() {
            return true;
        }
        // Coordinates may differ by orders of magnitude. In these units the map makes numbers of about
        // the same size of the identity, so that rounding errors of the largest hide no small ones.
        let Some(units) = self.units(&map(&identity)) else { return false };
        // The map in these units, which the search and the proof both apply.
        let scaled_map = |x: &[f64]| {
            let unscaled: Vec<f64> = x.iter().zip(&units).map(|(x, unit)| x * unit).collect();
            let mut after = map(&unscaled);
            after.iter_mut().zip(&units).for_each(|(x, unit)| *x /= unit);
            after
        };
        // A residual of this norm is at most ½ in each direction.
        let residual = 0.25 / libm::sqrt(self.orders.iter().sum::<usize>() as f64);
        let found = rough_fixed_point(
            &identity,
            scaled_map,
            || {
                let whole = whole();
                let n = units.len();
                Matrix::from_fn(n, n, |i, j| whole[(i, j)] * units[j] / units[i])
            },
            residual,
        );
        found.is_some_and(|x| self.is_proof(&x, &scaled_map(&x)))
    }

    /// The unit in which each number of a vector is measured, given `image`, which the map makes of the identity:
    /// entry (i, j) of a matrix has the unit s_i s_j with s_i² = 1 + image_ii. `None` if `image` is not finite.
    fn units(&self, image: &[f64]) -> Option<Vec<f64>> {
        let mut scales: Vec<Vec<f64>> = self.orders.iter().map(|n| vec![1.0; *n]).collect();
        for ((block, i, j), x) in self.places().zip(image) {
            if !x.is_finite() {
                return None;
            }
            if i == j {
                scales[block][i] = libm::sqrt(1.0 + x.max(0.0));
            }
        }
        Some(self.places().map(|(block, i, j)| scales[block][i] * scales[block][j]).collect())
    }

    /// Whether X ≻ 0 and X − T(X) ⪰ ½ I, where `x` is X and `after` is T(X) as it was computed: then the spectral
    /// radius of T is below 1, also if the rounding errors of `after` have a norm below ½.
    pub fn is_proof(&self, x: &[f64], after: &[f64]) -> bool {
        let mut left = difference(x, after);
        for ((_, i, j), left) in self.places().zip(&mut left) {
            *left -= if i == j { 0.5 } else { 0.0 };
        }
        self.is_definite(x) && self.is_definite(&left)
    }

    /// Whether all matrices of the tuple are positive definite to working precision: whether they have Cholesky
    /// factors.
    fn is_definite(&self, numbers: &[f64]) -> bool {
        if numbers.iter().any(|x| !x.is_finite()) {
            return false;
        }
        let mut matrices: Vec<Matrix> = self.orders.iter().map(|n| Matrix::zeros(*n, *n)).collect();
        for ((block, i, j), x) in self.places().zip(numbers) {
            matrices[block][(i, j)] = *x;
            matrices[block][(j, i)] = *x;
        }
        matrices.into_iter().all(|matrix| cholesky(matrix).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// The numbers of Σ_k M_k S M_kᵀ, for the symmetric matrix S with these numbers.
    fn of_factors(factors: &[Matrix], numbers: &[f64]) -> Vec<f64> {
        let n = factors[0].rows();
        let blocks = SymmetricBlocks::new([n]);
        let mut whole = Matrix::zeros(n, n);
        for ((_, i, j), x) in blocks.places().zip(numbers) {
            whole[(i, j)] = *x;
            whole[(j, i)] = *x;
        }
        let mut sum = Matrix::zeros(n, n);
        factors.iter().for_each(|m| sum.add(1.0, &m.times(&whole).times_transposed(m)));
        blocks.places().map(|(_, i, j)| sum[(i, j)]).collect()
    }

    /// Random positive maps, scaled to radii on both sides of 1, are told apart, whether the system is
    /// solved directly or by GMRES.
    #[test]
    fn positive_maps_contract_up_to_a_radius_of_1() {
        let mut rng = Stream::shared_instance(5);
        for n in [1, 2, 4, 7, 36] {
            let mut random = || {
                let all = (0..n * n).map(|_| rng.gaussian()).collect();
                Matrix::from_entries(n, n, all)
            };
            let factors = [random(), random()];
            let blocks = SymmetricBlocks::new([n]);
            let trace = |x: &[f64]| {
                blocks.places().zip(x).filter(|((_, i, j), _)| i == j).map(|(_, x)| x).sum()
            };
            let map = |x: &[f64]| of_factors(&factors, x);
            let radius = super::super::growth(blocks.identity(), map, trace).unwrap();
            for (wanted, contracts) in
                [(0.3, true), (0.99, true), (0.99999, true), (1.00001, false), (1.5, false)]
            {
                let scale = libm::sqrt(wanted / radius);
                let scaled = factors.clone().map(|m| m.scaled(scale));
                let map = |x: &[f64]| of_factors(&scaled, x);
                let whole = || Matrix::of_map(blocks.length(), map);
                assert_eq!(blocks.contracts(map, whole), contracts, "n = {n}, {wanted}");
            }
        }
    }

    /// A saddle: without noise along the direction that grows the formal fixed point is positive.
    #[test]
    fn a_positive_fixed_point_of_some_noise_is_no_proof() {
        let saddle = [Matrix::from_entries(2, 2, vec![0.5, 0.0, 0.0, 1.5])];
        let blocks = SymmetricBlocks::new([2]);
        let map = |x: &[f64]| of_factors(&saddle, x);
        let fixed = [1.0 / 0.75, 0.0, 0.0];
        let after = map(&fixed);
        assert!((fixed[0] - after[0] - 1.0).abs() < 1e-15 && !blocks.is_proof(&fixed, &after));
        assert!(!blocks.contracts(map, || Matrix::of_map(3, map)));
        // Rotations have the radius 1: no X exists.
        let c = libm::cos(0.7);
        let s = libm::sin(0.7);
        let rotation = [Matrix::from_entries(2, 2, vec![c, -s, s, c])];
        let map = |x: &[f64]| of_factors(&rotation, x);
        assert!(!blocks.contracts(map, || Matrix::of_map(3, map)));
        let nothing = SymmetricBlocks::new([0, 0]);
        assert!(nothing.contracts(|x| x.to_vec(), || Matrix::zeros(0, 0)));
    }
}
