//! What is measured of a run and what a run costs: one table of quantities, with the names that
//! manifests, Parquet columns and pages use, and the functions that give their values.
//!
//! A new metric is a row of the table, with its function in [`measure`].

mod average;
mod cost;
#[cfg(test)]
mod dummy;
mod measure;

pub use average::TimeAverage;
pub use cost::{AtCost, Prices};
use exactfed_core::federated::Cost;
use exactfed_core::problem::RecordsOf;
use exactfed_core::theory::exact::Moments;
pub use measure::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is known of a quantity: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct QuantityInfo {
    /// The name in a manifest.
    pub name: &'static str,
    /// The column in Parquet.
    pub column: &'static str,
    /// How pages and axes write it.
    pub symbol: &'static str,
    /// What it means in words and in TeX; `None` of costs, whose symbol says it.
    pub meaning: Option<(&'static str, &'static str)>,
    /// Where its values come from.
    pub kind: QuantityKind,
    /// Its expectation from the exact moments of a run, if they give it.
    pub expected: Option<ExpectedValue>,
    /// Whether it is a norm or a difference of objectives, and not a square: rounding leaves more
    /// of it.
    pub is_norm: bool,
    /// Whether it is the squared distance of an estimate from what it should be, which sentences call
    /// an error.
    pub is_error: bool,
    /// Of a quantity of which more is better, what is compared in its place; `None` where less is
    /// better.
    pub shortfall: Option<Shortfall>,
    /// Whether it is about θ*, or about the exact limit, which is computed from θ*: it is not measured
    /// where a manifest leaves θ* out.
    pub needs_optimum: bool,
}

/// How far a quantity of which more is better is below its largest value. Ratios and rankings are of
/// this difference, so that everywhere less of what is compared is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// The largest value of the quantity.
    pub largest: f64,
    /// The value that a run counts with after it has diverged, which no run falls below.
    pub least: f64,
    /// The name of the difference to the largest value.
    pub name: &'static str,
}

/// A quantity from exact moments, θ* and the exact limit, if it is known.
pub type ExpectedValue = fn(&Moments, &[f64], Option<&[f64]>) -> Option<f64>;

/// The value of a metric; `None` where the run has none.
pub type MeasuredValue = fn(&Reading<'_>) -> Option<f64>;

/// Where the values of a quantity come from.
#[derive(Clone, Copy, Debug)]
pub enum QuantityKind {
    /// The squared error, which every run records.
    Error,
    /// It is measured at recorded rounds.
    Measured(MeasuredOn, MeasuredValue),
    /// It follows from an average over rounds.
    Average(TimeAverage),
    /// It is counted; with an amount that examples name.
    Count(fn(&mut Cost) -> &mut u64, f64),
    /// The simulated seconds.
    Seconds,
}

/// What a metric is measured on: it decides which runs have the metric, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredOn {
    /// The exact limit, whose distance has a column of its own.
    Limit,
    /// The estimate of any run.
    Estimate,
    /// The clients of one run.
    Clients,
    /// Control variates.
    Variates,
    /// The optimum of the virtual environment (TD).
    VirtualOptimum,
    /// The features (TD).
    Features,
    /// An objective.
    Objective,
    /// The mean field of all clients.
    Field,
    /// The loss of records.
    Loss(RecordsOf),
    /// The predicted classes of records.
    Classes(RecordsOf),
}

impl QuantityInfo {
    const fn new(
        name: &'static str,
        column: &'static str,
        symbol: &'static str,
        kind: QuantityKind,
    ) -> Self {
        Self {
            name,
            column,
            symbol,
            meaning: None,
            kind,
            expected: None,
            is_norm: false,
            is_error: false,
            shortfall: None,
            needs_optimum: false,
        }
    }

    const fn meaning(self, words: &'static str, tex: &'static str) -> Self {
        Self { meaning: Some((words, tex)), ..self }
    }

    const fn expected(self, expected: ExpectedValue) -> Self {
        Self { expected: Some(expected), ..self }
    }

    const fn of_optimum(self) -> Self {
        Self { needs_optimum: true, ..self }
    }

    const fn error(self) -> Self {
        Self { is_error: true, ..self }
    }

    const fn norm(self) -> Self {
        Self { is_norm: true, ..self }
    }

    /// A fraction of which more is better; `shortfall` names what it lacks to 1.
    const fn more_is_better(self, shortfall: &'static str) -> Self {
        let shortfall = Shortfall { largest: 1.0, least: 0.0, name: shortfall };
        Self { shortfall: Some(shortfall), ..self }
    }
}

/// Makes [`Metric`] and [`Quantity`] from the rows of the table. A metric after `#[cfg(test)]` is read by the tests
/// of this crate alone.
macro_rules! quantities {
    (
        errors { $($(#[doc = $error_doc:literal])* $error:ident = $error_info:expr;)* }
        costs { $($(#[doc = $cost_doc:literal])* $cost:ident = $cost_info:expr;)* }
        metrics { $($(#[doc = $doc:literal])* $(#[cfg($only:ident)])? $metric:ident = $info:expr;)* }
    ) => {
        /// A metric beyond those that are always recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Metric {
            $($(#[doc = $doc])* $(#[cfg($only)])? $metric,)*
        }

        /// Anything that a figure can have on an axis: what is measured, if it
        /// is recorded, and what it has cost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quantity {
            $($(#[doc = $error_doc])* $error,)*
            $($(#[doc = $cost_doc])* $cost,)*
            $($(#[doc = $doc])* $(#[cfg($only)])? $metric,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: &[Self] = &[$($(#[cfg($only)])? Self::$metric,)*];

            /// The metric as a quantity.
            pub const fn quantity(self) -> Quantity {
                match self { $($(#[cfg($only)])? Self::$metric => Quantity::$metric,)* }
            }
        }

        impl Quantity {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$error,)* $(Self::$cost,)* $($(#[cfg($only)])? Self::$metric,)*];

            /// The costs of a run.
            pub const COSTS: [Self; [$(stringify!($cost),)*].len()] = [$(Self::$cost,)*];

            /// The row of the table.
            pub const fn info(self) -> QuantityInfo {
                match self {
                    $(Self::$error => $error_info,)*
                    $(Self::$cost => $cost_info,)*
                    $($(#[cfg($only)])? Self::$metric => $info,)*
                }
            }

            /// What the reference of manifests says of a cost.
            fn description(self) -> &'static str {
                match self { $(Self::$cost => concat!($($cost_doc,)*).trim(),)* _ => "" }
            }

            /// The metric that must be recorded for it; `None` for what always is.
            pub fn metric(self) -> Option<Metric> {
                match self { $($(#[cfg($only)])? Self::$metric => Some(Metric::$metric),)* _ => None }
            }
        }
    };
}

use MeasuredOn::*;
use QuantityInfo as Info;
use QuantityKind::{Average, Count, Error, Measured};

quantities! {
    errors {
        /// ‖θ_t − θ*‖².
        SqError = Info::new("sq-error", "sq_error", "‖θ − θ*‖²", Error)
            .error()
            .of_optimum()
            .meaning("squared distance of the server's estimate from the optimum", r"\lVert \theta_t - \theta^* \rVert^2")
            .expected(|moments, _, _| Some(moments.sq_error));
        /// ‖E θ − θ*‖ of the estimates after the burn-in; needs the average `bias`.
        Bias = Info::new("bias", "bias", "‖E θ − θ*‖", Average(TimeAverage::Bias))
            .of_optimum()
            .meaning("norm of the mean bias", r"\lVert \mathbb{E}\,\theta - \theta^* \rVert")
            .norm();
        /// tr Cov θ of the estimates after the burn-in; needs the average `covariance`, and `bias` where
        /// theory knows no limit (without it this is E‖θ − θ*‖², and pages write that).
        Variance = Info::new("variance", "variance", "tr Cov θ", Average(TimeAverage::Covariance))
            .of_optimum()
            .meaning(
                "trace of the covariance over the rounds after the burn-in, around the exact limit, or else the measured mean",
                r"\operatorname{tr} \operatorname{Cov} \theta",
            );
    }
    costs {
        /// Exchanges between clients and server.
        Communications = Info::new("communications", "communications", "communications", Count(|cost| &mut cost.communications, 500.0));
        /// Local steps of one client, the slowest if they differ.
        LocalSteps = Info::new("local-steps", "local_step", "local steps of a client", Count(|cost| &mut cost.local_steps, 10_000.0));
        /// Gradients of all clients.
        OracleCalls = Info::new("oracle-calls", "oracle_calls", "gradients of all clients", Count(|cost| &mut cost.oracle_calls, 100_000.0));
        /// Gradients of one client, the slowest of each round, a batch of B counting B.
        Gradients = Info::new("gradients", "sequential_calls", "gradients of a client", Count(|cost| &mut cost.sequential_calls, 10_000.0));
        /// Vectors of d numbers sent in both directions.
        VectorsSent = Info::new("vectors-sent", "vectors_sent", "vectors sent", Count(|cost| &mut cost.vectors_sent, 5000.0));
        /// Bytes sent in both directions, 8 d per vector.
        Bytes = Info::new("bytes", "bytes_sent", "bytes sent", Count(|cost| &mut cost.bytes_sent, 1e6));
        /// Simulated seconds, by `[prices]`.
        Seconds = Info::new("seconds", "seconds", "simulated seconds", QuantityKind::Seconds);
    }
    metrics {
        /// ‖θ_t − lim E θ_t‖², the squared distance to the exact limit. It is always recorded on
        /// linear problems with independent noise that are not too large; if it is listed, also without noise on any
        /// field, around the fixed point that theory finds.
        SqErrorLimit = Info::new("sq-error-limit", "sq_error_limit", "‖θ − lim E θ‖²", Measured(Limit, |_| None))
            .error()
            .of_optimum()
            .meaning(
                "squared distance from the fixed point of the mean, which is its limit where it converges",
                r"\lVert \theta_t - \lim_s \mathbb{E}\,\theta_s \rVert^2",
            )
            .expected(measure::expected_from_limit);
        /// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², the mean of the estimates so far.
        SqErrorAverage = Info::new("sq-error-average", "sq_error_average", "‖mean of θ − θ*‖²", Measured(Estimate, measure::mean_so_far))
            .error()
            .of_optimum()
            .meaning("squared distance of the average of the estimates so far", r"\lVert \bar\theta_t - \theta^* \rVert^2")
            .expected(|moments, _, _| Some(moments.sq_error_average));
        /// N⁻¹ Σ_c ‖θ_c − θ*‖², the clients at the end of their local steps; weighted as they are.
        SqErrorClients = Info::new("sq-error-clients", "sq_error_clients", "N⁻¹ Σ ‖θ_c − θ*‖²", Measured(Clients, measure::clients))
            .error()
            .of_optimum()
            .meaning("mean squared distance of the clients", r"\frac{1}{N} \sum_{c=1}^{N} \lVert \theta_c - \theta^* \rVert^2")
            .expected(|moments, _, _| moments.sq_error_clients);
        /// ‖θ_t − θ̃‖² to the optimum of the virtual environment (TD).
        SqErrorVirtual = Info::new("sq-error-virtual", "sq_error_virtual", "‖θ − θ̃‖²", Measured(VirtualOptimum, |at| Some(at.distance_to(at.facts.virtual_optimum()?))))
            .error()
            .meaning("squared distance from the fixed point of the virtual chain", r"\lVert \theta_t - \tilde\theta \rVert^2");
        /// ‖θ_t − θ*‖²_Σφ, the error of values under the stationary distributions (TD).
        SqErrorFeatures = Info::new("sq-error-features", "sq_error_features", "‖θ − θ*‖² in the mean Σφ", Measured(Features, measure::in_features))
            .error()
            .of_optimum()
            .meaning(
                "squared distance in the mean covariance of the features",
                r"(\theta_t - \theta^*)^\top \bar\Sigma_\varphi\, (\theta_t - \theta^*)",
            );
        /// f(θ_t) − f(θ*) (losses).
        Suboptimality = Info::new("suboptimality", "suboptimality", "f(θ) − f(θ*)", Measured(Objective, |at| at.facts.suboptimality(at.run.estimate())))
            .of_optimum()
            .meaning("suboptimality of the mean loss", r"f(\theta_t) - f(\theta^*)")
            .norm();
        /// ‖F̄(θ_t)‖², the squared norm of the gradient, F̄ = N⁻¹ Σ F̄_c unless clients are weighted.
        SqGradient = Info::new("sq-gradient", "sq_gradient", "‖F̄(θ)‖²", Measured(Field, measure::mean_field))
            .meaning("squared norm of the mean field", r"\lVert \bar F(\theta_t) \rVert^2");
        /// The Lyapunov function of SCAFFLSA: (51) for a fixed number of local steps, (45) under
        /// random communication.
        Lyapunov = Info::new("lyapunov", "lyapunov", "ψ", Measured(Variates, measure::lyapunov))
            .of_optimum()
            .meaning(
                "Lyapunov function of errors and variates (SCAFFLSA 51, and 45 under a coin), where ℓ is γH, and γ/p under a coin; at a fixed local step the first term is the mean over clients",
                r"\psi_t = \lVert \theta_t - \theta^* \rVert^2 + \frac{\ell^2}{N} \sum_{c=1}^{N} \lVert \xi_c - \xi_c^* \rVert^2",
            )
            .expected(|moments, _, _| moments.lyapunov);
        /// ‖θ_t − θ'_t‖², with θ' a run on the same draws that starts at θ*.
        SqCoupling = Info::new("sq-coupling", "sq_coupling", "‖θ − θ'‖²", Measured(Estimate, |at| Some(at.distance_to(at.coupled?))))
            .of_optimum()
            .meaning("squared distance of two runs with the same noise", r"\lVert \theta_t - \theta'_t \rVert^2");
        /// ‖Σ_c ξ_c‖, weighted as clients are, which must be 0 up to rounding.
        CorrectionSum = Info::new("correction-sum", "correction_sum", "‖Σ ξ_c‖", Measured(Variates, measure::correction_sum))
            .meaning("norm of the sum of the variates: 0 but for rounding", r"\Bigl\lVert \sum_{c=1}^{N} \xi_c \Bigr\rVert")
            .norm();
        /// The mean loss of the records that clients hold, without the penalty; weighted as clients
        /// are (problems of records).
        TrainLoss = Info::new("train-loss", "train_loss", "training loss", Measured(Loss(RecordsOf::Clients), |at| at.facts.loss(at.run.estimate(), RecordsOf::Clients)))
            .meaning(
                "mean loss of the clients' records without the penalty, weighted as clients are",
                r"\frac{1}{N} \sum_{c=1}^{N} \frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})",
            );
        /// The mean loss of the records of the test set, without the penalty.
        TestLoss = Info::new("test-loss", "test_loss", "test loss", Measured(Loss(RecordsOf::Test), |at| at.facts.loss(at.run.estimate(), RecordsOf::Test)))
            .meaning(
                "mean loss of the records of the test set without the penalty",
                r"\frac{1}{n} \sum_{i=1}^{n} \ell(\theta_t; z_i)",
            );
        /// The fraction of the records that clients hold whose class θ_t predicts; weighted as
        /// clients are (problems of classes).
        Accuracy = Info::new("accuracy", "accuracy", "accuracy", Measured(Classes(RecordsOf::Clients), |at| at.facts.accuracy(at.run.estimate(), RecordsOf::Clients)))
            .meaning(
                "fraction of the clients' records whose class is predicted, weighted as clients are",
                r"\frac{1}{N} \sum_{c=1}^{N} \frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]",
            )
            .more_is_better("error rate");
        /// The fraction of the records of the test set whose class θ_t predicts.
        TestAccuracy = Info::new("test-accuracy", "test_accuracy", "test accuracy", Measured(Classes(RecordsOf::Test), |at| at.facts.accuracy(at.run.estimate(), RecordsOf::Test)))
            .meaning(
                "fraction of the records of the test set whose class is predicted",
                r"\frac{1}{n} \sum_{i=1}^{n} 1[y(x_i; \theta_t) = y_i]",
            )
            .more_is_better("test error rate");
        /// ‖θ_t − θ*‖_∞.
        #[cfg(test)]
        Dummy = Info::new("dummy", "dummy", "‖θ − θ*‖_∞", Measured(Estimate, dummy::largest_error))
            .of_optimum()
            .meaning("largest error of an entry", r"\lVert \theta_t - \theta^* \rVert_\infty")
            .norm();
    }
}

impl Metric {
    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        self.quantity().name()
    }

    /// The column in Parquet.
    pub fn column(self) -> &'static str {
        self.quantity().column()
    }

    /// What it is measured on, and its value.
    pub fn measured(self) -> (MeasuredOn, MeasuredValue) {
        match self.quantity().info().kind {
            QuantityKind::Measured(on, value) => (on, value),
            kind => unreachable!("{} is of the kind {kind:?}", self.name()),
        }
    }
}

#[expect(clippy::derivable_impls, reason = "a macro writes the variants")]
impl Default for Quantity {
    fn default() -> Self {
        Self::SqError
    }
}

impl Quantity {
    /// The name in a manifest.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The column in Parquet.
    pub fn column(self) -> &'static str {
        self.info().column
    }

    /// How pages and axes write it.
    pub fn formula(self) -> &'static str {
        self.info().symbol
    }

    /// The average that must be recorded for it.
    pub fn average(self) -> Option<TimeAverage> {
        match self.info().kind {
            QuantityKind::Average(average) => Some(average),
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
        matches!(self.info().kind, QuantityKind::Count(..))
    }

    /// Whether more of it is better, as of an accuracy.
    pub const fn more_is_better(self) -> bool {
        self.info().shortfall.is_some()
    }

    /// What rankings and ratios compare, of which less is better: the value itself, or how far it is
    /// below the largest. A value that is not finite, of runs that diverged, stays as it is.
    pub fn loss(self, value: f64) -> f64 {
        match self.info().shortfall {
            Some(Shortfall { largest, .. }) if value.is_finite() => largest - value,
            _ => value,
        }
    }

    /// What rankings and ratios compare, in a word or two.
    pub fn loss_name(self) -> String {
        match self.info().shortfall {
            Some(shortfall) => shortfall.name.to_owned(),
            None if self.info().is_error => "error".to_owned(),
            None => self.name().replace('-', " "),
        }
    }

    /// What rankings and ratios compare, as captions write it.
    pub fn compared(self) -> String {
        match self.info().shortfall {
            Some(Shortfall { largest, name, .. }) => {
                format!("{name} ({largest} − {})", self.formula())
            }
            None => self.formula().to_owned(),
        }
    }

    /// Which of several means is the best: the smallest or the largest.
    pub const fn best_mean(self) -> &'static str {
        if self.more_is_better() { "largest" } else { "smallest" }
    }

    /// Which of several means is the worst: the largest or the smallest.
    pub const fn worst_mean(self) -> &'static str {
        if self.more_is_better() { "smallest" } else { "largest" }
    }

    /// Whether it is about θ*, so that it is not known where a manifest leaves θ* out.
    pub const fn needs_optimum(self) -> bool {
        self.info().needs_optimum
    }

    /// What it counts as in a run that has diverged: nothing is worse.
    pub fn after_divergence(self) -> f64 {
        self.info().shortfall.map_or(f64::INFINITY, |shortfall| shortfall.least)
    }

    /// The quantity of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|q| q.name() == name)
    }

    /// The quantity that has this name in a manifest, in a frame or on a page, with any of the
    /// signs that join words.
    pub fn known_as(name: &str) -> Option<Self> {
        let joined = |name: &str| name.replace(['_', ' '], "-");
        Self::ALL.iter().copied().find(|q| {
            [q.name(), q.column(), q.formula()].iter().any(|own| joined(own) == joined(name))
        })
    }

    /// What has been paid in this unit; `None` of a quantity that is no cost.
    pub fn of_cost(self, cost: &Cost, prices: &Prices) -> Option<f64> {
        match self.info().kind {
            QuantityKind::Count(part, _) => Some(*part(&mut { *cost }) as f64),
            QuantityKind::Seconds => {
                let [communications, bytes, calls] =
                    [cost.communications, cost.bytes_sent, cost.sequential_calls];
                Some(prices.seconds(communications as f64, bytes as f64, calls as f64))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the table are those that serde reads and the schema has.
    #[test]
    fn names_are_those_of_manifests() {
        for quantity in Quantity::ALL {
            let name = serde_json::to_value(quantity).unwrap();
            assert_eq!(name, quantity.name());
            for known in [quantity.name(), quantity.column(), quantity.formula()] {
                assert_eq!(Quantity::known_as(known), Some(*quantity), "no two are named alike");
            }
        }
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
            assert_eq!(metric.quantity().metric(), Some(*metric));
            metric.measured();
        }
    }

    /// What has θ* or the limit in its symbol needs it, and only a twin that starts at θ* needs it
    /// without showing it.
    #[test]
    fn what_needs_the_optimum_shows_it() {
        let others = [Quantity::Variance, Quantity::Lyapunov, Quantity::SqCoupling];
        for quantity in Quantity::ALL {
            let shows = ["θ*", "lim"].iter().any(|sign| quantity.formula().contains(sign));
            let needs = shows || others.contains(quantity);
            assert_eq!(quantity.needs_optimum(), needs, "{}", quantity.name());
        }
    }
}
