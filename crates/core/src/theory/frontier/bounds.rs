//! Lower bounds of the error, which exclude most step sizes before a round's map is made: the error
//! without noise, and the stationary error whose noise is that at the stationary mean.

use super::StartError;
use super::curve::MOST_PASSING;
use super::means::RoundMeans;
use super::products::Products;
use super::round::RoundMoments;
use crate::linalg::{Matrix, solve};

/// Rounding errors of the bounds, relative.
const MARGIN: f64 = 1e-9;

/// The stationary error whose noise is that at the stationary mean.
pub struct StationaryBound {
    /// ‖bias‖²; infinite if there is no stationary mean.
    bias: f64,
    /// N times the variance.
    variance: f64,
}

impl StationaryBound {
    /// The bound for these rounds.
    pub fn new(round: &RoundMoments) -> Self {
        let (bias, variance) = stationary(round).unwrap_or((f64::INFINITY, f64::INFINITY));
        Self { bias, variance }
    }

    /// Whether the stationary error of N clients may be at most `square`.
    pub fn allows(&self, clients: u64, square: f64) -> bool {
        self.bias + self.variance / clients as f64 <= square * (1.0 + MARGIN)
    }
}

/// The error without noise.
pub struct NoiselessError {
    weights: &'static [f64],
    /// The powers 1, 2, 4, … of the maps of u, for each run.
    powers: Vec<Vec<Matrix>>,
    /// Columns c with Σ c cᵀ = E u uᵀ at the start, for each run.
    starts: Vec<Matrix>,
    /// The least error after any round up to each of [`MOST_PASSING`].
    least: Vec<f64>,
}

impl NoiselessError {
    /// The error of these rounds from this start, given as θ_0 − θ* if it is a point.
    pub fn new(means: &RoundMeans, start: &StartError) -> Self {
        let powers = means.maps.iter().map(|map| vec![map.clone()]).collect();
        let columns = |begin: &Vec<f64>| columns(begin, start, means.dim());
        let starts = means.begins.iter().map(columns).collect();
        Self { weights: means.weights, powers, starts, least: Vec::new() }
    }

    /// Whether the error after some of the first `rounds` rounds may be at most `square` with noise.
    pub fn may_pass(&mut self, rounds: u64, square: f64) -> bool {
        let mut states = if self.least.is_empty() { self.starts.clone() } else { Vec::new() };
        while self.least.len() <= MOST_PASSING as usize {
            let error = self.error(&states);
            // A map that overflows proves nothing.
            let error = if error.is_nan() { 0.0 } else { error };
            self.least.push(self.least.last().map_or(error, |least| least.min(error)));
            let next = |(powers, state): (&Vec<Matrix>, &Matrix)| powers[0].times(state);
            states = self.powers.iter().zip(&states).map(next).collect();
        }
        self.least[rounds.min(MOST_PASSING) as usize] <= square * (1.0 + MARGIN)
    }

    /// The error of these states of the runs.
    fn error(&self, states: &[Matrix]) -> f64 {
        let d = self.starts[0].cols() - 1;
        let mut sum = Matrix::zeros(states[0].rows(), states[0].cols());
        self.weights.iter().zip(states).for_each(|(weight, state)| sum.add(*weight, state));
        sum.entries()[..d * sum.cols()].iter().fold(0.0, |sum, x| sum + x * x)
    }

    /// Whether the error after `rounds` rounds may be at most `square` with noise.
    pub fn allows(&mut self, rounds: u64, square: f64) -> bool {
        let mut states = self.starts.clone();
        for (powers, state) in self.powers.iter_mut().zip(&mut states) {
            for bit in 0..64 - rounds.leading_zeros() as usize {
                if powers.len() == bit {
                    let next = powers[bit - 1].times(&powers[bit - 1]);
                    powers.push(next);
                }
                if rounds >> bit & 1 == 1 {
                    *state = powers[bit].times(state);
                }
            }
        }
        let error = self.error(&states);
        // A map that overflows proves nothing.
        error <= square * (1.0 + MARGIN) || error.is_nan()
    }
}

/// Columns c with Σ c cᵀ = E u uᵀ at the start; d + 1 of them.
fn columns(begin: &[f64], start: &StartError, d: usize) -> Matrix {
    Matrix::from_fn(begin.len(), d + 1, |i, j| match (start, j == d) {
        (StartError::Point(x), true) if i < d => x[i],
        (_, true) => begin[i],
        (StartError::Isotropic { mean_square }, false) if i == j => {
            libm::sqrt(mean_square / d as f64)
        }
        _ => 0.0,
    })
}

/// The stationary bias squared, and N times the variance that the noise at the stationary mean
/// causes; `None` if the means have no limit.
fn stationary(round: &RoundMoments) -> Option<(f64, f64)> {
    let (means, d, weights) = (&round.means, round.means.dim(), round.means.weights);
    let n = means.maps[0].rows() - 1;
    let linear: Vec<Matrix> =
        means.maps.iter().map(|map| Matrix::from_fn(n, n, |i, j| map[(i, j)])).collect();
    let mut limits = Vec::new();
    for (map, linear) in means.maps.iter().zip(&linear) {
        let constant: Vec<f64> = (0..n).map(|i| map[(i, n)]).collect();
        let mut limit = solve(&Matrix::identity(n).plus(-1.0, linear), &constant).ok()?;
        limit.push(1.0);
        limits.push(limit);
    }
    let mut variance = 0.0;
    for (pair, (r, q)) in super::local::run_pairs(weights.len()).enumerate() {
        // Σ_k (Fᵏ)ᵀ P Fᵏ with P the projection on x.
        let mut sum = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j && i < d)));
        let (mut a, mut b) = (linear[r].clone(), linear[q].clone());
        let size = |m: &Matrix| m.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let mut doublings = 0;
        while size(&a) * size(&b) > 1e-20 {
            sum.add(1.0, &a.transpose().times(&sum).times(&b));
            (a, b) = (a.times(&a), b.times(&b));
            doublings += 1;
            if doublings > 60 || !size(&a).is_finite() || !size(&b).is_finite() {
                return None;
            }
        }
        let products = Products { n: n + 1, same: r == q };
        let at: Vec<f64> = products.entries().map(|(i, j)| limits[r][i] * limits[q][j]).collect();
        let weight = weights[r] * weights[q] * if r == q { 1.0 } else { 2.0 };
        variance += weight * round.noise_effect(pair, r == q, &at, &sum);
    }
    let error = |i: usize| limits.iter().zip(weights).fold(0.0, |sum, (x, w)| sum + w * x[i]);
    Some(((0..d).fold(0.0, |sum, i| sum + error(i) * error(i)), variance))
}
