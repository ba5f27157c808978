//! FedAvg without noise (FedAvg-D, RR §4), on any field: its round map, the fixed point
//! of that map, and the drift of the clients from the optimum.
//!
//! F̄_c is the mean field of client c, π_c its share, and θ* the root of F̄ = Σ π_c F̄_c. A local update is what a
//! client does in a round: its step size, number of steps, batch and proximal weight.

use super::effort::{self, Effort};
use super::linear::RoundMap;
use crate::kernel::{axpy, descend, dot, squared_distance};
use crate::linalg::{Matrix, contracts, solve};
use crate::problem::Facts;
use crate::round_program::LocalUpdate;

/// The estimate after one round of FedAvg without noise from `theta`, d numbers: Σ π_c θ_c after client c has
/// taken the local steps `update(c)` from `theta` along its mean field F̄_c, with the proximal term towards `theta`.
/// All clients take part, the server step is 1, and batches do not matter.
pub fn round(facts: &dyn Facts, theta: &[f64], update: &dyn Fn(usize) -> LocalUpdate) -> Vec<f64> {
    let n = facts.clients();
    let d = facts.dim();
    let mut mean = vec![0.0; d];
    let mut field = vec![0.0; d];
    for client in 0..n {
        let LocalUpdate { step, steps, proximal, .. } = update(client);
        let mut local = theta.to_vec();
        for _ in 0..steps {
            facts.mean_field(client, &local, &mut field);
            let pull: Vec<f64> = local.iter().zip(theta).map(|(x, y)| proximal * (x - y)).collect();
            descend(&mut local, &field, &pull, step);
        }
        axpy(facts.share(client), &local, &mut mean);
    }
    mean
}

/// The most steps of the search for a fixed point.
const MAX_PASSES: usize = 200;

/// The fixed point of [`round`], d numbers: the limit of FedAvg without noise on a field that need not be linear.
/// It is found by θ ← θ + (I − Γ̄)⁻¹ (T(θ) − θ), with T for [`round`]: Newton's method with the derivative Γ̄ at θ*
/// in place of the derivative at θ. The search ends when ‖T(θ) − θ‖ no longer shrinks, as it does once rounding
/// errors are all that is left. `None` if it still shrinks after `MAX_PASSES` steps, if a number is not finite, or
/// if I − Γ̄ is singular, as where θ* is not unique. Rounds from other points need not lead to it: see [`attracts`]. A server step other than 1
/// does not change the fixed point.
pub fn fixed_point(facts: &dyn Facts, update: impl Fn(usize) -> LocalUpdate) -> Option<Vec<f64>> {
    // Rounding errors may make I − Γ̄ regular.
    if facts.optimum_set().is_some() {
        return None;
    }
    let d = facts.dim();
    let map = RoundMap::linearised(facts, &update);
    let system = Matrix::identity(d).plus(-1.0, &map.gamma);
    let mut theta = facts.optimum().to_vec();
    axpy(1.0, &solve(&system, &map.rho).ok()?, &mut theta);
    let mut moved = displacement(facts, &theta, &update);
    for _ in 0..MAX_PASSES {
        let size = dot(&moved, &moved);
        if !size.is_finite() {
            return None;
        }
        let mut next = theta.clone();
        axpy(1.0, &solve(&system, &moved).ok()?, &mut next);
        let after = displacement(facts, &next, &update);
        if dot(&after, &after) >= size {
            return Some(theta);
        }
        theta = next;
        moved = after;
    }
    None
}

/// How far a round moves θ: T(θ) − θ, d numbers, where T is [`round`]. It is 0 at a fixed point.
fn displacement(
    facts: &dyn Facts,
    theta: &[f64],
    update: &dyn Fn(usize) -> LocalUpdate,
) -> Vec<f64> {
    let mut moved = round(facts, theta, update);
    axpy(-1.0, theta, &mut moved);
    moved
}

/// Whether repeated rounds with the server step 1 lead to the fixed point `theta` of [`round`] from all points close to
/// it, so that it is a limit: whether powers of the derivative of [`round`] at `theta`, by differences, vanish. That
/// `theta` is a fixed point is not checked. `false` if it is too close to call.
pub fn attracts(facts: &dyn Facts, update: impl Fn(usize) -> LocalUpdate, theta: &[f64]) -> bool {
    let columns = (0..theta.len()).map(|i| partial_derivative(facts, theta, i, &update));
    let derivative = Matrix::from_columns(columns);
    // Differences are exact to about ten digits. The factor leaves room for their error.
    contracts(&derivative.scaled(1.0 + 1e-9))
}

/// The derivative of [`round`] at `theta` in coordinate i, d numbers, by a central difference.
fn partial_derivative(
    facts: &dyn Facts,
    theta: &[f64],
    i: usize,
    update: &dyn Fn(usize) -> LocalUpdate,
) -> Vec<f64> {
    /// The cube root of the rounding error, at which central differences are most exact.
    const STEP: f64 = 6e-6;
    let step = STEP * theta[i].abs().max(1.0);
    let mut moved = theta.to_vec();
    moved[i] = theta[i] + step;
    let mut after = round(facts, &moved, update);
    moved[i] = theta[i] - step;
    axpy(-1.0, &round(facts, &moved, update), &mut after);
    after.iter().map(|x| x / (2.0 * step)).collect()
}

/// The effort of [`drift`]: on a linear field powers of one matrix for each distribution, else the local steps of
/// all clients.
pub fn drift_effort(facts: &dyn Facts, local_steps: u64) -> Effort {
    let n = facts.clients() as f64;
    let d = facts.dim() as f64;
    let h = local_steps as f64;
    if !facts.linear() {
        return Effort::new(n * h * d * (2.0 * facts.draws() as f64 + d), 4.0 * d);
    }
    let distributions = effort::distributions(facts);
    let powers = 1.5 * libm::log2(h + 1.0) * d * d * d;
    Effort::new(distributions * powers + n * d * d, (distributions + 4.0) * d * d)
}

/// The average drift at the optimum (SLIDES), a measure of heterogeneity on pages: ‖H⁻¹ Σ_c π_c Σ_h F̄_c(θ_c^(h)) −
/// F̄(θ*)‖ along noiseless local steps from θ*, which is ‖θ* − Σ π_c θ_c^(H)‖/(γH), with γ and H of all clients. It is
/// 0 up to rounding for H = 1. θ* must be known.
pub fn drift(facts: &dyn Facts, step_size: f64, local_steps: u64) -> f64 {
    let update = LocalUpdate::of_steps(step_size, local_steps);
    let length = step_size * local_steps as f64;
    let square = if facts.linear() {
        // A round from θ* ends at θ* + ρ̄.
        let rho = RoundMap::linearised(facts, |_| update).rho;
        dot(&rho, &rho)
    } else {
        squared_distance(&round(facts, facts.optimum(), &|_| update), facts.optimum())
    };
    libm::sqrt(square) / length
}
