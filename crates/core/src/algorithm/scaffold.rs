//! Scaffold (Karimireddy et al. 2020; SLIDES II), which on a linear field is
//! SCAFFLSA: under fixed work H2 (SCAFFLSA Alg. 4), or under one coin for all
//! clients at each step, H1 (Alg. 2).

use super::{Average, Component, work};
use crate::federated::{Clock, Learning, Schedule, Terms, Variates};
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.scaffold]]`, `[[algorithm.scafflsa]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Name of the curve in figures; by default the algorithm's own.
    #[serde(default, skip_serializing)]
    #[schemars(example = &"Scaffold, H = 10")]
    pub label: Option<String>,
    /// γ (η in SCAFFLSA), above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.01)]
    pub step_size: f64,
    /// H, local steps a round, the same for all clients (H2); 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// E_k, local steps a round where clients differ, in place of
    /// `local-steps`: client k does number k modulo the length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = super::EXAMPLE_STEPS)]
    pub steps_per_client: Vec<u64>,
    /// p, the probability that a local step is followed by communication (H1),
    /// in place of `local-steps`; from 1e-9 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-9, max = 1.0), example = 0.1)]
    pub communication_probability: Option<f64>,
    /// What a round is under `communication-probability`.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "communications"))]
    pub clock: Clock,
    /// Whether γ_k = γ/E_k; without, γ_k = γ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true, extend("default" = false))]
    pub normalised: bool,
    /// How a control variate learns.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(extend("default" = "option-two"))]
    pub variates: Learning,
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
    /// Scaffold with nothing but γ and H.
    pub fn new(step_size: f64, local_steps: u64) -> Self {
        Self {
            label: None,
            step_size,
            local_steps: Some(local_steps),
            steps_per_client: Vec::new(),
            communication_probability: None,
            clock: Clock::Communications,
            normalised: false,
            variates: Learning::OptionTwo,
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
        let schedule = match self.communication_probability {
            Some(probability) => Schedule::Bernoulli { probability, clock: self.clock },
            None => Schedule::Every,
        };
        vec![Component::one(Terms {
            local_steps: work(self.local_steps, &self.steps_per_client),
            normalised: self.normalised,
            schedule,
            cohort: self.cohort,
            server_step: self.server_step,
            variates: Variates::Kept(self.variates),
            ..Terms::fedavg(self.step_size, 1)
        })]
    }
    fn faults(&self) -> Vec<Fault> {
        let fault = |key, message: &str| vec![Fault::new(key, message)];
        if self.communication_probability.is_none() {
            if self.clock != Clock::Communications {
                return fault("clock", "has a meaning beside `communication-probability` only");
            }
            return super::one_kind_of_work(self.local_steps, &self.steps_per_client);
        }
        if self.local_steps.is_some() || !self.steps_per_client.is_empty() || self.normalised {
            let message = "stands in place of `local-steps`, `steps-per-client` and `normalised`: the coin says how many steps";
            return fault("communication-probability", message);
        }
        if self.variates != Learning::OptionTwo {
            return fault("variates", "cannot be chosen beside `communication-probability`");
        }
        Vec::new()
    }
}
