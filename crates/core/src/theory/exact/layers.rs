//! Matrices whose entries are linear functions of K numbers. The K coefficients of an entry are next to
//! each other, in K *layers*, so that a matrix of r rows and c columns is stored as one of r rows and c K
//! columns. If the K numbers are second moments before a cycle, one pass through its rounds gives all
//! columns of the map Q of THEORY (6.1), or of T of THEORY (5.2). With one layer these are matrices of numbers.

use crate::kernel::axpy;
use crate::linalg::Matrix;

/// The coefficients of entry (i, j), one for each layer.
pub fn entry(matrix: &Matrix, (i, j): (usize, usize), layers: usize) -> &[f64] {
    &matrix.row(i)[j * layers..][..layers]
}

/// The coefficients of entry (i, j), to be changed.
pub fn entry_mut(matrix: &mut Matrix, (i, j): (usize, usize), layers: usize) -> &mut [f64] {
    &mut matrix.row_mut(i)[j * layers..][..layers]
}

/// The transpose of a matrix of layers: entry (j, i) of it has all layers of entry (i, j).
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

/// `matrix` · `right`ᵀ, where `matrix` has layers and `right` is a matrix of numbers.
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

/// Applies a linear map, the matrix `map` of numbers, to the vector of the entries of `matrix`, which follow each other
/// row by row. The result is a matrix of `rows` rows with as many layers.
pub fn mapped(map: &Matrix, matrix: &Matrix, rows: usize, layers: usize) -> Matrix {
    if layers == 1 {
        let out = map.apply(matrix.entries());
        return Matrix::from_entries(rows, out.len() / rows, out);
    }
    let all = matrix.entries().to_vec();
    let out = map.times(&Matrix::from_entries(all.len() / layers, layers, all));
    Matrix::from_entries(rows, out.entries().len() / rows, out.into_entries())
}

/// The trace of a square matrix, one number for each layer.
pub fn trace(matrix: &Matrix, layers: usize) -> Vec<f64> {
    let mut out = vec![0.0; layers];
    (0..matrix.rows()).for_each(|i| axpy(1.0, entry(matrix, (i, i), layers), &mut out));
    out
}

/// Writes a block into a matrix, so that the block's entry (0, 0) is at (`place`, `place`).
pub fn put_diagonal(matrix: &mut Matrix, place: usize, block: &Matrix, layers: usize) {
    for i in 0..block.rows() {
        let from = block.row(i);
        matrix.row_mut(place + i)[place * layers..][..from.len()].copy_from_slice(from);
    }
}

/// Writes a block into a symmetric matrix, so that the block's entry (0, 0) is at (`row`, `column`), and its transpose
/// at (`column`, `row`).
pub fn put(matrix: &mut Matrix, (row, column): (usize, usize), block: &Matrix, layers: usize) {
    for i in 0..block.rows() {
        for j in 0..block.cols() / layers {
            let from = entry(block, (i, j), layers);
            entry_mut(matrix, (row + i, column + j), layers).copy_from_slice(from);
            entry_mut(matrix, (column + j, row + i), layers).copy_from_slice(from);
        }
    }
}
