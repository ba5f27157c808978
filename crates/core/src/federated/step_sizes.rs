//! The step sizes of the rounds of a run, and of the local steps of a round.

use super::{Decay, DecayUnit, Terms};
use crate::problem::Faults;

impl Terms {
    /// The decay of step sizes, if it counts local steps, so that the steps of a round differ in their sizes.
    pub fn decay_by_step(&self) -> Option<Decay> {
        self.decay.filter(|decay| decay.by == DecayUnit::LocalSteps)
    }

    /// Whether every round has the same local steps: their numbers are not drawn anew, and their sizes do not fall.
    pub fn repeats_local_work(&self) -> bool {
        self.decay.is_none() && self.stragglers.is_none()
    }

    /// What the decay of step sizes has counted before the round after `rounds` others, and so before its first local
    /// step; 0 without a decay.
    pub fn decay_count(&self, rounds: u64) -> u64 {
        match self.decay {
            None => 0,
            Some(Decay { by: DecayUnit::Rounds, .. }) => rounds,
            Some(Decay { by: DecayUnit::LocalSteps, .. }) => rounds * self.most_steps(),
        }
    }

    /// What γ_k is multiplied by in local step number `step`, from 0 on, of a round before which the decay has counted
    /// to `count` ([`Self::decay_count`]); 1 without a decay.
    pub fn step_factor(&self, count: u64, step: u64) -> f64 {
        match self.decay {
            None => 1.0,
            Some(decay) if decay.by == DecayUnit::Rounds => decay.factor(count),
            Some(decay) => decay.factor(count + step),
        }
    }

    /// Σ γ_{k,h}, the sum of the sizes of the local steps of a client in a round before which the decay has counted to
    /// `count`: γ_k E_k unless sizes fall from step to step.
    pub fn length(&self, client: usize, count: u64) -> f64 {
        let steps = self.steps(client);
        if self.decay_by_step().is_none() {
            return self.step_factor(count, 0) * self.step(client) * steps as f64;
        }
        let factors = (0..steps).map(|step| self.step_factor(count, step));
        self.step(client) * factors.fold(0.0, |sum, factor| sum + factor)
    }

    /// Adds what is wrong with the decay of step sizes.
    pub(super) fn check_decay(&self, faults: &mut Faults) {
        if let Some(Decay { power, offset, by }) = self.decay {
            faults.require(power > 0.0 && power <= 1.0, "decay.power", || {
                format!("must be above 0 and at most 1, not {power}")
            });
            faults.positive("decay.offset", offset);
            let has_one_size = by == DecayUnit::Rounds || !self.normalised_progress;
            faults.require(has_one_size, "decay.by", || {
                "cannot be \"local-steps\" here: what FedNova divides by would change from round to round"
                    .into()
            });
        }
    }
}
