//! TD(0) with linear features on any finite chains (SCAFFLSA §5): the instances of
//! [`super::garnet`] and [`super::mdp`].
//!
//! θ_c* is the TD fixed point (SCAFFLSA 19, 20), not the projection (15).

use super::affine::{Affine, rank_one_noise};
use super::{Facts, Faults, Problem};
use crate::kernel::alias::Alias;
use crate::kernel::{Cohort, axpy, dot, td};
use crate::linalg::{Matrix, Singular, solve};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most transitions before the first step. The planner does not count them as
/// local steps, so they have a separate limit.
const MOST_BURN_IN: u64 = 10_000_000;

/// Whether the draws (s, s') of a client are independent or follow its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// A new s ~ μ_c in each oracle call.
    #[default]
    Independent,
    /// One trajectory per client: s' of an oracle call is s of the next.
    #[serde(rename_all = "kebab-case")]
    Markov {
        /// The number of transitions from a uniformly drawn state before the first oracle call.
        #[schemars(example = 100)]
        burn_in: u64,
    },
}

impl Noise {
    /// Whether draws are independent.
    pub fn is_independent(&self) -> bool {
        *self == Self::Independent
    }

    /// Adds a fault if the burn-in is too long.
    pub fn check(&self, faults: &mut Faults) {
        if let Self::Markov { burn_in } = *self {
            let message = || format!("must be at most {MOST_BURN_IN}, not {burn_in}");
            faults.require(burn_in <= MOST_BURN_IN, "noise.markov.burn-in", message);
        }
    }
}

/// One client's environment: a state kernel under the policy, and rewards.
pub struct Environment {
    /// P_c(s' | s), S × S.
    pub transitions: Matrix,
    /// r_c(s), S numbers.
    pub rewards: Vec<f64>,
}

/// Why there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSolution {
    /// This client's chain has no unique stationary distribution.
    Stationary(usize),
    /// This client's mean system is singular.
    Client(usize),
    /// The mean of the clients' systems is singular.
    Mean,
}

/// The stationary distribution of a chain: μP = μ, Σμ = 1.
///
/// # Errors
/// [`Singular`] if it is not unique.
pub fn stationary(transitions: &Matrix) -> Result<Vec<f64>, Singular> {
    let n = transitions.rows();
    let system = Matrix::from_fn(n, n, |i, j| {
        if i + 1 == n { 1.0 } else { transitions[(j, i)] - f64::from(u8::from(i == j)) }
    });
    let mut rhs = vec![0.0; n];
    rhs[n - 1] = 1.0;
    let mut mu = solve(&system, &rhs)?;
    // Transient states come out as 0 up to the last bits of double-double.
    mu.iter_mut().for_each(|p| *p = if *p < 1e-25 { 0.0 } else { *p });
    // Rows that are not probabilities pass the solver; their solution fails this check.
    let sum: f64 = mu.iter().sum();
    let next = |j: usize| (0..n).map(|i| mu[i] * transitions[(i, j)]).sum::<f64>();
    let invariant = (0..n).all(|j| (next(j) - mu[j]).abs() <= ROUNDING);
    if (sum - 1.0).abs() <= ROUNDING && invariant { Ok(mu) } else { Err(Singular) }
}

/// How far probabilities may be from summing to 1: ten times what a user's may be.
const ROUNDING: f64 = 10.0 * super::atoms::ROUNDING;

/// (s, s') and its probability.
type Transition = (usize, usize, f64);

/// The exact facts of one environment.
struct EnvironmentFacts {
    mean: Affine,
    /// The transitions that occur.
    pairs: Vec<Transition>,
    rewards: Vec<f64>,
}

/// The chain of an environment.
struct Chain {
    /// The stationary distribution.
    mu: Vec<f64>,
    transitions: Matrix,
}

impl Chain {
    /// P(· | s) of every state.
    fn successors(&self) -> Vec<Alias<u32>> {
        let row = |s: usize| {
            let successors = self.transitions.row(s).iter().enumerate().filter(|(_, p)| **p > 0.0);
            Alias::new(&successors.map(|(next, p)| (next as u32, *p)).collect::<Vec<_>>())
        };
        (0..self.transitions.rows()).map(row).collect()
    }
}

/// The features and the discount, which all clients share.
struct Features {
    d: usize,
    /// φ, S rows of d.
    phi: Vec<f64>,
    discount: f64,
}

impl Features {
    /// φ(s).
    fn row(&self, s: usize) -> &[f64] {
        &self.phi[s * self.d..][..self.d]
    }

    /// φ(s) − γφ(s').
    fn difference(&self, s: usize, next: usize) -> Vec<f64> {
        self.row(s).iter().zip(self.row(next)).map(|(x, y)| x - self.discount * y).collect()
    }

    /// The mean field E φ(s)(φ(s) − γφ(s'))ᵀθ − E φ(s) r(s).
    fn mean_system(&self, pairs: &[Transition], rewards: &[f64]) -> Result<Affine, Singular> {
        let (mut matrix, mut offset) = (Matrix::zeros(self.d, self.d), vec![0.0; self.d]);
        for &(s, next, p) in pairs {
            matrix.add_outer(p, self.row(s), &self.difference(s, next));
            axpy(p * rewards[s], self.row(s), &mut offset);
        }
        Affine::new(matrix, offset)
    }

    /// The facts of an environment; `client` is its first client.
    fn solve(
        &self,
        environment: Environment,
        client: usize,
    ) -> Result<(EnvironmentFacts, Chain), NoSolution> {
        let Environment { transitions, rewards } = environment;
        let mu = stationary(&transitions).map_err(|_| NoSolution::Stationary(client))?;
        let pairs = occurring_pairs(&mu, &transitions);
        let mean = self.mean_system(&pairs, &rewards).map_err(|_| NoSolution::Client(client))?;
        Ok((EnvironmentFacts { mean, pairs, rewards }, Chain { mu, transitions }))
    }

    /// The covariance of an environment's field at θ*.
    fn covariance(&self, environment: &EnvironmentFacts, optimum: &[f64]) -> Matrix {
        let mut second = Matrix::zeros(self.d, self.d);
        for &(s, next, p) in &environment.pairs {
            let change = self.difference(s, next);
            let along = change.iter().zip(optimum).fold(0.0, |sum, (a, b)| sum + a * b);
            let delta = along - environment.rewards[s];
            second.add_outer(p * delta * delta, self.row(s), self.row(s));
        }
        let mut field = vec![0.0; self.d];
        environment.mean.evaluate(optimum, &mut field);
        second.add_outer(-1.0, &field, &field);
        second
    }
}

/// An instance.
pub struct Td {
    features: Features,
    tables: td::TransitionTables,
    /// One entry per distinct environment.
    environments: Vec<EnvironmentFacts>,
    /// The index of each client's environment.
    environment_of: Vec<usize>,
    optimum: Vec<f64>,
    /// Σφ, d × d.
    gram: Matrix,
    virtual_optimum: Option<Vec<f64>>,
    /// P_c(· | s) for each client and state; empty if draws are independent.
    chains: Vec<Vec<Alias<u32>>>,
    burn_in: u64,
}

impl Td {
    /// The instance with features `phi` (S rows of d) on these environments;
    /// client c has number `environment_of[c]`.
    ///
    /// # Errors
    /// [`NoSolution`] if there is no unique solution.
    pub fn new(
        phi: Vec<f64>,
        d: usize,
        discount: f64,
        environments: impl Iterator<Item = Environment>,
        environment_of: Vec<usize>,
        noise: Noise,
    ) -> Result<Self, NoSolution> {
        let (states, n) = (phi.len() / d, environment_of.len() as f64);
        let mut tables = td::TransitionTables::new(d, &phi, discount);
        let features = Features { d, phi, discount };
        let (mut facts, mut chains) = (Vec::new(), Vec::new());
        for (number, environment) in environments.enumerate() {
            let first = environment_of.iter().position(|&e| e == number).unwrap_or(number);
            let (solved, chain) = features.solve(environment, first)?;
            facts.push(solved);
            chains.push(chain);
        }
        let mut first = vec![None; facts.len()];
        let (mut gram, mut kernel) = (Matrix::zeros(d, d), Matrix::zeros(states, states));
        let mut reward = vec![0.0; states];
        for (c, &number) in environment_of.iter().enumerate() {
            for (s, p) in chains[number].mu.iter().enumerate() {
                gram.add_outer(p / n, features.row(s), features.row(s));
            }
            kernel.add(1.0 / n, &chains[number].transitions);
            axpy(1.0 / n, &facts[number].rewards, &mut reward);
            match first[number] {
                Some(earlier) => tables.repeat(earlier),
                None => tables.push(&facts[number].pairs, facts[number].rewards.clone()),
            }
            first[number].get_or_insert(c);
        }
        let means = environment_of.iter().map(|&e| &facts[e].mean);
        let optimum = Affine::mean(means).map_err(|_| NoSolution::Mean)?.optimum;
        // A mean of kernels may have no unique stationary distribution; then θ̃ is unknown.
        let virtual_optimum = stationary(&kernel).ok().and_then(|mu| {
            Some(features.mean_system(&occurring_pairs(&mu, &kernel), &reward).ok()?.optimum)
        });
        let (chains, burn_in) = match noise {
            Noise::Independent => (Vec::new(), 0),
            Noise::Markov { burn_in } => {
                (environment_of.iter().map(|&e| chains[e].successors()).collect(), burn_in)
            }
        };
        Ok(Self {
            features,
            tables,
            environments: facts,
            environment_of,
            optimum,
            gram,
            virtual_optimum,
            chains,
            burn_in,
        })
    }

    fn environment(&self, client: usize) -> &EnvironmentFacts {
        &self.environments[self.environment_of[client]]
    }

    /// The fused kernel's tables, for benches.
    pub fn tables(&self) -> &td::TransitionTables {
        &self.tables
    }
}

/// The pairs (s, s') that occur, with their probabilities.
fn occurring_pairs(mu: &[f64], transitions: &Matrix) -> Vec<Transition> {
    let n = mu.len();
    let pairs = (0..n * n).map(|k| (k / n, k % n));
    let weighted = pairs.map(|(s, next)| (s, next, mu[s] * transitions[(s, next)]));
    weighted.filter(|&(_, _, p)| p > 0.0).collect()
}

impl Facts for Td {
    fn clients(&self) -> usize {
        self.environment_of.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.environment(client).mean.optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.environment(client).mean.evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.environment(client).mean.matrix.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.features.covariance(self.environment(client), &self.optimum)
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let EnvironmentFacts { pairs, rewards, .. } = self.environment(client);
        let atoms = pairs.iter().map(|&(state, next, p)| {
            let mut w = self.features.difference(state, next);
            w.push(dot(&w, &self.optimum) - rewards[state]);
            (p, self.features.row(state), w)
        });
        self.independent().then(|| rank_one_noise(self, client, s, atoms))
    }
    fn draws(&self) -> usize {
        self.environments.iter().map(|e| e.pairs.len()).max().unwrap_or(1)
    }
    fn distribution(&self, client: usize) -> usize {
        self.environment_of[client]
    }
    fn linear(&self) -> bool {
        true
    }
    fn independent(&self) -> bool {
        self.chains.is_empty()
    }
    fn feature_norm(&self, x: &[f64]) -> Option<f64> {
        Some(dot(x, &self.gram.apply(x)))
    }
    fn virtual_optimum(&self) -> Option<&[f64]> {
        self.virtual_optimum.as_deref()
    }
}

impl Problem for Td {
    /// The client's state s; unused if draws are independent.
    type State = u32;

    fn begin(&self, client: usize, rng: &mut Stream) -> u32 {
        let Some(chain) = self.chains.get(client) else { return 0 };
        let first = rng.index(chain.len()) as u32;
        (0..self.burn_in).fold(first, |s, _| chain[s as usize].pick(rng.bits()))
    }

    #[inline(always)]
    fn oracle(
        &self,
        client: usize,
        state: &mut u32,
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        match self.chains.get(client) {
            None => self.tables.oracle(client, rng.bits(), theta, field),
            Some(chain) => {
                let s = *state as usize;
                *state = chain[s].pick(rng.bits());
                self.tables.field(client, s, *state as usize, theta, field);
            }
        }
    }

    fn advance(&self, cohort: Cohort<'_, u32>) {
        if self.chains.is_empty() {
            self.tables.advance(cohort);
        } else {
            super::generic::advance(self, cohort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;
    use crate::sample;

    #[test]
    fn a_chain_of_two_islands_has_no_unique_law() {
        let islands = Matrix::from_fn(4, 4, |i, j| f64::from(u8::from(i / 2 == j / 2)) * 0.5);
        assert_eq!(stationary(&islands), Err(Singular));
        let drift = Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(j == (i + 1).min(2))));
        assert_eq!(stationary(&drift), Ok(vec![0.0, 0.0, 1.0]));
    }

    #[test]
    fn rows_that_do_not_add_up_have_no_law() {
        let leaky = Matrix::from_fn(2, 2, |i, j| if i == j { 0.4 } else { 0.5 });
        assert_eq!(stationary(&leaky), Err(Singular));
        let negative = Matrix::from_fn(2, 2, |i, j| [[1.5, -0.5], [0.5, 0.5]][i][j]);
        assert_eq!(stationary(&negative), Err(Singular));
    }

    /// A trajectory visits pairs with their stationary probabilities.
    #[test]
    fn a_trajectory_has_the_stationary_mean_in_the_long_run() {
        let problem = sample::chain(vec![0], Noise::Markov { burn_in: 50 });
        assert!(!problem.independent());
        let (runs, steps) = (400, 1000);
        let theta = [0.4, -0.3];
        let mut exact = [0.0; 2];
        problem.mean_field(0, &theta, &mut exact);
        let mut means = vec![Vec::new(); 2];
        for run in 0..runs {
            let mut rng = Stream::new(4, Purpose::Client, 0, run, 0);
            let mut state = problem.begin(0, &mut rng);
            let (mut field, mut sum) = ([0.0; 2], [0.0; 2]);
            for _ in 0..steps {
                let before = state;
                problem.oracle(0, &mut state, &theta, &mut rng, &mut field);
                assert!(before < 3 && state < 3);
                axpy(1.0 / f64::from(steps), &field, &mut sum);
            }
            (0..2).for_each(|i| means[i].push(sum[i]));
        }
        for i in 0..2 {
            sample::assert_mean(&means[i], exact[i], &format!("entry {i}"));
        }
    }

    #[test]
    fn one_environment_is_its_own_virtual_one() {
        let problem = sample::chain(vec![0], Noise::Independent);
        let virtual_optimum = problem.virtual_optimum().unwrap();
        assert!(sample::distance(virtual_optimum, problem.optimum()) < 1e-14);
    }

    #[test]
    fn the_feature_norm_is_the_mean_square_of_values() {
        let problem = sample::chain(vec![0], Noise::Independent);
        let shares = stationary(&Matrix::from_entries(3, 3, sample::CHAIN.to_vec())).unwrap();
        let values = [2.0, 3.0, 2.5];
        let exact: f64 = shares.iter().zip(values).map(|(p, v): (&f64, f64)| p * v * v).sum();
        assert!((problem.feature_norm(&[2.0, 3.0]).unwrap() - exact).abs() < 1e-14);
    }
}
