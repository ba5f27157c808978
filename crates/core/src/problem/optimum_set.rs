//! The set of optima where θ* is not unique.

use crate::kernel::{axpy, difference, dot};
use crate::linalg::{Matrix, RowSpace, Singular, solve};

/// The residual of a point, relative to the sizes of the terms of the system, up to which it counts as a root.
const CONSISTENT: f64 = 1e-9;

/// The affine space of all points where the mean field is 0, θ* plus the directions along which the mean field does not
/// change: all minimisers of a convex function that is flat along these. It has one dimension at least.
///
/// θ has a row of d numbers for each of K classes, or a single row. The directions are those in which each row is
/// orthogonal to a space, which the records or the rows of a matrix span; and, if only differences of rows matter, those
/// in which all rows change alike. Whether vectors span a space is decided up to rounding errors.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimumSet {
    /// The space to which the directions of a row are orthogonal.
    space: RowSpace,
    /// K, the number of rows.
    classes: usize,
    /// Whether only differences of rows matter.
    differences: bool,
}

impl OptimumSet {
    /// The set for a mean field that depends on θ through the products of each of its K = `classes` rows with vectors in
    /// `space`, or if `differences` through the differences of these products between rows; `None` if it is a point.
    pub fn new(space: RowSpace, classes: usize, differences: bool) -> Option<Self> {
        let set = Self { space, classes, differences };
        (set.dimension() > 0).then_some(set)
    }

    /// The number of dimensions of the set, 1 or more.
    pub fn dimension(&self) -> usize {
        let rows = self.classes - usize::from(self.differences);
        self.classes * self.space.dim() - rows * self.space.rank()
    }

    /// The part of a vector like θ that is orthogonal to the set: what is left of the difference of two points if one of
    /// them may move within the set.
    pub fn project(&self, v: &[f64]) -> Vec<f64> {
        let d = self.space.dim();
        let mut projected: Vec<f64> =
            v.chunks_exact(d).flat_map(|row| self.space.project(row)).collect();
        if self.differences {
            let mut mean = vec![0.0; d];
            let share = 1.0 / self.classes as f64;
            projected.chunks_exact(d).for_each(|row| axpy(share, row, &mut mean));
            projected.chunks_exact_mut(d).for_each(|row| axpy(-1.0, &mean, row));
        }
        projected
    }

    /// The squared distance of θ from the set, given a point of it.
    pub fn sq_distance(&self, theta: &[f64], optimum: &[f64]) -> f64 {
        let apart = self.project(&difference(theta, optimum));
        dot(&apart, &apart)
    }

    /// E of the squared distance from the set, for a random point whose difference from a point of the set has this mean
    /// and this covariance: the trace of the second moments in the directions orthogonal to the set.
    pub fn expected_sq_distance(&self, mean: &[f64], covariance: &Matrix) -> f64 {
        let apart = self.project(mean);
        let mut sum = dot(&apart, &apart);
        let unit = Matrix::identity(mean.len());
        for i in 0..mean.len() {
            // The projection is symmetric, so that row i of its product with the covariance is the covariance's product
            // with column i of the projection.
            sum += dot(&covariance.apply(&self.project(unit.row(i))), unit.row(i));
        }
        sum
    }

    /// The projection on the directions within the set as a matrix, with as many rows and columns as θ has numbers: a
    /// multiple of it makes the Hessian of a function that is flat along the set regular.
    pub fn within(&self) -> Matrix {
        let size = self.classes * self.space.dim();
        let unit = Matrix::identity(size);
        unit.plus(-1.0, &Matrix::of_map(size, |v| self.project(v)))
    }
}

/// The roots of an affine field Ā θ − b̄, given by its matrix, d × d, and offset.
pub struct Roots {
    /// The only root, or the one of least length.
    pub root: Vec<f64>,
    /// All of them, if there are several.
    pub set: Option<OptimumSet>,
}

impl Roots {
    /// Solves for the roots. A matrix whose rank is d up to rounding errors has one.
    ///
    /// # Errors
    /// [`Singular`] if there is none, or if rounding errors hide whether there is.
    pub fn new(matrix: &Matrix, offset: &[f64]) -> Result<Self, Singular> {
        let d = offset.len();
        let rows = RowSpace::new(d, (0..d).map(|i| matrix.row(i)));
        if rows.rank() == d {
            return Ok(Self { root: solve(matrix, offset)?, set: None });
        }
        let transpose = matrix.transpose();
        let columns = RowSpace::new(d, (0..d).map(|j| transpose.row(j)));
        if columns.rank() != rows.rank() {
            return Err(Singular);
        }
        // The matrix as a regular map of coordinates of the row space to those of the column space.
        let unit = Matrix::identity(rows.rank());
        let images = (0..rows.rank())
            .map(|j| columns.coordinates(&matrix.apply(&rows.combine(unit.row(j)))));
        let regular = Matrix::from_columns(images);
        let root = if rows.rank() == 0 {
            vec![0.0; d]
        } else {
            rows.combine(&solve(&regular, &columns.coordinates(offset))?)
        };
        let image = matrix.apply(&root);
        let left = difference(&image, offset);
        let most = CONSISTENT * CONSISTENT * (dot(&image, &image) + dot(offset, offset));
        // Also if a number is not finite.
        let is_root = dot(&left, &left) <= most;
        if is_root {
            Ok(Self { root, set: OptimumSet::new(rows, 1, false) })
        } else {
            Err(Singular)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_singular_systems_are_the_shortest_ones() {
        // x + 2y = 5, twice, is solved by (1, 2) + t (−2, 1).
        let matrix = Matrix::from_entries(2, 2, vec![1.0, 2.0, 3.0, 6.0]);
        let found = Roots::new(&matrix, &[5.0, 15.0]).unwrap();
        let set = found.set.unwrap();
        assert!((found.root[0] - 1.0).abs() < 1e-14 && (found.root[1] - 2.0).abs() < 1e-14);
        assert_eq!(set.dimension(), 1);
        // (6, 2) is (1, 2) plus 5 (1, 0), of which (1, 2)/√5 has 5/√5.
        assert!((set.sq_distance(&[6.0, 2.0], &found.root) - 5.0).abs() < 1e-13);
        assert!(set.sq_distance(&[-1.0, 3.0], &found.root) < 1e-28);
        assert_eq!(Roots::new(&matrix, &[5.0, 14.0]).err(), Some(Singular), "no solution");
        let zero = Matrix::zeros(2, 2);
        assert_eq!(Roots::new(&zero, &[1.0, 0.0]).err(), Some(Singular));
        let all = Roots::new(&zero, &[0.0, 0.0]).unwrap();
        assert_eq!((all.root, all.set.unwrap().dimension()), (vec![0.0; 2], 2));
        let regular = Roots::new(&Matrix::identity(2), &[3.0, 4.0]).unwrap();
        assert_eq!((regular.root, regular.set), (vec![3.0, 4.0], None));
    }

    #[test]
    fn expected_distances_leave_the_set_out() {
        let rows = RowSpace::new(2, [[1.0, 2.0]]);
        let set = OptimumSet::new(rows, 1, false).unwrap();
        let covariance = Matrix::from_entries(2, 2, vec![2.0, 0.5, 0.5, 1.0]);
        // (u, m)² + uᵀ C u with u = (1, 2)/√5.
        let expected = (1.0 + 8.0_f64).powi(2) / 5.0 + (2.0 + 4.0 * 0.5 + 4.0) / 5.0;
        let found = set.expected_sq_distance(&[1.0, 4.0], &covariance);
        assert!((found - expected).abs() < 1e-13, "{found} {expected}");
    }

    /// Of K rows only differences matter: the same change of all rows stays in the set, also one that no record sees.
    #[test]
    fn differences_of_rows_leave_a_common_change_out() {
        let all = RowSpace::new(2, [[1.0, 0.0], [0.0, 1.0]]);
        assert!(OptimumSet::new(all.clone(), 3, false).is_none());
        let set = OptimumSet::new(all, 3, true).unwrap();
        assert_eq!(set.dimension(), 2);
        assert!(set.sq_distance(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0], &[0.0; 6]) < 1e-30);
        assert!((set.sq_distance(&[3.0, 0.0, 0.0, 0.0, 0.0, 0.0], &[0.0; 6]) - 6.0).abs() < 1e-14);
        let one = RowSpace::new(2, [[1.0, 0.0]]);
        let set = OptimumSet::new(one, 3, true).unwrap();
        assert_eq!(set.dimension(), 4);
        let within = set.within();
        assert!((within.trace() - 4.0).abs() < 1e-14);
        let v = [0.3, -1.0, 2.0, 0.1, 0.7, -0.4];
        let mut sum = within.apply(&v);
        axpy(1.0, &set.project(&v), &mut sum);
        assert!(difference(&sum, &v).iter().all(|x| x.abs() < 1e-14));
    }
}
