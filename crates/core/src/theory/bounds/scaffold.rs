//! SLIDES: the rate of Scaffold with stochastic gradients.

use super::{Bound, Bounded, Check, Constants, RunSetup, decay};

/// The rate, ≲ in the source, with its universal constant set to 1. On linear fields
/// Q = sup‖∇³f‖ = 0, and no other term is omitted.
pub fn rate(constants: &Constants, setup: &RunSetup) -> Bound {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.gradient(constants);
    check.everyone(constants, setup);
    let (gamma, h) = (setup.step_size, setup.h());
    if let Some(m) = moments {
        check.at_most("γHL ≤ 1", gamma * h * m.cocoercivity, 1.0);
    }
    let value = check.then(|| {
        let (mu, sigma2) = (constants.curvature(), constants.sigma_omega());
        let drift = gamma * h * constants.zeta1();
        let start =
            setup.start_sq_error + 2.0 * drift * drift + sigma2 / (moments?.cocoercivity * mu);
        let shrunk = decay(0.25 * gamma * mu, setup.steps());
        Some(shrunk * start + gamma * sigma2 / (constants.count() * mu))
    });
    Bound {
        name: "SLIDES, rate of Scaffold",
        formula: "(1 − γμ/4)^{HT}(‖θ_0 − θ*‖² + 2γ²H²ζ₁² + σ²/(Lμ)) + γσ²/(Nμ)",
        quantity: Bounded::SqError,
        proved: false,
        value,
    }
}
