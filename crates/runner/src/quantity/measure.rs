//! The value of each metric at a recorded round.

use exactfed_core::federated::{Clients, Run};
use exactfed_core::kernel::{axpy, dot, squared_distance};
use exactfed_core::problem::{Facts, RecordsOf};
use exactfed_core::theory::exact::Moments;

/// A run at a recorded round, with all that metrics are computed from.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The problem on which the run is.
    pub facts: &'a dyn Facts,
    /// The run after the round.
    pub run: &'a dyn Run,
    /// A second run after the same round, which starts at θ* and has the same draws; `None` unless a distance between
    /// the two is recorded.
    pub coupled: Option<&'a dyn Run>,
    /// Σ_{1≤s≤t} θ_s, d numbers, and t. The sum is 0 unless `sq-error-average` is recorded.
    pub sum: (&'a [f64], u64),
    /// The reference point r, d numbers; `None` if the manifest states none.
    pub reference: Option<&'a [f64]>,
    /// ξ_c* = −F̄_c(θ*), N rows of d; empty unless ψ is recorded or control variates are averaged.
    pub corrections: &'a [f64],
}

impl Reading<'_> {
    /// The squared distance ‖θ_t − other‖².
    pub fn distance_to(&self, other: &[f64]) -> f64 {
        squared_distance(self.run.estimate(), other)
    }

    /// ‖θ_t − θ*‖², or the squared distance from the set of optima where there are several.
    pub fn sq_error(&self) -> f64 {
        self.facts.sq_distance_to_optimum(self.run.estimate())
    }

    /// The mean loss of each client's records at θ_t ([`Facts::client_losses`]); `None` if the problem has none.
    pub fn client_losses(&self, of: RecordsOf) -> Option<Vec<f64>> {
        self.facts.client_losses(self.run.estimate(), of)
    }

    /// The accuracy of θ_t on each client's records ([`Facts::client_accuracies`]); `None` if the problem has none.
    pub fn client_accuracies(&self, of: RecordsOf) -> Option<Vec<f64>> {
        self.facts.client_accuracies(self.run.estimate(), of)
    }
}

/// ‖t⁻¹ Σ_{1≤s≤t} θ_s − θ*‖²; at round 0, where there is no mean, ‖θ_0 − θ*‖². The distance is that to the set of optima
/// where there are several. The sum of the reading must be kept, as
/// it is where `sq-error-average` is recorded.
pub fn sq_error_of_mean(reading: &Reading<'_>) -> Option<f64> {
    let (sum, rounds) = reading.sum;
    if rounds == 0 {
        return Some(reading.sq_error());
    }
    let mean: Vec<f64> = sum.iter().map(|x| x / rounds as f64).collect();
    Some(reading.facts.sq_distance_to_optimum(&mean))
}

/// Σ_c π_c ‖θ_c − θ*‖², where θ_c is client c at the end of its local steps; `None` if the estimate is averaged or
/// combines several runs, or the algorithm is custom. The run must form these ends: of one that was told that nobody
/// reads them ([`Run::without_ends`]) they may be lacking, and the value is 0.
pub fn sq_error_of_clients(reading: &Reading<'_>) -> Option<f64> {
    let Reading { facts, run, .. } = reading;
    let clients = run.clients()?;
    let rows = clients.ends.chunks_exact(facts.dim()).enumerate();
    // A weight is N π_c.
    Some(
        rows.fold(0.0, |sum, (client, end)| {
            sum + facts.weight(client) * facts.sq_distance_to_optimum(end)
        }) / facts.clients() as f64,
    )
}

/// ‖θ_t − θ*‖²_Σφ, the squared error of values in the mean Σφ of the clients' feature covariances; `None` on a problem
/// without features.
pub fn sq_error_in_features(reading: &Reading<'_>) -> Option<f64> {
    let pairs = reading.run.estimate().iter().zip(reading.facts.optimum());
    let apart: Vec<f64> = pairs.map(|(x, y)| x - y).collect();
    reading.facts.feature_norm(&apart)
}

/// ‖F̄(θ_t)‖², the squared norm of the mean F̄ = Σ_c π_c F̄_c of the clients' mean fields: of the gradient, for losses.
pub fn sq_mean_field(reading: &Reading<'_>) -> Option<f64> {
    let Reading { facts, run, .. } = reading;
    let mut mean = vec![0.0; facts.dim()];
    let mut field = vec![0.0; facts.dim()];
    for client in 0..facts.clients() {
        facts.mean_field(client, run.estimate(), &mut field);
        axpy(facts.share(client), &field, &mut mean);
    }
    Some(dot(&mean, &mean))
}

/// ‖N Σ_c π_c ξ_c‖, which is ‖Σ_c ξ_c‖ if shares are equal, and 0 up to rounding. It is recorded of runs with control
/// variates alone; of any other run it is 0.
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

/// The Lyapunov function ψ of SCAFFLSA: the clients' mean squared error (45) where a coin has left them between two
/// communications, or the server's squared error (51), plus Σ π_c ℓ_c² ‖ξ_c − ξ_c*‖² with ℓ = η/p or ηH. `None` if the
/// estimate is averaged or combines several runs, or the algorithm is custom. The reading must have the corrections
/// ξ_c*, and under a coin the run must form the ends of its clients ([`sq_error_of_clients`]).
pub fn lyapunov(reading: &Reading<'_>) -> Option<f64> {
    let own = reading.run.clients()?;
    let variates = sq_distance_of_variates(reading.facts, &own, reading.corrections);
    let error = if own.apart { sq_error_of_clients(reading)? } else { reading.sq_error() };
    Some(error + variates)
}

/// ‖θ_t − θ'_t‖² + Σ_c π_c ℓ_c² ‖ξ_c − ξ'_c‖², with ℓ as in [`lyapunov`], and θ' and ξ' those of the run on the same
/// draws that starts at θ*: the squared distance in the norm in which Scaffold contracts, THEORY (7.1). `None` without
/// such a run, if the estimate is averaged or combines several runs, or if the algorithm is custom.
pub fn sq_coupling_with_variates(reading: &Reading<'_>) -> Option<f64> {
    let coupled = reading.coupled?;
    let own = reading.run.clients()?;
    let other = coupled.clients()?;
    let variates = sq_distance_of_variates(reading.facts, &own, other.corrections);
    Some(reading.distance_to(coupled.estimate()) + variates)
}

/// Σ_c π_c ℓ_c² ‖ξ_c − ξ'_c‖², with the control variates ξ_c and the lengths ℓ_c of a run's clients, and other variates
/// ξ'_c, N rows of d.
fn sq_distance_of_variates(facts: &dyn Facts, own: &Clients<'_>, others: &[f64]) -> f64 {
    let d = facts.dim();
    let n = own.lengths.len() as f64;
    let rows = own.corrections.chunks_exact(d).zip(others.chunks_exact(d));
    let mut sum = 0.0;
    // A weight is N π_c.
    for (client, ((xi, other), length)) in rows.zip(&own.lengths).enumerate() {
        sum += facts.weight(client) * length * length * squared_distance(xi, other);
    }
    sum / n
}

/// E‖θ_t − lim E θ_t‖²: the squared distance of the mean from the limit plus the trace of the covariance. `None` if the
/// limit is not known. The mean of `moments` is E θ_t − θ*.
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

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::quantity::Quantity;
    use crate::runner::prepare;
    use exactfed_core::problem::arrays::NoFiles;

    /// Two clients with different Hessians and one optimum, whose gradients each draw multiplies by 0 or 2.
    const MANIFEST: &str = r#"title = "t"
seed = 1
replicates = 1
start.offset = 1.0
budget.rounds = 5
[record]
every = 1
metrics = ["lyapunov", "sq-coupling", "sq-coupling-variates"]
[problem.quadratic]
dimension = 2
clients = 2
spectrum = { from = 1.0, to = 1.0 }
hessian-heterogeneity = 0.2
noise = 0.0
multiplicative-noise = 1.0
multiplicative-form = "two-point"
[[algorithm.scaffold]]
step-size = 0.2
local-steps = 2
"#;

    /// The run from θ* stays there, and its control variates at 0: the distance from it with variates is ψ.
    #[test]
    fn the_distance_from_a_run_at_rest_is_psi() {
        let plan = Plan::of_text(MANIFEST, &[]);
        let prepared = prepare(&NoFiles, &plan.cells.iter().collect::<Vec<_>>()).unwrap();
        let trace = prepared[0].simulate(0);
        let psi = trace.measured(Quantity::Lyapunov);
        let alone = trace.measured(Quantity::SqCoupling);
        let with_variates = trace.measured(Quantity::SqCouplingVariates);
        assert_eq!(with_variates.len(), 6, "each round is recorded");
        for (value, psi) in with_variates.iter().zip(psi.iter()) {
            assert!((value - psi).abs() <= 1e-12 * psi, "{value} is not {psi}");
        }
        // Both runs begin with the same variates.
        assert_eq!(with_variates[0], alone[0]);
        assert!(with_variates[1] > alone[1], "{with_variates:?} {alone:?}");
    }
}
