//! What runs pay, as manifests name it: the quantities that are costs, and the costs at which
//! runs are compared.

use super::{Prices, Quantity};
use exactfed_core::federated::Cost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cost at which runs are compared: each run at the last recorded round that costs at most
/// this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtCost {
    /// Exchanges between clients and server, above 0.
    Communications(#[schemars(example = 500.0)] f64),
    /// Oracle evaluations of one client, the slowest of each round, a batch of B counting B.
    Gradients(#[schemars(example = 10_000.0)] f64),
    /// Local steps of one client, the slowest if they differ.
    LocalSteps(#[schemars(example = 10_000.0)] f64),
    /// Oracle evaluations of all clients.
    OracleCalls(#[schemars(example = 100_000.0)] f64),
    /// Vectors of d numbers sent in both directions.
    VectorsSent(#[schemars(example = 5000.0)] f64),
    /// Bytes sent in both directions, 8 d per vector.
    Bytes(#[schemars(example = 1e6)] f64),
    /// Simulated seconds, by `[prices]`.
    Seconds(#[schemars(example = 60.0)] f64),
}

impl AtCost {
    /// An example for the documentation.
    pub const EXAMPLE: Self = Self::Communications(500.0);

    /// The unit, and the most that is paid in it.
    pub fn limit(self) -> (Quantity, f64) {
        match self {
            Self::Communications(most) => (Quantity::Communications, most),
            Self::Gradients(most) => (Quantity::Gradients, most),
            Self::LocalSteps(most) => (Quantity::LocalSteps, most),
            Self::OracleCalls(most) => (Quantity::OracleCalls, most),
            Self::VectorsSent(most) => (Quantity::VectorsSent, most),
            Self::Bytes(most) => (Quantity::Bytes, most),
            Self::Seconds(most) => (Quantity::Seconds, most),
        }
    }
}

impl Quantity {
    /// The costs of a run.
    pub const COSTS: [Self; 7] = [
        Self::Communications,
        Self::LocalSteps,
        Self::OracleCalls,
        Self::Gradients,
        Self::VectorsSent,
        Self::Bytes,
        Self::Seconds,
    ];

    /// What has been paid in this unit; `None` of a quantity that is measured.
    pub fn of_cost(self, cost: &Cost, prices: &Prices) -> Option<f64> {
        Some(match self {
            Self::Communications => cost.communications as f64,
            Self::LocalSteps => cost.local_steps as f64,
            Self::OracleCalls => cost.oracle_calls as f64,
            Self::Gradients => cost.sequential_calls as f64,
            Self::VectorsSent => cost.vectors_sent as f64,
            Self::Bytes => cost.bytes_sent as f64,
            Self::Seconds => {
                let bytes = prices.bandwidth.map_or(0.0, |rate| cost.bytes_sent as f64 / rate);
                let (latency, call) = (prices.latency, prices.call);
                latency * cost.communications as f64 + bytes + call * cost.sequential_calls as f64
            }
            _ => return None,
        })
    }
}
