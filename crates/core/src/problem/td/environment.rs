//! The environments of clients, and the exact facts of each. γ is the discount of rewards here, not a step size.

use crate::kernel::alias::Alias;
use crate::kernel::{Rows, axpy, dot, products};
use crate::linalg::Matrix;
use crate::problem::affine::Affine;
use crate::problem::chain::Chain;
use thiserror::Error;

/// One client's environment: the transition probabilities of its states under the policy, and its rewards.
pub struct Environment {
    /// P_c(s' | s) in row s, S × S.
    pub transitions: Matrix,
    /// r_c(s), S numbers.
    pub rewards: Vec<f64>,
}

/// Why there is no instance on given environments: some θ* is not unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoSolution {
    /// The chain of the client with this index has no unique stationary distribution.
    #[error("client {0}'s chain has no unique stationary distribution")]
    Stationary(usize),
    /// The mean system Ā θ = b̄ of the client with this index is singular.
    #[error("client {0}'s mean system is singular")]
    Client(usize),
    /// The mean of the clients' mean systems is singular.
    #[error("the clients' mean system is singular")]
    Mean,
}

/// The exact facts of one environment, which several clients may have.
pub struct EnvironmentFacts {
    /// The mean field under the stationary distribution.
    pub mean: Affine,
    /// The root of the mean field, the TD fixed point θ_c*, d numbers.
    pub fixed_point: Vec<f64>,
    /// The chain of the states, P_c(s' | s).
    pub chain: Chain,
    /// The stationary distribution μ_c of the chain, S numbers.
    pub stationary: Vec<f64>,
    /// r_c(s), S numbers.
    pub rewards: Vec<f64>,
}

impl EnvironmentFacts {
    /// The pairs (s, s') that occur in the stationary chain, with their probabilities μ_c(s) P_c(s' | s), by
    /// increasing s and then s'. From these independent draws are made.
    pub fn pairs(&self) -> impl Iterator<Item = Transition> {
        occurring_pairs(&self.stationary, &self.chain)
    }

    /// For each state s, in their order, the table from which s' ~ P_c(· | s) is drawn along a trajectory. Independent
    /// draws of pairs have other tables.
    pub fn successors(&self) -> Vec<Alias<u32>> {
        let mut rows = Vec::with_capacity(self.chain.states());
        for s in 0..self.chain.states() {
            let occurring = self.chain.from(s).filter(|(_, p)| *p > 0.0);
            let successors: Vec<(u32, f64)> = occurring.map(|(next, p)| (next as u32, p)).collect();
            rows.push(Alias::new(&successors));
        }
        rows
    }
}

/// A pair of states (s, s') and its probability.
pub type Transition = (usize, usize, f64);

/// The pairs (s, s') that occur in a chain with this stationary distribution μ, with their probabilities
/// μ(s) P(s' | s), all above 0.
fn occurring_pairs(stationary: &[f64], chain: &Chain) -> impl Iterator<Item = Transition> {
    (0..stationary.len())
        .flat_map(move |s: usize| chain.from(s).map(move |(next, p)| (s, next, stationary[s] * p)))
        .filter(|&(_, _, p)| p > 0.0)
}

/// The features and the discount, which all clients share.
pub struct Features {
    /// The number of features of a state, and the dimension of θ.
    pub d: usize,
    /// φ, S rows of d.
    pub phi: Vec<f64>,
    /// γ, the discount of rewards, not a step size.
    pub discount: f64,
}

impl Features {
    /// φ(s), the features of a state, d numbers.
    pub fn row(&self, s: usize) -> &[f64] {
        &self.phi[s * self.d..][..self.d]
    }

    /// φ(s) − γφ(s'), d numbers: its product with θ, less the reward r(s), is the temporal difference at θ.
    pub fn difference(&self, s: usize, next: usize) -> Vec<f64> {
        self.row(s).iter().zip(self.row(next)).map(|(x, y)| x - self.discount * y).collect()
    }

    /// The features of all states, S rows φ(s) of d numbers.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.phi, self.d, self.d)
    }

    /// Whether a sum over the pairs (s, s') is taken over the successors s' of each state first, and then over
    /// the states: it then has one d × d product for each state and not for each pair. Results have other last
    /// bits, so that the limit must not move.
    pub fn sums_successors_first(&self) -> bool {
        self.d > 32
    }

    /// The mean field E φ(s)(φ(s) − γφ(s'))ᵀθ − E φ(s) r(s) of TD(0) on a chain with this stationary distribution
    /// and these rewards, S numbers each. Its root is the TD fixed point. The chain is of a client, or the mean of all.
    pub fn mean_system(&self, chain: &Chain, stationary: &[f64], rewards: &[f64]) -> Affine {
        let mut matrix = Matrix::zeros(self.d, self.d);
        let mut offset = vec![0.0; self.d];
        if self.sums_successors_first() {
            let states = chain.states();
            let mut changes = Vec::with_capacity(states * self.d);
            for s in 0..states {
                // E φ(s'), given s.
                let mut next_features = vec![0.0; self.d];
                chain.from(s).for_each(|(next, p)| axpy(p, self.row(next), &mut next_features));
                let pairs = self.row(s).iter().zip(next_features);
                changes.extend(pairs.map(|(x, y)| stationary[s] * (x - self.discount * y)));
                axpy(stationary[s] * rewards[s], self.row(s), &mut offset);
            }
            matrix.add_outer_products(self.rows(), Rows::new(&changes, self.d, self.d));
        } else {
            for (s, next, p) in occurring_pairs(stationary, chain) {
                matrix.add_outer(p, self.row(s), &self.difference(s, next));
                axpy(p * rewards[s], self.row(s), &mut offset);
            }
        }
        Affine::new(matrix, offset)
    }

    /// The facts of an environment; `client` is the first client that has it, whom an error names.
    ///
    /// # Errors
    /// [`NoSolution`] if its stationary distribution or its fixed point is not unique.
    pub fn solve_environment(
        &self,
        environment: Environment,
        client: usize,
    ) -> Result<EnvironmentFacts, NoSolution> {
        let Environment { transitions, rewards } = environment;
        let chain = Chain::new(&transitions);
        let stationary = chain.stationary().map_err(|_| NoSolution::Stationary(client))?;
        let mean = self.mean_system(&chain, &stationary, &rewards);
        let fixed_point = mean.solve().map_err(|_| NoSolution::Client(client))?;
        Ok(EnvironmentFacts { mean, fixed_point, chain, stationary, rewards })
    }

    /// For each state s, μ_c(s) E(δ² | s), with δ = φ(s)ᵀθ − γφ(s')ᵀθ − r(s) the temporal difference at θ = `optimum`,
    /// which is the θ* of all clients: the weight of φ(s)φ(s)ᵀ in the second moment of the field δφ(s).
    pub fn weighted_square_differences(
        &self,
        environment: &EnvironmentFacts,
        optimum: &[f64],
    ) -> Vec<f64> {
        let mut values = vec![0.0; environment.stationary.len()];
        products(self.rows(), optimum, &mut values);
        let mut squares = vec![0.0; values.len()];
        for (s, next, p) in environment.pairs() {
            let delta = values[s] - self.discount * values[next] - environment.rewards[s];
            squares[s] += p * delta * delta;
        }
        squares
    }

    /// The trace of the covariance of an environment's field F at `optimum`, the θ* of all clients: E‖F‖² − ‖E F‖².
    pub fn noise_trace(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> f64 {
        let weights = self.weighted_square_differences(environment, optimum);
        let mean_square =
            self.rows().iter().zip(weights).fold(0.0, |sum, (x, p)| sum + p * dot(x, x));
        let mut field = vec![0.0; self.d];
        environment.mean.evaluate(optimum, &mut field);
        mean_square - dot(&field, &field)
    }

    /// The covariance, d × d, of an environment's field δφ(s) at `optimum`, the θ* of all clients, where the mean of
    /// the field is not 0 if environments differ.
    pub fn noise_covariance(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> Matrix {
        let mut second = if self.sums_successors_first() {
            let weights = self.weighted_square_differences(environment, optimum);
            Matrix::weighted_gram(self.rows(), &weights)
        } else {
            let mut second = Matrix::zeros(self.d, self.d);
            for (s, next, p) in environment.pairs() {
                let change = self.difference(s, next);
                let along = change.iter().zip(optimum).fold(0.0, |sum, (a, b)| sum + a * b);
                let delta = along - environment.rewards[s];
                second.add_outer(p * delta * delta, self.row(s), self.row(s));
            }
            second
        };
        let mut field = vec![0.0; self.d];
        environment.mean.evaluate(optimum, &mut field);
        second.add_outer(-1.0, &field, &field);
        second
    }
}
