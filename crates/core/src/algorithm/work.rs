//! The keys of algorithms whose clients may do unequal numbers of local steps.

use crate::federated::{Decay, Terms};
use crate::flattened::Flattened;
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of algorithms whose clients may do unequal numbers of local steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Work {
    /// H, the number of local steps in a round, the same for all clients; 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub local_steps: Option<u64>,
    /// E_k, the numbers of local steps in a round where clients differ, in place of
    /// `local-steps`: client k takes number k modulo the length of the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_STEPS)]
    pub steps_per_client: Vec<u64>,
    /// Whether γ_k = γ/E_k (FedLin; BOOK 5.11), so that every client moves along γ. Otherwise
    /// γ_k = γ, and clients with more local steps weigh more (BOOK, problem 5.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true, extend("default" = false))]
    pub normalised: bool,
    /// Step sizes that fall from round to round, γ_t = γ (1 + t/offset)^(−power), so that the
    /// iterates tend to θ\* and not to a point at a distance of order γ. Without this table they are
    /// constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = EXAMPLE_DECAY)]
    pub decay: Option<Decay>,
}

impl Work {
    /// Keys by which every client takes this number of local steps, all of one size.
    pub(super) fn equal(local_steps: u64) -> Self {
        Self { local_steps: Some(local_steps), ..Self::default() }
    }

    /// `terms` with the numbers of local steps, the normalisation and the decay of these keys. Without a number, which
    /// [`faults`](Self::faults) refuses, there is 1 local step.
    pub(super) fn terms(&self, terms: Terms) -> Terms {
        let local_steps = numbers(self.local_steps, &self.steps_per_client);
        Terms { local_steps, normalised: self.normalised, decay: self.decay, ..terms }
    }

    /// What is wrong with the numbers of local steps: a manifest must write exactly one of `local-steps` and
    /// `steps-per-client`. That the numbers themselves are possible, [`Terms::check`] finds.
    pub(super) fn faults(&self) -> Vec<Fault> {
        match (self.local_steps, self.steps_per_client.is_empty()) {
            (None, true) => {
                vec![Fault::new("local-steps", "is required: the number of local steps in a round")]
            }
            (Some(_), false) => {
                let message = "and `local-steps` exclude each other: write one of them";
                vec![Fault::new("steps-per-client", message)]
            }
            _ => Vec::new(),
        }
    }
}

/// The keys of an algorithm whose clients may do unequal numbers of local steps: those of [`Work`], and those of its
/// kind alone, `T`.
pub type WithWork<T> = Flattened<Work, T>;

/// An example of the key `steps-per-client` for the documentation.
const EXAMPLE_STEPS: [u64; 3] = [1, 2, 5];
/// An example of the key `batch-per-client` for the documentation.
pub(super) const EXAMPLE_BATCHES: [u64; 2] = [1, 4];
/// An example of the key `decay` for the documentation.
const EXAMPLE_DECAY: Decay = Decay { power: 0.66, offset: 10.0 };

/// E_k or B_k as [`Terms`] have them, from two keys: `each`, a list that clients take in turn, or if it is empty `all`,
/// the number of every client; 1 without either. The list that is returned is never empty.
pub(super) fn numbers(all: Option<u64>, each: &[u64]) -> Vec<u64> {
    if each.is_empty() { vec![all.unwrap_or(1)] } else { each.to_vec() }
}

/// Whether batches are their default, one oracle call in each local step, which the canonical text leaves out.
pub(super) fn are_single(batches: &[u64]) -> bool {
    batches.is_empty() || batches == [1]
}
