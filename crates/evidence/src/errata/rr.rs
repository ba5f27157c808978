//! Errors in RR.

use super::stationary::{ManyClients, covariance_of_quadratics, stationary_bias};
use super::{Contradiction, ContradictionById};

/// Two clients with scalar quadratic functions a_c(θ − θ_c*)²/2, without noise.
struct TwoClients {
    /// The curvatures a_c.
    curvatures: [f64; 2],
    /// The minimisers θ_c*.
    optima: [f64; 2],
}

/// The instance of most counterexamples.
const PAIR: TwoClients = TwoClients { curvatures: [1.0, 3.0], optima: [1.0, -1.0] };

impl TwoClients {
    /// θ*, the minimiser of the mean of both functions.
    fn optimum(&self) -> f64 {
        let weighted = (0..2).map(|c| self.curvatures[c] * self.optima[c]).sum::<f64>();
        weighted / self.curvatures.iter().sum::<f64>()
    }

    /// The gradient of a client at θ*.
    fn gradient_at_optimum(&self, c: usize) -> f64 {
        self.curvatures[c] * (self.optimum() - self.optima[c])
    }

    /// Where `steps` local steps of client c end that start at θ = `theta`.
    fn local_end(&self, c: usize, theta: f64, step: f64, steps: u32) -> f64 {
        let mut local = theta;
        for _ in 0..steps {
            local -= step * self.curvatures[c] * (local - self.optima[c]);
        }
        local
    }

    /// The bias lim θ_t − θ* of FedAvg without noise (FedAvg-D in RR) with `steps` local steps, by running its rounds.
    fn bias(&self, step: f64, steps: u32) -> f64 {
        let mut theta = self.optimum();
        for _ in 0..ROUNDS {
            let ends = [0, 1].map(|c| self.local_end(c, theta, step, steps));
            theta = 0.5 * (ends[0] + ends[1]);
        }
        theta - self.optimum()
    }

    /// N⁻¹ Σ weight(a_c) (θ_c* − θ*) / (1 − Γ̄), the form of all expressions for the bias; Γ̄ is the mean over
    /// clients of Γ_c = (1 − γa_c)^H.
    fn mean_over(&self, step: f64, steps: u32, weight: impl Fn(f64) -> f64) -> f64 {
        let contractions = self.curvatures.iter().map(|a| contraction(step, *a, steps));
        let gamma = 0.5 * contractions.sum::<f64>();
        let terms = (0..2).map(|c| weight(self.curvatures[c]) * (self.optima[c] - self.optimum()));
        0.5 * terms.sum::<f64>() / (1.0 - gamma)
    }

    /// The bias of FedAvg in closed form, N⁻¹ Σ (1 − Γ_c)(θ_c* − θ*) / (1 − Γ̄).
    fn closed_bias(&self, step: f64, steps: u32) -> f64 {
        self.mean_over(step, steps, |a| 1.0 - contraction(step, a, steps))
    }

    /// (γ(H − 1)/2) b_h, the bias of FedAvg to first order in γ, with the sign that holds.
    fn first_order(&self, step: f64, steps: u32) -> f64 {
        let mean = 0.5 * self.curvatures.iter().sum::<f64>();
        let terms = (0..2).map(|c| (self.curvatures[c] - mean) * self.gradient_at_optimum(c));
        step * f64::from(steps - 1) / 2.0 * 0.5 * terms.sum::<f64>() / mean
    }
}

/// (1 − γa)^h: what h steps leave of the distance of a client with curvature a from its minimiser.
fn contraction(step: f64, curvature: f64, steps: impl Into<f64>) -> f64 {
    libm::pow(1.0 - step * curvature, steps.into())
}

/// The mean of a function of the curvature over the clients of [`PAIR`].
fn mean_over_pair(term: impl Fn(f64) -> f64) -> f64 {
    0.5 * PAIR.curvatures.iter().fold(0.0, |sum, a| sum + term(*a))
}

/// Rounds after which the iterates of [`PAIR`] no longer move.
const ROUNDS: u32 = 20_000;

/// The bias of [`PAIR`] by the identity of Proposition 2 as printed, times `factor`, and the exact bias. The identity
/// is taken literally: the products (3) have H − 1 − h factors, none for h ≥ H − 1.
fn proposition_2(factor: f64) -> Contradiction {
    let step = 0.1;
    let steps: u32 = 3;
    let terms = [0, 1].map(|c| {
        let a = PAIR.curvatures[c];
        let sum = (1..=steps).map(|h| contraction(step, a, (steps - 1).saturating_sub(h)));
        sum.sum::<f64>() * PAIR.gradient_at_optimum(c)
    });
    let contractions = PAIR.curvatures.map(|a| contraction(step, a, steps - 1));
    let printed = 0.5 * (terms[0] + terms[1]) / (1.0 - 0.5 * (contractions[0] + contractions[1]));
    Contradiction { printed: factor * printed, holds: PAIR.bias(step, steps) }
}

/// The limit of an extrapolation with the printed weights at H = `steps`, and the right limit. Without heterogeneity
/// and noise every run ends at θ* = 1, so that the limit is the sum of the weights.
fn limit_by_weights(steps: f64) -> Contradiction {
    Contradiction { printed: (2.0 * steps - 1.0) / (steps - 1.0) - 1.0, holds: 1.0 }
}

/// γ, L = μ and τ of the instance of Lemma 5: f(x) = x²/2 with additive noise, H = 1.
const LEMMA_5: (f64, f64, f64) = (0.5, 1.0, 1.0);

/// The sum of the terms of (22) at γL = `x`, where `cubic` is the coefficient of γ³a³c³. Lemma 6 needs it to be at
/// most 5.
fn sum_of_lemma_6(cubic: f64, x: f64) -> f64 {
    let terms = [2.0 * 15.0, 4.0 * cubic, 8.0 * 15.0, 16.0 * 6.0, 32.0];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) * x)
}

/// The term of Lemma 8 as it is printed, γ²ζ/μ².
fn term_of_lemma_8(step: f64, zeta: f64, mu: f64) -> f64 {
    step * step * zeta / (mu * mu)
}

/// The term of Lemma 8 as it holds, (γLζ/μ)². It does not change where all functions are multiplied by a number by
/// which γ is divided.
fn corrected_term_of_lemma_8(step: f64, zeta: f64, mu: f64, l: f64) -> f64 {
    libm::pow(step * l * zeta / mu, 2.0)
}

/// The factor of ‖V − θ*‖² on the left side of Lemma 7 at γL = `step_times_l`, for f(x; Z) = Lx²/2 with probability
/// 0.1 and 0 otherwise.
fn left_of_lemma_7(step_times_l: f64) -> f64 {
    let probability = 0.1;
    1.0 + 2.0 * step_times_l * step_times_l * probability - 2.0 * step_times_l * probability
}

/// γ, H and N of the instance of the remark after Theorem 4, with γH = 1/N.
const SPEED_UP: (f64, i32, f64) = (1e-4, 1000, 10.0);

/// The size of FedAvg's bias as a multiple of the bound of Proposition 2, γ(H − 1)Lζ_1/μ, and 1, which a sharp bound
/// would give; for curvatures 1 and `steep`, θ_c* = 1 and −1.
fn sharpness(steep: f64) -> Contradiction {
    let pair = TwoClients { curvatures: [1.0, steep], optima: [1.0, -1.0] };
    let step: f64 = 1e-5;
    let steps: u32 = 10;
    // Both gradients at θ* have the size ζ_1.
    let zeta = (pair.optimum() - pair.optima[0]).abs();
    let bound = step * f64::from(steps - 1) * steep * zeta;
    Contradiction { printed: 1.0, holds: pair.closed_bias(step, steps).abs() / bound }
}

/// The numbers of the counterexamples, by id.
pub const NUMBERS: &[ContradictionById] = &[
    ("sign-of-heterogeneity", || Contradiction {
        printed: -PAIR.first_order(1e-3, 3),
        holds: PAIR.bias(1e-3, 3),
    }),
    ("theorem-2", || Contradiction {
        printed: -PAIR.closed_bias(0.1, 3),
        holds: PAIR.bias(0.1, 3),
    }),
    // a = 1 ± δ and gradients ± g at θ*, at H = 2 and γ = ½.
    ("halved-bound", || {
        let delta = 1e-4;
        let gradient = 1.0;
        let step = 0.5;
        let curvatures = [1.0 + delta, 1.0 - delta];
        // Gradients +g and −g at θ* = 0.
        let pair = TwoClients {
            curvatures,
            optima: [-gradient / curvatures[0], gradient / curvatures[1]],
        };
        let bound = step * delta * gradient / (1.0 - delta);
        Contradiction { printed: 0.5, holds: pair.bias(step, 2).abs() / bound }
    }),
    // Where γμH = 1: Σ_t (1 − γμ)^{Ht} against 1/(γμH).
    ("series-over-rounds", || {
        let x: f64 = 0.1;
        let steps: f64 = 10.0;
        Contradiction { printed: 1.0 / (x * steps), holds: 1.0 / (1.0 - libm::pow(1.0 - x, steps)) }
    }),
    // With γ = ε² the three conditions of (65) on H at ε = 10⁻⁴.
    ("exponents", || {
        let epsilon: f64 = 1e-4;
        let step = epsilon * epsilon;
        // γ⁴H⁴ = ε² and γ³H² = ε².
        let quartic = libm::pow(epsilon, 0.5) / step;
        let cubic = libm::sqrt(epsilon * epsilon / (step * step * step));
        // The least H that meets both conditions decides the number of rounds, 1/(γH).
        Contradiction {
            printed: libm::pow(epsilon, -2.0 / 3.0),
            holds: 1.0 / (step * quartic.min(cubic)),
        }
    }),
    ("weights-at-2", || limit_by_weights(2.0)),
    ("weights-at-10", || limit_by_weights(10.0)),
    // F(θ) = −θ²/2 is 1-smooth, and its gradients at 1 and at 0 are −1 and 0.
    ("cocoercivity", || {
        let apart: f64 = -1.0 - 0.0;
        Contradiction { printed: apart, holds: apart * apart }
    }),
    ("variance-at-the-solution", || {
        let noise: f64 = 2.0;
        // E^{1/p} ε^{2p} = 4 for every p.
        let tau = libm::sqrt(noise * noise);
        Contradiction { printed: tau, holds: 0.5 * (noise * noise + noise * noise) }
    }),
    ("identity-as-printed", || proposition_2(1.0)),
    ("identity-with-factor", || proposition_2(-0.1)),
    // The term of Lemma 8 with every f_c multiplied by 2 and γ divided by 2, as a multiple of that
    // before. The left side does not change.
    ("scaling", || {
        let printed = term_of_lemma_8(0.01 / 2.0, 2.0, 2.0) / term_of_lemma_8(0.01, 1.0, 1.0);
        let holds = corrected_term_of_lemma_8(0.01 / 2.0, 2.0, 2.0, 3.0 * 2.0)
            / corrected_term_of_lemma_8(0.01, 1.0, 1.0, 3.0);
        Contradiction { printed, holds }
    }),
    ("least-or-largest", || {
        let a: f64 = 1.0;
        let b: f64 = 0.0;
        Contradiction { printed: 2.0 * libm::pow(a.min(b), 2.0), holds: a * a + b * b }
    }),
    ("last-term-of-lemma-5", || {
        let (step, l, tau) = LEMMA_5;
        let stated = step * tau * tau / (l * (1.0 - step * l));
        Contradiction { printed: 2.0 * stated, holds: stated }
    }),
    // The coefficient of γ³a²bc² in (a² − 2γb + γ²c²)³ is 6 · (−2); with |b| ≤ ac that of −8γ³b³
    // is added to it.
    ("sum-of-lemma-6", || Contradiction {
        printed: sum_of_lemma_6(6.0 + 8.0, 0.125),
        holds: sum_of_lemma_6(6.0 * 2.0 + 8.0, 0.125),
    }),
    ("step-of-lemma-7", || Contradiction { printed: 1.0 - 0.1, holds: left_of_lemma_7(1.0) }),
    // N⁻¹ Σ_c (1 − Γ_c)(θ_c* − θ*), and as the sum of the proof has it.
    ("neumann-series", || {
        let step: f64 = 0.1;
        let steps: i32 = 3;
        let series = [0, 1].map(|c| {
            let a = PAIR.curvatures[c];
            let sum =
                (0..=steps).fold(0.0, |sum, h| sum + step * contraction(step, a, steps - h) * a);
            sum * (PAIR.optimum() - PAIR.optima[c])
        });
        let exact = [0, 1].map(|c| {
            (1.0 - contraction(step, PAIR.curvatures[c], steps)) * (PAIR.optima[c] - PAIR.optimum())
        });
        Contradiction { printed: 0.5 * (series[0] + series[1]), holds: 0.5 * (exact[0] + exact[1]) }
    }),
    ("sum-of-powers", || {
        let step = 0.1;
        let steps = 3;
        let sum = (0..steps).fold(0.0, |sum, h| sum + libm::pow(1.0 - step, f64::from(h)));
        Contradiction { printed: 1.0 - libm::pow(1.0 - step, f64::from(steps)), holds: -step * sum }
    }),
    // The variance of FedAvg with half of the clients of each kind and unit noise, and its squared bias.
    ("speed-up", || {
        let (step, steps, clients) = SPEED_UP;
        let noise =
            mean_over_pair(|a| (0..steps).fold(0.0, |sum, h| sum + contraction(step, a, 2 * h)));
        let contraction = mean_over_pair(|a| contraction(step, a, steps));
        let variance = step * step * noise / clients / (1.0 - contraction * contraction);
        let bias = PAIR.closed_bias(step, steps.unsigned_abs());
        Contradiction { printed: variance, holds: bias * bias }
    }),
    ("third-derivative-at-0.01", || Contradiction {
        printed: stationary_bias(2.2, 0.04),
        holds: stationary_bias(2.2, 0.01),
    }),
    ("third-derivative-at-0.0025", || Contradiction {
        printed: stationary_bias(2.2, 0.04),
        holds: stationary_bias(2.2, 0.0025),
    }),
    // The limit of FedAvg's bias for N → ∞, over γ^(3/2).
    ("many-equal-clients", || Contradiction {
        printed: 0.0,
        holds: ManyClients::bias(0.01, 10, 1),
    }),
    ("sharpness-at-3", || sharpness(3.0)),
    ("sharpness-at-1.2", || sharpness(1.2)),
    // The two sides of the last display of Lemma 3 for f(x) = x²/2 without noise, γ = ½.
    ("display-of-lemma-3", || {
        let step: f64 = 0.5;
        Contradiction {
            printed: (1.0 - step) - 2.0 * step * (1.0 - 0.5 * step),
            holds: (1.0 - step) * (1.0 - step),
        }
    }),
    ("covariance-of-quadratics-at-0.01", || Contradiction {
        printed: covariance_of_quadratics(0.04),
        holds: covariance_of_quadratics(0.01),
    }),
    ("covariance-of-quadratics-at-0.0025", || Contradiction {
        printed: covariance_of_quadratics(0.04),
        holds: covariance_of_quadratics(0.0025),
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errata::tests::{assert_each, numbers};

    /// The corrected expressions give what the iteration gives.
    #[test]
    fn corrections_equal_the_fixed_point() {
        let step = 0.1;
        let steps = 3;
        let exact = PAIR.bias(step, steps);
        assert!((PAIR.closed_bias(step, steps) - exact).abs() < 1e-13);
        // Proposition 2 corrected: −γ, and the sum over h = 0..H−1 with H − 1 − h factors.
        let sum = |a: f64| (0..3).map(|h| (1.0 - step * a).powi(2 - h)).sum::<f64>();
        let corrected = PAIR.mean_over(step, steps, |a| step * a * sum(a));
        assert!((corrected - exact).abs() < 1e-13);
        let [literal, restored] = [1.0, -step].map(|factor| proposition_2(factor).printed);
        assert!((literal + 0.15 / 0.35).abs() < 1e-12, "{literal}");
        assert!((restored / exact - 1.0).abs() > 0.4, "{restored} {exact}");
        assert!((numbers("theorem-2").printed + exact).abs() < 1e-13);
        let Contradiction { printed, holds } = numbers("sign-of-heterogeneity");
        assert!((printed / holds + 1.0).abs() < 5e-3, "{printed} {holds}");
    }

    /// The printed lines fail and the corrected ones hold.
    #[test]
    fn steps_of_proofs_fail_as_printed() {
        assert_each(&[
            // By a third, and the whole holds.
            ("halved-bound", |_, holds| (holds - 2.0 / 3.0).abs() < 1e-3),
            ("exponents", |printed, holds| (holds - 100.0).abs() < 1e-6 && printed > 400.0),
            ("series-over-rounds", |printed, holds| {
                holds > printed && holds <= printed / (1.0 - libm::exp(-1.0))
            }),
            ("cocoercivity", |printed, holds| printed < 0.0 && holds > 0.0),
            ("sum-of-lemma-6", |printed, holds| printed <= 5.0 && holds > 5.0),
            ("step-of-lemma-7", |printed, holds| holds > printed + 0.09),
            ("scaling", |printed, holds| (printed, holds) == (0.125, 1.0)),
            ("sum-of-powers", |printed, holds| (printed + holds).abs() < 1e-15),
            ("least-or-largest", |_, holds| holds <= 2.0 * 1.0_f64.max(0.0).powi(2)),
            ("speed-up", |printed, holds| holds > 500.0 * printed),
            ("display-of-lemma-3", |printed, holds| printed < 0.0 && holds <= 0.5 - 0.25),
        ]);
        assert!(sum_of_lemma_6(20.0, 1.0 / 9.0) <= 5.0);
        assert!(sum_of_lemma_6(20.0, 0.1203) <= 5.0 && sum_of_lemma_6(20.0, 0.1204) > 5.0);
        // The coefficient of γ³a²bc² in the cube, by the values at b = ±1 with a = c = 1.
        let value = |b: f64, step: f64| (1.0 - 2.0 * step * b + step * step).powi(3);
        let odd = |step: f64| (value(1.0, step) - value(-1.0, step)) / 2.0;
        // −6γ + (−12 − 8)γ³ − 6γ⁵.
        let rest = odd(0.5) + 6.0 * 0.5 + 6.0 * 0.5_f64.powi(5);
        assert!((rest / 0.5_f64.powi(3) + 20.0).abs() < 1e-12, "{rest}");
        assert!(left_of_lemma_7(0.5) <= 1.0 - 0.5 * 0.1 + 1e-15);
        // The variance of the speed-up, to first order.
        let (step, _, clients) = SPEED_UP;
        let ratio = numbers("speed-up").printed / (step / clients / 4.0);
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }

    /// Lemma 5 in its instance: the limit of E x² is below what it states.
    #[test]
    fn lemma_5_holds_as_stated() {
        let (step, l, tau) = LEMMA_5;
        let exact = step * step * tau * tau / (1.0 - (1.0 - step * l).powi(2));
        assert!(exact <= numbers("last-term-of-lemma-5").holds, "{exact}");
        // 2γ²Hτ²/(1 − (1 − x)^H) over γτ²/(μ(1 − γL)) with x = 2γμ(1 − γL), γμH = 1, γL → 0.
        let ratio = 2.0 * 2.0 / (1.0 - libm::exp(-2.0)) / 2.0;
        assert!((ratio - 2.31).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn the_series_has_as_many_terms_as_steps() {
        let Contradiction { printed, holds } = numbers("neumann-series");
        assert!(printed < 0.0 && holds > 0.0, "{printed} {holds}");
        let sum = |a: f64| (1..=3).map(|h| 0.1 * (1.0 - 0.1 * a).powi(3 - h) * a).sum::<f64>();
        let corrected = 0.5 * (sum(1.0) * 1.5 + sum(3.0) * -0.5);
        assert!((corrected - holds).abs() < 1e-15, "{corrected}");
    }

    #[test]
    fn the_bound_of_proposition_2_is_not_sharp() {
        // ½|b_h|/(Lζ_1/μ) ≤ ζ_2/(2L) ≤ (L − μ)/(4L).
        for steep in [1.2, 3.0, 1000.0] {
            let ratio = sharpness(steep).holds;
            assert!(ratio > 0.0 && ratio <= 0.25 * (1.0 - 1.0 / steep), "{steep}: {ratio}");
        }
    }
}
