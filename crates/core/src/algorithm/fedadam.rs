//! FedAdam (Reddi et al. 2021, Algorithm 2): FedAvg whose server takes the mean change of the clients for a gradient of
//! Adam, without the correction of the moments at the start.

use super::adaptive::{ServerRule, usual_beta1, usual_beta2};
use super::info::{ADAPTIVE_STEP, FIRST_MOMENT, LOCAL, MEAN_CHANGE, RoundFormula};
use crate::federated::SecondMoment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedAdam (Reddi et al. 2021, Algorithm 2): FedAvg whose server moves by Adam, without correcting the moments at the
/// start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedAdam {
    /// β₁, 0 or more and below 1: the part of the first moment m that is kept from round to round.
    #[serde(default = "usual_beta1")]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "default" = 0.9), example = 0.9)]
    pub beta1: f64,
    /// β₂, 0 or more and below 1: the part of the second moment v that is kept from round to round.
    #[serde(default = "usual_beta2")]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "default" = 0.99), example = 0.99)]
    pub beta2: f64,
}

impl ServerRule for FedAdam {
    const ROUND: RoundFormula = RoundFormula {
        words: "local steps of every client from θ_t; the server takes their mean change Δ_t for a gradient of Adam; two vectors per client and round, θ down and up",
        tex: &[
            LOCAL,
            MEAN_CHANGE,
            FIRST_MOMENT,
            r"v_t = \beta_2 v_{t-1} + (1 - \beta_2) \Delta_t^2",
            ADAPTIVE_STEP,
        ],
    };

    fn beta1(&self) -> f64 {
        self.beta1
    }

    fn second_moment(&self) -> SecondMoment {
        SecondMoment::Adam { beta2: self.beta2 }
    }
}
