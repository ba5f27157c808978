//! A lower bound of the error, which excludes most step sizes before the map Q of THEORY (6.1) is computed: the
//! error without noise, THEORY (6.4): E‖θ_t − θ*‖² ≥ ‖E θ_t − θ*‖².
//!
//! The rounds before the cycle have known errors, [`MeanRounds::noiseless`]. From there on E u at the start of a cycle
//! follows from E u at the start of the cycle before it by the matrix `means`, and the errors after the rounds of a
//! cycle by the matrices `ends`. A random start is a sum over several columns.

use super::curve::MOST_PASSING;
use crate::linalg::Matrix;
use crate::theory::exact::MeanRounds;

/// How far bounds and errors may be above a target by rounding errors, relative to the square of the target.
pub const MARGIN: f64 = 1e-9;

/// The error without noise, ‖E θ_t − θ*‖² of THEORY (6.4), or its mean over a random start. It does not
/// depend on the number of clients.
pub struct NoiselessError {
    /// The powers 1, 2, 4, … of the map of E u over a cycle.
    powers: Vec<Matrix>,
    /// For each round t that was followed so far, from round 0 on, the least error after rounds 0 to t.
    least: Vec<f64>,
    /// The columns of E u uᵀ at the start of the cycle that contains the next round to follow; and memory for the
    /// columns at the start of the next cycle, and for the columns of the error.
    states: [Matrix; 3],
}

impl NoiselessError {
    /// The error of rounds whose means are `mean`, of which nothing is computed yet. The other functions must be given
    /// the same means.
    pub fn new(mean: &MeanRounds) -> Self {
        Self {
            powers: vec![mean.means.clone()],
            least: Vec::new(),
            states: [mean.columns.clone(), mean.columns.clone(), mean.ends[0].times(&mean.columns)],
        }
    }

    /// Whether the error with noise may be at most `most` = ε² after one of the rounds 0 to `rounds`, or 0 to
    /// [`MOST_PASSING`] if these are fewer: whether the error without noise is. Rounds that were followed for another
    /// target are not followed again.
    pub fn may_pass_within(&mut self, mean: &MeanRounds, rounds: u64, most: f64) -> bool {
        let rounds = rounds.min(MOST_PASSING) as usize;
        // Rounds are followed only until the first passage: the least error never rises again.
        while self.least.len() <= rounds && !ends_within(&self.least, most) {
            let round = self.least.len();
            let error = match round.checked_sub(mean.noiseless.len()) {
                None => mean.noiseless[round],
                Some(later) => {
                    let [state, next, ends] = &mut self.states;
                    let phase = later % mean.ends.len();
                    mean.ends[phase].times_into(state, ends);
                    let error = square(ends);
                    if phase + 1 == mean.ends.len() {
                        self.powers[0].times_into(state, next);
                        std::mem::swap(state, next);
                    }
                    error
                }
            };
            self.least.push(self.least.last().map_or(error, |least| least.min(error)));
        }
        ends_within(&self.least[..self.least.len().min(rounds + 1)], most)
    }

    /// Whether the error with noise may be at most `most` = ε² after exactly `rounds` rounds: whether the error without
    /// noise is.
    pub fn may_be_met_after(&mut self, mean: &MeanRounds, rounds: u64, most: f64) -> bool {
        let lead = mean.noiseless.len() as u64 - 1;
        let length = mean.ends.len() as u64;
        if rounds <= lead {
            return mean.noiseless[rounds as usize] <= most * (1.0 + MARGIN);
        }
        let cycles = (rounds - lead - 1) / length;
        let mut state = mean.columns.clone();
        for bit in 0..64 - cycles.leading_zeros() as usize {
            if self.powers.len() == bit {
                let next = self.powers[bit - 1].times(&self.powers[bit - 1]);
                self.powers.push(next);
            }
            if cycles >> bit & 1 == 1 {
                state = self.powers[bit].times(&state);
            }
        }
        let end = &mean.ends[((rounds - lead - 1) % length) as usize];
        square(&end.times(&state)) <= most * (1.0 + MARGIN)
    }
}

/// Whether the last of these errors is at most `most` = ε², up to rounding; false if there is none.
fn ends_within(errors: &[f64], most: f64) -> bool {
    errors.last().is_some_and(|error| *error <= most * (1.0 + MARGIN))
}

/// The sum of the squares of the entries: ‖E θ_t − θ*‖², added up over the columns of a random start. It is 0
/// if an entry is NaN, as where a map overflows: then nothing is excluded.
fn square(ends: &Matrix) -> f64 {
    let square = ends.entries().iter().fold(0.0, |sum, x| sum + x * x);
    if square.is_nan() { 0.0 } else { square }
}
