//! FedYogi (Reddi et al. 2021, Algorithm 2): FedAvg whose server takes the mean change of the clients for a gradient of
//! Yogi. It is FedAdam with a second moment that changes by at most (1 − β₂) Δ_t² in a round.

use super::adaptive::{ServerRule, usual_beta1, usual_beta2};
use super::info::{ADAPTIVE_STEP, FIRST_MOMENT, LOCAL, MEAN_CHANGE, RoundFormula};
use crate::federated::SecondMoment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedYogi (Reddi et al. 2021, Algorithm 2): FedAdam whose second moment changes by at most (1 − β₂) Δ² in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedYogi {
    /// β₁, 0 or more and below 1: the part of the first moment m that is kept from round to round.
    #[serde(default = "usual_beta1")]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "default" = 0.9), example = 0.9)]
    pub beta1: f64,
    /// β₂, 0 or more and below 1: the second moment v changes by (1 − β₂) Δ² in a round.
    #[serde(default = "usual_beta2")]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "default" = 0.99), example = 0.99)]
    pub beta2: f64,
}

impl ServerRule for FedYogi {
    const ROUND: RoundFormula = RoundFormula {
        words: "local steps of every client from θ_t; the server takes their mean change Δ_t for a gradient of Yogi; two vectors per client and round, θ down and up",
        tex: &[
            LOCAL,
            MEAN_CHANGE,
            FIRST_MOMENT,
            r"v_t = v_{t-1} - (1 - \beta_2) \Delta_t^2 \, \mathrm{sign} \left( v_{t-1} - \Delta_t^2 \right)",
            ADAPTIVE_STEP,
        ],
    };

    fn beta1(&self) -> f64 {
        self.beta1
    }

    fn second_moment(&self) -> SecondMoment {
        SecondMoment::Yogi { beta2: self.beta2 }
    }
}
