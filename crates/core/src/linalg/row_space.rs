//! The space that vectors span, by Gram–Schmidt's process with a choice of pivots.
//!
//! *Invariant*: no decomposition of a library is used, so that the rank and all bits are the same on every processor.

use super::Matrix;
use crate::kernel::{axpy, dot};

/// A vector whose part orthogonal to those before it is shorter than the longest vector times this, times the number of
/// vectors and of their entries, counts as one of their combinations: rounding errors leave a few units of it.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// The linear space that vectors of d numbers span, by an orthonormal basis of it. The set of all minimisers of a convex
/// function of products with these vectors is orthogonal to it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSpace {
    /// The orthonormal basis, r × d with r the rank.
    basis: Matrix,
}

impl RowSpace {
    /// The space that vectors of d numbers span. There may be any number of them: no more than 2 d are in memory, and
    /// once some span all vectors of d numbers, the others are not looked at.
    ///
    /// # Panics
    /// If a vector that is looked at has another length than d.
    pub fn new(d: usize, vectors: impl IntoIterator<Item: AsRef<[f64]>>) -> Self {
        let mut kept: Vec<Vec<f64>> = Vec::new();
        let mut reductions = 0_u32;
        for vector in vectors {
            assert_eq!(vector.as_ref().len(), d);
            kept.push(vector.as_ref().to_vec());
            if kept.len() < 2 * d {
                continue;
            }
            triangularise(&mut kept);
            reductions += 1;
            // Vectors that span everything mostly do so from the start. To look takes as long as a reduction.
            if reductions.is_power_of_two() {
                let basis = orthonormal_basis(d, kept.clone());
                if basis.rows() == d {
                    return Self { basis };
                }
            }
        }
        Self { basis: orthonormal_basis(d, kept) }
    }

    /// The number of basis vectors, r.
    pub fn rank(&self) -> usize {
        self.basis.rows()
    }

    /// The number d of entries of the vectors.
    pub fn dim(&self) -> usize {
        self.basis.cols()
    }

    /// The products of a vector of d numbers with the basis, r numbers: the coordinates of its projection.
    pub fn coordinates(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rank()).map(|i| dot(self.basis.row(i), x)).collect()
    }

    /// The vector of d numbers with these r coordinates.
    pub fn combine(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.dim()];
        for (i, coordinate) in coordinates.iter().enumerate() {
            axpy(*coordinate, self.basis.row(i), &mut sum);
        }
        sum
    }

    /// The orthogonal projection of a vector of d numbers on the space.
    pub fn project(&self, x: &[f64]) -> Vec<f64> {
        self.combine(&self.coordinates(x))
    }
}

/// An orthonormal basis of the space that vectors of d numbers span, r × d. In each step the vector that is longest is
/// made a basis vector, and its direction is removed from the others.
fn orthonormal_basis(d: usize, mut vectors: Vec<Vec<f64>>) -> Matrix {
    let longest = vectors.iter().map(|vector| length(vector)).fold(0.0, f64::max);
    let negligible = ROUNDING * (vectors.len() + d) as f64 * longest;
    let mut basis: Vec<Vec<f64>> = Vec::new();
    while basis.len() < d {
        let mut pivot = None;
        let mut most = negligible;
        for (i, vector) in vectors.iter().enumerate() {
            let length = length(vector);
            if length > most {
                pivot = Some(i);
                most = length;
            }
        }
        let Some(pivot) = pivot else { break };
        let mut direction = vectors.swap_remove(pivot);
        direction.iter_mut().for_each(|x| *x /= most);
        // What rounding errors have left of earlier directions would make the basis oblique.
        for earlier in &basis {
            remove_direction(earlier, &mut direction);
        }
        let length = length(&direction);
        direction.iter_mut().for_each(|x| *x /= length);
        vectors.iter_mut().for_each(|vector| remove_direction(&direction, vector));
        basis.push(direction);
    }
    Matrix::from_entries(basis.len(), d, basis.concat())
}

/// x ← x − (uᵀx) u, for a u of length 1.
fn remove_direction(u: &[f64], x: &mut [f64]) {
    axpy(-dot(u, x), u, x);
}

/// ‖x‖.
fn length(x: &[f64]) -> f64 {
    libm::sqrt(dot(x, x))
}

/// Replaces vectors of d numbers by at most d vectors that span the same space, by Householder's reflections of their
/// columns: the upper triangle that is left has the products of all pairs of columns.
fn triangularise(vectors: &mut Vec<Vec<f64>>) {
    let count = vectors.len();
    let d = vectors.first().map_or(0, Vec::len);
    for column in 0..d.min(count) {
        let mut reflector: Vec<f64> = vectors[column..].iter().map(|row| row[column]).collect();
        let size = length(&reflector);
        if size == 0.0 {
            continue;
        }
        // The sign with which no digits cancel.
        let image = if reflector[0] > 0.0 { -size } else { size };
        reflector[0] -= image;
        let square = dot(&reflector, &reflector);
        let mut along = vec![0.0; d];
        for (weight, row) in reflector.iter().zip(&vectors[column..]) {
            axpy(*weight, row, &mut along);
        }
        for (weight, row) in reflector.iter().zip(&mut vectors[column..]) {
            axpy(-2.0 * weight / square, &along, row);
        }
        vectors[column + 1..].iter_mut().for_each(|row| row[column] = 0.0);
    }
    vectors.truncate(d);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Random vectors of d numbers in a space of dimension r.
    fn vectors(count: usize, d: usize, r: usize) -> Vec<Vec<f64>> {
        let mut rng = Stream::shared_instance(3);
        let mut random = |rows: usize, cols: usize| {
            Matrix::from_entries(rows, cols, (0..rows * cols).map(|_| rng.gaussian()).collect())
        };
        let all = random(count, r).times(&random(r, d));
        (0..count).map(|i| all.row(i).to_vec()).collect()
    }

    /// Also with more vectors than are in memory at once the rank is found, the basis is orthonormal, and the vectors
    /// are their own projections.
    #[test]
    fn the_basis_spans_the_vectors_and_nothing_else() {
        for (count, d, r) in [(1, 3, 1), (4, 9, 4), (7, 9, 4), (9, 9, 9), (100, 9, 4), (95, 9, 9)] {
            let vectors = vectors(count, d, r);
            let space = RowSpace::new(d, &vectors);
            assert_eq!((space.rank(), space.dim()), (r, d), "{count} vectors");
            for i in 0..r {
                for j in 0..r {
                    let product = dot(space.basis.row(i), space.basis.row(j));
                    let identity = f64::from(u8::from(i == j));
                    assert!((product - identity).abs() < 1e-14, "{i} {j}: {product}");
                }
            }
            for vector in &vectors {
                let mut left = space.project(vector);
                axpy(-1.0, vector, &mut left);
                assert!(length(&left) < 1e-13 * length(vector).max(1.0));
            }
        }
    }

    #[test]
    fn vectors_of_zeros_span_nothing() {
        let space = RowSpace::new(2, [[0.0; 2]; 9]);
        assert_eq!(space.rank(), 0);
        assert_eq!(space.project(&[1.0, -1.0]), [0.0, 0.0]);
        assert_eq!(RowSpace::new(2, Vec::<Vec<f64>>::new()).rank(), 0);
    }
}
