//! A client's local steps along its trajectory.
//!
//! z = (1, e, …, c_1, …) is the joint state between rounds, D numbers, with the errors e = θ − θ* of the runs and the
//! clients' control variates; y = (1, e, …, w, …) is the state of one client in its local steps, n numbers, with the
//! constant part w of its drift ([`Layout`]).

use super::layout::Layout;
use crate::linalg::Matrix;
use crate::problem::Trajectory;
use crate::round_program::LocalRuns;

/// What a client does in a round, by the states s and s' in which its trajectory begins and ends the round.
pub(super) struct ClientRound {
    /// S, the number of states of the chain.
    pub(super) states: usize,
    /// P(s) before the first round, S numbers.
    pub(super) start_law: Vec<f64>,
    /// P(s) in stationarity, S numbers.
    pub(super) stationary_law: Vec<f64>,
    /// P(s' | s) over a round, S × S.
    pub(super) passage: Matrix,
    /// What the client adds to the mean of z if its trajectory goes from s to s', as a map of z before the round,
    /// times P(s' | s): D × D, at the place s S + s'.
    means: Vec<Matrix>,
    /// The local steps as a map of E 1{s} y yᵀ over all s, S n² × S n²; `None` where means alone are followed.
    pub(super) squares: Option<Matrix>,
    /// y at the start of the local steps from z, n × D.
    pub(super) begin: Matrix,
    /// What z takes from y at the end of the local steps, D × n.
    pub(super) take: Matrix,
}

impl ClientRound {
    /// The round of a client whose draws follow `path`; with the map of second moments if `squares`. The runs must be
    /// those that [`super::are_closed`] accepts: the client takes the same number of plain local steps in each.
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
        // The number of steps is the same in all runs.
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
        // y begins with the number 1 (`Layout`), which no step changes: its entry of a block is P(s' | s).
        let passage = Matrix::from_fn(states, states, |s, to| all[(to * n, s * n)]);
        let start_law = path.begin.clone();
        let stationary_law = path.stationary.clone();
        Self { states, start_law, stationary_law, passage, means, squares, begin, take }
    }

    /// What the client adds to the mean of z if its trajectory goes from s to s' = `to`, as a map of z before the
    /// round, times P(s' | s): D × D.
    pub(super) fn mean(&self, s: usize, to: usize) -> &Matrix {
        &self.means[s * self.states + to]
    }

    /// E 1{s → s'} y yᵀ at the end of the local steps, n × n, where `y` is E 1{s} y yᵀ at their beginning, s' is `to`,
    /// and `squares` is the client's map of second moments.
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

/// The local steps of a client in a round, along its trajectory.
struct TrajectorySteps<'a> {
    layout: &'a Layout,
    /// γ of each run.
    step_sizes: &'a [f64],
    path: &'a Trajectory,
    /// The number H of steps in the round.
    count: u64,
}

impl TrajectorySteps<'_> {
    /// The map by which all local steps act on a vector of `numbers` numbers for each state s, such as E 1{s} y; a
    /// square matrix of order S · `numbers`. One step with the map M of y acts on the numbers by the matrix whose entry
    /// (k, l) is `entry(M, k, l)`.
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
