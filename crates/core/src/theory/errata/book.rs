//! BOOK (chapter 5): exact instances of its errors.

use super::{Counterexample, Erratum, Gravity, none};

/// The errors, by where they stand.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        source: "BOOK",
        place: "Theorem 5.1, (5.57)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“E‖w̃_i‖² ≤ (√λ^i + O(μ³)) ‖w̃_0‖² + 4μ σ_(fed)²/ν + O(μ²)”, by iterating (5.55).",
        holds: "(5.55) gives (√λ + O(μ³))^i, which is √λ^i + O(μ²): the difference is i√λ^(i−1)cμ³ to first order, and up to cμ²/(eν) at i = 1/(μν).",
        consequence: "None for the order of the error as i → ∞; the transient is bounded up to O(μ²) only.",
        counterexample: || vec![iterated_factor()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.20) and (5.21)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“d_i ≜ (1/L) Σ_(k∈L) μ_k E_k d_(k,i)”, and “w_i = w_(i−1) − μ∇̂J^(fed)(w_(i−1)) − μd_i”.",
        holds: "By (5.18) w_i = w_(i−1) − μ∇̂J^(fed)(w_(i−1)) − d_i: d_i has the factor μ_k E_k = μ already.",
        consequence: "(5.58) counts μ² twice. With the slip in (5.53) corrected too, E‖d_i‖² is of order μ⁴ and the orders in Theorem 5.1 stand; either correction alone changes them.",
        counterexample: || vec![step_counted_twice()],
        claims: &["book/drift#order"],
    },
    Erratum {
        source: "BOOK",
        place: "Below (5.25), step (a)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“E{1_(k,i) | w_(i−1)} = E 1_(k,i) = K/L”.",
        holds: "L/K, as (5.8) and the equation itself have it.",
        consequence: "None.",
        counterexample: || vec![participation()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.41), and with it (5.54)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“E‖(1/L) Σ_(k∈L) d_(k,i)‖² = E‖(1/K) Σ_k 1_(k,i) d_(k,i)‖²”, and so “E‖d_i‖² ≤ μ²(L/K²) Σ_k E‖d_(k,i)‖²”.",
        holds: "The mean over the cohort is (1/L) Σ_k 1_(k,i) d_(k,i), and so E‖d_i‖² ≤ (μ²/K) Σ_k E‖d_(k,i)‖².",
        consequence: "The bound is too small by L/K under partial participation; the orders in μ stand.",
        counterexample: || vec![mean_over_the_cohort()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.45)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“∇̂J_k(w) = −h(γ − hᵀw)” for “J_k(w) = E‖γ − hᵀw‖²” of (5.44).",
        holds: "The gradient is twice that; (5.45) is the gradient of J_k/2.",
        consequence: "ν, δ, β² and σ² of Theorem 5.1 must be those of J_k/2 where (5.45) and (5.66) are used.",
        counterexample: || vec![gradient_of_a_square()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.50)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "“λ_k ≜ 1 − 2(μ/E_k)ν_k + (μ_k²/E_k²)(δ_k² + β_k²)”.",
        holds: "(μ²/E_k²)(δ_k² + β_k²), since the step is μ_k = μ/E_k.",
        consequence: "The printed λ_k is too small for E_k > 1, and the condition λ_k ≤ 1 below it too weak.",
        counterexample: || vec![rate_of_a_client()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.52)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "“E{‖w_k° − φ_(k,e)‖ | w_(i−1)}” on the left.",
        holds: "E{‖w_k° − φ_(k,e)‖² | w_(i−1)}.",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.52) to (5.53), and (5.54)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“E{‖d_(k,i)‖² | w_(i−1)} ≤ (δ̂_k²/E_k) Σ_e {‖w_k° − w_(i−1)‖² + μ²σ_k²/E_k}”, and so “O(μ²)·‖w° − w_(i−1)‖² + O(μ²)” for d_i.",
        holds: "(5.47) needs E‖φ_(k,e−1) − w_(i−1)‖², the distance travelled, and (5.52) bounds E‖w_k° − φ_(k,e)‖². The former is at most (μe/E_k)²((δ_k² + β_k²)(‖w_k° − w_(i−1)‖² + μ²σ_k²/E_k) + σ_k²), so that E‖d_i‖² is of order μ⁴.",
        consequence: "The step does not follow, and the inequality itself fails at the largest μ with λ_k ≤ 1; for small μ it hides that the perturbation is of a higher order, which the proof of Theorem 5.1 needs once (5.21) is corrected.",
        counterexample: || vec![distance_travelled(), order_of_the_perturbation()],
        claims: &["book/drift#corrected", "book/drift#order"],
    },
    Erratum {
        source: "BOOK",
        place: "(5.55)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "“E‖w̃_i‖² ≤ (√λ + O(μ³)) E‖w̃_i‖² + 2μ² σ_(fed)² + O(μ³)”.",
        holds: "E‖w̃_i‖² ≤ (√λ + O(μ³)) E‖w̃_(i−1)‖² + 2μ² σ_(fed)² + O(μ³), as (5.62) has it.",
        consequence: "None: (5.57) iterates the right recursion. Its 4μ σ_(fed)²/ν may be 2μ σ_(fed)²/ν.",
        counterexample: || vec![same_iterate_on_both_sides()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.58) and (5.61)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "(5.58) ends with “1 − 2μν + μ²(δ² + β_(fed)²)”, and (5.61) begins with an equality.",
        holds: "These symbols belong to (5.60), and the equality is ≤.",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "(5.64)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“μ²/(1 − √λ) = μ²/(1 − (1 − 2μν + μ²(δ² + β_(fed)²))) = μ/(2ν − μ(δ² + β_(fed)²))”.",
        holds: "This is μ²/(1 − λ). By (5.63) μ²/(1 − √λ) ≤ 2μ/(2ν − μ(δ² + β_(fed)²)), twice as large.",
        consequence: "The order O(μ) stands.",
        counterexample: || vec![root_of_lambda()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "Below (5.65)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“A sufficient condition for this is μ ≤ ν/2”, for √λ ≥ ½.",
        holds: "μ ≤ 1/(2ν) is sufficient, since λ ≥ (1 − μν)².",
        consequence: "The printed condition is not dimensionally consistent, and is not sufficient for ν > 1.",
        counterexample: || vec![small_enough()],
        claims: &[],
    },
    Erratum {
        source: "BOOK",
        place: "Further misprints",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "(a) The second line of (5.54) and step (d) of (5.38) are equalities. (b) Before (5.12): “plugging the final result into (5.9)”.",
        holds: "(a) They are inequalities: (5.53) is a bound, and ‖a + b‖² ≤ 2‖a‖² + 2‖b‖² is used. (b) (5.10) is meant.",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
];

/// ((√λ + μ³)^i − √λ^i)/μ³ at √λ = 1 − μ and i = 1/μ.
fn excess_of_the_factor(mu: f64) -> f64 {
    let (root, rounds) = (1.0 - mu, libm::round(1.0 / mu));
    (libm::pow(root + mu * mu * mu, rounds) - libm::pow(root, rounds)) / (mu * mu * mu)
}

/// (5.57) has √λ^i + O(μ³) where (√λ + O(μ³))^i is meant, which is √λ^i + O(μ²).
fn iterated_factor() -> Counterexample {
    Counterexample {
        what: "((√λ + μ³)^i − √λ^i)/μ³ with √λ = 1 − μ and i = 1/μ at μ = 0.001, against its value at μ = 0.1, at which it \
               would stay if the difference were O(μ³)",
        printed: excess_of_the_factor(0.1),
        holds: excess_of_the_factor(0.001),
    }
}

/// The local steps of one client with J(w) = w²/2, E_k of them of size μ/E_k from w = 1: φ_0, …, φ_E.
fn local_steps(mu: f64, steps: usize) -> Vec<f64> {
    (0..=steps).map(|e| libm::pow(1.0 - mu / steps as f64, e as f64)).collect()
}

/// d_{k,i} of (5.16) in that instance.
fn perturbation(mu: f64, steps: usize) -> f64 {
    local_steps(mu, steps)[..steps].iter().fold(0.0, |sum, phi| sum + (phi - 1.0) / steps as f64)
}

/// (5.21) has μd_i, but d_i of (5.20) has the factor μ_kE_k = μ already: w_i = w_{i−1} − μ∇̂J − d_i.
fn step_counted_twice() -> Counterexample {
    let mu = 0.5;
    Counterexample {
        what: "w_i for one client, J(w) = w²/2, μ = ½, E = 2, from w_(i−1) = 1: by (5.20) and (5.21), and by (5.9) to (5.11)",
        printed: 1.0 - mu - mu * mu * perturbation(mu, 2),
        holds: local_steps(mu, 2)[2],
    }
}

/// Below (5.25) E 1_{k,i} is printed as K/L, which is above 1; it is L/K, as (5.8) and step (a) have it.
fn participation() -> Counterexample {
    let (k, l) = (2.0, 1.0);
    Counterexample { what: "E 1_(k,i) for L = 1 of K = 2 clients", printed: k / l, holds: l / k }
}

/// The K and L of the instance of (5.41).
const SAMPLED: (f64, f64) = (4.0, 1.0);

/// (5.41) replaces 1/L by 1/K under the norm, which loses (K/L)²; by Jensen's inequality over the cohort the bound is
/// (μ²/K) Σ E‖d_k‖² and not (μ²L/K²) Σ E‖d_k‖².
fn mean_over_the_cohort() -> Counterexample {
    let (k, l) = SAMPLED;
    Counterexample {
        what: "E‖d_i‖²/μ² for L = 1 of K = 4 clients with d_(k,i) = 1 for each, against the bound (5.41)",
        printed: l / (k * k) * k,
        holds: 1.0,
    }
}

/// (5.45) is half of the gradient of (5.44); with it ν, δ, β² and σ² of Theorem 5.1 are those of J/2.
fn gradient_of_a_square() -> Counterexample {
    let (h, gamma, w): (f64, f64, f64) = (1.0, 1.0, 0.0);
    let loss = |w: f64| (gamma - h * w) * (gamma - h * w);
    Counterexample {
        what: "the derivative of (γ − hw)² at w = 0 for γ = h = 1: (5.45), and a difference quotient of (5.44)",
        printed: -h * (gamma - h * w),
        holds: (loss(w + 0.5) - loss(w - 0.5)) / 1.0,
    }
}

/// λ_k of (5.50) has μ_k²/E_k² where the step is μ/E_k and its square μ²/E_k².
fn rate_of_a_client() -> Counterexample {
    let (mu, e): (f64, f64) = (0.4, 2.0);
    let step = mu / e;
    Counterexample {
        what: "E‖w_k° − φ_e‖²/‖w_k° − φ_(e−1)‖² for J_k(w) = w²/2 without noise, μ = 0.4, E_k = 2, against λ_k of (5.50)",
        printed: 1.0 - 2.0 * step + step * step / (e * e),
        holds: (1.0 - step) * (1.0 - step),
    }
}

/// (5.52) bounds ‖w_k° − φ_{k,e}‖² (printed without the square), (5.47) needs ‖φ_{k,e−1} − w_{i−1}‖², and (5.53) puts the one
/// for the other. With steps as long as λ_k ≤ 1 allows, the latter is larger.
fn distance_travelled() -> Counterexample {
    // μ/E_k = 2: φ_1 is as far beyond w_k° = 0 as w_{i−1} = 1 is before it, and λ_k = 1.
    let path = local_steps(4.0, 2);
    let mean = path[..2].iter().fold(0.0, |sum, phi| sum + 0.5 * (phi - 1.0) * (phi - 1.0));
    Counterexample {
        what: "E_k⁻¹ Σ_e ‖φ_(k,e−1) − w_(i−1)‖² for J_k(w) = w²/2 without noise, w_(i−1) = 1, E_k = 2 and μ = 4, where λ_k = 1, \
               against ‖w_k° − w_(i−1)‖² of (5.53)",
        printed: 1.0,
        holds: mean,
    }
}

/// E‖d_i‖² of (5.20) is of order μ⁴, since a client moves by O(μ) in a round; (5.54) has O(μ²), through (5.53). With the
/// μd_i of (5.21) the proof of Theorem 5.1 counts μ² twice, and both slips cancel in (5.61).
fn order_of_the_perturbation() -> Counterexample {
    let mu = 0.01;
    let perturbation = mu * perturbation(mu, 2);
    Counterexample {
        what: "‖d_i‖² for one client, J(w) = w²/2, E = 2, μ = 0.01, from w_(i−1) = 1, against μ² · 2δ̂²‖w° − w_(i−1)‖² of (5.54)",
        printed: 2.0 * mu * mu,
        holds: perturbation * perturbation,
    }
}

/// (5.55) has w̃_i on both sides, which bounds E‖w̃_i‖² without its past; the right side is about w̃_{i−1}.
fn same_iterate_on_both_sides() -> Counterexample {
    let mu = 0.1;
    Counterexample {
        what: "‖w̃_1‖² for one client, J(w) = w²/2 without noise, E = 1, μ = 0.1, from w̃_0 = 1, against what (5.55) implies, \
               2μ²σ²/(1 − √λ)",
        printed: 0.0,
        holds: (1.0 - mu) * (1.0 - mu),
    }
}

/// (5.64) computes μ²/(1 − √λ) with λ for √λ: half of what holds.
fn root_of_lambda() -> Counterexample {
    let (mu, nu): (f64, f64) = (0.1, 1.0);
    let lambda = 1.0 - 2.0 * mu * nu + mu * mu;
    Counterexample {
        what: "μ²/(1 − √λ) at μ = 0.1, ν = δ = 1, β = 0, against μ/(2ν − μ(δ² + β²))",
        printed: mu / (2.0 * nu - mu),
        holds: mu * mu / (1.0 - libm::sqrt(lambda)),
    }
}

/// √λ at ν = δ, β = 0.
fn root(mu: f64, nu: f64) -> f64 {
    libm::sqrt(1.0 - 2.0 * mu * nu + mu * mu * nu * nu)
}

/// Below (5.65): √λ ≥ ½ is said to follow from μ ≤ ν/2, which has another unit; it follows from μ ≤ 1/(2ν).
fn small_enough() -> Counterexample {
    let nu = 1.5;
    Counterexample {
        what: "√λ at ν = δ = 1.5, β = 0 and μ = ν/2, against the ½ of (5.65)",
        printed: 0.5,
        holds: root(0.5 * nu, nu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iterated_factor_is_of_second_order() {
        let found = iterated_factor();
        assert!(found.holds > 90.0 * found.printed, "{found:?}");
        for mu in [0.1, 0.01, 0.001] {
            assert!(mu * excess_of_the_factor(mu) < 1.1 * libm::exp(-1.0) + mu, "{mu}");
        }
    }

    #[test]
    fn the_recursion_needs_one_factor() {
        let found = step_counted_twice();
        assert!((found.printed - found.holds).abs() > 0.02, "{found:?}");
        let corrected = 1.0 - 0.5 - 0.5 * perturbation(0.5, 2);
        assert!((corrected - found.holds).abs() < 1e-15);
    }

    #[test]
    fn a_probability_is_at_most_one() {
        assert!(participation().printed > 1.0 && participation().holds == 0.5);
    }

    #[test]
    fn jensen_over_the_cohort() {
        let found = mean_over_the_cohort();
        assert!(found.holds > 3.9 * found.printed, "{found:?}");
        let (k, _) = SAMPLED;
        assert!(found.holds <= 1.0 / k * k);
    }

    #[test]
    fn the_gradient_is_twice_as_large() {
        let found = gradient_of_a_square();
        assert_eq!(found.holds, 2.0 * found.printed);
    }

    #[test]
    fn a_client_contracts_more_slowly() {
        let found = rate_of_a_client();
        assert!(found.holds > found.printed, "{found:?}");
        let corrected: f64 = 1.0 - 2.0 * 0.2 + 0.2 * 0.2;
        assert!((corrected - found.holds).abs() < 1e-15);
    }

    #[test]
    fn local_steps_travel_further() {
        let found = distance_travelled();
        assert_eq!((found.printed, found.holds), (1.0, 2.0));
        // By the distance travelled: ‖φ_e − w‖² ≤ (μe/E)²(δ_k² + β_k²)‖w_k° − w‖².
        let bound = 0.5 * (4.0_f64 / 2.0).powi(2);
        assert!(found.holds <= bound);
    }

    #[test]
    fn the_perturbation_is_of_fourth_order() {
        let found = order_of_the_perturbation();
        assert!(found.holds < 1e-4 * found.printed, "{found:?}");
        let square = |mu: f64| (mu * perturbation(mu, 2)).powi(2);
        assert!((square(0.02) / square(0.01) - 16.0).abs() < 1e-9);
        // (μ⁴/K) Σ δ̂²δ²‖w°_k − w‖² (E − 1)(2E − 1)/(6E²), E = 2.
        assert!(found.holds <= 1e-8 * 3.0 / 24.0);
    }

    #[test]
    fn errors_depend_on_their_past() {
        let found = same_iterate_on_both_sides();
        assert!(found.holds > 0.8 && found.printed == 0.0);
        assert!(found.holds <= root(0.1, 1.0));
    }

    #[test]
    fn the_root_halves_the_denominator() {
        let found = root_of_lambda();
        assert!((found.holds - 0.1).abs() < 1e-12 && found.holds > 1.8 * found.printed);
        // What holds: 1 − √λ ≥ μν − μ²(δ² + β²)/2, twice the printed value.
        assert!(found.holds <= 2.0 * found.printed + 1e-15);
    }

    #[test]
    fn the_condition_has_the_unit_of_a_step() {
        let found = small_enough();
        assert!(found.holds < 0.2, "{found:?}");
        for nu in [0.1, 1.0, 1.5, 10.0] {
            assert!(root(0.5 / nu, nu) >= 0.5 - 1e-12);
        }
    }
}
