//! The statements of SCAFFLSA.

use super::statement::Condition::{self, *};
use super::statement::StatedAlgorithm::*;
use super::statement::Statement;

const A12: &[Condition] = &[Linear, IndependentDraws, Stable];
const A13: &[Condition] = &[Linear, IndependentDraws, StepTimesSmoothness(0.5)];
const H2: &[Condition] = &[Linear, IndependentDraws, Stable, FewLocalSteps];

/// On FedLSA's mean.
const FEDLSA: &[Condition] = &[Algorithm(&[FedAvg], &[]), ConstantStepSize];
/// On FedLSA's iterates.
const FEDLSA_ITERATES: &[Condition] = &[Algorithm(&[FedAvg], &[]), ConstantStepSize, LastIterate];
/// On SCAFFLSA with random communication.
const RANDOM: &[Condition] = &[Algorithm(&[RandomScaffold], &[]), ConstantStepSize, LastIterate];
/// On SCAFFLSA with a fixed number of local steps; claims compare it with FedLSA.
const FIXED: &[Condition] = &[Algorithm(&[Scaffold], &[FedAvg]), ConstantStepSize, LastIterate];
const EITHER: &[Condition] = &[Algorithm(&[FedAvg, Scaffold], &[]), ConstantStepSize];

/// The statements, in the order of the paper.
pub const STATEMENTS: &[Statement] = &[
    Statement::new(&[],
        "SCAFFLSA Lemma 3.1",
        "Federated TD(0) satisfies A1 to A3 with C_A = 1 + γ, ‖Σ_Ã‖ ≤ 2(1 + γ)², a = (1 − γ)ν/2 and L = (1 + γ)/((1 − γ)²ν).",
        &[Linear, IndependentDraws],
    )
    .tested(&["crates/core/src/theory/errata/scafflsa.rs: the_constant_of_lemma_3_1_is_too_large"])
    .unmeasured("it is about constants, which the program computes exactly for each instance."),
    Statement::new(FEDLSA,
        "SCAFFLSA (24), (25)",
        "The mean of FedLSA obeys a recursion with ρ̄_H = N⁻¹ Σ_c (I − (I − ηĀ_c)^H)(θ_c* − θ*), which is 0 at H = 1.",
        &[Linear, IndependentDraws],
    ),
    Statement::new(FEDLSA,
        "SCAFFLSA (26)",
        "‖ρ̄_H‖ ≤ (η²H²/N) Σ_c exp(ηH‖Ā_c‖) ‖θ_c* − θ*‖ for H ≥ 2.",
        &[Linear, IndependentDraws, SeveralLocalSteps],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Theorem 4.1",
        "Around θ* + θ̃_t^(bi,bi), the root mean square error of FedLSA is at most of order √(ηv/(aN)) + √(ησ_ε/(aN)) + √(‖Σ_Ã‖/(HN)) ‖ρ̄‖/a + (1 − ηa)^(tH) ‖θ_0 − θ*‖ (A.5 with constants).",
        A12,
    ),
    Statement::new(FEDLSA,
        "SCAFFLSA Theorem 4.1, limit",
        "The bias of FedLSA converges to (I − Γ̄)⁻¹ ρ̄_H at the rate (1 − ηa)^(tH).",
        A12,
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Remark 4.2",
        "At N = 1 the bias and its fluctuation vanish, and the root mean square error is at most of order √(ησ_ε/a) + (1 − ηa)^(tH) ‖θ_0 − θ*‖.",
        &[Linear, IndependentDraws, Stable, OneClient],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Corollary 4.3",
        "Theorem 4.1 for federated TD(0), for η below (1 − γ)/4: the error around the biased mean allows linear speed-up.",
        &[Linear, IndependentDraws, Unknown("η < (1 − γ)/4, γ the discount")],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Corollary 4.4",
        "At H = 1 FedLSA needs O((1/(aη_∞) ∨ (v ∨ σ_ε)/(Na²ε²)) log(1/ε)) communications: linear speed-up.",
        &[Linear, IndependentDraws, Stable, OneLocalStep],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Corollary 4.5",
        "With H of order 1/(Nε) FedLSA needs O((1/ε) log(1/ε)) communications, and TH of order 1/(Nε²) oracle calls.",
        &[Linear, IndependentDraws, Stable, SeveralLocalSteps],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Corollary 4.6",
        "Federated TD(0) needs O((1/((1 − γ)²ν) ∨ E‖θ_c* − θ*‖/((1 − γ)²ν²ε)) log(1/ε)) communications.",
        &[Linear, IndependentDraws, SeveralLocalSteps],
    ),
    Statement::new(RANDOM,
        "SCAFFLSA Theorem 5.1",
        "Under H1, E N⁻¹ Σ_c ‖θ_K^c − θ*‖² ≤ (1 − ζ)^K ψ_0 + 2η²σ_ω/ζ with ζ = min(ηa, p²) (B.2).",
        A13,
    ),
    Statement::new(RANDOM,
        "SCAFFLSA Corollary 5.2",
        "Under H1 SCAFFLSA reaches ε² in O(max(√(L/a), √σ_ω/(εa)) log(1/ε²)) expected communications, with loss of the linear speed-up.",
        A13,
    ),
    Statement::new(FIXED,
        "SCAFFLSA Theorem 5.3",
        "Under H2, E‖θ_T − θ*‖² ≤ (1 − ηaH/4)^T ψ_0 + 16ησ_ω/a (B.5).",
        H2,
    ),
    Statement::new(FIXED,
        "SCAFFLSA Corollary 5.4",
        "Under H2 SCAFFLSA needs O((C_A²/a²) log(1/ε²)) communications with H of order 1/ε², with loss of the linear speed-up.",
        H2,
    ),
    Statement::new(FIXED,
        "SCAFFLSA Corollary 5.5",
        "SCAFFLSA for TD(0) needs O((1/((1 − γ)²ν²)) log(1/ε²)) communications, and converges to θ* even with many local steps.",
        H2,
    ),
    Statement::new(EITHER, "SCAFFLSA section 6, low heterogeneity",
        "Where heterogeneity is low, both algorithms behave similarly (Figure 1(a)).",
        &[Linear, IndependentDraws],
    ),
    Statement::new(EITHER, "SCAFFLSA section 6, high heterogeneity",
        "Where heterogeneity is high, FedLSA stops making progress, and SCAFFLSA continues until noise dominates (Figure 1(b)).",
        &[Linear, IndependentDraws],
    ),
    Statement::new(FEDLSA,
        "SCAFFLSA section 6, smaller steps",
        "The step size of FedLSA could always be decreased to obtain more precise results.",
        &[Linear, IndependentDraws],
    ),
    Statement::new(EITHER, "SCAFFLSA published code, speed-up",
        "The authors' code draws the last error over the number of clients beside 1/N.",
        &[Linear, IndependentDraws],
    ),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Lemmas A.1 to A.4",
        "Bounds of the four terms of the error of FedLSA.",
        A12,
    )
    .unmeasured("they are the steps of Theorem A.5, whose claim tests their sum."),
    Statement::new(FEDLSA_ITERATES,
        "SCAFFLSA Corollaries A.6 to A.8",
        "The proofs of Corollaries 4.4 to 4.6.",
        A12,
    )
    .unmeasured("they restate Corollaries 4.4 to 4.6, and are measured there."),
    Statement::new(RANDOM,
        "SCAFFLSA Lemma B.1",
        "One step under H1 shrinks the Lyapunov function up to noise.",
        A13,
    )
    .unmeasured("it is a step of Theorem B.2, whose claim tests it over whole runs."),
    Statement::new(RANDOM,
        "SCAFFLSA Corollary B.3",
        "Corollary 5.2 with its constants.",
        A13,
    )
    .tested(&["crates/core/src/theory/errata/scafflsa.rs: twice_the_steps_of_corollary_b3_are_needed"])
    .unmeasured("its constants are too small by a factor of two, and its order is that of Corollary 5.2, which is measured."),
    Statement::new(RANDOM,
        "SCAFFLSA Theorem B.4",
        "For every p and η there is a problem with E ψ_K = (1 − ζ)^K ψ_0 + 2η²σ_ε/ζ, ζ = min(2ηa, p²): no linear speed-up.",
        A13,
    ),
    Statement::new(FIXED,
        "SCAFFLSA Corollary B.6",
        "Corollary 5.4 with its constants.",
        H2,
    )
    .unmeasured("it restates Corollary 5.4, and is measured there."),
    Statement::new(&[],
        "SCAFFLSA Lemmas C.1 to C.6",
        "Technical lemmas on products of matrices and on ρ̄.",
        &[Linear, IndependentDraws],
    )
    .unmeasured("they are steps of the theorems; C.3 is (26) and C.5 the use of (14)."),
];
