//! Mini-batch SGD, the reference that local steps compete with: in each round
//! every client averages H oracle calls at θ_t, and the server takes one step
//! of size γ along their mean (BOOK 5.3–5.4 for H = 1). On a linear field it
//! is centralised LSA. It is FedAvg with one local step and batch H, and has
//! no heterogeneity bias.

use super::info::{Family, RoundFormula};
use super::{AlgorithmKind, Component, Participation, has_cohort};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Decay, Terms};
use crate::sources::StatedAlgorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mini-batch SGD, called centralised LSA on a linear field: one step of the server in each
/// round, along the mean of all gradients at θ_t.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MinibatchSgd {
    /// The number of gradients of each client in a round, all at θ_t; 1 or more. They count
    /// as local steps where `budget.local-steps` gives the length of a run.
    #[serde(default = "one")]
    #[schemars(range(min = 1), example = 10)]
    pub batch: u64,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the clients of a round are selected and weighed.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
    /// Step sizes that fall from round to round, γ_t = γ (1 + t/offset)^(−power). Without this table
    /// they are constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = super::EXAMPLE_DECAY)]
    pub decay: Option<Decay>,
}

fn one() -> u64 {
    1
}

impl MinibatchSgd {
    /// The keys of mini-batch SGD with this batch, and defaults for all else.
    pub fn new(batch: u64) -> Self {
        let participation = ParticipationScheme::Normalised;
        Self { batch, cohort: None, participation, decay: None }
    }
}

impl AlgorithmKind for MinibatchSgd {
    const FAMILY: Family = Family::Sgd;

    has_cohort!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        const STEP: &str = r"\theta_{t+1} = \theta_t - \frac{\gamma}{N} \sum_{c=1}^{N} \frac{1}{B} \sum_{b=1}^{B} F_c(\theta_t; Z_{c,b})";
        let words = "one step a round with the mean over a batch of every client";
        Some(RoundFormula { words, tex: &[STEP] })
    }

    fn stated(&self) -> StatedAlgorithm {
        StatedAlgorithm::MinibatchSgd
    }

    /// The batch, which counts as local steps where a budget gives their number.
    fn local_steps(&self) -> u64 {
        self.batch
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.batch = local_steps;
    }

    fn local_steps_key() -> &'static str {
        "batch"
    }

    /// One run of the engine: FedAvg with one local step, on the mean of the batch.
    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(Terms {
            batches: vec![self.batch],
            cohort: self.cohort.map(Participation::number),
            participation: self.participation.clone(),
            decay: self.decay,
            ..Terms::fedavg(step_size, 1)
        })]
    }
}
