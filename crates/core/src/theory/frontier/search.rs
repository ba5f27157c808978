//! The search for the best step sizes. A target ε is *held* from a round on if E‖θ_t − θ*‖² stays at most ε² after
//! it, and *passed* in the first round after which E‖θ_t − θ*‖² is at most ε².
//!
//! Algorithms are searched in parallel. For each algorithm, step sizes come from the largest to the smallest,
//! and numbers of local steps in parallel; the powers of a local step are shared by all numbers of local
//! steps and of clients. The map Q of THEORY (6.1) is computed only if the bounds THEORY (6.4), (6.5) allow a
//! target to be reached in no more rounds than with the best step size so far, so that step sizes wait for
//! each other. With prices these rounds must also be few enough to cost least, and most settings are excluded
//! by their outline, THEORY (6.6), before their rounds are written as a program. No number depends on the
//! number of threads, because each number is computed by one of them.
//!
//! THEORY (6.4) bounds the error from below by the error without noise, and THEORY (6.5) the stationary error by the
//! error and the noise at the stationary mean. An outline is an algorithm's local steps and means without its program.
//!
//! Settings are an algorithm, a number of clients and of local steps, a step size, and a choice of the algorithm's
//! further settings, such as the server step. At a price T rounds cost T (price · communications + gradients), with the
//! communications and gradients of one round; with prices only settings that may cost least at one of them are sought.

use super::best::{Best, held_crossings, rounds_to_follow};
use super::bounds::{MARGIN, NoiselessError};
use super::curve::{Crossing, ErrorCurve, MOST_PASSING};
use super::least::LeastCosts;
use super::refine::{Refined, refine};
use super::rounds::TypedProblem;
use super::{RangeEnd, Reached, StepSizes, Worked};
use crate::round_program::RoundSettings;
use crate::theory::exact::{KnownSteps, Squares};
use rayon::prelude::*;

/// The best settings so far for one number of clients, number of local steps and target.
#[derive(Clone, Copy)]
struct BestOfTarget {
    /// The number of clients.
    clients: u64,
    /// The target ε.
    target: f64,
    /// The best settings to stay below the target; `None` if none do so far.
    held: Option<Best>,
    /// The best settings to come below the target in one of the first rounds; `None` if none do so far.
    passing: Option<Best>,
    /// Whether with another choice of further settings a step size beyond the range may hold the target in fewer
    /// rounds.
    clipped: bool,
}

/// The factor by which a lower bound of an outline must be above the square of a target to exclude the target. The
/// difference is many times the bound's rounding error.
const OUTLINE_MARGIN: f64 = 1.0 + 1e-6;

/// Settings that are tried, for all numbers of clients and targets: an algorithm with one number of local steps, step
/// size and choice of further settings.
struct TriedSettings<'t, 's> {
    /// The settings, with the first number of clients.
    run: RoundSettings,
    /// The cache of local steps of this step size.
    known: &'t KnownSteps,
    /// The least costs so far, if the search has prices.
    least: &'t LeastCosts<'s>,
    /// Whether first passages are sought.
    passing: bool,
}

impl TriedSettings<'_, '_> {
    /// The largest number of rounds to hold a target that may improve on the best settings: as many as they need, and
    /// no more than may be cheapest at a price. `place` is the place of the target in [`LeastCosts`].
    fn most_held(&self, best: &BestOfTarget, place: usize) -> u64 {
        let most = self.least.most_rounds(place, &self.run);
        best.held.map_or(most, |best| best.crossing.rounds.min(most))
    }

    /// The largest number of rounds to pass a target that may improve on the best settings: no more than the fewest so
    /// far, and fewer than it takes to hold the target. `None` if no number does, or passages are not sought.
    fn most_passing(&self, best: &BestOfTarget) -> Option<u64> {
        if !self.passing {
            return None;
        }
        let held = best.held.map_or(MOST_PASSING + 1, |best| best.crossing.rounds);
        let passing = best.passing.map_or(MOST_PASSING, |best| best.crossing.rounds);
        let fewer = held.checked_sub(1)?;
        Some(fewer.min(passing))
    }

    /// Replaces the best settings by the tried ones, where these are better. `best` has the best settings of this
    /// algorithm with this number of local steps, by number of clients and target. Settings without exact moments
    /// change nothing.
    fn improve(&self, problem: &TypedProblem<'_>, best: &mut [Vec<BestOfTarget>]) {
        // Nothing needs fewer than 0 rounds.
        let mut all = best.iter().flatten().enumerate();
        if all.all(|(place, best)| self.most_held(best, place) == 0) && !self.passing {
            return;
        }
        // Where first passages are of interest too, hardly anything is excluded before its program is made.
        if !self.passing && self.is_excluded(problem, best) {
            return;
        }
        // Where moments are infinite with this step size, there is nothing to improve.
        let _ = problem.squares(&self.run, self.known, |squares| {
            // Rounds without noise are the same for all numbers of clients.
            let mut noiseless = NoiselessError::new(&squares.mean);
            for (n, best) in best.iter_mut().enumerate() {
                self.improve_one(problem, squares, &mut noiseless, n, best);
            }
        });
    }

    /// Whether the outline's bounds THEORY (6.4), (6.5) exclude that the tried settings hold any target in so few
    /// rounds that they improve on the best settings. False if the rounds have no outline.
    fn is_excluded(&self, problem: &TypedProblem<'_>, best: &[Vec<BestOfTarget>]) -> bool {
        let Some(outline) = problem.outline(&self.run, self.known) else { return false };
        let mut noiseless = NoiselessError::new(&outline.means);
        let all = best.iter().flatten().enumerate().filter(|(place, best)| {
            let most = self.most_held(best, *place);
            most == u64::MAX
                || noiseless.may_be_met_after(&outline.means, most, OUTLINE_MARGIN * best.square())
        });
        let open: Vec<&BestOfTarget> = all.map(|(_, best)| best).collect();
        if open.is_empty() {
            return true;
        }
        let clients = problem.facts.clients() as f64;
        let found = outline.least_stationary(|bias| excluding_variance(&open, bias, clients));
        found.is_some_and(|[bias, variance]| variance > excluding_variance(&open, bias, clients))
    }

    /// Replaces the best settings for number of clients number `n` by the tried ones, where these are better: `best`
    /// has the best settings by target. `squares` are the second moments of the tried settings; they have the number of
    /// clients of an earlier call, or the first one, until they are set here.
    fn improve_one(
        &self,
        problem: &TypedProblem<'_>,
        squares: &mut Squares<'_>,
        noiseless: &mut NoiselessError,
        n: usize,
        best: &mut [BestOfTarget],
    ) {
        let run = RoundSettings { clients: best[0].clients, ..self.run };
        // The place in `LeastCosts` of the first target with this number of clients.
        let first = n * best.len();
        // The numbers of the targets that the error without noise allows to be held, and to be passed, in so few rounds
        // that the settings may be better.
        let mut held: Vec<usize> = Vec::new();
        for (k, bests) in best.iter().enumerate() {
            let most = self.most_held(bests, first + k);
            if most == u64::MAX || noiseless.may_be_met_after(&squares.mean, most, bests.square()) {
                held.push(k);
            }
        }
        let mut passing: Vec<usize> = Vec::new();
        for (k, bests) in best.iter().enumerate() {
            if let Some(most) = self.most_passing(bests)
                && noiseless.may_pass_within(&squares.mean, most, bests.square())
            {
                passing.push(k);
            }
        }
        if held.is_empty() && passing.is_empty() {
            return;
        }
        if n > 0 {
            squares.set_counts(problem.counts(run.clients));
        }
        if !held.is_empty() {
            let least = squares.least_stationary().unwrap_or(f64::INFINITY);
            held.retain(|&k| least <= best[k].square() * (1.0 + MARGIN));
        }
        if held.is_empty() && passing.is_empty() {
            return;
        }
        let known = held.iter().map(|&k| best[k].held);
        if let Some(rounds) = rounds_to_follow(known).filter(|_| passing.is_empty()) {
            let errors = squares.errors(rounds);
            held.retain(|&k| {
                let square = best[k].square();
                best[k].held.is_none_or(|best| best.may_be_improved(&errors, square))
            });
            if held.is_empty() {
                return;
            }
        }
        let mut curve = ErrorCurve::new(squares);
        for k in passing {
            let passage = curve.first_passage(best[k].square());
            let passage = passage.map(|crossing| Best { run, crossing });
            Best::keep(&mut best[k].passing, passage);
        }
        let targets: Vec<f64> = held.iter().map(|&k| best[k].square()).collect();
        let crossings = held_crossings(&mut curve, problem.rounds(run.algorithm), &targets);
        for (k, crossing) in held.into_iter().zip(crossings) {
            Best::keep(&mut best[k].held, crossing.map(|crossing| Best { run, crossing }));
            if let Some(Crossing { rounds, .. }) = crossing {
                self.least.lower(first + k, &run, rounds);
            }
        }
    }
}

/// The least variance that excludes all of these targets, where `bias` is the square of the bias: with a larger
/// variance the stationary error is above each of them. It is a variance with `clients` clients; with other numbers of
/// clients the variance is inversely proportional to them.
fn excluding_variance(open: &[&BestOfTarget], bias: f64, clients: f64) -> f64 {
    open.iter()
        .map(|best| (OUTLINE_MARGIN * best.square() - bias) * best.clients as f64 / clients)
        .fold(0.0, f64::max)
}

impl StepSizes {
    /// Step size number i of the grid: γ_i = `from` · (`to`/`from`)^(i/(`points` − 1)).
    pub fn nth(&self, i: usize) -> f64 {
        // The ends are exact.
        if i == 0 {
            self.from
        } else if i + 1 == self.points {
            self.to
        } else {
            let share = i as f64 / (self.points - 1) as f64;
            self.from * libm::exp(share * libm::log(self.to / self.from))
        }
    }
}

/// The best step sizes of all combinations of algorithm, number of clients, target and number of local steps, in the
/// order of the algorithms. `sizes` has the largest number of second moments of each algorithm: from them the share of
/// the algorithm in the work is estimated, with which `worked` is called.
pub fn run(problem: &TypedProblem<'_>, sizes: &[usize], worked: Worked<'_>) -> Vec<Reached> {
    let algorithms = &problem.search.algorithms;
    let each = algorithms.iter().zip(sizes);
    let costs: Vec<f64> = each.map(|(algorithm, size)| cost(problem, *algorithm, *size)).collect();
    let all: f64 = costs.iter().sum();
    algorithms
        .par_iter()
        .zip(&costs)
        .flat_map_iter(|(&algorithm, cost)| {
            search_algorithm(problem, algorithm, &|share| worked(share * cost / all))
        })
        .collect()
}

/// The share of the time of a search that the step sizes of the grid take, where they are refined afterwards. It is for
/// the display of progress alone.
const ON_GRID: f64 = 0.3;

/// About how much work the search of an algorithm is, relative to other algorithms, for the display of progress: the
/// number of entries of the largest map of its second moments, `moments` squared, for each choice of further settings,
/// pair of runs and number of local steps. Products of large maps take more than in proportion to their entries, and
/// those of small maps less.
fn cost(problem: &TypedProblem<'_>, algorithm: usize, moments: usize) -> f64 {
    let search = problem.search;
    let size = moments as f64;
    let rounds = problem.rounds(algorithm);
    let mut pairs = 0;
    for choice in 0..rounds.choices() {
        let local_runs = rounds.local_runs(&search.largest_settings(algorithm, choice));
        let runs = local_runs.map_or(1, |local| local.runs.len());
        pairs += runs * (runs + 1) / 2;
    }
    size * size * (pairs * search.local_steps_of(algorithm).len()) as f64
}

/// The best step sizes of an algorithm for all numbers of clients and of local steps and all targets, ordered by number
/// of clients and then by target.
fn search_algorithm(
    problem: &TypedProblem<'_>,
    algorithm: usize,
    worked: Worked<'_>,
) -> Vec<Reached> {
    let search = problem.search;
    let local_steps = search.local_steps_of(algorithm);
    // By number of clients and target; `best` has one of these for each number of local steps.
    let mut none: Vec<Vec<BestOfTarget>> = Vec::with_capacity(search.clients.len());
    for &clients in &search.clients {
        none.push(
            search.targets.iter().map(|target| BestOfTarget::none(clients, *target)).collect(),
        );
    }
    let mut best = vec![none; local_steps.len()];
    let on_grid = if search.refinements == 0 { 1.0 } else { ON_GRID };
    let least = &LeastCosts::new(search);
    let passing = search.prices.is_empty();
    for i in (0..search.step_sizes.points).rev() {
        let step_size = search.step_sizes.nth(i);
        let known = &problem.known.afresh();
        best.par_iter_mut().zip(local_steps).for_each(|(best, &local_steps)| {
            for choice in 0..problem.rounds(algorithm).choices() {
                let clients = search.clients[0];
                let run = RoundSettings { algorithm, clients, local_steps, step_size, choice };
                TriedSettings { run, known, least, passing }.improve(problem, best);
            }
        });
        worked(on_grid / search.step_sizes.points as f64);
    }
    drop_too_costly(least, &mut best);
    let count = best.iter().flatten().flatten().filter(|best| best.held.is_some()).count();
    if count == 0 {
        worked(1.0 - on_grid);
    }
    let share = (1.0 - on_grid) / count as f64;
    let mut all: Vec<BestOfTarget> = best
        .into_par_iter()
        .flat_map_iter(|mut of_steps| {
            refine_held(problem, &mut of_steps, &|| worked(share));
            of_steps.iter_mut().for_each(|best| keep_what_smaller_targets_need(problem, best));
            of_steps.into_iter().flatten()
        })
        .collect();
    // In the order of N and ε.
    all.sort_by_key(|best| {
        let n = search.clients.iter().position(|n| *n == best.clients);
        (n, search.targets.iter().position(|target| *target == best.target))
    });
    all.iter().flat_map(|best| best.reached(search.step_sizes)).collect()
}

/// Drops the settings that hold a target at costs at which they are assumed not to become the cheapest at any price
/// ([`LeastCosts::is_too_costly`]). Step sizes that cost as much were excluded, so that these settings may not be the
/// best with their number of local steps. `best` is by number of local steps, number of clients and target.
fn drop_too_costly(least: &LeastCosts<'_>, best: &mut [Vec<Vec<BestOfTarget>>]) {
    for of_steps in best {
        for (place, best) in of_steps.iter_mut().flatten().enumerate() {
            best.held = best
                .held
                .filter(|Best { run, crossing }| !least.is_too_costly(place, run, crossing.rounds));
        }
    }
}

/// Refines the step sizes with which targets are held, and finds the targets for which the range of step sizes may end
/// too early ([`BestOfTarget::clipped`]). `best` is by number of clients and target, with one number of local steps;
/// `worked` is called once for each target that is held.
fn refine_held(problem: &TypedProblem<'_>, best: &mut [Vec<BestOfTarget>], worked: &dyn Fn()) {
    let search = problem.search;
    let mut held: Vec<&mut BestOfTarget> = best.iter_mut().flatten().collect();
    held.retain(|best| best.held.is_some());
    let mut refined: Vec<Refined> = held
        .iter()
        .filter_map(|best| Some(Refined::new(search.step_sizes, best.square(), best.held?)))
        .collect();
    refine(problem, &mut refined);
    for (best, Refined { best: refined, .. }) in held.into_iter().zip(refined) {
        best.held = Some(refined);
        best.clipped = search.prices.is_empty() && is_clipped(problem, best.square(), &refined);
        worked();
    }
}

/// Gives each target the settings of the next smaller target, where these need fewer rounds for the smaller target than
/// the target's own: an error that stays below the smaller target stays below the larger one. This happens because a
/// refinement finds a local minimum for each target alone. `over_targets` has all targets for one number of clients and
/// of local steps.
fn keep_what_smaller_targets_need(problem: &TypedProblem<'_>, over_targets: &mut [BestOfTarget]) {
    over_targets.sort_by(|a, b| a.target.total_cmp(&b.target));
    for k in 1..over_targets.len() {
        let smaller = over_targets[k - 1];
        let best = &mut over_targets[k];
        if rounds_needed(smaller.held) < rounds_needed(best.held) {
            let square = best.square();
            let found = smaller.held.and_then(|other| settings_holding(problem, other.run, square));
            Best::keep(&mut best.held, found);
        }
        if rounds_needed(smaller.passing) < rounds_needed(best.passing) {
            best.passing = smaller.passing;
        }
    }
}

/// The number of rounds that the best settings need; the largest number if there are none.
fn rounds_needed(best: Option<Best>) -> u64 {
    best.map_or(u64::MAX, |best| best.crossing.rounds)
}

/// These settings, with the round from which their error stays at most at `square` = ε²; `None` if it does not.
fn settings_holding(problem: &TypedProblem<'_>, run: RoundSettings, square: f64) -> Option<Best> {
    let mut curve = problem.curve(&run).ok()?;
    let crossing = held_crossings(&mut curve, problem.rounds(run.algorithm), &[square])[0]?;
    Some(Best { run, crossing })
}

impl BestOfTarget {
    /// No settings yet for a number of clients and a target.
    fn none(clients: u64, target: f64) -> Self {
        Self { clients, target, held: None, passing: None, clipped: false }
    }

    /// The square ε² of the target, which errors E‖θ_t − θ*‖² are compared with.
    fn square(&self) -> f64 {
        self.target * self.target
    }

    /// The records of the fewest rounds to stay below the target, and after it of the fewest rounds to come below the
    /// target, if they are fewer. `range` has the step sizes that were tried.
    fn reached(&self, range: StepSizes) -> impl Iterator<Item = Reached> {
        let stays = true;
        let held = self.held.map(|held| self.reached_with(held, stays, range));
        let passing = self.passing.map(|passing| self.reached_with(passing, !stays, range));
        let passes_earlier =
            passing.filter(|passing| held.is_none_or(|held| passing.rounds < held.rounds));
        held.into_iter().chain(passes_earlier)
    }

    /// The record of settings that reach the target, and stay below it if `held`, where `range` has the step sizes that
    /// were tried.
    fn reached_with(&self, best: Best, held: bool, range: StepSizes) -> Reached {
        let Best { run, crossing } = best;
        let edge = if run.step_size >= range.to {
            Some(RangeEnd::To)
        } else if run.step_size <= range.from {
            Some(RangeEnd::From)
        } else {
            (held && self.clipped).then_some(RangeEnd::OfAnotherChoice)
        };
        Reached { run, target: self.target, rounds: crossing.rounds, held, edge }
    }
}

/// Whether with another choice of further settings a step size beyond the range might need fewer rounds than the best
/// settings to stay at most at `most` = ε². A step size below the range might, if with the smallest one of the range
/// the stationary error is too large, or if even with it the error without noise may be at most ε² in fewer rounds. A
/// step size above the range might, if with the largest one the error may stay at most at ε².
fn is_clipped(problem: &TypedProblem<'_>, most: f64, best: &Best) -> bool {
    let StepSizes { from, to, .. } = problem.search.step_sizes;
    let fewer = best.crossing.rounds.saturating_sub(1);
    let mut others = (0..problem.rounds(best.run.algorithm).choices())
        .filter(|choice| *choice != best.run.choice);
    others.any(|choice| {
        // Without exact moments nothing is known beyond an end.
        let smallest = RoundSettings { step_size: from, choice, ..best.run };
        let is_clipped_below = problem.squares(&smallest, &problem.known.afresh(), |squares| {
            !may_stay(squares, most)
                || NoiselessError::new(&squares.mean).may_be_met_after(&squares.mean, fewer, most)
        });
        if is_clipped_below.unwrap_or(false) {
            return true;
        }
        let largest = RoundSettings { step_size: to, choice, ..best.run };
        problem
            .squares(&largest, &problem.known.afresh(), |squares| may_stay(squares, most))
            .unwrap_or(false)
    })
}

/// Whether the bound THEORY (6.5) of the stationary error allows an error to stay at most at `most` = ε².
fn may_stay(squares: &Squares<'_>, most: f64) -> bool {
    squares.least_stationary().is_some_and(|least| least <= most * (1.0 + MARGIN))
}
