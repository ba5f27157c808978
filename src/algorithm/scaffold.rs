//! Scaffold without a server step (SLIDES II; RR App.), which on a linear field
//! is SCAFFLSA under deterministic communication, H2 (SCAFFLSA Alg. 4).

use super::{Average, Component};
use crate::federated::{Conditions, ControlVariates, Federated, Run};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// `[[algorithm.scaffold]]`, `[[algorithm.scafflsa]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures.
    #[serde(default, skip_serializing)]
    pub label: Option<String>,
    /// γ (η in SCAFFLSA), above 0.
    pub step_size: f64,
    /// H, local steps a round.
    pub local_steps: u64,
    /// Polyak-Ruppert averaging.
    #[serde(default)]
    pub average: Average,
}

impl super::Settings for Settings {
    fn scale(&self) -> (f64, u64) {
        (self.step_size, self.local_steps)
    }
    fn average(&self) -> Average {
        self.average
    }
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    fn components(&self) -> Vec<Component> {
        let (step_size, local_steps) = self.scale();
        vec![Component { weight: 1.0, corrected: true, step_size, local_steps }]
    }
    fn start<'p, P: Problem>(&self, problem: &'p P, from: &Conditions) -> Box<dyn Run + 'p> {
        let correction = ControlVariates::new(problem.clients(), problem.dim());
        Box::new(Federated::new(problem, correction, self.step_size, self.local_steps, from))
    }
}
