//! The value of each metric at a recorded round.

use exactfed_core::federated::Run;
use exactfed_core::kernel::{axpy, dot, squared_distance};
use exactfed_core::problem::Facts;
use exactfed_core::theory::exact::Moments;

/// A run at a recorded round, with all that metrics are computed from.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The problem on which the run is.
    pub facts: &'a dyn Facts,
    /// The run after the round.
    pub run: &'a dyn Run,
    /// The estimate of the run on the same draws, if there is one.
    pub coupled: Option<&'a [f64]>,
    /// Σ_{s≤t} θ_s, if the mean is recorded, and t.
    pub sum: (&'a [f64], u64),
    /// ξ_c* = −F̄_c(θ*), N rows of d, if ψ is recorded.
    pub corrections: &'a [f64],
}

impl Reading<'_> {
    /// The squared distance ‖θ_t − other‖².
    pub fn distance_to(&self, other: &[f64]) -> f64 {
        squared_distance(self.run.estimate(), other)
    }
}

/// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖²; at round 0 that of the start.
pub fn mean_so_far(reading: &Reading<'_>) -> Option<f64> {
    let optimum = reading.facts.optimum();
    let (sum, rounds) = reading.sum;
    if rounds == 0 {
        return Some(reading.distance_to(optimum));
    }
    let mean: Vec<f64> = sum.iter().map(|x| x / rounds as f64).collect();
    Some(squared_distance(&mean, optimum))
}

/// Σ_c π_c ‖θ_c − θ*‖².
pub fn clients(reading: &Reading<'_>) -> Option<f64> {
    let Reading { facts, run, .. } = reading;
    let clients = run.clients()?;
    let optimum = facts.optimum();
    let rows = clients.ends.chunks_exact(optimum.len()).enumerate();
    Some(
        rows.fold(0.0, |sum, (client, end)| {
            sum + facts.weight(client) * squared_distance(end, optimum)
        }) / facts.clients() as f64,
    )
}

/// ‖θ_t − θ*‖²_Σφ.
pub fn in_features(reading: &Reading<'_>) -> Option<f64> {
    let pairs = reading.run.estimate().iter().zip(reading.facts.optimum());
    let apart: Vec<f64> = pairs.map(|(x, y)| x - y).collect();
    reading.facts.feature_norm(&apart)
}

/// ‖F̄(θ_t)‖².
pub fn mean_field(reading: &Reading<'_>) -> Option<f64> {
    let Reading { facts, run, .. } = reading;
    let mut mean = vec![0.0; facts.dim()];
    let mut field = vec![0.0; facts.dim()];
    for client in 0..facts.clients() {
        facts.mean_field(client, run.estimate(), &mut field);
        axpy(facts.share(client), &field, &mut mean);
    }
    Some(dot(&mean, &mean))
}

/// ‖Σ_c π_c ξ_c‖.
pub fn correction_sum(reading: &Reading<'_>) -> Option<f64> {
    let d = reading.facts.dim();
    let mut sum = vec![0.0; d];
    if let Some(clients) = reading.run.clients() {
        for (client, xi) in clients.corrections.chunks_exact(d).enumerate() {
            axpy(reading.facts.weight(client), xi, &mut sum);
        }
    }
    Some(libm::sqrt(dot(&sum, &sum)))
}

/// ψ: the clients' (45, between communications) or the server's (51) mean squared error, plus
/// Σ π_c ℓ_c² ‖ξ_c − ξ_c*‖² with ℓ = η/p or ηH.
pub fn lyapunov(reading: &Reading<'_>) -> Option<f64> {
    let own = reading.run.clients()?;
    let optimum = reading.facts.optimum();
    let d = optimum.len();
    let n = own.lengths.len() as f64;
    let rows = own.corrections.chunks_exact(d).zip(reading.corrections.chunks_exact(d));
    let mut variates = 0.0;
    for (client, ((xi, star), length)) in rows.zip(&own.lengths).enumerate() {
        variates += reading.facts.weight(client) * length * length * squared_distance(xi, star);
    }
    let error = if own.apart { clients(reading)? } else { reading.distance_to(optimum) };
    Some(error + variates / n)
}

/// E‖θ_t − lim E θ_t‖²: the squared distance of the mean, and the trace of the covariance.
pub fn expected_from_limit(
    moments: &Moments,
    optimum: &[f64],
    limit: Option<&[f64]>,
) -> Option<f64> {
    let limit = limit?;
    let d = optimum.len();
    let apart: Vec<f64> = (0..d).map(|i| moments.mean[i] + optimum[i] - limit[i]).collect();
    let covariance = moments.covariance.entries();
    Some(dot(&apart, &apart) + (0..d).fold(0.0, |sum, i| sum + covariance[i * d + i]))
}
