//! SLIDES: the rate of Scaffold with stochastic gradients.

use super::{BoundValue, Check, PublishedRun, RunBound};
use crate::sources::StatedAlgorithm::Scaffold;

/// The key of this source's bound, with the function that computes it.
pub(super) const BOUNDS: &[RunBound] = &[("slides-rate", |run| run.if_plain(Scaffold).map(rate))];

/// The rate of convergence of Scaffold with stochastic gradients, ≲ in the source, with its universal constant set
/// to 1: (1 − γμ/4)^{Ht}(‖θ_0 − θ*‖² + 2γ²H²ζ₁² + σ_*²/(Lμ)) + γσ_*²/(Nμ) + (γσ_*²)^{3/2}Q/μ^{5/2} +
/// HQ²σ_*⁴γ³/μ³. It is of the order of E‖θ_t − θ*‖², but no proved bound. On linear fields
/// Q = sup‖∇³f‖ = 0; on others μ, the L of draws and Q must be known at every θ.
pub fn rate(run: &PublishedRun<'_>) -> BoundValue {
    let mut check = Check::new(run);
    let constants = run.constants;
    let mut mu = constants.curvature();
    let mut l = None;
    if constants.linear {
        l = check.moments().map(|m| m.cocoercivity);
    } else {
        check.equal_shares();
        let known = constants.everywhere.zip(constants.draws);
        let condition = "the field is linear, or its curvature, its draws' smoothness and its third derivatives bounded at every θ";
        check.holds(condition, known.is_some() && constants.third.is_some());
        if let Some(((least, _), draws)) = known {
            mu = least;
            l = Some(draws);
        }
    }
    check.gradient();
    check.everyone();
    check.stated("SLIDES rate of Scaffold", mu, l);
    let gamma = run.gamma();
    let h = run.h();
    check.then(|| {
        let sigma2 = constants.sigma_omega();
        let q = constants.third?;
        let drift = gamma * h * constants.zeta1();
        let start = run.start_sq_error + 2.0 * drift * drift + sigma2 / (l? * mu);
        let shrunk = run.decay(0.25 * gamma * mu);
        let mixed = libm::pow(gamma * sigma2, 1.5) * q / libm::pow(mu, 2.5);
        let curved = h * q * q * sigma2 * sigma2 * libm::pow(gamma / mu, 3.0);
        Some(shrunk * start + gamma * sigma2 / (constants.count() * mu) + mixed + curved)
    })
}
