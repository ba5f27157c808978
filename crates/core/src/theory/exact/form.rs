//! Vectors as linear forms W x + Σ G_i n_i of the coordinates x in which a round computes and of its noises
//! n_i, THEORY (4.1).
//!
//! A matrix of second moments of coordinates may have several *layers* ([`super::layers`]): then each entry is as many
//! numbers next to each other, one stored column for each.

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

/// An entry of W that is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// The row, which is the place in the vector.
    pub row: usize,
    /// The column, which is the number of the coordinate.
    pub coordinate: usize,
    /// The entry.
    pub value: f64,
}

impl Form {
    /// A vector of zeros of this length.
    pub fn zero(length: usize) -> Self {
        Self { length, ..Self::default() }
    }

    /// The vector that consists of the `length` coordinates from number `begin` on.
    pub fn coordinates(begin: usize, length: usize) -> Self {
        let weights =
            (0..length).map(|row| Weight { row, coordinate: begin + row, value: 1.0 }).collect();
        Self { length, weights, noise: Vec::new() }
    }

    /// The vector that is noise number `id`, which has `length` numbers.
    pub fn noise(id: usize, length: usize) -> Self {
        Self { noise: vec![(id, Matrix::identity(length))], ..Self::zero(length) }
    }

    /// Adds a constant vector, as weights of coordinate 0, which is the number 1.
    pub fn add_constant(&mut self, constants: &[f64]) {
        let constants = constants.iter().enumerate().filter(|(_, x)| **x != 0.0);
        self.add_weights(constants.map(|(row, x)| Weight { row, coordinate: 0, value: *x }));
    }

    /// Adds `other`, a form of the same length, after each entry i of it was multiplied by `factors[i]`.
    pub fn add(&mut self, factors: &[f64], other: &Self) {
        let added = other.weights.iter().filter(|weight| factors[weight.row] != 0.0);
        self.add_weights(
            added.map(|weight| Weight { value: factors[weight.row] * weight.value, ..*weight }),
        );
        if factors.iter().any(|factor| *factor != 0.0) {
            for (id, m) in &other.noise {
                let scaled = Matrix::from_fn(m.rows(), m.cols(), |i, j| factors[i] * m[(i, j)]);
                add_at(&mut self.noise, *id, scaled);
            }
        }
    }

    /// Adds entries to W, which come in order and once each.
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
            let weights = self.weights.iter().filter(|weight| factors[weight.row] != 0.0);
            out.weights.extend(weights.map(|weight| Weight {
                row: i,
                coordinate: weight.coordinate,
                value: factors[weight.row] * weight.value,
            }));
        }
        add_up(&mut out.weights);
        out.noise = self.noise.iter().map(|(id, m)| (*id, matrix.times(m))).collect();
        out
    }

    /// One vector of the numbers of several forms, one form after another, as y = (e, 1, w) of THEORY (2.2).
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
            let weights = part.weights.iter();
            out.weights.extend(weights.map(|weight| Weight { row: begin + weight.row, ..*weight }));
            begin += part.length;
        }
        out
    }

    /// W x for these coordinates x, without the noises: the mean of the vector if they are means.
    pub fn value(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.length];
        for weight in &self.weights {
            out[weight.row] += weight.value * coordinates[weight.coordinate];
        }
        out
    }

    /// W times the first `width` stored columns of a symmetric matrix over coordinates, which has one stored column for
    /// each layer of each coordinate: W_a Cov(x) of THEORY (4.2).
    pub fn times(&self, matrix: &Matrix, width: usize) -> Matrix {
        let mut out = Matrix::zeros(self.length, width);
        for weight in &self.weights {
            let from = &matrix.row(weight.coordinate)[..width];
            axpy(weight.value, from, out.row_mut(weight.row));
        }
        out
    }

    /// `left` · Wᵀ, where `left` is what [`Form::times`] makes of another form: W_a Cov(x) W_bᵀ of THEORY (4.2),
    /// in `layers` layers.
    pub fn transposed_after(&self, left: &Matrix, layers: usize) -> Matrix {
        let mut out = Matrix::zeros(left.rows(), self.length * layers);
        for i in 0..left.rows() {
            let from = left.row(i);
            let to = out.row_mut(i);
            if layers == 1 {
                for weight in &self.weights {
                    to[weight.row] += weight.value * from[weight.coordinate];
                }
            } else {
                for weight in &self.weights {
                    let entry = entry(left, (i, weight.coordinate), layers);
                    axpy(weight.value, entry, &mut to[weight.row * layers..][..layers]);
                }
            }
        }
        out
    }
}

/// The matrix of noise number `id` in a list that is sorted by the numbers of noises; `None` if the list has none.
pub(super) fn matrix_of(all: &[(usize, Matrix)], id: usize) -> Option<&Matrix> {
    all.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| &all[at].1)
}

/// Adds a matrix to the matrix of noise number `id` in a list that is sorted by the numbers of noises. If the list has
/// none, it becomes that matrix.
pub(super) fn add_at(all: &mut Vec<(usize, Matrix)>, id: usize, more: Matrix) {
    match all.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(at) => all[at].1.add(1.0, &more),
        Err(at) => all.insert(at, (id, more)),
    }
}

/// Sorts weights by row and coordinate, and adds up the weights of one place in the order in which they come.
fn add_up(weights: &mut Vec<Weight>) {
    weights.sort_by_key(|weight| (weight.row, weight.coordinate));
    weights.dedup_by(|next, sum| {
        let is_same = (next.row, next.coordinate) == (sum.row, sum.coordinate);
        if is_same {
            sum.value += next.value;
        }
        is_same
    });
}
