//! The predictions of theory that claims are tested on and figures draw.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prediction of theory.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Prediction {
    /// The exact moments of errors, biases and variances (linear problems).
    ExactMoments,
    /// The exact moments at stationarity.
    Stationary,
    /// The exact bias lim E θ_t − θ* (linear problems, or without noise).
    ExactBias,
    /// The first order in the step size, with the correct signs (RR, Theorem 4; SLIDES).
    FirstOrder,
    /// The first order as printed: in RR's first version for biases
    /// (+ stochasticity, − heterogeneity), in SLIDES for Cov(θ, ξ_c) (+).
    FirstOrderPrinted,
    /// The first order and the next term, which is not divided by N.
    SecondOrder,
    /// A closure of the equations of the mean, beyond first order.
    Closure,
    /// The central limit theorem for the mean of n iterates with falling step sizes:
    /// tr(A⁻¹CA⁻ᵀ)/(NHn), without the bias (Polyak and Juditsky 1992).
    Clt,
    /// SCAFFLSA, Theorem 4.1 with the constants of A.5.
    ScafflsaA5,
    /// SCAFFLSA, Theorem 5.1 with the constants of B.2, of the Lyapunov function.
    ScafflsaB2,
    /// SCAFFLSA, Theorem 5.3 with the constants of B.5.
    ScafflsaB5,
    /// SCAFFLSA, (26) with the factor ‖Ā_c‖²/2 that it lacks: of the first round from θ*.
    #[serde(rename = "scafflsa-26")]
    Scafflsa26,
    /// SCAFFLSA, (26) as printed.
    #[serde(rename = "scafflsa-26-printed")]
    Scafflsa26Printed,
    /// SCAFFLSA, Theorem B.4 where its equality holds, p² = 2ηa − η²a².
    ScafflsaB4,
    /// SCAFFLSA, Theorem B.4 as printed.
    #[serde(rename = "scafflsa-b4-printed")]
    ScafflsaB4Printed,
    /// RR, second version, Proposition 4, around the limit.
    RrProposition4,
    /// RR, Theorem 2: the bound γ(H − 1)ζ₁ζ₂/μ on the bias.
    RrTheorem2,
    /// RR, Proposition 5 (Proposition 4 of the first version): half that bound, as printed.
    RrProposition5Printed,
    /// RR, Corollary 1 (without noise).
    RrCorollary1,
    /// RR, Proposition 2: the bound γ(H − 1)Lζ₁/μ on the bias, on nonlinear fields without noise.
    RrProposition2,
    /// The expression of the bias in RR's Proposition 2 on quadratics, with the factor −γ and all
    /// factors of its products, which is the exact bias.
    RrIdentity,
    /// The same as it is printed.
    RrIdentityPrinted,
    /// RR, Lemma 5, for clients of a common optimum (Remark 2 of the first version).
    RrLemma5,
    /// RR, second version, Lemma 7.
    RrLemma7,
    /// SLIDES, the rate of Scaffold, with its universal constant set to 1.
    SlidesRate,
    /// BOOK, Theorem 5.1, with its orders written out.
    Book51,
    /// BOOK, Lemma 5.1: the equality (5.33), after one round from θ*.
    BookLemma51,
    /// BOOK, (5.54) with the distance that local steps travel: of the first round from θ*.
    Book554,
    /// BOOK, problem 5.3 to first order in the step size.
    Book53,
    /// (1 − γμ)^{Ht}‖θ_0 − θ*‖² of two coupled runs (RR, Propositions 1 and 3).
    Contraction,
    /// The same with (1 − γμ)^{2Ht}, as SLIDES print it for the distance instead of its square.
    ContractionPrinted,
    /// A published power of ε beside a frontier, which figures draw and no claim names.
    #[serde(skip)]
    PublishedPower,
}

impl Prediction {
    /// Whether it is a published statement with conditions: an upper bound, or an equality.
    pub fn is_bound(self) -> bool {
        use Prediction::*;
        matches!(
            self,
            ScafflsaA5
                | ScafflsaB2
                | ScafflsaB5
                | RrProposition4
                | RrTheorem2
                | RrProposition5Printed
                | Scafflsa26
                | Scafflsa26Printed
                | ScafflsaB4
                | ScafflsaB4Printed
                | RrCorollary1
                | RrProposition2
                | RrLemma5
                | RrLemma7
                | SlidesRate
                | Book51
                | BookLemma51
                | Book554
                | Book53
        )
    }

    /// How pages write it.
    pub fn words(self) -> &'static str {
        match self {
            Self::ExactMoments => "the exact moments",
            Self::Stationary => "the exact stationary moments",
            Self::ExactBias => "the exact bias",
            Self::FirstOrder => "the first order",
            Self::FirstOrderPrinted => "the first order as printed",
            Self::SecondOrder => "the first order and the term after it",
            Self::Closure => "the closure",
            Self::Clt => "the central limit theorem",
            Self::ScafflsaA5 => "the bound of SCAFFLSA, Theorem 4.1 (A.5)",
            Self::ScafflsaB2 => "the bound of SCAFFLSA, Theorem 5.1 (B.2)",
            Self::ScafflsaB5 => "the bound of SCAFFLSA, Theorem 5.3 (B.5)",
            Self::RrProposition4 => "the bound of RR, Proposition 4",
            Self::RrTheorem2 => "the bound of RR, Theorem 2",
            Self::RrProposition5Printed => "the bound of RR, Proposition 5, as printed",
            Self::RrCorollary1 => "the bound of RR, Corollary 1",
            Self::RrProposition2 => "the bound of RR, Proposition 2",
            Self::RrIdentity => "the expression of RR, Proposition 2, with the factors it lacks",
            Self::RrIdentityPrinted => "the expression of RR, Proposition 2, as printed",
            Self::RrLemma5 => "the bound of RR, Lemma 5",
            Self::RrLemma7 => "the bound of RR, Lemma 7",
            Self::SlidesRate => "the rate of SLIDES with the constant 1",
            Self::Scafflsa26 => "the bound of SCAFFLSA, (26), with its missing factor",
            Self::Scafflsa26Printed => "the bound of SCAFFLSA, (26), as printed",
            Self::ScafflsaB4 => "the equality of SCAFFLSA, Theorem B.4, corrected",
            Self::ScafflsaB4Printed => "the equality of SCAFFLSA, Theorem B.4, as printed",
            Self::Book51 => "the bound of BOOK, Theorem 5.1",
            Self::BookLemma51 => "the equality of BOOK, Lemma 5.1",
            Self::Book554 => "the bound of BOOK, (5.54), by the distance travelled",
            Self::Book53 => "the first order of BOOK, problem 5.3",
            Self::Contraction => "(1 − γμ)^(Ht) ‖θ_0 − θ*‖²",
            Self::ContractionPrinted => "(1 − γμ)^(2Ht) ‖θ_0 − θ*‖²",
            Self::PublishedPower => "the published power of ε",
        }
    }
}
