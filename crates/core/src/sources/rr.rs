//! The statements of RR, numbered as in its second version where both versions have them.

use super::statement::Condition::{self, *};
use super::statement::StatedAlgorithm::*;
use super::statement::Statement;

/// A1: strongly convex f_c; convex, smooth draws.
const A1: [Condition; 2] = [StronglyConvex, ConvexDraws];
const DETERMINISTIC: &[Condition] = &[A1[0], WithoutNoise, StepTimesSmoothness(1.0)];
const DETERMINISTIC_SHORT: &[Condition] =
    &[A1[0], WithoutNoise, StepTimesSmoothness(1.0), PathTimesConvexity];
const CONTRACTION: &[Condition] = &[A1[0], A1[1], StepTimesSmoothness(1.0)];
const QUADRATIC: &[Condition] = &[A1[0], A1[1], Quadratic, StepTimesSmoothness(1.0)];
const QUADRATIC_SHORT: &[Condition] =
    &[A1[0], A1[1], Quadratic, StepTimesSmoothness(1.0), PathTimesConvexity];
/// Of Proposition 6, which asks for more than Theorem 2.
const EXPANSION: &[Condition] = &[A1[0], A1[1], Quadratic, StepTimesSmoothness(1.0), Path(1.0)];
const HOMOGENEOUS: &[Condition] =
    &[A1[0], A1[1], Homogeneous, StepTimesSmoothness(1.0 / 9.0), PathTimesConvexity];
const GENERAL: &[Condition] = &[A1[0], A1[1], StepTimesSmoothness(1.0 / 45.0), PathTimesConvexity];

/// On FedAvg's stationary distribution.
const FEDAVG: &[Condition] = &[Algorithm(&[FedAvg], &[]), ConstantStepSize];
/// On FedAvg's iterates.
const ITERATES: &[Condition] = &[Algorithm(&[FedAvg], &[]), ConstantStepSize, LastIterate];
/// On the bias of Richardson-Romberg; claims compare it with FedAvg and with the combination over H.
const EXTRAPOLATED: &[Condition] =
    &[Algorithm(&[RichardsonRomberg], &[FedAvg, OverLocalSteps]), ConstantStepSize];
const EXTRAPOLATED_ITERATES: &[Condition] =
    &[Algorithm(&[RichardsonRomberg], &[]), ConstantStepSize, LastIterate];
const EXTRAPOLATED_MEAN: &[Condition] =
    &[Algorithm(&[RichardsonRomberg], &[]), ConstantStepSize, AveragedIterates];
const OVER_LOCAL_STEPS: &[Condition] =
    &[Algorithm(&[OverLocalSteps], &[FedAvg, RichardsonRomberg]), ConstantStepSize];
const ONE_LOCAL_STEP: &[Condition] = &[Algorithm(&[FedAvg], &[Scaffold]), ConstantStepSize];
/// On the figures of section 7.
const OUTPERFORMS: &[Condition] = &[Algorithm(&[RichardsonRomberg], &[FedAvg]), ConstantStepSize];
const COMPARED: &[Condition] =
    &[Algorithm(&[RichardsonRomberg, Scaffold], &[FedAvg]), ConstantStepSize];

/// The statements, in the order of the paper.
pub const STATEMENTS: &[Statement] = &[
    Statement::new(ITERATES,
        "RR Proposition 1",
        "Without noise FedAvg goes to the one fixed point of its round map, and the squared distance from it falls by (1 − γμ)^H in each round.",
        DETERMINISTIC,
    )
    .first_version("γ ≤ 1/(2L)"),
    Statement::new(FEDAVG, "RR Proposition 2, identity",
        "The fixed point is at N⁻¹ Σ_c Σ_h Υ_c^(h) ∇f_c(θ*) from θ*.",
        DETERMINISTIC,
    )
    .first_version("γ ≤ 1/(2L)")
    .tested(&["crates/core/src/theory/bounds/tests.rs: the_identity_of_proposition_2_holds_as_mended"]),
    Statement::new(FEDAVG, "RR Proposition 2, bound",
        "The fixed point is at most γ(H − 1) L ζ₁/μ from θ*.",
        DETERMINISTIC_SHORT,
    )
    .first_version("γ ≤ 1/(2L)"),
    Statement::new(ONE_LOCAL_STEP,
        "RR section 4, one local step",
        "At H = 1 the bias of FedAvg completely vanishes.",
        &[A1[0], WithoutNoise, OneLocalStep],
    ),
    Statement::new(FEDAVG, "RR Theorem 1",
        "Without noise FedAvg's bias is (γ(H − 1)/2) b_h + O(γ²H²).",
        DETERMINISTIC_SHORT,
    )
    .first_version("γ ≤ 1/(2L) and γH ≤ 1"),
    Statement::new(ITERATES,
        "RR Corollary 1",
        "‖θ_t − θ*‖² ≤ 2(1 − γμ)^(Ht) ‖θ_0 − θ̄‖² + 2γ²(H − 1)² L²ζ₁²/μ² without noise.",
        DETERMINISTIC_SHORT,
    )
    .first_version("γ ≤ 1/(2L)"),
    Statement::new(ITERATES,
        "RR first version Corollary 2",
        "The appendix's form of Corollary 1.",
        DETERMINISTIC_SHORT,
    )
    .unmeasured("it restates Corollary 1 for γ ≤ 1/L, and is measured there."),
    Statement::new(ITERATES,
        "RR Proposition 3",
        "FedAvg goes to one stationary distribution, and W₂² from it falls by (1 − γμ)^H in each round.",
        CONTRACTION,
    )
    .first_version("γ ≤ 1/(2L)"),
    Statement::new(ITERATES,
        "RR Proposition 4",
        "E‖θ_t − θ̄‖² is at most a bound that falls to a multiple of γ (second version).",
        &[A1[0], A1[1], StepTimesSmoothness(0.125), PathTimesConvexity],
    ),
    Statement::new(FEDAVG, "RR Theorem 2, limit",
        "For quadratic functions FedAvg's bias is N⁻¹ Σ_c (I − Γ)⁻¹(I − Γ_c)(θ* − θ_c*).",
        QUADRATIC,
    ),
    Statement::new(FEDAVG, "RR Theorem 2, bound",
        "For quadratic functions FedAvg's bias is at most γ(H − 1) ζ₁ζ₂/μ.",
        QUADRATIC_SHORT,
    ),
    Statement::new(FEDAVG, "RR Theorem 2, bias",
        "For quadratic functions FedAvg's bias is (γ(H − 1)/2) b_h + O(γ²H²): there is no stochasticity bias.",
        QUADRATIC_SHORT,
    ),
    Statement::new(ITERATES,
        "RR Theorem 2, covariance",
        "For quadratic functions the stationary covariance is (γ/N) X + O(γ²H² + γ²H), where ∇²f X + X ∇²f = C: the variance scales with 1/N.",
        QUADRATIC_SHORT,
    ),
    Statement::new(FEDAVG, "RR Theorem 3, bias",
        "For homogeneous functions FedAvg's bias is (γ/2N) b_s + O(γ²H + γ^(3/2)).",
        HOMOGENEOUS,
    )
    .first_version("γ ≤ 1/(8L) and γH ≤ 1"),
    Statement::new(ITERATES,
        "RR Theorem 3, covariance",
        "For homogeneous functions the stationary covariance is (γ/N) X + O(γ²H + γ^(3/2)), where ∇²f X + X ∇²f = C.",
        HOMOGENEOUS,
    )
    .first_version("γ ≤ 1/(8L) and γH ≤ 1"),
    Statement::new(FEDAVG, "RR Theorem 4, bias",
        "FedAvg's bias is (γ/2N) b_s + (γ(H − 1)/2) b_h + O(γ²H² + γ^(3/2)H).",
        GENERAL,
    )
    .first_version("γ ≤ 1/(25L) and γH ≤ 1"),
    Statement::new(ITERATES,
        "RR Theorem 4, covariance",
        "The stationary covariance is (γ/N) X + O(γ²H² + γ^(3/2)H), where ∇²f X + X ∇²f = C.",
        GENERAL,
    )
    .first_version("γ ≤ 1/(25L) and γH ≤ 1"),
    Statement::new(FEDAVG, "RR Table 1",
        "The leading terms of the bias in the four cases: deterministic, quadratic, homogeneous, heterogeneous.",
        GENERAL,
    ),
    Statement::new(EXTRAPOLATED,
        "RR Theorem 5, bias",
        "The bias of Richardson-Romberg is O(γ²H² + γ^(3/2)H).",
        GENERAL,
    ),
    Statement::new(EXTRAPOLATED_ITERATES,
        "RR Theorem 5, communications",
        "Richardson-Romberg has E‖ϑ_t − θ*‖² = O(ε²) with γ = O(ε²), H = O(ε^(−4/3)) and T = O(ε^(−2/3) log(1/ε)) (second version).",
        GENERAL,
    ),
    Statement::new(EXTRAPOLATED_MEAN,
        "RR Theorem 6",
        "The average of Richardson-Romberg's iterates converges to the extrapolated mean ϑ̄ in mean square (Theorem 5 of the first version).",
        GENERAL,
    )
    .first_version("γ ≤ 1/(25L) and γH ≤ 1/2")
    .tested(&["crates/core/src/theory/moments/tests.rs: averaged_richardson_romberg_goes_to_the_extrapolated_mean"]),
    Statement::new(EXTRAPOLATED,
        "RR section 6, smaller bias",
        "When γH is small, the averaged iterates of Richardson-Romberg have a smaller bias than FedAvg.",
        GENERAL,
    ),
    Statement::new(OVER_LOCAL_STEPS,
        "RR Remark 1",
        "Extrapolation over the number of local steps removes the heterogeneity bias but not the stochasticity bias.",
        &[A1[0], A1[1], SeveralLocalSteps, StepTimesSmoothness(1.0 / 45.0), PathTimesConvexity],
    ),
    Statement::new(OUTPERFORMS,
        "RR section 7, outperforms",
        "On both problems of Figure 1 Richardson-Romberg consistently outperforms FedAvg.",
        GENERAL,
    ),
    Statement::new(COMPARED,
        "RR section 7, heterogeneous",
        "On the heterogeneous data Richardson-Romberg only partly removes the heterogeneity bias, which Scaffold suppresses.",
        GENERAL,
    ),
    Statement::new(COMPARED,
        "RR section 7, noisy",
        "On the noisy homogeneous data Richardson-Romberg can reduce the bias, while Scaffold fails.",
        GENERAL,
    ),
    Statement::new(ITERATES,
        "RR Lemma 1",
        "Without noise a local step shrinks squared distances by 1 − γμ.",
        DETERMINISTIC,
    )
    .unmeasured("it is a step of Proposition 1, whose claim tests it over whole rounds."),
    Statement::new(ITERATES,
        "RR Lemma 2",
        "Without noise a round shrinks squared distances by (1 − γμ)^H.",
        DETERMINISTIC,
    )
    .unmeasured("it is Proposition 1 for one round."),
    Statement::new(FEDAVG, "RR Theorem 7",
        "The expansion of Theorem 1 with its remainder (Theorem 6 of the first version's appendix).",
        DETERMINISTIC_SHORT,
    )
    .first_version("γ ≤ 1/(2L)")
    .unmeasured("it is the restated Theorem 1, and is measured there."),
    Statement::new(ITERATES,
        "RR Lemma 3",
        "With common draws a local step shrinks expected squared distances by 1 − γμ.",
        CONTRACTION,
    )
    .first_version("γ ≤ 1/(2L)")
    .unmeasured("it is a step of Proposition 3, whose claims test it over whole rounds."),
    Statement::new(ITERATES,
        "RR Lemma 4",
        "With common draws a round shrinks expected squared distances by (1 − γμ)^H.",
        CONTRACTION,
    )
    .first_version("γ ≤ 1/(2L)")
    .unmeasured("it is Proposition 3 for one round of two coupled runs."),
    Statement::new(ITERATES,
        "RR Lemma 5",
        "Where every client's gradient is 0 at θ*, E‖θ_t − θ*‖² ≤ (1 − 2γμ(1 − γL))^(Ht) ‖θ_0 − θ*‖² + γτ²/(μ(1 − γL)).",
        &[A1[0], A1[1], ZeroGradients, StepTimesSmoothness(0.5), PathTimesConvexity],
    ),
    Statement::new(ITERATES,
        "RR Remark 2",
        "Lemma 5 needs ∇f_c(θ*) = 0 for every client only, not equal clients.",
        &[A1[0], A1[1], ZeroGradients, StepTimesSmoothness(0.5), PathTimesConvexity],
    ),
    Statement::new(ITERATES,
        "RR Lemma 6",
        "Where every client's gradient is 0 at θ*, the stationary moments of ‖θ − θ*‖ of order 4 and 6 are O(γ²) and O(γ³).",
        &[A1[0], A1[1], ZeroGradients, StepTimesSmoothness(1.0 / 9.0), PathTimesConvexity],
    )
    .first_version("γ ≤ 1/(8L)")
    .tested(&["crates/core/src/theory/bounds/sixth_moments.rs: lemma_6_has_the_right_orders"]),
    Statement::new(ITERATES,
        "RR Lemma 7",
        "E‖θ_t − θ*‖² ≤ (1 − γμ/2)^(Ht) ‖θ_0 − θ*‖² + (H(H − 1)/μ)(4γ³L² + 2γ²L²/μ) ζ₁² + 8γτ²/μ.",
        &[A1[0], A1[1], StepTimesSmoothness(0.5), PathTimesConvexity],
    )
    .first_version("γ ≤ 1/L"),
    Statement::new(ITERATES,
        "RR Lemma 8",
        "The stationary moments of ‖θ − θ*‖ of order 2p, p = 2 and 3, are O(γ^p + γ^(2p)H^(2p)).",
        &[A1[0], A1[1], StepTimesSmoothness(1.0 / 45.0), PathTimesConvexity],
    )
    .first_version("γ ≤ 1/(25L)")
    .tested(&["crates/core/src/theory/bounds/sixth_moments.rs: lemma_8_has_the_right_orders", "crates/core/src/theory/bounds/sixth_moments.rs: the_heterogeneity_of_lemma_8_is_squared"]),
    Statement::new(FEDAVG, "RR Proposition 5",
        "For quadratic functions FedAvg's bias is at most γ(H − 1) ζ₁ζ₂/(2μ) (Proposition 4 of the first version).",
        QUADRATIC_SHORT,
    ),
    Statement::new(FEDAVG, "RR Proposition 6",
        "The expansion of Theorem 2 (Proposition 5 of the first version, there with a minus before b_h).",
        EXPANSION,
    ),
    Statement::new(&[],
        "RR Lemma 9",
        "A difference of two products of matrices is the sum over their first differing factor.",
        &[],
    )
    .unmeasured("it is an identity of algebra."),
];
