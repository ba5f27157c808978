//! The environments of clients, and the exact facts of each.

use crate::kernel::alias::Alias;
use crate::kernel::{Rows, axpy, dot, products};
use crate::linalg::{Matrix, Singular};
use crate::problem::affine::Affine;
use crate::problem::chain::Chain;
use thiserror::Error;

/// One client's environment: a state kernel under the policy, and rewards.
pub struct Environment {
    /// P_c(s' | s), S × S.
    pub transitions: Matrix,
    /// r_c(s), S numbers.
    pub rewards: Vec<f64>,
}

/// Why there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoSolution {
    /// This client's chain has no unique stationary distribution.
    #[error("client {0}'s chain has no unique stationary distribution")]
    Stationary(usize),
    /// This client's mean system is singular.
    #[error("client {0}'s mean system is singular")]
    Client(usize),
    /// The mean of the clients' systems is singular.
    #[error("the clients' mean system is singular")]
    Mean,
}

/// The exact facts of one environment.
pub struct EnvironmentFacts {
    pub mean: Affine,
    pub chain: Chain,
    /// The stationary distribution of the chain, S numbers.
    pub shares: Vec<f64>,
    pub rewards: Vec<f64>,
}

impl EnvironmentFacts {
    /// The pairs (s, s') that occur, with their probabilities.
    pub fn pairs(&self) -> impl Iterator<Item = Transition> {
        occurring_pairs(&self.shares, &self.chain)
    }

    /// P(· | s) of every state.
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

/// (s, s') and its probability.
pub type Transition = (usize, usize, f64);

/// The pairs (s, s') that occur in a chain whose states have these shares.
fn occurring_pairs(shares: &[f64], chain: &Chain) -> impl Iterator<Item = Transition> {
    (0..shares.len())
        .flat_map(move |s: usize| chain.from(s).map(move |(next, p)| (s, next, shares[s] * p)))
        .filter(|&(_, _, p)| p > 0.0)
}

/// The features and the discount, which all clients share.
pub struct Features {
    pub d: usize,
    /// φ, S rows of d.
    pub phi: Vec<f64>,
    pub discount: f64,
}

impl Features {
    /// φ(s), the features of a state, d numbers.
    pub fn row(&self, s: usize) -> &[f64] {
        &self.phi[s * self.d..][..self.d]
    }

    /// φ(s) − γφ(s'), d numbers: its product with θ is the change of value along a transition.
    pub fn difference(&self, s: usize, next: usize) -> Vec<f64> {
        self.row(s).iter().zip(self.row(next)).map(|(x, y)| x - self.discount * y).collect()
    }

    /// The features of all states, S rows φ(s) of d numbers.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.phi, self.d, self.d)
    }

    /// Whether sums over pairs are taken over the successors of each state first: they are
    /// much shorter, and have other last bits.
    pub fn sums_successors_first(&self) -> bool {
        self.d > 32
    }

    /// The mean field E φ(s)(φ(s) − γφ(s'))ᵀθ − E φ(s) r(s) of a chain with these shares of
    /// states.
    pub fn mean_system(
        &self,
        chain: &Chain,
        shares: &[f64],
        rewards: &[f64],
    ) -> Result<Affine, Singular> {
        let mut matrix = Matrix::zeros(self.d, self.d);
        let mut offset = vec![0.0; self.d];
        if self.sums_successors_first() {
            let states = chain.states();
            let mut changes = Vec::with_capacity(states * self.d);
            for s in 0..states {
                let mut later = vec![0.0; self.d];
                chain.from(s).for_each(|(next, p)| axpy(p, self.row(next), &mut later));
                let pairs = self.row(s).iter().zip(later);
                changes.extend(pairs.map(|(x, y)| shares[s] * (x - self.discount * y)));
                axpy(shares[s] * rewards[s], self.row(s), &mut offset);
            }
            matrix.add_outer_products(self.rows(), Rows::new(&changes, self.d, self.d));
        } else {
            for (s, next, p) in occurring_pairs(shares, chain) {
                matrix.add_outer(p, self.row(s), &self.difference(s, next));
                axpy(p * rewards[s], self.row(s), &mut offset);
            }
        }
        Affine::new(matrix, offset)
    }

    /// The facts of an environment; `client` is its first client.
    pub fn solve_environment(
        &self,
        environment: Environment,
        client: usize,
    ) -> Result<EnvironmentFacts, NoSolution> {
        let Environment { transitions, rewards } = environment;
        let chain = Chain::new(&transitions);
        let shares = chain.stationary().map_err(|_| NoSolution::Stationary(client))?;
        let mean =
            self.mean_system(&chain, &shares, &rewards).map_err(|_| NoSolution::Client(client))?;
        Ok(EnvironmentFacts { mean, chain, shares, rewards })
    }

    /// P(s) E δ² of every state s, with δ the temporal difference at θ*.
    pub fn squares(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; environment.shares.len()];
        products(self.rows(), optimum, &mut values);
        let mut squares = vec![0.0; values.len()];
        for (s, next, p) in environment.pairs() {
            let delta = values[s] - self.discount * values[next] - environment.rewards[s];
            squares[s] += p * delta * delta;
        }
        squares
    }

    /// The trace of the covariance of an environment's field F at θ*: E‖F‖² − ‖E F‖².
    pub fn trace(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> f64 {
        let squares = self.squares(environment, optimum);
        let mean_square =
            self.rows().iter().zip(squares).fold(0.0, |sum, (x, p)| sum + p * dot(x, x));
        let mut field = vec![0.0; self.d];
        environment.mean.evaluate(optimum, &mut field);
        mean_square - dot(&field, &field)
    }

    /// The covariance of an environment's field at θ*.
    pub fn covariance(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> Matrix {
        let mut second = if self.sums_successors_first() {
            Matrix::weighted_gram(self.rows(), &self.squares(environment, optimum))
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
