//! BOOK, Theorem 5.1: FedAvg with partial participation and unequal work,
//! μ_k = μ/E_k. K is the number of clients, L the cohort.

use super::constants::MatrixNoise;
use super::{Bound, Bounded, Check, Constants, RunSetup, decay};

/// β_fed² and σ_fed² of (5.40).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientNoise {
    /// β_fed²: the growth of the gradient noise with ‖w° − w‖².
    pub beta2: f64,
    /// σ_fed²: a bound of the gradient noise at w°.
    pub sigma2: f64,
}

/// (5.40) for E_k = `steps(k)` and a cohort of L. `None` if the moments of
/// A(Z) are not known.
pub fn gradient_noise(
    constants: &Constants,
    steps: &dyn Fn(usize) -> u64,
    cohort: usize,
) -> Option<GradientNoise> {
    let (k, l) = (constants.count(), cohort as f64);
    let missing = if k > 1.0 { (k - l) / (k - 1.0) } else { 0.0 };
    let delta2 = constants.mean_norm * constants.mean_norm;
    let mut out = GradientNoise { beta2: 0.0, sigma2: 0.0 };
    for (c, client) in constants.clients.iter().enumerate() {
        let (noise, e) = (client.noise?, steps(c) as f64);
        let (apart, norm2) = (client.distance * client.distance, client.norm * client.norm);
        let beta2 = 2.0 * noise.beta2 / e;
        out.beta2 += (beta2 + missing * (2.0 * delta2 + 4.0 * norm2)) / (k * l);
        out.sigma2 += (beta2 * apart + noise.sigma2 / e + missing * 4.0 * norm2 * apart) / (k * l);
    }
    Some(out)
}

/// The recursion E‖w̃_i‖² ≤ `factor` E‖w̃_{i−1}‖² + `added`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Recursion {
    /// λ of (5.60).
    lambda: f64,
    /// The largest λ_k of (5.50).
    worst: f64,
    factor: f64,
    added: f64,
}

/// The recursion with its higher orders written out. (5.41) is used as
/// E‖d_i‖² ≤ (μ²/K) Σ E‖d_k‖², printed with μ²L/K²; (5.53) bounds
/// ‖w_k° − φ‖², but (5.47) needs ‖φ − w_{i−1}‖², of size μ²:
/// E‖φ_e − w‖² ≤ (μe/E)²((δ_k² + β_k²)(‖w_k° − w‖² + μ²σ_k²/E) + σ_k²), so the
/// mean over e < E has the factor (E − 1)(2E − 1)/(6E²).
fn recursion(
    constants: &Constants,
    mu: f64,
    steps: &dyn Fn(usize) -> u64,
    fed: GradientNoise,
) -> Option<Recursion> {
    let delta2 = constants.mean_norm * constants.mean_norm;
    let square = mu * mu;
    let lambda = 1.0 - 2.0 * mu * constants.mean_curvature + square * (delta2 + fed.beta2);
    let (mut growth, mut added, mut worst) = (0.0, 0.0, 0.0_f64);
    for (c, client) in constants.clients.iter().enumerate() {
        let (MatrixNoise { smoothness, beta2, sigma2, .. }, e) = (client.noise?, steps(c) as f64);
        let (apart, energy) =
            (client.distance * client.distance, client.norm * client.norm + beta2);
        let part = smoothness * square * (e - 1.0) * (2.0 * e - 1.0) / (6.0 * e * e);
        growth += part * 2.0 * energy / constants.count();
        added += part * (energy * (2.0 * apart + square * sigma2 / e) + sigma2) / constants.count();
        let local = mu / e;
        worst = worst.max(1.0 - 2.0 * local * client.curvature + local * local * energy);
    }
    let root = libm::sqrt(lambda.max(0.0));
    let scale = square / (1.0 - root);
    Some(Recursion {
        lambda,
        worst,
        factor: root + scale * growth,
        added: square * fed.sigma2 / root + scale * added,
    })
}

/// Theorem 5.1 if all clients take H steps: (5.62) iterated, with its higher orders written
/// out and corrected (see the source of `recursion`): √λ + c and μ²σ_fed²/√λ + c' instead of
/// √λ and 2μ²σ_fed² of (5.55). (5.44) has the gradient of a square, (5.45) half of it; the
/// fields of the problem are used.
pub fn theorem_5_1(constants: &Constants, setup: &RunSetup) -> Bound {
    let steps = vec![setup.local_steps; constants.clients.len()];
    unequal(constants, setup, &steps)
}

/// Theorem 5.1 if client k takes E_k = `steps[k]` local steps of size μ/E_k, with μ = γH of
/// the setup.
///
/// # Panics
/// If the numbers of `steps` and clients differ.
pub fn unequal(constants: &Constants, setup: &RunSetup, steps: &[u64]) -> Bound {
    assert_eq!(steps.len(), constants.clients.len());
    let mu = setup.step_size * setup.h();
    let steps_of = |c: usize| steps[c];
    let cohort = setup.cohort.unwrap_or(steps.len());
    let mut check = Check::default();
    check.moments(constants);
    check.gradient(constants);
    let found = gradient_noise(constants, &steps_of, cohort)
        .and_then(|fed| recursion(constants, mu, &steps_of, fed));
    if let Some(found) = found {
        check.holds("λ < 1", found.lambda < 1.0);
        check.at_most("λ_k ≤ 1", found.worst, 1.0);
        check.holds("√λ + O(μ³) < 1", found.factor < 1.0);
    }
    Bound {
        name: "BOOK, Theorem 5.1",
        formula: "rⁱ‖w̃_0‖² + (μ²σ_fed²/√λ + c')/(1 − r), r = √λ + c",
        quantity: Bounded::SqError,
        proved: true,
        value: check.then(|| {
            let Recursion { factor, added, .. } = found?;
            let shrunk = decay(1.0 - factor, setup.rounds as f64);
            Some(shrunk * setup.start_sq_error + added / (1.0 - factor))
        }),
    }
}

/// (5.57) without its higher orders: √λⁱ‖w̃_0‖² + 4μσ_fed²/ν; (5.55) even gives 2μσ_fed²/ν.
pub fn leading(constants: &Constants, setup: &RunSetup) -> Bound {
    let mu = setup.step_size * setup.h();
    let cohort = setup.cohort.unwrap_or(constants.clients.len());
    let mut check = Check::default();
    check.moments(constants);
    check.gradient(constants);
    let nu = constants.mean_curvature;
    let found = gradient_noise(constants, &|_| setup.local_steps, cohort);
    let lambda = found.map_or(f64::NAN, |fed| {
        1.0 - 2.0 * mu * nu + mu * mu * (constants.mean_norm * constants.mean_norm + fed.beta2)
    });
    if found.is_some() {
        check.holds("λ < 1", lambda < 1.0);
        check.at_most("μ ≤ ν/2", mu, 0.5 * nu);
    }
    Bound {
        name: "BOOK, (5.57) without its orders",
        formula: "√λⁱ‖w̃_0‖² + 4μσ_fed²/ν",
        quantity: Bounded::SqError,
        proved: false,
        value: check.then(|| {
            let shrunk = decay(1.0 - libm::sqrt(lambda.max(0.0)), setup.rounds as f64);
            Some(shrunk * setup.start_sq_error + 4.0 * mu * found?.sigma2 / nu)
        }),
    }
}
