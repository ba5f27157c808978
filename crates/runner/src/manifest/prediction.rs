//! The predictions of theory that claims are tested on and figures draw.

use exactfed_core::theory::bounds::BoundId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prediction of theory.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = add_bounds)]
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
    /// The expression of the bias in RR's Proposition 2 on quadratics, with the factor −γ and all
    /// factors of its products, which is the exact bias.
    RrIdentity,
    /// The same as it is printed.
    RrIdentityPrinted,
    /// (1 − γμ)^{Ht}‖θ_0 − θ*‖² of two coupled runs (RR, Propositions 1 and 3).
    Contraction,
    /// The same with (1 − γμ)^{2Ht}, as SLIDES print it for the distance instead of its square.
    ContractionPrinted,
    /// A published power of ε beside a frontier, which figures draw and no claim names.
    #[serde(skip)]
    PublishedPower,
    /// A published statement with conditions: an upper bound, or an equality.
    #[serde(untagged)]
    #[schemars(skip, !untagged)]
    Bound(BoundId),
}

impl Prediction {
    /// Whether it is a published statement with conditions: an upper bound, or an equality.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Bound(_))
    }

    /// What pages call the prediction in sentences and in keys to curves.
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
            Self::RrIdentity => "the expression of RR, Proposition 2, with the factors it lacks",
            Self::RrIdentityPrinted => "the expression of RR, Proposition 2, as printed",
            Self::Contraction => "(1 − γμ)^(Ht) ‖θ_0 − θ*‖²",
            Self::ContractionPrinted => "(1 − γμ)^(2Ht) ‖θ_0 − θ*‖²",
            Self::PublishedPower => "the published power of ε",
            Self::Bound(bound) => &bound.info().words,
        }
    }
}

/// Adds the published statements, each by its key, to the choices of a schema of predictions, which serde reads but
/// schemars does not know. A schema without choices (`oneOf`) stays as it is.
pub fn add_bounds(schema: &mut schemars::Schema) {
    let Some(serde_json::Value::Array(choices)) = schema.get_mut("oneOf") else { return };
    choices.extend(BoundId::all().map(|bound| {
        let text = &bound.info().description;
        serde_json::json!({ "type": "string", "const": bound.key(), "description": text })
    }));
}
