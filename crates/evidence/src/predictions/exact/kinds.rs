//! The kinds of values, each with its axes, its source and where it is known.

use super::known::KnownCell;
use exactfed_runner::manifest::Prediction as By;
use exactfed_runner::manifest::{Quantity, TimeAverage};
use exactfed_runner::runner::predict;

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayAxis {
    /// The recorded rounds.
    Rounds,
    /// The clients.
    Clients,
    /// The entries of θ.
    Entries,
}

/// What a value is.
#[derive(Debug)]
pub struct ValueKind {
    /// Its name.
    pub name: &'static str,
    /// Its axes, the last fastest; none for a number.
    pub axes: &'static [ArrayAxis],
    /// What it is, with the number of its equation in a source.
    pub meaning: &'static str,
    /// When it is known.
    pub(super) known: &'static str,
    pub(super) how: ValueSource,
}

impl ValueKind {
    /// Whether it is of the instance alone, whatever is run on it.
    pub(super) fn is_of_instance(&self) -> bool {
        [ALWAYS, SMALL, SEARCHED, MEASURED].contains(&self.known)
    }

    /// Whether it follows from the limit of the moments.
    pub(super) fn is_of_rest(&self) -> bool {
        [STABLE, LIMIT].contains(&self.known)
    }

    /// Whether it follows from the program of an algorithm's rounds.
    pub(super) fn is_of_rounds(&self) -> bool {
        [CLOSED, COUPLED].contains(&self.known) || self.is_of_rest()
    }

    /// Whether it is a spectral radius.
    pub(super) fn is_radius(&self) -> bool {
        ["mean_radius", "square_radius"].contains(&self.name)
    }

    /// Whether it is made of the exact moments at the recorded rounds.
    pub(super) fn needs_moments(&self) -> bool {
        self.known == CLOSED
    }
}

/// How a value is found.
#[derive(Debug)]
pub enum ValueSource {
    /// Computed from the instance, the run and its moments.
    Found(fn(&KnownCell<'_>) -> Option<Vec<f64>>),
    /// A quantity of the exact moments at each recorded round.
    Moments(Quantity),
    /// A prediction of a quantity at each recorded round.
    Curve(Quantity, By),
    /// A quantity of the moments at stationarity.
    AtRest(Quantity),
    /// A prediction of a vector.
    Vector(TimeAverage, By),
}

const R: ArrayAxis = ArrayAxis::Rounds;
const N: ArrayAxis = ArrayAxis::Clients;
const D: ArrayAxis = ArrayAxis::Entries;

/// Where values of one kind are known.
const ALWAYS: &str = "of every instance";
const SMALL: &str = "of instances with at most 10⁷ entries of all clients";
const SEARCHED: &str = "where a search found θ*; otherwise θ* is the solution of a linear system";
const MEASURED: &str = "where the eigenvalues of all Jacobians can be computed";
const EVEN: &str = "where all clients take the same number of local steps between communications, and it is not too large";
const LIMIT: &str = "on linear fields with independent draws (or of few clients and states), and without noise where `sq-error-limit` is among the metrics; not for a part of clients of unequal weight";
const CLOSED: &str =
    "where the equations of second moments close: on linear fields whose noise has known moments";
const STABLE: &str = "where the equations of second moments close and are stable: on linear fields whose noise has known moments, at a constant step size";
const BLOCKS: &str = "where the equations of second moments close and are stable, for one run with control variates of each client's own";
const EXPANDED: &str = "where all clients take the same number of plain local steps of constant size and all communicate, on independent draws with known second derivatives of the mean fields";
const SPREAD: &str = "where one run of all clients takes the same number of plain local steps of constant size, on independent draws";
const QUADRATIC: &str =
    "for FedAvg on linear fields with independent draws and clients of equal weight";
const COUPLED: &str =
    "where the equations of second moments close and communication is not decided by a coin";
const CONVEX: &str =
    "for clients of equal weight that take the same number of plain local steps of constant size";
const FALLING: &str =
    "for the mean of all estimates of one run of all clients, on independent draws";

/// A kind of value.
const fn kind(
    name: &'static str,
    axes: &'static [ArrayAxis],
    meaning: &'static str,
    known: &'static str,
    how: ValueSource,
) -> ValueKind {
    ValueKind { name, axes, meaning, known, how }
}

/// All kinds of values.
pub static KINDS: &[ValueKind] = &[
    kind(
        "optimum",
        &[D],
        "θ*, the zero of the mean of the clients' mean fields",
        ALWAYS,
        ValueSource::Found(|k| Some(k.facts.optimum().to_vec())),
    ),
    kind(
        "optimum_error",
        &[],
        "a bound on the distance of `optimum` from θ*",
        SEARCHED,
        ValueSource::Found(|k| Some(vec![k.facts.optimum_error()?])),
    ),
    kind(
        "shares",
        &[N],
        "π_c, the weight of each client in every mean; their sum is 1",
        ALWAYS,
        ValueSource::Found(|k| k.of_clients(|c| vec![k.facts.share(c)])),
    ),
    kind(
        "client_optima",
        &[N, D],
        "θ_c*, the zero of each client's mean field",
        SMALL,
        ValueSource::Found(|k| k.of_clients(|c| k.facts.local_optimum(c).to_vec())),
    ),
    kind(
        "client_fields",
        &[N, D],
        "F̄_c(θ*), each client's mean field at θ*",
        SMALL,
        ValueSource::Found(|k| k.of_clients(|c| k.facts.field_at_optimum(c))),
    ),
    kind("start", &[D], "θ_0", ALWAYS, ValueSource::Found(|k| Some(k.scenario.start.clone()))),
    kind(
        "zeta1",
        &[],
        "ζ₁, the root mean square of ‖F̄_c(θ*)‖ (RR A2)",
        MEASURED,
        ValueSource::Found(|k| k.measure(|m| m.zeta1)),
    ),
    kind(
        "zeta2",
        &[],
        "ζ₂, the root mean square of ‖H_c − A‖ (RR A2)",
        MEASURED,
        ValueSource::Found(|k| k.measure(|m| m.zeta2)),
    ),
    kind(
        "mu",
        &[],
        "μ, the smallest eigenvalue of the symmetric part of A = Σ π_c H_c",
        MEASURED,
        ValueSource::Found(|k| k.measure(|m| m.mu)),
    ),
    kind(
        "smoothness",
        &[],
        "L, the largest spectral norm of a client's H_c",
        MEASURED,
        ValueSource::Found(|k| k.measure(|m| m.smoothness)),
    ),
    kind(
        "noise",
        &[],
        "Σ π_c tr C_c, the noise at θ*",
        MEASURED,
        ValueSource::Found(|k| k.measure(|m| m.noise)),
    ),
    kind(
        "drift",
        &[],
        "‖θ* − Σ π_c θ_c^(H)‖/(γH), after local steps without noise from θ* (SLIDES)",
        EVEN,
        ValueSource::Found(|k| k.drift()),
    ),
    kind(
        "limit",
        &[D],
        "lim E θ_t (SCAFFLSA Theorem 4.1, (24))",
        LIMIT,
        ValueSource::Found(|k| Some(predict::limit(k.prepared.cell, k.scenario)?.to_vec())),
    ),
    kind(
        "bias",
        &[D],
        "lim E θ_t − θ* (SCAFFLSA Theorem 4.1, (24))",
        LIMIT,
        ValueSource::Vector(TimeAverage::Bias, By::ExactBias),
    ),
    kind(
        "mean",
        &[R, D],
        "E θ_t, exact moments",
        CLOSED,
        ValueSource::Found(|k| {
            k.of_moments(|m| m.mean.iter().zip(k.facts.optimum()).map(|(x, o)| x + o).collect())
        }),
    ),
    kind(
        "covariance",
        &[R, D, D],
        "Cov θ_t, exact moments",
        CLOSED,
        ValueSource::Found(|k| k.of_moments(|m| m.covariance.entries().to_vec())),
    ),
    kind(
        "sq_error",
        &[R],
        "E‖θ_t − θ*‖², exact moments",
        CLOSED,
        ValueSource::Moments(Quantity::SqError),
    ),
    kind(
        "sq_error_limit",
        &[R],
        "E‖θ_t − lim E θ‖², exact moments",
        CLOSED,
        ValueSource::Moments(Quantity::SqErrorLimit),
    ),
    kind(
        "sq_error_average",
        &[R],
        "E‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², exact moments",
        CLOSED,
        ValueSource::Moments(Quantity::SqErrorAverage),
    ),
    kind(
        "sq_error_clients",
        &[R],
        "E Σ π_c ‖θ_c − θ*‖² after the local steps, exact moments",
        CLOSED,
        ValueSource::Moments(Quantity::SqErrorClients),
    ),
    kind(
        "lyapunov",
        &[R],
        "E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments",
        CLOSED,
        ValueSource::Moments(Quantity::Lyapunov),
    ),
    kind(
        "sq_coupling",
        &[R],
        "E‖θ_t − θ'_t‖² of two runs on the same draws, θ' from θ*, exact moments",
        COUPLED,
        ValueSource::Curve(Quantity::SqCoupling, By::ExactMoments),
    ),
    kind(
        "stationary_covariance",
        &[D, D],
        "lim Cov θ_t, exact moments",
        STABLE,
        ValueSource::Vector(TimeAverage::Covariance, By::Stationary),
    ),
    kind(
        "stationary_cross_covariance",
        &[N, D, D],
        "lim Cov(θ_t, ξ_c), exact moments",
        BLOCKS,
        ValueSource::Vector(TimeAverage::CrossCovariance, By::Stationary),
    ),
    kind(
        "stationary_variate_covariance",
        &[N, D, D],
        "lim Cov(ξ_c), exact moments",
        BLOCKS,
        ValueSource::Vector(TimeAverage::VariateCovariance, By::Stationary),
    ),
    kind(
        "stationary_variate_pair_covariance",
        &[N, D, D],
        "lim Cov(ξ_c, ξ_c'), c' the client after c, exact moments",
        BLOCKS,
        ValueSource::Vector(TimeAverage::VariatePairCovariance, By::Stationary),
    ),
    kind(
        "stationary_sq_error",
        &[],
        "lim E‖θ_t − θ*‖², exact moments",
        STABLE,
        ValueSource::AtRest(Quantity::SqError),
    ),
    kind(
        "stationary_sq_error_clients",
        &[],
        "lim E Σ π_c ‖θ_c − θ*‖², exact moments",
        STABLE,
        ValueSource::AtRest(Quantity::SqErrorClients),
    ),
    kind(
        "stationary_lyapunov",
        &[],
        "lim E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments",
        STABLE,
        ValueSource::AtRest(Quantity::Lyapunov),
    ),
    kind(
        "mean_radius",
        &[],
        "spectral radius of a round's map of the mean",
        STABLE,
        ValueSource::Found(|k| k.radius(|r| r.0)),
    ),
    kind(
        "square_radius",
        &[],
        "spectral radius of a round's map of second moments: they diverge from 1 on",
        STABLE,
        ValueSource::Found(|k| k.radius(|r| Some(r.1))),
    ),
    kind(
        "reach",
        &[],
        "γ(H − 1)Nλ, λ the largest diagonal entry of A: the first order holds where it is small",
        EXPANDED,
        ValueSource::Found(|k| Some(vec![k.theory.reach(k.id())?])),
    ),
    kind(
        "first_order_bias",
        &[D],
        "(γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X], A X + X Aᵀ = C, without b_h under control variates (RR Theorem 4 with the signs that hold)",
        EXPANDED,
        ValueSource::Vector(TimeAverage::Bias, By::FirstOrder),
    ),
    kind(
        "first_order_bias_printed",
        &[D],
        "the same with the signs that RR's first version prints in Table 1",
        EXPANDED,
        ValueSource::Vector(TimeAverage::Bias, By::FirstOrderPrinted),
    ),
    kind(
        "second_order_bias",
        &[D],
        "the first order and the next term, the clients' own variance within a round",
        EXPANDED,
        ValueSource::Vector(TimeAverage::Bias, By::SecondOrder),
    ),
    kind(
        "closure_bias",
        &[D],
        "the field's curvature on the exact moments of its linearisation, beyond the first order",
        EXPANDED,
        ValueSource::Vector(TimeAverage::Bias, By::Closure),
    ),
    kind(
        "identity_bias",
        &[D],
        "the expression of RR's Proposition 2 with all its factors",
        QUADRATIC,
        ValueSource::Vector(TimeAverage::Bias, By::RrIdentity),
    ),
    kind(
        "identity_bias_printed",
        &[D],
        "the expression of RR's Proposition 2 as it is printed",
        QUADRATIC,
        ValueSource::Vector(TimeAverage::Bias, By::RrIdentityPrinted),
    ),
    kind(
        "first_order_covariance",
        &[D, D],
        "(γ/N) X, A X + X Aᵀ = C (SLIDES, expansion of covariance)",
        SPREAD,
        ValueSource::Vector(TimeAverage::Covariance, By::FirstOrder),
    ),
    kind(
        "first_order_cross_covariance",
        &[N, D, D],
        "Cov(θ, ξ_c) to first order (SLIDES, with the sign that holds)",
        SPREAD,
        ValueSource::Vector(TimeAverage::CrossCovariance, By::FirstOrder),
    ),
    kind(
        "first_order_cross_covariance_printed",
        &[N, D, D],
        "the same with the sign that SLIDES prints",
        SPREAD,
        ValueSource::Vector(TimeAverage::CrossCovariance, By::FirstOrderPrinted),
    ),
    kind(
        "first_order_variate_covariance",
        &[N, D, D],
        "Cov(ξ_c) = ((1 − 2/N) C_c + C/N)/H (SLIDES)",
        SPREAD,
        ValueSource::Vector(TimeAverage::VariateCovariance, By::FirstOrder),
    ),
    kind(
        "first_order_variate_pair_covariance",
        &[N, D, D],
        "Cov(ξ_c, ξ_c') = (C − C_c − C_c')/(NH), c' the client after c (SLIDES)",
        SPREAD,
        ValueSource::Vector(TimeAverage::VariatePairCovariance, By::FirstOrder),
    ),
    kind(
        "clt",
        &[R],
        "tr(A⁻¹CA⁻ᵀ)/(NHt) of the mean of t estimates (Polyak and Juditsky 1992)",
        FALLING,
        ValueSource::Curve(Quantity::SqErrorAverage, By::Clt),
    ),
    kind(
        "contraction",
        &[R],
        "(1 − γμ)^{Ht} ‖θ_0 − θ*‖², of `sq_coupling` (RR Propositions 1 and 3)",
        CONVEX,
        ValueSource::Curve(Quantity::SqCoupling, By::Contraction),
    ),
    kind(
        "contraction_printed",
        &[R],
        "(1 − γμ)^{2Ht} ‖θ_0 − θ*‖², as SLIDES prints it",
        CONVEX,
        ValueSource::Curve(Quantity::SqCoupling, By::ContractionPrinted),
    ),
];
