//! Mini-batch SGD, the reference that local steps compete with: in each round
//! every client averages H oracle calls at θ_t, and the server takes one step
//! of size γ along their mean (BOOK 5.3–5.4 for H = 1). On a linear field it
//! is centralised LSA. It is FedAvg with one local step and batch H, and has
//! no heterogeneity bias.

use super::{Average, Component};
use crate::federated::Terms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.minibatch-sgd]]`, `[[algorithm.centralised-lsa]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"SGD")]
    pub label: Option<String>,
    /// γ, the size of the one step of a round, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub step_size: f64,
    /// Oracle calls of each client in a round, all at θ_t; 1 or more. They count
    /// as local steps where `budget.local-steps` says how long a run is.
    #[serde(default = "one")]
    #[schemars(range(min = 1), example = 10)]
    pub batch: u64,
    /// L, clients drawn without replacement in each round; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 5)]
    pub cohort: Option<usize>,
    /// Polyak-Ruppert averaging.
    #[serde(default)]
    pub average: Average,
}

fn one() -> u64 {
    1
}

impl super::Settings for Settings {
    fn average(&self) -> Average {
        self.average
    }
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    fn scale(&self) -> (f64, u64) {
        (self.step_size, self.batch)
    }
    fn components(&self) -> Vec<Component> {
        let (batches, cohort) = (vec![self.batch], self.cohort);
        let terms = Terms { batches, cohort, ..Terms::fedavg(self.step_size, 1) };
        vec![Component::one(terms)]
    }
}
