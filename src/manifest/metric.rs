//! What is measured of a run, and what a run costs: the names that manifests,
//! Parquet columns and figures share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! names {
    ($type:ident, $($variant:ident => $name:literal, $column:literal, $formula:literal;)*) => {
        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in a manifest.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The column in Parquet.
            pub fn column(self) -> &'static str {
                match self { $(Self::$variant => $column,)* }
            }

            /// How pages and axes write it.
            pub fn formula(self) -> &'static str {
                match self { $(Self::$variant => $formula,)* }
            }
        }
    };
}

/// A metric beyond those that are always recorded.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// ‖θ_t − lim E θ_t‖² where it is not recorded anyway: without noise on a
    /// field that is not linear, around the fixed point that theory finds.
    SqErrorLimit,
    /// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², the mean of the estimates so far.
    SqErrorAverage,
    /// N⁻¹ Σ_c ‖θ_c − θ*‖², the clients at the end of their local steps.
    SqErrorClients,
    /// ‖θ_t − θ̃‖² to the optimum of the virtual environment (TD).
    SqErrorVirtual,
    /// ‖θ_t − θ*‖²_Σφ, the error of values under the stationary laws (TD).
    SqErrorFeatures,
    /// f(θ_t) − f(θ*) (losses).
    Suboptimality,
    /// ‖N⁻¹ Σ F̄_c(θ_t)‖², the squared norm of the gradient.
    SqGradient,
    /// The Lyapunov function of SCAFFLSA: (51) under fixed work, (45) under a coin.
    Lyapunov,
    /// ‖Σ_c ξ_c‖, which must be 0 up to rounding: a self-check.
    CorrectionSum,
}

names! {
    Metric,
    SqErrorLimit => "sq-error-limit", "sq_error_limit", "‖θ − lim E θ‖²";
    SqErrorAverage => "sq-error-average", "sq_error_average", "‖mean of θ − θ*‖²";
    SqErrorClients => "sq-error-clients", "sq_error_clients", "N⁻¹ Σ ‖θ_c − θ*‖²";
    SqErrorVirtual => "sq-error-virtual", "sq_error_virtual", "‖θ − θ̃‖²";
    SqErrorFeatures => "sq-error-features", "sq_error_features", "‖θ − θ*‖² in the mean Σφ";
    Suboptimality => "suboptimality", "suboptimality", "f(θ) − f(θ*)";
    SqGradient => "sq-gradient", "sq_gradient", "‖F̄(θ)‖²";
    Lyapunov => "lyapunov", "lyapunov", "ψ";
    CorrectionSum => "correction-sum", "correction_sum", "‖Σ ξ_c‖";
}

/// Anything that a figure can have on an axis: what is measured, and what it
/// has cost.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// ‖θ_t − θ*‖².
    #[default]
    SqError,
    /// ‖θ_t − lim E θ_t‖²: the error less the exact bias (linear problems).
    SqErrorLimit,
    /// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², if recorded.
    SqErrorAverage,
    /// N⁻¹ Σ_c ‖θ_c − θ*‖², if recorded.
    SqErrorClients,
    /// ‖θ_t − θ̃‖², if recorded.
    SqErrorVirtual,
    /// ‖θ_t − θ*‖²_Σφ, if recorded.
    SqErrorFeatures,
    /// f(θ_t) − f(θ*), if recorded.
    Suboptimality,
    /// ‖N⁻¹ Σ F̄_c(θ_t)‖², if recorded.
    SqGradient,
    /// SCAFFLSA's Lyapunov function, if recorded.
    Lyapunov,
    /// ‖Σ_c ξ_c‖, if recorded.
    CorrectionSum,
    /// Rounds in which clients and server spoke.
    Communications,
    /// Local steps of one client, the slowest where they differ.
    LocalSteps,
    /// Oracle evaluations of all clients.
    OracleCalls,
    /// Vectors of d numbers sent by all, up and down.
    VectorsSent,
    /// Bytes sent by all, 8 d a vector.
    Bytes,
    /// Simulated seconds, by `[prices]`.
    Seconds,
}

names! {
    Quantity,
    SqError => "sq-error", "sq_error", "‖θ − θ*‖²";
    SqErrorLimit => "sq-error-limit", "sq_error_limit", "‖θ − lim E θ‖²";
    SqErrorAverage => "sq-error-average", "sq_error_average", "‖mean of θ − θ*‖²";
    SqErrorClients => "sq-error-clients", "sq_error_clients", "N⁻¹ Σ ‖θ_c − θ*‖²";
    SqErrorVirtual => "sq-error-virtual", "sq_error_virtual", "‖θ − θ̃‖²";
    SqErrorFeatures => "sq-error-features", "sq_error_features", "‖θ − θ*‖² in the mean Σφ";
    Suboptimality => "suboptimality", "suboptimality", "f(θ) − f(θ*)";
    SqGradient => "sq-gradient", "sq_gradient", "‖F̄(θ)‖²";
    Lyapunov => "lyapunov", "lyapunov", "ψ";
    CorrectionSum => "correction-sum", "correction_sum", "‖Σ ξ_c‖";
    Communications => "communications", "communications", "communications";
    LocalSteps => "local-steps", "local_step", "local steps of a client";
    OracleCalls => "oracle-calls", "oracle_calls", "oracle calls of all clients";
    VectorsSent => "vectors-sent", "vectors_sent", "vectors sent";
    Bytes => "bytes", "bytes_sent", "bytes sent";
    Seconds => "seconds", "seconds", "simulated seconds";
}

impl Quantity {
    /// The quantity of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|q| q.name() == name)
    }

    /// The metric that must be recorded for it; `None` for costs and for
    /// ‖θ_t − θ*‖².
    pub fn metric(self) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|m| m.name() == self.name())
    }

    /// Whether it is a cost.
    pub fn is_cost(self) -> bool {
        self != Self::SqError && self.metric().is_none()
    }
}
