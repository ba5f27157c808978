//! A client's local steps along its trajectory.

use super::layout::Layout;
use crate::linalg::Matrix;
use crate::problem::Trajectory;
use crate::round_program::LocalRuns;

/// A client's round, by where its trajectory begins (s) and ends (s').
pub(super) struct ClientRound {
    pub(super) states: usize,
    /// The distribution of s before the first round, and the stationary one.
    pub(super) laws: [Vec<f64>; 2],
    /// P(s' | s), S × S.
    pub(super) passage: Matrix,
    /// z from z by way of the client's mean, times P(s' | s): number s S + s', D × D.
    means: Vec<Matrix>,
    /// The local steps as a map of E 1{s} y yᵀ over all s, S n² × S n², once it is asked for.
    pub(super) squares: Option<Matrix>,
    pub(super) begin: Matrix,
    pub(super) take: Matrix,
}

impl ClientRound {
    pub(super) fn new(
        layout: &Layout,
        runs: &LocalRuns,
        client: usize,
        path: &Trajectory,
        squares: bool,
    ) -> Self {
        let states = path.begin.len();
        let n = layout.client_length();
        let steps: Vec<f64> = runs.runs.iter().map(|run| run.updates.of(client).step).collect();
        // The map of so many numbers for each state by all local steps.
        let mapped = |count: usize, entry: &dyn Fn(&Matrix, usize, usize) -> f64| {
            let mut one = Matrix::zeros(states * count, states * count);
            for way in &path.moves {
                let step = layout.step(&steps, &way.matrix, &way.offset);
                for (k, l) in (0..count * count).map(|kl| (kl / count, kl % count)) {
                    let place = (way.to * count + k, way.from * count + l);
                    one[place] += way.probability * entry(&step, k, l);
                }
            }
            one.power(runs.runs[0].updates.of(client).steps)
        };
        let all = mapped(n, &|step, i, j| step[(i, j)]);
        let product =
            |step: &Matrix, k: usize, l: usize| step[(k / n, l / n)] * step[(k % n, l % n)];
        let squares = squares.then(|| mapped(n * n, &product));
        let begin = layout.begin(client);
        let take = layout.take(runs, client);
        let mean = |k: usize| {
            let s = k / states;
            let to = k % states;
            let block = Matrix::from_fn(n, n, |i, j| all[(to * n + i, s * n + j)]);
            take.times(&block).times(&begin)
        };
        let means = (0..states * states).map(mean).collect();
        let passage = Matrix::from_fn(states, states, |s, to| all[(to * n, s * n)]);
        let laws = [path.begin.clone(), path.stationary.clone()];
        Self { states, laws, passage, means, squares, begin, take }
    }

    /// z from z where the trajectory goes from s to s'.
    pub(super) fn mean(&self, s: usize, to: usize) -> &Matrix {
        &self.means[s * self.states + to]
    }

    /// E 1{s → s'} y yᵀ at the end where it is `y` at the beginning.
    pub(super) fn square(&self, squares: &Matrix, (s, to): (usize, usize), y: &Matrix) -> Matrix {
        let n = y.rows();
        let count = y.entries().len();
        let entry = |k: usize| {
            let row = &squares.row(to * count + k)[s * count..][..count];
            crate::kernel::dot(row, y.entries())
        };
        Matrix::from_entries(n, n, (0..count).map(entry).collect())
    }
}
