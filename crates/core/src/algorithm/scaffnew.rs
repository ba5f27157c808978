//! Scaffnew, or ProxSkip for the consensus problem (Mishchenko et al. 2022):
//! the same algorithm as Scaffold under random communication,
//! `[[algorithm.scaffold]]` with `communication-probability`, to the last bit;
//! on a linear field that is SCAFFLSA under H1.

use super::info::{BY_COIN, Family, RoundFormula};
use super::{AlgorithmKind, Component};
use crate::federated::{Clock, Schedule, Terms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scaffnew (Mishchenko et al. 2022): Scaffold whose clients communicate after each local step
/// with probability p.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Scaffnew {
    /// p, the probability that a local step is followed by communication; from
    /// 1e-9 to 1.
    #[schemars(range(min = 1e-9, max = 1.0), example = 0.1)]
    pub communication_probability: f64,
    /// What a round is.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "communications"))]
    pub clock: Clock,
}

impl AlgorithmKind for Scaffnew {
    const FAMILY: Family = Family::Scaffnew;

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        Some(BY_COIN)
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.communication_probability = 1.0 / local_steps as f64;
    }

    fn local_steps_key() -> &'static str {
        "communication-probability"
    }

    /// One run of the engine. The coin decides on the number of local steps, so that the 1 that is written here counts
    /// for nothing.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let probability = self.communication_probability;
        let schedule = Schedule::Bernoulli { probability, clock: self.clock };
        vec![Component::one(Terms { schedule, ..Terms::scaffold(step_size, 1) })]
    }
}
