//! FedAvg (RR Alg. 1), which on a linear field is FedLSA (SCAFFLSA Alg. 1);
//! with partial participation, unequal work and mini-batches, BOOK 5.8–5.11.

use super::info::{Family, LOCAL, MEAN, RoundFormula};
use super::{
    AlgorithmKind, Component, Participation, WithWork, Work, has_cohort, has_work, numbers,
};
use crate::client_sampling::ParticipationScheme;
use crate::federated::Terms;
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.fedavg]]`, `[[algorithm.fedlsa]]`
pub type Settings = super::Settings<WithWork<FedAvg>>;

/// FedAvg (McMahan et al. 2017), called FedLSA on a linear field (SCAFFLSA, Algorithm 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedAvg {
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

impl Settings {
    /// FedAvg with this step size γ and H local steps of every client, and defaults for all else.
    pub fn new(step_size: f64, local_steps: u64) -> Self {
        let own = FedAvg {
            batch_per_client: Vec::new(),
            cohort: None,
            participation: ParticipationScheme::Normalised,
            server_step: 1.0,
        };
        Self::plain(step_size, WithWork { common: Work::equal(local_steps), own })
    }
}

impl AlgorithmKind for WithWork<FedAvg> {
    const FAMILY: Family = Family::FedAvg;

    has_cohort!();
    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        let words = "H local steps of every client from θ_t, then their mean; two vectors per client and round, θ down and up";
        Some(RoundFormula { words, tex: &[LOCAL, MEAN] })
    }

    /// One run of the engine. The keys of [`Work`] replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(self.common.terms(Terms {
            batches: numbers(None, &self.batch_per_client),
            cohort: self.cohort.map(Participation::number),
            participation: self.participation.clone(),
            server_step: self.server_step,
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    fn faults(&self) -> Vec<Fault> {
        self.common.faults()
    }
}
