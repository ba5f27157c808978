//! The best settings that were found so far, and whether others may be better.

use super::bounds::MARGIN;
use super::curve::{Crossing, ErrorCurve};
use crate::round_program::{RoundSettings, Rounds};

/// Settings, and where the error comes below a target with them.
#[derive(Clone, Copy)]
pub struct Best {
    pub run: RoundSettings,
    pub crossing: Crossing,
}

/// The most rounds that are followed one by one, without their map Q, to exclude settings that are no better.
const MOST_FOLLOWED: u64 = 16;

impl Best {
    /// Whether settings with these errors E‖θ_t − θ*‖² after t = 0, 1, … rounds may need fewer rounds than
    /// these to stay at most at `square` = ε², or as many with a smaller error after them.
    pub fn may_be_improved(&self, errors: &[f64], square: f64) -> bool {
        let rounds = self.crossing.rounds as usize;
        if !may_be_at_most(errors[rounds], square) {
            return false;
        }
        let may_be_earlier = rounds == 0 || may_be_at_most(errors[rounds - 1], square);
        may_be_earlier || may_be_at_most(errors[rounds], self.crossing.square)
    }

    /// Whether these settings need fewer rounds than others, or as many with a smaller error after them.
    pub fn improves(&self, on: Option<&Self>) -> bool {
        on.is_none_or(|other| self.rank() < other.rank())
    }

    /// The numbers by which settings are compared: the rounds that they need, and then the error after these.
    fn rank(&self) -> (u64, f64) {
        (self.crossing.rounds, self.crossing.square)
    }

    /// Replaces the best settings by others that improve on them.
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

/// The number of rounds whose errors decide whether settings may be better than one of these; `None` if it is too
/// large, or if there are no best settings yet for one of the targets.
pub fn rounds_to_follow(best: impl Iterator<Item = Option<Best>>) -> Option<usize> {
    let rounds = best.map(|best| best.map_or(u64::MAX, |best| best.crossing.rounds));
    rounds.max().filter(|most| *most <= MOST_FOLLOWED).map(|most| most as usize)
}

/// Where an error comes below each of these squares ε² and stays. An error that may oscillate is followed until
/// THEORY (6.2), (6.3) prove that it stays.
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
