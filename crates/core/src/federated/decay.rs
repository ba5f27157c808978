//! Step sizes that fall from round to round, or from local step to local step.

use serde::{Deserialize, Serialize};

/// γ_t = γ (1 + t/t₀)^(−α), where t counts rounds or local steps from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Decay {
    /// α, above 0 and at most 1. Above ½ the mean of the iterates forgets the heterogeneity bias
    /// faster than its standard deviation falls.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0), example = 0.66)]
    pub power: f64,
    /// t₀, above 0: the rounds, or local steps, after which the decay begins to count.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 10.0)]
    pub offset: f64,
    /// What t counts.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "rounds"))]
    pub by: DecayUnit,
}

/// What a decay of step sizes counts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DecayUnit {
    /// Rounds: all local steps of a round have one size.
    #[default]
    Rounds,
    /// Local steps: t = rH + h in step h of the round after r others, both from 0 on, with H the local
    /// steps of the client that takes the most. Clients that take fewer count in the same way.
    LocalSteps,
}

impl Decay {
    /// A decay of this power α that counts rounds, from t₀ = `offset` on.
    pub const fn by_rounds(power: f64, offset: f64) -> Self {
        Self { power, offset, by: DecayUnit::Rounds }
    }

    /// γ_t/γ after t = `count` rounds or local steps: 1 at the beginning.
    pub fn factor(self, count: u64) -> f64 {
        libm::pow(1.0 + count as f64 / self.offset, -self.power)
    }
}
