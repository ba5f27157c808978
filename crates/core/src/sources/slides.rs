//! The statements of SLIDES.

use super::statement::Condition::{self, *};
use super::statement::{StatedAlgorithm as Of, Statement};

const FEDAVG: &[Condition] = &[StronglyConvex, ConvexDraws];
const SCAFFOLD: &[Condition] = &[StronglyConvex, ConvexDraws, PathTimesSmoothness];

/// On FedAvg's stationary mean.
const BIAS: &[Condition] = &[Algorithm(&[Of::FedAvg], &[]), ConstantStepSize];
/// On FedAvg's iterates.
const ITERATES: &[Condition] = &[Algorithm(&[Of::FedAvg], &[]), ConstantStepSize, LastIterate];
/// On Scaffold's stationary mean; claims compare it with FedAvg's.
const SCAFFOLD_BIAS: &[Condition] = &[Algorithm(&[Of::Scaffold], &[Of::FedAvg]), ConstantStepSize];
/// On Scaffold's iterates; claims compare them with FedAvg's.
const SCAFFOLD_ITERATES: &[Condition] =
    &[Algorithm(&[Of::Scaffold], &[Of::FedAvg]), ConstantStepSize, LastIterate];
const EXTRAPOLATED: &[Condition] =
    &[Algorithm(&[Of::RichardsonRomberg], &[Of::FedAvg, Of::OverLocalSteps]), ConstantStepSize];
const ILLUSTRATED: &[Condition] =
    &[Algorithm(&[Of::FedAvg, Of::Scaffold, Of::RichardsonRomberg], &[]), ConstantStepSize];
/// On Scaffold's bias, which its extrapolation removes.
const TAILORED: &[Condition] = &[
    Algorithm(&[Of::Scaffold, Of::ExtrapolatedScaffold], &[Of::FedAvg, Of::RichardsonRomberg]),
    ConstantStepSize,
];

/// The statements, in the order of the talk.
pub const STATEMENTS: &[Statement] = &[
    Statement::new(BIAS,
        "SLIDES bias over H",
        "When the number of local iterations increases, FedAvg's bias increases.",
        FEDAVG,
    ),
    Statement::new(ITERATES,
        "SLIDES contraction of FedAvg",
        "W₂ of FedAvg's iterates from the stationary distribution falls by (1 − γμ)^H in each round.",
        FEDAVG,
    ),
    Statement::new(ITERATES,
        "SLIDES covariance of FedAvg",
        "FedAvg's stationary covariance is (γ/N) X + O(γ^(3/2)H), where ∇²f X + X ∇²f = C: linear speed-up, and the variance scales in γ.",
        FEDAVG,
    ),
    Statement::new(BIAS,
        "SLIDES bias of FedAvg",
        "FedAvg's bias is (γ(H − 1)/2) b_h − (γ/2N) ∇²f⁻¹∇³f[X] + O(γ^(3/2)H), where ∇²f X + X ∇²f = C.",
        FEDAVG,
    ),
    Statement::new(BIAS,
        "SLIDES no heterogeneity bias",
        "FedAvg's heterogeneity bias vanishes where all Hessians at θ* are equal, or all gradients.",
        FEDAVG,
    ),
    Statement::new(EXTRAPOLATED,
        "SLIDES Richardson-Romberg",
        "The combination 2θ^(γ) − θ^(2γ) of two runs of FedAvg corrects the bias.",
        FEDAVG,
    ),
    Statement::new(ILLUSTRATED,
        "SLIDES numerical illustration",
        "FedAvg, Scaffold and Richardson-Romberg are compared in a figure.",
        FEDAVG,
    )
    .unmeasured("it shows a figure and states nothing of it."),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES contraction of Scaffold",
        "If γHL ≤ 1, W₂ of Scaffold's iterates and control variates from the stationary distribution falls by (1 − γμ)^H in each round.",
        SCAFFOLD,
    )
    .tested(&["crates/core/src/theory/bounds/tests.rs: scaffold_contracts_without_noise_where_the_condition_holds"]),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES covariance of Scaffold",
        "Scaffold's stationary covariance is (γ/N) X + O(γ^(3/2)), where ∇²f X + X ∇²f = C: close to FedAvg's, linear speed-up, and the variance scales in γ.",
        SCAFFOLD,
    ),
    Statement::new(SCAFFOLD_BIAS,
        "SLIDES bias of Scaffold",
        "Scaffold's bias is −(γ/2N) ∇²f⁻¹∇³f[X] + O(γ^(3/2)), where ∇²f X + X ∇²f = C: no heterogeneity bias, but it is still biased.",
        SCAFFOLD,
    ),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES Cov(θ, θ)", "Σ^x = (γ/N) X + O(γ²H + γ^(3/2)), where ∇²f X + X ∇²f = C.", SCAFFOLD),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES Cov(θ, ξ_c)",
        "Σ^(x,ξ)_c = (γ/N) X (∇²f_c − ∇²f) + (γ/N)(C_c − C) + O(γ²H + γ^(3/2)), where ∇²f X + X ∇²f = C.",
        SCAFFOLD,
    ),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES Cov(ξ_c, ξ_c)",
        "Σ^ξ_(c,c) = (1 − 2/N) C_c/H + C/(NH) + O(γ).",
        SCAFFOLD,
    ),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES Cov(ξ_c, ξ_c')", "Σ^ξ_(c,c') = (C − C_c − C_c')/(NH) + O(γ).", SCAFFOLD),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES rate of Scaffold",
        "E‖x_T − x*‖² ≲ (1 − γμ/4)^(HT) (…) + γσ²/(Nμ) + γ^(3/2)Qσ³/μ^(5/2) + γ³HQ²σ⁴/μ³.",
        SCAFFOLD,
    ),
    Statement::new(SCAFFOLD_ITERATES, "SLIDES gradients per client",
        "As long as N is not too large, E‖x_T − x*‖² ≤ ε² takes Õ(σ²/(Nμ²ε²) log(1/ε)) gradients per client.",
        SCAFFOLD,
    ),
    Statement::new(TAILORED,
        "SLIDES tailored algorithms",
        "Scaffold is still biased: there is a need for algorithms tailored for federated learning and stochasticity.",
        SCAFFOLD,
    ),
];
