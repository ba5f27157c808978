//! The search for the best step sizes.
//!
//! Methods are searched in parallel, and of each the step sizes from the largest to the smallest:
//! their local steps' powers are shared by all numbers of local steps, which are in parallel, and of
//! clients. A round's map is made only if the bounds allow a target to be reached in no more
//! rounds than with the best step size so far, so that step sizes wait for each other. No number
//! depends on the number of threads, because each is computed by one of them.

use super::bounds::{MARGIN, NoiselessError};
use super::curve::{Crossing, ErrorCurve, MOST_PASSING};
use super::rounds::TypedProblem;
use super::{
    FrontierAlgorithm, MethodRun, OwnRounds, RangeEnd, Reached, Search, StepSizes, Worked,
};
use crate::theory::program::{KnownSteps, Squares};
use rayon::prelude::*;
use std::collections::HashMap;

/// The best step sizes so far.
#[derive(Clone, Copy)]
struct Best {
    step_size: f64,
    choice: usize,
    crossing: Crossing,
}

/// The best step sizes so far to stay below a target, and to come below it; and whether the range
/// may end before those of another choice that stay below it in fewer rounds.
#[derive(Clone, Copy, Default)]
struct Bests {
    held: Option<Best>,
    passing: Option<Best>,
    clipped: bool,
}

impl Best {
    /// Whether it has fewer rounds, or as many and a smaller error after them.
    fn improves(&self, on: Option<&Self>) -> bool {
        let key = |best: &Self| (best.crossing.rounds, best.crossing.square);
        on.is_none_or(|other| key(self) < key(other))
    }

    /// Puts it in the place of one on which it improves.
    fn replace(self, on: &mut Option<Self>) {
        if self.improves(on.as_ref()) {
            *on = Some(self);
        }
    }
}

/// Improves the best settings of a number of local steps, by number of clients and target, with one
/// step size and choice of further settings.
fn improve(
    problem: &TypedProblem<'_>,
    search: &Search,
    (run, known): (MethodRun, &KnownSteps),
    best: &mut [Vec<Bests>],
) {
    let square = |k: usize| search.targets[k] * search.targets[k];
    let with = |crossing| Best { step_size: run.step_size, choice: run.choice, crossing };
    let improve = |squares: &mut Squares<'_>| {
        // Rounds without noise are the same for all numbers of clients.
        let mut noiseless = NoiselessError::new(squares);
        for ((n, &clients), best) in search.clients.iter().enumerate().zip(best) {
            // The targets that may be held in no more rounds, and those that may be passed in no more and
            // in fewer than it takes to hold them.
            let held = (0..best.len()).filter(|&k| {
                best[k].held.is_none_or(|b| noiseless.allows(b.crossing.rounds, square(k)))
            });
            let mut held: Vec<usize> = held.collect();
            let passing = (0..best.len()).filter(|&k| {
                let rounds = |best: Option<Best>, most| best.map_or(most, |b| b.crossing.rounds);
                let fewer = rounds(best[k].held, MOST_PASSING + 1).checked_sub(1);
                let most = fewer.map(|fewer| fewer.min(rounds(best[k].passing, MOST_PASSING)));
                most.is_some_and(|most| noiseless.may_pass(most, square(k)))
            });
            let passing: Vec<usize> = passing.collect();
            if held.is_empty() && passing.is_empty() {
                continue;
            }
            if n > 0 {
                squares.set_counts(problem.counts(clients));
            }
            if !held.is_empty() {
                let least = squares.least_stationary().unwrap_or(f64::INFINITY);
                held.retain(|&k| least <= square(k) * (1.0 + MARGIN));
            }
            if held.is_empty() && passing.is_empty() {
                continue;
            }
            let mut curve = ErrorCurve::new(squares);
            for k in passing {
                let passage = curve.first_passage(square(k)).map(with);
                passage.into_iter().for_each(|passage| passage.replace(&mut best[k].passing));
            }
            let crossings = held_crossings(&mut curve, run.method, held.iter().map(|&k| square(k)));
            for (k, crossing) in held.into_iter().zip(crossings) {
                let crossing = crossing.map(with);
                crossing.into_iter().for_each(|crossing| crossing.replace(&mut best[k].held));
            }
        }
    };
    // Without exact moments there is nothing to improve.
    let _ = problem.squares(&run, search.own(), known, improve);
}

/// Where an error comes below these squares and stays. That of an algorithm that is defined outside
/// of this crate may oscillate, and is followed until it provably stays.
fn held_crossings(
    curve: &mut ErrorCurve,
    method: FrontierAlgorithm,
    squares: impl Iterator<Item = f64>,
) -> Vec<Option<Crossing>> {
    match method {
        FrontierAlgorithm::Own(_) => squares.map(|square| curve.proven(square)).collect(),
        _ => curve.crossings(&squares.collect::<Vec<_>>()),
    }
}

impl StepSizes {
    /// The step size number `i`.
    pub fn nth(&self, i: usize) -> f64 {
        match self.points {
            _ if i == 0 => self.from,
            points if i + 1 == points => self.to,
            points => {
                let share = i as f64 / (points - 1) as f64;
                self.from * libm::exp(share * libm::log(self.to / self.from))
            }
        }
    }
}

/// The errors of a method with all its settings.
///
/// # Errors
/// Why they have no moments.
pub fn curve(
    problem: &TypedProblem<'_>,
    run: &MethodRun,
    own: Option<&dyn OwnRounds>,
) -> Result<ErrorCurve, String> {
    problem.squares(run, own, &problem.known.afresh(), |squares| ErrorCurve::new(squares))
}

/// The best step sizes of all combinations, in the order of the methods.
pub fn run(problem: &TypedProblem<'_>, search: &Search, worked: Worked<'_>) -> Vec<Reached> {
    let costs: Vec<f64> = search.methods.iter().map(|m| cost(problem, search, *m)).collect();
    let all: f64 = costs.iter().sum();
    let of_method = |(&method, cost): (&FrontierAlgorithm, &f64)| {
        of_method(problem, search, method, &|share| worked(share * cost / all))
    };
    search.methods.par_iter().zip(&costs).flat_map_iter(of_method).collect()
}

/// The share of the time of a search that the step sizes of the grid take, where they are refined.
const ON_GRID: f64 = 0.3;

/// About what the search of a method costs, in a unit that all methods share: for each number of
/// local steps the size of its maps, whose products take more than that where they are large, and
/// less where they are small.
fn cost(problem: &TypedProblem<'_>, search: &Search, method: FrontierAlgorithm) -> f64 {
    let size = moments(method, problem.facts.dim(), problem.types.len()) as f64;
    let runs = method.weights().len();
    let local_steps = if method == FrontierAlgorithm::Sgd { 1 } else { search.local_steps.len() };
    size * size * (runs * (runs + 1) / 2 * local_steps * method.choices()) as f64
}

/// The most moments of a pair of runs of a method in `d` dimensions.
pub fn moments(method: FrontierAlgorithm, d: usize, types: usize) -> usize {
    let is_same = method.weights().len() == 1;
    let products = |n: usize| if is_same { n * (n + 1) / 2 } else { n * n };
    match method.is_corrected() {
        true => products(types * d + 1) + types * products(d),
        false => products(d + 1),
    }
}

fn of_method(
    problem: &TypedProblem<'_>,
    search: &Search,
    method: FrontierAlgorithm,
    worked: Worked<'_>,
) -> Vec<Reached> {
    let one = [1];
    let local_steps: &[u64] =
        if method == FrontierAlgorithm::Sgd { &one } else { &search.local_steps };
    let none = vec![vec![Bests::default(); search.targets.len()]; search.clients.len()];
    let mut best = vec![none; local_steps.len()];
    let on_grid = if search.refinements == 0 { 1.0 } else { ON_GRID };
    for i in (0..search.step_sizes.points).rev() {
        let step_size = search.step_sizes.nth(i);
        let known = problem.known.afresh();
        best.par_iter_mut().zip(local_steps).for_each(|(best, &local_steps)| {
            for choice in 0..method.choices() {
                let clients = search.clients[0];
                let run = MethodRun { method, clients, local_steps, step_size, choice };
                improve(problem, search, (run, &known), best);
            }
        });
        worked(on_grid / search.step_sizes.points as f64);
    }
    let mut goals = Vec::new();
    for (n, &clients) in search.clients.iter().enumerate() {
        for (best, &local_steps) in best.iter().zip(local_steps) {
            let of = |k: usize| {
                (Goal { method, clients, target: search.targets[k], local_steps }, best[n][k])
            };
            goals.push((0..search.targets.len()).map(of).collect::<Vec<_>>());
        }
    }
    let least = LeastCosts::new(search, &goals);
    let refined = goals.iter().flatten().filter_map(|(goal, best)| least.refined(goal, best));
    let count = refined.count();
    if count == 0 {
        worked(1.0 - on_grid);
    }
    let share = (1.0 - on_grid) / count as f64;
    let refined = |mut over_targets: Vec<(Goal, Bests)>| {
        for (goal, best) in &mut over_targets {
            let Some(held) = least.refined(goal, best) else { continue };
            let refined = refine(problem, search, goal, held);
            (best.held, best.clipped) = (Some(refined), goal.is_clipped(problem, search, &refined));
            worked(share);
        }
        keep_what_smaller_targets_need(problem, search, &mut over_targets);
        over_targets
    };
    let mut all: Vec<(Goal, Bests)> = goals.into_par_iter().flat_map_iter(refined).collect();
    // In the order of N and ε.
    let place = |goal: &Goal| {
        let n = search.clients.iter().position(|n| *n == goal.clients);
        (n, search.targets.iter().position(|target| *target == goal.target))
    };
    all.sort_by_key(|(goal, _)| place(goal));
    all.iter().flat_map(|(goal, best)| goal.reached(best, search.step_sizes)).collect()
}

/// The most by which a refinement may lower a cost.
const MOST_REFINED: f64 = 1.5;

/// The least costs at the prices of a search, by N and the bits of ε.
struct LeastCosts<'s> {
    search: &'s Search,
    least: HashMap<(u64, u64), Vec<f64>>,
}

impl<'s> LeastCosts<'s> {
    fn new(search: &'s Search, goals: &[Vec<(Goal, Bests)>]) -> Self {
        let mut new = Self { search, least: HashMap::new() };
        for (goal, best) in goals.iter().flatten() {
            let Some(costs) = best.held.map(|held| new.costs(goal, held)) else { continue };
            let place = (goal.clients, goal.target.to_bits());
            let least = new.least.entry(place).or_insert_with(|| costs.clone());
            least.iter_mut().zip(costs).for_each(|(least, cost)| *least = least.min(cost));
        }
        new
    }

    fn costs(&self, goal: &Goal, held: Best) -> Vec<f64> {
        let (round, rounds) =
            (self.search.round_price(&goal.run(held)), held.crossing.rounds as f64);
        let cost = |price: &f64| rounds * (price * round.communications + round.gradients);
        self.search.prices.iter().map(cost).collect()
    }

    /// The best so far, if it is refined: unless it costs so much at each of the prices that no refinement
    /// makes it the least.
    fn refined(&self, goal: &Goal, best: &Bests) -> Option<Best> {
        let held = best.held?;
        let least = &self.least[&(goal.clients, goal.target.to_bits())];
        let mut pairs = self.costs(goal, held).into_iter().zip(least);
        let may_be_least = pairs.any(|(cost, least)| cost <= MOST_REFINED * least);
        (may_be_least || self.search.prices.is_empty()).then_some(held)
    }
}

/// Gives each target the step sizes with which a smaller one needs fewer rounds: what stays below the
/// smaller stays below it.
fn keep_what_smaller_targets_need(
    problem: &TypedProblem<'_>,
    search: &Search,
    over_targets: &mut [(Goal, Bests)],
) {
    over_targets.sort_by(|(a, _), (b, _)| a.target.total_cmp(&b.target));
    for k in 1..over_targets.len() {
        let (before, after) = over_targets.split_at_mut(k);
        let (smaller, (goal, best)) = (before[k - 1].1, &mut after[0]);
        let rounds = |best: Option<Best>| best.map_or(u64::MAX, |best| best.crossing.rounds);
        if rounds(smaller.held) < rounds(best.held) {
            let with =
                |of: Best| Some(Best { crossing: goal.crossing(problem, search, of)?, ..of });
            smaller.held.and_then(with).into_iter().for_each(|found| found.replace(&mut best.held));
        }
        if rounds(smaller.passing) < rounds(best.passing) {
            best.passing = smaller.passing;
        }
    }
}

/// What a step size is sought for.
struct Goal {
    method: FrontierAlgorithm,
    clients: u64,
    target: f64,
    local_steps: u64,
}

impl Goal {
    /// The fewest rounds to stay below the target, and those to come below it if they are fewer.
    fn reached(&self, best: &Bests, range: StepSizes) -> impl Iterator<Item = Reached> {
        let clipped = best.clipped;
        let of = |best: Best, held: bool| {
            let edge = match best.step_size {
                x if x >= range.to => Some(RangeEnd::To),
                x if x <= range.from => Some(RangeEnd::From),
                _ => (held && clipped).then_some(RangeEnd::OfAnotherChoice),
            };
            let rounds = best.crossing.rounds;
            Reached { run: self.run(best), target: self.target, rounds, held, edge }
        };
        let held = best.held.map(|held| of(held, true));
        let passing = best.passing.map(|passing| of(passing, false));
        let is_fewer = |p: &Reached| held.is_none_or(|held| p.rounds < held.rounds);
        held.into_iter().chain(passing.filter(is_fewer))
    }

    /// The method with these step sizes.
    fn run(&self, Best { step_size, choice, .. }: Best) -> MethodRun {
        let Self { method, clients, local_steps, .. } = *self;
        MethodRun { method, clients, local_steps, step_size, choice }
    }

    /// Whether with another choice of further settings a step size beyond the range might need fewer
    /// rounds than the best: below it, if the smallest is too large to stay below the target, or
    /// without noise not too small to be there by then; above it, if the largest may stay below.
    fn is_clipped(&self, problem: &TypedProblem<'_>, search: &Search, best: &Best) -> bool {
        let most = self.target * self.target;
        let stays = |squares: &Squares<'_>| {
            squares.least_stationary().is_some_and(|least| least <= most * (1.0 + MARGIN))
        };
        let with = |choice, step_size, might: &dyn Fn(&Squares<'_>) -> bool| {
            let run = self.run(Best { step_size, choice, ..*best });
            let found = problem.squares(&run, search.own(), &problem.known.afresh(), |s| might(s));
            found.unwrap_or(false)
        };
        let StepSizes { from, to, .. } = search.step_sizes;
        let below = |squares: &Squares<'_>| {
            let fewer = best.crossing.rounds.saturating_sub(1);
            !stays(squares) || NoiselessError::new(squares).allows(fewer, most)
        };
        let mut others = (0..self.method.choices()).filter(|choice| *choice != best.choice);
        others.any(|choice| with(choice, from, &below) || with(choice, to, &stays))
    }

    /// Where the error comes below the target and stays, with the step sizes of another target.
    fn crossing(&self, problem: &TypedProblem<'_>, search: &Search, of: Best) -> Option<Crossing> {
        let square = std::iter::once(self.target * self.target);
        let mut curve = curve(problem, &self.run(of), search.own()).ok()?;
        held_crossings(&mut curve, self.method, square)[0]
    }

    /// The same with another step size, if that is better than `best`.
    fn better(
        &self,
        problem: &TypedProblem<'_>,
        search: &Search,
        step_size: f64,
        best: &Best,
    ) -> Option<Best> {
        let run = self.run(Best { step_size, ..*best });
        let square = self.target * self.target;
        let found = problem.squares(&run, search.own(), &problem.known.afresh(), |squares| {
            let may_hold = NoiselessError::new(squares).allows(best.crossing.rounds, square)
                && squares.least_stationary()? <= square * (1.0 + MARGIN);
            let mut curve = may_hold.then(|| ErrorCurve::new(squares))?;
            let crossing = held_crossings(&mut curve, self.method, std::iter::once(square))[0]?;
            Some(Best { step_size, choice: best.choice, crossing })
        });
        found.ok()?.filter(|found| found.improves(Some(best)))
    }
}

/// The best step size after golden-section steps in log γ between the neighbours of the best of
/// the range.
fn refine(problem: &TypedProblem<'_>, search: &Search, goal: &Goal, mut best: Best) -> Best {
    /// The part of the larger side of the best at which the next step size lies.
    const PART: f64 = 0.381_966_011_250_105_1;
    let StepSizes { from, to, points } = search.step_sizes;
    let (low, high, mut center) = (libm::log(from), libm::log(to), libm::log(best.step_size));
    let spacing = (high - low) / points.saturating_sub(1).max(1) as f64;
    let (mut a, mut b) = ((center - spacing).max(low), (center + spacing).min(high));
    for _ in 0..search.refinements {
        let is_right = b - center > center - a;
        let next = center + PART * (if is_right { b } else { a } - center);
        match goal.better(problem, search, libm::exp(next), &best) {
            Some(found) => {
                *(if is_right { &mut a } else { &mut b }) = center;
                (best, center) = (found, next);
            }
            None => *(if is_right { &mut b } else { &mut a }) = next,
        }
    }
    best
}
