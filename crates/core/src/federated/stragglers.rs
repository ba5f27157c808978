//! Clients that do a random part of their work in a round (Li et al. 2020, FedProx, section 5.2).

use crate::problem::Faults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clients that do a random part of their work in a round, as in FedProx's experiments. Of the m
/// clients that take part, m − (1 − fraction) m, with the last number rounded to the nearest whole one,
/// are drawn anew in each round, all with the same probability. Each of them takes a number of local
/// steps that is drawn uniformly from 1 to its E_k. Where `local-epochs` is a whole number, it takes a
/// number of epochs from 1 to that one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Stragglers {
    /// The fraction of the participating clients that are stragglers, above 0 and at most 1.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0), example = 0.9)]
    pub fraction: f64,
    /// The most local steps, or epochs, of a straggler, 1 or more. Without this key it may do all of its work.
    /// FedProx's code draws from 1 to 19 of 20 epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 19)]
    pub most: Option<u64>,
    /// The number of epochs in a client's work, of which a straggler takes a part; `None` if its work is counted in
    /// local steps. It follows from `local-epochs`.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) epochs: Option<u64>,
}

impl Stragglers {
    /// The largest number of parts, local steps or epochs, that a straggler with `steps` local steps in a round may
    /// take.
    pub(super) fn most_parts(&self, steps: u64) -> u64 {
        let all = self.epochs.unwrap_or(steps);
        self.most.map_or(all, |most| most.min(all)).max(1)
    }

    /// The local steps that `parts` parts of the work of a client come to, which takes `steps` of them in all: an epoch
    /// has as many as the others, rounded up.
    pub(super) fn steps_of_parts(&self, parts: u64, steps: u64) -> u64 {
        match self.epochs {
            None => parts,
            Some(epochs) => {
                (u128::from(parts) * u128::from(steps)).div_ceil(u128::from(epochs)) as u64
            }
        }
    }

    /// How many of `members` clients that take part are stragglers.
    pub(super) fn count(&self, members: usize) -> usize {
        let all = members as f64;
        members - libm::floor(all * (1.0 - self.fraction) + 0.5) as usize
    }

    /// The expected number of local steps of a client that would take `steps` of them, if `members` clients take part
    /// and it is one of them.
    pub fn mean_steps(&self, steps: u64, members: usize) -> f64 {
        let most = self.most_parts(steps);
        let of_straggler = match self.epochs {
            None => 0.5 * (most + 1) as f64,
            Some(_) => {
                let all = (1..=most).map(|parts| self.steps_of_parts(parts, steps) as f64);
                all.fold(0.0, |sum, x| sum + x) / most as f64
            }
        };
        let part = self.count(members) as f64 / members as f64;
        part * of_straggler + (1.0 - part) * steps as f64
    }

    /// Adds what is wrong with the keys.
    pub(super) fn check(&self, faults: &mut Faults) {
        let is_part = self.fraction > 0.0 && self.fraction <= 1.0;
        faults.require(is_part, "stragglers.fraction", || {
            format!("must be above 0 and at most 1, not {}", self.fraction)
        });
        faults.at_least_one("stragglers.most", self.most.unwrap_or(1));
    }
}
