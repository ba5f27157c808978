//! Exact moments along trajectories: FedLSA, SCAFFLSA and their extrapolations where each client's
//! draws follow a finite chain (SCAFFLSA leaves this noise to future work).
//!
//! The means do not close by themselves, since a draw depends on where the trajectory is. They
//! do together with the position: with x the joint position of all trajectories, 1{x} = 1 if the trajectories
//! are at x and 0 otherwise, and z = (1, θ − θ*, c_1, …, c_N) with the control variates c_k, a round is a
//! linear map of E 1{x} z zᵀ over all x. Given θ_t and x the clients are independent, as they are without
//! trajectories. There are Π S_k positions, where S_k is the number of states of client k's chain, so that only
//! a few clients with a few states fit.

mod client;
mod layout;
mod size;

use super::exact::{CovarianceBlocks, Moments};
use crate::kernel::axpy;
use crate::linalg::{Matrix, SymmetricBlocks, added, contracts, fixed_point};
use crate::problem::Facts;
use crate::round_program::{LocalRun, LocalRuns};
use client::ClientRound;
use layout::Layout;
pub use size::{limit_effort, rounds_effort, stationary_effort};

/// Whether the moments along trajectories close and this module covers them: a linear field, clients of equal shares
/// whose draws follow finite chains, one oracle call in a local step, no proximal term, and, if there are several runs,
/// the same numbers of local steps and the same draws in all of them. That all clients take part in every round follows
/// from [`LocalRuns`].
pub fn are_closed(facts: &dyn Facts, runs: &LocalRuns) -> bool {
    facts.linear()
        && !facts.independent()
        && facts.unequal_shares().is_none()
        && (runs.runs.len() == 1 || runs.is_common)
        && runs.runs.iter().all(|run| is_covered(facts, run, &runs.runs[0]))
        && facts.positions(0).is_some()
}

/// Whether the local steps of a run are plain, and each client takes as many as in the first run.
fn is_covered(facts: &dyn Facts, run: &LocalRun, first: &LocalRun) -> bool {
    (0..facts.clients()).all(|client| {
        let update = run.updates.of_client(client);
        let has_steps_of_first = update.steps == first.updates.of_client(client).steps;
        update.batch == 1 && update.proximal == 0.0 && has_steps_of_first
    })
}

/// The exact moments of an algorithm along trajectories. D is the length of the joint state z. A trajectory goes on
/// from round to round, so that rounds of a client are not independent.
pub struct TrajectoryMoments<'a> {
    facts: &'a dyn Facts,
    runs: &'a LocalRuns,
    layout: Layout,
    /// K, the part of z after a round that follows from z before it without the clients ([`Layout::keep`]), D × D.
    keep: Matrix,
    /// What each client does in a round.
    clients: Vec<ClientRound>,
}

/// A matrix for each joint position x, as E 1{x} z zᵀ.
type ByPosition = Vec<Matrix>;

/// The moments of the error ε of an estimate.
struct ErrorMoments {
    /// E ε εᵀ, d × d.
    square: Matrix,
    /// E ε, d numbers.
    mean: Vec<f64>,
}

impl<'a> TrajectoryMoments<'a> {
    /// The moments of an algorithm; `None` unless [`are_closed`].
    pub fn new(facts: &'a dyn Facts, runs: &'a LocalRuns) -> Option<Self> {
        let squares = true;
        Self::prepare(facts, runs, squares)
    }

    /// The means of an algorithm alone; `None` unless [`are_closed`].
    fn of_means(facts: &'a dyn Facts, runs: &'a LocalRuns) -> Option<Self> {
        let squares = false;
        Self::prepare(facts, runs, squares)
    }

    /// The moments of an algorithm, or its means alone unless `squares`; `None` unless [`are_closed`].
    fn prepare(facts: &'a dyn Facts, runs: &'a LocalRuns, squares: bool) -> Option<Self> {
        if !are_closed(facts, runs) {
            return None;
        }
        let layout = Layout::new(facts, runs);
        let mut clients = Vec::new();
        for c in 0..facts.clients() {
            clients.push(ClientRound::new(&layout, runs, c, &facts.trajectory(c)?, squares));
        }
        Some(Self { facts, runs, keep: layout.keep(runs), layout, clients })
    }

    /// The state of a client's trajectory in joint position number `x`. The number is Σ_k s_k `stride`(k) of the
    /// clients' states s_k.
    fn place(&self, client: usize, x: usize) -> usize {
        x / self.stride(client) % self.clients[client].states
    }

    /// The number of joint positions of the clients before this one: by how much the number of a joint position grows
    /// with the state of this client.
    fn stride(&self, client: usize) -> usize {
        self.clients[..client].iter().map(|earlier| earlier.states).product()
    }

    /// P(x) of each joint position, where the trajectory of each client, independent of the others, has the law `of`.
    fn joint_law(&self, of: fn(&ClientRound) -> &[f64]) -> Vec<f64> {
        let mut law = Vec::new();
        for x in 0..self.stride(self.clients.len()) {
            let each = self.clients.iter().enumerate();
            law.push(each.map(|(k, client)| of(client)[self.place(k, x)]).product());
        }
        law
    }

    /// P(x) of each joint position in stationarity.
    fn stationary_law(&self) -> Vec<f64> {
        self.joint_law(|client| &client.stationary_law)
    }

    /// Moves one client's trajectory through a round, where the others stay: for each joint position x' in which it
    /// ends in the state s', Σ_s `map`(s, s', block) of the blocks of the positions from which it comes.
    fn along(
        &self,
        client: usize,
        blocks: &[Matrix],
        map: &dyn Fn(usize, usize, &Matrix) -> Matrix,
    ) -> ByPosition {
        let stride = self.stride(client);
        let states = self.clients[client].states;
        let mut moved = Vec::with_capacity(blocks.len());
        for (x, block) in blocks.iter().enumerate() {
            let to = self.place(client, x);
            // The joint position in which this client's trajectory is in state 0, and the others are as in x.
            let first = x - to * stride;
            let from = (0..states).map(|s| map(s, to, &blocks[first + s * stride]));
            moved.push(from.reduce(added).unwrap_or_else(|| block.clone()));
        }
        moved
    }

    /// Moves one client's trajectory through a round, with its part of z as the left factor: E 1{x'} m aᵀ from
    /// E 1{x} z aᵀ, where m is the mean of what the client adds to z.
    fn along_mean(&self, client: usize, blocks: &[Matrix]) -> ByPosition {
        let round = &self.clients[client];
        self.along(client, blocks, &|s, to, block| round.mean(s, to).times(block))
    }

    /// Moves the trajectories of all clients but those in `except` through a round, and leaves the vectors in the
    /// blocks as they are.
    fn passed(&self, blocks: &[Matrix], except: &[usize]) -> ByPosition {
        let mut blocks = blocks.to_vec();
        for k in (0..self.clients.len()).filter(|k| !except.contains(k)) {
            let passage = &self.clients[k].passage;
            blocks = self.along(k, &blocks, &|s, to, block| block.scaled(passage[(s, to)]));
        }
        blocks
    }

    /// E 1{x} a zᵀ after a round from `rows`, E 1{x} a zᵀ before it, for any vector a that the round does not change.
    /// With a = 1 these are the means of z. It needs no map of second moments.
    fn rows_after(&self, rows: &[Matrix]) -> ByPosition {
        let mut out: ByPosition =
            self.passed(rows, &[]).iter().map(|block| block.times_transposed(&self.keep)).collect();
        for (k, client) in self.clients.iter().enumerate() {
            let alone = self.passed(rows, &[k]);
            let moved =
                self.along(k, &alone, &|s, to, block| block.times_transposed(client.mean(s, to)));
            out.iter_mut().zip(&moved).for_each(|(sum, more)| sum.add(1.0, more));
        }
        out
    }

    /// E 1{x} z zᵀ after a round from `state`, E 1{x} z zᵀ before it. It needs the clients' maps of second moments,
    /// which [`Self::of_means`] does not have.
    fn after(&self, state: &[Matrix]) -> ByPosition {
        // z' = K z + Σ_k (the part of client k): first K z zᵀ Kᵀ, then for each client its products with K z,
        // with itself and with later clients.
        let mut out: ByPosition = self
            .passed(state, &[])
            .iter()
            .map(|block| self.keep.times(block).times_transposed(&self.keep))
            .collect();
        for (k, client) in self.clients.iter().enumerate() {
            let Some(squares) = &client.squares else { continue };
            let alone = self.passed(state, &[k]);
            let crossed = self.along_mean(k, &alone);
            let begun: ByPosition = alone
                .iter()
                .map(|block| client.begin.times(block).times_transposed(&client.begin))
                .collect();
            let own = self.along(k, &begun, &|s, to, block| client.square(squares, s, to, block));
            for ((sum, crossed), own) in out.iter_mut().zip(&crossed).zip(&own) {
                let crossed = crossed.times_transposed(&self.keep);
                sum.add(1.0, &crossed);
                sum.add(1.0, &crossed.transpose());
                sum.add(1.0, &client.take.times(own).times_transposed(&client.take));
            }
            for (other, second) in self.clients.iter().enumerate().skip(k + 1) {
                let left = self.along_mean(k, &self.passed(state, &[k, other]));
                let both = self.along(other, &left, &|s, to, block| {
                    block.times_transposed(second.mean(s, to))
                });
                for (sum, both) in out.iter_mut().zip(&both) {
                    sum.add(1.0, both);
                    sum.add(1.0, &both.transpose());
                }
            }
        }
        out.iter().map(Matrix::symmetric_part).collect()
    }

    /// The matrix L with L z = θ̂ − θ* for the estimate θ̂, the weighted sum of the runs' θ, d × D. Where the weights
    /// do not add up to 1, their sum less 1 times θ* is added, because every e of z is a distance from θ*.
    fn estimate(&self) -> Matrix {
        let mut out = Matrix::zeros(self.layout.d, self.layout.state_length());
        let sum = self.runs.runs.iter().fold(0.0, |sum, run| sum + run.weight);
        for i in 0..self.layout.d {
            for (r, run) in self.runs.runs.iter().enumerate() {
                out[(i, self.layout.error(r) + i)] = run.weight;
            }
            if (sum - 1.0).abs() > 1e-12 {
                out[(i, 0)] = (sum - 1.0) * self.facts.optimum()[i];
            }
        }
        out
    }

    /// The moments at these rounds, in increasing order, from θ_0 = `start`, with all clients' trajectories in their
    /// laws before the first round. The estimate is the mean of the iterates after round `burn_in`, if that is given,
    /// and otherwise the last iterate, which it is up to round `burn_in` too. With a burn-in `sq_error_average` is NaN.
    /// The moments are cached with results: a change of a bit needs another [`crate::moments::VERSION`].
    pub fn at_rounds(&self, start: &[f64], rounds: &[u64], burn_in: Option<u64>) -> Vec<Moments> {
        let estimate = self.estimate();
        let size = self.layout.state_length();
        let mut z = vec![0.0; size];
        z[0] = 1.0;
        for r in 0..self.layout.runs {
            let e = self.layout.error(r);
            (0..self.layout.d).for_each(|i| z[e + i] = start[i] - self.facts.optimum()[i]);
        }
        let law = self.joint_law(|client| &client.start_law);
        let mut state: ByPosition = law.iter().map(|p| Matrix::outer(&z, &z).scaled(*p)).collect();
        let mut past = PastEstimates::new(self.layout.d, size, state.len());
        let mut out = Vec::new();
        let mut round = 0;
        for &target in rounds {
            while round < target {
                past.rows = self.rows_after(&past.rows);
                state = self.after(&state);
                round += 1;
                if round > burn_in.unwrap_or(0) {
                    past.observe(&state, &estimate);
                }
            }
            let last = error_moments(&sum_of(&state), &estimate);
            let of_mean = past.moments_of_mean();
            if burn_in.is_some() {
                // The estimate is the mean, once there is one.
                out.push(recorded(round, of_mean.unwrap_or(last), f64::NAN));
            } else {
                let square_of_mean = of_mean.as_ref().unwrap_or(&last).square.trace();
                out.push(recorded(round, last, square_of_mean));
            }
        }
        out
    }

    /// The blocks of `rows` rows that a round, the map `after`, leaves as they are, and whose first numbers are
    /// E 1{x} in stationarity: 1 row for means of z, and D rows for second moments. `None` if there are none, or none
    /// are found. That moments converge to them is not checked here.
    fn fixed_blocks(
        &self,
        rows: usize,
        after: &dyn Fn(&[Matrix]) -> ByPosition,
    ) -> Option<ByPosition> {
        let law = self.stationary_law();
        let count = law.len() * self.unknown(rows);
        let constant = self.numbers(&after(&self.blocks(rows, 1.0, &vec![0.0; count])));
        // The linear part of the affine map of the unknown numbers. A closure, since the fixed point needs it as
        // a map and, if it is small, as a matrix.
        let linear_part = |x: &[f64]| self.numbers(&after(&self.blocks(rows, 0.0, x)));
        let found = fixed_point(&constant, linear_part, || Matrix::of_map(count, linear_part))?;
        Some(self.blocks(rows, 1.0, &found))
    }

    /// How many numbers of a block of `rows` rows are unknown: all but E 1{x}, which is known, so that the map
    /// of the unknown numbers is affine.
    fn unknown(&self, rows: usize) -> usize {
        rows * self.layout.state_length() - 1
    }

    /// The blocks of `rows` rows with these unknown numbers, one block after the other. Their first number E 1{x} is
    /// `share` times P(x) in stationarity: 1 for moments, and 0 for differences of moments.
    fn blocks(&self, rows: usize, share: f64, numbers: &[f64]) -> ByPosition {
        let law = self.stationary_law();
        let unknown = self.unknown(rows);
        let mut blocks = Vec::with_capacity(law.len());
        for (x, probability) in law.into_iter().enumerate() {
            let mut all = vec![share * probability];
            all.extend_from_slice(&numbers[x * unknown..][..unknown]);
            blocks.push(Matrix::from_entries(rows, self.layout.state_length(), all));
        }
        blocks
    }

    /// The unknown numbers of blocks, one block after the other: all but the first of each.
    fn numbers(&self, blocks: &[Matrix]) -> Vec<f64> {
        blocks.iter().flat_map(|block| block.entries()[1..].iter().copied()).collect()
    }

    /// Whether second moments are proven to converge: whether the map of E 1{x} z zᵀ over all x, without the number 1
    /// in z, contracts. The proof needs that this map preserves tuples of positive semidefinite matrices, as it does.
    fn squares_contract(&self) -> bool {
        let size = self.layout.state_length();
        let positions = self.stationary_law().len();
        let blocks = SymmetricBlocks::new(vec![size - 1; positions]);
        // A closure, since the proof needs it as a map and, if it is small, as a matrix.
        let map = |numbers: &[f64]| {
            let mut state = vec![Matrix::zeros(size, size); positions];
            for ((x, i, j), entry) in blocks.places().zip(numbers) {
                state[x][(i + 1, j + 1)] = *entry;
                state[x][(j + 1, i + 1)] = *entry;
            }
            let after = self.after(&state);
            blocks.places().map(|(x, i, j)| after[x][(i + 1, j + 1)]).collect()
        };
        blocks.contracts(map, || Matrix::of_map(blocks.length(), map))
    }

    /// Whether the means E 1{x} z are proven to converge: the map of all of them but E 1{x} contracts.
    fn means_contract(&self) -> bool {
        let count = self.stationary_law().len() * self.unknown(1);
        let map =
            Matrix::of_map(count, |x| self.numbers(&self.rows_after(&self.blocks(1, 0.0, x))));
        contracts(&map)
    }

    /// The stationary moments; `None` if second moments are not proven to converge, or none are found. The blocks
    /// have the second moments of the first run's θ − θ*; blocks of control variates are not given.
    pub fn stationary(&self) -> Option<(Moments, CovarianceBlocks)> {
        if !self.squares_contract() {
            return None;
        }
        let size = self.layout.state_length();
        let whole = sum_of(&self.fixed_blocks(size, &|state| self.after(state))?);
        if (0..size).any(|i| whole[(i, i)] < 0.0 || !whole[(i, i)].is_finite()) {
            return None;
        }
        let e = self.layout.error(0);
        let theta = Matrix::from_fn(self.layout.d, self.layout.d, |i, j| whole[(e + i, e + j)]);
        let blocks = CovarianceBlocks {
            theta,
            theta_variate: vec![],
            variate: vec![],
            variate_pair: vec![],
        };
        let moments = error_moments(&whole, &self.estimate());
        Some((recorded(u64::MAX, moments, f64::NAN), blocks))
    }
}

/// The mean of the estimate that rounds along trajectories leave as it is, d numbers. It is not θ*, not even with
/// control variates, since a draw is correlated with the iterate. It is lim E θ_t if [`means_converge`]. `None` unless
/// [`are_closed`], or if there is no such mean or it is not found.
pub fn limit(facts: &dyn Facts, runs: &LocalRuns) -> Option<Vec<f64>> {
    let exact = TrajectoryMoments::of_means(facts, runs)?;
    let found = exact.fixed_blocks(1, &|rows| exact.rows_after(rows))?;
    let mut limit = exact.estimate().apply(sum_of(&found).entries());
    axpy(1.0, facts.optimum(), &mut limit);
    limit.iter().all(|x| x.is_finite()).then_some(limit)
}

/// Whether E θ_t is proven to converge along trajectories; false as well unless [`are_closed`].
pub fn means_converge(facts: &dyn Facts, runs: &LocalRuns) -> bool {
    TrajectoryMoments::of_means(facts, runs).is_some_and(|exact| exact.means_contract())
}

/// The sum of blocks over all joint positions: E a bᵀ from E 1{x} a bᵀ.
fn sum_of(blocks: &[Matrix]) -> Matrix {
    let mut sum = Matrix::zeros(blocks[0].rows(), blocks[0].cols());
    blocks.iter().for_each(|block| sum.add(1.0, block));
    sum
}

/// The moments of the estimate's error ε = L z, where `whole` is E z zᵀ and `estimate` is L.
fn error_moments(whole: &Matrix, estimate: &Matrix) -> ErrorMoments {
    let square = estimate.times(whole).times_transposed(estimate);
    // The first number of z is 1.
    let mean = estimate.apply(whole.row(0));
    ErrorMoments { square, mean }
}

/// The record of the moments of the estimate's error after a round, or at stationarity for the round `u64::MAX`.
fn recorded(round: u64, moments: ErrorMoments, sq_error_average: f64) -> Moments {
    let ErrorMoments { square, mean } = moments;
    let mut covariance = square.clone();
    covariance.add_outer(-1.0, &mean, &mean);
    let rest = Moments::at_rest(mean, covariance);
    Moments { round, sq_error: square.trace(), sq_error_average, ..rest }
}

/// Moments of the sum Σ ε of the estimate's errors over the rounds after the burn-in, for the mean of the estimates.
struct PastEstimates {
    /// The number of rounds in the sum.
    count: u64,
    /// E 1{x} (Σ ε) zᵀ, d × D: how the sum and the state z are correlated, since the next error depends on z.
    rows: ByPosition,
    /// E (Σ ε)(Σ ε)ᵀ, d × d.
    square: Matrix,
    /// E Σ ε, d numbers.
    sum: Vec<f64>,
}

impl PastEstimates {
    /// The sum over no rounds, where z has `size` numbers and there are `positions` joint positions.
    fn new(d: usize, size: usize, positions: usize) -> Self {
        let rows = vec![Matrix::zeros(d, size); positions];
        Self { count: 0, rows, square: Matrix::zeros(d, d), sum: vec![0.0; d] }
    }

    /// Adds the error L z of a state, where `state` is E 1{x} z zᵀ and `estimate` is L. `rows` must have followed
    /// the round that led to the state.
    fn observe(&mut self, state: &[Matrix], estimate: &Matrix) {
        let cross = sum_of(&self.rows).times_transposed(estimate);
        let ErrorMoments { square, mean } = error_moments(&sum_of(state), estimate);
        self.square.add(1.0, &cross);
        self.square.add(1.0, &cross.transpose());
        self.square.add(1.0, &square);
        axpy(1.0, &mean, &mut self.sum);
        let new = state.iter().map(|block| estimate.times(block));
        self.rows.iter_mut().zip(new).for_each(|(row, new)| row.add(1.0, &new));
        self.count += 1;
    }

    /// The moments of the mean of the errors that were observed so far; `None` if none were.
    fn moments_of_mean(&self) -> Option<ErrorMoments> {
        let n = self.count as f64;
        if self.count == 0 {
            return None;
        }
        let mean = self.sum.iter().map(|x| x / n).collect();
        Some(ErrorMoments { square: self.square.scaled(1.0 / (n * n)), mean })
    }
}

#[cfg(test)]
mod tests;
