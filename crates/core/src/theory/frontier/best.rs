//! The best settings that were found so far, and whether others may be better. Settings are an algorithm, a number of
//! clients and of local steps, a step size, and a choice of the algorithm's further settings.

use super::bounds::MARGIN;
use super::curve::{Crossing, ErrorCurve};
use crate::round_program::{RoundSettings, Rounds};

/// Settings that are the best so far to bring the error below a target, or may become so.
#[derive(Clone, Copy)]
pub struct Best {
    /// The settings.
    pub run: RoundSettings,
    /// Where the error comes below the target with them.
    pub crossing: Crossing,
}

/// The most rounds whose errors are computed one by one, without the map Q, to exclude settings that are no better.
const MOST_FOLLOWED: u64 = 16;

impl Best {
    /// Whether other settings, whose errors E‖θ_t − θ*‖² after t = 0, 1, … rounds are `errors`, may be better than
    /// these to stay at most at `square` = ε²: may need fewer rounds, or as many with a smaller error after them.
    /// `errors` must reach the rounds that these settings need.
    pub fn may_be_improved(&self, errors: &[f64], square: f64) -> bool {
        let rounds = self.crossing.rounds as usize;
        if !may_be_at_most(errors[rounds], square) {
            return false;
        }
        let may_be_earlier = rounds == 0 || may_be_at_most(errors[rounds - 1], square);
        may_be_earlier || may_be_at_most(errors[rounds], self.crossing.square)
    }

    /// Whether these settings need fewer rounds than the others `on`, or as many with a smaller error after them; true
    /// if there are no others.
    pub fn improves(&self, on: Option<&Self>) -> bool {
        on.is_none_or(|other| self.rank() < other.rank())
    }

    /// The numbers by which settings are compared: the rounds that they need, and then the error after these.
    fn rank(&self) -> (u64, f64) {
        (self.crossing.rounds, self.crossing.square)
    }

    /// Keeps in `best` the better of two settings, each of which may be missing.
    pub fn keep(best: &mut Option<Self>, other: Option<Self>) {
        if other.is_some_and(|other| other.improves(best.as_ref())) {
            *best = other;
        }
    }
}

/// Whether an error may be at most ε² = `most`, given the rounding errors of both.
fn may_be_at_most(error: f64, most: f64) -> bool {
    error <= most * (1.0 + MARGIN)
}

/// The number of rounds whose errors decide whether settings may be better than one of these best ones, which are for
/// one target each. `None` if it is above [`MOST_FOLLOWED`], or if a target has no best settings yet.
pub fn rounds_to_follow(best: impl Iterator<Item = Option<Best>>) -> Option<usize> {
    let rounds = best.map(|best| best.map_or(u64::MAX, |best| best.crossing.rounds));
    rounds.max().filter(|most| *most <= MOST_FOLLOWED).map(|most| most as usize)
}

/// Where an error comes below each of these squares ε² and stays; `None` where it does not. An error that may
/// oscillate, as `rounds` say, is followed until THEORY (6.2), (6.3) prove that it stays.
pub fn held_crossings(
    curve: &mut ErrorCurve,
    rounds: &dyn Rounds,
    squares: &[f64],
) -> Vec<Option<Crossing>> {
    if rounds.may_oscillate() {
        squares.iter().map(|square| curve.proven(*square)).collect()
    } else {
        curve.crossings(squares)
    }
}
