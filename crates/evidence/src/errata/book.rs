//! BOOK (chapter 5): exact instances of its errors.

use super::{Contradiction, ContradictionById};

/// By how much i rounds with the factor √λ + μ³ exceed i rounds with the factor √λ, as a multiple of μ³, at √λ = 1 −
/// μ and i = 1/μ. It grows as 1/μ.
fn excess_of_the_factor(mu: f64) -> f64 {
    let root = 1.0 - mu;
    let rounds = libm::round(1.0 / mu);
    (libm::pow(root + mu * mu * mu, rounds) - libm::pow(root, rounds)) / (mu * mu * mu)
}

/// The iterates φ_0, …, φ_E of the local steps of one client with J(w) = w²/2 from w = 1: `steps` is E, and each step
/// has the size μ/E.
fn local_steps(mu: f64, steps: usize) -> Vec<f64> {
    (0..=steps).map(|e| libm::pow(1.0 - mu / steps as f64, e as f64)).collect()
}

/// d_{k,i} of (5.16) for the client of [`local_steps`]: by how much the mean of its gradients at φ_0, …, φ_{E−1}
/// differs from the gradient at the start of the round, w = 1.
fn perturbation(mu: f64, steps: usize) -> f64 {
    local_steps(mu, steps)[..steps].iter().fold(0.0, |sum, phi| sum + (phi - 1.0) / steps as f64)
}

/// √λ of Theorem 5.1, the factor of a round, for equal constants ν = δ and β = 0.
fn root_of_lambda(mu: f64, nu: f64) -> f64 {
    libm::sqrt(1.0 - 2.0 * mu * nu + mu * mu * nu * nu)
}

/// The numbers of the counterexamples, by id.
pub const NUMBERS: &[ContradictionById] = &[
    // (5.57) has √λ^i + O(μ³) where (√λ + O(μ³))^i is meant, which is √λ^i + O(μ²).
    ("iterated-factor", || Contradiction {
        printed: excess_of_the_factor(0.1),
        holds: excess_of_the_factor(0.001),
    }),
    // (5.21) has μd_i, but d_i of (5.20) has the factor μ_kE_k = μ already: w_i = w_{i−1} − μ∇̂J − d_i.
    ("step-counted-twice", || {
        let mu = 0.5;
        Contradiction {
            printed: 1.0 - mu - mu * mu * perturbation(mu, 2),
            holds: local_steps(mu, 2)[2],
        }
    }),
    // (5.41) replaces 1/L by 1/K under the norm, which loses (K/L)²; by Jensen's inequality over the cohort the bound
    // is (μ²/K) Σ E‖d_k‖² and not (μ²L/K²) Σ E‖d_k‖².
    ("mean-over-the-cohort", || {
        let k = 4.0;
        let l = 1.0;
        Contradiction { printed: l / (k * k) * k, holds: 1.0 }
    }),
    // (5.45) is half of the gradient of (5.44); with it ν, δ, β² and σ² of Theorem 5.1 are those of J/2.
    ("gradient-of-a-square", || {
        let h: f64 = 1.0;
        let gamma: f64 = 1.0;
        let w: f64 = 0.0;
        let loss = |w: f64| (gamma - h * w) * (gamma - h * w);
        Contradiction {
            printed: -h * (gamma - h * w),
            holds: (loss(w + 0.5) - loss(w - 0.5)) / 1.0,
        }
    }),
    // λ_k of (5.50) has μ_k²/E_k² where the step is μ/E_k and its square μ²/E_k².
    ("rate-of-a-client", || {
        let mu: f64 = 0.4;
        let e: f64 = 2.0;
        let step = mu / e;
        Contradiction {
            printed: 1.0 - 2.0 * step + step * step / (e * e),
            holds: (1.0 - step) * (1.0 - step),
        }
    }),
    // (5.52) bounds ‖w_k° − φ_{k,e}‖² (printed without the square), (5.47) needs ‖φ_{k,e−1} − w_{i−1}‖², and (5.53)
    // puts the one for the other. With steps as long as λ_k ≤ 1 allows, the latter is larger.
    ("distance-travelled", || {
        // μ/E_k = 2: φ_1 is as far beyond w_k° = 0 as w_{i−1} = 1 is before it, and λ_k = 1.
        let path = local_steps(4.0, 2);
        let mean = path[..2].iter().fold(0.0, |sum, phi| sum + 0.5 * (phi - 1.0) * (phi - 1.0));
        Contradiction { printed: 1.0, holds: mean }
    }),
    // E‖d_i‖² of (5.20) is of order μ⁴, since a client moves by O(μ) in a round; (5.54) has O(μ²), through (5.53).
    // With the μd_i of (5.21) the proof of Theorem 5.1 counts μ² twice, and both slips cancel in (5.61).
    ("order-of-the-perturbation", || {
        let mu = 0.01;
        let perturbation = mu * perturbation(mu, 2);
        Contradiction { printed: 2.0 * mu * mu, holds: perturbation * perturbation }
    }),
    // (5.55) has w̃_i on both sides, which bounds E‖w̃_i‖² without its past; the right side is about w̃_{i−1}.
    ("same-iterate-on-both-sides", || {
        let mu = 0.1;
        Contradiction { printed: 0.0, holds: (1.0 - mu) * (1.0 - mu) }
    }),
    // (5.64) computes μ²/(1 − √λ) with λ for √λ: half of what holds.
    ("root-of-lambda", || {
        let mu: f64 = 0.1;
        let nu: f64 = 1.0;
        let lambda = 1.0 - 2.0 * mu * nu + mu * mu;
        Contradiction { printed: mu / (2.0 * nu - mu), holds: mu * mu / (1.0 - libm::sqrt(lambda)) }
    }),
    // Below (5.65): √λ ≥ ½ is said to follow from μ ≤ ν/2, which has another unit; it follows from μ ≤ 1/(2ν).
    ("small-enough", || {
        let nu = 1.5;
        Contradiction { printed: 0.5, holds: root_of_lambda(0.5 * nu, nu) }
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errata::tests::{assert_exceeded, numbers};

    /// What holds, computed in another way.
    #[test]
    fn corrected_expressions_equal_what_holds() {
        for (id, corrected) in [
            ("step-counted-twice", 1.0 - 0.5 - 0.5 * perturbation(0.5, 2)),
            ("gradient-of-a-square", 2.0 * numbers("gradient-of-a-square").printed),
            ("rate-of-a-client", 1.0 - 2.0 * 0.2 + 0.2 * 0.2),
            ("distance-travelled", 2.0),
            ("same-iterate-on-both-sides", 0.81),
            ("root-of-lambda", 0.1),
        ] {
            let found = numbers(id).holds;
            assert!((corrected - found).abs() < 1e-14, "{id}: {found} {corrected}");
        }
    }

    #[test]
    fn what_is_printed_is_exceeded() {
        assert_exceeded(&[
            ("iterated-factor", 90.0, f64::INFINITY),
            ("mean-over-the-cohort", 3.9, 1.0 / 4.0 * 4.0),
            ("rate-of-a-client", 1.0, 1.0),
            // By the distance travelled: ‖φ_e − w‖² ≤ (μe/E)²(δ_k² + β_k²)‖w_k° − w‖².
            ("distance-travelled", 1.9, 0.5 * (4.0_f64 / 2.0).powi(2)),
            ("same-iterate-on-both-sides", 1.0, root_of_lambda(0.1, 1.0)),
            // 1 − √λ ≥ μν − μ²(δ² + β²)/2, twice the printed value.
            ("root-of-lambda", 1.8, 2.0 * numbers("root-of-lambda").printed + 1e-15),
        ]);
        for mu in [0.1, 0.01, 0.001] {
            assert!(mu * excess_of_the_factor(mu) < 1.1 * libm::exp(-1.0) + mu, "{mu}");
        }
    }

    #[test]
    fn the_perturbation_is_of_fourth_order() {
        let Contradiction { printed, holds } = numbers("order-of-the-perturbation");
        assert!(holds < 1e-4 * printed, "{printed} {holds}");
        let square = |mu: f64| (mu * perturbation(mu, 2)).powi(2);
        assert!((square(0.02) / square(0.01) - 16.0).abs() < 1e-9);
        // (μ⁴/K) Σ δ̂²δ²‖w°_k − w‖² (E − 1)(2E − 1)/(6E²), E = 2.
        assert!(holds <= 1e-8 * 3.0 / 24.0);
    }

    #[test]
    fn the_condition_has_the_unit_of_a_step() {
        let found = numbers("small-enough").holds;
        assert!(found < 0.2, "{found}");
        for nu in [0.1, 1.0, 1.5, 10.0] {
            assert!(root_of_lambda(0.5 / nu, nu) >= 0.5 - 1e-12);
        }
    }
}
