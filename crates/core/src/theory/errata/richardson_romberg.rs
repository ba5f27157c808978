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

/// The printed identity, literally: the products (3) have H − 1 − h factors, none for h ≥ H − 1.
fn printed_identity(step: f64, steps: u32) -> f64 {
    let power = |a: f64, h: u32| libm::pow(1.0 - step * a, f64::from(h));
    let sum = |a: f64| (1..=steps).map(|h| power(a, (steps - 1).saturating_sub(h))).sum::<f64>();
    let gradient = |c: usize| PAIR.curvatures[c] * (PAIR.optimum() - PAIR.optima[c]);
    let mean = |term: &dyn Fn(usize) -> f64| 0.5 * (term(0) + term(1));
    mean(&|c| sum(PAIR.curvatures[c]) * gradient(c))
        / (1.0 - mean(&|c| power(PAIR.curvatures[c], steps - 1)))
}

fn proposition_2() -> Vec<Counterexample> {
    let (step, steps) = (0.1, 3);
    let (printed, holds) = (printed_identity(step, steps), PAIR.bias(step, steps));
    let what = "bias of two quadratic functions, a = 1 and 3, θ_c* = 1 and −1, γ = 0.1, H = 3";
    let restored = "the same with the factor −γ alone restored";
    vec![
        Counterexample { what, printed, holds },
        Counterexample { what: restored, printed: -step * printed, holds },
    ]
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

/// Where γμH = 1: Σ_t (1 − γμ)^{Ht} against 1/(γμH).
fn series_over_rounds() -> Vec<Counterexample> {
    let (x, steps): (f64, f64) = (0.1, 10.0);
    vec![Counterexample {
        what: "Σ_t (1 − x)^(Ht) at x = 0.1, H = 10, against 1/(xH)",
        printed: 1.0 / (x * steps),
        holds: 1.0 / (1.0 - libm::pow(1.0 - x, steps)),
    }]
}

/// The largest γL for which both runs meet the condition of Theorem 4 of the second version.
fn largest_steps() -> Vec<Counterexample> {
    let single = 1.0 / 45.0;
    vec![Counterexample {
        what: "the largest γL of Theorem 5 (second version) for which the run with step size 2γ meets 2γL ≤ 1/45 too",
        printed: single,
        holds: single / 2.0,
    }]
}

/// F(θ) = −θ²/2 is 1-smooth.
fn cocoercivity() -> Vec<Counterexample> {
    let gradient = |theta: f64| -theta;
    let apart = gradient(1.0) - gradient(0.0);
    vec![Counterexample {
        what: "(∇F(1) − ∇F(0))² for F(θ) = −θ²/2, which is 1-smooth, against L(1 − 0)(∇F(1) − ∇F(0)) with L = 1",
        printed: apart,
        holds: apart * apart,
    }]
}

fn variance_at_the_solution() -> Vec<Counterexample> {
    let noise: f64 = 2.0;
    // E^{1/p} ε^{2p} = 4 for every p.
    let tau = libm::sqrt(noise * noise);
    vec![Counterexample {
        what: "E ε² for ε = ±2 with probability ½ each, for which τ = 2 is the smallest of A3, against the bound",
        printed: tau,
        holds: 0.5 * (noise * noise + noise * noise),
    }]
}

/// The term of Lemma 8 with every f_c multiplied by 2 and γ divided by 2, as a multiple of that
/// before. The left side does not change.
fn scaling() -> Vec<Counterexample> {
    let printed = |step: f64, zeta: f64, mu: f64, _: f64| step * step * zeta / (mu * mu);
    let holds = |step: f64, zeta: f64, mu: f64, l: f64| libm::pow(step * l * zeta / mu, 2.0);
    let factor = |term: &dyn Fn(f64, f64, f64, f64) -> f64| {
        term(0.01 / 2.0, 1.0 * 2.0, 1.0 * 2.0, 3.0 * 2.0) / term(0.01, 1.0, 1.0, 3.0)
    };
    vec![Counterexample {
        what: "factor of the second term of Lemma 8 if every f_c is multiplied by 2 and γ divided by 2, which leaves all iterates as they are",
        printed: factor(&printed),
        holds: factor(&holds),
    }]
}

fn least_or_largest() -> Vec<Counterexample> {
    let (a, b): (f64, f64) = (1.0, 0.0);
    vec![Counterexample {
        what: "a² + b² at a = 1, b = 0, against 2 min(a, b)²",
        printed: 2.0 * libm::pow(a.min(b), 2.0),
        holds: a * a + b * b,
    }]
}

/// (γ, L = μ, τ) of f(x) = x²/2 with additive noise, H = 1.
const LEMMA_5: (f64, f64, f64) = (0.5, 1.0, 1.0);

fn last_term_of_lemma_5() -> Vec<Counterexample> {
    let (step, l, tau) = LEMMA_5;
    let stated = step * tau * tau / (l * (1.0 - step * l));
    vec![Counterexample {
        what: "the last term for f(x) = x²/2, τ = 1, γ = ½",
        printed: 2.0 * stated,
        holds: stated,
    }]
}

/// What the coefficients of (22) sum to at γL = x, of which the lemma needs at most 5, with the
/// coefficient of γ³a³c³.
fn coefficients(cubic: f64, x: f64) -> f64 {
    let terms = [2.0 * 15.0, 4.0 * cubic, 8.0 * 15.0, 16.0 * 6.0, 32.0];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) * x)
}

/// The coefficient of γ³a²bc² in (a² − 2γb + γ²c²)³ is 6 · (−2); with |b| ≤ ac that of −8γ³b³
/// is added to it.
fn sum_of_lemma_6() -> Vec<Counterexample> {
    vec![Counterexample {
        what: "the sum of the coefficients of (22) over γ at γL = 1/8, which must be at most 5",
        printed: coefficients(6.0 + 8.0, 0.125),
        holds: coefficients(6.0 * 2.0 + 8.0, 0.125),
    }]
}

/// The factor of ‖V − θ*‖² on the left for f(x; Z) = Lx²/2 with probability 0.1 and 0 otherwise.
fn left_of_lemma_7(step_times_l: f64) -> f64 {
    let probability = 0.1;
    1.0 + 2.0 * step_times_l * step_times_l * probability - 2.0 * step_times_l * probability
}

fn step_of_lemma_7() -> Vec<Counterexample> {
    vec![Counterexample {
        what: "the factor of ‖V − θ*‖² at γ = 1/L for f(x; Z) = Lx²/2 with probability 0.1 and 0 otherwise, against 1 − γμ",
        printed: 1.0 - 0.1,
        holds: left_of_lemma_7(1.0),
    }]
}

/// N⁻¹ Σ_c (1 − Γ_c)(θ_c* − θ*), and as the sum of the proof has it.
fn neumann_series() -> Vec<Counterexample> {
    let (step, steps): (f64, i32) = (0.1, 3);
    let power = |a: f64, h: i32| libm::pow(1.0 - step * a, f64::from(h));
    let series = |c: usize| {
        let a = PAIR.curvatures[c];
        let sum = (0..=steps).fold(0.0, |sum, h| sum + step * power(a, steps - h) * a);
        sum * (PAIR.optimum() - PAIR.optima[c])
    };
    let exact =
        |c: usize| (1.0 - power(PAIR.curvatures[c], steps)) * (PAIR.optima[c] - PAIR.optimum());
    vec![Counterexample {
        what: "N⁻¹ Σ_c (1 − Γ_c)(θ_c* − θ*) for two quadratic functions, a = 1 and 3, θ_c* = 1 and −1, γ = 0.1, H = 3",
        printed: 0.5 * (series(0) + series(1)),
        holds: 0.5 * (exact(0) + exact(1)),
    }]
}

fn sum_of_powers() -> Vec<Counterexample> {
    let (step, steps) = (0.1, 3);
    let sum = (0..steps).fold(0.0, |sum, h| sum + libm::pow(1.0 - step, f64::from(h)));
    vec![Counterexample {
        what: "−γ Σ_h Γ_c^(H−h−1) for f_c(x) = x²/2, γ = 0.1, H = 3",
        printed: 1.0 - libm::pow(1.0 - step, f64::from(steps)),
        holds: -step * sum,
    }]
}

fn sums_over_steps() -> Vec<Counterexample> {
    let steps = 3;
    let sum = |range: std::ops::RangeInclusive<i32>| range.map(|h| steps - h - 1).sum::<i32>();
    vec![Counterexample {
        what: "the sum of H − h − 1 at H = 3: over h = 1..H, and over h = 0..H−1",
        printed: f64::from(sum(1..=steps)),
        holds: f64::from(sum(0..=steps - 1)),
    }]
}

/// γ, H and N of the instance of the remark after Theorem 4, with γH = 1/N.
const SPEED_UP: (f64, i32, f64) = (1e-4, 1000, 10.0);

/// The variance of FedAvg with half of the clients of each kind and unit noise.
fn variance() -> f64 {
    let (step, steps, clients) = SPEED_UP;
    let power = |a: f64, h: i32| libm::pow(1.0 - step * a, f64::from(h));
    let mean =
        |term: &dyn Fn(f64) -> f64| 0.5 * PAIR.curvatures.iter().fold(0.0, |sum, a| sum + term(*a));
    let noise = mean(&|a| (0..steps).fold(0.0, |sum, h| sum + power(a, 2 * h)));
    let contraction = mean(&|a| power(a, steps));
    step * step * noise / clients / (1.0 - contraction * contraction)
}

fn speed_up() -> Vec<Counterexample> {
    let (step, steps, _) = SPEED_UP;
    let gone = |a: f64| 1.0 - libm::pow(1.0 - step * a, f64::from(steps));
    let bias = PAIR.mean_over(step, steps.unsigned_abs(), gone);
    vec![Counterexample {
        what: "squared bias for N = 10 clients, half of them with a = 1, θ_c* = 1 and half with a = 3, θ_c* = −1, unit noise, γ = 10⁻⁴, H = 1000, so that γH = 1/N; against the variance, which a linear speed-up asks to dominate",
        printed: variance(),
        holds: bias * bias,
    }]
}

/// The errors, by where they stand.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        source: "RR",
        place: "Theorems 3 and 4, Table 1 (first version)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "The stochasticity bias is “(γ/2N) b_s” with “b_s ≜ ∇²f(θ*)⁻¹∇³f(θ*)𝐀C(θ*)”.",
        holds: "It is −(γ/2N) ∇²f(θ*)⁻¹∇³f(θ*)[X], where X solves ∇²f X + X ∇²f = C (X is 𝐀C in the source), as the second version and SLIDES have it. The minus is lost before (30), at “−(γ/2) Σ_h Γ^(H−h−1) = ½ (Id − Γ^H) ∇²f(θ*)⁻¹”.",
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
        check_print: false,
        printed: "The heterogeneity bias of general and of quadratic functions is “−(γ(H − 1)/2N) ∇²f(θ*)⁻¹ Σ_c (∇²f_c(θ*) − ∇²f(θ*)) ∇f_c(θ*)”.",
        holds: "It has the opposite sign, +(γ(H − 1)/2) b_h, as in Theorems 1, 2 and 4 and in the second version.",
        consequence: "The table contradicts the theorems that it summarises; the theorems are right.",
        counterexample: sign_of_heterogeneity,
        claims: &["rr/table1-quadratic#first-order", "rr/table1-quadratic#as-printed"],
    },
    Erratum {
        source: "RR",
        place: "Theorem 2 and Proposition 5 (both versions; Proposition 4 of the first)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "For quadratic functions “θ̄ − θ* = N⁻¹ Σ_c (Id − Γ)⁻¹(Id − Γ_c)(θ* − θ_c*)”.",
        holds: "The last factor is θ_c* − θ*, as the proof has it in the display before “which gives the first part of the result”, and as SCAFFLSA (24) has it.",
        consequence: "The formula as stated has the opposite sign; the bound and the expansion stated in Theorem 2 are not affected.",
        counterexample: theorem_2,
        claims: &["rr/table1-quadratic#exact"],
    },
    Erratum {
        source: "RR",
        place: "Proposition 5, bound (both versions; Proposition 4 of the first)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“‖θ̄ − θ*‖ ≤ γ(H − 1) ζ₁ζ₂/(2μ)”, where Theorem 2 states twice as much.",
        holds: "‖θ̄ − θ*‖ ≤ γ(H − 1) ζ₁ζ₂/μ, the bound of Theorem 2. The proof replaces Σ_t (1 − γμ)^(Ht) by 1/(γμH), but the sum is larger: at γμH = 1 and H = 2 it is 4/3 times as large.",
        consequence: "The bound of the appendix is exceeded by a third; that of the main text stands.",
        counterexample: halved_bound,
        claims: &["rr/theorem2-bound#bound", "rr/theorem2-bound#halved"],
    },
    Erratum {
        source: "RR",
        place: "(14), and the proofs of Lemmas 5, 7 and 8 and of (47) (both versions where present)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "(14) has “γ²LH(H − 1)/(1 − (1 − γμ)^H) N⁻¹ Σ_c ‖∇f_c(θ*)‖ ≤ (γL(H − 1)/μ) N⁻¹ Σ_c ‖∇f_c(θ*)‖”; the others iterate a bound with a factor (1 − x)^H per round and an added term b, and end with b/(xH), x being γμ or a multiple of it.",
        holds: "The limit is b/(1 − (1 − x)^H), and 1 − (1 − x)^H ≤ xH by Bernoulli's inequality, so that the limit is larger, by at most e/(e − 1) = 1.58 for xH ≤ 1. It is the step of the entry on the bound of Proposition 5.",
        consequence: "The other statements survive: (14) because ‖D_c − D‖ ≤ L − μ where the proof has 2L; Lemmas 5 and 7 and (47) if the geometric series is summed over local steps in place of rounds, where the heterogeneity term of Lemma 7 has room, since Σ_h h² ≤ H²(H − 1)/3; Lemma 8 because its β is not specified.",
        counterexample: series_over_rounds,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Theorem 5, communications, and (65), (66) (second version)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "With “γ = O(ε²)”, the condition “γ³H² = O(ε²)” gives “H³ = O(1/ε⁴)”, hence “H = O(1/ε^(4/3))” and “T = O((1/ε^(2/3)) log(1/ε))”.",
        holds: "It gives H² = O(ε⁻⁴). The binding condition is γ⁴H⁴ = O(ε²), so that H = O(ε^(−3/2)) and T = O(ε^(−1/2) log(1/ε)).",
        consequence: "The theorem is true but not sharp: its own conditions allow fewer communications, by a factor of ε^(1/6). The gain over FedAvg that the text below the theorem states is then a power of 1/2 and not of 2/3.",
        counterexample: exponents,
        claims: &["frontier/quadratic#rr-local-steps", "frontier/quadratic#rr-local-steps-printed"],
    },
    Erratum {
        source: "RR",
        place: "Theorem 5 (both versions) and Theorem 6 (second version), the condition on γ",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“γ ≤ 1/(25L) ∧ 1/(2H)” in the first version; “γ ≤ 1/(45L) and γμH ≤ 1” in the second.",
        holds: "The estimator runs FedAvg with the step sizes γ and 2γ, and Theorem 4 and Lemma 8 are used for both. The conditions are γ ≤ 1/(50L) in the first version, whose 1/(2H) is right, and γ ≤ 1/(90L) and γμH ≤ ½ in the second.",
        consequence: "For larger γ the second run is outside the conditions of what the proof uses; that the statement fails there was not found.",
        counterexample: largest_steps,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Remark 1 (both versions)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“ω = ((2H − 1)/(H − 1)) θ^(γ,H) − θ^(2γ,H)”, whose average converges to “((2H − 1)/(H − 1)) θ̄^(γ,H) − θ̄^(γ,2H) = γ b_s/(2N) + O(γ²H² + γ^(3/2)H^(1/2))”.",
        holds: "The weights have the sum H/(H − 1) and not 1, and the limit lacks θ*. With ((2H − 1)/H) θ^(γ,H) − ((H − 1)/H) θ^(γ,2H) the heterogeneity bias cancels to first order, and the limit is θ* + γ b_s/(2N) up to higher orders. The second run has 2H local steps, not the step size 2γ.",
        consequence: "As printed the estimator goes to a multiple of θ*: to 2θ* at H = 2.",
        counterexample: weights,
        claims: &["rr/local-steps#over-steps", "rr/local-steps#over-steps-printed"],
    },
    Erratum {
        source: "RR",
        place: "A1(b) (first version)",
        gravity: Gravity::Remark,
        check_print: false,
        printed: "“F_c^(z) is L-smooth. In particular, for all θ, ϑ, ‖∇F_c^(Z)(θ) − ∇F_c^(Z)(θ)‖² ≤ L⟨θ − ϑ, ∇F_c^(z)(θ) − ∇F_c^(z)(ϑ)⟩.”",
        holds: "The inequality needs a convex F_c^(z), which the second version adds in A1(a). On the left the second θ is ϑ, and Z is z.",
        consequence: "The stochastic results use the inequality; it has to be assumed, or convexity has.",
        counterexample: cocoercivity,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "A3, last sentence (first version)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "“In particular, we have ‖E[ε_c^(Z)(θ*)^(⊗2)]‖ ≤ τ.”",
        holds: "≤ τ², as the second version has it: A3 with p = 1 at θ* gives ‖E ε^(⊗2)‖ ≤ E‖ε‖² ≤ τ², and τ has the unit of a gradient.",
        consequence: "None: the proofs use τ².",
        counterexample: variance_at_the_solution,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Proposition 2, identity (both versions)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“θ̄ − θ* = N⁻¹ Σ_c Σ_(h=1..H) Υ_c^(γ,h) ∇f_c(θ*)”, with F_c^(h+1:H) the product over ℓ = h+1..H−1 and F_c* = F_c^(1:H).",
        holds: "A factor −γ is missing, which the proof has. The sum is over h = 0..H−1, and F_c* has the H factors of ℓ = 0..H−1: as printed it has H − 1.",
        consequence: "The identity as stated has the wrong sign and size. With the factor −γ alone restored, the formula gives γ((H − 2)/2) b_h to first order, hence 0 at H = 2, and I − F* = 0 at H = 1. The bound that follows is not affected, but see the entry on (14).",
        counterexample: proposition_2,
        claims: &["rr/table1-quadratic#identity", "rr/table1-quadratic#identity-printed"],
    },
    Erratum {
        source: "RR",
        place: "Lemma 8 (both versions)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“E^(1/3)[‖θ_t − θ*‖⁶] ≤ (1 − γμ/6)^H E[‖θ_0 − θ*‖⁶]^(1/3) + 6β γ²(H − 1)Hζ₁/μ² + (12βγ/μ)τ²” (γμ/18 in the second version).",
        holds: "The second term is 6βγ²L²(H − 1)Hζ₁²/μ²: the left side is the square of a length, and the factor L², which the proof has in its bound of E[c^k] and Lemma 7 has in its statement, is lost in the definition of Ξ. The exponent of the first term is Ht.",
        consequence: "As printed, no constant β is universal: if every f_c is multiplied by s and γ divided by s, the left side does not change and the printed term is divided by s³. With the exponent H the bound does not fall with t. The orders in γ and H that follow are right, and are all that is used.",
        counterexample: scaling,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Proof of Lemma 8, Ξ (both versions)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“Ξ = min{(γ^(3/2)h/μ^(1/2)) ‖∇f_c(θ*)‖, 12γτ}”, of which a power bounds a sum of the powers of both.",
        holds: "Ξ is a maximum, and its first argument has the factor L: a^k + b^k ≤ 2 max(a, b)^k, and not ≤ 2 min(a, b)^k.",
        consequence: "None for the lemma with its factor L², see there: its last display has the sum of both terms.",
        counterexample: least_or_largest,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Lemma 5, end of the proof, display after (21) (both versions)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "The proof ends with “E[‖θ_t − θ*‖²] ≤ (1 − 2γμ(1 − γL))^(Ht) E[‖θ − θ*‖²] + (2γ/(μ(1 − γL))) τ²”, where the lemma states half of the last term.",
        holds: "The last term is γτ²/(μ(1 − γL)), as the lemma states. (20) is to be summed over the H steps as a geometric series, 2γ²τ² Σ_(h<H) (1 − x)^h = γτ²(1 − (1 − x)^H)/(μ(1 − γL)) with x = 2γμ(1 − γL), in place of the bound 2γ²Hτ² of (21) (4γ²Hτ² in the first version); the sum over the rounds then gives the lemma.",
        consequence: "None for the lemma. From (21) as printed neither constant follows: 2γ²Hτ²/(1 − (1 − x)^H) is up to 2.31 times γτ²/(μ(1 − γL)) where γμH = 1 and γL is small.",
        counterexample: last_term_of_lemma_5,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Lemma 6, (22) (first version)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“−6γ³a²bc²” in the cube of a² − 2γb + γ²c², and so “14γ³a³c³” in (22) and “4 · 14γ³L²” in the sum that is at most 5γ for “γL ≤ 1/8”.",
        holds: "The coefficient is −12, since 6uvw with v = −2γb is −12γ³a²bc², and 14 is 20. The sum is then at most 5γ for γ ≤ 1/(9L), as the second version has it, and not for γ = 1/(8L).",
        consequence: "For 1/(9L) < γ ≤ 1/(8L) this step fails, and with it the proof of Theorem 3 of the first version, which has the condition γ ≤ 1/(8L).",
        counterexample: sum_of_lemma_6,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Lemma 7, condition on γ (first version)",
        gravity: Gravity::Step,
        check_print: false,
        printed: "The lemma has “γ ≤ 1/L”; its proof, after “Finally, we remark that”, has “‖V − θ*‖² + 2E[‖∇F(V) − ∇F(θ*)‖²] − 2γ⟨V − θ*, ∇f(V) − ∇f(θ*)⟩ ≤ (1 − γμ)‖V − θ*‖²”.",
        holds: "The second term is 2γ²E[‖∇F(V) − ∇F(θ*)‖²], and the inequality needs γ ≤ 1/(2L), as the second version has both: the left side is at most (1 − 2γμ(1 − γL))‖V − θ*‖².",
        consequence: "For 1/(2L) < γ ≤ 1/L this step of the proof fails; that the lemma itself fails there was not found. Theorem 4 asks for γ ≤ 1/(25L) and is not affected.",
        counterexample: step_of_lemma_7,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Proofs of Propositions 4 and 5 of the first version, 5 and 6 of the second, after “Using the Neumann series”",
        gravity: Gravity::Step,
        check_print: false,
        printed: "“θ̄ = θ* + Σ_t (Γ)^t N⁻¹ Σ_c Σ_(h=0..H) γ Γ_c^(h+1:H) Ā_c(θ* − θ_c*)”, after a right line with θ_c* − θ*; (28), in the second version (50), lacks the factor Ā_c(θ* − θ_c*).",
        holds: "Id − Γ_c = γ Σ_h Γ_c^(h+1:H) Ā_c, so that the sign is lost: the factor is θ_c* − θ*. The sum is over h = 1..H, since Γ_c^(h+1:H) has H − h factors.",
        consequence: "The proof of Proposition 6 of the second version ends with −(γ(H − 1)/2N), while its statement, with a plus, is right; the first version takes the minus over into Proposition 5 and Table 1. Bounds of norms are not affected.",
        counterexample: neumann_series,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(33), in the second version (55)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“−γ Σ_h Γ_c^(H−h−1) = (Id − Γ_c^(H)) ∇²f_c(θ*)⁻¹”, before the equation, and so its first term “N⁻¹ Σ_c (Id − Γ_c^(H)) ∇²f_c(θ*)⁻¹ ∇f_c(θ*)”.",
        holds: "−γ Σ_h Γ_c^(H−h−1) = −(Id − Γ_c^(H)) ∇²f_c(θ*)⁻¹, as the second version has it below; the first term has a minus.",
        consequence: "None: where the first version has the same line again, before (35), the second term has the right sign.",
        counterexample: sum_of_powers,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(35), in the second version (57)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“−(1/2N) ∇²f(θ*)⁻¹∇³f(θ*) ∫(θ − θ*)^(⊗2) π(dθ)”.",
        holds: "The factor is −½: the mean N⁻¹ Σ_c over clients is ∇³f, and the 1/N of the result is in the integral, which is (γ/N) X to first order.",
        consequence: "None for the theorem of the second version; as printed the bias would be of order γ/(2N²).",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Proof of Theorem 4, last display (first version)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“−(γ(H − 1)/2N) ∇²f(θ*)⁻¹ Σ_c (∇²f_c(θ*) − ∇²f(θ*)) ∇f_c(θ*) − (γ/N) ∇²f(θ*)⁻¹∇³f(θ*)𝐀C(θ*)”.",
        holds: "+(γ(H − 1)/2) b_h − (γ/2N) b_s, with b_s = ∇²f⁻¹∇³f[X] as the first version defines it.",
        consequence: "The display contradicts the theorem that it proves in both signs and in a factor of 2. The theorem has the first term right, the display has the sign of the second, whose factor is γ/(2N) as it follows from (35) once that is corrected.",
        counterexample: none,
        claims: &["rr/table1#heterogeneous"],
    },
    Erratum {
        source: "RR",
        place: "Proof of Theorem 1, after (19) (both versions)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“Since Σ_(h=1..H) h = H(H − 1)/2”, for the sum of H − h − 1 over h = 1..H.",
        holds: "Σ_(h=0..H−1) (H − h − 1) = Σ_(h=0..H−1) h = H(H − 1)/2: the sum over local steps is over h = 0..H−1, as in Proposition 2 corrected. In the same proof (Id − Γ)⁻¹ stands for (Id − F*)⁻¹, and F_c^(h+1:H) is printed as the product from ℓ = h where (3) has ℓ = h + 1.",
        consequence: "None: Theorem 1 is right.",
        counterexample: sums_over_steps,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(25), in the second version (30)",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“V_c^(h)(θ) ≜ T_c^(h)(θ) − γh ∇f_c(θ*)” (the first version has H for h on the left and in T).",
        holds: "V_c^(h)(θ) = T_c^(h)(θ) + γh ∇f_c(θ*): local steps go along −∇f_c, and the next display, V_c^(h+1) = V_c^(h) − γ(∇F_c(T_c^(h)) − ∇f_c(θ*)), needs the plus.",
        consequence: "None: only norms of the difference are used.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "(9), and its repetition in Appendix B.3 of the first version, B.4.2 of the second",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "“C(θ*) ≜ E[N⁻¹ Σ_c ε_1^(1)(θ*)^(⊗2)]”.",
        holds: "C(θ*) = E[N⁻¹ Σ_c ε_c^(Z)(θ*)^(⊗2)].",
        consequence: "Read literally, the covariance would be that of the first client.",
        counterexample: first_covariance,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Remark after Theorem 4 (both versions)",
        gravity: Gravity::Remark,
        check_print: false,
        printed: "“When H is of order O(1/N), FedAvg achieves the linear speed-up with respect to the number of clients N.”",
        holds: "H is at least 1. By the theorem the covariance (γ/N) X dominates the remainder O(γ²H² + γ^(3/2)H) where √γ·HN is small, that is for H of smaller order than 1/(N√γ). The squared bias alone asks for a small γH²N.",
        consequence: "The range of the linear speed-up is a condition on √γ·HN, not on H alone; that γH is of order 1/N is not enough either, as the numbers show.",
        counterexample: speed_up,
        claims: &[],
    },
    Erratum {
        source: "RR",
        place: "Further misprints in the proofs",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "(a) (44) and the display before (46), second version: “2τ̃” and “(8γ²L − 2γ)E[γ⟨…⟩]”. (b) (64), second version: the last term is “(γ/μ) τ̃^(1/2)”. (c) (23), first version, middle: the last norm has the exponent k. (d) Proof of the theorem on averaged iterates (Theorem 5 of the first version, 6 of the second): “assumptions are satisfied by Lemma 6”. (e) Lemma 9: the last product ends at M.",
        holds: "(a) 2τ̃², and 2γ²τ̃² after the multiplication by γ²; the γ before ⟨…⟩ is one too many. (46) is right. (b) (γ/μ) τ̃², as (61) and (62) have it. (c) The exponent is 2. (d) Lemma 8 is meant: Lemma 6 is for homogeneous clients. (e) It ends at K.",
        consequence: "None.",
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
        // Proposition 2 corrected: −γ, and the sum over h = 0..H−1 with H − 1 − h factors.
        let sum = |a: f64| (0..3).map(|h| (1.0 - step * a).powi(2 - h)).sum::<f64>();
        let mended = PAIR.mean_over(step, steps, |a| step * a * sum(a));
        assert!((mended - exact).abs() < 1e-13);
        let [literal, restored] = [0, 1].map(|i| proposition_2()[i].printed);
        assert!((literal + 0.15 / 0.35).abs() < 1e-12, "{literal}");
        assert!((restored / exact - 1.0).abs() > 0.4, "{restored} {exact}");
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

    /// The printed lines fail and the corrected ones hold.
    #[test]
    fn steps_of_proofs_fail_as_printed() {
        let over = series_over_rounds()[0];
        assert!(over.holds > over.printed && over.holds <= over.printed / (1.0 - libm::exp(-1.0)));
        let convex = cocoercivity()[0];
        assert!(convex.printed < 0.0 && convex.holds > 0.0, "{convex:?}");
        let cube = sum_of_lemma_6()[0];
        assert!(cube.printed <= 5.0 && cube.holds > 5.0, "{cube:?}");
        assert!(coefficients(20.0, 1.0 / 9.0) <= 5.0);
        // The coefficient of γ³a²bc² in the cube, by the values at b = ±1 with a = c = 1.
        let value = |b: f64, step: f64| (1.0 - 2.0 * step * b + step * step).powi(3);
        let odd = |step: f64| (value(1.0, step) - value(-1.0, step)) / 2.0;
        // −6γ + (−12 − 8)γ³ − 6γ⁵.
        let rest = odd(0.5) + 6.0 * 0.5 + 6.0 * 0.5_f64.powi(5);
        assert!((rest / 0.5_f64.powi(3) + 20.0).abs() < 1e-12, "{rest}");
        let local = step_of_lemma_7()[0];
        assert!(local.holds > local.printed + 0.09, "{local:?}");
        assert!(left_of_lemma_7(0.5) <= 1.0 - 0.5 * 0.1 + 1e-15);
        let scale = scaling()[0];
        assert_eq!((scale.printed, scale.holds), (0.125, 1.0));
        let powers = sum_of_powers()[0];
        assert!((powers.printed + powers.holds).abs() < 1e-15);
        assert!(least_or_largest()[0].holds <= 2.0 * 1.0_f64.max(0.0).powi(2));
    }

    /// Lemma 5 in its instance: the limit of E x² is below what it states.
    #[test]
    fn lemma_5_holds_as_stated() {
        let (step, l, tau) = LEMMA_5;
        let exact = step * step * tau * tau / (1.0 - (1.0 - step * l).powi(2));
        assert!(exact <= last_term_of_lemma_5()[0].holds, "{exact}");
        // 2γ²Hτ²/(1 − (1 − x)^H) over γτ²/(μ(1 − γL)) with x = 2γμ(1 − γL), γμH = 1, γL → 0.
        let ratio = 2.0 * 2.0 / (1.0 - libm::exp(-2.0)) / 2.0;
        assert!((ratio - 2.31).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn the_series_has_as_many_terms_as_steps() {
        let found = neumann_series()[0];
        assert!(found.printed < 0.0 && found.holds > 0.0, "{found:?}");
        let sum = |a: f64| (1..=3).map(|h| 0.1 * (1.0 - 0.1 * a).powi(3 - h) * a).sum::<f64>();
        let corrected = 0.5 * (sum(1.0) * 1.5 + sum(3.0) * -0.5);
        assert!((corrected - found.holds).abs() < 1e-15, "{corrected}");
        let steps = sums_over_steps()[0];
        assert_eq!((steps.printed, steps.holds), (0.0, 3.0));
    }

    #[test]
    fn bias_dominates_where_the_path_is_one_over_the_clients() {
        let found = speed_up()[0];
        assert!(found.holds > 500.0 * found.printed, "{found:?}");
        let (step, _, clients) = SPEED_UP;
        assert!((found.printed / (step / clients / 4.0) - 1.0).abs() < 0.05, "{found:?}");
    }
}
