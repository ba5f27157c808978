//! SCAFFLSA: Theorems A.5 (4.1), B.2 (5.1), B.5 (5.3), Corollaries A.6 (4.4),
//! A.7 (4.5), B.3 (5.2), B.6 (5.4).
//!
//! A2 holds with a = [`MatrixMoments::rate`] at the step size in hand; the source takes
//! A3's a. Appendix B prints σ̄_ε where its proofs bound the noise at θ*, σ̄_ω.

use super::constants::MatrixMoments;
use super::{Bound, Bounded, Check, Complexity, Constants, Plan, RunSetup, decay};
use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, solve};
use crate::problem::Facts;
use crate::theory::linear::RoundMap;
use std::f64::consts::E;

/// 1 − e⁻².
fn one_less_e2() -> f64 {
    1.0 - libm::exp(-2.0)
}

/// A2 at this step size.
fn stability(check: &mut Check, constants: &Constants, moments: &MatrixMoments, step: f64) -> f64 {
    let a = moments.rate(constants.curvature(), step);
    check.at_most("η ≤ 2/L", step, 2.0 / moments.cocoercivity);
    check.at_most("ηa ≤ 1/2", step * a, 0.5);
    check.holds("A2 holds with some a > 0", a > 0.0);
    a
}

/// Theorem A.5, Theorem 4.1 with its constants, as a bound of E‖θ_t − θ*‖²: the
/// source's is around θ* + θ̃_t, θ̃_t = Σ_{s<t} Γ̄ˢ ρ̄ exactly known, whose length
/// is added before squaring. The third term is printed as
/// 2(E_c‖Σ_Ã‖)^½ ‖ρ̄‖/(a(HN)^½); (96) drops a factor t − s, and with it the term
/// is η(H E_c‖Σ_Ã‖/N)^½ ‖ρ̄‖ q/((1 − ηa)(1 − q)^{3/2}), q = (1 − ηa)^H.
pub fn theorem_a5(facts: &dyn Facts, constants: &Constants, setting: &RunSetup) -> Bound {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.everyone(constants, setting);
    let a = moments.map(|m| stability(&mut check, constants, &m, setting.step_size));
    let value = check.then(|| {
        let (m, a) = (moments?, a?);
        let map = RoundMap::new(facts, setting.step_size, setting.local_steps)?;
        let (eta, h, n) = (setting.step_size, setting.h(), constants.count());
        let q = decay(eta * a, h);
        let noise = libm::sqrt(eta * m.sigma_epsilon / (a * n * one_less_e2()));
        let spread = libm::sqrt(2.0 * eta * m.v_heter / (n * a));
        let rho = libm::sqrt(dot(&map.rho, &map.rho));
        let apart = 1.0 - q;
        let fluctuation = eta * libm::sqrt(h * m.multiplicative / n) * rho * q
            / ((1.0 - eta * a) * apart * libm::sqrt(apart));
        let start = decay(eta * a, setting.steps()) * libm::sqrt(setting.start_sq_error);
        let total = noise + spread + fluctuation + start + transient(&map, setting.rounds)?;
        Some(total * total)
    });
    Bound {
        name: "SCAFFLSA, Theorem A.5",
        formula: "(√(ησ_ε/(aN(1 − e⁻²))) + √(2ηv/(aN)) + η√(H‖Σ_Ã‖/N)‖ρ̄‖q/((1 − ηa)(1 − q)^{3/2}) \
                  + (1 − ηa)^{tH}‖θ_0 − θ*‖ + ‖Σ_{s<t} Γ̄ˢρ̄‖)², q = (1 − ηa)^H",
        quantity: Bounded::SqError,
        proved: true,
        value,
    }
}

/// ‖Σ_{s<t} Γ̄ˢ ρ̄‖ = ‖(I − Γ̄ᵗ)(I − Γ̄)⁻¹ρ̄‖.
fn transient(map: &RoundMap, rounds: u64) -> Option<f64> {
    let d = map.rho.len();
    let mut left = solve(&Matrix::identity(d).plus(-1.0, &map.gamma), &map.rho).ok()?;
    let gone = map.gamma.power(rounds).apply(&left);
    axpy(-1.0, &gone, &mut left);
    let square = dot(&left, &left);
    square.is_finite().then(|| libm::sqrt(square))
}

/// Theorem B.2 (5.1), H1: E ψ_K ≤ (1 − ζ)^K ψ_0 + 2η²σ̄_ω/ζ with ζ = min(ηa, p²)
/// after K local steps, coins and all. A3 is printed with (14) reversed, and
/// Appendix B with σ̄_ε.
pub fn theorem_b2(constants: &Constants, setting: &RunSetup, probability: f64) -> Bound {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.everyone(constants, setting);
    let eta = setting.step_size;
    if let Some(m) = moments {
        check.at_most("η ≤ 1/(2L)", eta, 0.5 / m.cocoercivity);
    }
    check.holds("0 < p ≤ 1", probability > 0.0 && probability <= 1.0);
    let value = check.then(|| {
        let zeta = (eta * constants.curvature()).min(probability * probability);
        let ratio = eta * constants.zeta1() / probability;
        let start = setting.start_sq_error + ratio * ratio;
        let floor = 2.0 * eta * eta * constants.sigma_omega() / zeta;
        Some(decay(zeta, setting.steps()) * start + floor)
    });
    Bound {
        name: "SCAFFLSA, Theorem B.2",
        formula: "(1 − ζ)^K(‖θ_0 − θ*‖² + η²ζ₁²/p²) + 2η²σ_ω/ζ, ζ = min(ηa, p²)",
        quantity: Bounded::Lyapunov,
        proved: true,
        value,
    }
}

/// Theorem B.5 (5.3), H2: E ψ_t ≤ (1 − ηaH/4)^t ψ_0 + 16ησ̄_ω/a. Printed in
/// Appendix B with σ̄_ε; the main text's H ≤ a/(32ηC_A²) leaves ‖Σ_Ã‖ out, and
/// the appendix's condition is checked. ηH ≤ 1 is checked though the proof never
/// uses it.
pub fn theorem_b5(constants: &Constants, setting: &RunSetup) -> Bound {
    let mut check = Check::default();
    let moments = check.moments(constants);
    check.everyone(constants, setting);
    let (eta, h) = (setting.step_size, setting.h());
    let a = moments.map(|m| {
        let a = stability(&mut check, constants, &m, eta);
        check.at_most("ηaH ≤ 1", eta * a * h, 1.0);
        check.at_most("η ≤ a/(16H max(‖Ā_c‖² + ‖Σ_Ã‖))", eta, a / (16.0 * h * m.worst));
        a
    });
    check.at_most("ηH ≤ 1", eta * h, 1.0);
    check.at_most("η max‖Ā_c‖ ≤ 1", eta * constants.norm(), 1.0);
    let value = check.then(|| {
        let a = a?;
        let ratio = eta * h * constants.zeta1();
        let start = setting.start_sq_error + ratio * ratio;
        let shrunk = decay(0.25 * eta * a * h, setting.rounds as f64);
        Some(shrunk * start + 16.0 * eta * constants.sigma_omega() / a)
    });
    Bound {
        name: "SCAFFLSA, Theorem B.5",
        formula: "(1 − ηaH/4)^t(‖θ_0 − θ*‖² + η²H²ζ₁²) + 16ησ_ω/a",
        quantity: Bounded::Lyapunov,
        proved: true,
        value,
    }
}

/// ln(x), 0 where it is negative.
fn log(x: f64) -> f64 {
    libm::log(x).max(0.0)
}

/// Corollary A.6 (4.4), H = 1: each of Theorem A.5's three terms at most ε/3.
/// A2 with a/2 up to η_∞ = 1/L, a being A3's. Printed in orders.
pub fn corollary_a6(constants: &Constants, epsilon: f64, start_sq_error: f64) -> Complexity {
    let mut check = Check::default();
    let moments = check.moments(constants);
    let plan = check.then(|| {
        let (m, a, n) = (moments?, 0.5 * constants.curvature(), constants.count());
        let scale = a * n * epsilon * epsilon;
        let step_size = (1.0 / m.cocoercivity)
            .min(scale * one_less_e2() / (9.0 * m.sigma_epsilon))
            .min(scale / (18.0 * m.v_heter));
        let rounds = log(3.0 * libm::sqrt(start_sq_error) / epsilon) / (a * step_size);
        Some(Plan { step_size, local_steps: 1.0, rounds })
    });
    Complexity {
        name: "SCAFFLSA, Corollary A.6",
        formula: "η = min(1/L, aNε²(1 − e⁻²)/(9σ_ε), aNε²/(18v)), T = log(3‖θ_0 − θ*‖/ε)/(ηa)",
        proved: true,
        plan,
    }
}

/// Corollary A.7 (4.5), H > 1: each of Theorem A.5's five terms at most ε/5, with
/// ‖ρ̄‖ ≤ (e/2) η²H² E_c‖Ā_c‖²‖θ_c* − θ*‖ for ηHC_A ≤ 1. The source is in orders
/// and its (26) drops ‖Ā_c‖² (and ½), which its own Lemma C.3 has: printed
/// H ∝ 1/E_c‖θ_c* − θ*‖, used with E_c‖Ā_c‖²‖θ_c* − θ*‖; no condition on ε is
/// needed then. H is rounded down, to 1 at the least.
pub fn corollary_a7(constants: &Constants, epsilon: f64, start_sq_error: f64) -> Complexity {
    let mut check = Check::default();
    let moments = check.moments(constants);
    let plan = check.then(|| {
        let (m, a, n) = (moments?, 0.5 * constants.curvature(), constants.count());
        let scale = a * n * epsilon * epsilon;
        let part = 1.0 - 1.0 / E;
        let step_size = (1.0 / m.cocoercivity)
            .min(scale * one_less_e2() / (25.0 * m.sigma_epsilon))
            .min(scale / (50.0 * m.v_heter))
            .min(n * a * part / (4.0 * m.multiplicative));
        let length =
            (2.0 * part * a * epsilon / (5.0 * E * constants.drift())).min(1.0 / constants.norm());
        let local_steps = (length / step_size).floor().max(1.0);
        let left = log(5.0 * libm::sqrt(start_sq_error) / epsilon);
        Some(Plan { step_size, local_steps, rounds: left / (a * step_size * local_steps) })
    });
    Complexity {
        name: "SCAFFLSA, Corollary A.7",
        formula: "η = min(1/L, aNε²(1 − e⁻²)/(25σ_ε), aNε²/(50v), aN(1 − 1/e)/(4‖Σ_Ã‖)), \
                  ηH = min(1/C_A, 2(1 − 1/e)aε/(5e E_c‖Ā_c‖²‖θ_c* − θ*‖)), \
                  T = log(5‖θ_0 − θ*‖/ε)/(ηaH)",
        proved: true,
        plan,
    }
}

/// Corollary B.3 (5.2), H1: η = min(1/(2L), ε²a/(8σ̄_ω)), p = √(ηa), and
/// T = √(1/(ηa)) log(2ψ_0/ε²). Printed 4σ̄/(ε²a²) and log(ψ_0/(2ε²)), which that
/// η does not give; used 8σ̄/(ε²a²) and log(2ψ_0/ε²).
pub fn corollary_b3(constants: &Constants, epsilon: f64, start_sq_error: f64) -> Complexity {
    let mut check = Check::default();
    let moments = check.moments(constants);
    let plan = check.then(|| {
        let (a, square) = (constants.curvature(), epsilon * epsilon);
        let step_size =
            (0.5 / moments?.cocoercivity).min(square * a / (8.0 * constants.sigma_omega()));
        let p = libm::sqrt(step_size * a);
        let ratio = step_size * constants.zeta1() / p;
        let left = log(2.0 * (start_sq_error + ratio * ratio) / square);
        Some(Plan { step_size, local_steps: 1.0 / p, rounds: left / p })
    });
    Complexity {
        name: "SCAFFLSA, Corollary B.3",
        formula: "η = min(1/(2L), ε²a/(8σ_ω)), p = √(ηa), T = log(2ψ_0/ε²)/p",
        proved: true,
        plan,
    }
}

/// Corollary B.6 (5.4), H2: η = min(1/L, 1/C_A, aε²/(32σ̄_ω)), the largest H that
/// Theorem B.5 allows, T = 4 log(2ψ_0/ε²)/(ηaH). A2 with a/2 up to 1/L. The
/// source's conditions on ε and a say which minimum is taken: here it is taken.
/// (224) prints 2‖θ_0 − θ*‖² + η²H²ζ₁² for 2ψ_0. H is rounded down; where it
/// would be below 1, η is lowered.
pub fn corollary_b6(constants: &Constants, epsilon: f64, start_sq_error: f64) -> Complexity {
    let mut check = Check::default();
    let moments = check.moments(constants);
    let plan = check.then(|| {
        let (m, a, square) = (moments?, 0.5 * constants.curvature(), epsilon * epsilon);
        let length = 1.0_f64.min(1.0 / a).min(a / (16.0 * m.worst));
        let step_size = (1.0 / m.cocoercivity)
            .min(1.0 / constants.norm())
            .min(a * square / (32.0 * constants.sigma_omega()))
            .min(length);
        let local_steps = (length / step_size).floor().max(1.0);
        let ratio = step_size * local_steps * constants.zeta1();
        let left = log(2.0 * (start_sq_error + ratio * ratio) / square);
        Some(Plan { step_size, local_steps, rounds: 4.0 * left / (step_size * a * local_steps) })
    });
    Complexity {
        name: "SCAFFLSA, Corollary B.6",
        formula: "η = min(1/L, 1/C_A, aε²/(32σ_ω)), ηH = min(1, 1/a, a/(16 max(‖Ā_c‖² + ‖Σ_Ã‖))), \
                  T = 4 log(2ψ_0/ε²)/(ηaH)",
        proved: true,
        plan,
    }
}
