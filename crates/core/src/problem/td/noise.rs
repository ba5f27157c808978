//! Whether the draws of a client are independent.

use crate::problem::fault::Faults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most transitions of a burn-in. They are not counted as local steps when a run's length is limited, so
/// they have a limit of their own.
const MOST_BURN_IN: u64 = 10_000_000;

/// Whether the draws (s, s') of a client are independent or follow its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// A new s ~ μ_c for each gradient.
    #[default]
    Independent,
    /// One trajectory per client: s' of a gradient is s of the next.
    #[serde(rename_all = "kebab-case")]
    Markov {
        /// The number of transitions from a uniformly drawn state before the first gradient.
        #[schemars(example = 100)]
        burn_in: u64,
        /// The mean number of gradients at a state before the trajectory moves on, 1 or more. After
        /// each of them it stays at s with probability 1 − 1/this, and draws s' anew. Pairs (s, s')
        /// keep their stationary distribution, and with it θ\*, A and C. The trajectory mixes this
        /// many times as slowly.
        #[serde(
            default = "crate::problem::defaults::unit",
            skip_serializing_if = "crate::problem::defaults::is_unit"
        )]
        #[schemars(range(min = 1.0), extend("default" = 1.0), example = 10.0)]
        calls_per_state: f64,
    },
}

impl Noise {
    /// Whether draws are independent.
    pub fn is_independent(&self) -> bool {
        *self == Self::Independent
    }

    /// Adds a fault if the burn-in is too long, or the calls per state are not a number of 1 or more.
    pub fn check(&self, faults: &mut Faults) {
        if let Self::Markov { burn_in, calls_per_state: calls } = *self {
            faults.require(burn_in <= MOST_BURN_IN, "noise.markov.burn-in", || {
                format!("must be at most {MOST_BURN_IN}, not {burn_in}")
            });
            let sound = calls >= 1.0 && calls.is_finite();
            faults.require(sound, "noise.markov.calls-per-state", || {
                format!("must be a number of 1 or more, not {calls}")
            });
        }
    }
}
