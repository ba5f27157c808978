//! Errors in RR.

use super::{Counterexample, Erratum, Gravity, none};

/// Two scalar quadratic functions with curvatures a_c and minimisers θ_c*, without noise.
struct TwoClients {
    curvatures: [f64; 2],
    optima: [f64; 2],
}

const PAIR: TwoClients = TwoClients { curvatures: [1.0, 3.0], optima: [1.0, -1.0] };

impl TwoClients {
    fn optimum(&self) -> f64 {
        let weighted = (0..2).map(|c| self.curvatures[c] * self.optima[c]).sum::<f64>();
        weighted / self.curvatures.iter().sum::<f64>()
    }

    /// Where FedAvg-D ends, by rounds from θ*.
    fn fixed_point(&self, step: f64, steps: u32) -> f64 {
        let mut theta = self.optimum();
        for _ in 0..ROUNDS {
            let end = |c: usize| {
                let mut local = theta;
                for _ in 0..steps {
                    local -= step * self.curvatures[c] * (local - self.optima[c]);
                }
                local
            };
            theta = 0.5 * (end(0) + end(1));
        }
        theta
    }

    fn bias(&self, step: f64, steps: u32) -> f64 {
        self.fixed_point(step, steps) - self.optimum()
    }

    /// N⁻¹ Σ weight(a_c) (θ_c* − θ*) / (1 − Γ̄).
    fn mean_over(&self, step: f64, steps: u32, weight: impl Fn(f64) -> f64) -> f64 {
        let power = |a: f64| libm::pow(1.0 - step * a, f64::from(steps));
        let gamma = 0.5 * self.curvatures.iter().map(|a| power(*a)).sum::<f64>();
        let terms = (0..2).map(|c| weight(self.curvatures[c]) * (self.optima[c] - self.optimum()));
        0.5 * terms.sum::<f64>() / (1.0 - gamma)
    }

    /// (γ(H − 1)/2) b_h.
    fn first_order(&self, step: f64, steps: u32) -> f64 {
        let mean = 0.5 * self.curvatures.iter().sum::<f64>();
        let gradient = |c: usize| self.curvatures[c] * (self.optimum() - self.optima[c]);
        let terms = (0..2).map(|c| (self.curvatures[c] - mean) * gradient(c));
        step * f64::from(steps - 1) / 2.0 * 0.5 * terms.sum::<f64>() / mean
    }
}

/// Rounds after which the iterates of [`PAIR`] no longer move.
const ROUNDS: u32 = 20_000;

fn proposition_2() -> Vec<Counterexample> {
    let (step, steps) = (0.1, 3);
    // Σ_h (1 − γa)^(H − h) ∇f_c(θ*), with ∇f_c(θ*) = −a (θ_c* − θ*).
    let sum = |a: f64| (0..steps).map(|h| libm::pow(1.0 - step * a, f64::from(h))).sum::<f64>();
    vec![Counterexample {
        what: "bias of two quadratic functions, a = 1 and 3, θ_c* = 1 and −1, γ = 0.1, H = 3",
        printed: PAIR.mean_over(step, steps, |a| -a * sum(a)),
        holds: PAIR.bias(step, steps),
    }]
}

fn theorem_2() -> Vec<Counterexample> {
    let (step, steps) = (0.1, 3);
    let weight = |a: f64| libm::pow(1.0 - step * a, f64::from(steps)) - 1.0;
    vec![Counterexample {
        what: "bias of two quadratic functions, a = 1 and 3, θ_c* = 1 and −1, γ = 0.1, H = 3",
        printed: PAIR.mean_over(step, steps, weight),
        holds: PAIR.bias(step, steps),
    }]
}

/// a = 1 ± δ and gradients ± g at θ*, at H = 2 and γ = ½.
fn halved_bound() -> Vec<Counterexample> {
    let (delta, gradient, step) = (1e-4, 1.0, 0.5);
    let curvatures = [1.0 + delta, 1.0 - delta];
    // Gradients +g and −g at θ* = 0.
    let pair =
        TwoClients { curvatures, optima: [-gradient / curvatures[0], gradient / curvatures[1]] };
    let bound = step * delta * gradient / (1.0 - delta);
    vec![Counterexample {
        what: "bias of two quadratic functions, a = 1 ± 10⁻⁴, gradients ± 1 at θ*, γ = ½, H = 2, as a multiple of γ(H − 1) ζ₁ζ₂/μ",
        printed: 0.5,
        holds: pair.bias(step, 2).abs() / bound,
    }]
}

fn sign_of_heterogeneity() -> Vec<Counterexample> {
    vec![Counterexample {
        what: "bias of two quadratic functions, a = 1 and 3, θ_c* = 1 and −1, γ = 10⁻³, H = 3",
        printed: -PAIR.first_order(1e-3, 3),
        holds: PAIR.bias(1e-3, 3),
    }]
}

/// θ* = 1 without heterogeneity and noise: every run ends at 1.
fn weights() -> Vec<Counterexample> {
    let combined = |steps: f64| (2.0 * steps - 1.0) / (steps - 1.0) - 1.0;
    [(2.0, "limit for equal clients without noise, θ* = 1, H = 2"), (10.0, "the same at H = 10")]
        .map(|(steps, what)| Counterexample { what, printed: combined(steps), holds: 1.0 })
        .to_vec()
}

fn first_covariance() -> Vec<Counterexample> {
    vec![Counterexample {
        what: "C(θ*) of two clients in one dimension, variances 1 and 3",
        printed: 1.0,
        holds: 0.5 * (1.0 + 3.0),
    }]
}

/// With γ = ε² the three conditions of (65) on H at ε = 10⁻⁴.
fn exponents() -> Vec<Counterexample> {
    let epsilon: f64 = 1e-4;
    let step = epsilon * epsilon;
    // γ⁴H⁴ = ε² and γ³H² = ε².
    let quartic = libm::pow(epsilon, 0.5) / step;
    let cubic = libm::sqrt(epsilon * epsilon / (step * step * step));
    let rounds = |steps: f64| 1.0 / (step * steps);
    vec![Counterexample {
        what: "1/(γH), to which T is proportional, with γ = ε², ε = 10⁻⁴ and H as large as (65) allows",
        printed: libm::pow(epsilon, -2.0 / 3.0),
        holds: rounds(quartic.min(cubic)),
    }]
}

/// The errors, by where they stand.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        source: "RR",
        place: "Theorems 3 and 4, Table 1 (first version)",
        gravity: Gravity::Result,
        printed: "The stochasticity bias is +(γ/2N) A⁻¹∇³f(θ*) AC.",
        holds: "It is −(γ/2N) A⁻¹∇³f(θ*) AC, as the second version and SLIDES have it.",
        consequence: "Whoever corrects the bias by the first version's formula doubles it. The size of the bias and the extrapolation do not depend on the sign.",
        counterexample: none,
        claims: &[
            "rr/signs#minus",
            "rr/signs#plus",
            "rr/table1#homogeneous",
            "rr/table1#homogeneous-as-printed",
        ],
    },
    Erratum {
        source: "RR",
        place: "Table 1, last row, and Proposition 5 (first version)",
        gravity: Gravity::Result,
        printed: "The heterogeneity bias of general and of quadratic functions is −(γ(H − 1)/2) b_h.",
        holds: "It is +(γ(H − 1)/2) b_h, as in Theorems 1, 2 and 4 and in the second version.",
        consequence: "The table contradicts the theorems that it summarises; the theorems are right.",
        counterexample: sign_of_heterogeneity,
        claims: &["rr/table1-quadratic#first-order", "rr/table1-quadratic#as-printed"],
    },
    Erratum {
        source: "RR",
        place: "Theorem 2 and Proposition 5 (both versions; Proposition 4 of the first)",
        gravity: Gravity::Result,
        printed: "For quadratic functions θ̄ − θ* = N⁻¹ Σ_c (I − Γ)⁻¹(I − Γ_c)(θ* − θ_c*).",
        holds: "The last factor is θ_c* − θ*, as the last line of the proof and SCAFFLSA (24) have it.",
        consequence: "The formula as stated has the opposite sign; the bound and the expansion that follow are not affected.",
        counterexample: theorem_2,
        claims: &["rr/table1-quadratic#exact"],
    },
    Erratum {
        source: "RR",
        place: "Proposition 5, bound (both versions; Proposition 4 of the first)",
        gravity: Gravity::Result,
        printed: "‖θ̄ − θ*‖ ≤ γ(H − 1) ζ₁ζ₂/(2μ), where Theorem 2 states twice as much.",
        holds: "‖θ̄ − θ*‖ ≤ γ(H − 1) ζ₁ζ₂/μ, the bound of Theorem 2. The proof takes Σ_t (1 − γμ)^(Ht) for 1/(γμH), but the sum is larger: at γμH = 1 and H = 2 it is 4/3 times as large.",
        consequence: "The bound of the appendix is exceeded by a third; that of the main text stands.",
        counterexample: halved_bound,
        claims: &["rr/theorem2-bound#bound", "rr/theorem2-bound#halved"],
    },
    Erratum {
        source: "RR",
        place: "Theorem 5, communications, and (65), (66) (second version)",
        gravity: Gravity::Result,
        printed: "With γ = O(ε²), the condition γ³H² = O(ε²) gives H³ = O(ε⁻⁴), so H = O(ε^(−4/3)) and T = O(ε^(−2/3) log(1/ε)).",
        holds: "It gives H² = O(ε⁻⁴). The binding condition is γ⁴H⁴ = O(ε²), H = O(ε^(−3/2)), and T = O(ε^(−1/2) log(1/ε)).",
        consequence: "The theorem is true and weaker than its proof: fewer communications suffice, by a factor of ε^(1/6).",
        counterexample: exponents,
        claims: &["frontier/quadratic#rr-local-steps", "frontier/quadratic#rr-local-steps-printed"],
    },
    Erratum {
        source: "RR",
        place: "Remark 1 (both versions)",
        gravity: Gravity::Result,
        printed: "ω = ((2H − 1)/(H − 1)) θ^(γ,H) − θ^(2γ,H), which converges to γb_s/(2N) + O(γ²H² + γ^(3/2)H^(1/2)).",
        holds: "The weights have the sum H/(H − 1) and not 1. With ((2H − 1)/H) θ^(γ,H) − ((H − 1)/H) θ^(γ,2H) the heterogeneity bias cancels to first order, and the limit is θ* + γb_s/(2N) up to higher orders. The second run has 2H local steps, not the step size 2γ.",
        consequence: "As printed the estimator goes to a multiple of θ*: to 2θ* at H = 2.",
        counterexample: weights,
        claims: &["rr/local-steps#over-steps", "rr/local-steps#over-steps-printed"],
    },
    Erratum {
        source: "RR",
        place: "Proposition 2, identity (both versions)",
        gravity: Gravity::Step,
        printed: "θ̄ − θ* = N⁻¹ Σ_c Σ_(h=1..H) Υ_c^(h) ∇f_c(θ*), with F_c^(h+1:H) the product over ℓ = h+1..H−1 and F_c* = F_c^(1:H).",
        holds: "A factor −γ is missing, which the proof has. The sum is over h = 0..H−1, and F_c* has the H factors of ℓ = 0..H−1: as printed it has H − 1.",
        consequence: "The identity as stated has the wrong sign and size. With −γ alone it gives γ((H − 2)/2) b_h to first order, 0 at H = 2, and I − F* is 0 at H = 1. The bound that follows is not affected.",
        counterexample: proposition_2,
        claims: &["rr/table1-quadratic#identity", "rr/table1-quadratic#identity-printed"],
    },
    Erratum {
        source: "RR",
        place: "Lemma 8 (both versions)",
        gravity: Gravity::Step,
        printed: "E^(1/3)‖θ_t − θ*‖⁶ ≤ (1 − γμ/6)^H E^(1/3)‖θ_0 − θ*‖⁶ + 6β γ²(H − 1)H ζ₁/μ² + 12βγτ²/μ (γμ/18 in the second version).",
        holds: "The left side is a square of a length: ζ₁ must be ζ₁², since without noise the limit is in proportion to it. The exponent of the first term is Ht.",
        consequence: "With ζ₁ no constant β is universal, and with the exponent H the bound does not fall with t. The orders that follow are right, and are all that is used.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(25), in the second version (30)",
        gravity: Gravity::Slip,
        printed: "V_c^(h)(θ) = T_c^(h)(θ) − γh ∇f_c(θ*).",
        holds: "V_c^(h)(θ) = T_c^(h)(θ) + γh ∇f_c(θ*): local steps go along −∇f_c, and the next display, V_c^(h+1) = V_c^(h) − γ(∇F_c(T_c^(h)) − ∇f_c(θ*)), needs the plus.",
        consequence: "None: only norms of the difference are used.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(9)",
        gravity: Gravity::Slip,
        printed: "C(θ*) = E N⁻¹ Σ_c ε_1^1(θ*)^⊗2.",
        holds: "C(θ*) = E N⁻¹ Σ_c ε_c^(Z_c)(θ*)^⊗2.",
        consequence: "Read literally, the covariance would be that of the first client.",
        counterexample: first_covariance,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "proof of Theorem 4, last display (first version)",
        gravity: Gravity::Slip,
        printed: "−(γ(H − 1)/2) b_h − (γ/N) b_s.",
        holds: "+(γ(H − 1)/2) b_h − (γ/2N) b_s, with b_s = A⁻¹∇³f AC.",
        consequence: "The display contradicts the theorem that it proves in a sign and in a factor of 2.",
        counterexample: none,
        claims: &["rr/table1#heterogeneous"],
    },
    Erratum {
        source: "RR",
        place: "remark after Theorem 4 (both versions)",
        gravity: Gravity::Slip,
        printed: "When H is of order O(1/N), FedAvg achieves the linear speed-up.",
        holds: "H is at least 1. What has to be of order 1/N is γH: the covariance (γ/N) AC dominates the remainder γ²H² where γH² N is small.",
        consequence: "The range of the linear speed-up is a condition on γH, not on H alone.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(64) (second version)",
        gravity: Gravity::Slip,
        printed: "The last term is (γ/μ) τ̃^(1/2).",
        holds: "It is (γ/μ) τ̃², as (61) and (62) have it.",
        consequence: "None: only the power of γ is used.",
        counterexample: none,
        claims: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The corrected expressions give what the iteration gives.
    #[test]
    fn corrections_equal_the_fixed_point() {
        let (step, steps) = (0.1, 3);
        let exact = PAIR.bias(step, steps);
        let gone = |a: f64| 1.0 - libm::pow(1.0 - step * a, f64::from(steps));
        assert!((PAIR.mean_over(step, steps, gone) - exact).abs() < 1e-13);
        let printed = proposition_2()[0].printed;
        assert!((-step * printed - exact).abs() < 1e-13);
        assert!((theorem_2()[0].printed + exact).abs() < 1e-13);
        let small = sign_of_heterogeneity()[0];
        assert!((small.printed / small.holds + 1.0).abs() < 5e-3, "{small:?}");
    }

    #[test]
    fn the_halved_bound_is_exceeded_by_a_third_and_the_whole_holds() {
        let ratio = halved_bound()[0].holds;
        assert!((ratio - 2.0 / 3.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn the_binding_exponent_is_the_smaller_one() {
        let found = exponents()[0];
        assert!((found.holds - 100.0).abs() < 1e-6 && found.printed > 400.0, "{found:?}");
    }
}
