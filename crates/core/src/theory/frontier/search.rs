//! The search for the best step sizes.
//!
//! Methods are searched in parallel, and of each the step sizes from the largest to the smallest:
//! their local steps' powers are shared by all numbers of local steps and of clients, which are in
//! parallel. A round's map is made only if the bounds allow a target to be reached in no more
//! rounds than with the best step size so far, so that step sizes wait for each other. No number
//! depends on the number of threads, because each is computed by one of them.

use super::bounds::{NoiselessError, StationaryBound};
use super::curve::{Crossing, ErrorCurve, MOST_PASSING};
use super::local::{ClientType, LocalPowers, StepCount, run_pairs};
use super::means::{MethodRuns, RoundMeans};
use super::products::Products;
use super::round::RoundMoments;
use super::{
    FrontierAlgorithm, MethodRun, OwnRounds, RangeEnd, Reached, Search, StartError, StepSizes,
    Worked,
};
use crate::kernel::difference;
use crate::problem::Facts;
use rayon::prelude::*;
use std::collections::HashMap;

/// A problem with its clients in types.
pub struct TypedProblem<'a> {
    /// The problem.
    pub facts: &'a dyn Facts,
    /// The types.
    pub types: Vec<ClientType>,
    /// The start.
    pub start: StartError,
    /// The error of the start: θ_0 − θ* if it is a point.
    pub error: StartError,
}

impl<'a> TypedProblem<'a> {
    /// A problem of these types.
    pub fn new(facts: &'a dyn Facts, types: Vec<ClientType>, start: StartError) -> Self {
        let error = match &start {
            StartError::Point(x) => StartError::Point(difference(x, facts.optimum())),
            isotropic => isotropic.clone(),
        };
        Self { facts, types, start, error }
    }
}

/// The rounds of one method with one step size, for any number of local steps.
struct Rounds<'a> {
    problem: &'a TypedProblem<'a>,
    method: FrontierAlgorithm,
    steps: Vec<f64>,
    choice: usize,
    powers: LocalPowers,
}

/// The best step sizes so far.
#[derive(Clone, Copy)]
struct Best {
    step_size: f64,
    choice: usize,
    crossing: Crossing,
}

/// The best step sizes so far to stay below a target, and to come below it.
#[derive(Clone, Copy, Default)]
struct Bests {
    held: Option<Best>,
    passing: Option<Best>,
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

impl FrontierAlgorithm {
    fn corrected(self) -> bool {
        matches!(self, Self::Scaffold | Self::ScaffoldRr | Self::Scaffnew)
    }

    /// The local steps of a round, and the oracle calls of each.
    fn steps_and_batch(self, local_steps: u64) -> (StepCount, u64) {
        match self {
            Self::Sgd => (StepCount::Fixed(1), 1),
            Self::MinibatchSgd => (StepCount::Fixed(1), local_steps),
            Self::Scaffnew => (StepCount::Geometric(local_steps), 1),
            _ => (StepCount::Fixed(local_steps), 1),
        }
    }
}

impl<'a> Rounds<'a> {
    fn new(
        problem: &'a TypedProblem<'a>,
        method: FrontierAlgorithm,
        (step_size, choice): (f64, usize),
        most: u64,
    ) -> Self {
        let steps: Vec<f64> =
            (1..=method.weights().len()).map(|run| run as f64 * step_size).collect();
        let most = method.steps_and_batch(most).0;
        let powers = LocalPowers::new(&problem.types, &steps, method.corrected(), most);
        Self { problem, method, steps, choice, powers }
    }

    fn means(&self, local_steps: u64) -> RoundMeans {
        let count = self.method.steps_and_batch(local_steps).0;
        let lengths: Vec<f64> = self.steps.iter().map(|step| step * count.mean() as f64).collect();
        let (weights, corrected) = (self.method.weights(), self.method.corrected());
        let server_step = self.method.server_steps()[self.choice];
        let runs = MethodRuns { weights, lengths: &lengths, corrected, server_step };
        RoundMeans::new(&self.problem.types, self.powers.ends(count), &runs)
    }

    fn moments(&self, means: RoundMeans, local_steps: u64) -> RoundMoments {
        let (count, batch) = self.method.steps_and_batch(local_steps);
        let mut noise = self.powers.noise(count, &means.ends);
        if !self.method.shares_draws() {
            // Runs on draws of their own differ by independent noise.
            for own in &mut noise.own {
                let pairs = own.iter_mut().zip(run_pairs(self.steps.len()));
                pairs.filter(|(_, (r, q))| r != q).for_each(|(noise, _)| noise.fill(0.0));
            }
        }
        RoundMoments::new(means, &noise, batch)
    }

    /// Improves the best step sizes of a number of local steps, by number of clients and target.
    fn improve(&self, search: &Search, local_steps: u64, best: &mut [Vec<Bests>]) {
        let means = self.means(local_steps);
        let mut noiseless = NoiselessError::new(&means, &self.problem.error);
        let square = |k: usize| search.targets[k] * search.targets[k];
        // The targets that may be held, and those that may be passed, in no more rounds.
        let mut open_of = |best: &Vec<Bests>| -> [Vec<usize>; 2] {
            let rounds = |best: Option<Best>, most| best.map_or(most, |b| b.crossing.rounds);
            let held = (0..best.len()).filter(|&k| {
                best[k].held.is_none_or(|b| noiseless.allows(b.crossing.rounds, square(k)))
            });
            let held = held.collect();
            let passing = (0..best.len())
                .filter(|&k| noiseless.may_pass(rounds(best[k].passing, MOST_PASSING), square(k)));
            [held, passing.collect()]
        };
        let open: Vec<[Vec<usize>; 2]> = best.iter().map(&mut open_of).collect();
        if open.iter().flatten().all(Vec::is_empty) {
            return;
        }
        let round = self.moments(means, local_steps);
        let stationary = StationaryBound::new(&round);
        let of_clients = |((&clients, best), [mut held, passing]): (
            (&u64, &mut Vec<Bests>),
            [Vec<usize>; 2],
        )| {
            held.retain(|&k| stationary.allows(clients, square(k)));
            if held.is_empty() && passing.is_empty() {
                return;
            }
            let mut curve = ErrorCurve::new(&round, clients, &self.problem.error);
            let (step_size, choice) = (self.steps[0], self.choice);
            let found = |crossing| Best { step_size, choice, crossing };
            for k in passing {
                let passage = curve.first_passage(square(k)).map(found);
                passage.into_iter().for_each(|passage| passage.replace(&mut best[k].passing));
            }
            let squares: Vec<f64> = held.iter().map(|&k| square(k)).collect();
            for (k, crossing) in held.into_iter().zip(curve.crossings(&squares)) {
                let crossing = crossing.map(found);
                crossing.into_iter().for_each(|crossing| crossing.replace(&mut best[k].held));
            }
        };
        search.clients.par_iter().zip(best).zip(open).for_each(of_clients);
    }
}

/// Improves the best settings of an algorithm that is defined outside of this crate.
fn improve_own(
    problem: &TypedProblem<'_>,
    search: &Search,
    (method, step_size, local_steps): (FrontierAlgorithm, f64, u64),
    best: &mut [Vec<Bests>],
) {
    let squares: Vec<f64> = search.targets.iter().map(|target| target * target).collect();
    for (&clients, best) in search.clients.iter().zip(best) {
        for choice in 0..method.choices() {
            let run = MethodRun { method, clients, local_steps, step_size, choice };
            let found = problem.own_crossings(&run, search, &squares);
            for (best, [held, passing]) in best.iter_mut().zip(found) {
                let with = |crossing| Best { step_size, choice, crossing };
                held.map(with).into_iter().for_each(|held| held.replace(&mut best.held));
                let passing = passing.map(with);
                passing.into_iter().for_each(|passing| passing.replace(&mut best.passing));
            }
        }
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

/// The most moments of a pair of runs of a method in `d` dimensions.
pub fn moments(method: FrontierAlgorithm, d: usize, types: usize) -> usize {
    let same = method.weights().len() == 1;
    let u = Products { n: if method.corrected() { types * d + 1 } else { d + 1 }, same };
    let deviations = if method.corrected() { types } else { 0 };
    u.len() + deviations * Products { n: d, same }.len()
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
    if run.method.own().is_some() {
        return problem.of_own(run, own, ErrorCurve::of_squares);
    }
    let steps = (run.step_size, run.choice);
    let rounds = Rounds::new(problem, run.method, steps, run.local_steps);
    let round = rounds.moments(rounds.means(run.local_steps), run.local_steps);
    Ok(ErrorCurve::new(&round, run.clients, &problem.error))
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
    let types = &problem.types;
    let size = moments(method, types[0].field.len(), types.len()) as f64;
    let pairs = run_pairs(method.weights().len()).count() as f64;
    let local_steps = if method == FrontierAlgorithm::Sgd { 1 } else { search.local_steps.len() };
    size * size * pairs * (local_steps * method.choices()) as f64
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
    let most = local_steps.iter().copied().max().unwrap_or(1);
    let on_grid = if search.refinements == 0 { 1.0 } else { ON_GRID };
    for i in (0..search.step_sizes.points).rev() {
        let step_size = search.step_sizes.nth(i);
        let pairs = best.par_iter_mut().zip(local_steps);
        if method.own().is_some() {
            pairs.for_each(|(best, &h)| improve_own(problem, search, (method, step_size, h), best));
        } else {
            let mut rounds = Rounds::new(problem, method, (step_size, 0), most);
            for choice in 0..method.choices() {
                rounds.choice = choice;
                let pairs = best.par_iter_mut().zip(local_steps);
                pairs.for_each(|(best, &h)| rounds.improve(search, h, best));
            }
        }
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
            best.held = Some(refine(problem, search, goal, held));
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
        let of = |best: Best, held: bool| {
            let edge = match best.step_size {
                x if x >= range.to => Some(RangeEnd::To),
                x if x <= range.from => Some(RangeEnd::From),
                _ => None,
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

    /// Where the error comes below the target and stays, with the step sizes of another target.
    fn crossing(&self, problem: &TypedProblem<'_>, search: &Search, of: Best) -> Option<Crossing> {
        let (run, squares) = (self.run(of), [self.target * self.target]);
        if self.method.own().is_some() {
            return problem.own_crossings(&run, search, &squares)[0][0];
        }
        curve(problem, &run, None).ok()?.crossings(&squares)[0]
    }

    /// The same with another step size, if that is better than `best`.
    fn better(
        &self,
        problem: &TypedProblem<'_>,
        search: &Search,
        step_size: f64,
        best: &Best,
    ) -> Option<Best> {
        let choice = best.choice;
        if self.method.own().is_some() {
            let crossing = self.crossing(problem, search, Best { step_size, ..*best })?;
            return Some(Best { step_size, choice, crossing }).filter(|b| b.improves(Some(best)));
        }
        let steps = (step_size, choice);
        let rounds = Rounds::new(problem, self.method, steps, self.local_steps);
        let means = rounds.means(self.local_steps);
        let square = self.target * self.target;
        if !NoiselessError::new(&means, &problem.error).allows(best.crossing.rounds, square) {
            return None;
        }
        let round = rounds.moments(means, self.local_steps);
        if !StationaryBound::new(&round).allows(self.clients, square) {
            return None;
        }
        let mut curve = ErrorCurve::new(&round, self.clients, &problem.error);
        let found = Best { step_size, choice, crossing: curve.crossings(&[square])[0]? };
        found.improves(Some(best)).then_some(found)
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
