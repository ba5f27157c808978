//! FedProx (Li et al. 2020): FedAvg whose local objective has μ/2 ‖θ − θ_t‖²
//! added, minimised by as many stochastic steps. No other algorithm here is
//! the same; with μ = 0 it is FedAvg.

use super::info::{Family, MEAN, PULLED, RoundFormula};
use super::{AlgorithmKind, Component, Participation, has_cohort};
use crate::client_sampling::ParticipationScheme;
use crate::federated::Terms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedProx (Li et al. 2020): FedAvg with μ/2 ‖θ − θ_t‖² added to each local objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedProx {
    /// H, the number of local steps in a round; 1 or more.
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: u64,
    /// μ, 0 or more: the weight of the proximal term.
    #[schemars(range(min = 0.0), example = 1.0)]
    pub proximal: f64,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the L clients are drawn and weighed, which matters where clients have unequal shares; only
    /// with `cohort`.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
}

impl AlgorithmKind for FedProx {
    const FAMILY: Family = Family::FedProx;

    has_cohort!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        let words = "as FedAvg, with a pull towards the start of the round";
        Some(RoundFormula { words, tex: &[PULLED, MEAN] })
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.local_steps = local_steps;
    }

    /// One run of the engine: FedAvg with a proximal term to the start θ_t of the round.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(Terms {
            proximal: self.proximal,
            cohort: self.cohort.map(Participation::number),
            participation: self.participation,
            ..Terms::fedavg(step_size, self.local_steps)
        })]
    }
}
