//! FedAdagrad (Reddi et al. 2021, Algorithm 2): FedAvg whose server takes the mean change of the clients for a gradient
//! of Adagrad. Its second moment never falls, so that its steps become smaller from round to round.

use super::adaptive::ServerRule;
use super::info::{ADAPTIVE_STEP, FIRST_MOMENT, LOCAL, MEAN_CHANGE, RoundFormula};
use crate::federated::SecondMoment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedAdagrad (Reddi et al. 2021, Algorithm 2): FedAvg whose server moves by Adagrad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FedAdagrad {
    /// β₁, 0 or more and below 1: the part of the first moment m that is kept from round to round. At 0 the server has
    /// no momentum.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0, "default" = 0.0), example = 0.9)]
    pub beta1: f64,
}

impl ServerRule for FedAdagrad {
    const ROUND: RoundFormula = RoundFormula {
        words: "local steps of every client from θ_t; the server takes their mean change Δ_t for a gradient of Adagrad; two vectors per client and round, θ down and up",
        tex: &[LOCAL, MEAN_CHANGE, FIRST_MOMENT, r"v_t = v_{t-1} + \Delta_t^2", ADAPTIVE_STEP],
    };

    fn beta1(&self) -> f64 {
        self.beta1
    }

    fn second_moment(&self) -> SecondMoment {
        SecondMoment::Sum
    }
}
