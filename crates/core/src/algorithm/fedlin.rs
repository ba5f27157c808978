//! FedLin (Mitra et al. 2021): local steps along F_k(θ) − F_k(θ_t) + N⁻¹ Σ F_j(θ_t),
//! that is Scaffold's step with variates measured at the round's own start
//! instead of kept from the last one. A round costs two exchanges, and E_k
//! oracle calls more a client. Without noise it goes to θ* as Scaffold does.

use super::{Average, Component, work};
use crate::federated::{Terms, Variates};
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.fedlin]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"FedLin, H = 10")]
    pub label: Option<String>,
    /// γ, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: f64,
    /// H, local steps a round, the same for all clients; 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// E_k, local steps a round where clients differ, in place of
    /// `local-steps`: client k does number k modulo the length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = super::EXAMPLE_STEPS)]
    pub steps_per_client: Vec<u64>,
    /// Whether γ_k = γ/E_k, as in FedLin's paper; without, γ_k = γ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true, extend("default" = false))]
    pub normalised: bool,
    /// Polyak-Ruppert averaging.
    #[serde(default)]
    pub average: Average,
}

impl super::Settings for Settings {
    fn average(&self) -> Average {
        self.average
    }
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    fn components(&self) -> Vec<Component> {
        vec![Component::one(Terms {
            local_steps: work(self.local_steps, &self.steps_per_client),
            normalised: self.normalised,
            variates: Variates::Fresh,
            ..Terms::fedavg(self.step_size, 1)
        })]
    }
    fn faults(&self) -> Vec<Fault> {
        super::one_kind_of_work(self.local_steps, &self.steps_per_client)
    }
}
