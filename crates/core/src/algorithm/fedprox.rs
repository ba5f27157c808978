//! FedProx (Li et al. 2020): FedAvg whose local objective has μ/2 ‖θ − θ_t‖²
//! added, minimised by a number of stochastic steps that may differ between
//! clients. No other algorithm here is
//! the same; with μ = 0 it is FedAvg.

use super::info::{Family, MEAN, PULLED, RoundFormula};
use super::{
    AlgorithmKind, Component, Participation, RelativeNumber, WithWork, has_cohort, has_work,
    numbers,
};
use crate::client_sampling::ParticipationScheme;
use crate::federated::Terms;
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedProx (Li et al. 2020): FedAvg with μ/2 ‖θ − θ_t‖² added to each local objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedProx {
    /// μ, 0 or more: the weight of the proximal term, a number or a multiple of a constant of the problem.
    #[schemars(extend("minimum" = 0.0), example = 1.0)]
    pub proximal: RelativeNumber,
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
    /// γ_g, above 0: the server moves this fraction of the way to the clients' mean.
    #[serde(default = "crate::problem::unit", skip_serializing_if = "crate::problem::is_unit")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1.0), example = 1.0)]
    pub server_step: f64,
}

impl FedProx {
    /// The keys of FedProx with this weight of the proximal term, and defaults for all else.
    pub fn new(proximal: f64) -> Self {
        Self {
            proximal: proximal.into(),
            batch_per_client: Vec::new(),
            cohort: None,
            participation: ParticipationScheme::Normalised,
            server_step: 1.0,
        }
    }
}

impl AlgorithmKind for WithWork<FedProx> {
    const FAMILY: Family = Family::FedProx;

    has_cohort!();
    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        let words = "as FedAvg, with a pull towards the start of the round";
        Some(RoundFormula { words, tex: &[PULLED, MEAN] })
    }

    /// The weight of the proximal term.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        vec![("proximal", &mut self.own.proximal)]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    /// One run of the engine: FedAvg with a proximal term to the start θ_t of the round. The keys of
    /// [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(self.common.terms(Terms {
            proximal: self.proximal.value(),
            batches: numbers(None, &self.batch_per_client),
            cohort: self.cohort.map(Participation::number),
            participation: self.participation.clone(),
            server_step: self.server_step,
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    fn faults(&self) -> Vec<Fault> {
        self.common.faults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Settings, Spec, Work};
    use crate::federated::Run;
    use crate::problem::{Exact, Facts};
    use crate::sample;

    /// Rounds of clients with unequal numbers of local steps are those of plain loops, without noise.
    #[test]
    fn trajectories_are_those_of_plain_loops() {
        let problem = Exact::new(sample::noisy(3));
        let steps_per_client = vec![1, 4, 2];
        let own = FedProx { server_step: 0.8, ..FedProx::new(0.7) };
        let mut common = Work::default();
        common.steps_per_client.clone_from(&steps_per_client);
        let spec = Spec::FedProx(Settings::plain(0.1, WithWork { common, own }));
        let terms = spec.components().remove(0).terms;
        let start = [0.3, -1.2];
        let have = sample::run(&problem, &terms, &start, 5, 0).estimate().to_vec();
        let mut server = start;
        let mut field = [0.0; 2];
        for _ in 0..5 {
            let mut mean = [0.0; 2];
            for (client, steps) in steps_per_client.iter().enumerate() {
                let mut theta = server;
                for _ in 0..*steps {
                    problem.mean_field(client, &theta, &mut field);
                    for i in 0..2 {
                        theta[i] -= 0.1 * (field[i] + 0.7 * (theta[i] - server[i]));
                    }
                }
                (0..2).for_each(|i| mean[i] += theta[i] / 3.0);
            }
            (0..2).for_each(|i| server[i] += 0.8 * (mean[i] - server[i]));
        }
        assert!(sample::distance(&have, &server) < 1e-12, "{have:?} {server:?}");
    }
}
