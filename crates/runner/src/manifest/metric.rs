//! What is measured of a run, and what a run costs: the names that manifests,
//! Parquet columns and figures share, each written once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! quantities {
    (
        metrics { $($(#[doc = $doc:literal])* $metric:ident => $name:literal, $column:literal, $formula:literal;)* }
        others { $($(#[doc = $other_doc:literal])* $other:ident => $other_name:literal, $other_column:literal, $other_formula:literal;)* }
    ) => {
        /// A metric beyond those that are always recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Metric {
            $($(#[doc = $doc])* $metric,)*
        }

        /// Anything that a figure can have on an axis: what is measured, if it
        /// is recorded, and what it has cost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quantity {
            $($(#[doc = $other_doc])* $other,)*
            $($(#[doc = $doc])* $metric,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// The metric as a quantity.
            pub fn quantity(self) -> Quantity {
                match self { $(Self::$metric => Quantity::$metric,)* }
            }

            /// The name in a manifest.
            pub fn name(self) -> &'static str {
                self.quantity().name()
            }

            /// The column in Parquet.
            pub fn column(self) -> &'static str {
                self.quantity().column()
            }
        }

        impl Quantity {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$other,)* $(Self::$metric,)*];

            /// What the reference of manifests says of it.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$other => concat!($($other_doc,)*).trim(),)*
                    $(Self::$metric => concat!($($doc,)*).trim(),)*
                }
            }

            /// The name in a manifest.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$other => $other_name,)* $(Self::$metric => $name,)* }
            }

            /// The column in Parquet.
            pub fn column(self) -> &'static str {
                match self { $(Self::$other => $other_column,)* $(Self::$metric => $column,)* }
            }

            /// How pages and axes write it.
            pub fn formula(self) -> &'static str {
                match self { $(Self::$other => $other_formula,)* $(Self::$metric => $formula,)* }
            }

            /// The metric that must be recorded for it; `None` for what always is.
            pub fn metric(self) -> Option<Metric> {
                match self { $(Self::$metric => Some(Metric::$metric),)* _ => None }
            }
        }
    };
}

quantities! {
    metrics {
        /// ‖θ_t − lim E θ_t‖², the squared distance to the exact limit. It is always recorded on
        /// linear problems with independent noise that are not too large; if it is listed, also without noise on any
        /// field, around the fixed point that theory finds.
        SqErrorLimit => "sq-error-limit", "sq_error_limit", "‖θ − lim E θ‖²";
        /// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², the mean of the estimates so far.
        SqErrorAverage => "sq-error-average", "sq_error_average", "‖mean of θ − θ*‖²";
        /// N⁻¹ Σ_c ‖θ_c − θ*‖², the clients at the end of their local steps; weighted as they are.
        SqErrorClients => "sq-error-clients", "sq_error_clients", "N⁻¹ Σ ‖θ_c − θ*‖²";
        /// ‖θ_t − θ̃‖² to the optimum of the virtual environment (TD).
        SqErrorVirtual => "sq-error-virtual", "sq_error_virtual", "‖θ − θ̃‖²";
        /// ‖θ_t − θ*‖²_Σφ, the error of values under the stationary distributions (TD).
        SqErrorFeatures => "sq-error-features", "sq_error_features", "‖θ − θ*‖² in the mean Σφ";
        /// f(θ_t) − f(θ*) (losses).
        Suboptimality => "suboptimality", "suboptimality", "f(θ) − f(θ*)";
        /// ‖F̄(θ_t)‖², the squared norm of the gradient, F̄ = N⁻¹ Σ F̄_c unless clients are weighted.
        SqGradient => "sq-gradient", "sq_gradient", "‖F̄(θ)‖²";
        /// The Lyapunov function of SCAFFLSA: (51) for a fixed number of local steps, (45) under
        /// random communication.
        Lyapunov => "lyapunov", "lyapunov", "ψ";
        /// ‖θ_t − θ'_t‖², with θ' a run on the same draws that starts at θ*.
        SqCoupling => "sq-coupling", "sq_coupling", "‖θ − θ'‖²";
        /// ‖Σ_c ξ_c‖, weighted as clients are, which must be 0 up to rounding.
        CorrectionSum => "correction-sum", "correction_sum", "‖Σ ξ_c‖";
        /// The mean loss of the records that clients hold, without the penalty; weighted as clients
        /// are (problems of records).
        TrainLoss => "train-loss", "train_loss", "training loss";
        /// The mean loss of the records of the test set, without the penalty.
        TestLoss => "test-loss", "test_loss", "test loss";
        /// The fraction of the records that clients hold whose class θ_t predicts; weighted as
        /// clients are (problems of classes).
        Accuracy => "accuracy", "accuracy", "accuracy";
        /// The fraction of the records of the test set whose class θ_t predicts.
        TestAccuracy => "test-accuracy", "test_accuracy", "test accuracy";
    }
    others {
        /// ‖θ_t − θ*‖².
        SqError => "sq-error", "sq_error", "‖θ − θ*‖²";
        /// ‖E θ − θ*‖ of the estimates after the burn-in; needs the average `bias`.
        Bias => "bias", "bias", "‖E θ − θ*‖";
        /// tr Cov θ of the estimates after the burn-in; needs the average `covariance`, and `bias` where
        /// theory knows no limit (without it this is E‖θ − θ*‖², and pages write that).
        Variance => "variance", "variance", "tr Cov θ";
        /// Exchanges between clients and server.
        Communications => "communications", "communications", "communications";
        /// Local steps of one client, the slowest if they differ.
        LocalSteps => "local-steps", "local_step", "local steps of a client";
        /// Oracle evaluations of all clients.
        OracleCalls => "oracle-calls", "oracle_calls", "oracle calls of all clients";
        /// Oracle evaluations of one client, the slowest of each round, a batch of B counting B.
        Gradients => "gradients", "sequential_calls", "oracle calls of a client";
        /// Vectors of d numbers sent in both directions.
        VectorsSent => "vectors-sent", "vectors_sent", "vectors sent";
        /// Bytes sent in both directions, 8 d per vector.
        Bytes => "bytes", "bytes_sent", "bytes sent";
        /// Simulated seconds, by `[prices]`.
        Seconds => "seconds", "seconds", "simulated seconds";
    }
}

#[expect(clippy::derivable_impls, reason = "a macro writes the variants")]
impl Default for Quantity {
    fn default() -> Self {
        Self::SqError
    }
}

impl Quantity {
    /// The average that must be recorded for it.
    pub fn average(self) -> Option<TimeAverage> {
        match self {
            Self::Bias => Some(TimeAverage::Bias),
            Self::Variance => Some(TimeAverage::Covariance),
            _ => None,
        }
    }

    /// How pages write it where second moments are around θ*.
    pub fn formula_around_optimum(self) -> &'static str {
        match self {
            Self::Variance => "E‖θ − θ*‖²",
            other => other.formula(),
        }
    }

    /// Whether it is counted: a whole number.
    pub fn is_counted(self) -> bool {
        Self::COSTS.contains(&self) && self != Self::Seconds
    }

    /// Whether it is a fraction from 0 to 1, of which more is better.
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Accuracy | Self::TestAccuracy)
    }

    /// The quantity of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|q| q.name() == name)
    }
}

/// What is averaged over the rounds of a run after its burn-in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TimeAverage {
    /// θ_t − θ*, d numbers. On a field that is not linear it is taken relative to a run on the
    /// same draws, linearised at θ* draw by draw, whose exact mean is added back: this estimates
    /// the same vector with far less noise.
    Bias,
    /// (θ_t − lim E θ)(θ_t − lim E θ)ᵀ, d² numbers; around θ* if no limit is known. There it is no
    /// covariance; with `bias` recorded as well, figures and claims subtract the squared bias,
    /// by products of different runs, and without it they name it E (θ − θ*)(θ − θ*)ᵀ.
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

    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bias => "bias",
            Self::Covariance => "covariance",
            Self::CrossCovariance => "cross-covariance",
            Self::VariateCovariance => "variate-covariance",
            Self::VariatePairCovariance => "variate-pair-covariance",
        }
    }

    /// The column in Parquet.
    pub fn column(self) -> String {
        format!("mean_{}", self.name().replace('-', "_"))
    }

    /// How pages write it.
    pub fn formula(self) -> &'static str {
        match self {
            Self::Bias => "E θ − θ*",
            Self::Covariance => "Cov θ",
            Self::CrossCovariance => "Cov(θ, ξ_c)",
            Self::VariateCovariance => "Cov(ξ_c, ξ_c)",
            Self::VariatePairCovariance => "Cov(ξ_c, ξ_c')",
        }
    }

    /// How pages write it where it is around θ* and ξ_c*.
    pub fn formula_around_optimum(self) -> &'static str {
        match self {
            Self::Bias => self.formula(),
            Self::Covariance => "E (θ − θ*)(θ − θ*)ᵀ",
            Self::CrossCovariance => "E (θ − θ*)(ξ_c − ξ_c*)ᵀ",
            Self::VariateCovariance => "E (ξ_c − ξ_c*)(ξ_c − ξ_c*)ᵀ",
            Self::VariatePairCovariance => "E (ξ_c − ξ_c*)(ξ_c' − ξ_c'*)ᵀ",
        }
    }

    /// Whether it is of the control variates.
    pub fn of_variates(self) -> bool {
        !matches!(self, Self::Bias | Self::Covariance)
    }
}
