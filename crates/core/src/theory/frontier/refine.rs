//! Step sizes between those of the range: golden-section steps in log γ around the best of each number of
//! clients and target.
//!
//! All of a number of local steps take their steps at once, since many of them try the same step size: its
//! local steps are computed once, and its errors once for each number of clients.

use super::StepSizes;
use super::best::{Best, held_crossings, rounds_to_follow};
use super::bounds::{MARGIN, NoiselessError};
use super::curve::ErrorCurve;
use super::rounds::TypedProblem;
use crate::round_program::RoundSettings;
use crate::theory::exact::Squares;

/// The part of the larger side of the best at which the next step size lies.
const PART: f64 = 0.381_966_011_250_105_1;

/// The best settings to stay at most at a square, and the logarithms of step sizes between which a better one
/// may lie.
pub struct Refined {
    pub best: Best,
    square: f64,
    low: f64,
    center: f64,
    high: f64,
}

impl Refined {
    /// Begins with the best step size of a range; a better one may lie between its neighbours.
    pub fn new(range: StepSizes, square: f64, best: Best) -> Self {
        let least = libm::log(range.from);
        let most = libm::log(range.to);
        let center = libm::log(best.run.step_size);
        let spacing = (most - least) / range.points.saturating_sub(1).max(1) as f64;
        let low = (center - spacing).max(least);
        let high = (center + spacing).min(most);
        Self { best, square, low, center, high }
    }

    /// Whether the next step size is larger than the best.
    fn is_right(&self) -> bool {
        self.high - self.center > self.center - self.low
    }

    /// The logarithm of the next step size.
    fn next(&self) -> f64 {
        let side = if self.is_right() { self.high } else { self.low };
        self.center + PART * (side - self.center)
    }

    /// The settings with the next step size.
    fn next_run(&self) -> RoundSettings {
        RoundSettings { step_size: libm::exp(self.next()), ..self.best.run }
    }

    /// Takes a step, after what was found with the next step size.
    fn step(&mut self, found: Option<Best>) {
        let is_right = self.is_right();
        let next = self.next();
        match found.filter(|found| found.improves(Some(&self.best))) {
            Some(found) => {
                *(if is_right { &mut self.low } else { &mut self.high }) = self.center;
                self.best = found;
                self.center = next;
            }
            None => *(if is_right { &mut self.high } else { &mut self.low }) = next,
        }
    }
}

/// Refines the step sizes of one number of local steps, in the order of the numbers of clients.
pub fn refine(problem: &TypedProblem<'_>, all: &mut [Refined]) {
    for _ in 0..problem.search.refinements {
        let runs: Vec<RoundSettings> = all.iter().map(Refined::next_run).collect();
        let settings = |i: &usize| (runs[*i].choice, runs[*i].step_size.to_bits());
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(settings);
        for group in order.chunk_by(|i, j| settings(i) == settings(j)) {
            let known = problem.known.afresh();
            let tried = problem.squares(&runs[group[0]], &known, |squares| {
                try_step_size(problem, squares, (&runs, group), all)
            });
            // Without exact moments nothing is found.
            let tried = tried.unwrap_or_else(|_| vec![None; group.len()]);
            group.iter().zip(tried).for_each(|(i, found)| all[*i].step(found));
        }
    }
}

/// What is found with the next step size of each of a group, which has one, and the same further settings.
fn try_step_size(
    problem: &TypedProblem<'_>,
    squares: &mut Squares<'_>,
    (runs, group): (&[RoundSettings], &[usize]),
    all: &[Refined],
) -> Vec<Option<Best>> {
    // Rounds without noise are the same for all numbers of clients.
    let mut noiseless = NoiselessError::new(&squares.mean);
    let mut found = Vec::new();
    for of_clients in group.chunk_by(|i, j| runs[*i].clients == runs[*j].clients) {
        let clients = runs[of_clients[0]].clients;
        if clients != runs[group[0]].clients {
            squares.set_counts(problem.counts(clients));
        }
        let is_allowed = |i: &&usize| {
            let Refined { best, square, .. } = &all[**i];
            noiseless.allows(&squares.mean, best.crossing.rounds, *square)
        };
        let allowed: Vec<usize> = of_clients.iter().filter(is_allowed).copied().collect();
        let open = may_hold(squares, allowed, all);
        let mut curve = (!open.is_empty()).then(|| ErrorCurve::new(squares));
        found.extend(of_clients.iter().map(|i| {
            let curve = curve.as_mut().filter(|_| open.contains(i))?;
            let crossing =
                held_crossings(curve, problem.rounds(runs[*i].algorithm), &[all[*i].square])[0]?;
            Some(Best { run: runs[*i], crossing })
        }));
    }
    found
}

/// Keeps the targets for which the stationary error and the errors of the first rounds allow something better.
fn may_hold(squares: &Squares<'_>, mut open: Vec<usize>, all: &[Refined]) -> Vec<usize> {
    if !open.is_empty() {
        let least = squares.least_stationary().unwrap_or(f64::INFINITY);
        open.retain(|i| least <= all[*i].square * (1.0 + MARGIN));
    }
    let followed = rounds_to_follow(open.iter().map(|i| Some(all[*i].best)));
    if let Some(rounds) = followed {
        let errors = squares.errors(rounds);
        open.retain(|i| all[*i].best.may_be_improved(&errors, all[*i].square));
    }
    open
}
