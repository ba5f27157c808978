//! What exact theory says of a round, and of stationarity.

use crate::kernel::{axpy, difference, dot};
use crate::linalg::Matrix;

/// Exact moments at the end of a round.
#[derive(Clone, Debug)]
pub struct Moments {
    /// t.
    pub round: u64,
    /// E‖θ̂_t − θ*‖² of the algorithm's estimate.
    pub sq_error: f64,
    /// E θ̂_t − θ*, d numbers.
    pub mean: Vec<f64>,
    /// Cov θ̂_t, d × d.
    pub covariance: Matrix,
    /// E‖t⁻¹ Σ_{s≤t} θ̂_s − θ*‖², the error of the mean of all estimates so far (at round 0,
    /// of the first); NaN if the estimate is itself an average.
    pub sq_error_average: f64,
    /// E Σ π_c ‖θ_c − θ*‖² at the end of the last local steps, for one run with full
    /// participation.
    pub sq_error_clients: Option<f64>,
    /// E of the Lyapunov function (SCAFFLSA 51, at communications 45).
    pub lyapunov: Option<f64>,
}

impl Moments {
    /// Those at rest of an estimate that has these.
    pub fn at_rest(mean: Vec<f64>, covariance: Matrix) -> Self {
        Self {
            round: u64::MAX,
            sq_error: dot(&mean, &mean) + covariance.trace(),
            mean,
            covariance,
            sq_error_average: f64::NAN,
            sq_error_clients: None,
            lyapunov: None,
        }
    }

    /// E (θ̂_t − θ*)(θ̂_t − θ*)ᵀ.
    pub fn second(&self) -> Matrix {
        let mut second = self.covariance.clone();
        second.add_outer(1.0, &self.mean, &self.mean);
        second
    }

    /// Those of a round that is drawn among these with these weights, whose sum is 1: the mean of
    /// what is measured at so many rounds of each. The covariance is around the mean of all.
    pub fn of_any(all: &[Self], weights: &[f64]) -> Self {
        if let [one] = all {
            return one.clone();
        }
        let each = || all.iter().zip(weights);
        let sum = |of: fn(&Self) -> Option<f64>| each().map(|(m, w)| Some(w * of(m)?)).sum();
        let d = all[0].mean.len();
        let (mut mean, mut covariance) = (vec![0.0; d], Matrix::zeros(d, d));
        each().for_each(|(m, w)| axpy(*w, &m.mean, &mut mean));
        for (moments, weight) in each() {
            let apart = difference(&moments.mean, &mean);
            covariance.add(*weight, &moments.covariance);
            covariance.add_outer(*weight, &apart, &apart);
        }
        Self {
            sq_error: each().map(|(m, w)| w * m.sq_error).sum(),
            sq_error_clients: sum(|m| m.sq_error_clients),
            lyapunov: sum(|m| m.lyapunov),
            ..Self::at_rest(mean, covariance)
        }
    }
}

/// Second moments of θ and of a type's control variate at stationarity, in the
/// coordinates θ − θ* and ξ_c + F̄_c(θ*).
#[derive(Clone, Debug)]
pub struct CovarianceBlocks {
    /// E of the products of θ, d × d.
    pub theta: Matrix,
    /// E (θ − θ*)(ξ_c − ξ_c*)ᵀ by client, d × d each.
    pub theta_variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ by client.
    pub variate: Vec<Matrix>,
    /// E (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ with c' the client after c.
    pub variate_pair: Vec<Matrix>,
}

impl CovarianceBlocks {
    /// The number of their entries.
    pub fn numbers(&self) -> usize {
        let lists = [&self.theta_variate, &self.variate, &self.variate_pair];
        let all = std::iter::once(&self.theta).chain(lists.into_iter().flatten());
        all.map(|block| block.entries().len()).sum()
    }
}

/// Spectral radii over one round; moments converge if they are below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralRadii {
    /// Of the mean.
    pub mean: f64,
    /// Of the second moments.
    pub square: f64,
}
