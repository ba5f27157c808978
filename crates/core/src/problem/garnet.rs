//! TD(0) on Garnet problems (SCAFFLSA §6, App. D), with linear features.
//!
//! Sample s ~ μ_c, a ~ π, s' ~ P_c(·|s,a); the field is A(Z)θ − b(Z) with
//! A = φ(s)(φ(s) − γφ(s'))ᵀ and b = φ(s) r_c(s). A has rank one and is never built; a pair
//! (s, s') is one draw from an alias table. Under Markovian noise s' is the next s, and
//! each client has one trajectory.

use super::arrays::Files;
use super::cost::ProblemCost;
use super::fault::{Fault, Faults};
use super::size::{InstanceSize, MemoryPart};
use super::td::{self, Environment, NoSolution, Noise, Td};
use crate::kernel::td::MAX_STATES;
use crate::linalg::Matrix;
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policy evaluation on random environments: TD(0) with linear features. Every client has a
/// Garnet environment (SCAFFLSA, section 6) of its own, and all share the features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// S, the number of states; from 1 to 65536.
    #[schemars(range(min = 1, max = 65536), example = 30)]
    pub states: usize,
    /// A, the number of actions; 1 or more.
    #[schemars(range(min = 1), example = 2)]
    pub actions: usize,
    /// b, the number of distinct successors of each pair (s, a); from 1 to `states`.
    #[schemars(range(min = 1), example = 2)]
    pub branching: usize,
    /// d, the dimension of φ(s) and of θ; from 1 to `states`.
    #[schemars(range(min = 1), example = 8)]
    pub features: usize,
    /// The discount γ of the rewards, in [0, 1).
    #[schemars(range(min = 0.0, max = 1.0), example = 0.95)]
    pub discount: f64,
    /// N, the number of clients; 1 or more.
    #[schemars(range(min = 1), example = 100)]
    pub clients: usize,
    /// How the clients' environments differ.
    #[schemars(example = Heterogeneity::Independent {})]
    pub heterogeneity: Heterogeneity,
    /// The policy that is evaluated.
    #[serde(default)]
    pub policy: Policy,
    /// Whether the draws of a client are independent or follow its chain.
    #[serde(default, skip_serializing_if = "Noise::is_independent")]
    #[schemars(extend("default" = "independent"))]
    pub noise: Noise,
}

/// How the clients' environments differ; features are shared in every case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Heterogeneity {
    /// One kernel and one reward, which every client perturbs.
    Perturbed {
        /// ε, 0 or more: a draw from U[0, ε] is added to each non-zero transition weight.
        #[schemars(range(min = 0.0), example = 0.02)]
        kernel: f64,
        /// A draw from U[0, `reward`] is added to each reward; 0 or more.
        #[serde(default)]
        #[schemars(range(min = 0.0), example = 0.02)]
        reward: f64,
    },
    /// N independent kernels and rewards.
    Independent {},
    /// Two kernels alternate over the clients, with rewards r and −r.
    TwoKernels {},
    /// The same, and each client perturbs its kernel, as in the authors' published code.
    TwoKernelsPerturbed {
        /// ε, 0 or more: a draw from U[0, ε] is added to each non-zero transition weight.
        #[schemars(range(min = 0.0), example = 0.02)]
        kernel: f64,
    },
}

/// The policy that is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Every action with probability 1/A, as in the paper.
    #[default]
    Uniform,
    /// One random action per state, the same for all clients, as in the authors' code.
    OneAction,
}

impl Settings {
    /// The number of distinct environments, each of which is solved once: client c has environment c modulo this
    /// number.
    fn distinct_environments(&self) -> usize {
        match self.heterogeneity {
            Heterogeneity::TwoKernels {} => self.clients.min(2),
            Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 } => 1,
            _ => self.clients,
        }
    }
}

impl super::settings::Settings for Settings {
    type Instance = Td;

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        let Self { states, actions, branching, features, discount, .. } = *self;
        faults.at_least_one("states", states as u64);
        faults.at_least_one("actions", actions as u64);
        faults.at_least_one("branching", branching as u64);
        faults.at_least_one("features", features as u64);
        let most = MAX_STATES;
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
        self.noise.check(&mut faults);
        match self.heterogeneity {
            Heterogeneity::Perturbed { kernel, reward } => {
                faults.non_negative("heterogeneity.perturbed.kernel", kernel);
                faults.non_negative("heterogeneity.perturbed.reward", reward);
            }
            Heterogeneity::TwoKernelsPerturbed { kernel } => {
                faults.non_negative("heterogeneity.two-kernels-perturbed.kernel", kernel);
            }
            Heterogeneity::Independent {} | Heterogeneity::TwoKernels {} => {}
        }
        faults.0
    }

    fn cost(&self, _exact: bool) -> ProblemCost {
        td::cost(self.extent().as_ref())
    }

    /// N, d, and about how many bytes an instance takes, divided into what each key makes large: dense
    /// kernels of states, the transitions that occur, the lists that kernels are drawn in, and the matrices
    /// of features.
    fn extent(&self) -> Option<InstanceSize> {
        let Self { states, branching, features, clients, .. } = *self;
        let s = states as f64;
        let d = features as f64;
        let n = clients as f64;
        let environments = self.distinct_environments() as f64;
        // The distinct successors of all actions in all states.
        let pairs = s * (self.actions as f64 * branching as f64).min(s);
        // Under Markovian noise each client has a table of the successors of each state.
        let chains = if self.noise.is_independent() { 0.0 } else { n * (16.0 * pairs + 16.0 * s) };
        let kernels = environments * s * s + 8.0 * s * s;
        let of_states = MemoryPart::new(
            "states",
            8.0 * kernels,
            format!("{environments} transition matrices of {states} × {states}"),
        );
        let of_branching = MemoryPart::new(
            "branching",
            environments * (64.0 * pairs + 16.0 * s) + chains,
            format!("{environments} distributions of {pairs} transitions each"),
        );
        // Each pair (s, a) has a list of successors in two kernels, and in one that is read.
        let actions = self.actions as f64;
        let b = branching as f64;
        let of_actions = MemoryPart::new(
            "actions",
            s * actions * (3.0 * (24.0 + 16.0 * b) + 8.0),
            format!("kernels of {states} × {} lists of successors", self.actions),
        );
        let of_features = MemoryPart::new(
            "features",
            environments * (16.0 * d * d + 200.0) + 32.0 * s * d + 64.0 * d * d + 12.0 * n,
            format!("{environments} pairs of matrices of {features} × {features}"),
        );
        let parts = vec![of_states, of_branching, of_actions, of_features];
        Some(InstanceSize { clients, dimension: features, parts })
    }

    /// Draws the features, the policy and the shared environments from the stream that all clients share,
    /// and what is a client's own from the client's stream: so the first clients stay when N grows.
    ///
    /// # Errors
    /// A fault of `branching` if a client's chain has no unique stationary distribution, or of `features` if the mean
    /// system of a client, or the mean of the clients' systems, is singular: other values of these keys help.
    fn build(&self, seed: u64, _files: &dyn Files) -> Result<Td, Fault> {
        let mut rng = Stream::shared_instance(seed);
        let phi = draw_features(self.states, self.features, &mut rng);
        let shared = SharedDraws::new(self, &mut rng);
        let distinct = self.distinct_environments();
        let environment_of = (0..self.clients).map(|c| c % distinct).collect();
        let environments = (0..distinct).map(|c| shared.client_environment(c, seed));
        Td::new(phi, self.features, self.discount, environments, environment_of, self.noise).map_err(|reason| {
            match reason {
                NoSolution::Stationary(c) => Fault::new("branching", format!("client {c}'s chain has no unique stationary distribution; more branching connects its states")),
                NoSolution::Client(c) => Fault::new("features", format!("client {c}'s mean system is singular: fewer features, or more states that recur, make it regular")),
                NoSolution::Mean => Fault::new("features", "the clients' mean system is singular: fewer features make it regular"),
            }
        })
    }
}

/// The successors of each pair (s, a), number s A + a, each with its transition weight. The weights of a
/// pair become probabilities when they are divided by their sum.
type Kernel = Vec<Vec<(usize, f64)>>;

/// A kernel and rewards as they are drawn, before the policy makes a chain of them.
#[derive(Clone)]
struct DrawnEnvironment {
    kernel: Kernel,
    /// r(s), S numbers.
    rewards: Vec<f64>,
}

/// What the environments of all clients share.
struct SharedDraws<'a> {
    settings: &'a Settings,
    /// π(a | s), S × A.
    policy: Matrix,
    /// The environments drawn from the shared stream, which clients perturb or take as they are: none, one
    /// or two, as the heterogeneity needs. If there are two, the second one's rewards are drawn and unused.
    environments: Vec<DrawnEnvironment>,
}

impl<'a> SharedDraws<'a> {
    /// Draws the policy and the shared environments from the shared stream, from which the features are drawn before.
    /// An action for each state is drawn also where the policy is uniform, so that the environments do not depend on
    /// the policy.
    fn new(settings: &'a Settings, rng: &mut Stream) -> Self {
        let states = settings.states;
        let actions = settings.actions;
        let chosen: Vec<usize> = (0..states).map(|_| rng.index(actions)).collect();
        let policy = Matrix::from_fn(states, actions, |s, a| match settings.policy {
            Policy::Uniform => 1.0 / actions as f64,
            Policy::OneAction => f64::from(u8::from(chosen[s] == a)),
        });
        let count = match settings.heterogeneity {
            Heterogeneity::Perturbed { .. } => 1,
            Heterogeneity::Independent {} => 0,
            Heterogeneity::TwoKernels {} | Heterogeneity::TwoKernelsPerturbed { .. } => 2,
        };
        let environments = (0..count).map(|_| draw_environment(settings, rng)).collect();
        Self { settings, policy, environments }
    }

    /// The environment of a client where two kernels alternate over clients: clients 0, 2, 4, … have the
    /// first kernel with the rewards r, the others the second kernel with −r.
    fn alternating_environment(&self, client: usize) -> DrawnEnvironment {
        let sign = if client.is_multiple_of(2) { 1.0 } else { -1.0 };
        let rewards = self.environments[0].rewards.iter().map(|r| sign * r).collect();
        DrawnEnvironment { kernel: self.environments[client % 2].kernel.clone(), rewards }
    }

    /// The environment of a client under the policy: the shared one, or one drawn for this client alone,
    /// with its perturbations, as the heterogeneity says. What is drawn for a client comes from its own stream, which
    /// its number and the seed of the instance name.
    fn client_environment(&self, client: usize, seed: u64) -> Environment {
        let mut rng = Stream::client_instance(seed, client);
        let DrawnEnvironment { kernel, rewards } = match self.settings.heterogeneity {
            Heterogeneity::Independent {} => draw_environment(self.settings, &mut rng),
            Heterogeneity::TwoKernels {} => self.alternating_environment(client),
            Heterogeneity::TwoKernelsPerturbed { kernel: epsilon } => {
                let mut own = self.alternating_environment(client);
                perturb_kernel(&mut own.kernel, epsilon, &mut rng);
                own
            }
            Heterogeneity::Perturbed { kernel: epsilon, reward } => {
                let mut own = self.environments[0].clone();
                perturb_kernel(&mut own.kernel, epsilon, &mut rng);
                own.rewards.iter_mut().for_each(|r| *r += reward * rng.uniform());
                own
            }
        };
        // P(s' | s) is the mean over actions, by the policy, of the normalised weights of (s, a).
        let mut transitions = Matrix::zeros(self.settings.states, self.settings.states);
        for (pair, successors) in kernel.iter().enumerate() {
            let s = pair / self.settings.actions;
            let a = pair % self.settings.actions;
            let total = successors.iter().fold(0.0, |sum, (_, weight)| sum + weight);
            for &(next, weight) in successors {
                transitions[(s, next)] += self.policy[(s, a)] * (weight / total);
            }
        }
        Environment { transitions, rewards }
    }
}

/// Adds a draw from U[0, `epsilon`] to each transition weight of a kernel. The weights of a pair (s, a) then no longer
/// sum to `branching`; they are divided by their sum when they become probabilities.
fn perturb_kernel(kernel: &mut Kernel, epsilon: f64, rng: &mut Stream) {
    let weights = kernel.iter_mut().flatten();
    weights.for_each(|(_, weight)| *weight += epsilon * rng.uniform());
}

/// Draws an environment: `branching` distinct successors of weight 1 for each pair (s, a), and rewards that
/// are uniform on [0, 1).
fn draw_environment(settings: &Settings, rng: &mut Stream) -> DrawnEnvironment {
    let mut kernel = Kernel::new();
    for _pair in 0..settings.states * settings.actions {
        let successors = rng.distinct(settings.states, settings.branching);
        kernel.push(successors.into_iter().map(|s| (s, 1.0)).collect());
    }
    let rewards = (0..settings.states).map(|_| rng.uniform()).collect();
    DrawnEnvironment { kernel, rewards }
}

/// Draws the features φ, S rows of d numbers, uniformly on [0, 1), and divides each row by its sum, so that
/// ‖φ(s)‖ ≤ 1.
fn draw_features(states: usize, d: usize, rng: &mut Stream) -> Vec<f64> {
    let mut phi: Vec<f64> = (0..states * d).map(|_| rng.uniform()).collect();
    for row in phi.chunks_exact_mut(d) {
        let total = row.iter().fold(0.0, |sum, x| sum + x);
        row.iter_mut().for_each(|x| *x /= total);
    }
    phi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Facts as _, check};
    use crate::sample;

    fn instance(heterogeneity: Heterogeneity, seed: u64) -> Td {
        sample::build(&sample::garnet(heterogeneity, 5), seed)
    }

    const KINDS: [Heterogeneity; 4] = [
        Heterogeneity::Perturbed { kernel: 0.3, reward: 0.2 },
        Heterogeneity::Independent {},
        Heterogeneity::TwoKernels {},
        Heterogeneity::TwoKernelsPerturbed { kernel: 0.02 },
    ];

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        for kind in KINDS {
            let problem = instance(kind, 5);
            check::roots(&problem, 2e-14);
            check::agree(&problem, 200_000);
        }
    }

    /// Without a perturbation all clients have one environment. Two kernels alternate over the clients, and clients
    /// that perturb them have optima of their own, close to those of the kernels.
    #[test]
    fn kinds_differ_as_they_say() {
        let same = instance(Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 }, 7);
        assert_eq!(same.local_optimum(0), same.local_optimum(4));
        let two = instance(KINDS[2], 7);
        assert_eq!(two.local_optimum(1), two.local_optimum(3));
        assert_ne!(two.local_optimum(0), two.local_optimum(1));
        let perturbed = instance(KINDS[3], 7);
        let apart = |c: usize| {
            sample::distance(perturbed.local_optimum(c).unwrap(), two.local_optimum(c).unwrap())
        };
        let kernels =
            sample::distance(two.local_optimum(0).unwrap(), two.local_optimum(1).unwrap());
        for c in 0..5 {
            assert!(apart(c) > 0.0 && apart(c) < 0.1 * kernels, "{} of {kernels}", apart(c));
        }
        assert_ne!(perturbed.local_optimum(1), perturbed.local_optimum(3));
    }

    #[test]
    fn the_first_clients_stay_when_there_are_more() {
        for kind in KINDS {
            let few = instance(kind, 8);
            let many = sample::build(&sample::garnet(kind, 9), 8);
            for c in 0..5 {
                assert_eq!(few.local_optimum(c), many.local_optimum(c));
            }
        }
    }

    #[test]
    fn the_policy_changes_the_optimum() {
        let one = Settings { policy: Policy::OneAction, ..sample::garnet(KINDS[1], 5) };
        assert_ne!(instance(KINDS[1], 9).optimum(), sample::build(&one, 9).optimum());
    }
}
