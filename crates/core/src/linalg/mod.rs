//! Small dense matrices for exact facts and theory; no run uses them in its hot loops. Systems of
//! linear equations, equations of Lyapunov, fixed points and growth of linear maps, and the extreme
//! eigenvalues of large matrices.
//!
//! *Invariant*: products and sums run in a fixed order. So the results of this module, except
//! eigenvalues of dense matrices, have the same bits on every processor.

mod double_double;
mod iteration;
pub mod lanczos;
mod lyapunov;
mod positive;
mod row_space;
mod solve;
mod symmetric;

pub use double_double::{DD_EPSILON, DD_EXP_ERROR, Dd};
pub use iteration::{DIRECT, KRYLOV, RESTARTS, contracts, fixed_point, growth, radius};
pub use lyapunov::solve_lyapunov;
pub use positive::SymmetricBlocks;
pub use row_space::RowSpace;
pub use solve::{Cholesky, Singular, cholesky, least_eigenvalue_bound, refine, solve, solve_rows};
pub use symmetric::SymmetricEigen;

use crate::kernel::outer::{add_outer_products, add_rows, add_to_lower_triangle};
use crate::kernel::{Rows, axpy, products};
use std::ops::{Index, IndexMut};

/// A dense matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// The matrix of this shape whose entries are all 0.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// The entries, row by row.
    pub fn entries(&self) -> &[f64] {
        &self.data
    }

    /// The entries, row by row, without a copy.
    pub fn into_entries(self) -> Vec<f64> {
        self.data
    }

    /// The matrix with these entries, row by row.
    ///
    /// # Panics
    /// If there are not `rows` × `cols` of them.
    pub fn from_entries(rows: usize, cols: usize, data: Vec<f64>) -> Self {
        assert_eq!(data.len(), rows * cols);
        Self { rows, cols, data }
    }

    /// The identity of order n.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// The matrix with entries `entry(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            data.extend((0..cols).map(|j| entry(i, j)));
        }
        Self { rows, cols, data }
    }

    /// The matrix of these columns, which are of one length; without any it is 0 × 0.
    pub fn from_columns(columns: impl Iterator<Item = Vec<f64>>) -> Self {
        let columns: Vec<Vec<f64>> = columns.collect();
        let rows = columns.first().map_or(0, Vec::len);
        Self::from_fn(rows, columns.len(), |i, j| columns[j][i])
    }

    /// The matrix of a linear map of vectors of `size` numbers: column j is the image of unit vector j.
    pub fn of_map(size: usize, map: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let identity = Self::identity(size);
        Self::from_columns((0..size).map(|j| map(identity.row(j))))
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row number i, one number for each column.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..][..self.cols]
    }

    /// Row number i, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..][..self.cols]
    }

    /// The matrix with rows and columns exchanged.
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// The matrix self + a · other, of the same shape.
    pub fn plus(&self, a: f64, other: &Self) -> Self {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        let data = self.data.iter().zip(&other.data).map(|(x, y)| x + a * y).collect();
        Self { data, ..*self }
    }

    /// self ← self + a · other, of the same shape.
    pub fn add(&mut self, a: f64, other: &Self) {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        for (x, y) in self.data.iter_mut().zip(&other.data) {
            *x += a * y;
        }
    }

    /// The matrix a · self.
    pub fn scaled(&self, a: f64) -> Self {
        Self { data: self.data.iter().map(|x| a * x).collect(), ..*self }
    }

    /// self ← self + a x yᵀ, with a number of x for each row and a number of y for each column. The numbers of x are
    /// multiplied by a first, an order on which the bits of results depend.
    pub fn add_outer(&mut self, a: f64, x: &[f64], y: &[f64]) {
        for (row, x) in self.data.chunks_exact_mut(self.cols).zip(x) {
            for (entry, y) in row.iter_mut().zip(y) {
                *entry += a * x * y;
            }
        }
    }

    /// self ← self + Σ_k a_k b_kᵀ over the rows a_k of `a` and b_k of `b`, summed in their order.
    ///
    /// # Panics
    /// If the lengths of rows are not the sizes of self.
    pub fn add_outer_products(&mut self, a: Rows<'_>, b: Rows<'_>) {
        assert_eq!((self.rows, self.cols), (a.dim(), b.dim()));
        add_outer_products(a, b, &mut self.data);
    }

    /// Σ_k w_k x_k x_kᵀ over the rows x_k, summed in their order, with one weight per row: d × d, symmetric.
    ///
    /// # Panics
    /// If there are not as many weights as rows.
    pub fn weighted_gram(rows: Rows<'_>, weights: &[f64]) -> Self {
        /// The largest order of which both triangles are summed. Of a larger matrix one is summed and copied,
        /// which gives other last bits, so that the limit must not move.
        const MOST_BOTH: usize = 32;
        let mut sum = Self::zeros(rows.dim(), rows.dim());
        if rows.dim() > MOST_BOTH {
            sum.add_to_lower_triangle(rows, weights);
            for i in 0..sum.rows {
                (i + 1..sum.cols).for_each(|j| sum[(i, j)] = sum[(j, i)]);
            }
        } else {
            rows.iter().zip(weights).for_each(|(row, w)| sum.add_outer(*w, row, row));
        }
        sum
    }

    /// Adds Σ_k w_k x_k x_kᵀ over the rows x_k, of d numbers each, to the lower triangle and the diagonal of self,
    /// which must be d × d; entries above them are undefined afterwards.
    ///
    /// # Panics
    /// If there are not as many weights as rows.
    pub fn add_to_lower_triangle(&mut self, rows: Rows<'_>, weights: &[f64]) {
        /// The number of rows that are multiplied by their weights at a time, so that the copies stay in a cache.
        const TOGETHER: usize = 256;
        assert_eq!(rows.len(), weights.len());
        let d = rows.dim();
        for (i, weights) in weights.chunks(TOGETHER).enumerate() {
            let part = rows.part(i * TOGETHER, i * TOGETHER + weights.len());
            let pairs = part.iter().zip(weights);
            let scaled: Vec<f64> =
                pairs.flat_map(|(row, w)| row.iter().map(move |x| w * x)).collect();
            add_to_lower_triangle(part, Rows::new(&scaled, d, d), &mut self.data);
        }
    }

    /// self · other, each entry summed from the first index to the last.
    pub fn times(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.rows, other.cols);
        self.times_into(other, &mut out);
        out
    }

    /// Writes self · other, as [`times`](Self::times) sums it, into `out`, which has the shape of the product. Each
    /// of the three ways to compute it sums in this order.
    ///
    /// # Panics
    /// If sizes do not agree.
    pub fn times_into(&self, other: &Self, out: &mut Self) {
        assert_eq!((self.cols, out.rows, out.cols), (other.rows, self.rows, other.cols));
        /// The product is computed from the transpose of self if the smallest of its three sizes is larger than
        /// this; else forming the transpose costs more than it saves.
        const MOST_SMALL: usize = 32;
        /// The most columns that are summed in registers; with more, whole rows are added.
        const MOST_NARROW: usize = 64;
        out.data.fill(0.0);
        if self.rows.min(self.cols).min(other.cols) > MOST_SMALL {
            let left = self.transpose();
            out.add_outer_products(
                Rows::new(&left.data, left.cols, left.cols),
                Rows::new(&other.data, other.cols, other.cols),
            );
        } else if other.cols > MOST_NARROW {
            for i in 0..self.rows {
                let row = self.row(i);
                let to = &mut out.data[i * other.cols..][..other.cols];
                for (x, from) in row.iter().zip(other.data.chunks_exact(other.cols)) {
                    if *x != 0.0 {
                        axpy(*x, from, to);
                    }
                }
            }
        } else {
            out.set_columns::<8>(self, other, 0);
        }
    }

    /// self · otherᵀ, summed as [`times`](Self::times) does.
    pub fn times_transposed(&self, other: &Self) -> Self {
        self.times(&other.transpose())
    }

    /// Sets the columns of self from number `column` on to those of a · b, `W` of them at a time and the rest in
    /// blocks of half the width, so that the sums stay in registers.
    fn set_columns<const W: usize>(&mut self, a: &Self, b: &Self, mut column: usize) {
        while column + W <= b.cols {
            let mut i = 0;
            while i + 2 <= a.rows {
                self.set_block::<2, W>(a, b, i, column);
                i += 2;
            }
            if i < a.rows {
                self.set_block::<1, W>(a, b, i, column);
            }
            column += W;
        }
        match W {
            8 => self.set_columns::<4>(a, b, column),
            4 => self.set_columns::<2>(a, b, column),
            2 => self.set_columns::<1>(a, b, column),
            _ => {}
        }
    }

    /// Sets the entries of self in the `R` rows from `first_row` on and the `W` columns from `first_column` on to those
    /// of a · b.
    #[inline(always)]
    fn set_block<const R: usize, const W: usize>(
        &mut self,
        a: &Self,
        b: &Self,
        first_row: usize,
        first_column: usize,
    ) {
        let rows: [&[f64]; R] = std::array::from_fn(|r| a.row(first_row + r));
        let mut sums = [[0.0; W]; R];
        for (k, from) in b.data.chunks_exact(b.cols).enumerate() {
            let from = &from[first_column..first_column + W];
            for (sums, row) in sums.iter_mut().zip(&rows) {
                for (sum, x) in sums.iter_mut().zip(from) {
                    *sum += row[k] * x;
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            self.data[(first_row + r) * self.cols + first_column..][..W].copy_from_slice(sums);
        }
    }

    /// The vector self · x, one number for each row, each summed from the first column to the last.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(self.cols, x.len());
        let mut out = vec![0.0; self.rows];
        let whole = self.rows - self.rows % 4;
        // Four rows at once, whose sums do not wait for each other.
        for (i, sums) in out[..whole].chunks_exact_mut(4).enumerate() {
            let rows: [&[f64]; 4] = std::array::from_fn(|r| self.row(4 * i + r));
            let mut four = [0.0; 4];
            for (k, x) in x.iter().enumerate() {
                for (sum, row) in four.iter_mut().zip(&rows) {
                    *sum += row[k] * x;
                }
            }
            sums.copy_from_slice(&four);
        }
        for (i, sum) in out.iter_mut().enumerate().skip(whole) {
            *sum = self.row(i).iter().zip(x).fold(0.0, |sum, (a, x)| sum + a * x);
        }
        out
    }

    /// out ← out + weight · self · x, or weight · selfᵀ · x if `transposed`, by the kernels for large matrices. Sums
    /// may have other last bits than those of [`apply`](Self::apply).
    pub fn add_product(&self, weight: f64, transposed: bool, x: &[f64], out: &mut [f64]) {
        let rows = Rows::new(&self.data, self.cols, self.cols);
        if transposed {
            let factors: Vec<f64> = x.iter().map(|x| weight * x).collect();
            add_rows(rows, &factors, out);
        } else {
            let mut product = vec![0.0; self.rows];
            products(rows, x, &mut product);
            axpy(weight, &product, out);
        }
    }

    /// self, a square matrix, to the power `exponent`, by repeated squaring; the identity for 0. Bits are those of this
    /// order of products, not those of one product after the other.
    pub fn power(&self, mut exponent: u64) -> Self {
        let mut out = Self::identity(self.rows);
        let mut square = self.clone();
        while exponent > 0 {
            if exponent & 1 == 1 {
                out = out.times(&square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(&square);
            }
        }
        out
    }

    /// The mean of matrices of one shape, with one weight for each, such as the shares of clients; the weighted sum is
    /// divided by the sum of the weights, which need not be 1. All weigh the same if `weights` is `None`. It is 0 × 0
    /// without matrices.
    pub fn weighted_mean<'a>(
        matrices: impl Iterator<Item = &'a Matrix>,
        weights: Option<&[f64]>,
    ) -> Self {
        let mut sum: Option<Self> = None;
        let mut total = 0.0;
        for (i, matrix) in matrices.enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[i]);
            total += weight;
            match &mut sum {
                None => sum = Some(matrix.scaled(weight)),
                Some(sum) => sum.add(weight, matrix),
            }
        }
        sum.map_or_else(|| Self::zeros(0, 0), |sum| sum.scaled(1.0 / total))
    }

    /// The matrix x yᵀ, with a row for each number of x.
    pub fn outer(x: &[f64], y: &[f64]) -> Self {
        Self::from_fn(x.len(), y.len(), |i, j| x[i] * y[j])
    }

    /// The sum of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.rows).fold(0.0, |sum, i| sum + self[(i, i)])
    }

    /// ½ (self + selfᵀ), symmetric to the last bit.
    pub fn symmetric_part(&self) -> Self {
        Self::from_fn(self.rows, self.cols, |i, j| 0.5 * (self[(i, j)] + self[(j, i)]))
    }

    /// The largest singular value, as exact as [`Matrix::symmetric_extremes`], and `None` where that is.
    pub fn spectral_norm(&self) -> Option<f64> {
        let square = self.transpose().times(self);
        Some(libm::sqrt(square.symmetric_extremes()?.0.max(0.0)))
    }

    /// The largest and then the smallest eigenvalue of a symmetric matrix, of which the lower triangle is read; `None`
    /// if they are not found. They are not refined, so that their last bits differ between processors: print six
    /// digits at most, and never let them enter a digest.
    pub fn symmetric_extremes(&self) -> Option<(f64, f64)> {
        let dense = faer::Mat::from_fn(self.rows, self.cols, |i, j| self[(i, j)]);
        let values = dense.self_adjoint_eigenvalues(faer::Side::Lower).ok()?;
        Some((*values.last()?, *values.first()?))
    }
}

/// The sum of two matrices of one shape, in the memory of the first: a step of a fold.
pub fn added(mut sum: Matrix, more: Matrix) -> Matrix {
    sum.add(1.0, &more);
    sum
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[i * self.cols + j]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_products() {
        let a = Matrix::from_fn(2, 2, |i, j| [[1.0, 1.0], [1.0, 0.0]][i][j]);
        assert_eq!(a.power(10).row(0), &[89.0, 55.0]);
        assert_eq!(a.power(0), Matrix::identity(2));
        assert_eq!(a.times(&a), a.power(2));
        assert_eq!(a.apply(&[2.0, 3.0]), vec![5.0, 2.0]);
        let (largest, smallest) = a.symmetric_extremes().unwrap();
        assert!((largest - 1.618_033_988).abs() < 1e-8 && (smallest + 0.618_033_988).abs() < 1e-8);
    }

    /// An entry of which most bits are set.
    fn entry(i: usize, j: usize) -> f64 {
        libm::sin((7 * i + 3 * j) as f64) / (1 + i + j) as f64
    }

    #[test]
    fn products_have_the_bits_of_their_definition() {
        for (rows, inner, cols) in [(1, 1, 1), (2, 3, 4), (5, 17, 15), (9, 8, 19), (3, 0, 2)] {
            let a = Matrix::from_fn(rows, inner, entry);
            let b = Matrix::from_fn(inner, cols, |i, j| entry(j, i));
            let sum = |i, j| (0..inner).fold(0.0, |sum, k| sum + a[(i, k)] * b[(k, j)]);
            let product = Matrix::from_fn(rows, cols, sum);
            assert_eq!(a.times(&b), product);
            assert_eq!(a.times_transposed(&b.transpose()), product);
            for j in 0..cols {
                let column: Vec<f64> = (0..inner).map(|k| b[(k, j)]).collect();
                let applied: Vec<f64> = (0..rows).map(|i| product[(i, j)]).collect();
                assert_eq!(a.apply(&column), applied);
            }
        }
    }
}
