//! TD(0) on Garnet problems (SCAFFLSA §6, App. D), with linear features.
//!
//! Sample s ~ μ_c, a ~ π, s' ~ P_c(·|s,a); the field is A(Z)θ − b(Z) with
//! A = φ(s)(φ(s) − γφ(s'))ᵀ and b = φ(s) r_c(s). A is of rank one and never
//! built: a pair (s, s') is one draw from an alias table.

use super::{Facts, Fault, Faults, Problem};
use crate::kernel::{Local, axpy, td};
use crate::linalg::{Matrix, Singular, solve};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// `[problem.garnet]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// S.
    pub states: usize,
    /// A.
    pub actions: usize,
    /// b, distinct successors of each pair (s, a).
    pub branching: usize,
    /// d, the dimension of φ(s) and of θ.
    pub features: usize,
    /// The discount γ of the rewards, in [0, 1).
    pub discount: f64,
    /// N.
    pub clients: usize,
    /// How the clients' environments differ.
    pub heterogeneity: Heterogeneity,
    /// The policy that is evaluated.
    #[serde(default)]
    pub policy: Policy,
}

/// How the clients' environments differ; features are shared in every case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heterogeneity {
    /// One kernel and reward, perturbed by each client.
    Perturbed {
        /// ε: U[0, ε] is added to each non-zero transition weight.
        kernel: f64,
        /// U[0, reward] is added to each reward.
        #[serde(default)]
        reward: f64,
    },
    /// N independent kernels and rewards.
    Independent {},
    /// Two kernels alternate over the clients, with rewards r and −r.
    TwoKernels {},
}

/// The policy that is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Every action with probability 1/A (the paper).
    #[default]
    Uniform,
    /// One random action per state, the same for all clients (the authors' code).
    OneAction,
}

impl super::Settings for Settings {
    type Instance = Garnet;

    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let Self { states, actions, branching, features, discount, .. } = *self;
        for (key, value) in [
            ("states", states),
            ("actions", actions),
            ("branching", branching),
            ("features", features),
        ] {
            faults.at_least_one(key, value as u64);
        }
        let most = td::MAX_STATES;
        faults
            .require(states <= most, "states", || format!("must be at most {most}, not {states}"));
        faults.require(branching <= states, "branching", || {
            format!("must be at most the number of states, {states}, not {branching}")
        });
        faults.require(features <= states, "features", || {
            format!("must be at most the number of states, {states}, not {features}: else no unique solution exists")
        });
        faults.require((0.0..1.0).contains(&discount), "discount", || {
            format!("must be in [0, 1), not {discount}")
        });
        faults.clients(self.clients);
        if let Heterogeneity::Perturbed { kernel, reward } = self.heterogeneity {
            faults.non_negative("heterogeneity.perturbed.kernel", kernel);
            faults.non_negative("heterogeneity.perturbed.reward", reward);
        }
        faults.0
    }

    fn build(&self, seed: u64) -> Result<Garnet, Fault> {
        Garnet::new(self, seed)
    }
}

/// Transition weights before normalisation: for each (s, a), its successors.
type Kernel = Vec<Vec<(usize, f64)>>;

/// One client's environment: a state kernel under the policy, and rewards.
struct Environment {
    /// P_c(s' | s), S × S.
    transitions: Matrix,
    rewards: Vec<f64>,
}

/// What the environments are drawn from.
struct Draw<'a> {
    settings: &'a Settings,
    /// π(a | s), S × A.
    policy: Matrix,
    /// Kernels and rewards drawn from the shared stream.
    shared: Vec<(Kernel, Vec<f64>)>,
}

impl<'a> Draw<'a> {
    fn new(settings: &'a Settings, rng: &mut Stream) -> Self {
        let (states, actions) = (settings.states, settings.actions);
        let chosen: Vec<usize> = (0..states).map(|_| rng.index(actions)).collect();
        let policy = Matrix::from_fn(states, actions, |s, a| match settings.policy {
            Policy::Uniform => 1.0 / actions as f64,
            Policy::OneAction => f64::from(u8::from(chosen[s] == a)),
        });
        let count = match settings.heterogeneity {
            Heterogeneity::Perturbed { .. } => 1,
            Heterogeneity::Independent {} => 0,
            Heterogeneity::TwoKernels {} => 2,
        };
        let shared = (0..count).map(|_| fresh(settings, rng)).collect();
        Self { settings, policy, shared }
    }

    fn client(&self, client: usize, seed: u64) -> Environment {
        let mut rng = Stream::client_instance(seed, client);
        let (kernel, rewards) = match self.settings.heterogeneity {
            Heterogeneity::Independent {} => fresh(self.settings, &mut rng),
            Heterogeneity::TwoKernels {} => {
                let sign = if client.is_multiple_of(2) { 1.0 } else { -1.0 };
                let rewards = self.shared[0].1.iter().map(|r| sign * r).collect();
                (self.shared[client % 2].0.clone(), rewards)
            }
            Heterogeneity::Perturbed { kernel: epsilon, reward } => {
                let (mut kernel, mut rewards) = self.shared[0].clone();
                let weights = kernel.iter_mut().flatten();
                weights.for_each(|(_, weight)| *weight += epsilon * rng.uniform());
                rewards.iter_mut().for_each(|r| *r += reward * rng.uniform());
                (kernel, rewards)
            }
        };
        let mut transitions = Matrix::zeros(self.settings.states, self.settings.states);
        for (pair, successors) in kernel.iter().enumerate() {
            let (s, a) = (pair / self.settings.actions, pair % self.settings.actions);
            let total = successors.iter().fold(0.0, |sum, (_, weight)| sum + weight);
            for &(next, weight) in successors {
                transitions[(s, next)] += self.policy[(s, a)] * (weight / total);
            }
        }
        Environment { transitions, rewards }
    }
}

/// A new kernel (each weight 1) and new rewards, uniform on [0, 1).
fn fresh(settings: &Settings, rng: &mut Stream) -> (Kernel, Vec<f64>) {
    let pairs = settings.states * settings.actions;
    let kernel = (0..pairs)
        .map(|_| {
            let successors = rng.distinct(settings.states, settings.branching);
            successors.into_iter().map(|s| (s, 1.0)).collect()
        })
        .collect();
    (kernel, (0..settings.states).map(|_| rng.uniform()).collect())
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
    Ok(law)
}

/// The exact facts of one client.
struct Client {
    /// Ā_c, d × d.
    matrix: Matrix,
    /// b̄_c.
    offset: Vec<f64>,
    optimum: Vec<f64>,
    covariance: Matrix,
}

/// An instance.
pub struct Garnet {
    d: usize,
    tables: td::Tables,
    clients: Vec<Client>,
    optimum: Vec<f64>,
}

impl Garnet {
    fn new(settings: &Settings, seed: u64) -> Result<Self, Fault> {
        let (states, d) = (settings.states, settings.features);
        let mut rng = Stream::shared_instance(seed);
        let phi = features(states, d, &mut rng);
        let draw = Draw::new(settings, &mut rng);
        let mut tables = td::Tables::new(d, phi.clone(), settings.discount);
        let mut clients: Vec<Client> = Vec::with_capacity(settings.clients);
        let mut laws = Vec::with_capacity(settings.clients);
        for c in 0..settings.clients {
            let Environment { transitions, rewards } = draw.client(c, seed);
            let law = stationary(&transitions).map_err(|_| {
                Fault::new("branching", format!("client {c}'s chain has no unique stationary law; more branching connects it"))
            })?;
            let pairs = atoms(&law, &transitions);
            clients.push(mean_system(&phi, d, settings.discount, &pairs, &rewards, c)?);
            tables.push(&pairs, rewards.clone());
            laws.push((pairs, rewards));
        }
        let mean = Matrix::mean(clients.iter().map(|c| &c.matrix));
        let mut offset = vec![0.0; d];
        clients.iter().for_each(|c| axpy(1.0 / clients.len() as f64, &c.offset, &mut offset));
        let optimum = solve(&mean, &offset).map_err(|_| {
            Fault::new(
                "features",
                "the clients' mean system is singular: fewer features make it regular",
            )
        })?;
        for (client, (pairs, rewards)) in clients.iter_mut().zip(&laws) {
            client.covariance =
                covariance(&phi, d, settings.discount, pairs, rewards, &optimum, client);
        }
        Ok(Self { d, tables, clients, optimum })
    }

    /// The fused kernel's tables, for benches.
    pub fn tables(&self) -> &td::Tables {
        &self.tables
    }
}

/// φ: S rows of d, uniform on [0, 1), each row summing to one, so that ‖φ(s)‖ ≤ 1.
fn features(states: usize, d: usize, rng: &mut Stream) -> Vec<f64> {
    let mut phi: Vec<f64> = (0..states * d).map(|_| rng.uniform()).collect();
    for row in phi.chunks_exact_mut(d) {
        let total = row.iter().fold(0.0, |sum, x| sum + x);
        row.iter_mut().for_each(|x| *x /= total);
    }
    phi
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
    client: usize,
) -> Result<Client, Fault> {
    let (mut matrix, mut offset) = (Matrix::zeros(d, d), vec![0.0; d]);
    for &(s, t, p) in pairs {
        let feature = &phi[s * d..][..d];
        matrix.add_outer(p, feature, &difference(phi, d, discount, s, t));
        axpy(p * rewards[s], feature, &mut offset);
    }
    let optimum = solve(&matrix, &offset).map_err(|_| {
        Fault::new("features", format!("client {client}'s mean system is singular: fewer features, or more states that recur, make it regular"))
    })?;
    Ok(Client { matrix, offset, optimum, covariance: Matrix::zeros(0, 0) })
}

fn covariance(
    phi: &[f64],
    d: usize,
    discount: f64,
    pairs: &[(usize, usize, f64)],
    rewards: &[f64],
    optimum: &[f64],
    client: &Client,
) -> Matrix {
    let mut second = Matrix::zeros(d, d);
    for &(s, t, p) in pairs {
        let change = difference(phi, d, discount, s, t);
        let along = change.iter().zip(optimum).fold(0.0, |sum, (a, b)| sum + a * b);
        let delta = along - rewards[s];
        let feature = &phi[s * d..][..d];
        second.add_outer(p * delta * delta, feature, feature);
    }
    let mut mean = client.matrix.apply(optimum);
    axpy(-1.0, &client.offset, &mut mean);
    second.add_outer(-1.0, &mean, &mean);
    second
}

impl Facts for Garnet {
    fn dim(&self) -> usize {
        self.d
    }
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn optimum(&self) -> &[f64] {
        &self.optimum
    }
    fn local_optimum(&self, client: usize) -> &[f64] {
        &self.clients[client].optimum
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        let client = &self.clients[client];
        field.copy_from_slice(&client.matrix.apply(theta));
        axpy(-1.0, &client.offset, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].matrix.clone()
    }
    fn noise_covariance(&self, client: usize) -> Matrix {
        self.clients[client].covariance.clone()
    }
    fn linear(&self) -> bool {
        true
    }
}

impl Problem for Garnet {
    type State = ();

    fn begin(&self, _client: usize, _rng: &mut Stream) {}

    fn oracle(
        &self,
        client: usize,
        _state: &mut (),
        theta: &[f64],
        rng: &mut Stream,
        field: &mut [f64],
    ) {
        self.tables.oracle(client, rng.bits(), theta, field);
    }

    fn advance(&self, cohort: &mut [Local<'_, ()>]) {
        self.tables.advance(cohort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Settings as _, tests_support};

    pub fn settings(heterogeneity: Heterogeneity) -> Settings {
        Settings {
            states: 12,
            actions: 2,
            branching: 3,
            features: 4,
            discount: 0.9,
            clients: 5,
            heterogeneity,
            policy: Policy::Uniform,
        }
    }

    const KINDS: [Heterogeneity; 3] = [
        Heterogeneity::Perturbed { kernel: 0.3, reward: 0.2 },
        Heterogeneity::Independent {},
        Heterogeneity::TwoKernels {},
    ];

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        for kind in KINDS {
            let problem = settings(kind).build(5).unwrap();
            tests_support::oracle_matches_facts(&problem, 200_000);
        }
    }

    #[test]
    fn optima_solve_their_systems() {
        for kind in KINDS {
            let problem = settings(kind).build(6).unwrap();
            let (mut mean, mut field) = (vec![0.0; 4], vec![0.0; 4]);
            for c in 0..5 {
                problem.mean_field(c, problem.local_optimum(c), &mut field);
                assert!(field.iter().all(|f| f.abs() < 1e-14), "{kind:?} {field:?}");
                problem.mean_field(c, problem.optimum(), &mut field);
                axpy(0.2, &field, &mut mean);
            }
            assert!(mean.iter().all(|f| f.abs() < 1e-14), "{kind:?} {mean:?}");
        }
    }

    #[test]
    fn kinds_differ_as_they_say() {
        let same =
            settings(Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 }).build(7).unwrap();
        assert_eq!(same.local_optimum(0), same.local_optimum(4));
        let two = settings(Heterogeneity::TwoKernels {}).build(7).unwrap();
        assert_eq!(two.local_optimum(1), two.local_optimum(3));
        assert_ne!(two.local_optimum(0), two.local_optimum(1));
    }

    #[test]
    fn ten_clients_are_the_first_of_a_hundred() {
        for kind in KINDS {
            let few = settings(kind).build(8).unwrap();
            let many = Settings { clients: 9, ..settings(kind) }.build(8).unwrap();
            for c in 0..5 {
                assert_eq!(few.local_optimum(c), many.local_optimum(c));
            }
        }
    }

    #[test]
    fn a_chain_of_two_islands_has_no_unique_law() {
        let islands = Matrix::from_fn(4, 4, |i, j| f64::from(u8::from(i / 2 == j / 2)) * 0.5);
        assert_eq!(stationary(&islands), Err(Singular));
        let drift = Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(j == (i + 1).min(2))));
        assert_eq!(stationary(&drift), Ok(vec![0.0, 0.0, 1.0]));
    }

    #[test]
    fn one_action_visits_fewer_pairs() {
        let uniform = settings(KINDS[1]).build(9).unwrap();
        let one = Settings { policy: Policy::OneAction, ..settings(KINDS[1]) }.build(9).unwrap();
        assert_ne!(uniform.optimum(), one.optimum());
    }
}
