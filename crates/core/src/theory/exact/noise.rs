//! The noises of a round, their covariances, and the second moments of forms.
//!
//! A form is a vector W x + Σ G_i n_i of coordinates x and noises n_i, THEORY (4.1), and a type all clients that no
//! round tells apart. A matrix of second moments may have several *layers*: then each entry is as many numbers next to
//! each other ([`super::layers`]).
//!
//! A noise has mean 0 given all that was drawn before it. A noise of the clients has two parts for each type,
//! which are uncorrelated: its mean over the type, and the deviation of a client from that mean,
//! THEORY (3.5). Both have the same number; each kind of part has covariances of its own.
//!
//! ```text
//! THEORY (4.2)   Cov(a, b) = W_a Cov(x) W_bᵀ + Σ_{i,j} G_{a,i} Cov(n_i, n_j) G_{b,j}ᵀ
//! THEORY (4.3)   E a bᵀ = Cov(a, b) + E a (E b)ᵀ
//! THEORY (3.2)   E v_k v_kᵀ = E v̄_g v̄_gᵀ + E ṽ_k ṽ_kᵀ for a client k of type g
//! THEORY (3.4)   E v_k v_jᵀ = E v̄_g v̄_hᵀ for clients of different types g and h
//! ```

use super::form::{Form, add_at, matrix_of};
use super::layers::{self, entry, entry_mut};
use super::setup::ProgramState;
use crate::kernel::axpy;
use crate::linalg::{Matrix, added};

/// Cov(n_i, n_j) of THEORY (4.2): for each noise i, in the order in which they are drawn, the noises j that are
/// correlated with it, in increasing order and with noise i itself, each with the covariance.
#[derive(Clone, Debug)]
pub(super) struct NoiseCovariances {
    of_noise: Vec<Vec<(usize, Matrix)>>,
    /// The number of layers of the matrices.
    layers: usize,
}

impl NoiseCovariances {
    /// Adds a noise with this covariance, uncorrelated with all noises before it; returns its number.
    fn add(&mut self, own: Matrix) -> usize {
        let id = self.of_noise.len();
        self.of_noise.push(vec![(id, own)]);
        id
    }

    /// Records that Cov(n_a, n_b) = `covariance` for a ≠ b, and Cov(n_b, n_a) its transpose.
    fn correlate(&mut self, a: usize, b: usize, covariance: Matrix) {
        let turned = layers::transpose(&covariance, self.layers);
        for (of, with, matrix) in [(a, b, covariance), (b, a, turned)] {
            let at = self.of_noise[of].partition_point(|(id, _)| *id < with);
            self.of_noise[of].insert(at, (with, matrix));
        }
    }

    /// Cov(a, b) of two forms, THEORY (4.2), where `left` is W_a Cov(x) of the coordinates x.
    pub fn with_coordinates(&self, a: &Form, b: &Form, left: &Matrix) -> Matrix {
        let mut out = b.transposed_after(left, self.layers);
        if let Some(noise) = self.between(a, b) {
            out.add(1.0, &noise);
        }
        out
    }

    /// Σ_{i,j} G_{a,i} Cov(n_i, n_j) G_{b,j}ᵀ of two forms, THEORY (4.2); `None` if no noise of a is correlated with
    /// one of b.
    fn between(&self, a: &Form, b: &Form) -> Option<Matrix> {
        if b.noise.is_empty() {
            return None;
        }
        let parts = a.noise.iter().flat_map(|(id, left)| {
            self.of_noise[*id].iter().filter_map(move |(other, covariance)| {
                let right = matrix_of(&b.noise, *other)?;
                Some(layers::times_transposed(&left.times(covariance), right, self.layers))
            })
        });
        parts.reduce(added)
    }

    /// The covariance of the vector that consists of all these forms, THEORY (4.2), where `coordinates` is
    /// Cov(x).
    pub fn of_forms(&self, forms: &[Form], coordinates: &Matrix) -> Matrix {
        let size: usize = forms.iter().map(|form| form.length).sum();
        let mut out = Matrix::zeros(size, size * self.layers);
        let mut row = 0;
        for (i, form) in forms.iter().enumerate() {
            let left = form.times(coordinates, coordinates.cols());
            let mut column = row;
            for other in &forms[i..] {
                let block = self.with_coordinates(form, other, &left);
                layers::put(&mut out, (row, column), &block, self.layers);
                column += other.length;
            }
            row += form.length;
        }
        out
    }
}

/// The covariance of two noises, or of a noise with itself.
pub(super) struct NoiseCovariance {
    /// The covariance of the parts that are means over a type, or of the server's noises.
    pub mean: Matrix,
    /// The covariance of the parts that are a client's deviations; `None` if these are uncorrelated.
    pub deviation: Option<Matrix>,
}

/// Moments that are known within a round: the moments of its coordinates and of the noises so far.
pub(super) struct KnownMoments {
    /// The number of layers of all second moments.
    pub layers: usize,
    /// E x of the coordinates; the first coordinate is the number 1. Where second moments are followed as a linear map,
    /// in one or several layers, all means are 0, and `covariance` holds the second moments E x xᵀ with E 1·1.
    pub mean: Vec<f64>,
    /// Cov(x), with room for coordinates that will be known later in the round.
    pub covariance: Matrix,
    /// The covariance of the coordinates of a client's deviations, for each type; their means are 0.
    pub own: Vec<Matrix>,
    /// Covariances of the noises of the server and of means over types.
    pub noise: NoiseCovariances,
    /// Covariances of the parts of noises that are a client's deviations.
    pub own_noise: NoiseCovariances,
    /// The numbers of the noises that stand for sums Σ G_i n_i of others, each with the numbers i and the matrices G_i.
    sums: Vec<(usize, Vec<(usize, Matrix)>)>,
}

impl KnownMoments {
    /// What is known at the start of a round, at whose end `width` coordinates are known.
    pub fn new(state: &ProgramState, width: usize) -> Self {
        let mean = state.mean.clone();
        let own = state.own.clone();
        let layers = state.layers;
        let mut covariance = Matrix::zeros(width, width * layers);
        layers::put_diagonal(&mut covariance, 0, &state.covariance, layers);
        let none = NoiseCovariances { of_noise: Vec::new(), layers };
        let noise = none.clone();
        let own_noise = none;
        let sums = Vec::new();
        Self { layers, mean, covariance, own, noise, own_noise, sums }
    }

    /// E 1·1 in each layer, where 1 is the first coordinate: 0 if the state is the difference of two runs, or of two
    /// second moments.
    pub fn unit(&self) -> Vec<f64> {
        let mut unit = entry(&self.covariance, (0, 0), self.layers).to_vec();
        unit[0] += self.mean[0] * self.mean[0];
        unit
    }

    /// Makes the numbers W x of a form, without its noises, coordinates after the present ones. So later forms that
    /// contain them have few weights.
    pub fn append(&mut self, form: &Form) {
        let begin = self.mean.len();
        let left = form.times(&self.covariance, begin * self.layers);
        let square = form.transposed_after(&left, self.layers);
        layers::put(&mut self.covariance, (begin, 0), &left, self.layers);
        layers::put_diagonal(&mut self.covariance, begin, &square, self.layers);
        let value = form.value(&self.mean);
        self.mean.extend(value);
    }

    /// E a bᵀ of two forms, THEORY (4.3). For means ā_g and b̄_h over different types it is E a_k b_jᵀ,
    /// THEORY (3.4).
    pub fn second(&self, a: &Form, b: &Form) -> Matrix {
        let means = &self.mean;
        product(a, b, &self.covariance, |i, j| means[i] * means[j], &self.noise)
    }

    /// E ã_k b̃_kᵀ of two forms of the deviations of a client k of type g: THEORY (4.3), where means are 0.
    pub fn own_second(&self, g: usize, a: &Form, b: &Form) -> Matrix {
        product(a, b, &self.own[g], |_, _| 0.0, &self.own_noise)
    }

    /// E‖a_k‖² of a client k of type g, the trace of THEORY (3.2), from the forms of ā_g and of ã_k.
    pub fn square(&self, g: usize, mean: &Form, own: &Form) -> f64 {
        self.second(mean, mean).trace() + self.own_second(g, own, own).trace()
    }

    /// Adds the next noise with its own covariance, and its covariances with the earlier noises `with`, by their
    /// numbers. From them follow its covariances with noises that stand for sums; with all other noises it is
    /// uncorrelated.
    pub fn add_noise(&mut self, own: NoiseCovariance, with: Vec<(usize, NoiseCovariance)>) {
        let NoiseCovariance { mean, deviation } = own;
        self.own_noise.add(deviation.unwrap_or_else(|| Matrix::zeros(mean.rows(), mean.cols())));
        let id = self.noise.add(mean);
        if with.is_empty() {
            return;
        }
        for (other, NoiseCovariance { mean, deviation }) in with {
            self.noise.correlate(id, other, mean);
            if let Some(deviation) = deviation {
                self.own_noise.correlate(id, other, deviation);
            }
        }
        for (sum, parts) in &self.sums {
            let parts = parts.iter().filter_map(|(part, weight)| {
                let covariance = matrix_of(&self.noise.of_noise[id], *part)?;
                Some(layers::times_transposed(covariance, weight, self.layers))
            });
            if let Some(all) = parts.reduce(added) {
                self.noise.correlate(id, *sum, all);
            }
        }
    }

    /// Adds the noise Σ G_i n_i of the server, a sum of earlier noises with these numbers i and matrices G_i (at least
    /// one), so that forms that contain it become short. Later noises that are drawn together with a part are
    /// correlated with the sum ([`Self::add_noise`]).
    pub fn add_sum(&mut self, parts: &[(usize, Matrix)]) {
        let d = parts[0].1.rows();
        let mut with: Vec<(usize, Matrix)> = Vec::new();
        let mut own = Matrix::zeros(d, d * self.layers);
        for (part, weight) in parts {
            for (other, covariance) in &self.noise.of_noise[*part] {
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

/// E a bᵀ of two forms, THEORY (4.3), where `covariance` is Cov(x) and `product_of_means(k, l)` is E x_k E x_l.
fn product(
    a: &Form,
    b: &Form,
    covariance: &Matrix,
    product_of_means: impl Fn(usize, usize) -> f64,
    noise: &NoiseCovariances,
) -> Matrix {
    let layers = noise.layers;
    let of_noises = noise.between(a, b);
    let mut out = of_noises.unwrap_or_else(|| Matrix::zeros(a.length, b.length * layers));
    for left in &a.weights {
        for right in &b.weights {
            let k = left.coordinate;
            let l = right.coordinate;
            let factor = left.value * right.value;
            let to = entry_mut(&mut out, (left.row, right.row), layers);
            to[0] += factor * product_of_means(k, l);
            // One layer is the usual case, and needs no loop over layers.
            if layers == 1 {
                to[0] += factor * covariance[(k, l)];
            } else {
                axpy(factor, entry(covariance, (k, l), layers), to);
            }
        }
    }
    out
}
