//! Vectors as linear forms W x + Σ G_i n_i of the coordinates x in which a round computes and of its noises
//! n_i, THEORY (4.1).

use super::layers::entry;
use crate::kernel::axpy;
use crate::linalg::Matrix;

/// A vector W x + Σ_i G_i n_i, THEORY (4.1). W is sparse, since most vectors read few coordinates; constants are
/// weights of coordinate 0, which is the number 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    /// How many numbers the vector has.
    pub length: usize,
    /// The entries of W that are not 0, in increasing order of row and column, each once.
    pub weights: Vec<Weight>,
    /// The numbers i of the noises, in increasing order, each with the matrix G_i.
    pub noise: Vec<(usize, Matrix)>,
}

/// An entry of W: the row, the column, which is the coordinate, and the value.
pub(super) type Weight = (usize, usize, f64);

impl Form {
    /// A vector of zeros of this length.
    pub fn zero(length: usize) -> Self {
        Self { length, ..Self::default() }
    }

    /// The `length` coordinates from number `begin` on.
    pub fn coordinates(begin: usize, length: usize) -> Self {
        let weights = (0..length).map(|i| (i, begin + i, 1.0)).collect();
        Self { length, weights, noise: Vec::new() }
    }

    /// Noise number `id`, which has `length` numbers.
    pub fn noise(id: usize, length: usize) -> Self {
        Self { noise: vec![(id, Matrix::identity(length))], ..Self::zero(length) }
    }

    /// Adds constants: coordinate 0 is the number 1.
    pub fn add_constant(&mut self, constants: &[f64]) {
        let constants = constants.iter().enumerate().filter(|(_, x)| **x != 0.0);
        self.add_weights(constants.map(|(i, x)| (i, 0, *x)));
    }

    /// Adds another form of the same length, whose entry i is multiplied by `factors[i]`.
    pub fn add(&mut self, factors: &[f64], other: &Self) {
        let scaled = other.weights.iter().map(|(i, k, x)| (*i, *k, factors[*i] * x));
        self.add_weights(scaled.filter(|(i, ..)| factors[*i] != 0.0));
        if factors.iter().any(|factor| *factor != 0.0) {
            for (id, m) in &other.noise {
                let scaled = Matrix::from_fn(m.rows(), m.cols(), |i, j| factors[i] * m[(i, j)]);
                add_at(&mut self.noise, *id, scaled);
            }
        }
    }

    /// Adds entries to W.
    fn add_weights(&mut self, more: impl Iterator<Item = Weight>) {
        let before = self.weights.len();
        self.weights.extend(more);
        if before > 0 && self.weights.len() > before {
            add_up(&mut self.weights);
        }
    }

    /// `matrix` M times this vector: (M W) x + Σ (M G_i) n_i.
    pub fn mapped(&self, matrix: &Matrix) -> Self {
        let mut out = Self::zero(matrix.rows());
        for i in 0..matrix.rows() {
            let factors = matrix.row(i);
            let weights = self.weights.iter().filter(|(row, ..)| factors[*row] != 0.0);
            out.weights.extend(weights.map(|(row, k, x)| (i, *k, factors[*row] * x)));
        }
        add_up(&mut out.weights);
        out.noise = self.noise.iter().map(|(id, m)| (*id, matrix.times(m))).collect();
        out
    }

    /// The numbers of several forms, one form after another.
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

    /// W x for these coordinates x: the mean of the vector if they are means.
    pub fn value(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.length];
        self.weights.iter().for_each(|(i, k, x)| out[*i] += x * coordinates[*k]);
        out
    }

    /// W times the first `width` columns of a symmetric matrix over coordinates, whose columns are layers:
    /// W_a Cov(x) of THEORY (4.2).
    pub fn times(&self, matrix: &Matrix, width: usize) -> Matrix {
        let mut out = Matrix::zeros(self.length, width);
        self.weights
            .iter()
            .for_each(|(i, k, x)| axpy(*x, &matrix.row(*k)[..width], out.row_mut(*i)));
        out
    }

    /// `left` · Wᵀ, where `left` is what [`Form::times`] makes of another form: W_a Cov(x) W_bᵀ of THEORY (4.2),
    /// in `layers` layers.
    pub fn transposed_after(&self, left: &Matrix, layers: usize) -> Matrix {
        let mut out = Matrix::zeros(left.rows(), self.length * layers);
        for i in 0..left.rows() {
            let from = left.row(i);
            let to = out.row_mut(i);
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

/// The matrix of noise number `id` in a list that is sorted by these numbers, if it has one.
pub(super) fn matrix_of(all: &[(usize, Matrix)], id: usize) -> Option<&Matrix> {
    all.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| &all[at].1)
}

/// Adds a matrix to the matrix of noise number `id` in a list that is sorted by these numbers.
pub(super) fn add_at(all: &mut Vec<(usize, Matrix)>, id: usize, more: Matrix) {
    match all.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(at) => all[at].1.add(1.0, &more),
        Err(at) => all.insert(at, (id, more)),
    }
}

/// Sorts weights, and adds up the weights of one row and column in the order in which they come.
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
