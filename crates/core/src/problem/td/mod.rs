//! TD(0) with linear features on any finite chains (SCAFFLSA §5): the instances of
//! [`crate::problem::garnet`] and [`crate::problem::mdp`].
//!
//! θ_c* is the TD fixed point (SCAFFLSA 19, 20), not the projection (15).

mod environment;
mod noise;

use super::affine::{Affine, mean_part};
use super::chain::{Chain, Move, Trajectory};
use super::cost::{ProblemCost, transition_call};
use super::facts::Facts;
use super::lazy::get_or_compute;
use super::oracle::{Problem, advance_by_oracle};
use super::size::InstanceSize;
use crate::kernel::alias::Alias;
use crate::kernel::{Cohort, Draws, InstructionSet, axpy, dot, td};
use crate::linalg::Matrix;
use crate::rng::Stream;
pub use environment::{Environment, NoSolution};
use environment::{EnvironmentFacts, Features, Transition};
pub use noise::Noise;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Counts the operations of an oracle call and of the mean field of a problem on chains; N and d are assumed if
/// `extent` is `None`, as where a file says them.
pub fn cost(extent: Option<&InstanceSize>) -> ProblemCost {
    ProblemCost::without_records(extent, transition_call)
}

/// An instance: features, the environments of the clients, and how their draws follow each other.
pub struct Td {
    features: Features,
    /// The tables of the fused kernel for independent draws, one for each client.
    tables: td::TransitionTables,
    /// One entry per distinct environment.
    environments: Vec<EnvironmentFacts>,
    /// The index of each client's environment.
    environment_of: Vec<usize>,
    optimum: Vec<f64>,
    /// Σφ, d × d, once it is asked for.
    gram: OnceLock<Matrix>,
    /// θ̃, once it is asked for.
    virtual_optimum: OnceLock<Option<Vec<f64>>>,
    /// The tables of P_c(· | s) for each client and state; empty if draws are independent.
    chains: Vec<Vec<Alias<u32>>>,
    /// The number of transitions of a trajectory before the first oracle call.
    burn_in: u64,
    /// The probability with which a trajectory moves on after an oracle call.
    moving: f64,
}

impl Td {
    /// Draws the successor s' of a client's state s under Markovian noise and returns it. It becomes the client's state
    /// with probability `moving`; where that is 1, nothing is drawn for it.
    #[inline(always)]
    fn move_state(&self, chain: &[Alias<u32>], draws: &mut Draws<u32>) -> u32 {
        let next = chain[*draws.state as usize].pick(draws.rng.bits());
        if self.moving == 1.0 || draws.rng.uniform() < self.moving {
            *draws.state = next;
        }
        next
    }

    /// The instance with features `phi` (S rows of d) on these environments, which are solved in parallel;
    /// client c has environment number `environment_of[c]`. Each environment has S states, and each is of some
    /// client, so that clients with one environment are of one distribution and it is solved once.
    ///
    /// # Errors
    /// [`NoSolution`] if there is no unique θ* or θ_c*, of the first environment without one; it names the first client
    /// that has this environment.
    pub fn new(
        phi: Vec<f64>,
        d: usize,
        discount: f64,
        environments: impl Iterator<Item = Environment> + Send,
        environment_of: Vec<usize>,
        noise: Noise,
    ) -> Result<Self, NoSolution> {
        let mut tables = td::TransitionTables::new(d, &phi, discount);
        let features = Features { d, phi, discount };
        let mut solved: Vec<(usize, Result<EnvironmentFacts, NoSolution>)> = environments
            .enumerate()
            .par_bridge()
            .map(|(number, environment)| {
                // The first client that has it, which an error names.
                let client = environment_of.iter().position(|&e| e == number).unwrap_or(number);
                (number, features.solve_environment(environment, client))
            })
            .collect();
        // Threads finish in any order. The error is the one of the first environment that has one.
        solved.sort_by_key(|(number, _)| *number);
        let environments: Vec<EnvironmentFacts> =
            solved.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
        // The first client of each environment, whose table its later clients share.
        let mut first = vec![None; environments.len()];
        for (c, &number) in environment_of.iter().enumerate() {
            let environment = &environments[number];
            match first[number] {
                Some(earlier) => tables.repeat(earlier),
                None => {
                    let pairs: Vec<Transition> = environment.pairs().collect();
                    tables.push(&pairs, environment.rewards.clone());
                }
            }
            first[number].get_or_insert(c);
        }
        let means = environment_of.iter().map(|&e| &environments[e].mean);
        let optimum = Affine::weighted_mean(means, None).solve().map_err(|_| NoSolution::Mean)?;
        let mut instance = Self {
            features,
            tables,
            environments,
            environment_of,
            optimum,
            gram: OnceLock::new(),
            virtual_optimum: OnceLock::new(),
            chains: Vec::new(),
            burn_in: 0,
            moving: 1.0,
        };
        if let Noise::Markov { burn_in, calls_per_state } = noise {
            let own = instance.environment_of.iter().map(|&e| &instance.environments[e]);
            instance.chains = own.map(EnvironmentFacts::successors).collect();
            instance.burn_in = burn_in;
            instance.moving = 1.0 / calls_per_state;
        }
        Ok(instance)
    }

    /// Σφ = N⁻¹ Σ_c E φφᵀ under the stationary distributions, d × d: xᵀ Σφ x is the mean
    /// square of the values of the parameters x.
    fn feature_gram(&self) -> Matrix {
        let n = self.environment_of.len() as f64;
        let rows = self.features.rows();
        let mut gram = Matrix::zeros(self.features.d, self.features.d);
        // With many features another order of sums, whose last bits differ, takes less time.
        if self.features.sums_successors_first() {
            // The mean of the clients' stationary distributions.
            let mut mean = vec![0.0; rows.len()];
            let all = self.environment_of.iter().map(|&e| &self.environments[e].stationary);
            all.for_each(|own| axpy(1.0 / n, own, &mut mean));
            return Matrix::weighted_gram(rows, &mean);
        }
        for &number in &self.environment_of {
            for (s, p) in self.environments[number].stationary.iter().enumerate() {
                gram.add_outer(p / n, self.features.row(s), self.features.row(s));
            }
        }
        gram
    }

    /// θ̃, the TD fixed point of the mean of the clients' chains and the mean of their rewards, d numbers; `None`
    /// if the mean chain has no unique stationary distribution, or no unique fixed point.
    fn virtual_fixed_point(&self) -> Option<Vec<f64>> {
        let all = self.environment_of.iter().map(|&e| &self.environments[e]);
        let mut rewards = vec![0.0; self.features.rows().len()];
        let n = self.environment_of.len() as f64;
        all.clone().for_each(|own| axpy(1.0 / n, &own.rewards, &mut rewards));
        let chain = Chain::mean(all.map(|own| &own.chain));
        let stationary = chain.stationary().ok()?;
        self.features.mean_system(&chain, &stationary, &rewards).solve().ok()
    }

    /// The facts of a client's environment.
    fn environment(&self, client: usize) -> &EnvironmentFacts {
        &self.environments[self.environment_of[client]]
    }

    /// The fused kernel's tables, for benches.
    pub fn tables(&self) -> &td::TransitionTables {
        &self.tables
    }
}

impl Facts for Td {
    fn clients(&self) -> usize {
        self.environment_of.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        Some(&self.environment(client).fixed_point)
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.environment(client).mean.evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.environment(client).mean.matrix.clone()
    }
    /// Writes Σ w_c Ā_c x, or with Ā_cᵀ if `transposed`, without a copy of the matrices.
    fn jacobian_product(
        &self,
        weights: &[(usize, f64)],
        transposed: bool,
        x: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        for (client, weight) in weights {
            let matrix = &self.environment(*client).mean.matrix;
            matrix.add_product(*weight, transposed, x, out);
        }
    }
    fn product_effort(&self) -> f64 {
        (self.environments.len() * self.dim() * self.dim()) as f64
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.features.noise_covariance(self.environment(client), &self.optimum)
    }
    fn noise_trace(&self, client: usize) -> f64 {
        self.features.noise_trace(self.environment(client), &self.optimum)
    }
    /// The covariance of the client's draws between two points θ and θ', given the matrix S = E (e, 1)(e', 1)ᵀ with
    /// e = θ − θ* and e' = θ' − θ*: E (wᵀ S w) φφᵀ minus the part of the mean field, where the field of a pair
    /// of states is (wᵀ(e, 1)) φ, with w of d + 1 numbers, the difference φ(s) − γφ(s') of the features and then the
    /// temporal difference at θ*. It is linear in S, which need not be such a moment. `None` under Markovian
    /// noise, whose draws are not independent.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        if !self.independent() {
            return None;
        }
        let environment = self.environment(client);
        let mut second = Matrix::zeros(self.dim(), self.dim());
        for (state, next, p) in environment.pairs() {
            let phi = self.features.row(state);
            let mut w = self.features.difference(state, next);
            w.push(dot(&w, &self.optimum) - environment.rewards[state]);
            second.add_outer(p * dot(&w, &s.apply(&w)), phi, phi);
        }
        Some(second.plus(-1.0, &mean_part(self, client, s)))
    }
    fn draws(&self) -> usize {
        self.environments.iter().map(|e| e.pairs().count()).max().unwrap_or(1)
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
    fn positions(&self, client: usize) -> Option<usize> {
        self.chains.get(client).map(Vec::len)
    }
    /// The client's chain with the field at each move, and the distribution of its state after the burn-in;
    /// `None` if draws are independent.
    fn trajectory(&self, client: usize) -> Option<Trajectory> {
        let own = (!self.independent()).then(|| self.environment(client))?;
        let mut moves = Vec::new();
        for s in 0..own.chain.states() {
            for (next, p) in own.chain.from(s).filter(|(_, p)| *p > 0.0) {
                let phi = self.features.row(s);
                let change = self.features.difference(s, next);
                let error = dot(&change, &self.optimum) - own.rewards[s];
                let offset: Vec<f64> = phi.iter().map(|x| error * x).collect();
                let matrix = Matrix::outer(phi, &change);
                // After the call the trajectory moves on to s', or it stays at s.
                let ends = [(next, self.moving), (s, 1.0 - self.moving)];
                for (to, share) in ends.into_iter().filter(|(_, share)| *share > 0.0) {
                    let matrix = matrix.clone();
                    let offset = offset.clone();
                    moves.push(Move { from: s, to, probability: p * share, matrix, offset });
                }
            }
        }
        // During the burn-in, from a uniformly drawn state, the trajectory moves on at each transition.
        let states = own.chain.states();
        let mut begin = vec![1.0 / states as f64; states];
        for _ in 0..self.burn_in {
            let mut next = vec![0.0; states];
            for (s, share) in begin.iter().enumerate() {
                own.chain.from(s).for_each(|(to, p)| next[to] += share * p);
            }
            begin = next;
        }
        Some(Trajectory { begin, stationary: own.stationary.clone(), moves })
    }
    fn feature_norm(&self, x: &[f64]) -> Option<f64> {
        Some(dot(x, &get_or_compute(&self.gram, || self.feature_gram()).apply(x)))
    }
    fn virtual_optimum(&self) -> Option<&[f64]> {
        get_or_compute(&self.virtual_optimum, || self.virtual_fixed_point()).as_deref()
    }
}

impl Problem for Td {
    /// The client's state s; unused if draws are independent.
    type State = u32;

    /// Draws a state uniformly, runs the chain through the burn-in, and returns the state that it reaches.
    fn begin(&self, client: usize, rng: &mut Stream) -> u32 {
        // Without chains draws are independent, and nothing reads the state.
        let Some(chain) = self.chains.get(client) else { return 0 };
        let first = rng.index(chain.len()) as u32;
        (0..self.burn_in).fold(first, |s, _| chain[s as usize].pick(rng.bits()))
    }

    /// Draws a pair (s, s') and writes its field φ(s)((φ(s) − γφ(s'))ᵀθ − r(s)), with γ the discount. Under Markovian
    /// noise s is the client's state, and s' may become its state ([`Td::move_state`]).
    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<u32>, theta: &[f64], field: &mut [f64]) {
        match self.chains.get(client) {
            None => self.tables.oracle(client, draws.rng.bits(), theta, field),
            Some(chain) => {
                let s = *draws.state as usize;
                let next = self.move_state(chain, draws);
                self.tables.field(client, s, next as usize, theta, field);
            }
        }
    }

    /// Draws a pair of states, or moves the client's state.
    fn draw(&self, client: usize, draws: &mut Draws<u32>, _records: &mut Vec<usize>) {
        match self.chains.get(client) {
            None => {
                draws.rng.bits();
            }
            Some(chain) => {
                self.move_state(chain, draws);
            }
        }
    }

    /// Takes plain steps on independent draws by the fused kernel. Steps under Markovian noise, with a proximal term or
    /// on means of several oracle calls are taken by the oracle.
    fn advance(&self, cohort: Cohort<'_, u32>) {
        if self.chains.is_empty() && cohort.extended.is_none() {
            self.tables.advance_on(InstructionSet::best(), cohort);
        } else {
            advance_by_oracle(self, cohort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;
    use crate::sample;

    /// A trajectory visits pairs with their stationary probabilities.
    #[test]
    fn a_trajectory_has_the_stationary_mean_in_the_long_run() {
        let problem = sample::chain(vec![0], Noise::Markov { burn_in: 50, calls_per_state: 1.0 });
        assert!(!problem.independent());
        let runs = 400;
        let steps = 1000;
        let theta = [0.4, -0.3];
        let mut exact = [0.0; 2];
        problem.mean_field(0, &theta, &mut exact);
        let mut means = vec![Vec::new(); 2];
        for run in 0..runs {
            let mut rng = Stream::new(4, Purpose::Client, 0, run, 0);
            let mut state = problem.begin(0, &mut rng);
            let mut field = [0.0; 2];
            let mut sum = [0.0; 2];
            for _ in 0..steps {
                let before = state;
                let draws = &mut Draws { rng: &mut rng, state: &mut state };
                problem.oracle(0, draws, &theta, &mut field);
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
        let chain = Chain::new(&Matrix::from_entries(3, 3, sample::CHAIN.to_vec()));
        let shares = chain.stationary().unwrap();
        let values = [2.0, 3.0, 2.5];
        let exact: f64 = shares.iter().zip(values).map(|(p, v): (&f64, f64)| p * v * v).sum();
        assert!((problem.feature_norm(&[2.0, 3.0]).unwrap() - exact).abs() < 1e-14);
    }
}
