//! The exact frontier of linear problems: for each method, number of clients N, number H of
//! local steps and target ε, the step size γ that needs the fewest rounds T until
//! E‖θ_t − θ*‖² ≤ ε² for all t ≥ T, and that T. Nothing is sampled.
//!
//! Clients with the same distribution form a type. The state holds moments by types, so its
//! size does not depend on N, and N enters the round's linear map as a number.

mod algorithm;
mod best;
mod bounds;
mod curve;
mod least;
mod parts;
mod proof;
mod refine;
mod rounds;
mod search;

pub use super::program::StartError;
pub use algorithm::{FrontierAlgorithm, OwnAlgorithm, RoundPrice};
pub use curve::{ErrorCurve, MOST_PASSING};

use crate::linalg::Matrix;
use crate::problem::mdp::gcd;
use crate::problem::{Facts, Fault, group_clients};
use crate::program::Traced;
use crate::theory::program::{KnownSteps, Type};
use rounds::TypedProblem;
use std::fmt;
use std::sync::Arc;

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
    /// Prices of a communication in oracle calls. If there are any, only what may cost least at one of them is
    /// found, without first passages and without what another choice might need beyond the range.
    pub prices: Vec<f64>,
    /// The start.
    pub start: StartError,
    /// What knows the methods that are defined outside of this crate.
    pub own: Option<Arc<dyn OwnRounds>>,
}

/// What knows the rounds of methods that are defined outside of this crate.
pub trait OwnRounds: Send + Sync {
    /// The rounds of a method, or why they are no program.
    fn program(&self, run: &MethodRun) -> Traced;
    /// What a round costs.
    fn price(&self, run: &MethodRun) -> RoundPrice;
}

impl fmt::Debug for dyn OwnRounds {
    /// A word that stays, since the text of a search is part of the keys of caches.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnMethods")
    }
}

impl Search {
    /// What a round of a method costs.
    pub fn round_price(&self, run: &MethodRun) -> RoundPrice {
        match (run.method, &self.own) {
            (FrontierAlgorithm::Own(_), Some(own)) => own.price(run),
            (method, _) => method.round_price(run.local_steps),
        }
    }

    /// The numbers of local steps with which a method is computed.
    fn local_steps_of(&self, method: FrontierAlgorithm) -> &[u64] {
        if method == FrontierAlgorithm::Sgd { &[1] } else { &self.local_steps }
    }

    /// The problem by types, if its moments close and methods have so few that they can be computed with these
    /// numbers of clients.
    fn typed<'a>(
        &'a self,
        facts: &'a dyn Facts,
        methods: &[FrontierAlgorithm],
        clients: &[u64],
    ) -> Result<TypedProblem<'a>, Fault> {
        let open = || {
            let message = "the frontier needs a linear problem with independent draws, whose second moments close";
            Err(Fault::new("", message))
        };
        if !facts.linear() || !facts.independent() {
            return open();
        }
        if facts.unequal_shares().is_some() {
            return Err(Fault::new("", "the frontier needs clients of equal shares"));
        }
        let all = facts.clients();
        let (first, type_of) = group_clients(all, |client| facts.distribution(client));
        let types = Type::all(&first, &type_of);
        let common = types.iter().fold(0, |a, t| gcd(a, t.count as usize));
        let multiple = (all / common) as u64;
        if clients.is_empty() {
            return Err(not_positive("clients"));
        }
        if let Some(clients) = clients.iter().find(|&&n| n == 0 || n % multiple != 0) {
            let message = format!(
                "{clients} clients cannot have the problem's proportions of client types: the number of clients must be a multiple of {multiple}"
            );
            return Err(Fault::new("clients", message));
        }
        let dimension = facts.dim();
        for &method in methods {
            check_size(method, search::moments(method, dimension, first.len()))?;
        }
        let none = Matrix::zeros(dimension + 1, dimension + 1);
        if first.iter().any(|client| facts.noise_map(*client, &none).is_none()) {
            return open();
        }
        let fits = !matches!(&self.start, StartError::Point(x) if x.len() != dimension);
        let size = if fits { self.start.mean_square(facts.optimum()) } else { f64::NAN };
        if !size.is_finite() || size <= 0.0 {
            let message =
                format!("the start must be {dimension} finite numbers other than the optimum");
            return Err(Fault::new("start", message));
        }
        Ok(TypedProblem { facts, types, search: self, known: KnownSteps::default() })
    }

    /// The problem by types, if the search can be computed on it.
    fn problem<'a>(&'a self, facts: &'a dyn Facts) -> Result<TypedProblem<'a>, Fault> {
        let problem = self.typed(facts, &self.methods, &self.clients)?;
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let StepSizes { from, to, points } = self.step_sizes;
        for (sound, name) in [
            (!self.methods.is_empty(), "methods"),
            (!self.targets.is_empty() && self.targets.iter().all(|&x| positive(x)), "targets"),
            (
                !self.local_steps.is_empty() && self.local_steps.iter().all(|&h| h > 0),
                "local steps",
            ),
            (points > 0 && positive(from) && positive(to) && from <= to, "step sizes"),
        ] {
            if !sound {
                return Err(not_positive(name));
            }
        }
        let start = libm::sqrt(self.start.mean_square(facts.optimum()));
        if let Some(target) = self.targets.iter().find(|&&target| target >= start) {
            let message = format!(
                "the target {target} is not below the root mean square {start} of the start's error"
            );
            return Err(Fault::new("targets", message));
        }
        let (clients, local_steps) = (facts.clients() as u64, self.local_steps[0]);
        for method in self.methods.iter().copied().filter(|method| method.is_own()) {
            let run = MethodRun { method, clients, local_steps, step_size: from, choice: 0 };
            if self.clients != [clients] {
                return Err(unknown(&run, format!("its rounds are those of {clients} clients")));
            }
            let found = problem.squares(&run, &problem.known, |found| found.size());
            check_size(method, found.map_err(|reason| unknown(&run, reason))?)?;
        }
        Ok(problem)
    }
}

/// The fault of a setting that is a list, or numbers.
fn not_positive(name: &str) -> Fault {
    Fault::new("", format!("{name} must be a list of positive finite numbers, and not empty"))
}

/// The fault of a method that has no exact moments.
fn unknown(run: &MethodRun, reason: String) -> Fault {
    Fault::new("algorithms", format!("{} cannot be solved exactly: {reason}", run.method.name()))
}

/// Checks that the state of a method does not have too many moments.
fn check_size(method: FrontierAlgorithm, moments: usize) -> Result<(), Fault> {
    if moments <= MOST_MOMENTS {
        return Ok(());
    }
    let message = format!(
        "{} has a state of {moments} moments on this problem; at most {MOST_MOMENTS} are computed, so the problem needs fewer dimensions or fewer types of clients",
        method.name()
    );
    Err(Fault::new("algorithms", message))
}

/// Where a step size beyond the range might need fewer rounds than the best one in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// Below the smallest, which is the best.
    From,
    /// Above the largest, which is the best.
    To,
    /// At an end of the range, with another choice of further settings than the best.
    OfAnotherChoice,
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

/// The most moments of a state: their map and its powers take half a gigabyte.
const MOST_MOMENTS: usize = 1500;

/// The fewest rounds for each method, number of clients, target and number of local steps, and
/// after them the first passages that need fewer. Combinations that reach the target at no step
/// size are absent. Among step sizes that need equally many rounds, the one with the smallest error
/// after them is the best. A larger target never needs more rounds.
///
/// # Errors
/// The first reason why it cannot be computed, and the setting that it is about, if it is about one.
pub fn search(
    facts: &dyn Facts,
    search: &Search,
    worked: Worked<'_>,
) -> Result<Vec<Reached>, Fault> {
    Ok(search::run(&search.problem(facts)?, worked))
}

/// Is called with the share of a search that was done since the last call; they add up to 1.
pub type Worked<'w> = &'w (dyn Fn(f64) + Sync);

/// Whether [`search`] can be computed: it refuses for the same reasons, at once.
///
/// # Errors
/// As [`search`].
pub fn check_search(facts: &dyn Facts, search: &Search) -> Result<(), Fault> {
    search.problem(facts).map(|_| ())
}

/// The errors of a method with all its settings, from the start of a search.
///
/// # Errors
/// As [`search`].
pub fn curve(facts: &dyn Facts, search: &Search, run: &MethodRun) -> Result<ErrorCurve, Fault> {
    let problem = search.typed(facts, &[run.method], &[run.clients])?;
    problem.curve(run).map_err(|reason| unknown(run, reason))
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
    /// Which of the [choices](FrontierAlgorithm::choices) of its further settings.
    pub choice: usize,
}

impl MethodRun {
    /// The server step, 1 but for [`FrontierAlgorithm::FedavgServerStep`].
    pub fn server_step(&self) -> f64 {
        match self.method {
            FrontierAlgorithm::FedavgServerStep => FrontierAlgorithm::SERVER_STEPS[self.choice],
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests;
