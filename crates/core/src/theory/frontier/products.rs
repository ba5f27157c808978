//! Coordinates of second moments, and linear maps between them as dense matrices.

use crate::linalg::Matrix;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

/// The coordinates of E a bᵀ for two vectors of n numbers: all entries, or those on and above
/// the diagonal if a and b are the same vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products {
    /// n.
    pub n: usize,
    /// Whether a and b are the same vector.
    pub same: bool,
}

impl Products {
    /// The number of coordinates.
    pub fn len(self) -> usize {
        if self.same { self.n * (self.n + 1) / 2 } else { self.n * self.n }
    }

    /// The coordinate of E a_i b_j.
    pub fn index(self, i: usize, j: usize) -> usize {
        if !self.same {
            return i * self.n + j;
        }
        let (i, j) = (i.min(j), i.max(j));
        i * self.n - i * (i + 1) / 2 + j
    }

    /// The entries (i, j) in the order of their coordinates.
    pub fn entries(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.n).flat_map(move |i| (if self.same { i } else { 0 }..self.n).map(move |j| (i, j)))
    }

    /// The map of E a bᵀ to E (x a)(y b)ᵀ; x = y if a and b are the same vector.
    ///
    /// # Panics
    /// If x and y do not have n columns.
    pub fn mapped_by(self, x: &Matrix, y: &Matrix) -> Mat<f64> {
        let out = Self { n: x.rows(), same: self.same };
        let mut map = Mat::zeros(out.len(), self.len());
        for (column, (k, l)) in self.entries().enumerate() {
            for (row, (i, j)) in out.entries().enumerate() {
                map[(row, column)] = x[(i, k)] * y[(j, l)];
            }
            if self.same && k != l {
                for (row, (i, j)) in out.entries().enumerate() {
                    map[(row, column)] += x[(i, l)] * y[(j, k)];
                }
            }
        }
        map
    }
}

/// a b, on one thread: its bits do not depend on the number of threads. Entries whose products
/// with each other could be subnormal numbers, which are slow, become 0.
pub fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    const LEAST: f64 = 1e-150;
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    for column in out.col_iter_mut() {
        for x in column.iter_mut().filter(|x| x.abs() < LEAST) {
            *x = 0.0;
        }
    }
    out
}
