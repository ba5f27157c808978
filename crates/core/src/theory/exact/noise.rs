//! The noises of a round: their covariances, and second moments of forms.
//!
//! A noise has mean 0 given all that was drawn before it. That of clients is the mean over a type,
//! and of each client the deviation from that mean.

use super::form::{Form, add_at, matrix_of};
use super::layers::{self, entry, entry_mut};
use super::setup::ProgramState;
use crate::kernel::axpy;
use crate::linalg::{Matrix, added};

/// Covariances of each noise with those that it depends on, by number, in increasing order; matrices
/// of so many layers.
#[derive(Clone, Debug)]
pub(super) struct NoiseCovariances(Vec<Vec<(usize, Matrix)>>, usize);

impl NoiseCovariances {
    /// Another noise, uncorrelated with all before.
    fn add(&mut self, own: Matrix) -> usize {
        self.0.push(vec![(self.0.len(), own)]);
        self.0.len() - 1
    }

    fn correlate(&mut self, a: usize, b: usize, covariance: Matrix) {
        let turned = layers::transpose(&covariance, self.1);
        for (of, with, matrix) in [(a, b, covariance), (b, a, turned)] {
            let at = self.0[of].partition_point(|(id, _)| *id < with);
            self.0[of].insert(at, (with, matrix));
        }
    }

    /// The covariance of two forms, of which `left` is the first times that of the coordinates.
    pub fn with_coordinates(&self, (a, b): (&Form, &Form), left: &Matrix) -> Matrix {
        let mut out = b.transposed_after(left, self.1);
        if let Some(noise) = self.between(a, b) {
            out.add(1.0, &noise);
        }
        out
    }

    /// Of the noises of two forms; `None` if it is 0.
    fn between(&self, a: &Form, b: &Form) -> Option<Matrix> {
        if b.noise.is_empty() {
            return None;
        }
        let parts = a.noise.iter().flat_map(|(id, left)| {
            self.0[*id].iter().filter_map(move |(other, covariance)| {
                let right = matrix_of(&b.noise, *other)?;
                Some(layers::times_transposed(&left.times(covariance), right, self.1))
            })
        });
        parts.reduce(added)
    }

    /// The covariances of forms that follow each other, where the coordinates have these.
    pub fn of_forms(&self, forms: &[Form], coordinates: &Matrix) -> Matrix {
        let size: usize = forms.iter().map(|form| form.length).sum();
        let mut out = Matrix::zeros(size, size * self.1);
        let mut row = 0;
        for (i, form) in forms.iter().enumerate() {
            let left = form.times(coordinates, coordinates.cols());
            let mut column = row;
            for other in &forms[i..] {
                let block = self.with_coordinates((form, other), &left);
                layers::put(&mut out, (row, column), &block, self.1);
                column += other.length;
            }
            row += form.length;
        }
        out
    }
}

/// A covariance of noises, and that of the deviations of a client, if they are not independent.
pub(super) type NoiseCovariance = (Matrix, Option<Matrix>);

/// What is known within a round.
pub(super) struct KnownMoments {
    /// The layers of all second moments.
    pub layers: usize,
    /// Means of the coordinates, of which the first is the number 1; 0 if there are several layers.
    pub mean: Vec<f64>,
    /// Their covariances; the coordinates known so far are the first of them.
    pub covariance: Matrix,
    /// Covariances of the deviations of a client of each type.
    pub own: Vec<Matrix>,
    /// Of the noises.
    pub noise: NoiseCovariances,
    /// Of their deviations.
    pub own_noise: NoiseCovariances,
    /// Sums of noises, each with its parts.
    sums: Vec<(usize, Vec<(usize, Matrix)>)>,
}

impl KnownMoments {
    /// At the start of a round; `width` coordinates will be known in it.
    pub fn new(state: &ProgramState, width: usize) -> Self {
        let (mean, own, layers) = (state.mean.clone(), state.own.clone(), state.layers);
        let mut covariance = Matrix::zeros(width, width * layers);
        layers::put_diagonal(&mut covariance, 0, &state.covariance, layers);
        let none = NoiseCovariances(Vec::new(), layers);
        let (noise, own_noise, sums) = (none.clone(), none, Vec::new());
        Self { layers, mean, covariance, own, noise, own_noise, sums }
    }

    /// E 1·1, which is 0 if the state is the difference of two runs.
    pub fn unit(&self) -> Vec<f64> {
        let mut unit = entry(&self.covariance, (0, 0), self.layers).to_vec();
        unit[0] += self.mean[0] * self.mean[0];
        unit
    }

    /// Makes the numbers of a form coordinates, without its noise.
    pub fn append(&mut self, form: &Form) {
        let begin = self.mean.len();
        let left = form.times(&self.covariance, begin * self.layers);
        let square = form.transposed_after(&left, self.layers);
        layers::put(&mut self.covariance, (begin, 0), &left, self.layers);
        layers::put_diagonal(&mut self.covariance, begin, &square, self.layers);
        let value = form.value(&self.mean);
        self.mean.extend(value);
    }

    /// E a bᵀ of forms of the coordinates.
    pub fn second(&self, a: &Form, b: &Form) -> Matrix {
        let more = |i: usize, j: usize| self.mean[i] * self.mean[j];
        product((a, b), &self.covariance, more, &self.noise)
    }

    /// E a bᵀ of forms of the deviations of a client of type g.
    pub fn own_second(&self, g: usize, a: &Form, b: &Form) -> Matrix {
        product((a, b), &self.own[g], |_, _| 0.0, &self.own_noise)
    }

    /// E‖a‖² of a client of type g, of a mean over its type and a client's deviation from that.
    pub fn square(&self, g: usize, mean: &Form, own: &Form) -> f64 {
        self.second(mean, mean).trace() + self.own_second(g, own, own).trace()
    }

    /// A noise with its covariance, and those with noises before it.
    pub fn add_noise(
        &mut self,
        (covariance, own): NoiseCovariance,
        with: Vec<(usize, NoiseCovariance)>,
    ) {
        let zeros = || Matrix::zeros(covariance.rows(), covariance.cols());
        self.own_noise.add(own.unwrap_or_else(zeros));
        let id = self.noise.add(covariance);
        if with.is_empty() {
            return;
        }
        for (other, (covariance, own)) in with {
            self.noise.correlate(id, other, covariance);
            own.into_iter().for_each(|own| self.own_noise.correlate(id, other, own));
        }
        for (sum, parts) in &self.sums {
            let parts = parts.iter().filter_map(|(part, weight)| {
                let covariance = matrix_of(&self.noise.0[id], *part)?;
                Some(layers::times_transposed(covariance, weight, self.layers))
            });
            if let Some(all) = parts.reduce(added) {
                self.noise.correlate(id, *sum, all);
            }
        }
    }

    /// A noise that is a sum of others.
    pub fn add_sum(&mut self, parts: &[(usize, Matrix)]) {
        let d = parts[0].1.rows();
        let mut with: Vec<(usize, Matrix)> = Vec::new();
        let mut own = Matrix::zeros(d, d * self.layers);
        for (part, weight) in parts {
            for (other, covariance) in &self.noise.0[*part] {
                add_at(&mut with, *other, weight.times(covariance));
            }
        }
        for (other, covariance) in &with {
            if let Some(weight) = matrix_of(parts, *other) {
                own.add(1.0, &layers::times_transposed(covariance, weight, self.layers));
            }
        }
        let id = self.noise.add(own);
        self.own_noise.add(Matrix::zeros(d, d * self.layers));
        with.into_iter().for_each(|(other, matrix)| self.noise.correlate(id, other, matrix));
        self.sums.push((id, parts.to_vec()));
    }
}

/// E a bᵀ where the coordinates have these covariances, and `more` on top of them.
fn product(
    (a, b): (&Form, &Form),
    covariance: &Matrix,
    more: impl Fn(usize, usize) -> f64,
    noise: &NoiseCovariances,
) -> Matrix {
    let layers = noise.1;
    let noise = noise.between(a, b);
    let mut out = noise.unwrap_or_else(|| Matrix::zeros(a.length, b.length * layers));
    for (i, k, x) in &a.weights {
        for (j, l, y) in &b.weights {
            let to = entry_mut(&mut out, (*i, *j), layers);
            to[0] += x * y * more(*k, *l);
            match layers {
                1 => to[0] += x * y * covariance[(*k, *l)],
                _ => axpy(x * y, entry(covariance, (*k, *l), layers), to),
            }
        }
    }
    out
}
