//! FedAvg (RR Alg. 1), which on a linear field is FedLSA (SCAFFLSA Alg. 1);
//! with partial participation, unequal work and mini-batches, BOOK 5.8–5.11.

use super::{Average, Component, work};
use crate::federated::Terms;
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.fedavg]]`, `[[algorithm.fedlsa]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"FedAvg, H = 10")]
    pub label: Option<String>,
    /// γ (η in SCAFFLSA, μ in BOOK), above 0.
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
    /// Whether γ_k = γ/E_k (BOOK 5.11), so that every client moves along γ;
    /// without, γ_k = γ, and clients that work more weigh more (problem 5.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true, extend("default" = false))]
    pub normalised: bool,
    /// B_k, oracle calls averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// L, clients drawn without replacement in each round; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub cohort: Option<usize>,
    /// γ_g, above 0: the server goes this share of the way to the clients' mean.
    #[serde(default = "super::whole_step", skip_serializing_if = "super::is_whole_step")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1.0), example = 1.0)]
    pub server_step: f64,
    /// Polyak-Ruppert averaging.
    #[serde(default)]
    pub average: Average,
}

impl Settings {
    /// FedAvg with nothing but γ and H.
    pub fn new(step_size: f64, local_steps: u64) -> Self {
        Self {
            label: None,
            step_size,
            local_steps: Some(local_steps),
            steps_per_client: Vec::new(),
            normalised: false,
            batch_per_client: Vec::new(),
            cohort: None,
            server_step: super::whole_step(),
            average: Average::None,
        }
    }
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
            batches: work(None, &self.batch_per_client),
            cohort: self.cohort,
            server_step: self.server_step,
            ..Terms::fedavg(self.step_size, 1)
        })]
    }
    fn faults(&self) -> Vec<Fault> {
        super::one_kind_of_work(self.local_steps, &self.steps_per_client)
    }
}
