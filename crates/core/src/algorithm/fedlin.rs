//! FedLin (Mitra et al. 2021): local steps along F_k(θ) − F_k(θ_t) + N⁻¹ Σ F_j(θ_t),
//! that is Scaffold's step with control variates measured at the start of the round
//! instead of carried over from the last one. A round costs two exchanges, and E_k
//! oracle calls more per client. Without noise it converges to θ* as Scaffold does.

use super::info::{CORRECTED, Family, MEAN, RoundFormula};
use super::{AlgorithmKind, Component, Participation, WithWork, has_cohort, has_work, numbers};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Terms, Variates};
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedLin (Mitra et al. 2021): Scaffold with control variates that are measured anew in each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedLin {
    /// B_k, the numbers of gradients averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    /// Only participating clients measure their variates, and the mean of the variates is over these clients.
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

impl Default for FedLin {
    /// The keys of FedLin with their defaults: all clients take part.
    fn default() -> Self {
        Self {
            batch_per_client: Vec::new(),
            cohort: None,
            participation: ParticipationScheme::Normalised,
            server_step: 1.0,
        }
    }
}

impl AlgorithmKind for WithWork<FedLin> {
    const FAMILY: Family = Family::FedLin;

    has_cohort!();
    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        const MEASURE: &str =
            r"\xi_c = \frac{1}{N} \sum_{k=1}^{N} F_k(\theta_t; Z) - F_c(\theta_t; Z)";
        let words = "as Scaffold, with variates measured again at the start of each round, which makes two communications a round";
        Some(RoundFormula { words, tex: &[CORRECTED, MEASURE, MEAN] })
    }

    /// One run of the engine. The keys of [`Work`](super::Work) replace the 1 local step that is written here.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(self.common.terms(Terms {
            batches: numbers(None, &self.batch_per_client),
            cohort: self.cohort.map(Participation::number),
            participation: self.participation.clone(),
            server_step: self.server_step,
            variates: Variates::Fresh,
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
