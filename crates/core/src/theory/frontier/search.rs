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
use super::{FrontierAlgorithm, MethodRun, RangeEnd, Reached, Search, StepSizes, Worked};
use crate::theory::program::{KnownSteps, Squares};
use rayon::prelude::*;

/// Settings, and where the error comes below a target with them.
#[derive(Clone, Copy)]
struct Best {
    run: MethodRun,
    crossing: Crossing,
}

/// The best settings so far of a number of clients and of local steps for a target.
#[derive(Clone, Copy)]
struct Bests {
    clients: u64,
    target: f64,
    /// To stay below the target.
    held: Option<Best>,
    /// To come below it.
    passing: Option<Best>,
    /// Whether the range may end before those of another choice that stay below it in fewer rounds.
    clipped: bool,
}

impl Best {
    /// Whether it has fewer rounds, or as many and a smaller error after them.
    fn improves(&self, on: Option<&Self>) -> bool {
        let key = |best: &Self| (best.crossing.rounds, best.crossing.square);
        on.is_none_or(|other| key(self) < key(other))
    }

    /// Puts another one in the place of one on which it improves.
    fn keep(best: &mut Option<Self>, other: Option<Self>) {
        if other.is_some_and(|other| other.improves(best.as_ref())) {
            *best = other;
        }
    }
}

/// Improves the best settings of a number of local steps, by number of clients and target, with one
/// step size and choice of further settings.
fn improve(
    problem: &TypedProblem<'_>,
    (run, known): (MethodRun, &KnownSteps),
    best: &mut [Vec<Bests>],
) {
    let improve = |squares: &mut Squares<'_>| {
        // Rounds without noise are the same for all numbers of clients.
        let mut noiseless = NoiselessError::new(squares);
        for (n, best) in best.iter_mut().enumerate() {
            let clients = best[0].clients;
            let with = |crossing| Best { run: MethodRun { clients, ..run }, crossing };
            // The targets that may be held in no more rounds, and those that may be passed in no more and
            // in fewer than it takes to hold them.
            let held = (0..best.len()).filter(|&k| {
                let best = &best[k];
                best.held
                    .is_none_or(|b| noiseless.allows(squares, b.crossing.rounds, best.square()))
            });
            let mut held: Vec<usize> = held.collect();
            let passing = (0..best.len()).filter(|&k| {
                let rounds = |best: Option<Best>, most| best.map_or(most, |b| b.crossing.rounds);
                let fewer = rounds(best[k].held, MOST_PASSING + 1).checked_sub(1);
                let most = fewer.map(|fewer| fewer.min(rounds(best[k].passing, MOST_PASSING)));
                most.is_some_and(|most| noiseless.may_pass(squares, most, best[k].square()))
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
                held.retain(|&k| least <= best[k].square() * (1.0 + MARGIN));
            }
            if held.is_empty() && passing.is_empty() {
                continue;
            }
            let mut curve = ErrorCurve::new(squares);
            for k in passing {
                let passage = curve.first_passage(best[k].square());
                Best::keep(&mut best[k].passing, passage.map(with));
            }
            let squares: Vec<f64> = held.iter().map(|&k| best[k].square()).collect();
            let crossings = held_crossings(&mut curve, run.method, &squares);
            for (k, crossing) in held.into_iter().zip(crossings) {
                Best::keep(&mut best[k].held, crossing.map(with));
            }
        }
    };
    // Without exact moments there is nothing to improve.
    let _ = problem.squares(&run, known, improve);
}

/// Where an error comes below these squares and stays. That of an algorithm that is defined outside
/// of this crate may oscillate, and is followed until it provably stays.
fn held_crossings(
    curve: &mut ErrorCurve,
    method: FrontierAlgorithm,
    squares: &[f64],
) -> Vec<Option<Crossing>> {
    match method {
        FrontierAlgorithm::Own(_) => squares.iter().map(|square| curve.proven(*square)).collect(),
        _ => curve.crossings(squares),
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

/// The best step sizes of all combinations, in the order of the methods.
pub fn run(problem: &TypedProblem<'_>, worked: Worked<'_>) -> Vec<Reached> {
    let methods = &problem.search.methods;
    let costs: Vec<f64> = methods.iter().map(|m| cost(problem, *m)).collect();
    let all: f64 = costs.iter().sum();
    let of_method = |(&method, cost): (&FrontierAlgorithm, &f64)| {
        of_method(problem, method, &|share| worked(share * cost / all))
    };
    methods.par_iter().zip(&costs).flat_map_iter(of_method).collect()
}

/// The share of the time of a search that the step sizes of the grid take, where they are refined.
const ON_GRID: f64 = 0.3;

/// About what the search of a method costs, in a unit that all methods share: for each number of
/// local steps the size of its maps, whose products take more than that where they are large, and
/// less where they are small.
fn cost(problem: &TypedProblem<'_>, method: FrontierAlgorithm) -> f64 {
    let size = moments(method, problem.facts.dim(), problem.types.len()) as f64;
    let runs = method.weights().len();
    let local_steps = problem.search.local_steps_of(method).len();
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
    method: FrontierAlgorithm,
    worked: Worked<'_>,
) -> Vec<Reached> {
    let search = problem.search;
    let local_steps = search.local_steps_of(method);
    let none = |&clients: &u64| {
        let (held, passing, clipped) = (None, None, false);
        let of = |&target: &f64| Bests { clients, target, held, passing, clipped };
        search.targets.iter().map(of).collect()
    };
    let none: Vec<Vec<Bests>> = search.clients.iter().map(none).collect();
    let mut best = vec![none; local_steps.len()];
    let on_grid = if search.refinements == 0 { 1.0 } else { ON_GRID };
    for i in (0..search.step_sizes.points).rev() {
        let step_size = search.step_sizes.nth(i);
        let known = problem.known.afresh();
        best.par_iter_mut().zip(local_steps).for_each(|(best, &local_steps)| {
            for choice in 0..method.choices() {
                let clients = search.clients[0];
                let run = MethodRun { method, clients, local_steps, step_size, choice };
                improve(problem, (run, &known), best);
            }
        });
        worked(on_grid / search.step_sizes.points as f64);
    }
    let best: Vec<Vec<Bests>> = best.into_iter().flatten().collect();
    let to_refine = |of: &Bests| to_refine(search, of, &best);
    let count = best.iter().flatten().filter_map(to_refine).count();
    if count == 0 {
        worked(1.0 - on_grid);
    }
    let share = (1.0 - on_grid) / count as f64;
    let refined = |mut over_targets: Vec<Bests>| {
        for best in &mut over_targets {
            let Some(held) = to_refine(best) else { continue };
            let refined = refine(problem, best.square(), held);
            best.held = Some(refined);
            best.clipped = is_clipped(problem, best.square(), &refined);
            worked(share);
        }
        keep_what_smaller_targets_need(problem, &mut over_targets);
        over_targets
    };
    let mut all: Vec<Bests> = best.clone().into_par_iter().flat_map_iter(refined).collect();
    // In the order of N and ε.
    let place = |best: &Bests| {
        let n = search.clients.iter().position(|n| *n == best.clients);
        (n, search.targets.iter().position(|target| *target == best.target))
    };
    all.sort_by_key(place);
    all.iter().flat_map(|best| best.reached(search.step_sizes)).collect()
}

/// The most by which a refinement may lower a cost.
const MOST_REFINED: f64 = 1.5;

/// The best so far, if it is refined: unless it costs so much at each of the prices that no refinement
/// makes it the least of all for its target.
fn to_refine(search: &Search, best: &Bests, all: &[Vec<Bests>]) -> Option<Best> {
    let held = best.held?;
    if search.prices.is_empty() {
        return Some(held);
    }
    let cost = |Best { run, crossing }: Best, price: f64| {
        let round = search.round_price(&run);
        crossing.rounds as f64 * (price * round.communications + round.gradients)
    };
    let is_other = |other: &&Bests| (other.clients, other.target) == (best.clients, best.target);
    let others: Vec<Best> =
        all.iter().flatten().filter(is_other).filter_map(|other| other.held).collect();
    let may_be_least = |&price: &f64| {
        let costs = others.iter().map(|other| cost(*other, price));
        cost(held, price) <= MOST_REFINED * costs.fold(f64::INFINITY, f64::min)
    };
    search.prices.iter().any(may_be_least).then_some(held)
}

/// Gives each target the step sizes with which a smaller one needs fewer rounds: what stays below the
/// smaller stays below it.
fn keep_what_smaller_targets_need(problem: &TypedProblem<'_>, over_targets: &mut [Bests]) {
    over_targets.sort_by(|a, b| a.target.total_cmp(&b.target));
    for k in 1..over_targets.len() {
        let (smaller, best) = (over_targets[k - 1], &mut over_targets[k]);
        let rounds = |best: Option<Best>| best.map_or(u64::MAX, |best| best.crossing.rounds);
        if rounds(smaller.held) < rounds(best.held) {
            let square = best.square();
            let with = |Best { run, .. }: Best| {
                let mut curve = problem.curve(&run).ok()?;
                let crossing = held_crossings(&mut curve, run.method, &[square])[0]?;
                Some(Best { run, crossing })
            };
            Best::keep(&mut best.held, smaller.held.and_then(with));
        }
        if rounds(smaller.passing) < rounds(best.passing) {
            best.passing = smaller.passing;
        }
    }
}

impl Bests {
    /// ε².
    fn square(&self) -> f64 {
        self.target * self.target
    }

    /// The fewest rounds to stay below the target, and those to come below it if they are fewer.
    fn reached(&self, range: StepSizes) -> impl Iterator<Item = Reached> {
        let Self { target, clipped, .. } = *self;
        let of = |Best { run, crossing }: Best, held: bool| {
            let edge = match run.step_size {
                x if x >= range.to => Some(RangeEnd::To),
                x if x <= range.from => Some(RangeEnd::From),
                _ => (held && clipped).then_some(RangeEnd::OfAnotherChoice),
            };
            Reached { run, target, rounds: crossing.rounds, held, edge }
        };
        let held = self.held.map(|held| of(held, true));
        let passing = self.passing.map(|passing| of(passing, false));
        let is_fewer = |p: &Reached| held.is_none_or(|held| p.rounds < held.rounds);
        held.into_iter().chain(passing.filter(is_fewer))
    }
}

/// Whether with another choice of further settings a step size beyond the range might need fewer
/// rounds than the best to stay at most at a square: below it, if the smallest is too large to stay
/// there, or without noise not too small to be there by then; above it, if the largest may stay.
fn is_clipped(problem: &TypedProblem<'_>, most: f64, best: &Best) -> bool {
    let stays = |squares: &Squares<'_>| {
        squares.least_stationary().is_some_and(|least| least <= most * (1.0 + MARGIN))
    };
    let with = |choice, step_size, might: &dyn Fn(&Squares<'_>) -> bool| {
        let run = MethodRun { step_size, choice, ..best.run };
        problem.squares(&run, &problem.known.afresh(), |s| might(s)).unwrap_or(false)
    };
    let below = |squares: &Squares<'_>| {
        let fewer = best.crossing.rounds.saturating_sub(1);
        !stays(squares) || NoiselessError::new(squares).allows(squares, fewer, most)
    };
    let mut others = (0..best.run.method.choices()).filter(|choice| *choice != best.run.choice);
    let StepSizes { from, to, .. } = problem.search.step_sizes;
    others.any(|choice| with(choice, from, &below) || with(choice, to, &stays))
}

/// Another step size, if it is better than `best` to stay at most at a square.
fn better(problem: &TypedProblem<'_>, square: f64, step_size: f64, best: &Best) -> Option<Best> {
    let run = MethodRun { step_size, ..best.run };
    let found = problem.squares(&run, &problem.known.afresh(), |squares| {
        let may_hold = NoiselessError::new(squares).allows(squares, best.crossing.rounds, square)
            && squares.least_stationary()? <= square * (1.0 + MARGIN);
        let mut curve = may_hold.then(|| ErrorCurve::new(squares))?;
        let crossing = held_crossings(&mut curve, run.method, &[square])[0]?;
        Some(Best { run, crossing })
    });
    found.ok()?.filter(|found| found.improves(Some(best)))
}

/// The best step size after golden-section steps in log γ between the neighbours of the best of
/// the range.
fn refine(problem: &TypedProblem<'_>, square: f64, mut best: Best) -> Best {
    /// The part of the larger side of the best at which the next step size lies.
    const PART: f64 = 0.381_966_011_250_105_1;
    let StepSizes { from, to, points } = problem.search.step_sizes;
    let (low, high, mut center) = (libm::log(from), libm::log(to), libm::log(best.run.step_size));
    let spacing = (high - low) / points.saturating_sub(1).max(1) as f64;
    let (mut a, mut b) = ((center - spacing).max(low), (center + spacing).min(high));
    for _ in 0..problem.search.refinements {
        let is_right = b - center > center - a;
        let next = center + PART * (if is_right { b } else { a } - center);
        match better(problem, square, libm::exp(next), &best) {
            Some(found) => {
                *(if is_right { &mut a } else { &mut b }) = center;
                (best, center) = (found, next);
            }
            None => *(if is_right { &mut b } else { &mut a }) = next,
        }
    }
    best
}
