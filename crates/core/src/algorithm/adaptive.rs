//! What algorithms with an adaptive server share (Reddi et al. 2021, Algorithm 2): their keys, and their one run of
//! the engine. FedAdagrad, FedAdam and FedYogi differ in the second moment that the server follows.

use super::info::{Family, RoundFormula};
use super::{AlgorithmKind, Component, Participation, WithWork, numbers};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{SecondMoment, ServerOptimiser, Terms};
use crate::flattened::Flattened;
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of every algorithm with an adaptive server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AdaptiveServer {
    /// B_k, the numbers of gradients averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the clients of a round are selected and weighed.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
    /// γ_g, above 0: the server step (η in the paper), about how far a coordinate moves in a round while its changes
    /// have one sign and are large compared with τ.
    #[serde(default = "usual_server_step")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 0.01), example = 0.01)]
    pub server_step: f64,
    /// τ, above 0: it is added to the square root of the second moment, which begins at τ². The smaller τ is, the more
    /// the server adapts the steps of the coordinates.
    #[serde(default = "usual_tau")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1e-3), example = 1e-3)]
    pub tau: f64,
}

/// The default of the server step.
fn usual_server_step() -> f64 {
    0.01
}

/// The default of τ.
fn usual_tau() -> f64 {
    1e-3
}

/// The default of β₁ of FedAdam and FedYogi, which Reddi et al. use.
pub(super) fn usual_beta1() -> f64 {
    0.9
}

/// The default of β₂, which Reddi et al. use.
pub(super) fn usual_beta2() -> f64 {
    0.99
}

/// The keys of an algorithm with an adaptive server: those of [`Work`](super::Work), those of [`AdaptiveServer`], and
/// those of its kind alone, `T`.
pub type WithAdaptiveServer<T> = WithWork<Flattened<AdaptiveServer, T>>;

/// In what the algorithms with an adaptive server differ: the keys of one of them say which moments the server follows.
pub trait ServerRule: Clone {
    /// What the algorithm does in a round, as pages write it.
    const ROUND: RoundFormula;

    /// β₁, the part of the first moment that is kept from one round to the next.
    fn beta1(&self) -> f64;

    /// How the second moment follows from its last value and the change of the round.
    fn second_moment(&self) -> SecondMoment;
}

impl<T: ServerRule> AlgorithmKind for WithAdaptiveServer<T> {
    const FAMILY: Family = Family::FedAvg;

    fn round(&self) -> Option<RoundFormula> {
        Some(T::ROUND)
    }

    /// One run of the engine. The keys of [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let server = &self.own.common;
        let rule = &self.own.own;
        vec![Component::one(self.common.terms(Terms {
            batches: numbers(None, &server.batch_per_client),
            cohort: server.cohort.map(Participation::number),
            participation: server.participation.clone(),
            server_step: server.server_step,
            server_optimiser: Some(ServerOptimiser {
                beta1: rule.beta1(),
                second_moment: rule.second_moment(),
                tau: server.tau,
            }),
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    fn cohort(&self) -> Option<Participation> {
        self.own.common.cohort
    }

    fn set_cohort(&mut self, cohort: Participation) {
        self.own.common.cohort = Some(cohort);
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    fn faults(&self) -> Vec<Fault> {
        self.common.faults()
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::rounds::{ProblemSize, constant_rounds, local_runs};
    use crate::algorithm::{Instance, Spec};
    use crate::federated::Conditions;
    use crate::moments::{ExactMoments, means_converge};
    use crate::problem::{Exact, Facts};
    use crate::round_program::ProgramError;
    use crate::sample;
    use crate::sources::StatedAlgorithm;
    use crate::theory::exact::MomentsError;

    /// The three algorithms, each with β₁ = 0.8, β₂ = 0.9 where it has one, τ = 0.1 and the server step 0.3.
    fn algorithms() -> Vec<Spec> {
        let mut all = Vec::new();
        for (kind, beta2) in [("fedadagrad", ""), ("fedadam", "0.9"), ("fedyogi", "0.9")] {
            let beta2 = if beta2.is_empty() { String::new() } else { format!("beta2 = {beta2}\n") };
            let text = format!(
                "[{kind}]\nstep-size = 0.1\nsteps-per-client = [1, 4]\nserver-step = 0.3\nbeta1 = 0.8\ntau = 0.1\n{beta2}"
            );
            all.push(toml::from_str(&text).unwrap());
        }
        all
    }

    /// Without noise the rounds are those of plain loops over the mean fields of three clients with equal shares, to
    /// 1e-12.
    #[test]
    fn trajectories_are_those_of_plain_loops() {
        let problem = Exact::new(sample::noisy(3));
        let start = [0.7, -1.1];
        for spec in algorithms() {
            let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 40, copy: 0 };
            let mut run = problem.launch(&spec, &from);
            let mut theta = start;
            let mut m = [0.0; 2];
            let mut v = [0.01; 2];
            for round in 0..40 {
                let mut mean = [0.0; 2];
                for client in 0..3 {
                    let mut local = theta;
                    // Clients take 1, 4 and 1 local steps.
                    let steps = if client == 1 { 4 } else { 1 };
                    for _ in 0..steps {
                        let mut field = [0.0; 2];
                        problem.mean_field(client, &local, &mut field);
                        local[0] -= 0.1 * field[0];
                        local[1] -= 0.1 * field[1];
                    }
                    mean[0] += local[0] / 3.0;
                    mean[1] += local[1] / 3.0;
                }
                for i in 0..2 {
                    let delta = mean[i] - theta[i];
                    m[i] = 0.8 * m[i] + 0.2 * delta;
                    let square = delta.powi(2);
                    match spec.kind() {
                        "fedadagrad" => v[i] += square,
                        "fedadam" => v[i] = 0.9 * v[i] + 0.1 * square,
                        _ if v[i] > square => v[i] -= 0.1 * square,
                        _ => v[i] += 0.1 * square,
                    }
                    theta[i] += 0.3 * m[i] / (v[i].sqrt() + 0.1);
                }
                run.round();
                let off = sample::distance(run.estimate(), &theta);
                assert!(off < 1e-12, "{}, round {round}: off by {off}", spec.kind());
            }
            let way = sample::distance(&theta, &start);
            assert!(way > 0.3, "{} moves: {way}", spec.kind());
        }
    }

    /// Its fixed points are those of FedAvg: where the clients move by nothing on average.
    #[test]
    fn it_comes_to_rest_where_fedavg_does() {
        let problem = Exact::new(sample::noisy(3));
        let from = Conditions { seed: 1, replicate: 0, start: &[0.7, -1.1], rounds: 0, copy: 0 };
        let text = "[fedavg]\nstep-size = 0.1\nsteps-per-client = [1, 4]\n";
        let fedavg: Spec = toml::from_str(text).unwrap();
        let mut limits = Vec::new();
        for spec in [vec![fedavg], algorithms()].concat() {
            let mut run = problem.launch(&spec, &from);
            (0..3000).for_each(|_| run.round());
            limits.push(run.estimate().to_vec());
        }
        assert!(sample::distance(&limits[0], problem.optimum()) > 0.01, "FedAvg is biased");
        for limit in &limits[1..] {
            assert!(sample::distance(limit, &limits[0]) < 1e-9, "{limits:?}");
        }
    }

    /// With τ far above all changes, m_t/(√v_t + τ) is Δ_t/(2τ), so that a server step of 2τ goes to the mean: with
    /// β₁ = 0 the round is FedAvg's.
    #[test]
    fn a_large_tau_makes_it_fedavg() {
        let problem = sample::noisy(3);
        let start = [0.7, -1.1];
        let run = |text: &str| {
            let spec: Spec = toml::from_str(text).unwrap();
            let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 5, copy: 0 };
            let mut run = problem.launch(&spec, &from);
            (0..5).for_each(|_| run.round());
            (run.estimate().to_vec(), run.cost())
        };
        let (fedavg, cost) = run("[fedavg]\nstep-size = 0.1\nlocal-steps = 3\ncohort = 2\n");
        for kind in ["fedadagrad", "fedadam", "fedyogi"] {
            let keys = "step-size = 0.1\nlocal-steps = 3\ncohort = 2\nbeta1 = 0.0\ntau = 1e6\nserver-step = 2e6\n";
            let beta2 = if kind == "fedadagrad" { "" } else { "beta2 = 0.999999\n" };
            let (theta, own_cost) = run(&format!("[{kind}]\n{keys}{beta2}"));
            assert!(sample::distance(&theta, &fedavg) < 1e-5, "{kind}: {theta:?}, {fedavg:?}");
            assert_eq!(own_cost, cost, "{kind}");
        }
    }

    /// There is no program, no exact moment and no statement about it, and the reason is said.
    #[test]
    fn it_has_no_exact_theory() {
        let problem = sample::noisy(3);
        let size = ProblemSize { clients: 3, dimension: 2 };
        for spec in algorithms() {
            let components = spec.components();
            assert_eq!(constant_rounds(&components, size), Err(ProgramError::AdaptiveServer));
            let moments = ExactMoments::new(&problem, &components).err();
            assert_eq!(moments, Some(MomentsError::Program(ProgramError::AdaptiveServer)));
            assert!(local_runs(&components, 3).is_none());
            assert!(!means_converge(&problem, &components, false));
            assert_eq!(spec.stated(), StatedAlgorithm::Other);
        }
    }

    #[test]
    fn what_is_wrong_with_its_numbers_is_named() {
        for (line, key) in [
            ("beta1 = 1.0", "beta1"),
            ("beta1 = -0.1", "beta1"),
            ("beta2 = 1.0", "beta2"),
            ("beta2 = nan", "beta2"),
            ("tau = 0.0", "tau"),
            ("server-step = 0.0", "server-step"),
            ("cohort = 0", "cohort"),
        ] {
            let text = format!("[fedyogi]\nstep-size = 0.1\nlocal-steps = 3\n{line}\n");
            let spec: Spec = toml::from_str(&text).unwrap();
            let keys: Vec<String> =
                spec.check().into_iter().map(|fault| fault.key.into_owned()).collect();
            assert_eq!(keys, [key], "{line}");
        }
    }
}
