//! Matrices whose entries are linear functions of K numbers, so that a map of second moments is
//! computed in one pass: the K coefficients of an entry are next to each other, in K *layers*. With one
//! layer these are matrices of numbers.

use crate::kernel::axpy;
use crate::linalg::Matrix;

/// The coefficients of an entry.
pub fn entry(matrix: &Matrix, (i, j): (usize, usize), layers: usize) -> &[f64] {
    &matrix.row(i)[j * layers..][..layers]
}

/// The same, to be changed.
pub fn entry_mut(matrix: &mut Matrix, (i, j): (usize, usize), layers: usize) -> &mut [f64] {
    &mut matrix.row_mut(i)[j * layers..][..layers]
}

/// The transpose.
pub fn transpose(matrix: &Matrix, layers: usize) -> Matrix {
    if layers == 1 {
        return matrix.transpose();
    }
    let cols = matrix.cols() / layers;
    let mut out = Matrix::zeros(cols, matrix.rows() * layers);
    for i in 0..matrix.rows() {
        (0..cols).for_each(|j| {
            entry_mut(&mut out, (j, i), layers).copy_from_slice(entry(matrix, (i, j), layers));
        });
    }
    out
}

/// `matrix` · `right`ᵀ, where the right matrix is one of numbers.
pub fn times_transposed(matrix: &Matrix, right: &Matrix, layers: usize) -> Matrix {
    if layers == 1 {
        return matrix.times_transposed(right);
    }
    let mut out = Matrix::zeros(matrix.rows(), right.rows() * layers);
    for i in 0..matrix.rows() {
        for (j, to) in out.row_mut(i).chunks_exact_mut(layers).enumerate() {
            for (k, x) in right.row(j).iter().enumerate().filter(|(_, x)| **x != 0.0) {
                axpy(*x, entry(matrix, (i, k), layers), to);
            }
        }
    }
    out
}

/// A linear map of all entries, row by row; the results are those of a matrix of `rows` rows.
pub fn mapped(map: &Matrix, matrix: &Matrix, rows: usize, layers: usize) -> Matrix {
    if layers == 1 {
        let out = map.apply(matrix.entries());
        return Matrix::from_entries(rows, out.len() / rows, out);
    }
    let all = matrix.entries().to_vec();
    let out = map.times(&Matrix::from_entries(all.len() / layers, layers, all));
    Matrix::from_entries(rows, out.entries().len() / rows, out.into_entries())
}

/// The sum of the diagonal.
pub fn trace(matrix: &Matrix, layers: usize) -> Vec<f64> {
    let mut out = vec![0.0; layers];
    (0..matrix.rows()).for_each(|i| axpy(1.0, entry(matrix, (i, i), layers), &mut out));
    out
}

/// Puts a block into a matrix, with its first row and column at a place of the diagonal.
pub fn put_diagonal(matrix: &mut Matrix, place: usize, block: &Matrix, layers: usize) {
    for i in 0..block.rows() {
        let from = block.row(i);
        matrix.row_mut(place + i)[place * layers..][..from.len()].copy_from_slice(from);
    }
}

/// Puts a block into a symmetric matrix, with its first row and column at a place.
pub fn put(matrix: &mut Matrix, (row, column): (usize, usize), block: &Matrix, layers: usize) {
    for i in 0..block.rows() {
        for j in 0..block.cols() / layers {
            let from = entry(block, (i, j), layers);
            entry_mut(matrix, (row + i, column + j), layers).copy_from_slice(from);
            entry_mut(matrix, (column + j, row + i), layers).copy_from_slice(from);
        }
    }
}
