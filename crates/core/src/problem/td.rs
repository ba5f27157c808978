//! TD(0) with linear features on any finite chains (SCAFFLSA §5): what
//! [`super::garnet`] draws and [`super::mdp`] reads.
//!
//! θ_c* is the TD fixed point (19), (20), not the projection (15).

use super::affine::{Affine, rank_one_noise};
use super::{Facts, Faults, Problem};
use crate::kernel::alias::Alias;
use crate::kernel::{Cohort, axpy, dot, td};
use crate::linalg::{Matrix, Singular, solve};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most transitions before the first step: they are not among the steps that
/// runs are planned by.
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

    /// Notes what is wrong with it.
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
pub enum Trouble {
    /// This client's chain has no unique stationary law.
    Law(usize),
    /// This client's mean system is singular.
    Client(usize),
    /// The mean of the clients' systems is singular.
    Mean,
}

/// The stationary law of a chain: μP = μ, Σμ = 1.
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
    let mut law = solve(&system, &rhs)?;
    // Transient states come out as 0 up to the last bits of double-double.
    law.iter_mut().for_each(|p| *p = if *p < 1e-25 { 0.0 } else { *p });
    // What was solved is seen to be a law, and to be stationary.
    let sum: f64 = law.iter().sum();
    let next = |j: usize| (0..n).map(|i| law[i] * transitions[(i, j)]).sum::<f64>();
    let stays = (0..n).all(|j| (next(j) - law[j]).abs() <= ROUNDING);
    if (sum - 1.0).abs() <= ROUNDING && stays { Ok(law) } else { Err(Singular) }
}

/// How far probabilities may be from adding up: ten times what a user's may be.
const ROUNDING: f64 = 10.0 * super::atoms::ROUNDING;

/// The exact facts of one environment.
struct Client {
    mean: Affine,
    covariance: Matrix,
    /// (s, s') and its probability.
    pairs: Vec<(usize, usize, f64)>,
    rewards: Vec<f64>,
}

/// An instance.
pub struct Td {
    d: usize,
    /// φ, S rows of d, and the discount.
    phi: Vec<f64>,
    discount: f64,
    tables: td::Tables,
    /// One a distinct environment.
    laws: Vec<Client>,
    /// Which of them is a client's.
    of: Vec<usize>,
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
    /// client c has number `of[c]`.
    ///
    /// # Errors
    /// [`Trouble`] where there is no unique solution.
    pub fn new(
        phi: Vec<f64>,
        d: usize,
        discount: f64,
        environments: impl Iterator<Item = Environment>,
        of: Vec<usize>,
        noise: Noise,
    ) -> Result<Self, Trouble> {
        let states = phi.len() / d;
        let n = of.len() as f64;
        let mut tables = td::Tables::new(d, phi.clone(), discount);
        let mut laws: Vec<Client> = Vec::new();
        let mut chains = Vec::new();
        let (mut stationaries, mut transitions) = (Vec::new(), Vec::new());
        for (number, environment) in environments.enumerate() {
            let first = of.iter().position(|&l| l == number).unwrap_or(number);
            let rewards = environment.rewards;
            let law = stationary(&environment.transitions).map_err(|_| Trouble::Law(first))?;
            let pairs = atoms(&law, &environment.transitions);
            let mean = mean_system(&phi, d, discount, &pairs, &rewards);
            let mean = mean.map_err(|_| Trouble::Client(first))?;
            laws.push(Client { mean, covariance: Matrix::zeros(0, 0), pairs, rewards });
            stationaries.push(law);
            transitions.push(environment.transitions);
        }
        let mut first = vec![None; laws.len()];
        let (mut gram, mut kernel) = (Matrix::zeros(d, d), Matrix::zeros(states, states));
        let mut reward = vec![0.0; states];
        for (c, &number) in of.iter().enumerate() {
            for (s, p) in stationaries[number].iter().enumerate() {
                gram.add_outer(p / n, &phi[s * d..][..d], &phi[s * d..][..d]);
            }
            kernel.add(1.0 / n, &transitions[number]);
            axpy(1.0 / n, &laws[number].rewards, &mut reward);
            if !noise.is_independent() {
                chains.push(chain(&transitions[number]));
            }
            match first[number] {
                Some(earlier) => tables.repeat(earlier),
                None => tables.push(&laws[number].pairs, laws[number].rewards.clone()),
            }
            first[number].get_or_insert(c);
        }
        let mean = Affine::mean(of.iter().map(|&l| &laws[l].mean)).map_err(|_| Trouble::Mean)?;
        let optimum = mean.optimum;
        for law in &mut laws {
            let Client { pairs, rewards, mean, .. } = law;
            law.covariance = covariance(&phi, d, discount, pairs, rewards, &optimum, mean);
        }
        let virtual_optimum = stationary(&kernel).ok().and_then(|law| {
            Some(mean_system(&phi, d, discount, &atoms(&law, &kernel), &reward).ok()?.optimum)
        });
        let burn_in = match noise {
            Noise::Independent => 0,
            Noise::Markov { burn_in } => burn_in,
        };
        Ok(Self {
            d,
            phi,
            discount,
            tables,
            laws,
            of,
            optimum,
            gram,
            virtual_optimum,
            chains,
            burn_in,
        })
    }

    fn client(&self, client: usize) -> &Client {
        &self.laws[self.of[client]]
    }

    /// The fused kernel's tables, for benches.
    pub fn tables(&self) -> &td::Tables {
        &self.tables
    }
}

/// P(· | s) of every state.
fn chain(transitions: &Matrix) -> Vec<Alias<u32>> {
    let row = |s: usize| {
        let law = transitions.row(s).iter().enumerate().filter(|(_, p)| **p > 0.0);
        Alias::new(&law.map(|(t, p)| (t as u32, *p)).collect::<Vec<_>>())
    };
    (0..transitions.rows()).map(row).collect()
}

/// The pairs (s, s') that occur, with their probabilities.
fn atoms(law: &[f64], transitions: &Matrix) -> Vec<(usize, usize, f64)> {
    let n = law.len();
    let pairs = (0..n * n).map(|k| (k / n, k % n));
    let weighted = pairs.map(|(s, t)| (s, t, law[s] * transitions[(s, t)]));
    weighted.filter(|&(_, _, p)| p > 0.0).collect()
}

/// φ(s) − γφ(s').
fn difference(phi: &[f64], d: usize, discount: f64, s: usize, t: usize) -> Vec<f64> {
    (0..d).map(|i| phi[s * d + i] - discount * phi[t * d + i]).collect()
}

fn mean_system(
    phi: &[f64],
    d: usize,
    discount: f64,
    pairs: &[(usize, usize, f64)],
    rewards: &[f64],
) -> Result<Affine, Singular> {
    let (mut matrix, mut offset) = (Matrix::zeros(d, d), vec![0.0; d]);
    for &(s, t, p) in pairs {
        let feature = &phi[s * d..][..d];
        matrix.add_outer(p, feature, &difference(phi, d, discount, s, t));
        axpy(p * rewards[s], feature, &mut offset);
    }
    Affine::new(matrix, offset)
}

fn covariance(
    phi: &[f64],
    d: usize,
    discount: f64,
    pairs: &[(usize, usize, f64)],
    rewards: &[f64],
    optimum: &[f64],
    mean: &Affine,
) -> Matrix {
    let mut second = Matrix::zeros(d, d);
    for &(s, t, p) in pairs {
        let change = difference(phi, d, discount, s, t);
        let along = change.iter().zip(optimum).fold(0.0, |sum, (a, b)| sum + a * b);
        let delta = along - rewards[s];
        let feature = &phi[s * d..][..d];
        second.add_outer(p * delta * delta, feature, feature);
    }
    let mut field = vec![0.0; d];
    mean.at(optimum, &mut field);
    second.add_outer(-1.0, &field, &field);
    second
}

impl Facts for Td {
    fn dim(&self) -> usize {
        self.d
    }
    fn clients(&self) -> usize {
        self.of.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.client(client).mean.optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.client(client).mean.at(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.client(client).mean.matrix.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.client(client).covariance.clone()
    }
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let Client { pairs, rewards, .. } = self.client(client);
        let atoms = pairs.iter().map(|&(state, next, p)| {
            let mut w = difference(&self.phi, self.d, self.discount, state, next);
            w.push(dot(&w, &self.optimum) - rewards[state]);
            (p, &self.phi[state * self.d..][..self.d], w)
        });
        self.independent().then(|| rank_one_noise(self, client, s, atoms))
    }
    fn draws(&self) -> usize {
        self.laws.iter().map(|law| law.pairs.len()).max().unwrap_or(1)
    }
    fn law(&self, client: usize) -> usize {
        self.of[client]
    }
    /// The largest ‖φ(s)‖ ‖φ(s) − γφ(s')‖ over the pairs that occur.
    fn largest_oracle_matrix(&self, client: usize) -> Option<f64> {
        let norm = |x: &[f64]| libm::sqrt(dot(x, x));
        let of = |&(s, t, _): &(usize, usize, f64)| {
            let change = difference(&self.phi, self.d, self.discount, s, t);
            norm(&self.phi[s * self.d..][..self.d]) * norm(&change)
        };
        Some(self.client(client).pairs.iter().map(of).fold(0.0, f64::max))
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
    /// The client's state s; unused where draws are independent.
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

    #[test]
    fn a_chain_of_two_islands_has_no_unique_law() {
        let islands = Matrix::from_fn(4, 4, |i, j| f64::from(u8::from(i / 2 == j / 2)) * 0.5);
        assert_eq!(stationary(&islands), Err(Singular));
        let drift = Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(j == (i + 1).min(2))));
        assert_eq!(stationary(&drift), Ok(vec![0.0, 0.0, 1.0]));
    }

    /// What is solved for is checked: rows that are no probabilities have no law.
    #[test]
    fn rows_that_do_not_add_up_have_no_law() {
        let leaky = Matrix::from_fn(2, 2, |i, j| if i == j { 0.4 } else { 0.5 });
        assert_eq!(stationary(&leaky), Err(Singular));
        let negative = Matrix::from_fn(2, 2, |i, j| [[1.5, -0.5], [0.5, 0.5]][i][j]);
        assert_eq!(stationary(&negative), Err(Singular));
    }

    fn chain_of_three(noise: Noise) -> Td {
        let phi = vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5];
        let p = [[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4]];
        let transitions = Matrix::from_fn(3, 3, |i, j| p[i][j]);
        let environment = Environment { transitions, rewards: vec![1.0, -1.0, 0.5] };
        Td::new(phi, 2, 0.8, std::iter::once(environment), vec![0], noise).unwrap()
    }

    /// A trajectory visits pairs as often as the stationary law says.
    #[test]
    fn a_trajectory_has_the_stationary_mean_in_the_long_run() {
        let problem = chain_of_three(Noise::Markov { burn_in: 50 });
        assert!(!problem.independent() && chain_of_three(Noise::Independent).independent());
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
            let error = crate::sample::standard_error(&means[i]);
            let off = (crate::sample::mean(&means[i]) - exact[i]).abs();
            assert!(off < 4.5 * error, "entry {i}: {off} with standard error {error}");
        }
    }

    #[test]
    fn one_environment_is_its_own_virtual_one() {
        let problem = chain_of_three(Noise::Independent);
        let apart =
            crate::kernel::squared_distance(problem.virtual_optimum().unwrap(), problem.optimum());
        assert!(apart < 1e-28, "{apart}");
    }

    #[test]
    fn the_feature_norm_is_the_mean_square_of_values() {
        let problem = chain_of_three(Noise::Independent);
        let p = [[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4]];
        let law = stationary(&Matrix::from_fn(3, 3, |i, j| p[i][j])).unwrap();
        let values = [2.0, 3.0, 2.5];
        let exact: f64 = law.iter().zip(values).map(|(p, v): (&f64, f64)| p * v * v).sum();
        assert!((problem.feature_norm(&[2.0, 3.0]).unwrap() - exact).abs() < 1e-14);
    }
}
