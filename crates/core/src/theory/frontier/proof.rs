//! The proof that an error stays below its target, THEORY (6.2), (6.3).

use super::curve::{Crossing, ErrorCurve, MOST_LEVELS, MOST_RETURNS, PartStates, product};
use faer::{Mat, RowRef};

/// The most cycles that are followed one by one to prove that an error stays below a target.
const MOST_FOLLOWED: u64 = 1 << 20;

/// The binary logarithm of the number of cycles whose errors are computed in one product.
const BLOCK: usize = 6;

/// The binary logarithm of the number of cycles j for which ‖r Lʲ‖ in THEORY (6.3) is computed one by one.
const SURVEYED: usize = 10;

/// A state as close to the stationary one as this, relative to its scale, is there up to rounding: all
/// later errors are the limit, which is below the target.
const SETTLED: f64 = 1e-11;

impl ErrorCurve {
    /// Where the error comes below `square` = ε² and is proven to stay: it is followed round by round until
    /// THEORY (6.2) excludes that it rises again. Errors that oscillate may rise between the rounds that
    /// [`crossings`](Self::crossings) looks at. `None` if there is no such round, or no proof within 2²⁰
    /// cycles.
    pub fn proven(&mut self, square: f64) -> Option<Crossing> {
        let mut found = self.crossings(&[square]);
        for _ in 0..MOST_RETURNS {
            let Some((cycles, state)) = self.rise_after(found[0]?.rounds, square)? else {
                return found[0];
            };
            self.descend((cycles, &state), &[(0, square)], 0, &mut found);
        }
        None
    }

    /// Whether the error, which is at most `most` = ε² after round `rounds`, rises above ε² later: the number
    /// of cycles before the one in which it does, and the state then. `Some(None)` if THEORY (6.2) proves
    /// that it stays below, `None` if neither is known.
    fn rise_after(&mut self, rounds: u64, most: f64) -> Option<Option<(u64, PartStates)>> {
        let (lead, length) = self.lengths();
        let mut cycles = rounds.saturating_sub(lead + 1).div_ceil(length);
        let mut state = self.start.clone();
        for level in 0..64 - cycles.leading_zeros() as usize {
            if cycles >> level & 1 == 1 {
                state = self.advance(level, &state);
            }
        }
        let end = cycles + MOST_FOLLOWED;
        let stationary = self.stationary()?;
        let rows = self.rows_of_block();
        let weights = self.weights(&stationary, &rows)?;
        let limit = self.errors_in(&stationary, 0).fold(0.0, f64::max);
        while cycles < end {
            let apart = |k: usize| {
                let scales = weights[k].0.iter().enumerate();
                let each = scales
                    .map(|(i, scale)| (state[k][(i, 0)] - stationary[k][(i, 0)]).abs() / scale);
                each.fold(0.0, f64::max)
            };
            let apart: Vec<f64> = (0..weights.len()).map(apart).collect();
            let beyond: f64 = weights.iter().zip(&apart).map(|(of, apart)| of.1 * apart).sum();
            let is_settled = apart.iter().all(|apart| *apart <= SETTLED);
            if limit + beyond <= most || is_settled {
                return Some(None);
            }
            let mut errors = Mat::zeros((length as usize) << BLOCK, 1);
            for (rows, state) in rows.iter().zip(&state) {
                errors += product(rows.as_ref(), state.as_ref());
            }
            let mut each = 0..errors.nrows();
            if let Some(missed) = each.find(|&i| self.is_above(errors[(i, 0)], most)) {
                let after = missed / length as usize;
                (0..after).for_each(|_| state = self.advance(0, &state));
                return Some(Some((cycles + after as u64, state)));
            }
            state = self.advance(BLOCK, &state);
            cycles += 1 << BLOCK;
        }
        None
    }

    /// For each part the rows r_phase Qʲ for j < 2^[`BLOCK`]: the errors of so many cycles as linear
    /// functions of z before them.
    fn rows_of_block(&mut self) -> PartStates {
        self.reach(BLOCK);
        let rows =
            self.parts.iter().enumerate().map(|(k, part)| {
                let phases = part.errors.len();
                let n = self.start[k].nrows();
                let mut rows = Mat::from_fn(phases << BLOCK, n, |i, j| {
                    if i < phases { part.errors[i][j] } else { 0.0 }
                });
                for level in 0..BLOCK {
                    let known = phases << level;
                    let map = self.levels[level][k].as_ref();
                    let later = product(rows.subrows(0, known), map);
                    rows.subrows_mut(known, known).copy_from(&later);
                }
                rows
            });
        rows.collect()
    }

    /// For each part the scales s_i of its numbers, and the right-hand side of THEORY (6.3), which bounds
    /// ‖r Lᵏ‖ for all k: by how much any later error may differ from its limit if ‖z − z_∞‖_s = 1. The scales
    /// are the largest numbers that were seen of a few states. `None` if no norm of a power of L is below 1.
    fn weights(
        &mut self,
        stationary: &PartStates,
        rows: &PartStates,
    ) -> Option<Vec<(Vec<f64>, f64)>> {
        self.reach(SURVEYED);
        let later: Vec<PartStates> =
            (0..=SURVEYED).map(|level| self.advance(level, &self.start.clone())).collect();
        let mut out = Vec::new();
        for (k, limit) in stationary.iter().enumerate() {
            let n = limit.nrows();
            let of = |i: usize, states: &PartStates| states[k][(i, 0)].abs();
            let size = |i: usize| {
                let begin = of(i, stationary).max(of(i, &self.start));
                later.iter().fold(begin, |most, states| most.max(of(i, states)))
            };
            let largest = (0..n).map(size).fold(0.0, f64::max);
            let scales: Vec<f64> = (0..n).map(|i| size(i).max(1e-9 * largest)).collect();
            // The number 1 is not apart from its limit.
            let row =
                |row: RowRef<'_, f64>| (1..n).fold(0.0, |sum, j| sum + row[j].abs() * scales[j]);
            let norm =
                |map: &Mat<f64>| (1..n).map(|i| row(map.row(i)) / scales[i]).fold(0.0, f64::max);
            let mut factor = 0.0_f64;
            let mut rows = rows[k].clone();
            for _ in 0..1 << (SURVEYED - BLOCK) {
                factor = (0..rows.nrows()).map(|i| row(rows.row(i))).fold(factor, f64::max);
                rows = product(rows.as_ref(), self.levels[BLOCK][k].as_ref());
            }
            let mut level = SURVEYED;
            loop {
                let last = norm(&self.levels[level][k]);
                if last < 1.0 {
                    break;
                }
                factor *= last;
                level += 1;
                if level > MOST_LEVELS || !factor.is_finite() {
                    return None;
                }
                self.reach(level);
            }
            out.push((scales, factor));
        }
        Some(out)
    }
}
