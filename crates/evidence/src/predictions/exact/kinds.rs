//! The kinds of values, each with its axes, its source and where it is known.

use super::known::KnownCell;
use exactfed_runner::manifest::Prediction as By;
use exactfed_runner::manifest::{Quantity, TimeAverage};
use exactfed_runner::runner::predict;
use thiserror::Error;

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayAxis {
    /// An entry for each recorded round.
    Rounds,
    /// An entry for each client.
    Clients,
    /// The entries of θ.
    Entries,
}

/// What a value is.
#[derive(Debug)]
pub struct ValueKind {
    /// The name by which Python and the command line ask for it.
    pub name: &'static str,
    /// Its axes, the last fastest; none for a number.
    pub axes: &'static [ArrayAxis],
    /// What it is, with the number of its equation in a source.
    pub meaning: &'static str,
    /// On which cells it is known.
    pub(super) known: KnownWhere,
    /// How it is found.
    pub(super) how: ValueSource,
}

impl ValueKind {
    /// This kind of value with its meaning.
    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// Whether the value is of the instance alone, whatever is run on it.
    pub(super) fn is_of_instance(&self) -> bool {
        [Always, Small, Bounded, Measured].contains(&self.known)
    }

    /// Whether the value follows from the rounds of an algorithm as linear operations, so that it is known for custom
    /// algorithms too.
    pub(super) fn is_of_rounds(&self) -> bool {
        [Closed, Coupled, Stable, Limit].contains(&self.known)
    }

    /// Whether the value is a spectral radius, which may be infinite.
    pub(super) fn is_radius(&self) -> bool {
        ["mean_radius", "square_radius"].contains(&self.name)
    }

    /// Whether the value is made of the exact moments at the recorded rounds.
    pub(super) fn needs_moments(&self) -> bool {
        self.known == Closed
    }
}

/// How a value is found.
#[derive(Debug)]
pub enum ValueSource {
    /// An array with these axes, computed from the instance, the run and its moments.
    Found(&'static [ArrayAxis], fn(&KnownCell<'_>) -> Option<Vec<f64>>),
    /// A quantity of the exact moments at each recorded round.
    Moments(Quantity),
    /// A prediction of a quantity at each recorded round.
    Curve(Quantity, By),
    /// A quantity of the moments at stationarity.
    AtRest(Quantity),
    /// A prediction of a vector.
    Vector(TimeAverage, By),
}

use TimeAverage::*;
use ValueSource::*;

const R: ArrayAxis = ArrayAxis::Rounds;
const N: ArrayAxis = ArrayAxis::Clients;
const D: ArrayAxis = ArrayAxis::Entries;

/// Where values of one kind are known; the message says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KnownWhere {
    /// On every instance.
    #[error("of every instance")]
    Always,
    /// On instances with few clients and dimensions.
    #[error("of instances with at most 10⁷ entries of all clients")]
    Small,
    /// Where the error of θ* has a bound.
    #[error(
        "for mean losses of records; otherwise θ* solves a linear system with rounded coefficients"
    )]
    Bounded,
    /// Where the Jacobians are small enough to be decomposed.
    #[error("where the eigenvalues of all Jacobians can be computed")]
    Measured,
    /// Where rounds have a fixed number of local steps.
    #[error(
        "where all clients take the same number of local steps between communications, and it is not too large"
    )]
    Even,
    /// Where means converge.
    #[error(
        "on linear fields with independent draws (or of few clients and states), and without noise where `sq-error-limit` is among the metrics; not for a part of clients of unequal weight, and not where means diverge"
    )]
    Limit,
    /// Where second moments close.
    #[error(
        "where the equations of second moments close: on linear fields whose noise has known moments"
    )]
    Closed,
    /// Where second moments close and converge.
    #[error(
        "where the equations of second moments close and are stable: on linear fields whose noise has known moments, at a constant step size"
    )]
    Stable,
    /// Where second moments close and converge, and each client has a control variate.
    #[error(
        "where the equations of second moments close and are stable, for one run with control variates of each client's own"
    )]
    Blocks,
    /// Where the expansion of the bias in the step size holds.
    #[error(
        "where all clients take the same number of plain local steps of constant size and all communicate, on independent draws with known second derivatives of the mean fields"
    )]
    Expanded,
    /// Where the expansion of the covariance in the step size holds.
    #[error(
        "where one run of all clients takes the same number of plain local steps of constant size, on independent draws"
    )]
    Spread,
    /// Where RR's identity for the bias holds.
    #[error("for FedAvg on linear fields with independent draws and clients of equal weight")]
    Quadratic,
    /// Where second moments of two runs on the same draws close.
    #[error(
        "where the equations of second moments close and communication is not decided by a coin"
    )]
    Coupled,
    /// Where the contraction of two runs on the same draws is bounded.
    #[error(
        "for one run of clients of equal weight that all take the same number of plain local steps of constant size, on independent draws of gradients with known constants where γL ≤ 1 (γHL ≤ 1 with control variates, of option II)"
    )]
    Convex,
    /// Where the central limit theorem of averaged estimates holds.
    #[error("for the mean of all estimates of one run of all clients, on independent draws")]
    Falling,
}

use KnownWhere::*;

/// A kind of value, to which its meaning is to be added; its axes follow from its source.
const fn value(name: &'static str, known: KnownWhere, how: ValueSource) -> ValueKind {
    let axes: &[ArrayAxis] = match how {
        Found(axes, _) => axes,
        Moments(_) | Curve(..) => &[R],
        AtRest(_) => &[],
        Vector(Bias, _) => &[D],
        Vector(Covariance, _) => &[D, D],
        Vector(..) => &[N, D, D],
    };
    ValueKind { name, axes, meaning: "", known, how }
}

/// All kinds of values, in the order in which they are listed.
pub static KINDS: &[ValueKind] = &[
    value("optimum", Always, Found(&[D], |k| Some(k.facts.optimum().to_vec())))
        .meaning("θ*, the zero of the mean of the clients' mean fields, or the one of least length if there are several"),
    value("optimum_error", Bounded, Found(&[], |k| Some(vec![k.facts.optimum_error()?])))
        .meaning("a bound on the distance of `optimum` from θ*, with all rounding errors"),
    value("shares", Always, Found(&[N], |k| Some(k.shares())))
        .meaning("π_c, the weight of each client in every mean; their sum is 1"),
    value(
        "client_optima",
        Small,
        Found(&[N, D], |k| k.vectors_of_clients(|c| Some(k.facts.local_optimum(c)?.to_vec()))),
    )
    .meaning("θ_c*, the zero of each client's mean field; not known if a client has none or several"),
    value(
        "client_fields",
        Small,
        Found(&[N, D], |k| k.vectors_of_clients(|c| Some(k.facts.field_at_optimum(c)))),
    )
    .meaning("F̄_c(θ*), each client's mean field at θ*"),
    value("start", Always, Found(&[D], |k| Some(k.scenario.start.clone()))).meaning("θ_0"),
    value("zeta1", Measured, Found(&[], |k| k.measure(|m| m.zeta1)))
        .meaning("ζ₁, the root mean square of ‖F̄_c(θ*)‖ (RR A2)"),
    value("zeta2", Measured, Found(&[], |k| k.measure(|m| m.zeta2)))
        .meaning("ζ₂, the root mean square of ‖H_c − A‖ (RR A2)"),
    value("mu", Measured, Found(&[], |k| k.measure(|m| m.mu)))
        .meaning("μ, the smallest eigenvalue of the symmetric part of A = Σ π_c H_c"),
    value("smoothness", Measured, Found(&[], |k| k.measure(|m| m.smoothness)))
        .meaning("L, the largest spectral norm of a client's H_c"),
    value("noise", Measured, Found(&[], |k| k.measure(|m| m.noise)))
        .meaning("Σ π_c tr C_c, the noise at θ*"),
    value("drift", Even, Found(&[], |k| k.drift()))
        .meaning("‖θ* − Σ π_c θ_c^(H)‖/(γH), after local steps without noise from θ* (SLIDES)"),
    value(
        "limit",
        Limit,
        Found(&[D], |k| Some(predict::limit(k.prepared.cell, k.scenario)?.to_vec())),
    )
    .meaning("lim E θ_t (SCAFFLSA Theorem 4.1, (24))"),
    value("bias", Limit, Vector(Bias, By::ExactBias))
        .meaning("lim E θ_t − θ* (SCAFFLSA Theorem 4.1, (24))"),
    value(
        "mean",
        Closed,
        Found(&[R, D], |k| {
            k.of_moments(|m| m.mean.iter().zip(k.facts.optimum()).map(|(x, o)| x + o).collect())
        }),
    )
    .meaning("E θ_t, exact moments"),
    value(
        "covariance",
        Closed,
        Found(&[R, D, D], |k| k.of_moments(|m| m.covariance.entries().to_vec())),
    )
    .meaning("Cov θ_t, exact moments"),
    value("sq_error", Closed, Moments(Quantity::SqError)).meaning("E‖θ_t − θ*‖², exact moments"),
    value("sq_error_limit", Closed, Moments(Quantity::SqErrorLimit))
        .meaning("E‖θ_t − lim E θ‖², exact moments"),
    value("sq_error_average", Closed, Moments(Quantity::SqErrorAverage))
        .meaning("E‖t⁻¹ Σ_{s≤t} θ_s − θ*‖², exact moments"),
    value("sq_error_clients", Closed, Moments(Quantity::SqErrorClients))
        .meaning("E Σ π_c ‖θ_c − θ*‖² after the local steps, exact moments"),
    value("lyapunov", Closed, Moments(Quantity::Lyapunov))
        .meaning("E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments"),
    value("sq_coupling", Coupled, Curve(Quantity::SqCoupling, By::ExactMoments))
        .meaning("E‖θ_t − θ'_t‖² of two runs on the same draws, θ' from θ*, exact moments"),
    value("stationary_covariance", Stable, Vector(Covariance, By::Stationary))
        .meaning("lim Cov θ_t, exact moments"),
    value("stationary_cross_covariance", Blocks, Vector(CrossCovariance, By::Stationary))
        .meaning("lim Cov(θ_t, ξ_c), exact moments"),
    value("stationary_variate_covariance", Blocks, Vector(VariateCovariance, By::Stationary))
        .meaning("lim Cov(ξ_c), exact moments"),
    value(
        "stationary_variate_pair_covariance",
        Blocks,
        Vector(VariatePairCovariance, By::Stationary),
    )
    .meaning("lim Cov(ξ_c, ξ_c'), c' the client after c, exact moments"),
    value("stationary_sq_error", Stable, AtRest(Quantity::SqError))
        .meaning("lim E‖θ_t − θ*‖², exact moments"),
    value("stationary_sq_error_clients", Stable, AtRest(Quantity::SqErrorClients))
        .meaning("lim E Σ π_c ‖θ_c − θ*‖², exact moments"),
    value("stationary_lyapunov", Stable, AtRest(Quantity::Lyapunov))
        .meaning("lim E ψ_t (SCAFFLSA (51), under a coin (45)), exact moments"),
    value("mean_radius", Stable, Found(&[], |k| k.radius(|r| r.mean)))
        .meaning("spectral radius of a round's map of the mean"),
    value("square_radius", Stable, Found(&[], |k| k.radius(|r| r.square))).meaning(
        "spectral radius of a round's map of second moments: they diverge from 1 on, and it is \
             infinite if they are infinite after one round",
    ),
    value("reach", Expanded, Found(&[], |k| Some(vec![k.theory.reach(k.id())?]))).meaning(
        "γ(H − 1)Nλ, λ the largest diagonal entry of A: the first order holds where it \
             is small",
    ),
    value("first_order_bias", Expanded, Vector(Bias, By::FirstOrder)).meaning(
        "(γ(H − 1)/2) b_h − (γ/2N) A⁻¹∇³f[X], A X + X Aᵀ = C, without b_h under control \
             variates (RR Theorem 4 with the signs that hold)",
    ),
    value("first_order_bias_printed", Expanded, Vector(Bias, By::FirstOrderPrinted))
        .meaning("the same with the signs that RR's first version prints in Table 1"),
    value("second_order_bias", Expanded, Vector(Bias, By::SecondOrder))
        .meaning("the first order and the next term, the clients' own variance within a round"),
    value("closure_bias", Expanded, Vector(Bias, By::Closure)).meaning(
        "the field's curvature on the exact moments of its linearisation, beyond the \
             first order",
    ),
    value("identity_bias", Quadratic, Vector(Bias, By::RrIdentity))
        .meaning("the expression of RR's Proposition 2 with all its factors"),
    value("identity_bias_printed", Quadratic, Vector(Bias, By::RrIdentityPrinted))
        .meaning("the expression of RR's Proposition 2 as it is printed"),
    value("first_order_covariance", Spread, Vector(Covariance, By::FirstOrder))
        .meaning("(γ/N) X, A X + X Aᵀ = C (SLIDES, expansion of covariance)"),
    value("first_order_cross_covariance", Spread, Vector(CrossCovariance, By::FirstOrder))
        .meaning("Cov(θ, ξ_c) to first order (SLIDES, with the sign that holds)"),
    value(
        "first_order_cross_covariance_printed",
        Spread,
        Vector(CrossCovariance, By::FirstOrderPrinted),
    )
    .meaning("the same with the sign that SLIDES prints"),
    value("first_order_variate_covariance", Spread, Vector(VariateCovariance, By::FirstOrder))
        .meaning("Cov(ξ_c) = ((1 − 2/N) C_c + C/N)/H (SLIDES)"),
    value(
        "first_order_variate_pair_covariance",
        Spread,
        Vector(VariatePairCovariance, By::FirstOrder),
    )
    .meaning("Cov(ξ_c, ξ_c') = (C − C_c − C_c')/(NH), c' the client after c (SLIDES)"),
    value("clt", Falling, Curve(Quantity::SqErrorAverage, By::Clt))
        .meaning("tr(A⁻¹CA⁻ᵀ)/(NHt) of the mean of t estimates (Polyak and Juditsky 1992)"),
    value("contraction", Convex, Curve(Quantity::SqCoupling, By::Contraction))
        .meaning("(1 − γμ)^{Ht} ‖θ_0 − θ*‖², of `sq_coupling` (RR Propositions 1 and 3)"),
    value("contraction_printed", Convex, Curve(Quantity::SqCoupling, By::ContractionPrinted))
        .meaning("(1 − γμ)^{2Ht} ‖θ_0 − θ*‖², as SLIDES prints it"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated;
    use exactfed_core::linalg::Matrix;
    use exactfed_core::problem::Facts;
    use exactfed_runner::runner::prepare;

    /// An instance with clients of equal weight whose vectors have 2·10⁷ entries together.
    struct ManyClients;

    impl Facts for ManyClients {
        fn dim(&self) -> usize {
            1000
        }
        fn clients(&self) -> usize {
            20_000
        }
        fn linear(&self) -> bool {
            unreachable!()
        }
        fn optimum(&self) -> &[f64] {
            unreachable!()
        }
        fn local_optimum(&self, _: usize) -> Option<&[f64]> {
            unreachable!()
        }
        fn mean_field(&self, _: usize, _: &[f64], _: &mut [f64]) {
            unreachable!()
        }
        fn jacobian(&self, _: usize) -> Matrix {
            unreachable!()
        }
        fn noise_covariance(&self, _: usize) -> Matrix {
            unreachable!()
        }
    }

    /// The number of entries of each value with an entry or a vector for each client, by the name of its kind; `None`
    /// if the value is not known.
    fn lengths(known: &KnownCell<'_>) -> Vec<(&'static str, Option<usize>)> {
        let mut lengths = Vec::new();
        for kind in KINDS {
            let ValueSource::Found(axes, find) = kind.how else { continue };
            if axes.first() == Some(&N) {
                lengths.push((kind.name, find(known).map(|numbers| numbers.len())));
            }
        }
        lengths
    }

    #[test]
    fn weights_are_known_where_vectors_of_clients_are_too_many() {
        let manifest = r#"
title = "t"
seed = 5
replicates = 1
start.zero = true
problem.quadratic = { dimension = 2, clients = 3, spectrum = { from = 0.5, to = 1.0 }, noise = 0.1 }
budget.rounds = 1
record.every = 1
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1
"#;
        let plan = simulated::plan(manifest.into());
        let mut prepared = prepare(&plan.folder(), &[&plan.cells[0]]).unwrap();
        let alone = [prepared.remove(0)];
        let few = KnownCell::new(&alone);
        let expected =
            [("shares", Some(3)), ("client_optima", Some(6)), ("client_fields", Some(6))];
        assert_eq!(lengths(&few), expected);
        let mut many = KnownCell::new(&alone);
        many.facts = &ManyClients;
        let expected = [("shares", Some(20_000)), ("client_optima", None), ("client_fields", None)];
        assert_eq!(lengths(&many), expected);
    }
}
