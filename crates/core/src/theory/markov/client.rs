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
        let steps: Vec<f64> =
            runs.runs.iter().map(|run| run.updates.of_client(client).step).collect();
        let count = runs.runs[0].updates.of_client(client).steps;
        let local = TrajectorySteps { layout, step_sizes: &steps, path, count };
        let all = local.map(n, |step, i, j| step[(i, j)]);
        // Entry (k, l) of the map of y yᵀ, row by row, is a product of two entries of the map of y.
        let squares = squares
            .then(|| local.map(n * n, |step, k, l| step[(k / n, l / n)] * step[(k % n, l % n)]));
        let begin = layout.begin(client);
        let take = layout.take(runs, client);
        let mut means = Vec::with_capacity(states * states);
        for s in 0..states {
            for to in 0..states {
                let block = Matrix::from_fn(n, n, |i, j| all[(to * n + i, s * n + j)]);
                means.push(take.times(&block).times(&begin));
            }
        }
        let passage = Matrix::from_fn(states, states, |s, to| all[(to * n, s * n)]);
        let laws = [path.begin.clone(), path.stationary.clone()];
        Self { states, laws, passage, means, squares, begin, take }
    }

    /// z from z where the trajectory goes from s to s'.
    pub(super) fn mean(&self, s: usize, to: usize) -> &Matrix {
        &self.means[s * self.states + to]
    }

    /// E 1{s → s'} y yᵀ at the end of the local steps, where E 1{s} y yᵀ is `y` at their beginning.
    pub(super) fn square(&self, squares: &Matrix, s: usize, to: usize, y: &Matrix) -> Matrix {
        let n = y.rows();
        let count = y.entries().len();
        let mut entries = Vec::with_capacity(count);
        for k in 0..count {
            let row = &squares.row(to * count + k)[s * count..][..count];
            entries.push(crate::kernel::dot(row, y.entries()));
        }
        Matrix::from_entries(n, n, entries)
    }
}

/// The local steps of a client in a round.
struct TrajectorySteps<'a> {
    layout: &'a Layout,
    /// γ of each run.
    step_sizes: &'a [f64],
    path: &'a Trajectory,
    /// The number H of steps in the round.
    count: u64,
}

impl TrajectorySteps<'_> {
    /// The map of `numbers` numbers for each state by all local steps, S · `numbers` squared, where
    /// `entry(M, k, l)` is the entry (k, l) of the map of these numbers by one step with the map M of y.
    fn map(&self, numbers: usize, entry: impl Fn(&Matrix, usize, usize) -> f64) -> Matrix {
        let order = self.path.begin.len() * numbers;
        let mut one = Matrix::zeros(order, order);
        for way in &self.path.moves {
            let step = self.layout.step(self.step_sizes, &way.matrix, &way.offset);
            for k in 0..numbers {
                for l in 0..numbers {
                    let place = (way.to * numbers + k, way.from * numbers + l);
                    one[place] += way.probability * entry(&step, k, l);
                }
            }
        }
        one.power(self.count)
    }
}
