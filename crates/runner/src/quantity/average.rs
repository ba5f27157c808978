//! What is averaged over the rounds of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is averaged over the rounds of a run after its burn-in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TimeAverage {
    /// θ_t − θ*, d numbers. On a field that is not linear, a second run uses the same draws, with
    /// the field linearised at θ* in each draw. Its exact mean is known. The difference of the two
    /// runs plus this mean estimates the same vector with far less noise.
    Bias,
    /// (θ_t − lim E θ)(θ_t − lim E θ)ᵀ, d² numbers. If no limit is known, it is taken around θ* and
    /// contains the squared bias. With `bias` recorded as well, figures and claims subtract the
    /// squared bias, estimated by products of different runs. Without it they name the quantity E
    /// (θ − θ*)(θ − θ*)ᵀ.
    Covariance,
    /// (θ_t − θ*)(ξ_c − ξ_c*)ᵀ for each client, ξ_c* = −F̄_c(θ*); N d² numbers.
    CrossCovariance,
    /// (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ for each client; N d² numbers.
    VariateCovariance,
    /// (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ with c' the client after c; N d² numbers.
    VariatePairCovariance,
}

impl TimeAverage {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Bias,
        Self::Covariance,
        Self::CrossCovariance,
        Self::VariateCovariance,
        Self::VariatePairCovariance,
    ];

    /// The name in a manifest, how pages write the average, and how they write it where it is around θ* and ξ_c* and
    /// not around the means.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Bias => ["bias", "E θ − θ*", "E θ − θ*"],
            Self::Covariance => ["covariance", "Cov θ", "E (θ − θ*)(θ − θ*)ᵀ"],
            Self::CrossCovariance => ["cross-covariance", "Cov(θ, ξ_c)", "E (θ − θ*)(ξ_c − ξ_c*)ᵀ"],
            Self::VariateCovariance => {
                ["variate-covariance", "Cov(ξ_c, ξ_c)", "E (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ"]
            }
            Self::VariatePairCovariance => {
                ["variate-pair-covariance", "Cov(ξ_c, ξ_c')", "E (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ"]
            }
        }
    }

    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        self.words()[0]
    }

    /// The column in Parquet.
    pub fn column(self) -> String {
        format!("mean_{}", self.name().replace('-', "_"))
    }

    /// How pages write the average where it is around the limits of the means.
    pub fn formula(self) -> &'static str {
        self.words()[1]
    }

    /// How pages write the average where it is around θ* and ξ_c*, because no limit is known.
    pub fn formula_around_optimum(self) -> &'static str {
        self.words()[2]
    }

    /// Whether it is about control variates ξ_c, so that only algorithms with control variates have it.
    pub fn of_variates(self) -> bool {
        !matches!(self, Self::Bias | Self::Covariance)
    }
}
