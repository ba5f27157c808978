//! Second moments of the mean of a run's estimates after a burn-in.

use super::ExactMoments;
use super::state::{MomentState, Past, sandwich};
use crate::kernel::axpy;
use crate::linalg::Matrix;

/// Sums over past rounds.
pub(super) struct AverageMoments {
    /// Rounds before the sums begin.
    burn_in: u64,
    count: u64,
    pub(super) past: Option<Past>,
    /// E (Σ ε)(Σ ε)ᵀ, d × d, and E Σ ε.
    square: Matrix,
    sum: Vec<f64>,
}

impl AverageMoments {
    pub(super) fn new(exact: &ExactMoments<'_>, state: &MomentState) -> Self {
        let d = exact.layout.d;
        Self {
            burn_in: exact.model.burn_in.unwrap_or(0),
            count: 0,
            past: Some(Past::new(d, state)),
            square: Matrix::zeros(d, d),
            sum: vec![0.0; d],
        }
    }

    /// Adds the estimate at the end of a round.
    pub(super) fn observe(&mut self, state: &MomentState, estimate: &Matrix, round: u64) {
        let Some(past) = self.past.as_mut().filter(|_| round > self.burn_in) else { return };
        let cross = past.s.times(&estimate.transpose());
        self.square.add(1.0, &cross);
        self.square.add(1.0, &cross.transpose());
        self.square.add(1.0, &sandwich(estimate, &state.s, estimate));
        let column: Vec<f64> = (0..state.s.rows()).map(|i| state.s[(i, 0)]).collect();
        axpy(1.0, &estimate.apply(&column), &mut self.sum);
        past.add(estimate, state);
        self.count += 1;
    }

    /// E x xᵀ and E x for the mean x of the estimates since the burn-in.
    pub(super) fn mean(&self) -> Option<(Matrix, Vec<f64>)> {
        let n = self.count as f64;
        let mean = || self.sum.iter().map(|x| x / n).collect();
        (self.count > 0).then(|| (self.square.scaled(1.0 / (n * n)), mean()))
    }
}
