//! The keys of algorithms whose clients may do unequal numbers of local steps.

use crate::federated::{Decay, Stragglers, Terms};
use crate::flattened::Flattened;
use crate::problem::{Fault, Faults};
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
    /// The epochs of a round, above 0, in place of `local-steps`: how often a client passes over its
    /// records. Client k, which holds n_k records, takes this number times n_k/B local steps, rounded
    /// up, with B the records of a local step. With `sampling = "reshuffled"` n_k/B is rounded up
    /// before. Only on problems of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1.0)]
    pub local_epochs: Option<f64>,
    /// The numbers of local steps that `local_epochs` come to, which depend on the records that clients hold: one per
    /// client, or one for all. Empty until they are known ([`Work::set_steps_of_epochs`]). It follows from the
    /// algorithm and the instance, and so it is no part of the text that ids hash.
    #[serde(skip)]
    #[schemars(skip)]
    steps_of_epochs: Vec<u64>,
    /// Whether γ_k = γ/E_k (FedLin; BOOK 5.11), so that every client moves along γ. Otherwise
    /// γ_k = γ, and clients with more local steps weigh more (BOOK, problem 5.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true, extend("default" = false))]
    pub normalised: bool,
    /// Step sizes that fall from round to round, γ_t = γ (1 + t/offset)^(−power), so that the
    /// iterates tend to θ\* and not to a point at a distance of order γ; with `by = "local-steps"` they
    /// fall from local step to local step. Without this table they are constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = EXAMPLE_DECAY)]
    pub decay: Option<Decay>,
    /// Clients that do a random part of their work in a round, as in FedProx's experiments. Without
    /// this table all finish it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = EXAMPLE_STRAGGLERS)]
    pub stragglers: Option<Stragglers>,
}

impl Work {
    /// Keys by which every client takes this number of local steps, all of one size.
    pub(super) fn equal(local_steps: u64) -> Self {
        Self { local_steps: Some(local_steps), ..Self::default() }
    }

    /// `terms` with the numbers of local steps, the normalisation and the decay of these keys. Without a number, which
    /// [`faults`](Self::faults) refuses, and before the numbers of `local_epochs` are known, there is 1 local step.
    pub(super) fn terms(&self, terms: Terms) -> Terms {
        let of_clients = match self.local_epochs {
            Some(_) => &self.steps_of_epochs,
            None => &self.steps_per_client,
        };
        let local_steps = numbers(self.local_steps, of_clients);
        let stragglers =
            self.stragglers.map(|keys| Stragglers { epochs: self.whole_epochs(), ..keys });
        Terms { local_steps, normalised: self.normalised, decay: self.decay, stragglers, ..terms }
    }

    /// `local-epochs`, if they are written and a whole number.
    fn whole_epochs(&self) -> Option<u64> {
        self.local_epochs.filter(|epochs| epochs.fract() == 0.0).map(|epochs| epochs as u64)
    }

    /// Sets the numbers of local steps of all clients that the epochs of these keys come to. `calls_of_epoch` are the
    /// oracle calls of an epoch of each client ([`crate::problem::Facts::calls_of_epoch`]), and `batches` are B_k as
    /// [`Terms`] have them, the oracle calls of a local step. Does nothing if the keys state no epochs.
    pub(super) fn set_steps_of_epochs(&mut self, calls_of_epoch: &[f64], batches: &[u64]) {
        let Some(epochs) = self.local_epochs else { return };
        let mut steps = Vec::with_capacity(calls_of_epoch.len());
        for (calls, batch) in calls_of_epoch.iter().zip(batches.iter().cycle()) {
            // A product such as 0.07 · 100 may be above a whole number by roundings alone.
            let exact = epochs * calls / *batch as f64 * (1.0 - 4.0 * f64::EPSILON);
            steps.push((libm::ceil(exact) as u64).max(1));
        }
        // One number for all is what theory knows more of.
        if steps.iter().all(|of_client| *of_client == steps[0]) {
            steps.truncate(1);
        }
        self.steps_of_epochs = steps;
    }

    /// What is wrong with the numbers of local steps: a manifest must write exactly one of `local-steps`,
    /// `steps-per-client` and `local-epochs`. That the numbers themselves are possible, [`Terms::check`] finds.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut written = Vec::new();
        if self.local_steps.is_some() {
            written.push("local-steps");
        }
        if !self.steps_per_client.is_empty() {
            written.push("steps-per-client");
        }
        if self.local_epochs.is_some() {
            written.push("local-epochs");
        }
        let mut faults = Faults::default();
        match written.as_slice() {
            [] => {
                let message = "is required: the number of local steps in a round";
                faults.0.push(Fault::new("local-steps", message));
            }
            [first, second, ..] => {
                let message = format!("and `{first}` exclude each other: write one of them");
                faults.0.push(Fault::new(*second, message));
            }
            [_] => {}
        }
        if let Some(epochs) = self.local_epochs {
            faults.positive("local-epochs", epochs);
            // A straggler does whole epochs, or if epochs are no whole number any number of local steps.
            let most = self.stragglers.and_then(|stragglers| stragglers.most);
            faults.require(most.is_none() || epochs.fract() == 0.0, "stragglers.most", || {
                format!(
                    "counts epochs, so that `local-epochs` must be a whole number, not {epochs}"
                )
            });
        }
        faults.0
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
pub(super) const EXAMPLE_DECAY: Decay = Decay::by_rounds(0.66, 10.0);
/// An example of the key `stragglers` for the documentation.
const EXAMPLE_STRAGGLERS: Stragglers = Stragglers { fraction: 0.9, most: None, epochs: None };

/// E_k or B_k as [`Terms`] have them, from two keys: `each`, a list that clients take in turn, or if it is empty `all`,
/// the number of every client; 1 without either. The list that is returned is never empty.
pub(super) fn numbers(all: Option<u64>, each: &[u64]) -> Vec<u64> {
    if each.is_empty() { vec![all.unwrap_or(1)] } else { each.to_vec() }
}

/// Whether batches are their default, one oracle call in each local step, which the canonical text leaves out.
pub(super) fn are_single(batches: &[u64]) -> bool {
    batches.is_empty() || batches == [1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Instance, Spec, fedavg};
    use crate::federated::Conditions;
    use crate::sample;

    /// The numbers of local steps of FedAvg on clients with 4, 8, 12 and 16 records, two in a gradient.
    fn steps(epochs: f64, batch_per_client: Vec<u64>) -> Vec<u64> {
        let spec = counted_in_epochs(epochs, batch_per_client);
        let problem = sample::weighted_ridge();
        let resolved = spec.on_instance(&problem);
        resolved.components().remove(0).terms.local_steps
    }

    fn counted_in_epochs(epochs: f64, batch_per_client: Vec<u64>) -> Spec {
        let mut settings = fedavg::Settings::new(0.1, 1);
        settings.own.common.local_steps = None;
        settings.own.common.local_epochs = Some(epochs);
        settings.own.own.batch_per_client = batch_per_client;
        Spec::FedAvg(settings)
    }

    #[test]
    fn epochs_are_local_steps_rounded_up() {
        assert_eq!(steps(1.0, Vec::new()), [2, 4, 6, 8]);
        assert_eq!(steps(0.5, Vec::new()), [1, 2, 3, 4]);
        assert_eq!(steps(0.3, Vec::new()), [1, 2, 2, 3]);
        assert_eq!(steps(0.01, Vec::new()), [1]);
        assert_eq!(steps(3.0, vec![1, 4]), [6, 3, 18, 6]);
        let mut work = Work { local_epochs: Some(0.07), ..Work::default() };
        work.set_steps_of_epochs(&[100.0, 200.0], &[1]);
        assert_eq!(work.steps_of_epochs, [7, 14], "0.07 · 100 is above 7 by a rounding");
    }

    #[test]
    fn runs_in_epochs_are_those_of_the_steps_that_they_come_to() {
        let problem = sample::weighted_ridge();
        let start = vec![0.5; 3];
        let from = Conditions { seed: 5, replicate: 0, start: &start, rounds: 5, copy: 0 };
        let mut written = fedavg::Settings::new(0.1, 1);
        written.own.common = Work { steps_per_client: vec![2, 4, 6, 8], ..Work::default() };
        let written = Spec::FedAvg(written);
        let mut runs = [counted_in_epochs(1.0, Vec::new()), written]
            .map(|spec| Instance::launch(&problem, &spec, &from));
        for _ in 0..5 {
            runs.iter_mut().for_each(|run| run.round());
            assert_eq!(runs[0].estimate(), runs[1].estimate());
            assert_eq!(runs[0].cost(), runs[1].cost());
        }
    }

    #[test]
    fn one_statement_of_local_work_is_allowed() {
        let both = Work { local_epochs: Some(1.0), ..Work::equal(2) };
        let fault = both.faults().remove(0);
        assert_eq!(fault.key, "local-epochs");
        assert!(fault.message.contains("`local-steps` exclude each other"), "{}", fault.message);
        let none = Work { local_epochs: Some(0.0), ..Work::default() };
        assert_eq!(none.faults().remove(0).key, "local-epochs");
        assert!(Work { local_epochs: Some(0.5), ..Work::default() }.faults().is_empty());
    }
}
