//! Errors in RR.

use super::stationary::{ManyClients, covariance_of_quadratics, stationary_bias};
use super::{CounterexampleNumbers, NumbersById};

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

    /// N⁻¹ Σ (1 − Γ_c)(θ_c* − θ*) / (1 − Γ̄), which is the bias.
    fn closed_bias(&self, step: f64, steps: u32) -> f64 {
        self.mean_over(step, steps, |a| 1.0 - libm::pow(1.0 - step * a, f64::from(steps)))
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

/// The printed identity, literally: the products (3) have H − 1 − h factors, none for h ≥ H − 1.
fn printed_identity(step: f64, steps: u32) -> f64 {
    let power = |a: f64, h: u32| libm::pow(1.0 - step * a, f64::from(h));
    let sum = |a: f64| (1..=steps).map(|h| power(a, (steps - 1).saturating_sub(h))).sum::<f64>();
    let gradient = |c: usize| PAIR.curvatures[c] * (PAIR.optimum() - PAIR.optima[c]);
    let mean = |term: &dyn Fn(usize) -> f64| 0.5 * (term(0) + term(1));
    mean(&|c| sum(PAIR.curvatures[c]) * gradient(c))
        / (1.0 - mean(&|c| power(PAIR.curvatures[c], steps - 1)))
}

fn proposition_2(factor: f64) -> CounterexampleNumbers {
    let (step, steps) = (0.1, 3);
    CounterexampleNumbers {
        printed: factor * printed_identity(step, steps),
        holds: PAIR.bias(step, steps),
    }
}

fn theorem_2() -> CounterexampleNumbers {
    let (step, steps) = (0.1, 3);
    let weight = |a: f64| libm::pow(1.0 - step * a, f64::from(steps)) - 1.0;
    CounterexampleNumbers {
        printed: PAIR.mean_over(step, steps, weight),
        holds: PAIR.bias(step, steps),
    }
}

/// a = 1 ± δ and gradients ± g at θ*, at H = 2 and γ = ½.
fn halved_bound() -> CounterexampleNumbers {
    let (delta, gradient, step) = (1e-4, 1.0, 0.5);
    let curvatures = [1.0 + delta, 1.0 - delta];
    // Gradients +g and −g at θ* = 0.
    let pair =
        TwoClients { curvatures, optima: [-gradient / curvatures[0], gradient / curvatures[1]] };
    let bound = step * delta * gradient / (1.0 - delta);
    CounterexampleNumbers { printed: 0.5, holds: pair.bias(step, 2).abs() / bound }
}

fn sign_of_heterogeneity() -> CounterexampleNumbers {
    CounterexampleNumbers { printed: -PAIR.first_order(1e-3, 3), holds: PAIR.bias(1e-3, 3) }
}

/// θ* = 1 without heterogeneity and noise: every run ends at 1.
fn weights(steps: f64) -> CounterexampleNumbers {
    CounterexampleNumbers { printed: (2.0 * steps - 1.0) / (steps - 1.0) - 1.0, holds: 1.0 }
}

/// With γ = ε² the three conditions of (65) on H at ε = 10⁻⁴.
fn exponents() -> CounterexampleNumbers {
    let epsilon: f64 = 1e-4;
    let step = epsilon * epsilon;
    // γ⁴H⁴ = ε² and γ³H² = ε².
    let quartic = libm::pow(epsilon, 0.5) / step;
    let cubic = libm::sqrt(epsilon * epsilon / (step * step * step));
    let rounds = |steps: f64| 1.0 / (step * steps);
    CounterexampleNumbers {
        printed: libm::pow(epsilon, -2.0 / 3.0),
        holds: rounds(quartic.min(cubic)),
    }
}

/// Where γμH = 1: Σ_t (1 − γμ)^{Ht} against 1/(γμH).
fn series_over_rounds() -> CounterexampleNumbers {
    let (x, steps): (f64, f64) = (0.1, 10.0);
    CounterexampleNumbers {
        printed: 1.0 / (x * steps),
        holds: 1.0 / (1.0 - libm::pow(1.0 - x, steps)),
    }
}

/// F(θ) = −θ²/2 is 1-smooth.
fn cocoercivity() -> CounterexampleNumbers {
    let gradient = |theta: f64| -theta;
    let apart = gradient(1.0) - gradient(0.0);
    CounterexampleNumbers { printed: apart, holds: apart * apart }
}

fn variance_at_the_solution() -> CounterexampleNumbers {
    let noise: f64 = 2.0;
    // E^{1/p} ε^{2p} = 4 for every p.
    let tau = libm::sqrt(noise * noise);
    CounterexampleNumbers { printed: tau, holds: 0.5 * (noise * noise + noise * noise) }
}

/// The term of Lemma 8 with every f_c multiplied by 2 and γ divided by 2, as a multiple of that
/// before. The left side does not change.
fn scaling() -> CounterexampleNumbers {
    let printed = |step: f64, zeta: f64, mu: f64, _: f64| step * step * zeta / (mu * mu);
    let holds = |step: f64, zeta: f64, mu: f64, l: f64| libm::pow(step * l * zeta / mu, 2.0);
    let factor = |term: &dyn Fn(f64, f64, f64, f64) -> f64| {
        term(0.01 / 2.0, 1.0 * 2.0, 1.0 * 2.0, 3.0 * 2.0) / term(0.01, 1.0, 1.0, 3.0)
    };
    CounterexampleNumbers { printed: factor(&printed), holds: factor(&holds) }
}

fn least_or_largest() -> CounterexampleNumbers {
    let (a, b): (f64, f64) = (1.0, 0.0);
    CounterexampleNumbers { printed: 2.0 * libm::pow(a.min(b), 2.0), holds: a * a + b * b }
}

/// (γ, L = μ, τ) of f(x) = x²/2 with additive noise, H = 1.
const LEMMA_5: (f64, f64, f64) = (0.5, 1.0, 1.0);

fn last_term_of_lemma_5() -> CounterexampleNumbers {
    let (step, l, tau) = LEMMA_5;
    let stated = step * tau * tau / (l * (1.0 - step * l));
    CounterexampleNumbers { printed: 2.0 * stated, holds: stated }
}

/// What the coefficients of (22) sum to at γL = x, of which the lemma needs at most 5, with the
/// coefficient of γ³a³c³.
fn coefficients(cubic: f64, x: f64) -> f64 {
    let terms = [2.0 * 15.0, 4.0 * cubic, 8.0 * 15.0, 16.0 * 6.0, 32.0];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) * x)
}

/// The coefficient of γ³a²bc² in (a² − 2γb + γ²c²)³ is 6 · (−2); with |b| ≤ ac that of −8γ³b³
/// is added to it.
fn sum_of_lemma_6() -> CounterexampleNumbers {
    CounterexampleNumbers {
        printed: coefficients(6.0 + 8.0, 0.125),
        holds: coefficients(6.0 * 2.0 + 8.0, 0.125),
    }
}

/// The factor of ‖V − θ*‖² on the left for f(x; Z) = Lx²/2 with probability 0.1 and 0 otherwise.
fn left_of_lemma_7(step_times_l: f64) -> f64 {
    let probability = 0.1;
    1.0 + 2.0 * step_times_l * step_times_l * probability - 2.0 * step_times_l * probability
}

fn step_of_lemma_7() -> CounterexampleNumbers {
    CounterexampleNumbers { printed: 1.0 - 0.1, holds: left_of_lemma_7(1.0) }
}

/// N⁻¹ Σ_c (1 − Γ_c)(θ_c* − θ*), and as the sum of the proof has it.
fn neumann_series() -> CounterexampleNumbers {
    let (step, steps): (f64, i32) = (0.1, 3);
    let power = |a: f64, h: i32| libm::pow(1.0 - step * a, f64::from(h));
    let series = |c: usize| {
        let a = PAIR.curvatures[c];
        let sum = (0..=steps).fold(0.0, |sum, h| sum + step * power(a, steps - h) * a);
        sum * (PAIR.optimum() - PAIR.optima[c])
    };
    let exact =
        |c: usize| (1.0 - power(PAIR.curvatures[c], steps)) * (PAIR.optima[c] - PAIR.optimum());
    CounterexampleNumbers {
        printed: 0.5 * (series(0) + series(1)),
        holds: 0.5 * (exact(0) + exact(1)),
    }
}

fn sum_of_powers() -> CounterexampleNumbers {
    let (step, steps) = (0.1, 3);
    let sum = (0..steps).fold(0.0, |sum, h| sum + libm::pow(1.0 - step, f64::from(h)));
    CounterexampleNumbers {
        printed: 1.0 - libm::pow(1.0 - step, f64::from(steps)),
        holds: -step * sum,
    }
}

/// γ, H and N of the instance of the remark after Theorem 4, with γH = 1/N.
const SPEED_UP: (f64, i32, f64) = (1e-4, 1000, 10.0);

/// The variance of FedAvg with half of the clients of each kind and unit noise, and its squared bias.
fn speed_up() -> CounterexampleNumbers {
    let (step, steps, clients) = SPEED_UP;
    let power = |a: f64, h: i32| libm::pow(1.0 - step * a, f64::from(h));
    let mean =
        |term: &dyn Fn(f64) -> f64| 0.5 * PAIR.curvatures.iter().fold(0.0, |sum, a| sum + term(*a));
    let noise = mean(&|a| (0..steps).fold(0.0, |sum, h| sum + power(a, 2 * h)));
    let contraction = mean(&|a| power(a, steps));
    let variance = step * step * noise / clients / (1.0 - contraction * contraction);
    let bias = PAIR.closed_bias(step, steps.unsigned_abs());
    CounterexampleNumbers { printed: variance, holds: bias * bias }
}

fn third_derivative(step: f64) -> CounterexampleNumbers {
    CounterexampleNumbers { printed: stationary_bias(2.2, 0.04), holds: stationary_bias(2.2, step) }
}

fn remainder(step: f64) -> CounterexampleNumbers {
    let [printed, holds] = [0.04, step].map(covariance_of_quadratics);
    CounterexampleNumbers { printed, holds }
}

/// The limit of FedAvg's bias for N → ∞, over γ^(3/2).
fn many_equal_clients() -> CounterexampleNumbers {
    CounterexampleNumbers { printed: 0.0, holds: ManyClients::bias(0.01, 10, 1) }
}

/// The bias over the bound of Proposition 2, γ(H − 1)Lζ_1/μ, for curvatures 1 and `steep`, θ_c* = 1 and −1.
fn sharpness(steep: f64) -> CounterexampleNumbers {
    let pair = TwoClients { curvatures: [1.0, steep], optima: [1.0, -1.0] };
    let (step, steps): (f64, u32) = (1e-5, 10);
    // Both gradients at θ* have the size ζ_1.
    let zeta = (pair.optimum() - pair.optima[0]).abs();
    let bound = step * f64::from(steps - 1) * steep * zeta;
    CounterexampleNumbers { printed: 1.0, holds: pair.closed_bias(step, steps).abs() / bound }
}

/// The two sides of the last display of Lemma 3 for f(x) = x²/2 without noise, γ = ½.
fn display_of_lemma_3() -> CounterexampleNumbers {
    let step: f64 = 0.5;
    CounterexampleNumbers {
        printed: (1.0 - step) - 2.0 * step * (1.0 - 0.5 * step),
        holds: (1.0 - step) * (1.0 - step),
    }
}

/// The numbers of the counterexamples, by id.
pub const NUMBERS: &[NumbersById] = &[
    ("sign-of-heterogeneity", sign_of_heterogeneity),
    ("theorem-2", theorem_2),
    ("halved-bound", halved_bound),
    ("series-over-rounds", series_over_rounds),
    ("exponents", exponents),
    ("weights-at-2", || weights(2.0)),
    ("weights-at-10", || weights(10.0)),
    ("cocoercivity", cocoercivity),
    ("variance-at-the-solution", variance_at_the_solution),
    ("identity-as-printed", || proposition_2(1.0)),
    ("identity-with-factor", || proposition_2(-0.1)),
    ("scaling", scaling),
    ("least-or-largest", least_or_largest),
    ("last-term-of-lemma-5", last_term_of_lemma_5),
    ("sum-of-lemma-6", sum_of_lemma_6),
    ("step-of-lemma-7", step_of_lemma_7),
    ("neumann-series", neumann_series),
    ("sum-of-powers", sum_of_powers),
    ("speed-up", speed_up),
    ("third-derivative-at-0.01", || third_derivative(0.01)),
    ("third-derivative-at-0.0025", || third_derivative(0.0025)),
    ("many-equal-clients", many_equal_clients),
    ("sharpness-at-3", || sharpness(3.0)),
    ("sharpness-at-1.2", || sharpness(1.2)),
    ("display-of-lemma-3", display_of_lemma_3),
    ("covariance-of-quadratics-at-0.01", || remainder(0.01)),
    ("covariance-of-quadratics-at-0.0025", || remainder(0.0025)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The corrected expressions give what the iteration gives.
    #[test]
    fn corrections_equal_the_fixed_point() {
        let (step, steps) = (0.1, 3);
        let exact = PAIR.bias(step, steps);
        assert!((PAIR.closed_bias(step, steps) - exact).abs() < 1e-13);
        // Proposition 2 corrected: −γ, and the sum over h = 0..H−1 with H − 1 − h factors.
        let sum = |a: f64| (0..3).map(|h| (1.0 - step * a).powi(2 - h)).sum::<f64>();
        let mended = PAIR.mean_over(step, steps, |a| step * a * sum(a));
        assert!((mended - exact).abs() < 1e-13);
        let [literal, restored] = [1.0, -step].map(|factor| proposition_2(factor).printed);
        assert!((literal + 0.15 / 0.35).abs() < 1e-12, "{literal}");
        assert!((restored / exact - 1.0).abs() > 0.4, "{restored} {exact}");
        assert!((theorem_2().printed + exact).abs() < 1e-13);
        let small = sign_of_heterogeneity();
        assert!((small.printed / small.holds + 1.0).abs() < 5e-3, "{small:?}");
    }

    /// The printed lines fail and the corrected ones hold.
    #[test]
    fn steps_of_proofs_fail_as_printed() {
        let ratio = halved_bound().holds;
        assert!((ratio - 2.0 / 3.0).abs() < 1e-3, "by a third, and the whole holds: {ratio}");
        let smaller = exponents();
        assert!((smaller.holds - 100.0).abs() < 1e-6 && smaller.printed > 400.0, "{smaller:?}");
        let over = series_over_rounds();
        assert!(over.holds > over.printed && over.holds <= over.printed / (1.0 - libm::exp(-1.0)));
        let convex = cocoercivity();
        assert!(convex.printed < 0.0 && convex.holds > 0.0, "{convex:?}");
        let cube = sum_of_lemma_6();
        assert!(cube.printed <= 5.0 && cube.holds > 5.0, "{cube:?}");
        assert!(coefficients(20.0, 1.0 / 9.0) <= 5.0);
        assert!(coefficients(20.0, 0.1203) <= 5.0 && coefficients(20.0, 0.1204) > 5.0);
        // The coefficient of γ³a²bc² in the cube, by the values at b = ±1 with a = c = 1.
        let value = |b: f64, step: f64| (1.0 - 2.0 * step * b + step * step).powi(3);
        let odd = |step: f64| (value(1.0, step) - value(-1.0, step)) / 2.0;
        // −6γ + (−12 − 8)γ³ − 6γ⁵.
        let rest = odd(0.5) + 6.0 * 0.5 + 6.0 * 0.5_f64.powi(5);
        assert!((rest / 0.5_f64.powi(3) + 20.0).abs() < 1e-12, "{rest}");
        let local = step_of_lemma_7();
        assert!(local.holds > local.printed + 0.09, "{local:?}");
        assert!(left_of_lemma_7(0.5) <= 1.0 - 0.5 * 0.1 + 1e-15);
        let scale = scaling();
        assert_eq!((scale.printed, scale.holds), (0.125, 1.0));
        let powers = sum_of_powers();
        assert!((powers.printed + powers.holds).abs() < 1e-15);
        assert!(least_or_largest().holds <= 2.0 * 1.0_f64.max(0.0).powi(2));
    }

    /// Lemma 5 in its instance: the limit of E x² is below what it states.
    #[test]
    fn lemma_5_holds_as_stated() {
        let (step, l, tau) = LEMMA_5;
        let exact = step * step * tau * tau / (1.0 - (1.0 - step * l).powi(2));
        assert!(exact <= last_term_of_lemma_5().holds, "{exact}");
        // 2γ²Hτ²/(1 − (1 − x)^H) over γτ²/(μ(1 − γL)) with x = 2γμ(1 − γL), γμH = 1, γL → 0.
        let ratio = 2.0 * 2.0 / (1.0 - libm::exp(-2.0)) / 2.0;
        assert!((ratio - 2.31).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn the_series_has_as_many_terms_as_steps() {
        let found = neumann_series();
        assert!(found.printed < 0.0 && found.holds > 0.0, "{found:?}");
        let sum = |a: f64| (1..=3).map(|h| 0.1 * (1.0 - 0.1 * a).powi(3 - h) * a).sum::<f64>();
        let corrected = 0.5 * (sum(1.0) * 1.5 + sum(3.0) * -0.5);
        assert!((corrected - found.holds).abs() < 1e-15, "{corrected}");
    }

    #[test]
    fn bias_dominates_where_the_path_is_one_over_the_clients() {
        let found = speed_up();
        assert!(found.holds > 500.0 * found.printed, "{found:?}");
        let (step, _, clients) = SPEED_UP;
        assert!((found.printed / (step / clients / 4.0) - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn the_bound_of_proposition_2_is_not_sharp() {
        // ½|b_h|/(Lζ_1/μ) ≤ ζ_2/(2L) ≤ (L − μ)/(4L).
        for steep in [1.2, 3.0, 1000.0] {
            let ratio = sharpness(steep).holds;
            assert!(ratio > 0.0 && ratio <= 0.25 * (1.0 - 1.0 / steep), "{steep}: {ratio}");
        }
        let lemma = display_of_lemma_3();
        assert!(lemma.printed < 0.0 && lemma.holds <= 0.5 - 0.25, "{lemma:?}");
    }
}
