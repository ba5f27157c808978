//! The proof that an error stays below its target.

use super::curve::{
    Crossing, ErrorCurve, ErrorTarget, MOST_LEVELS, MOST_RETURNS, PartStates, ROUNDING,
};
use faer::Mat;

/// The most cycles that are followed one by one to prove that an error stays below a target.
const MOST_FOLLOWED: u64 = 1 << 20;

/// How it ends to follow an error one by one.
enum Followed {
    /// It stays below.
    Below,
    /// It is above again after so many cycles, in this state.
    Above(u64, PartStates),
    /// It is not known.
    Unknown,
}

impl ErrorCurve {
    /// Where the error comes below a square and is proven to stay, by following it one by one
    /// until no state can lead above: errors that oscillate may rise again between the rounds that
    /// [`crossings`](Self::crossings) looks at.
    pub fn proven(&mut self, square: f64) -> Option<Crossing> {
        let least = -ROUNDING * self.early().0[0];
        let target = ErrorTarget { at: 0, least, most: square };
        let mut found = self.crossings(&[square]);
        for _ in 0..MOST_RETURNS {
            match self.follow(&target, found[0]?.rounds) {
                Followed::Below => return found[0],
                Followed::Above(cycles, state) => {
                    self.descend((cycles, &state), &[target], 0, &mut found);
                }
                Followed::Unknown => return None,
            }
        }
        None
    }

    /// Follows an error that is below its target from a round on.
    fn follow(&mut self, target: &ErrorTarget, rounds: u64) -> Followed {
        let (lead, length) = self.lengths();
        let mut cycles = rounds.saturating_sub(lead + 1).div_ceil(length);
        let mut state = self.start.clone();
        for level in 0..64 - cycles.leading_zeros() as usize {
            if cycles >> level & 1 == 1 {
                state = self.advance(level, &state);
            }
        }
        let Some(stationary) = self.stationary() else { return Followed::Unknown };
        let Some(weights) = self.weights(&stationary) else { return Followed::Unknown };
        let limit = self.errors_in(&stationary, 0).fold(0.0, f64::max);
        for _ in 0..MOST_FOLLOWED {
            let beyond = |k: usize| {
                let (scales, factor) = &weights[k];
                let apart = scales
                    .iter()
                    .enumerate()
                    .map(|(i, scale)| (state[k][(i, 0)] - stationary[k][(i, 0)]).abs() / scale);
                factor * apart.fold(0.0, f64::max)
            };
            if limit + (0..weights.len()).map(beyond).sum::<f64>() <= target.most {
                return Followed::Below;
            }
            if self.is_missed(&state, 0, target) {
                return Followed::Above(cycles, state);
            }
            state = self.advance(0, &state);
            cycles += 1;
        }
        Followed::Unknown
    }

    /// Of each part a scale of each number, and a bound of what a state at a distance of 1 from the
    /// stationary one, in these scales, adds to any later error: ‖c Lᵏ‖ ≤ ‖c‖ Π_j max(1, ‖L^(2^j)‖).
    /// `None` if the powers do not become small.
    fn weights(&mut self, stationary: &PartStates) -> Option<Vec<(Vec<f64>, f64)>> {
        let mut out = Vec::new();
        for (k, limit) in stationary.iter().enumerate() {
            let n = limit.nrows();
            let size = |i: usize| limit[(i, 0)].abs().max(self.start[k][(i, 0)].abs());
            let largest = (0..n).map(size).fold(0.0, f64::max);
            let scales: Vec<f64> = (0..n).map(|i| size(i).max(1e-6 * largest)).collect();
            let one = self.parts[k].one;
            let norm = |map: &Mat<f64>| {
                let row = |i: usize| {
                    // The number 1 is not apart from its limit.
                    let entries = (0..n).filter(|j| *j != one);
                    entries.fold(0.0, |sum, j| sum + map[(i, j)].abs() * scales[j]) / scales[i]
                };
                (0..n).filter(|i| *i != one).map(row).fold(0.0, f64::max)
            };
            let of = |errors: &Vec<f64>| {
                errors.iter().zip(&scales).fold(0.0, |sum, (c, scale)| sum + c.abs() * scale)
            };
            let mut factor = self.parts[k].errors.iter().map(of).fold(0.0, f64::max);
            let mut last = norm(&self.parts[k].map);
            let mut level = 0;
            while last >= 1.0 {
                factor *= last;
                level += 1;
                if level > MOST_LEVELS || !factor.is_finite() {
                    return None;
                }
                self.reach(level);
                last = norm(&self.levels[level - 1][k]);
            }
            out.push((scales, factor));
        }
        Some(out)
    }
}
