//! Step sizes between those of the grid: golden-section steps in log γ, THEORY (6.7), around the best step
//! size for each number of clients and each target: the next step size has
//! log γ_next = log γ + ½ (3 − √5) (log γ_end − log γ), where γ is the best so far and γ_end the more distant end of
//! the range in which a better one may lie.
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

/// The factor ½ (3 − √5) of THEORY (6.7): where between the best step size and the more distant end the next one lies.
const GOLDEN_SECTION: f64 = 0.381_966_011_250_105_1;

/// A golden-section search for the step size that needs the fewest rounds to stay at most at a target: the best
/// settings so far, and the logarithms of the step sizes between which a better one may lie.
pub struct Refined {
    /// The best settings so far.
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
    /// Begins with the best settings on a grid over `range` for a target with this `square` = ε²: a better step size
    /// may lie between the neighbours of theirs.
    pub fn new(range: StepSizes, square: f64, best: Best) -> Self {
        let least = libm::log(range.from);
        let most = libm::log(range.to);
        let center = libm::log(best.run.step_size);
        let spacing = (most - least) / range.points.saturating_sub(1).max(1) as f64;
        let low = (center - spacing).max(least);
        let high = (center + spacing).min(most);
        Self { best, square, low, center, high }
    }

    /// Whether the next step size to try is larger than the best.
    fn is_next_larger(&self) -> bool {
        self.high - self.center > self.center - self.low
    }

    /// log γ of the next step size to try, THEORY (6.7).
    fn next_log_step(&self) -> f64 {
        let end = if self.is_next_larger() { self.high } else { self.low };
        self.center + GOLDEN_SECTION * (end - self.center)
    }

    /// The settings with the next step size to try.
    fn next_run(&self) -> RoundSettings {
        RoundSettings { step_size: libm::exp(self.next_log_step()), ..self.best.run }
    }

    /// Narrows the range after the next step size was tried. `found` are the settings with it; `None` if they do not
    /// hold the target. The better of the two step sizes becomes the centre, and the other one an end.
    fn narrow(&mut self, found: Option<Best>) {
        let is_next_larger = self.is_next_larger();
        let next = self.next_log_step();
        let better = found.filter(|found| found.improves(Some(&self.best)));
        // The end on the side of the next step size, or the other end if that step size becomes the centre.
        let end = if is_next_larger == better.is_some() { &mut self.low } else { &mut self.high };
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

/// Refines the step sizes of all these settings, which are of one algorithm, have one number of local steps and are in
/// the order of their numbers of clients: [`Search::refinements`](super::Search::refinements) step sizes are tried for
/// each, and the best are in [`Refined::best`] then.
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
            group.iter().zip(tried).for_each(|(i, found)| all[*i].narrow(found));
        }
    }
}

/// The settings that searches must have in common to try a step size together: the choice of further settings, and
/// the bits of the step size.
fn choice_and_step(run: &RoundSettings) -> (usize, u64) {
    (run.choice, run.step_size.to_bits())
}

/// Tries the next step size of a group of searches, for which it is the same, and whose second moments are `squares`.
/// The `group` has the numbers of the searches in `all`, and in `runs`, which are their settings with the next step
/// size. Returns these settings for each search of the group; `None` if they do not hold its target, or cannot be
/// better than the best so far.
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
            if noiseless.may_be_met_after(&squares.mean, best.crossing.rounds, *square) {
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

/// The searches among `open`, which are places in `all` with one number of clients, that the settings with these second
/// moments may improve: the bound THEORY (6.5) of the stationary error and the errors of the first rounds allow that
/// they are better than the best so far.
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
