//! Whether moments stay bounded: the spectral radii of the linear maps of first and of
//! second moments over one round.
//!
//! The map of second moments preserves positive semidefinite matrices. So its powers,
//! applied to the identity, grow like powers of its spectral radius (Krein and Rutman), and
//! no eigenvalue is needed. The map of means is squared repeatedly (Gelfand).

use super::{ExactMoments, MomentState};
use crate::linalg::Matrix;

/// Spectral radii over one round; moments converge if they are below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralRadii {
    /// Of the mean; `None` if its matrix is too large.
    pub mean: Option<f64>,
    /// Of the second moments.
    pub square: f64,
}

/// The rounds after which the growth rate is estimated first, and last.
const ROUNDS: (u32, u32) = (32, 4096);
/// The relative difference of two rates below which they count as equal.
const SETTLED: f64 = 1e-7;
/// The largest relative difference of the last two rates; beyond it there is no result.
const AT_MOST: f64 = 1e-5;
/// The largest order of the matrix of the mean's map.
const WRITTEN: usize = 160;
/// The number of squarings of the map of means: its power 2³⁰.
const SQUARINGS: i32 = 30;

impl ExactMoments<'_> {
    /// The spectral radii of a round; `None` if the second moments' rate of growth does
    /// not settle.
    pub fn stability(&self) -> Option<SpectralRadii> {
        Some(SpectralRadii { mean: self.mean_radius(), square: self.square_radius()? })
    }

    /// The growth rate of second moments from the identity, without the noise that each
    /// round adds.
    fn square_radius(&self) -> Option<f64> {
        let begin = self.initial_state(self.facts.optimum());
        let mut state = begin.with(0.0, &vec![0.0; begin.numbers().len()]);
        (1..state.s.rows()).for_each(|i| state.s[(i, i)] = 1.0);
        for block in &mut state.p {
            (0..block.rows()).for_each(|i| block[(i, i)] = 1.0);
        }
        let after = |x: &[f64]| self.consistent_round(&begin.with(0.0, x)).numbers();
        growth(state.numbers(), after, |x| size(&begin.with(0.0, x)))
    }

    /// The spectral radius of the mean's map.
    fn mean_radius(&self) -> Option<f64> {
        let begin = self.initial_state(self.facts.optimum());
        let zero = begin.with(0.0, &vec![0.0; begin.numbers().len()]);
        let (m, own, types) = (zero.s.rows(), zero.client_length(), zero.types());
        let size = m - 1 + types * own;
        if size > WRITTEN {
            return None;
        }
        // E 1·s and E 1·v are the means.
        let mut map = Matrix::zeros(size, size);
        for j in 0..size {
            let mut state = zero.clone();
            if j < m - 1 {
                state.s[(0, j + 1)] = 1.0;
                state.s[(j + 1, 0)] = 1.0;
            } else {
                let (g, i) = ((j + 1 - m) / own, (j + 1 - m) % own);
                state.x[g][(0, i)] = 1.0;
            }
            let after = self.consistent_round(&state);
            (1..m).for_each(|i| map[(i - 1, j)] = after.s[(0, i)]);
            for (g, x) in after.x.iter().enumerate() {
                (0..own).for_each(|i| map[(m - 1 + g * own + i, j)] = x[(0, i)]);
            }
        }
        Some(radius(map))
    }
}

/// The rate at which a linear map of second moments grows from `state`, its size being a trace;
/// `None` if it does not settle.
pub fn growth(
    mut state: Vec<f64>,
    after: impl Fn(&[f64]) -> Vec<f64>,
    size: impl Fn(&[f64]) -> f64,
) -> Option<f64> {
    // The logarithm of the size after this many rounds, by powers of two.
    let (mut log, mut round) = (0.0, 0);
    let (mut at_half, mut before) = (0.0, f64::NAN);
    let mut take = ROUNDS.0;
    loop {
        while round < take {
            state = after(&state);
            let size = size(&state);
            if size == 0.0 {
                return Some(0.0);
            }
            if !size.is_finite() {
                return None;
            }
            log += libm::log(size);
            state.iter_mut().for_each(|x| *x /= size);
            round += 1;
        }
        // The rate over the second half of the rounds, so that a period of two cancels.
        let rate = libm::exp((log - at_half) / f64::from(take / 2));
        let apart = (rate - before).abs();
        if apart <= SETTLED * rate || take >= ROUNDS.1 {
            return (apart <= AT_MOST * rate.max(1.0)).then_some(rate);
        }
        (at_half, before) = (log, rate);
        take *= 2;
    }
}

/// The trace of all second moments.
fn size(state: &MomentState) -> f64 {
    let own = state.p.iter().zip(&state.counts).map(|(p, count)| count * p.trace());
    state.s.trace() + own.sum::<f64>()
}

/// The spectral radius of a matrix, ‖Aᵏ‖^{1/k} at k = 2³⁰.
pub fn radius(mut a: Matrix) -> f64 {
    let mut log = 0.0;
    for k in 0..=SQUARINGS {
        let norm = libm::sqrt(a.entries().iter().map(|x| x * x).sum());
        if norm == 0.0 {
            return 0.0;
        }
        log += libm::ldexp(libm::log(norm), -k);
        a = a.scaled(1.0 / norm);
        a = a.times(&a);
    }
    libm::exp(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rotation, a Jordan block, a diagonal matrix, a nilpotent matrix.
    #[test]
    fn radii_of_matrices_that_are_known() {
        let radius_of = |entries: [f64; 4]| radius(Matrix::from_entries(2, 2, entries.to_vec()));
        let (c, s) = (libm::cos(0.7), libm::sin(0.7));
        assert!((radius_of([0.9 * c, -0.9 * s, 0.9 * s, 0.9 * c]) - 0.9).abs() < 1e-8);
        assert!((radius_of([1.1, 5.0, 0.0, 1.1]) - 1.1).abs() < 1e-6);
        assert!((radius_of([0.5, 0.0, 0.0, -2.0]) - 2.0).abs() < 1e-8);
        assert_eq!(radius_of([0.0, 3.0, 0.0, 0.0]), 0.0);
    }
}
