//! The exact frontier of linear problems: for each method, number of clients N, number H of
//! local steps and target ε, the step size γ that needs the fewest rounds T until
//! E‖θ_t − θ*‖² ≤ ε² for all t ≥ T, and that T. Nothing is sampled.
//!
//! Clients with the same distribution form a type. The state holds moments by types, so its
//! size does not depend on N, and N enters the round's linear map as a number.

mod bounds;
mod curve;
mod local;
mod means;
mod products;
mod round;
mod search;

pub use curve::MOST_PASSING;

use crate::kernel::{difference, dot};
use crate::problem::{Facts, group_clients};
use local::ClientType;
use schemars::JsonSchema;
use search::TypedProblem;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An algorithm of a frontier.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FrontierAlgorithm {
    /// One local step with a batch of one draw, then a communication.
    Sgd,
    /// One local step with a batch of H draws, then a communication.
    MinibatchSgd,
    /// H local steps, then a communication.
    Fedavg,
    /// FedAvg with control variates, under full participation.
    Scaffold,
    /// Two runs of FedAvg with γ and 2γ on common draws, extrapolated; both are paid for.
    RichardsonRomberg,
    /// The same two runs, each on draws of its own.
    RichardsonRombergIndependent,
    /// Two runs of Scaffold on common draws, likewise extrapolated and paid for.
    ScaffoldRr,
    /// Local steps with control variates until a coin says to communicate.
    Scaffnew,
    /// FedAvg whose server goes a multiple of the way to the clients' mean; the multiple is tuned.
    FedavgServerStep,
}

/// What a round costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPrice {
    /// Communications: one for each run.
    pub communications: f64,
    /// Oracle calls of each client, on average.
    pub gradients: f64,
    /// Draws of each client, on average: runs on common draws use each draw once.
    pub samples: f64,
    /// Vectors of d numbers that each client sends or receives.
    pub vectors: f64,
}

impl FrontierAlgorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Sgd,
        Self::MinibatchSgd,
        Self::Fedavg,
        Self::FedavgServerStep,
        Self::Scaffold,
        Self::Scaffnew,
        Self::RichardsonRomberg,
        Self::RichardsonRombergIndependent,
        Self::ScaffoldRr,
    ];

    /// Its name in manifests and tables.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Its name on pages.
    pub fn label(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Sgd => ("sgd", "SGD"),
            Self::MinibatchSgd => ("minibatch-sgd", "mini-batch SGD"),
            Self::Fedavg => ("fedavg", "FedAvg"),
            Self::RichardsonRomberg => ("richardson-romberg", "Richardson-Romberg"),
            Self::Scaffold => ("scaffold", "Scaffold"),
            Self::ScaffoldRr => ("scaffold-rr", "Scaffold-RR"),
            Self::Scaffnew => ("scaffnew", "Scaffnew"),
            Self::FedavgServerStep => ("fedavg-server-step", "FedAvg, server step"),
            Self::RichardsonRombergIndependent => {
                ("richardson-romberg-independent", "Richardson-Romberg, own draws")
            }
        }
    }

    /// The price of a round, one communication of every run, with H local steps. Scaffold's clients compute their own variate from
    /// the mean that they receive, so they send no vector beside their estimate.
    pub fn round_price(self, local_steps: u64) -> RoundPrice {
        let runs = self.weights().len() as f64;
        let steps = if self == Self::Sgd { 1.0 } else { local_steps as f64 };
        let draws = if self.shares_draws() { steps } else { runs * steps };
        RoundPrice {
            communications: runs,
            gradients: runs * steps,
            samples: draws,
            vectors: 2.0 * runs,
        }
    }

    /// Whether it has several runs on common draws.
    pub fn shares_draws(self) -> bool {
        matches!(self, Self::RichardsonRomberg | Self::ScaffoldRr)
    }

    /// The server steps that are tried: the estimate goes this multiple of the way to the mean of
    /// the clients' ends.
    pub fn server_steps(self) -> &'static [f64] {
        match self {
            Self::FedavgServerStep => &[1.0, 2.0, 4.0, 8.0, 32.0, 128.0],
            _ => &[1.0],
        }
    }

    /// The weights of the estimates of its runs; run number r has the step size (r + 1) γ.
    fn weights(self) -> &'static [f64] {
        match self {
            Self::RichardsonRomberg | Self::RichardsonRombergIndependent | Self::ScaffoldRr => {
                &[2.0, -1.0]
            }
            _ => &[1.0],
        }
    }
}

/// The distribution of the error θ_0 − θ* of the start.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// Mean 0 and the same variance in all directions.
    Isotropic {
        /// E‖θ_0 − θ*‖².
        mean_square: f64,
    },
    /// The fixed start θ_0, d numbers.
    Point(Vec<f64>),
}

/// Step sizes of equal ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSizes {
    /// The smallest.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// Their number; 1 means `from` alone.
    pub points: usize,
}

/// What [`search`] looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The methods.
    pub methods: Vec<FrontierAlgorithm>,
    /// The numbers of clients: whole multiples of the smallest number in which the types have
    /// the problem's proportions.
    pub clients: Vec<u64>,
    /// The targets ε, root mean squares of ‖θ − θ*‖.
    pub targets: Vec<f64>,
    /// The numbers H of local steps. [`FrontierAlgorithm::Sgd`] is computed once, with H = 1.
    pub local_steps: Vec<u64>,
    /// The step sizes γ that are tried.
    pub step_sizes: StepSizes,
    /// The number of golden-section steps in log γ between the neighbours of the best of them; 0
    /// for none.
    pub refinements: u32,
    /// The start.
    pub start: StartError,
}

/// The end of the range of step sizes at which the best step size lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// The smallest step size.
    From,
    /// The largest step size.
    To,
}

/// The fewest rounds in which a method reaches a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// The method, with the step sizes that need the fewest rounds.
    pub run: MethodRun,
    /// ε.
    pub target: f64,
    /// T.
    pub rounds: u64,
    /// Whether the error stays below the target: it exceeds ε after T − 1 rounds, and after no later
    /// round. Otherwise T is the first round after which it is at most ε, sought among the first
    /// [`MOST_PASSING`] rounds, and fewer than are needed to stay there.
    pub held: bool,
    /// Set if a step size beyond the range might need fewer rounds.
    pub edge: Option<RangeEnd>,
}

/// A reason why the frontier is not computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Second moments do not close.
    MomentsDoNotClose,
    /// Clients have unequal shares.
    UnequalShares,
    /// A number of clients that does not have the types' proportions.
    Clients {
        /// The number.
        clients: u64,
        /// What it must be a multiple of.
        multiple: u64,
    },
    /// A target that the start meets already.
    Target {
        /// ε.
        target: f64,
        /// The root mean square of the start's error.
        start: f64,
    },
    /// The start is not d finite numbers, or is the optimum.
    Start {
        /// d.
        dimension: usize,
    },
    /// The state of a method has too many moments.
    Size {
        /// The method.
        method: FrontierAlgorithm,
        /// Their number.
        moments: usize,
    },
    /// A list is empty, or a number is not positive and finite; the name of the setting.
    Setting(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MomentsDoNotClose => write!(
                f,
                "the frontier needs a linear problem with independent draws, whose second moments \
                 close"
            ),
            Self::UnequalShares => write!(f, "the frontier needs clients of equal shares"),
            Self::Clients { clients, multiple } => write!(
                f,
                "{clients} clients cannot have the problem's proportions of client types: the \
                 number of clients must be a multiple of {multiple}"
            ),
            Self::Target { target, start } => write!(
                f,
                "the target {target} is not below the root mean square {start} of the start's error"
            ),
            Self::Start { dimension } => {
                write!(f, "the start must be {dimension} finite numbers other than the optimum")
            }
            Self::Size { method, moments } => write!(
                f,
                "{} has a state of {moments} moments on this problem; at most {MOST_MOMENTS} are \
                 computed, so the problem needs fewer dimensions or fewer types of clients",
                method.name()
            ),
            Self::Setting(name) => {
                write!(f, "{name} must be a list of positive finite numbers, and not empty")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The most moments of a pair of runs: their map and its powers take half a gigabyte.
const MOST_MOMENTS: usize = 1500;

/// The fewest rounds for each method, number of clients, target and number of local steps, and
/// after them the first passages that need fewer. Combinations that reach the target at no step
/// size are absent. Among step sizes that need equally many rounds, the one with the smallest error
/// after them is the best. A larger target never needs more rounds.
///
/// # Errors
/// The first [`Refusal`] that applies.
pub fn search(
    facts: &dyn Facts,
    search: &Search,
    worked: Worked<'_>,
) -> Result<Vec<Reached>, Refusal> {
    let problem = typed(facts, &search.methods, &search.clients, &search.start)?;
    check(&problem, search)?;
    Ok(search::run(&problem, search, worked))
}

/// Is called with the share of a search that was done since the last call; they add up to 1.
pub type Worked<'w> = &'w (dyn Fn(f64) + Sync);

/// The problem by types, if its moments close and it can have these numbers of clients.
fn typed(
    facts: &dyn Facts,
    methods: &[FrontierAlgorithm],
    clients: &[u64],
    start: &StartError,
) -> Result<TypedProblem, Refusal> {
    if !facts.linear() || !facts.independent() {
        return Err(Refusal::MomentsDoNotClose);
    }
    if facts.unequal_shares().is_some() {
        return Err(Refusal::UnequalShares);
    }
    let all = facts.clients();
    let (first, type_of) = group_clients(all, |client| facts.distribution(client));
    let mut counts = vec![0_u64; first.len()];
    type_of.iter().for_each(|&g| counts[g] += 1);
    let common = counts.iter().fold(0, |a, &b| greatest_common_divisor(a, b));
    let multiple = all as u64 / common;
    if clients.is_empty() {
        return Err(Refusal::Setting("clients"));
    }
    if let Some(&clients) = clients.iter().find(|&&n| n == 0 || n % multiple != 0) {
        return Err(Refusal::Clients { clients, multiple });
    }
    for &method in methods {
        let moments = search::moments(method, facts.dim(), first.len());
        if moments > MOST_MOMENTS {
            return Err(Refusal::Size { method, moments });
        }
    }
    let kind =
        |(&first, &count): (&usize, &u64)| ClientType::new(facts, first, count as f64 / all as f64);
    let types = first.iter().zip(&counts).map(kind).collect::<Option<Vec<_>>>();
    let types = types.ok_or(Refusal::MomentsDoNotClose)?;
    let dimension = facts.dim();
    let start = match start {
        StartError::Isotropic { mean_square } => {
            StartError::Isotropic { mean_square: *mean_square }
        }
        StartError::Point(x) if x.len() != dimension => return Err(Refusal::Start { dimension }),
        StartError::Point(x) => StartError::Point(difference(x, facts.optimum())),
    };
    let size = start_square(&start);
    if !size.is_finite() || size <= 0.0 {
        return Err(Refusal::Start { dimension });
    }
    Ok(TypedProblem { types, start })
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// E‖θ_0 − θ*‖².
fn start_square(start: &StartError) -> f64 {
    match start {
        StartError::Isotropic { mean_square } => *mean_square,
        StartError::Point(x) => dot(x, x),
    }
}

fn check(problem: &TypedProblem, search: &Search) -> Result<(), Refusal> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    let StepSizes { from, to, points } = search.step_sizes;
    let settings = [
        (!search.methods.is_empty(), "methods"),
        (!search.targets.is_empty() && search.targets.iter().all(|&x| positive(x)), "targets"),
        (
            !search.local_steps.is_empty() && search.local_steps.iter().all(|&h| h > 0),
            "local steps",
        ),
        (points > 0 && positive(from) && positive(to) && from <= to, "step sizes"),
    ];
    if let Some((_, name)) = settings.into_iter().find(|(sound, _)| !sound) {
        return Err(Refusal::Setting(name));
    }
    let start = libm::sqrt(start_square(&problem.start));
    match search.targets.iter().find(|&&target| target >= start) {
        Some(&target) => Err(Refusal::Target { target, start }),
        None => Ok(()),
    }
}

/// Whether [`search`] can be computed: it refuses for the same reasons, at once.
///
/// # Errors
/// The first [`Refusal`] that applies.
pub fn check_search(facts: &dyn Facts, search: &Search) -> Result<(), Refusal> {
    check(&typed(facts, &search.methods, &search.clients, &search.start)?, search)
}

/// E‖θ_t − θ*‖² after rounds 0 to `rounds` of a method with N clients, one by one.
///
/// # Errors
/// The first [`Refusal`] that applies.
pub fn errors(
    facts: &dyn Facts,
    run: &MethodRun,
    start: &StartError,
    rounds: usize,
) -> Result<Vec<f64>, Refusal> {
    let problem = typed(facts, &[run.method], &[run.clients], start)?;
    Ok(search::curve(&problem, run).errors(rounds))
}

/// A method with all its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodRun {
    /// The method.
    pub method: FrontierAlgorithm,
    /// N.
    pub clients: u64,
    /// H.
    pub local_steps: u64,
    /// γ.
    pub step_size: f64,
    /// The server step, 1 but for [`FrontierAlgorithm::FedavgServerStep`].
    pub server_step: f64,
}

/// The first round from which E‖θ_t − θ*‖² stays at or below the square of each target; `None`
/// where there is none.
///
/// # Errors
/// The first [`Refusal`] that applies.
pub fn rounds_to(
    facts: &dyn Facts,
    run: &MethodRun,
    start: &StartError,
    targets: &[f64],
) -> Result<Vec<Option<u64>>, Refusal> {
    let problem = typed(facts, &[run.method], &[run.clients], start)?;
    let squares: Vec<f64> = targets.iter().map(|target| target * target).collect();
    let crossings = search::curve(&problem, run).crossings(&squares);
    Ok(crossings.into_iter().map(|found| found.map(|crossing| crossing.rounds)).collect())
}

#[cfg(test)]
mod tests;
