//! The exact frontier of linear problems: for each algorithm, number of clients N, number H of
//! local steps and target ε, the step size γ that needs the fewest rounds T until
//! E‖θ_t − θ*‖² ≤ ε² for all t ≥ T, and that T. Nothing is sampled.
//!
//! Clients with the same distribution form a type. The state holds moments by types, and N enters the linear map Q of
//! a cycle, THEORY (6.1), as a number. The size of the state depends on N only where a type has a single client, whose
//! deviation from the mean of its type is 0 and is left out. What `THEORY (6.1)` means, and its symbols, are explained
//! in [`super::exact`].

mod best;
mod bounds;
mod curve;
mod least;
mod parts;
mod proof;
mod refine;
mod rounds;
mod search;

pub use super::exact::StartError;
pub use curve::{ErrorCurve, MOST_PASSING};

use crate::linalg::Matrix;
use crate::problem::mdp::gcd;
use crate::problem::{Facts, Fault, group_clients};
use crate::round_program::{RoundPrice, RoundSettings, Rounds};
use crate::theory::exact::{KnownSteps, Type};
use rounds::TypedProblem;
use std::fmt::Display;
use std::sync::Arc;

/// Step sizes of equal ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSizes {
    /// The smallest step size.
    pub from: f64,
    /// The largest step size.
    pub to: f64,
    /// Their number; 1 means `from` alone.
    pub points: usize,
}

/// What [`search`] looks for.
#[derive(Clone)]
pub struct Search {
    /// The algorithms, which [`RoundSettings::algorithm`] names by their places in this list.
    pub known: Vec<Arc<dyn Rounds>>,
    /// The places of the algorithms that are searched.
    pub algorithms: Vec<usize>,
    /// The numbers of clients: whole multiples of the smallest number in which the types have
    /// the problem's proportions.
    pub clients: Vec<u64>,
    /// The targets ε, root mean squares of ‖θ − θ*‖.
    pub targets: Vec<f64>,
    /// The numbers H of local steps.
    pub local_steps: Vec<u64>,
    /// The step sizes γ that are tried.
    pub step_sizes: StepSizes,
    /// The number of golden-section steps in log γ, THEORY (6.7), between the neighbours of the best step
    /// size on the grid; 0 for none.
    pub refinements: u32,
    /// Prices of a communication in gradients, THEORY (6.8), for maps. If there are any, only settings that may cost
    /// least at one of them are found; first passages are not sought, and it is not checked whether another choice of
    /// further settings might need fewer rounds beyond the range of step sizes.
    pub prices: Vec<f64>,
    /// θ_0, or its distribution.
    pub start: StartError,
}

impl Search {
    /// What a round with these settings costs: communications, and gradients of a client.
    pub fn round_price(&self, settings: &RoundSettings) -> RoundPrice {
        self.known[settings.algorithm].price(settings)
    }

    /// Settings of an algorithm with which its state is as large as with any others of this choice that the search
    /// tries, so that [`check_size`] of them is enough. The state is largest with the most clients, because a type of
    /// one client has no deviations. γ and H are mere numbers in the rounds: the smallest γ and the first H stand for
    /// all.
    fn largest_settings(&self, algorithm: usize, choice: usize) -> RoundSettings {
        RoundSettings {
            algorithm,
            clients: self.clients.iter().copied().max().unwrap_or_default(),
            local_steps: self.local_steps_of(algorithm)[0],
            step_size: self.step_sizes.from,
            choice,
        }
    }

    /// The numbers of local steps with which an algorithm is searched; 1 alone for an algorithm without local steps.
    fn local_steps_of(&self, algorithm: usize) -> &[u64] {
        if self.known[algorithm].has_local_steps() { &self.local_steps } else { &[1] }
    }

    /// The problem with its clients in types, for these numbers of clients.
    ///
    /// # Errors
    /// If second moments of the problem do not close, if shares are unequal, if the types cannot have the problem's
    /// proportions with one of the numbers of clients, or if the start has another dimension, is not finite or is θ*.
    fn typed<'a>(
        &'a self,
        facts: &'a dyn Facts,
        clients: &[u64],
    ) -> Result<TypedProblem<'a>, Fault> {
        if !facts.linear() || !facts.independent() {
            return Err(moments_do_not_close());
        }
        if facts.unequal_shares().is_some() {
            return Err(Fault::new("", "the frontier needs clients of equal shares"));
        }
        let all = facts.clients();
        let (first, type_of) = group_clients(all, |client| facts.distribution(client));
        let types = Type::all(&first, &type_of);
        let common = types.iter().fold(0, |a, t| gcd(a, t.count as usize));
        // The smallest number of clients with these proportions.
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
        let none = Matrix::zeros(dimension + 1, dimension + 1);
        if first.iter().any(|client| facts.noise_map(*client, &none).is_none()) {
            return Err(moments_do_not_close());
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

    /// The problem with its clients in types, and for each algorithm the largest number of second moments that must be
    /// followed together, over its choices of further settings and all numbers of clients.
    ///
    /// # Errors
    /// The first reason why the search cannot be computed on the problem.
    fn problem<'a>(
        &'a self,
        facts: &'a dyn Facts,
    ) -> Result<(TypedProblem<'a>, Vec<usize>), Fault> {
        let problem = self.typed(facts, &self.clients)?;
        let StepSizes { from, to, points } = self.step_sizes;
        if self.algorithms.is_empty() {
            return Err(not_positive("methods"));
        }
        if self.targets.is_empty() || !self.targets.iter().all(|&x| is_positive(x)) {
            return Err(not_positive("targets"));
        }
        if self.local_steps.is_empty() || self.local_steps.contains(&0) {
            return Err(not_positive("local steps"));
        }
        if points == 0 || !is_positive(from) || !is_positive(to) || from > to {
            return Err(not_positive("step sizes"));
        }
        let start = libm::sqrt(self.start.mean_square(facts.optimum()));
        if let Some(target) = self.targets.iter().find(|&&target| target >= start) {
            let message = format!(
                "the target {target} is not below the root mean square {start} of the start's error"
            );
            return Err(Fault::new("targets", message));
        }
        let mut sizes = Vec::new();
        for &algorithm in &self.algorithms {
            let rounds = problem.rounds(algorithm);
            let clients = facts.clients() as u64;
            if !rounds.treats_clients_alike() && self.clients != [clients] {
                let reason = format!("its rounds are those of {clients} clients");
                return Err(unknown(rounds.name(), reason));
            }
            let mut largest = 0;
            for choice in 0..rounds.choices() {
                let settings = self.largest_settings(algorithm, choice);
                largest = largest.max(check_size(&problem, &settings)?);
            }
            sizes.push(largest);
        }
        Ok((problem, sizes))
    }
}

/// Whether a number is positive and finite.
fn is_positive(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

/// The fault of a problem on which second moments do not close.
fn moments_do_not_close() -> Fault {
    let message =
        "the frontier needs a linear problem with independent draws, whose second moments close";
    Fault::new("", message)
}

/// The fault of a setting that must be a list of positive numbers, and is not.
fn not_positive(name: &str) -> Fault {
    Fault::new("", format!("{name} must be a list of positive finite numbers, and not empty"))
}

/// The fault of an algorithm whose exact moments are not known, for this reason. Its name may say with which choice of
/// further settings, [`name_with_choice`].
fn unknown(name: &str, reason: impl Display) -> Fault {
    Fault::new("algorithms", format!("{name} cannot be solved exactly: {reason}"))
}

/// The name of an algorithm for messages that are about one choice of its further settings: `fedprox (choice 2 of 3)`,
/// or the name alone if there is one choice.
fn name_with_choice(rounds: &dyn Rounds, choice: usize) -> String {
    let name = rounds.name();
    match rounds.choices() {
        0 | 1 => name.to_owned(),
        choices => format!("{name} (choice {} of {choices})", choice + 1),
    }
}

/// The number of second moments that must be followed together for an algorithm with these settings.
///
/// # Errors
/// If the algorithm has no exact moments with these settings, or they are more than [`MOST_MOMENTS`].
fn check_size(problem: &TypedProblem<'_>, settings: &RoundSettings) -> Result<usize, Fault> {
    let rounds = problem.rounds(settings.algorithm);
    let name = name_with_choice(rounds, settings.choice);
    let moments = problem.moments(settings).map_err(|reason| unknown(&name, reason))?;
    if moments <= MOST_MOMENTS {
        return Ok(moments);
    }
    let message = format!(
        "{name} has a state of {moments} moments on this problem; at most {MOST_MOMENTS} are computed, so the problem needs fewer dimensions or fewer types of clients"
    );
    Err(Fault::new("algorithms", message))
}

/// The side of the range of step sizes beyond which a step size might need fewer rounds than the best one in it. Pages
/// flag such results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// Below the smallest step size of the range, which is the best.
    From,
    /// Above the largest step size of the range, which is the best.
    To,
    /// At an end of the range, with another choice of further settings than the best.
    OfAnotherChoice,
}

/// The fewest rounds in which an algorithm reaches a target with a number of clients and of local steps, over step
/// sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// The algorithm, with the step size that needs the fewest rounds.
    pub run: RoundSettings,
    /// The target ε, a root mean square of ‖θ_t − θ*‖.
    pub target: f64,
    /// T, the first round from which E‖θ_t − θ*‖² stays at most ε².
    pub rounds: u64,
    /// Whether the error stays below the target: it exceeds ε after T − 1 rounds, and after no later
    /// round. Otherwise T is the first round after which it is at most ε, sought among the first
    /// [`MOST_PASSING`] rounds, and fewer than are needed to stay there.
    pub held: bool,
    /// Where a step size beyond the range might need fewer rounds; `None` if none might.
    pub edge: Option<RangeEnd>,
}

/// The most second moments that are followed together: their map and its powers take half a gigabyte.
const MOST_MOMENTS: usize = 1500;

/// The fewest rounds for each algorithm, number of clients, target and number of local steps. Each is followed by the
/// first passage of the target, if it needs fewer rounds ([`Reached::held`] is false). Combinations that reach the
/// target at no step size are absent. Among step sizes that need equally many rounds, the one with the smallest error
/// after them is the best. A larger target never needs more rounds. `worked` is called with each
/// share of the work that is done. What is found is cached with results: a change of a bit of it needs another version
/// of cached frontiers, which the crate that caches them states.
///
/// # Errors
/// The first reason why it cannot be computed, and the setting that it is about, if it is about one.
pub fn search(
    facts: &dyn Facts,
    search: &Search,
    worked: Worked<'_>,
) -> Result<Vec<Reached>, Fault> {
    let (problem, sizes) = search.problem(facts)?;
    Ok(search::run(&problem, &sizes, worked))
}

/// A function that is called with the share of a search that was done since the last call, for a display of progress.
/// The shares add up to 1.
pub type Worked<'w> = &'w (dyn Fn(f64) + Sync);

/// Checks that [`search`] can be computed, without computing it.
///
/// # Errors
/// As [`search`].
pub fn check_search(facts: &dyn Facts, search: &Search) -> Result<(), Fault> {
    search.problem(facts).map(|_| ())
}

/// The errors over rounds of an algorithm with all its settings, from the start of a search. Of the search only the
/// start and the known algorithms are read, so that these settings need not be among its own.
///
/// # Errors
/// As [`search`].
pub fn curve(
    facts: &dyn Facts,
    search: &Search,
    settings: &RoundSettings,
) -> Result<ErrorCurve, Fault> {
    let problem = search.typed(facts, &[settings.clients])?;
    check_size(&problem, settings)?;
    let name = name_with_choice(problem.rounds(settings.algorithm), settings.choice);
    problem.curve(settings).map_err(|reason| unknown(&name, reason))
}

#[cfg(test)]
mod tests;
