//! Errors in SLIDES.

use super::{Counterexample, Erratum, Gravity, none};
use crate::linalg::Matrix;
use crate::problem::Settings;
use crate::problem::arrays::NoFiles;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
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

/// Three quadratic functions in two dimensions with additive noise.
fn instance() -> Option<Quadratic> {
    let settings = quadratic::Settings {
        dimension: 2,
        clients: 3,
        spectrum: Spectrum { from: 0.5, to: 1.5 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.3,
        noise: 1.0,
        multiplicative_noise: 0.0,
        multiplicative_form: quadratic::MultiplicativeForm::Gaussian,
    };
    settings.build(1, &NoFiles).ok()
}

const STEP: f64 = 1e-3;

/// Cov(θ, ξ_1) at stationarity: exact, and by the expansion with either sign.
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
        cohort: 3,
        common: false,
        coin: None,
        burn_in: None,
        decay: None,
    };
    let (_, exact) = ExactMoments::new(&facts, &model)?.stationary()?;
    let expansion = Expansion::new(&facts).ok()?;
    let [printed, corrected] =
        [true, false].map(|printed| expansion.blocks(&facts, STEP, 1.0, true, printed));
    let first = |blocks: Vec<Matrix>| blocks.into_iter().next();
    Some((
        first(exact.theta_variate)?,
        first(printed?.theta_variate)?,
        first(corrected?.theta_variate)?,
    ))
}

fn cross_covariance() -> Vec<Counterexample> {
    let number = |(exact, printed, _): (Matrix, Matrix, Matrix)| Counterexample {
        what: "first entry of Cov(θ, ξ_1), three quadratic functions in two dimensions, γ = 10⁻³, H = 1",
        printed: printed[(0, 0)],
        holds: exact[(0, 0)],
    };
    cross_covariances().map(number).into_iter().collect()
}

/// The errors, by where they stand.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        source: "SLIDES",
        place: "expansion of covariance, Σ^(x,ξ)_c",
        gravity: Gravity::Result,
        printed: "Σ^(x,ξ)_c = +(γ/N) AC (∇²f_c(x*) − ∇²f(x*)) + (γ/N)(C_c − C) + O(γ²H + γ^(3/2)).",
        holds: "The first term has a minus.",
        consequence: "The covariance of the estimate with a control variate is off in first order wherever Hessians differ.",
        counterexample: cross_covariance,
        claims: &["scaffold/signs#minus", "scaffold/signs#plus"],
    },
    Erratum {
        source: "SLIDES",
        place: "expansion of Scaffold's bias, the remainder",
        gravity: Gravity::Result,
        printed: "∫x π(dx, dΞ) = x* − (γ/2N) A⁻¹∇³f AC + O(γ^(3/2)).",
        holds: "The remainder has a term of order γ²H that is not divided by N, −½ A⁻¹∇³f[γ²((H − 1)/2 + (H − 1)(2H − 1)/(6H))(1 − 1/N) C], as the expansion of the covariance has O(γ²H).",
        consequence: "At fixed γH the remainder is a fixed multiple of the first order, however small γ is, so that the first order is the bias only where γ(H − 1)N is small.",
        counterexample: none,
        claims: &["scaffold/remainder#printed", "scaffold/remainder#next-term"],
    },
    Erratum {
        source: "SLIDES",
        place: "convergence of FedAvg and of Scaffold in W₂",
        gravity: Gravity::Result,
        printed: "W₂ falls by (1 − γμ)^H in each round.",
        holds: "W₂² does, as RR, Proposition 3 proves. W₂ falls by (1 − γμ)^(H/2).",
        consequence: "The rate of convergence is half of what is printed, in the exponent.",
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
        place: "convergence of FedAvg and of Scaffold in W₂, right side",
        gravity: Gravity::Slip,
        printed: "For Scaffold the right side has the distribution at round t.",
        holds: "It is that of the start, round 0, as for FedAvg.",
        consequence: "None.",
        counterexample: none,
        claims: &[],
    },
    Erratum {
        source: "SLIDES",
        place: "definitions of Σ^ξ_(c,c') and C(x*)",
        gravity: Gravity::Slip,
        printed: "(ξ_c − ξ_c*)(ξ_c' − ξ_c*)ᵀ, and C(x*) = N⁻¹ Σ_i C_c(x*).",
        holds: "(ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ, and the sum is over c.",
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
        assert_eq!(cross_covariance().len(), 1);
    }

    #[test]
    fn squares_contract_as_rr_says_and_distances_do_not_as_slides_say() {
        let found = contraction()[0];
        assert!(found.holds > found.printed && found.holds <= 1.0 - 0.5 * 0.1, "{found:?}");
    }
}
