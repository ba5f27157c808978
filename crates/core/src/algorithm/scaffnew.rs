//! Scaffnew, or ProxSkip for the consensus problem (Mishchenko et al. 2022):
//! the same algorithm as Scaffold under random communication,
//! `[[algorithm.scaffold]]` with `communication-probability`, to the last bit;
//! on a linear field that is SCAFFLSA under H1.

use super::{Average, Component, scaffold};
use crate::federated::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.scaffnew]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"Scaffnew, p = 0.1")]
    pub label: Option<String>,
    /// γ, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: f64,
    /// p, the probability that a local step is followed by communication; from
    /// 1e-9 to 1.
    #[schemars(range(min = 1e-9, max = 1.0), example = 0.1)]
    pub communication_probability: f64,
    /// What a round is.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "communications"))]
    pub clock: Clock,
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
        let scaffold = scaffold::Settings {
            local_steps: None,
            communication_probability: Some(self.communication_probability),
            clock: self.clock,
            ..scaffold::Settings::new(self.step_size, 1)
        };
        scaffold.components()
    }
}
