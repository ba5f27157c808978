//! The table of quantities, a row each, from which [`Metric`] and [`Quantity`] are made.

#[cfg(test)]
use super::dummy;
use super::info::MeasuredOn::*;
use super::info::QuantityInfo;
use super::info::QuantityInfo as Info;
use super::info::QuantityKind::{self, Average, Count, Error, Measured};
use super::{TimeAverage, measure, over_clients, own};
use exactfed_core::problem::RecordsOf;
use schemars::JsonSchema;

/// Makes [`Metric`] and [`Quantity`] from the rows of the table, so that a quantity has its name, its column and its
/// function in one place. Rows after `errors` are what every run records and averages of it, rows after `costs` what
/// rounds cost, and rows after `metrics` what a manifest lists. A metric after `#[cfg(test)]` exists in the tests of
/// this crate alone.
macro_rules! quantities {
    (
        errors { $($(#[doc = $error_doc:literal])* $error:ident = $error_info:expr;)* }
        costs { $($(#[doc = $cost_doc:literal])* $cost:ident = $cost_info:expr;)* }
        metrics { $($(#[doc = $doc:literal])* $(#[cfg($only:ident)])? $metric:ident = $info:expr;)* }
        own { $($own:ident = $place:literal;)* }
    ) => {
        /// A metric beyond those that are always recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(rename_all = "kebab-case")]
        pub enum Metric {
            $($(#[doc = $doc])* $(#[cfg($only)])? $metric,)*
            $(#[doc = "A metric that is defined outside of this program."] #[schemars(skip)] $own,)*
        }

        /// Anything that a figure can have on an axis: what is measured, if it
        /// is recorded, and what it has cost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(rename_all = "kebab-case")]
        pub enum Quantity {
            $($(#[doc = $error_doc])* $error,)*
            $($(#[doc = $cost_doc])* $cost,)*
            $($(#[doc = $doc])* $(#[cfg($only)])? $metric,)*
            $(#[doc = "A metric that is defined outside of this program."] #[schemars(skip)] $own,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: &[Self] =
                &[$($(#[cfg($only)])? Self::$metric,)* $(Self::$own,)*];

            /// The metric as a quantity.
            pub const fn quantity(self) -> Quantity {
                match self {
                    $($(#[cfg($only)])? Self::$metric => Quantity::$metric,)*
                    $(Self::$own => Quantity::$own,)*
                }
            }
        }

        impl Quantity {
            /// All of them, with the places for metrics that are defined outside of this program.
            pub const ALL: &[Self] =
                &[$(Self::$error,)* $(Self::$cost,)* $($(#[cfg($only)])? Self::$metric,)* $(Self::$own,)*];

            /// The quantities that are costs of a run.
            pub const COSTS: [Self; [$(stringify!($cost),)*].len()] = [$(Self::$cost,)*];

            /// What is known of the quantity: its row of the table.
            pub fn info(self) -> QuantityInfo {
                match self {
                    $(Self::$error => $error_info,)*
                    $(Self::$cost => $cost_info,)*
                    $($(#[cfg($only)])? Self::$metric => $info,)*
                    $(Self::$own => own::info($place),)*
                }
            }

            /// Whether it is one of this program, or a metric of another one that has given it its name.
            pub(super) fn has_name(self) -> bool {
                match self { $(Self::$own => own::is_taken($place),)* _ => true }
            }

            /// What the reference of manifests says of a cost; empty for a quantity that is no cost.
            pub(super) fn description(self) -> &'static str {
                match self { $(Self::$cost => concat!($($cost_doc,)*).trim(),)* _ => "" }
            }

            /// The metric that a manifest must list for this quantity; `None` for a quantity that is no metric.
            pub fn metric(self) -> Option<Metric> {
                match self {
                    $($(#[cfg($only)])? Self::$metric => Some(Metric::$metric),)*
                    $(Self::$own => Some(Metric::$own),)*
                    _ => None,
                }
            }
        }
    };
}

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
            .of_unique_optimum()
            .meaning("norm of the mean bias", r"\lVert \mathbb{E}\,\theta - \theta^* \rVert")
            .norm();
        /// tr Cov θ of the estimates after the burn-in; needs the average `covariance`, and `bias` where
        /// theory knows no limit (without it this is E‖θ − θ*‖², and pages write that).
        Variance = Info::new("variance", "variance", "tr Cov θ", Average(TimeAverage::Covariance))
            .of_unique_optimum()
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
            .of_unique_optimum()
            .meaning(
                "squared distance from the fixed point of the mean, which is its limit where it converges",
                r"\lVert \theta_t - \lim_s \mathbb{E}\,\theta_s \rVert^2",
            )
            .expected(measure::expected_from_limit);
        /// ‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², the mean of the estimates so far.
        SqErrorAverage = Info::new("sq-error-average", "sq_error_average", "‖mean of θ − θ*‖²", Measured(Estimate, measure::sq_error_of_mean))
            .error()
            .of_optimum()
            .meaning("squared distance of the average of the estimates so far", r"\lVert \bar\theta_t - \theta^* \rVert^2")
            .expected(|moments, _, _| Some(moments.sq_error_average));
        /// N⁻¹ Σ_c ‖θ_c − θ*‖², the clients at the end of their local steps; weighted as they are.
        SqErrorClients = Info::new("sq-error-clients", "sq_error_clients", "N⁻¹ Σ ‖θ_c − θ*‖²", Measured(Clients, measure::sq_error_of_clients))
            .error()
            .of_optimum()
            .meaning("mean squared distance of the clients", r"\frac{1}{N} \sum_{c=1}^{N} \lVert \theta_c - \theta^* \rVert^2")
            .expected(|moments, _, _| moments.sq_error_clients);
        /// ‖θ_t − θ̃‖² to the optimum of the virtual environment (TD).
        SqErrorVirtual = Info::new("sq-error-virtual", "sq_error_virtual", "‖θ − θ̃‖²", Measured(VirtualOptimum, |at| Some(at.distance_to(at.facts.virtual_optimum()?))))
            .error()
            .meaning("squared distance from the fixed point of the virtual chain", r"\lVert \theta_t - \tilde\theta \rVert^2");
        /// ‖θ_t − θ*‖²_Σφ, the error of values under the stationary distributions (TD).
        SqErrorFeatures = Info::new("sq-error-features", "sq_error_features", "‖θ − θ*‖² in the mean Σφ", Measured(Features, measure::sq_error_in_features))
            .error()
            .of_optimum()
            .meaning(
                "squared distance in the mean covariance of the features",
                r"(\theta_t - \theta^*)^\top \bar\Sigma_\varphi\, (\theta_t - \theta^*)",
            );
        /// ‖θ_t − r‖² to the point r that `reference` of `[record]` states.
        SqErrorReference = Info::new("sq-error-reference", "sq_error_reference", "‖θ − r‖²", Measured(Reference, |at| Some(at.distance_to(at.reference?))))
            .error()
            .meaning("squared distance from the reference point r, which the manifest states", r"\lVert \theta_t - r \rVert^2");
        /// f(θ_t) − f(θ*) (losses).
        Suboptimality = Info::new("suboptimality", "suboptimality", "f(θ) − f(θ*)", Measured(Objective, |at| at.facts.suboptimality(at.run.estimate())))
            .of_optimum()
            .meaning("suboptimality of the mean loss", r"f(\theta_t) - f(\theta^*)")
            .norm();
        /// ‖F̄(θ_t)‖², the squared norm of the gradient, F̄ = N⁻¹ Σ F̄_c unless clients are weighted.
        SqGradient = Info::new("sq-gradient", "sq_gradient", "‖F̄(θ)‖²", Measured(Field, measure::sq_mean_field))
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
        SqCoupling = Info::new("sq-coupling", "sq_coupling", "‖θ − θ'‖²", Measured(Estimate, |at| Some(at.distance_to(at.coupled?.estimate()))))
            .of_unique_optimum()
            .meaning("squared distance of two runs with the same noise", r"\lVert \theta_t - \theta'_t \rVert^2");
        /// The same with control variates: ‖θ_t − θ'_t‖² + (ℓ²/N) Σ_c ‖ξ_c − ξ'_c‖², where ℓ is γH, and γ/p under a
        /// coin; weighted as clients are.
        SqCouplingVariates = Info::new("sq-coupling-variates", "sq_coupling_variates", "‖θ − θ'‖² + (ℓ²/N) Σ ‖ξ_c − ξ'_c‖²", Measured(Variates, measure::sq_coupling_with_variates))
            .of_unique_optimum()
            .meaning(
                "squared distance of two runs with the same noise and of their variates, where ℓ is γH, and γ/p under a coin",
                r"\lVert \theta_t - \theta'_t \rVert^2 + \frac{\ell^2}{N} \sum_{c=1}^{N} \lVert \xi_c - \xi'_c \rVert^2",
            );
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
        /// The largest over clients of the mean loss of a client's records, without the penalty
        /// (problems of records).
        WorstTrainLoss = Info::new("worst-train-loss", "worst_train_loss", "worst training loss", Measured(ClientLosses(RecordsOf::Clients), |at| Some(over_clients::largest(at.client_losses(RecordsOf::Clients)?))))
            .meaning(
                "largest over clients of the mean loss of the client's records, without the penalty",
                r"\max_c \frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})",
            );
        /// The ninth decile over clients of the mean loss of a client's records, by the
        /// nearest rank; each client counts once, as in `worst-train-loss`.
        NinthDecileTrainLoss = Info::new("ninth-decile-train-loss", "ninth_decile_train_loss", "ninth decile of training loss", Measured(ClientLosses(RecordsOf::Clients), |at| Some(over_clients::decile(at.client_losses(RecordsOf::Clients)?, 9))))
            .meaning(
                "ninth decile over clients of the mean loss of the client's records, without the penalty, by the nearest rank",
                r"Q_{0.9}\Bigl(\frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})\Bigr)",
            );
        /// The standard deviation over clients of the mean loss of a client's records; each client
        /// counts once, as in `worst-train-loss`.
        TrainLossSpread = Info::new("train-loss-spread", "train_loss_spread", "spread of training loss", Measured(ClientLosses(RecordsOf::Clients), |at| Some(over_clients::spread(&at.client_losses(RecordsOf::Clients)?))))
            .meaning(
                "standard deviation over clients of the mean loss of the client's records, without the penalty",
                r"\operatorname{std}_c \frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})",
            )
            .norm();
        /// The largest over clients of the mean loss of a client's records in the test set, without the penalty
        /// (problems of records whose `split` is a column that names the clients).
        WorstTestLoss = Info::new("worst-test-loss", "worst_test_loss", "worst test loss", Measured(ClientLosses(RecordsOf::Test), |at| Some(over_clients::largest(at.client_losses(RecordsOf::Test)?))))
            .meaning(
                "largest over clients of the mean loss of the client's records in the test set, without the penalty",
                r"\max_c \frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})",
            );
        /// The ninth decile over clients of the mean loss of a client's records in the test set, by the
        /// nearest rank; each client counts once, as in `worst-test-loss`.
        NinthDecileTestLoss = Info::new("ninth-decile-test-loss", "ninth_decile_test_loss", "ninth decile of test loss", Measured(ClientLosses(RecordsOf::Test), |at| Some(over_clients::decile(at.client_losses(RecordsOf::Test)?, 9))))
            .meaning(
                "ninth decile over clients of the mean loss of the client's records in the test set, without the penalty, by the nearest rank",
                r"Q_{0.9}\Bigl(\frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})\Bigr)",
            );
        /// The standard deviation over clients of the mean loss of a client's records in the test set; each client
        /// counts once, as in `worst-test-loss`.
        TestLossSpread = Info::new("test-loss-spread", "test_loss_spread", "spread of test loss", Measured(ClientLosses(RecordsOf::Test), |at| Some(over_clients::spread(&at.client_losses(RecordsOf::Test)?))))
            .meaning(
                "standard deviation over clients of the mean loss of the client's records in the test set, without the penalty",
                r"\operatorname{std}_c \frac{1}{n_c} \sum_{i=1}^{n_c} \ell(\theta_t; z_{c,i})",
            )
            .norm();
        /// The smallest over clients of the fraction of a client's records whose class θ_t predicts
        /// (problems of classes).
        WorstAccuracy = Info::new("worst-accuracy", "worst_accuracy", "worst accuracy", Measured(ClientClasses(RecordsOf::Clients), |at| Some(over_clients::smallest(at.client_accuracies(RecordsOf::Clients)?))))
            .meaning(
                "smallest over clients of the fraction of the client's records whose class is predicted",
                r"\min_c \frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]",
            )
            .more_is_better("worst error rate");
        /// The first decile over clients of the fraction of a client's records whose class θ_t
        /// predicts, by the nearest rank; each client counts once, as in `worst-accuracy`.
        FirstDecileAccuracy = Info::new("first-decile-accuracy", "first_decile_accuracy", "first decile of accuracy", Measured(ClientClasses(RecordsOf::Clients), |at| Some(over_clients::decile(at.client_accuracies(RecordsOf::Clients)?, 1))))
            .meaning(
                "first decile over clients of the fraction of the client's records whose class is predicted, by the nearest rank",
                r"Q_{0.1}\Bigl(\frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]\Bigr)",
            )
            .more_is_better("first-decile error rate");
        /// The standard deviation over clients of the fraction of a client's records whose class θ_t
        /// predicts; each client counts once, as in `worst-accuracy`.
        AccuracySpread = Info::new("accuracy-spread", "accuracy_spread", "spread of accuracy", Measured(ClientClasses(RecordsOf::Clients), |at| Some(over_clients::spread(&at.client_accuracies(RecordsOf::Clients)?))))
            .meaning(
                "standard deviation over clients of the fraction of the client's records whose class is predicted",
                r"\operatorname{std}_c \frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]",
            )
            .spread_of_fractions();
        /// The smallest over clients of the fraction of a client's records in the test set whose class θ_t predicts
        /// (problems of classes whose `split` is a column that names the clients).
        WorstTestAccuracy = Info::new("worst-test-accuracy", "worst_test_accuracy", "worst test accuracy", Measured(ClientClasses(RecordsOf::Test), |at| Some(over_clients::smallest(at.client_accuracies(RecordsOf::Test)?))))
            .meaning(
                "smallest over clients of the fraction of the client's records in the test set whose class is predicted",
                r"\min_c \frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]",
            )
            .more_is_better("worst test error rate");
        /// The first decile over clients of the fraction of a client's records in the test set whose class θ_t
        /// predicts, by the nearest rank; each client counts once, as in `worst-test-accuracy`.
        FirstDecileTestAccuracy = Info::new("first-decile-test-accuracy", "first_decile_test_accuracy", "first decile of test accuracy", Measured(ClientClasses(RecordsOf::Test), |at| Some(over_clients::decile(at.client_accuracies(RecordsOf::Test)?, 1))))
            .meaning(
                "first decile over clients of the fraction of the client's records in the test set whose class is predicted, by the nearest rank",
                r"Q_{0.1}\Bigl(\frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]\Bigr)",
            )
            .more_is_better("first-decile test error rate");
        /// The standard deviation over clients of the fraction of a client's records in the test set whose class θ_t
        /// predicts; each client counts once, as in `worst-test-accuracy`.
        TestAccuracySpread = Info::new("test-accuracy-spread", "test_accuracy_spread", "spread of test accuracy", Measured(ClientClasses(RecordsOf::Test), |at| Some(over_clients::spread(&at.client_accuracies(RecordsOf::Test)?))))
            .meaning(
                "standard deviation over clients of the fraction of the client's records in the test set whose class is predicted",
                r"\operatorname{std}_c \frac{1}{n_c} \sum_{i=1}^{n_c} 1[y(x_{c,i}; \theta_t) = y_{c,i}]",
            )
            .spread_of_fractions();
        /// The mean over classes of the recall, the fraction of the records of a class whose class θ_t predicts, on the
        /// records that clients hold; weighted as clients are (problems of classes).
        BalancedAccuracy = Info::new("balanced-accuracy", "balanced_accuracy", "balanced accuracy", Measured(Recalls(RecordsOf::Clients), |at| at.facts.balanced_accuracy(at.run.estimate(), RecordsOf::Clients)))
            .meaning(
                "mean over classes of the fraction of a class that is predicted, on the records that clients hold, weighted as clients are",
                r"\frac{1}{K} \sum_{k=1}^{K} P(y(x; \theta_t) = k \mid y = k)",
            )
            .more_is_better("balanced error rate");
        /// The area under the receiver operating characteristic: the probability that a record of a class has a higher
        /// score for it than a record of another class, a tie counting half, on the records that clients hold; weighted as
        /// clients are (problems of classes). With more than two classes it is the mean over classes, each against all
        /// others.
        Auc = Info::new("auc", "auc", "AUC", Measured(Order(RecordsOf::Clients), |at| at.facts.auc(at.run.estimate(), RecordsOf::Clients)))
            .meaning(
                "probability that a record of a class has a higher score for it than one of another class, on the records that clients hold, weighted as clients are",
                r"P(s(x; \theta_t) > s(x'; \theta_t)) + \tfrac{1}{2} P(s(x; \theta_t) = s(x'; \theta_t))",
            )
            .more_is_better("misranking rate");
        /// The mean over classes of the recall, the fraction of the records of a class whose class θ_t predicts, on the
        /// records of the test set.
        TestBalancedAccuracy = Info::new("test-balanced-accuracy", "test_balanced_accuracy", "balanced test accuracy", Measured(Recalls(RecordsOf::Test), |at| at.facts.balanced_accuracy(at.run.estimate(), RecordsOf::Test)))
            .meaning(
                "mean over classes of the fraction of a class that is predicted, on the records of the test set",
                r"\frac{1}{K} \sum_{k=1}^{K} P(y(x; \theta_t) = k \mid y = k)",
            )
            .more_is_better("balanced test error rate");
        /// The area under the receiver operating characteristic: the probability that a record of a class has a higher
        /// score for it than a record of another class, a tie counting half, on the records of the test set. With more
        /// than two classes it is the mean over classes, each against all others.
        TestAuc = Info::new("test-auc", "test_auc", "test AUC", Measured(Order(RecordsOf::Test), |at| at.facts.auc(at.run.estimate(), RecordsOf::Test)))
            .meaning(
                "probability that a record of a class has a higher score for it than one of another class, on the records of the test set",
                r"P(s(x; \theta_t) > s(x'; \theta_t)) + \tfrac{1}{2} P(s(x; \theta_t) = s(x'; \theta_t))",
            )
            .more_is_better("test misranking rate");
        /// ‖θ_t − θ*‖_∞.
        #[cfg(test)]
        Dummy = Info::new("dummy", "dummy", "‖θ − θ*‖_∞", Measured(Estimate, dummy::largest_error))
            .of_optimum()
            .meaning("largest error of an entry", r"\lVert \theta_t - \theta^* \rVert_\infty")
            .norm();
    }
    own {
        Own0 = 0;
        Own1 = 1;
        Own2 = 2;
        Own3 = 3;
        Own4 = 4;
        Own5 = 5;
        Own6 = 6;
        Own7 = 7;
    }
}
