//! The statements of BOOK, chapter 5.

use super::statement::Condition::{self, *};
use super::statement::StatedAlgorithm::*;
use super::statement::Statement;

const NORMALISED: &[Condition] = &[StronglyConvex, IndependentDraws, Normalised];

/// On one round, of which step sizes are constant.
const ROUND: &[Condition] = &[Algorithm(&[FedAvg, MinibatchSgd], &[])];
const FEDAVG: &[Condition] = &[Algorithm(&[FedAvg, MinibatchSgd], &[]), ConstantStepSize];

/// The statements, in the order of the chapter.
pub const STATEMENTS: &[Statement] = &[
    Statement::new(
        ROUND,
        "BOOK (5.12), mini-batches",
        "Averaging E mini-batch approximations reduces the variance of the gradient approximation in proportion.",
        &[IndependentDraws],
    ),
    Statement::new(
        ROUND,
        "BOOK (5.14)",
        "For small step sizes the local updates of a round are well approximated by one mini-batch update with step size μ_k E_k.",
        &[IndependentDraws],
    ),
    Statement::new(
        ROUND,
        "BOOK (5.26)",
        "The gradient approximation is unbiased if and only if μ_k = μ/E_k.",
        &[IndependentDraws],
    ),
    Statement::new(
        ROUND,
        "BOOK Lemma 5.1",
        "The variance of a mean over L of K clients without replacement is (5.33): (1/KL) Σ σ_k² + ((K − L)/(K − 1)/(KL)) Σ ‖ā − ā_k‖².",
        &[IndependentDraws],
    ),
    Statement::new(
        ROUND,
        "BOOK (5.40)",
        "The federated gradient noise is at most β_fed² ‖w̃‖² + σ_fed², which falls with L and grows with heterogeneity.",
        NORMALISED,
    ),
    Statement::new(
        ROUND,
        "BOOK (5.54)",
        "The perturbation by local steps obeys E‖d_i‖² ≤ O(μ²) ‖w̃‖² + O(μ²).",
        NORMALISED,
    ),
    Statement::new(
        FEDAVG,
        "BOOK Theorem 5.1",
        "E‖w̃_i‖² ≤ (√λ^i + O(μ³)) ‖w̃_0‖² + 4μσ_fed²/ν + O(μ²).",
        NORMALISED,
    ),
    Statement::new(
        FEDAVG,
        "BOOK (5.57)",
        "The steady-state error is of first order in μ.",
        NORMALISED,
    ),
    Statement::new(
        FEDAVG,
        "BOOK problem 5.1",
        "Without normalised step sizes the iterates go to the optimum of Σ E_k J_k.",
        &[StronglyConvex, IndependentDraws],
    ),
    Statement::new(&[], "BOOK problem 5.2", "Lemma 5.1 is to be proved.", &[])
        .unmeasured("it asks for the proof of Lemma 5.1, which is measured."),
    Statement::new(
        FEDAVG,
        "BOOK problem 5.3",
        "The steady-state mean square deviation of federated LMS, to first order in μ.",
        NORMALISED,
    ),
];
