//! RR: the bias of FedAvg, its neighbourhoods, and federated Richardson-Romberg.
//!
//! Step sizes of stochastic statements are checked against the L with
//! E‖F(θ; Z) − F(θ'; Z)‖² ≤ L⟨θ − θ', F̄(θ) − F̄(θ')⟩. A1(b) requires this for every draw, but
//! the proofs use no more.

use super::constants::MatrixMoments;
use super::{Bound, Bounded, Check, Constants, RunSetup, decay};
use crate::kernel::{axpy, dot};
use crate::problem::Facts;
use crate::theory::linear::RoundMap;

/// The conditions of all statements; `factor`: γ ≤ 1/(factor L), L that of the
/// stochastic fields, or of the mean fields.
fn regular(
    constants: &Constants,
    setup: &RunSetup,
    factor: f64,
    stochastic: bool,
) -> (Check, Option<MatrixMoments>) {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.gradient(constants);
    check.everyone(constants, setup);
    let gamma = setup.step_size;
    if let Some(m) = moments {
        let l = if stochastic { m.cocoercivity } else { constants.norm() };
        check.at_most(&format!("γ ≤ 1/({factor}L)"), gamma, 1.0 / (factor * l));
    }
    check.at_most("γμH ≤ 1", gamma * constants.curvature() * setup.h(), 1.0);
    (check, moments)
}

/// γ(H − 1)Lζ₁/μ.
fn drift(constants: &Constants, setup: &RunSetup) -> f64 {
    let scale = setup.step_size * (setup.h() - 1.0) / constants.curvature();
    scale * constants.norm() * constants.zeta1()
}

/// Proposition 2: ‖θ̄_det − θ*‖ ≤ γ(H − 1)Lζ₁/μ, on linear fields FedAvg's bias
/// too. The expression printed before it lacks the factor −γ, and (14) bounds
/// 1/(1 − (1 − γμ)^H) in the wrong direction; with ‖D_c − D̄‖ ≤ L − μ instead of 2L the
/// proof gives (L − μ)/(2(1 − 1/e)) instead of L, so the bound holds.
pub fn proposition_2(constants: &Constants, setup: &RunSetup) -> Bound {
    let (check, _) = regular(constants, setup, 2.0, false);
    Bound {
        name: "RR, Proposition 2",
        formula: "γ(H − 1)Lζ₁/μ",
        quantity: Bounded::Bias,
        proved: true,
        value: check.then(|| Some(drift(constants, setup))),
    }
}

/// Corollary 1, without noise: 2(1 − γμ)^{Ht}‖θ_0 − θ̄‖² + 2γ²(H − 1)²L²ζ₁²/μ²,
/// with ‖θ_0 − θ̄‖ ≤ ‖θ_0 − θ*‖ + γ(H − 1)Lζ₁/μ.
pub fn corollary_1(constants: &Constants, setup: &RunSetup) -> Bound {
    let (mut check, moments) = regular(constants, setup, 2.0, false);
    let silent = moments.is_some_and(|m| m.multiplicative == 0.0 && constants.sigma_omega() == 0.0);
    check.holds("fields are exact", silent);
    Bound {
        name: "RR, Corollary 1",
        formula: "2(1 − γμ)^{Ht}(‖θ_0 − θ*‖ + b)² + 2b², b = γ(H − 1)Lζ₁/μ",
        quantity: Bounded::SqError,
        proved: true,
        value: check.then(|| {
            let bias = drift(constants, setup);
            let far = libm::sqrt(setup.start_sq_error) + bias;
            let shrunk = decay(setup.step_size * constants.curvature(), setup.steps());
            Some(2.0 * shrunk * far * far + 2.0 * bias * bias)
        }),
    }
}

/// Theorem 2: ‖θ̄_sto − θ*‖ ≤ γ(H − 1)ζ₁ζ₂/μ on quadratics. Its appendix (002
/// Proposition 4, 000 Proposition 5) prints half of it, which does not hold, since
/// Σ(1 − γμ)^{Ht} is not 1/(γμH). The full bound holds.
pub fn theorem_2(constants: &Constants, setup: &RunSetup) -> Bound {
    let (check, _) = regular(constants, setup, 1.0, true);
    Bound {
        name: "RR, Theorem 2",
        formula: "γ(H − 1)ζ₁ζ₂/μ",
        quantity: Bounded::Bias,
        proved: true,
        value: check.then(|| {
            let scale = setup.step_size * (setup.h() - 1.0) / constants.curvature();
            Some(scale * constants.zeta1() * constants.zeta2())
        }),
    }
}

/// Lemma 7 of 000: (1 − γμ/2)^{Ht}‖θ_0 − θ*‖² + c ζ₁²/μ + 8γτ²/μ with
/// c = H(H − 1)(4γ³L² + 2γ²L²/μ). τ² is printed as a bound over clients; the
/// proof averages them, so σ̄_ω is used.
pub fn lemma_7(constants: &Constants, setup: &RunSetup) -> Bound {
    let (check, moments) = regular(constants, setup, 2.0, true);
    Bound {
        name: "RR (second version), Lemma 7",
        formula: "(1 − γμ/2)^{Ht}‖θ_0 − θ*‖² + H(H − 1)(4γ³L² + 2γ²L²/μ)ζ₁²/μ + 8γτ²/μ",
        quantity: Bounded::SqError,
        proved: true,
        value: check.then(|| {
            let (gamma, mu, h) = (setup.step_size, constants.curvature(), setup.h());
            let scale = gamma * moments?.cocoercivity * constants.zeta1();
            let pull = h * (h - 1.0) / mu * scale * scale * (4.0 * gamma + 2.0 / mu);
            let noise = 8.0 * gamma * constants.sigma_omega() / mu;
            Some(decay(0.5 * gamma * mu, setup.steps()) * setup.start_sq_error + pull + noise)
        }),
    }
}

/// A4 of 000: the noise is bounded everywhere.
fn additive(check: &mut Check, moments: Option<MatrixMoments>) {
    let additive = moments.is_some_and(|m| m.multiplicative == 0.0);
    check.holds("the noise is additive, so that its variance is bounded everywhere", additive);
}

/// (1 − γμ)^{Ht}ψ_0 + 4γτ̃²/μ of Proposition 4 at step size `gamma`.
fn neighbourhood(constants: &Constants, setup: &RunSetup, gamma: f64, l: f64) -> f64 {
    let (mu, h) = (constants.curvature(), setup.h());
    let (drift, tau2) = (h * gamma * l * constants.zeta1() / mu, constants.sigma_omega());
    let start = 4.0 * setup.start_sq_error + 24.0 * drift * drift + 32.0 * gamma * tau2 / mu;
    decay(gamma * mu, setup.steps()) * start + 4.0 * gamma * tau2 / mu
}

/// Proposition 4 of 000: E‖θ_t − θ̄_sto‖² ≤ (1 − γμ)^{Ht}ψ_0 + 4γτ̃²/μ, ψ_0 =
/// 4‖θ_0 − θ*‖² + 24H²γ²L²ζ₁²/μ² + 32γτ²/μ. τ² and τ̃², the same for additive
/// noise, averaged over clients as in the proof.
pub fn proposition_4(constants: &Constants, setup: &RunSetup) -> Bound {
    let (mut check, moments) = regular(constants, setup, 8.0, true);
    additive(&mut check, moments);
    Bound {
        name: "RR (second version), Proposition 4",
        formula: "(1 − γμ)^{Ht}(4‖θ_0 − θ*‖² + 24H²γ²L²ζ₁²/μ² + 32γτ²/μ) + 4γτ²/μ",
        quantity: Bounded::LimitSqError,
        proved: true,
        value: check
            .then(|| Some(neighbourhood(constants, setup, setup.step_size, moments?.cocoercivity))),
    }
}

/// Theorem 5 of 000, by (60): 12 times Proposition 4 at γ, 3 times at 2γ, and
/// 3‖2b(γ) − b(2γ)‖², b FedAvg's exact bias; the source states only its order. (61)
/// prints ψ_0 at γ for the run at 2γ; at 2γ it has 96H²γ² and 64γ. Proposition 4
/// at 2γ requires 2γμH ≤ 1, the theorem γμH ≤ 1.
pub fn theorem_5(facts: &dyn Facts, constants: &Constants, setup: &RunSetup) -> Bound {
    let (mut check, moments) = regular(constants, setup, 45.0, true);
    additive(&mut check, moments);
    let gamma = setup.step_size;
    check.at_most("2γμH ≤ 1", 2.0 * gamma * constants.curvature() * setup.h(), 1.0);
    Bound {
        name: "RR (second version), Theorem 5",
        formula: "12 P(γ) + 3 P(2γ) + 3‖2b(γ) − b(2γ)‖², P that of Proposition 4, b the bias",
        quantity: Bounded::SqError,
        proved: true,
        value: check.then(|| {
            let l = moments?.cocoercivity;
            let bias = |step| RoundMap::new(facts, step, setup.local_steps)?.bias().ok();
            let mut left: Vec<f64> = bias(gamma)?.into_iter().map(|x| 2.0 * x).collect();
            axpy(-1.0, &bias(2.0 * gamma)?, &mut left);
            let near = 12.0 * neighbourhood(constants, setup, gamma, l);
            let far = 3.0 * neighbourhood(constants, setup, 2.0 * gamma, l);
            Some(near + far + 3.0 * dot(&left, &left))
        }),
    }
}
