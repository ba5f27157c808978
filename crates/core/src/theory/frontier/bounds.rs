//! A lower bound of the error, which excludes most step sizes before a round's map is made: the
//! error without noise.

use super::curve::MOST_PASSING;
use crate::linalg::Matrix;
use crate::theory::program::Squares;

/// Rounding errors of the bounds, relative.
pub const MARGIN: f64 = 1e-9;

/// The error without noise, ‖E θ_t − θ*‖², or its mean over the start.
pub struct NoiselessError {
    /// Up to the start of the cycle.
    first: Vec<f64>,
    ends: Vec<Matrix>,
    /// The powers 1, 2, 4, … of the map of u over a cycle.
    powers: Vec<Matrix>,
    /// Columns c with Σ c cᵀ = E u uᵀ at the start of the cycle.
    start: Matrix,
    /// The least error after any round up to each of [`MOST_PASSING`].
    least: Vec<f64>,
}

impl NoiselessError {
    /// The error of these rounds.
    pub fn new(squares: &Squares<'_>) -> Self {
        Self {
            first: squares.noiseless.clone(),
            ends: squares.ends.clone(),
            powers: vec![squares.means.clone()],
            start: squares.columns.clone(),
            least: Vec::new(),
        }
    }

    /// Whether the error after some of the first `rounds` rounds may be at most `square` with noise.
    pub fn may_pass(&mut self, rounds: u64, square: f64) -> bool {
        let mut least = f64::INFINITY;
        if self.least.is_empty() {
            let mut errors = self.first.clone();
            let mut state = self.start.clone();
            while errors.len() <= MOST_PASSING as usize {
                errors.extend(self.ends.iter().map(|end| error(end, &state)));
                state = self.powers[0].times(&state);
            }
            let mut lowest = |error: &f64| {
                least = least.min(*error);
                least
            };
            self.least = errors.iter().map(&mut lowest).collect();
        }
        self.least[rounds.min(MOST_PASSING) as usize] <= square * (1.0 + MARGIN)
    }

    /// Whether the error after `rounds` rounds may be at most `square` with noise.
    pub fn allows(&mut self, rounds: u64, square: f64) -> bool {
        let (lead, length) = (self.first.len() as u64 - 1, self.ends.len() as u64);
        if rounds <= lead {
            return self.first[rounds as usize] <= square * (1.0 + MARGIN);
        }
        let cycles = (rounds - lead - 1) / length;
        let mut state = self.start.clone();
        for bit in 0..64 - cycles.leading_zeros() as usize {
            if self.powers.len() == bit {
                let next = self.powers[bit - 1].times(&self.powers[bit - 1]);
                self.powers.push(next);
            }
            if cycles >> bit & 1 == 1 {
                state = self.powers[bit].times(&state);
            }
        }
        let end = &self.ends[((rounds - lead - 1) % length) as usize];
        error(end, &state) <= square * (1.0 + MARGIN)
    }
}

/// The error of this state; 0 if its map overflows, which proves nothing.
fn error(end: &Matrix, state: &Matrix) -> f64 {
    let error = end.times(state).entries().iter().fold(0.0, |sum, x| sum + x * x);
    if error.is_nan() { 0.0 } else { error }
}
