//! The results of exact theory: moments after a round and at stationarity, and spectral radii.

use crate::kernel::{axpy, difference, dot};
use crate::linalg::Matrix;

/// Exact moments at the end of a round.
#[derive(Clone, Debug)]
pub struct Moments {
    /// t, the number of the round; `u64::MAX` at stationarity.
    pub round: u64,
    /// E‖θ̂_t − θ*‖² of the algorithm's estimate θ̂_t: THEORY (4.9).
    pub sq_error: f64,
    /// E θ̂_t − θ*, d numbers.
    pub mean: Vec<f64>,
    /// Cov θ̂_t, d × d.
    pub covariance: Matrix,
    /// E‖t⁻¹ Σ_{s≤t} θ̂_s − θ*‖², the error of the mean of all estimates so far (at round 0,
    /// of the first); NaN if the estimate is itself an average.
    pub sq_error_average: f64,
    /// E Σ_k π_k ‖θ_k − θ*‖² of the clients' parameters before the last communication, or at the end of the round where
    /// rounds are single local steps under a coin; `None` unless the rounds record these, as those of one run with full
    /// participation do.
    pub sq_error_clients: Option<f64>,
    /// E ψ_t of the Lyapunov function, THEORY (4.10): SCAFFLSA (51), or (45) at single local steps. `None` without
    /// control variates.
    pub lyapunov: Option<f64>,
}

impl Moments {
    /// The moments of an estimate whose error has this mean (d numbers) and covariance (d × d), THEORY (4.9).
    /// They count as stationary until they are given a round. What the mean and the covariance do not determine is not
    /// known: NaN or `None`.
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

    /// E (θ̂_t − θ*)(θ̂_t − θ*)ᵀ, d × d: THEORY (4.3).
    pub fn second_moment(&self) -> Matrix {
        let mut second = self.covariance.clone();
        second.add_outer(1.0, &self.mean, &self.mean);
        second
    }

    /// The moments of a mixture, THEORY (5.7): of an estimate that is drawn among the estimates of several rounds
    /// with these weights, whose sum is 1. Means over many rounds of a run measure them, where the weights are
    /// the [shares](crate::round_program::Program::phase_shares) of the phases of a cycle. The covariance
    /// is around the mean of all. There must be at least one round; a single one is returned as it is. A mixture of
    /// several has no round, and no error of the mean of all estimates.
    pub fn mixture(all: &[Self], weights: &[f64]) -> Self {
        if let [one] = all {
            return one.clone();
        }
        let d = all[0].mean.len();
        let mut mean = vec![0.0; d];
        let mut covariance = Matrix::zeros(d, d);
        for (moments, weight) in all.iter().zip(weights) {
            axpy(*weight, &moments.mean, &mut mean);
        }
        for (moments, weight) in all.iter().zip(weights) {
            let apart = difference(&moments.mean, &mean);
            covariance.add(*weight, &moments.covariance);
            covariance.add_outer(*weight, &apart, &apart);
        }
        Self {
            sq_error: all.iter().zip(weights).map(|(m, w)| w * m.sq_error).sum(),
            sq_error_clients: Self::weighted_sum(all, weights, |m| m.sq_error_clients),
            lyapunov: Self::weighted_sum(all, weights, |m| m.lyapunov),
            ..Self::at_rest(mean, covariance)
        }
    }

    /// Σ w_i m_i of the weights w_i and a moment m_i of each; `None` if one of the moments is not known.
    fn weighted_sum(
        all: &[Self],
        weights: &[f64],
        moment: fn(&Self) -> Option<f64>,
    ) -> Option<f64> {
        all.iter().zip(weights).map(|(m, w)| Some(w * moment(m)?)).sum()
    }
}

/// Second moments of θ and of the clients' corrections at stationarity, in the coordinates θ − θ* and
/// ξ_k − ξ_k* = ξ_k + F̄_k(θ*).
#[derive(Clone, Debug)]
pub struct CovarianceBlocks {
    /// E (θ − θ*)(θ − θ*)ᵀ, d × d.
    pub theta: Matrix,
    /// E (θ − θ*)(ξ_k − ξ_k*)ᵀ for each client, d × d each.
    pub theta_variate: Vec<Matrix>,
    /// E (ξ_k − ξ_k*)(ξ_k − ξ_k*)ᵀ for each client, THEORY (3.2).
    pub variate: Vec<Matrix>,
    /// E (ξ_k − ξ_k*)(ξ_j − ξ_j*)ᵀ for each client k, where j is the client after k, and client 0 comes
    /// after the last: THEORY (3.3), (3.4).
    pub variate_pair: Vec<Matrix>,
}

impl CovarianceBlocks {
    /// The number of entries of all blocks, 8 bytes each, by which a cache limits the memory of what it keeps.
    pub fn numbers(&self) -> usize {
        let lists = [&self.theta_variate, &self.variate, &self.variate_pair];
        let all = std::iter::once(&self.theta).chain(lists.into_iter().flatten());
        all.map(|block| block.entries().len()).sum()
    }
}

/// Spectral radii of the linear maps of means and of second moments over one round. Means, or second moments, converge
/// if the radius is below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralRadii {
    /// ρ(M) of the map of means, THEORY (5.1).
    pub mean: f64,
    /// ρ(T) of the map of second moments, THEORY (5.2); at least `mean`², THEORY (5.3).
    pub square: f64,
}
