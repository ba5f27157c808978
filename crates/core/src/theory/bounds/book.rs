//! BOOK, Lemma 5.1, (5.54), Theorem 5.1 and problem 5.3: FedAvg with partial participation and
//! unequal work, μ_k = μ/E_k. K is the number of clients, L the number that take part in a round.
//!
//! w° is the common optimum, w_k° the optimum of client k, and w_i the server's model after round i. J_k is the loss of
//! client k, which takes E_k local steps of B_k draws in a round. ν and δ are the smallest eigenvalue of sym A and ‖A‖
//! of the mean Jacobian A, δ_k is ‖Ā_k‖, and the noise of a gradient of client k at w has a mean square of at most
//! β_k²‖w_k° − w‖² + σ_k². φ_e is a client's model after e local steps.

use super::constants::MatrixNoise;
use super::{BoundValue, Check, ClientWork, PublishedRun, RunBound, decay};
use crate::linalg::{Matrix, solve_lyapunov};
use crate::sources::StatedAlgorithm::FedAvg;

/// The keys of this source's bounds, each with the function that computes it.
pub(super) const BOUNDS: &[RunBound] = &[
    ("book51", |run| run.if_equal_paths().filter(|run| run.batches == [1]).map(theorem_5_1)),
    ("book557", |run| run.if_plain(FedAvg).map(leading)),
    ("book-lemma51", |run| run.if_equal_paths().map(lemma_5_1)),
    ("book554", |run| run.if_equal_paths().map(perturbation)),
    ("book53", |run| run.if_equal_paths().map(mean_square_deviation)),
];

/// β_fed² and σ_fed² of (5.40): the gradient noise of a round at w, from draws and from the choice of clients, has a
/// mean square of at most β_fed²‖w° − w‖² + σ_fed². Local steps are taken to be on one draw each: batches are ignored.
/// `None` if the moments of A(Z) are not known.
pub fn gradient_noise(run: &PublishedRun<'_>) -> Option<(f64, f64)> {
    let constants = run.constants;
    let k = constants.count();
    let l = run.taking_part() as f64;
    let missing = finite_population_correction(k, l);
    let delta2 = constants.mean_norm * constants.mean_norm;
    let mut of_distance = 0.0;
    let mut at_optimum = 0.0;
    for (client, ClientWork { local_steps: e, .. }) in constants.clients.iter().zip(run.work()) {
        let noise = client.noise?;
        let apart = client.distance * client.distance;
        let norm2 = client.norm * client.norm;
        let beta2 = 2.0 * noise.beta2 / e;
        of_distance += (beta2 + missing * (2.0 * delta2 + 4.0 * norm2)) / (k * l);
        at_optimum += (beta2 * apart + noise.sigma2 / e + missing * 4.0 * norm2 * apart) / (k * l);
    }
    Some((of_distance, at_optimum))
}

/// (K − L)/(K − 1), by which drawing L of K clients without replacement multiplies the variance of a mean over L
/// clients that are drawn with replacement; 0 for a single client.
fn finite_population_correction(clients: f64, cohort: f64) -> f64 {
    if clients > 1.0 { (clients - cohort) / (clients - 1.0) } else { 0.0 }
}

/// The recursion E‖w̃_i‖² ≤ `factor` E‖w̃_{i−1}‖² + `added` over rounds i, for the error w̃_i = w° − w_i.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Recursion {
    /// λ of (5.60), the factor of E‖w̃‖² in one step of size μ along a gradient with noise.
    lambda: f64,
    /// The largest λ_k of (5.50), the factor of a local step of client k.
    worst: f64,
    /// The factor of the error of the round before, √λ and higher orders of μ; meaningless if λ ≥ 1.
    factor: f64,
    /// What noise and drift add in a round.
    added: f64,
    /// σ_fed², the bound of the gradient noise at w°.
    sigma2: f64,
}

/// The recursion with its higher orders written out, for local steps on one draw each; `None` if the moments of A(Z)
/// are not known. `lambda` and `factor` need not be below 1: callers check the one that they use. (5.41) is used as
/// E‖d_i‖² ≤ (μ²/K) Σ E‖d_k‖², printed with μ²L/K²; (5.53) bounds
/// ‖w_k° − φ‖², but (5.47) needs ‖φ − w_{i−1}‖², of size μ²:
/// E‖φ_e − w‖² ≤ (μe/E)²((δ_k² + β_k²)(‖w_k° − w‖² + μ²σ_k²/E) + σ_k²), so the
/// mean over e < E has the factor (E − 1)(2E − 1)/(6E²).
fn recursion(run: &PublishedRun<'_>) -> Option<Recursion> {
    let mu = run.path();
    let constants = run.constants;
    let (fed_beta2, fed_sigma2) = gradient_noise(run)?;
    let delta2 = constants.mean_norm * constants.mean_norm;
    let square = mu * mu;
    let lambda = 1.0 - 2.0 * mu * constants.mean_curvature + square * (delta2 + fed_beta2);
    // The bound of E‖d_i‖²/μ², d_i the drift of the local steps, is `growth` E‖w̃_{i−1}‖² + `added`.
    let mut growth = 0.0;
    let mut added = 0.0;
    let mut worst = 0.0_f64;
    for (client, ClientWork { local_steps: e, .. }) in constants.clients.iter().zip(run.work()) {
        let MatrixNoise { smoothness, beta2, sigma2, .. } = client.noise?;
        let apart = client.distance * client.distance;
        let energy = client.norm * client.norm + beta2;
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
        added: square * fed_sigma2 / root + scale * added,
        sigma2: fed_sigma2,
    })
}

/// Theorem 5.1 if client k takes E_k local steps of size μ/E_k: (5.62) iterated, with its higher
/// orders written out and corrected (see the source of `recursion`): √λ + c and μ²σ_fed²/√λ + c'
/// instead of √λ and 2μ²σ_fed² of (5.55). (5.44) has the gradient of a square, (5.45) half of it; the
/// fields of the problem are used.
pub fn theorem_5_1(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    check.moments();
    check.gradient();
    let found = recursion(run);
    if let Some(found) = found {
        check.holds("λ < 1", found.lambda < 1.0);
        check.at_most("λ_k ≤ 1", found.worst, 1.0);
        check.holds("√λ + O(μ³) < 1", found.factor < 1.0);
    }
    check.then(|| {
        let Recursion { factor, added, .. } = found?;
        let shrunk = decay(1.0 - factor, run.rounds as f64);
        Some(shrunk * run.start_sq_error + added / (1.0 - factor))
    })
}

/// (5.57) without its higher orders, so that errors may exceed it: √λⁱ‖w̃_0‖² + 4μσ_fed²/ν after i rounds; (5.55)
/// even gives 2μσ_fed²/ν.
pub fn leading(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    check.moments();
    check.gradient();
    let mu = run.path();
    let nu = run.constants.mean_curvature;
    let found = recursion(run);
    if let Some(found) = found {
        check.holds("λ < 1", found.lambda < 1.0);
        check.at_most("μ ≤ ν/2", mu, 0.5 * nu);
    }
    check.then(|| {
        let Recursion { lambda, sigma2, .. } = found?;
        let shrunk = decay(1.0 - libm::sqrt(lambda.max(0.0)), run.rounds as f64);
        Some(shrunk * run.start_sq_error + 4.0 * mu * sigma2 / nu)
    })
}

/// The covariance of the gradient of a round at w°, from draws and from the choice of clients, (5.19), d × d:
/// (1/(KL)) Σ Cov_k/(B_kE_k) + (1/(KL)) (K − L)/(K − 1) Σ ∇J_k ∇J_kᵀ. Its trace is (5.33) without μ².
fn sampled_covariance(run: &PublishedRun<'_>) -> Matrix {
    let facts = run.facts;
    let d = facts.dim();
    let k = facts.clients() as f64;
    let l = run.taking_part() as f64;
    let missing = finite_population_correction(k, l);
    let mut sum = Matrix::zeros(d, d);
    for (c, ClientWork { gradients, .. }) in run.work().enumerate() {
        let gradient = facts.field_at_optimum(c);
        sum = sum.plus(1.0 / (k * l * gradients), &facts.noise_covariance(c));
        sum.add_outer(missing / (k * l), &gradient, &gradient);
    }
    sum
}

/// Lemma 5.1, (5.33): E‖w_1 − w°‖² = μ² ((1/(KL)) Σ tr Cov_k/B_k + (1/(KL)) (K − L)/(K − 1) Σ ‖∇J_k(w°)‖²)
/// after one round of E_k = 1 from w°, an equality; 0 before that round.
pub fn lemma_5_1(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    check.equal_shares();
    check.one_round("w°");
    check.holds("E_k = 1", run.most_steps == 1);
    let mu = run.gamma();
    check.then(|| Some(run.rounds as f64 * mu * mu * sampled_covariance(run).trace()))
}

/// A bound of E‖d_i‖² with the d_i of (5.20), the drift of the local steps, as a bound of ‖w° − w_1‖², which it is
/// after one round without noise and with all clients from w°; 0 before that round. (5.54) is of order μ², by (5.53),
/// which bounds ‖w_k° − φ‖ where (5.47) needs ‖φ − w_{i−1}‖; with the latter it is of order μ⁴.
pub fn perturbation(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    let constants = run.constants;
    let moments = check.moments();
    check.gradient();
    check.everyone();
    check.equal_shares();
    check.one_round("w°");
    check.exact(moments);
    let square = run.path() * run.path();
    check.then(|| {
        let mut sum = 0.0;
        for (client, ClientWork { local_steps: e, .. }) in constants.clients.iter().zip(run.work())
        {
            let reach = client.norm * client.distance;
            let travelled = reach * reach * (e - 1.0) * (2.0 * e - 1.0) / (6.0 * e * e);
            sum += client.noise?.smoothness * travelled;
        }
        Some(run.rounds as f64 * square * square * sum / constants.count())
    })
}

/// Problem 5.3, the mean square deviation to first order in μ: lim E‖w̃_i‖² = μ tr X, where A X + X Aᵀ = C with A the
/// mean Jacobian and C = (KL)⁻¹ Σ C_k/(B_kE_k) + (K − L)/((K − 1)KL) Σ g_k g_kᵀ, C_k the covariance of a gradient at w°
/// and g_k = ∇J_k(w°). It is no bound: higher orders are left out. On least mean squares C_k = R_kD_kR_k + R_k
/// tr(R_kD_k) + s_k²R_k, D_k = (w° − w_k°)(w° − w_k°)ᵀ, g_k = R_k(w° − w_k°).
pub fn mean_square_deviation(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    let facts = run.facts;
    check.equal_shares();
    check.holds("θ* is unique", facts.optimum_set().is_none());
    check.then(|| {
        let jacobians: Vec<Matrix> = (0..facts.clients()).map(|c| facts.jacobian(c)).collect();
        let mean = Matrix::weighted_mean(jacobians.iter(), facts.unequal_shares());
        Some(run.path() * solve_lyapunov(&mean, &sampled_covariance(run)).ok()?.trace())
    })
}
