//! Vectors as linear forms: of the coordinates in which a round computes, and of its noises.

use super::layers::entry;
use crate::kernel::axpy;
use crate::linalg::Matrix;

/// A vector of some numbers: each is a sum of coordinates with weights, and the vector has a part
/// of each of some noises.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    /// How many numbers it has.
    pub length: usize,
    /// Weights in increasing order, each once.
    pub weights: Vec<Weight>,
    /// Noises by number, in increasing order, with the matrix that is applied to each.
    pub noise: Vec<(usize, Matrix)>,
}

/// Which number, of which coordinate, and how much of it.
pub(super) type Weight = (usize, usize, f64);

impl Form {
    /// So many numbers that are 0.
    pub fn zero(length: usize) -> Self {
        Self { length, ..Self::default() }
    }

    /// The coordinates from `begin` on.
    pub fn coordinates(begin: usize, length: usize) -> Self {
        let weights = (0..length).map(|i| (i, begin + i, 1.0)).collect();
        Self { length, weights, noise: Vec::new() }
    }

    /// The noise of this number.
    pub fn noise(id: usize, length: usize) -> Self {
        Self { noise: vec![(id, Matrix::identity(length))], ..Self::zero(length) }
    }

    /// Adds constants: coordinate 0 is the number 1.
    pub fn add_constant(&mut self, constants: &[f64]) {
        let constants = constants.iter().enumerate().filter(|(_, x)| **x != 0.0);
        self.add_weights(constants.map(|(i, x)| (i, 0, *x)));
    }

    /// Adds another one, each entry times its weight.
    pub fn add(&mut self, factors: &[f64], other: &Self) {
        let scaled = other.weights.iter().map(|(i, k, x)| (*i, *k, factors[*i] * x));
        self.add_weights(scaled.filter(|(i, ..)| factors[*i] != 0.0));
        if factors.iter().any(|factor| *factor != 0.0) {
            let scaled =
                |m: &Matrix| Matrix::from_fn(m.rows(), m.cols(), |i, j| factors[i] * m[(i, j)]);
            other.noise.iter().for_each(|(id, m)| add_at(&mut self.noise, *id, scaled(m)));
        }
    }

    fn add_weights(&mut self, more: impl Iterator<Item = Weight>) {
        let before = self.weights.len();
        self.weights.extend(more);
        if before > 0 && self.weights.len() > before {
            add_up(&mut self.weights);
        }
    }

    /// M times it.
    pub fn mapped(&self, matrix: &Matrix) -> Self {
        let mut out = Self::zero(matrix.rows());
        for i in 0..matrix.rows() {
            let row = matrix.row(i);
            let weights = self.weights.iter().filter(|(k, ..)| row[*k] != 0.0);
            out.weights.extend(weights.map(|(k, j, x)| (i, *j, row[*k] * x)));
        }
        add_up(&mut out.weights);
        out.noise = self.noise.iter().map(|(id, m)| (*id, matrix.times(m))).collect();
        out
    }

    /// It, followed by others.
    pub fn stacked(parts: &[&Self]) -> Self {
        let length: usize = parts.iter().map(|part| part.length).sum();
        let mut out = Self::zero(length);
        let mut begin = 0;
        for part in parts {
            for (id, matrix) in &part.noise {
                let mut moved = Matrix::zeros(length, matrix.cols());
                for i in 0..matrix.rows() {
                    moved.row_mut(begin + i).copy_from_slice(matrix.row(i));
                }
                add_at(&mut out.noise, *id, moved);
            }
            out.weights.extend(part.weights.iter().map(|(i, k, x)| (begin + i, *k, *x)));
            begin += part.length;
        }
        out
    }

    /// Its numbers for these coordinates, without noise.
    pub fn value(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.length];
        self.weights.iter().for_each(|(i, k, x)| out[*i] += x * coordinates[*k]);
        out
    }

    /// It times a symmetric matrix over coordinates, of which the first `width` columns count.
    pub fn times(&self, matrix: &Matrix, width: usize) -> Matrix {
        let mut out = Matrix::zeros(self.length, width);
        self.weights
            .iter()
            .for_each(|(i, k, x)| axpy(*x, &matrix.row(*k)[..width], out.row_mut(*i)));
        out
    }

    /// `left`, as [`Form::times`] makes it, times the transpose of this.
    pub fn transposed_after(&self, left: &Matrix, layers: usize) -> Matrix {
        let mut out = Matrix::zeros(left.rows(), self.length * layers);
        for i in 0..left.rows() {
            let (from, to) = (left.row(i), out.row_mut(i));
            match layers {
                1 => self.weights.iter().for_each(|(j, k, x)| to[*j] += x * from[*k]),
                _ => self.weights.iter().for_each(|(j, k, x)| {
                    axpy(*x, entry(left, (i, *k), layers), &mut to[j * layers..][..layers]);
                }),
            }
        }
        out
    }
}

/// The matrix of a number, of which there is one for some.
pub(super) fn matrix_of(all: &[(usize, Matrix)], id: usize) -> Option<&Matrix> {
    all.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| &all[at].1)
}

/// Adds to the matrix of a number.
pub(super) fn add_at(all: &mut Vec<(usize, Matrix)>, id: usize, more: Matrix) {
    match all.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(at) => all[at].1.add(1.0, &more),
        Err(at) => all.insert(at, (id, more)),
    }
}

/// Sorts weights and adds up those of one place, in the order in which they come.
fn add_up(weights: &mut Vec<Weight>) {
    weights.sort_by_key(|(i, k, _)| (*i, *k));
    weights.dedup_by(|next, sum| {
        let is_same = (next.0, next.1) == (sum.0, sum.1);
        if is_same {
            sum.2 += next.2;
        }
        is_same
    });
}
