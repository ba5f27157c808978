//! Errors in SLIDES.

use super::{Counterexample, Erratum, Gravity, none};
use crate::linalg::Matrix;
use crate::problem::arrays::NoFiles;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::problem::{Facts, Settings};
use crate::theory::expansion::Expansion;
use crate::theory::linear::LocalUpdate;
use crate::theory::moments::{AlgorithmModel, Correction, ExactMoments, RunModel};

/// One client, H = 1, F(x; Z) = A(Z) x with A = 1 with probability μ and 0 otherwise, γ = ½: the
/// factor by which E x² falls in a step.
fn contraction() -> Vec<Counterexample> {
    let (mu, step) = (0.1, 0.5);
    let exact = (1.0 - mu) + mu * (1.0 - step) * (1.0 - step);
    vec![Counterexample {
        what: "factor of W₂² in a step for one client with f(x; Z) = x²/2 with probability 0.1 and 0 otherwise, γ = ½: the most that is allowed, and the exact factor",
        printed: (1.0 - step * mu) * (1.0 - step * mu),
        holds: exact,
    }]
}

/// Two quadratic functions with curvatures 1 and 3 and unit noise.
fn instance() -> Option<Quadratic> {
    let settings = quadratic::Settings {
        dimension: 1,
        clients: 2,
        spectrum: Spectrum { from: 2.0, to: 2.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 1.0,
        noise: 1.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::Gaussian,
    };
    settings.build(1, &NoFiles).ok()
}

const STEP: f64 = 1e-3;

/// Cov(x, ξ_c) at stationarity for the client with curvature 1: exact, and by the expansion with
/// either sign.
fn cross_covariances() -> Option<(Matrix, Matrix, Matrix)> {
    let facts = instance()?;
    let run = RunModel {
        weight: 1.0,
        update: Box::new(|_| LocalUpdate::plain(STEP, 1)),
        server_step: 1.0,
        correction: Correction::Kept,
    };
    let model = AlgorithmModel {
        runs: vec![run],
        cohort: 2,
        common: false,
        coin: None,
        burn_in: None,
        decay: None,
    };
    let (_, exact) = ExactMoments::new(&facts, &model)?.stationary()?;
    let expansion = Expansion::new(&facts).ok()?;
    let [printed, corrected] =
        [true, false].map(|printed| expansion.blocks(&facts, STEP, 1.0, true, printed));
    let flat = (0..2).find(|c| facts.jacobian(*c)[(0, 0)] < 2.0)?;
    let of = |blocks: Vec<Matrix>| blocks.into_iter().nth(flat);
    Some((of(exact.theta_variate)?, of(printed?.theta_variate)?, of(corrected?.theta_variate)?))
}

fn cross_covariance() -> Vec<Counterexample> {
    let number = |(exact, printed, _): (Matrix, Matrix, Matrix)| Counterexample {
        what: "Cov(x, ξ_1) for two quadratic functions, a = 1 and 3, unit noise for each, γ = 10⁻³, H = 1",
        printed: printed[(0, 0)],
        holds: exact[(0, 0)],
    };
    cross_covariances().map(number).into_iter().collect()
}

/// FedAvg's bias on two quadratic functions without noise, a = 1 and 3, x_c* = 1 and −1, at γH = 0.2.
fn bias_of_fedavg(step: f64) -> f64 {
    let steps = libm::round(0.2 / step);
    let power = |a: f64| libm::pow(1.0 - step * a, steps);
    // (1 − Γ)⁻¹ N⁻¹ Σ (1 − Γ_c)(x_c* − x*) with x* = −½.
    let sum = (1.0 - power(1.0)) * 1.5 + (1.0 - power(3.0)) * -0.5;
    sum / (2.0 - power(1.0) - power(3.0))
}

fn remainder_of_fedavg() -> Vec<Counterexample> {
    let (long, short): (f64, f64) = (1e-2, 1e-4);
    let square = |step: f64| libm::pow(bias_of_fedavg(step), 2.0);
    vec![Counterexample {
        what: "∫(x − x*)² π(dx) at γ = 10⁻⁴ over that at γ = 10⁻², both with γH = 0.2, for two quadratic functions without noise, a = 1 and 3, x_c* = 1 and −1, so that all of it is remainder; against the same ratio of γ^(3/2)H",
        printed: libm::sqrt(short / long),
        holds: square(short) / square(long),
    }]
}

/// The errors, by where they stand.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        source: "SLIDES",
        place: "“FedAvg converges!”, remainders of covariance and bias",
        gravity: Gravity::Result,
        check_print: false,
        printed: "The covariance and the bias of FedAvg have the remainder “O(γ^(3/2)H)”.",
        holds: "O(γ²H² + γ^(3/2)H), as RR, Theorem 4 has it: γ²H² is not O(γ^(3/2)H) for H > γ^(−1/2).",
        consequence: "At fixed γH the remainder does not fall with γ; the linear speed-up of the covariance is restricted accordingly, see the remark after Theorem 4 of RR.",
        counterexample: remainder_of_fedavg,
        claims: &[],
    },
    Erratum {
        source: "SLIDES",
        place: "“Expansion of Covariance”, Σ_c^(x,ξ)",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“Σ_(c)^(x,ξ) = (γ/N) 𝐀C(x*)(∇²f_c(c)x* − ∇²f(x*)) + (γ/N)(C_c(x*) − C(x*)) + O(γ²H + γ^(3/2))”.",
        holds: "The first term has a minus: −(γ/N) X (∇²f_c(x*) − ∇²f(x*)).",
        consequence: "The covariance of the estimate with a control variate has the wrong sign at first order wherever the Hessians differ.",
        counterexample: cross_covariance,
        claims: &["scaffold/signs#minus", "scaffold/signs#plus"],
    },
    Erratum {
        source: "SLIDES",
        place: "Expansion of Scaffold's bias, the remainder",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“∫x π(dx, dΞ) = x* − (γ/2N) ∇²f(x*)⁻¹∇³f(x*)𝐀C(x*) + O(γ^(3/2))”.",
        holds: "The remainder has a term of order γ²H that is not divided by N. For clients of one distribution, and to leading order in γH, it is −½ ∇²f⁻¹∇³f[γ²((H − 1)/2 + (H − 1)(2H − 1)/(6H))(1 − 1/N) C], as the expansion of the covariance has O(γ²H).",
        consequence: "At fixed γH the remainder is a fixed multiple of the first order, however small γ is, so that the first order is the bias only where γ(H − 1)N is small. The run has γHL = 0.2 with the L of the clients' functions, and 3.4 with that of its steepest draw.",
        counterexample: none,
        claims: &["scaffold/remainder#printed", "scaffold/remainder#next-term"],
    },
    Erratum {
        source: "SLIDES",
        place: "Convergence of FedAvg and of Scaffold in W₂",
        gravity: Gravity::Result,
        check_print: false,
        printed: "“W₂(ψ_t; π) ≤ (1 − γμ)^(Ht) W₂(ψ_0; π)”.",
        holds: "W₂² falls by (1 − γμ)^H in each round, as RR, Proposition 3 proves. W₂ falls by (1 − γμ)^(H/2). For FedAvg with γ ≤ 1/L, more precisely, W₂ falls by (1 − γμ(2 − γL))^(H/2).",
        consequence: "The printed rate is reached only as γL goes to 0; what is proved is half of it in the exponent.",
        counterexample: contraction,
        claims: &[
            "rr/contraction#squares",
            "rr/contraction#distances",
            "scaffold/contraction#squares",
            "scaffold/contraction#distances",
        ],
    },
    Erratum {
        source: "SLIDES",
        place: "Convergence of FedAvg and of Scaffold in W₂, right side",
        gravity: Gravity::Slip,
        check_print: false,
        printed: "For Scaffold the right side has the distribution at round t.",
        holds: "It is that of the start, round 0, as for FedAvg.",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "SLIDES",
        place: "Definitions of Σ_(c,c')^(ξ) and C(x*), and ∇²f_c in Σ_c^(x,ξ)",
        gravity: Gravity::Slip,
        check_print: true,
        printed: "“(ξ_c − ξ_c*)(ξ_c' − ξ_c*)ᵀ”, “C(x*) ≜ N⁻¹ Σ_(i=1..N) C_c(x*)”, and “∇²f_c(c)x*”.",
        holds: "(ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ; the sum is over c; ∇²f_c(x*).",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minus_is_right_to_first_order_and_the_plus_is_not() {
        let (exact, printed, corrected) = cross_covariances().unwrap();
        let norm = |m: &Matrix| m.entries().iter().map(|x| x * x).sum::<f64>().sqrt();
        let apart = |m: &Matrix| norm(&exact.plus(-1.0, m)) / norm(&exact);
        assert!(apart(&corrected) < 0.02, "{}", apart(&corrected));
        assert!(apart(&printed) > 0.2, "{}", apart(&printed));
        let found = cross_covariance()[0];
        let closed = (1.0 - 2.0 * STEP) * STEP / 8.0 / (1.0 - STEP);
        assert!((found.holds / closed - 1.0).abs() < 1e-9, "{found:?} {closed}");
    }

    #[test]
    fn the_remainder_of_fedavg_does_not_fall_at_fixed_path() {
        let found = remainder_of_fedavg()[0];
        assert!((found.printed - 0.1).abs() < 1e-12 && found.holds > 1.0, "{found:?}");
        // The bias by iteration.
        let mut x = 0.0;
        for _ in 0..2000 {
            let end = |a: f64, root: f64| root + (1.0 - 0.01 * a).powi(20) * (x - root);
            x = 0.5 * (end(1.0, 1.0) + end(3.0, -1.0));
        }
        assert!((x + 0.5 - bias_of_fedavg(0.01)).abs() < 1e-12);
    }

    #[test]
    fn squares_contract_as_rr_says_and_distances_do_not_as_slides_say() {
        let found = contraction()[0];
        assert!(found.holds > found.printed && found.holds <= 1.0 - 0.5 * 0.1, "{found:?}");
        // 1 − γμ(2 − γL) with L = 1.
        assert!((found.holds - (1.0 - 0.5 * 0.1 * 1.5)).abs() < 1e-15, "{found:?}");
    }
}
