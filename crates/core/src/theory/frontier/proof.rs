//! The proof that an error stays below its target, THEORY (6.2), (6.3).
//!
//! z are the second moments of the state at the start of a cycle, of which the error after each of its rounds is a
//! linear function r · z; z_∞ are their stationary values, and L is the map of z over a cycle without the coordinate
//! E 1·1, which is always 1. All this is for each part of z. With scales s_i > 0, ‖z‖_s = max_i |z_i|/s_i, and the
//! induced norms, the error after k more cycles differs from its limit by at most
//!
//! ```text
//! THEORY (6.2)   ‖r L^k‖ ‖z − z_∞‖_s
//! THEORY (6.3)   ‖r L^k‖ ≤ max_{j<2¹⁰} ‖r L^j‖ · Π_i max(1, ‖L^{2^(10+i)}‖)
//! ```

use super::curve::{
    Crossing, CycleStart, ErrorCurve, MOST_LEVELS, MOST_RETURNS, PartStates, SoughtTarget, product,
};
use faer::{Mat, RowRef};

/// The most cycles that are followed one by one to prove that an error stays below a target.
const MOST_FOLLOWED: u64 = 1 << 20;

/// The binary logarithm of the number of cycles whose errors are computed in one product.
const BLOCK: usize = 6;

/// The binary logarithm of the number of cycles j for which ‖r Lʲ‖ in THEORY (6.3) is computed one by one.
const SURVEYED: usize = 10;

/// A state at most at this distance from the stationary one, relative to its scales, is stationary up to rounding: all
/// later errors are the limit, which is below the target.
const SETTLED: f64 = 1e-11;

/// How far the later errors of a part may be from their limits, THEORY (6.3).
struct PartWeight {
    /// The scales s_i of the numbers of the part.
    scales: Vec<f64>,
    /// The right-hand side of THEORY (6.3), which bounds ‖r Lᵏ‖ for all k: by how much any later error may differ
    /// from its limit if ‖z − z_∞‖_s = 1.
    factor: f64,
}

/// What is known of the errors after a round from which the error meets a target.
enum LaterErrors {
    /// All of them are proven to be at most the target.
    StayBelow,
    /// The first one that is above the target is in the cycle at this start.
    RiseIn(CycleStart),
}

impl ErrorCurve {
    /// Where the error comes below `square` = ε² and is proven to stay: it is followed round by round until
    /// THEORY (6.2) excludes that it rises again. Errors that oscillate may rise between the rounds that
    /// [`crossings`](Self::crossings) looks at. `None` if there is no such round, or no proof within 2²⁰
    /// cycles.
    pub fn proven(&mut self, square: f64) -> Option<Crossing> {
        let mut found = self.crossings(&[square]);
        for _ in 0..MOST_RETURNS {
            match self.errors_after(found[0]?.rounds, square)? {
                LaterErrors::StayBelow => return found[0],
                LaterErrors::RiseIn(begin) => {
                    self.descend(&begin, &[SoughtTarget { place: 0, square }], 0, &mut found);
                }
            }
        }
        None
    }

    /// Whether the error, which is at most `most` = ε² after round `rounds`, rises above ε² later, or stays below by
    /// THEORY (6.2). `None` if it does not rise within [`MOST_FOLLOWED`] cycles and is not proven to stay.
    fn errors_after(&mut self, rounds: u64, most: f64) -> Option<LaterErrors> {
        let lead = self.rounds_before_cycles();
        let length = self.rounds_of_cycle();
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
            // ‖z − z_∞‖_s of each part, and by how much later errors may differ from their limit.
            let apart: Vec<f64> = (0..weights.len())
                .map(|k| scaled_distance(&state[k], &stationary[k], &weights[k].scales))
                .collect();
            let beyond: f64 =
                weights.iter().zip(&apart).map(|(weight, apart)| weight.factor * apart).sum();
            let is_settled = apart.iter().all(|apart| *apart <= SETTLED);
            if limit + beyond <= most || is_settled {
                return Some(LaterErrors::StayBelow);
            }
            let mut errors = Mat::zeros((length as usize) << BLOCK, 1);
            for (rows, state) in rows.iter().zip(&state) {
                errors += product(rows.as_ref(), state.as_ref());
            }
            let mut each = 0..errors.nrows();
            if let Some(missed) = each.find(|&i| self.is_above(errors[(i, 0)], most)) {
                let after = missed / length as usize;
                for _ in 0..after {
                    state = self.advance(0, &state);
                }
                let cycles = cycles + after as u64;
                return Some(LaterErrors::RiseIn(CycleStart { cycles, state }));
            }
            state = self.advance(BLOCK, &state);
            cycles += 1 << BLOCK;
        }
        None
    }

    /// For each part the rows r_phase Qʲ for j < 2^[`BLOCK`] and each round of a cycle: times z they are the errors of
    /// the next 2^[`BLOCK`] cycles.
    fn rows_of_block(&mut self) -> PartStates {
        self.reach(BLOCK);
        let mut all = Vec::with_capacity(self.parts.len());
        for (k, part) in self.parts.iter().enumerate() {
            let phases = part.errors.len();
            let n = self.start[k].nrows();
            let mut rows =
                Mat::from_fn(
                    phases << BLOCK,
                    n,
                    |i, j| {
                        if i < phases { part.errors[i][j] } else { 0.0 }
                    },
                );
            for level in 0..BLOCK {
                let known = phases << level;
                let map = self.levels[level][k].as_ref();
                let later = product(rows.subrows(0, known), map);
                rows.subrows_mut(known, known).copy_from(&later);
            }
            all.push(rows);
        }
        all
    }

    /// The scales and the bound THEORY (6.3) of each part, where `rows` are the [`Self::rows_of_block`]. The scales are
    /// the largest absolute values that the numbers have in a few states, but not below 10⁻⁹ of the largest. `None` if
    /// no norm of a power of L is below 1.
    fn weights(&mut self, stationary: &PartStates, rows: &PartStates) -> Option<Vec<PartWeight>> {
        self.reach(SURVEYED);
        let later: Vec<PartStates> =
            (0..=SURVEYED).map(|level| self.advance(level, &self.start.clone())).collect();
        let mut out = Vec::new();
        for (k, limit) in stationary.iter().enumerate() {
            let n = limit.nrows();
            let mut sizes = Vec::with_capacity(n);
            for i in 0..n {
                let begin = limit[(i, 0)].abs().max(self.start[k][(i, 0)].abs());
                sizes.push(
                    later.iter().fold(begin, |most, states| most.max(states[k][(i, 0)].abs())),
                );
            }
            let largest = sizes.iter().copied().fold(0.0, f64::max);
            let scales: Vec<f64> = sizes.iter().map(|size| size.max(1e-9 * largest)).collect();
            let mut factor = 0.0_f64;
            let mut rows = rows[k].clone();
            for _ in 0..1 << (SURVEYED - BLOCK) {
                factor = (0..rows.nrows())
                    .map(|i| scaled_sum(rows.row(i), &scales))
                    .fold(factor, f64::max);
                rows = product(rows.as_ref(), self.levels[BLOCK][k].as_ref());
            }
            let mut level = SURVEYED;
            loop {
                let last = scaled_norm(&self.levels[level][k], &scales);
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
            out.push(PartWeight { scales, factor });
        }
        Some(out)
    }
}

/// ‖a − b‖_s = max_i |a_i − b_i|/s_i of two states of a part, where s are its scales.
fn scaled_distance(a: &Mat<f64>, b: &Mat<f64>, scales: &[f64]) -> f64 {
    let each = scales.iter().enumerate();
    each.map(|(i, scale)| (a[(i, 0)] - b[(i, 0)]).abs() / scale).fold(0.0, f64::max)
}

/// Σ_j |r_j| s_j of a row r, the largest r · (z − z_∞) with ‖z − z_∞‖_s ≤ 1. The sum begins at j = 1, because the
/// number 1, which is the first of z, does not differ from its limit.
fn scaled_sum(row: RowRef<'_, f64>, scales: &[f64]) -> f64 {
    (1..scales.len()).fold(0.0, |sum, j| sum + row[j].abs() * scales[j])
}

/// The norm of a map of z − z_∞ that ‖·‖_s induces: the largest ‖L x‖_s with ‖x‖_s ≤ 1.
fn scaled_norm(map: &Mat<f64>, scales: &[f64]) -> f64 {
    (1..scales.len()).map(|i| scaled_sum(map.row(i), scales) / scales[i]).fold(0.0, f64::max)
}
