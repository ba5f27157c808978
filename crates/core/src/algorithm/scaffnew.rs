//! Scaffnew, or ProxSkip for the consensus problem (Mishchenko et al. 2022):
//! the same algorithm as Scaffold under random communication,
//! `[[algorithm.scaffold]]` with `communication-probability`, to the last bit;
//! on a linear field that is SCAFFLSA under H1.

use super::info::{BY_COIN, Family, RoundFormula};
use super::{AlgorithmKind, Component, RelativeNumber, numbers};
use crate::federated::{Clock, Decay, Schedule, Terms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scaffnew (Mishchenko et al. 2022): Scaffold whose clients communicate after each local step
/// with probability p.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Scaffnew {
    /// p, the probability that a local step is followed by communication; from
    /// 1e-9 to 1. Or a multiple of a constant of the problem, such as 1/√κ.
    #[schemars(extend("minimum" = 1e-9, "maximum" = 1.0), example = 0.1)]
    pub communication_probability: RelativeNumber,
    /// What a round is.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "communications"))]
    pub clock: Clock,
    /// B_k, the numbers of gradients averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// Step sizes that fall from one communication to the next, γ_t = γ (1 + t/offset)^(−power). Without
    /// this table they are constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = super::EXAMPLE_DECAY)]
    pub decay: Option<Decay>,
    /// γ_g, above 0: the server moves this fraction of the way to the clients' mean.
    #[serde(default = "crate::problem::unit", skip_serializing_if = "crate::problem::is_unit")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1.0), example = 1.0)]
    pub server_step: f64,
}

impl Scaffnew {
    /// The keys of Scaffnew with this probability p, and defaults for all else.
    pub fn new(communication_probability: f64) -> Self {
        Self {
            communication_probability: communication_probability.into(),
            clock: Clock::default(),
            batch_per_client: Vec::new(),
            decay: None,
            server_step: 1.0,
        }
    }
}

impl AlgorithmKind for Scaffnew {
    const FAMILY: Family = Family::Scaffnew;

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        Some(BY_COIN)
    }

    /// The probability of communication.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        vec![("communication-probability", &mut self.communication_probability)]
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.communication_probability = (1.0 / local_steps as f64).into();
    }

    fn local_steps_key() -> &'static str {
        "communication-probability"
    }

    /// One run of the engine. The coin decides on the number of local steps, so that the 1 that is written here counts
    /// for nothing.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let probability = self.communication_probability.value();
        let schedule = Schedule::Bernoulli { probability, clock: self.clock };
        vec![Component::one(Terms {
            schedule,
            batches: numbers(None, &self.batch_per_client),
            decay: self.decay,
            server_step: self.server_step,
            ..Terms::scaffold(step_size, 1)
        })]
    }
}
