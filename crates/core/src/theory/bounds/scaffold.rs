//! SLIDES: the rate of Scaffold with stochastic gradients.

use super::{Bound, Bounded, Check, Constants, RunSetup, decay};

/// The rate, ≲ in the source, with its universal constant set to 1. On linear fields
/// Q = sup‖∇³f‖ = 0; on others μ, the L of draws and Q must be known at every θ.
pub fn rate(constants: &Constants, setup: &RunSetup) -> Bound {
    let mut check = Check::default();
    let (mut mu, mut l) = (constants.curvature(), None);
    if constants.linear {
        l = check.moments(constants).map(|m| m.cocoercivity);
    } else {
        check.holds("clients have equal weights", constants.equal_shares);
        let known = constants.everywhere.zip(constants.draws);
        let condition = "the field is linear, or its curvature, its draws' smoothness and its third derivatives bounded at every θ";
        check.holds(condition, known.is_some() && constants.third.is_some());
        if let Some(((least, _), draws)) = known {
            (mu, l) = (least, Some(draws));
        }
    }
    check.gradient(constants);
    check.everyone(constants, setup);
    check.stated("SLIDES rate of Scaffold", constants, setup, (mu, l));
    let (gamma, h) = (setup.step_size, setup.h());
    let value = check.then(|| {
        let (sigma2, q) = (constants.sigma_omega(), constants.third?);
        let drift = gamma * h * constants.zeta1();
        let start = setup.start_sq_error + 2.0 * drift * drift + sigma2 / (l? * mu);
        let shrunk = decay(0.25 * gamma * mu, setup.steps());
        let mixed = libm::pow(gamma * sigma2, 1.5) * q / libm::pow(mu, 2.5);
        let curved = h * q * q * sigma2 * sigma2 * libm::pow(gamma / mu, 3.0);
        Some(shrunk * start + gamma * sigma2 / (constants.count() * mu) + mixed + curved)
    });
    Bound {
        name: "SLIDES, rate of Scaffold",
        formula: "(1 − γμ/4)^{HT}(‖θ_0 − θ*‖² + 2γ²H²ζ₁² + σ²/(Lμ)) + γσ²/(Nμ) + γ^{3/2}Qσ³/μ^{5/2} + γ³HQ²σ⁴/μ³",
        quantity: Bounded::SqError,
        proved: false,
        value,
    }
}
