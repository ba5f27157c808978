//! The best settings that are known, and whether others may be better.

use super::bounds::MARGIN;
use super::curve::{Crossing, ErrorCurve};
use crate::round_program::{RoundSettings, Rounds};

/// Settings, and where the error comes below a target with them.
#[derive(Clone, Copy)]
pub struct Best {
    pub run: RoundSettings,
    pub crossing: Crossing,
}

/// The most rounds that are computed without a map of them, to find that settings are no better than others.
const MOST_FOLLOWED: u64 = 16;

impl Best {
    /// Whether settings with these errors after 0, 1, … rounds may be better to stay at most at a square.
    pub fn may_be_improved(&self, errors: &[f64], square: f64) -> bool {
        let rounds = self.crossing.rounds as usize;
        let may_be = |round: usize, most: f64| errors[round] <= most * (1.0 + MARGIN);
        let is_as_early = may_be(rounds, square);
        let is_earlier = is_as_early && (rounds == 0 || may_be(rounds - 1, square));
        is_earlier || (is_as_early && may_be(rounds, self.crossing.square))
    }

    /// Whether it has fewer rounds, or as many and a smaller error after them.
    pub fn improves(&self, on: Option<&Self>) -> bool {
        let key = |best: &Self| (best.crossing.rounds, best.crossing.square);
        on.is_none_or(|other| key(self) < key(other))
    }

    /// Puts another one in the place of one on which it improves.
    pub fn keep(best: &mut Option<Self>, other: Option<Self>) {
        if other.is_some_and(|other| other.improves(best.as_ref())) {
            *best = other;
        }
    }
}

/// The rounds whose errors tell whether settings may be better than all of some; `None` if these are too many
/// or if some is not known.
pub fn rounds_to_follow(best: impl Iterator<Item = Option<Best>>) -> Option<usize> {
    let rounds = best.map(|best| best.map_or(u64::MAX, |best| best.crossing.rounds));
    rounds.max().filter(|most| *most <= MOST_FOLLOWED).map(|most| most as usize)
}

/// Where an error comes below these squares and stays. An error that may oscillate is followed until it provably
/// stays.
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
