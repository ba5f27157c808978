//! FedProx (Li et al. 2020): FedAvg whose local objective has μ/2 ‖θ − θ_t‖²
//! added, minimised by as many stochastic steps. No other algorithm here is
//! the same; with μ = 0 it is FedAvg.

use super::{Average, Component};
use crate::federated::Terms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.fedprox]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"FedProx, μ = 1")]
    pub label: Option<String>,
    /// γ, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: f64,
    /// H, local steps a round; 1 or more.
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: u64,
    /// μ, 0 or more: the weight of the proximal term.
    #[schemars(range(min = 0.0), example = 1.0)]
    pub proximal: f64,
    /// L, clients drawn without replacement in each round; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub cohort: Option<usize>,
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
        let (proximal, cohort) = (self.proximal, self.cohort);
        let terms = Terms { proximal, cohort, ..Terms::fedavg(self.step_size, self.local_steps) };
        vec![Component::one(terms)]
    }
}
