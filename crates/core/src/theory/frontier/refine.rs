//! Step sizes between those of the grid: golden-section steps in log γ, THEORY (6.7), around the best step
//! size for each number of clients and each target.
//!
//! For one number of local steps all of these searches go on together, since many of them try the same step size:
//! its local steps are computed once, and its errors once for each number of clients.

use super::StepSizes;
use super::best::{Best, held_crossings, rounds_to_follow};
use super::bounds::{MARGIN, NoiselessError};
use super::curve::ErrorCurve;
use super::rounds::TypedProblem;
use crate::round_program::RoundSettings;
use crate::theory::exact::Squares;

/// (3 − √5)/2: the next step size lies at this part of the larger side of the best one, THEORY (6.7).
const PART: f64 = 0.381_966_011_250_105_1;

/// The best settings so far to stay at most at ε², and the logarithms of step sizes between which a better
/// one may lie.
pub struct Refined {
    pub best: Best,
    /// The square ε² of the target.
    square: f64,
    /// The smaller end, log γ.
    low: f64,
    /// log γ of the best.
    center: f64,
    /// The larger end, log γ.
    high: f64,
}

impl Refined {
    /// Begins with the best step size on a grid; a better one may lie between its neighbours.
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

    /// log γ of the next step size, THEORY (6.7).
    fn next(&self) -> f64 {
        let side = if self.is_right() { self.high } else { self.low };
        self.center + PART * (side - self.center)
    }

    /// The settings with the next step size.
    fn next_run(&self) -> RoundSettings {
        RoundSettings { step_size: libm::exp(self.next()), ..self.best.run }
    }

    /// Takes a step, where `found` are the settings with the next step size, if they hold the target. The
    /// better of the two step sizes becomes the centre, and the other one an end.
    fn step(&mut self, found: Option<Best>) {
        let is_right = self.is_right();
        let next = self.next();
        let better = found.filter(|found| found.improves(Some(&self.best)));
        // The end on the side of the next step size, or the other end if that step size becomes the centre.
        let end = if is_right == better.is_some() { &mut self.low } else { &mut self.high };
        match better {
            Some(found) => {
                *end = self.center;
                self.best = found;
                self.center = next;
            }
            None => *end = next,
        }
    }
}

/// Refines the step sizes of all these settings, which have one number of local steps and are in the order of
/// their numbers of clients.
pub fn refine(problem: &TypedProblem<'_>, all: &mut [Refined]) {
    for _ in 0..problem.search.refinements {
        let runs: Vec<RoundSettings> = all.iter().map(Refined::next_run).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|i| choice_and_step(&runs[*i]));
        for group in order.chunk_by(|i, j| choice_and_step(&runs[*i]) == choice_and_step(&runs[*j]))
        {
            let known = problem.known.afresh();
            let tried = problem.squares(&runs[group[0]], &known, |squares| {
                try_step_size(problem, squares, &runs, group, all)
            });
            // Without exact moments nothing is found.
            let tried = tried.unwrap_or_else(|_| vec![None; group.len()]);
            group.iter().zip(tried).for_each(|(i, found)| all[*i].step(found));
        }
    }
}

/// The settings that searches must have in common to try a step size together: the choice of further settings, and
/// the bits of the step size.
fn choice_and_step(run: &RoundSettings) -> (usize, u64) {
    (run.choice, run.step_size.to_bits())
}

/// Tries the next step size of a group of searches, which are numbers in `runs` and `all`, and for which it is the
/// same. Returns for each search the settings, if they hold its target.
fn try_step_size(
    problem: &TypedProblem<'_>,
    squares: &mut Squares<'_>,
    runs: &[RoundSettings],
    group: &[usize],
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
        let mut allowed = Vec::new();
        for &i in of_clients {
            let Refined { best, square, .. } = &all[i];
            if noiseless.allows(&squares.mean, best.crossing.rounds, *square) {
                allowed.push(i);
            }
        }
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

/// Keeps the searches in which the bound THEORY (6.5) of the stationary error and the errors of the first
/// rounds allow better settings than the best so far.
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
