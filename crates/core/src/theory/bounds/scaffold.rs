//! SLIDES: the rate of Scaffold with stochastic gradients.

use super::{Bound, Bounded, Check, Complexity, Constants, Plan, RunSetup, decay};

/// The rate, ≲ in the source: its universal constant taken as one. On linear
/// fields Q = sup‖∇³f‖ = 0, and nothing of it is left out.
pub fn rate(constants: &Constants, setting: &RunSetup) -> Bound {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.gradient(constants);
    check.everyone(constants, setting);
    let (gamma, h) = (setting.step_size, setting.h());
    if let Some(m) = moments {
        check.at_most("γHL ≤ 1", gamma * h * m.cocoercivity, 1.0);
    }
    let value = check.then(|| {
        let (mu, sigma2) = (constants.curvature(), constants.sigma_omega());
        let drift = gamma * h * constants.zeta1();
        let start =
            setting.start_sq_error + 2.0 * drift * drift + sigma2 / (moments?.cocoercivity * mu);
        let shrunk = decay(0.25 * gamma * mu, setting.steps());
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

/// The gradients a client of SLIDES, "Linear Speed-Up!": HT = log(1/ε)/(γμ) with
/// γ = min(1/L, Nμε²/σ²), so σ²/(Nμ²ε²) log(1/ε), dealt into rounds by γHL ≤ 1.
/// In orders, constants one.
pub fn complexity(constants: &Constants, epsilon: f64) -> Complexity {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.gradient(constants);
    let plan = check.then(|| {
        let (mu, l) = (constants.curvature(), moments?.cocoercivity);
        let square = epsilon * epsilon;
        let step_size = (1.0 / l).min(constants.count() * mu * square / constants.sigma_omega());
        let local_steps = (1.0 / (l * step_size)).floor().max(1.0);
        let steps = libm::log(1.0 / epsilon).max(0.0) / (step_size * mu);
        Some(Plan { step_size, local_steps, rounds: steps / local_steps })
    });
    Complexity {
        name: "SLIDES, linear speed-up",
        formula: "γ = min(1/L, Nμε²/σ²), H = 1/(γL), HT = log(1/ε)/(γμ)",
        proved: false,
        plan,
    }
}
