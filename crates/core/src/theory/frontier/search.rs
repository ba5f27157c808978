//! The search for the best step sizes.
//!
//! Methods are searched in parallel, and of each the step sizes from the largest to the smallest:
//! their local steps' powers are shared by all numbers of local steps and of clients, which are in
//! parallel. A round's map is made only if the bounds allow a target to be reached in no more
//! rounds than with the best step size so far, so that step sizes wait for each other. No number
//! depends on the number of threads, because each is computed by one of them.

use super::bounds::{NoiselessError, StationaryBound};
use super::curve::{Crossing, ErrorCurve};
use super::local::{ClientType, LocalPowers, StepCount, run_pairs};
use super::means::{MethodRuns, RoundMeans};
use super::products::Products;
use super::round::RoundMoments;
use super::{
    FrontierAlgorithm, MethodRun, RangeEnd, Reached, Search, StartError, StepSizes, Worked,
};
use rayon::prelude::*;

/// A problem with its clients in types.
pub struct TypedProblem {
    /// The types.
    pub types: Vec<ClientType>,
    /// The error of the start: θ_0 − θ* if it is a point.
    pub start: StartError,
}

/// The rounds of one method with one step size, for any number of local steps.
struct Rounds<'a> {
    problem: &'a TypedProblem,
    method: FrontierAlgorithm,
    steps: Vec<f64>,
    powers: LocalPowers,
}

/// The best step size so far.
#[derive(Clone, Copy)]
struct Best {
    step_size: f64,
    crossing: Crossing,
}

impl Best {
    /// Whether it has fewer rounds, or as many and a smaller error after them.
    fn improves(&self, on: Option<&Self>) -> bool {
        let key = |best: &Self| (best.crossing.rounds, best.crossing.square);
        on.is_none_or(|other| key(self) < key(other))
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
        problem: &'a TypedProblem,
        method: FrontierAlgorithm,
        step_size: f64,
        most: u64,
    ) -> Self {
        let steps: Vec<f64> =
            (1..=method.weights().len()).map(|run| run as f64 * step_size).collect();
        let most = method.steps_and_batch(most).0;
        let powers = LocalPowers::new(&problem.types, &steps, method.corrected(), most);
        Self { problem, method, steps, powers }
    }

    fn means(&self, local_steps: u64) -> RoundMeans {
        let count = self.method.steps_and_batch(local_steps).0;
        let lengths: Vec<f64> = self.steps.iter().map(|step| step * count.mean() as f64).collect();
        let (weights, corrected) = (self.method.weights(), self.method.corrected());
        let runs = MethodRuns { weights, lengths: &lengths, corrected };
        RoundMeans::new(&self.problem.types, self.powers.ends(count), &runs)
    }

    fn moments(&self, means: RoundMeans, local_steps: u64) -> RoundMoments {
        let (count, batch) = self.method.steps_and_batch(local_steps);
        let noise = self.powers.noise(count, &means.ends);
        RoundMoments::new(means, &noise, batch)
    }

    /// Improves the best step sizes of a number of local steps, by number of clients and target.
    fn improve(&self, search: &Search, local_steps: u64, best: &mut [Vec<Option<Best>>]) {
        let means = self.means(local_steps);
        let mut noiseless = NoiselessError::new(&means, &self.problem.start);
        let square = |k: usize| search.targets[k] * search.targets[k];
        let mut is_open = |best: &Vec<Option<Best>>| -> Vec<usize> {
            let of_target = |k: &usize| {
                best[*k].is_none_or(|b| noiseless.allows(b.crossing.rounds, square(*k)))
            };
            (0..search.targets.len()).filter(of_target).collect()
        };
        let open: Vec<Vec<usize>> = best.iter().map(&mut is_open).collect();
        if open.iter().all(Vec::is_empty) {
            return;
        }
        let round = self.moments(means, local_steps);
        let stationary = StationaryBound::new(&round);
        let of_clients =
            |((&clients, best), mut open): ((&u64, &mut Vec<Option<Best>>), Vec<usize>)| {
                open.retain(|&k| stationary.allows(clients, square(k)));
                if open.is_empty() {
                    return;
                }
                let squares: Vec<f64> = open.iter().map(|&k| square(k)).collect();
                let mut curve = ErrorCurve::new(&round, clients, &self.problem.start);
                for (&k, crossing) in open.iter().zip(curve.crossings(&squares)) {
                    let Some(crossing) = crossing else { continue };
                    let found = Best { step_size: self.steps[0], crossing };
                    if found.improves(best[k].as_ref()) {
                        best[k] = Some(found);
                    }
                }
            };
        search.clients.par_iter().zip(best).zip(open).for_each(of_clients);
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
pub fn curve(problem: &TypedProblem, run: &MethodRun) -> ErrorCurve {
    let rounds = Rounds::new(problem, run.method, run.step_size, run.local_steps);
    let round = rounds.moments(rounds.means(run.local_steps), run.local_steps);
    ErrorCurve::new(&round, run.clients, &problem.start)
}

/// The best step sizes of all combinations, in the order of the methods.
pub fn run(problem: &TypedProblem, search: &Search, worked: Worked<'_>) -> Vec<Reached> {
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
fn cost(problem: &TypedProblem, search: &Search, method: FrontierAlgorithm) -> f64 {
    let types = &problem.types;
    let size = moments(method, types[0].field.len(), types.len()) as f64;
    let pairs = run_pairs(method.weights().len()).count() as f64;
    let local_steps = if method == FrontierAlgorithm::Sgd { 1 } else { search.local_steps.len() };
    size * size * pairs * local_steps as f64
}

fn of_method(
    problem: &TypedProblem,
    search: &Search,
    method: FrontierAlgorithm,
    worked: Worked<'_>,
) -> Vec<Reached> {
    let one = [1];
    let local_steps: &[u64] =
        if method == FrontierAlgorithm::Sgd { &one } else { &search.local_steps };
    let none = vec![vec![None; search.targets.len()]; search.clients.len()];
    let mut best = vec![none; local_steps.len()];
    let most = local_steps.iter().copied().max().unwrap_or(1);
    let on_grid = if search.refinements == 0 { 1.0 } else { ON_GRID };
    for i in (0..search.step_sizes.points).rev() {
        let rounds = Rounds::new(problem, method, search.step_sizes.nth(i), most);
        let pairs = best.par_iter_mut().zip(local_steps);
        pairs.for_each(|(best, &h)| rounds.improve(search, h, best));
        worked(on_grid / search.step_sizes.points as f64);
    }
    let mut found = Vec::new();
    for (n, &clients) in search.clients.iter().enumerate() {
        for (k, &target) in search.targets.iter().enumerate() {
            for (best, &local_steps) in best.iter().zip(local_steps) {
                let goal = Goal { method, clients, target, local_steps };
                found.extend(best[n][k].map(|best| (goal, best)));
            }
        }
    }
    if found.is_empty() {
        worked(1.0 - on_grid);
    }
    let share = (1.0 - on_grid) / found.len() as f64;
    let refined = |(goal, best): (Goal, Best)| {
        let best = refine(problem, search, &goal, best);
        worked(share);
        goal.reached(best, search.step_sizes)
    };
    found.into_par_iter().map(refined).collect()
}

/// What a step size is sought for.
struct Goal {
    method: FrontierAlgorithm,
    clients: u64,
    target: f64,
    local_steps: u64,
}

impl Goal {
    fn reached(&self, best: Best, range: StepSizes) -> Reached {
        let Self { method, clients, target, local_steps } = *self;
        let Best { step_size, crossing } = best;
        let edge = match step_size {
            x if x >= range.to => Some(RangeEnd::To),
            x if x <= range.from => Some(RangeEnd::From),
            _ => None,
        };
        let rounds = crossing.rounds;
        Reached { method, clients, target, local_steps, step_size, rounds, edge }
    }

    /// The same with another step size, if that is better than `best`.
    fn better(&self, problem: &TypedProblem, step_size: f64, best: &Best) -> Option<Best> {
        let rounds = Rounds::new(problem, self.method, step_size, self.local_steps);
        let means = rounds.means(self.local_steps);
        let square = self.target * self.target;
        if !NoiselessError::new(&means, &problem.start).allows(best.crossing.rounds, square) {
            return None;
        }
        let round = rounds.moments(means, self.local_steps);
        if !StationaryBound::new(&round).allows(self.clients, square) {
            return None;
        }
        let mut curve = ErrorCurve::new(&round, self.clients, &problem.start);
        let found = Best { step_size, crossing: curve.crossings(&[square])[0]? };
        found.improves(Some(best)).then_some(found)
    }
}

/// The best step size after golden-section steps in log γ between the neighbours of the best of
/// the range.
fn refine(problem: &TypedProblem, search: &Search, goal: &Goal, mut best: Best) -> Best {
    /// The part of the larger side of the best at which the next step size lies.
    const PART: f64 = 0.381_966_011_250_105_1;
    let StepSizes { from, to, points } = search.step_sizes;
    let (low, high, mut center) = (libm::log(from), libm::log(to), libm::log(best.step_size));
    let spacing = (high - low) / points.saturating_sub(1).max(1) as f64;
    let (mut a, mut b) = ((center - spacing).max(low), (center + spacing).min(high));
    for _ in 0..search.refinements {
        let is_right = b - center > center - a;
        let next = center + PART * (if is_right { b } else { a } - center);
        match goal.better(problem, libm::exp(next), &best) {
            Some(found) => {
                *(if is_right { &mut a } else { &mut b }) = center;
                (best, center) = (found, next);
            }
            None => *(if is_right { &mut b } else { &mut a }) = next,
        }
    }
    best
}
