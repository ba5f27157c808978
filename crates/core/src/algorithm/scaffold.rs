//! Scaffold (Karimireddy et al. 2020; SLIDES II), which on a linear field is
//! SCAFFLSA: under fixed work H2 (SCAFFLSA Alg. 4), or under one coin for all
//! clients at each step, H1 (Alg. 2).

use super::info::{BY_COIN, CORRECTED, Family, MEAN, RoundFormula};
use super::{
    AlgorithmKind, Component, Participation, RelativeNumber, WithWork, Work, has_cohort, has_work,
    numbers,
};
use crate::client_sampling::ParticipationScheme;
use crate::federated::{Clock, Learning, Schedule, Terms, Variates};
use crate::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[algorithm.scaffold]]`, `[[algorithm.scafflsa]]`
pub type Settings = super::Settings<WithWork<Scaffold>>;

/// Scaffold (Karimireddy et al. 2020), called SCAFFLSA on a linear field: under a fixed number of
/// local steps (H2; SCAFFLSA, Algorithm 4), or under random communication (H1; Algorithm 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Scaffold {
    /// p, the probability that a local step is followed by communication (H1),
    /// in place of `local-steps`; from 1e-9 to 1. Or a multiple of a constant of the problem, such as
    /// 1/√κ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1e-9, "maximum" = 1.0), example = 0.1)]
    pub communication_probability: Option<RelativeNumber>,
    /// What a round is under `communication-probability`.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "communications"))]
    pub clock: Clock,
    /// How a control variate learns.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "option-two"))]
    pub variates: Learning,
    /// B_k, the numbers of gradients averaged in each local step, cycled over the clients.
    #[serde(default, skip_serializing_if = "super::are_single")]
    #[schemars(example = super::EXAMPLE_BATCHES, extend("default" = [1]))]
    pub batch_per_client: Vec<u64>,
    /// L, the number of clients drawn in each round, or a fraction of all N
    /// above 0 and below 1, which stands for the number nearest to it, at least 1; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 5)]
    pub cohort: Option<Participation>,
    /// How the clients of a round are selected and weighed.
    #[serde(default, skip_serializing_if = "crate::problem::is_default")]
    #[schemars(extend("default" = "normalised"), example = &"rescaled")]
    pub participation: ParticipationScheme,
    /// γ_g, above 0: the server moves this fraction of the way to the clients' mean.
    #[serde(default = "crate::problem::unit", skip_serializing_if = "crate::problem::is_unit")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = 1.0), example = 1.0)]
    pub server_step: f64,
}

impl Settings {
    /// Scaffold with this step size γ and H local steps of every client, and defaults for all else.
    pub fn new(step_size: f64, local_steps: u64) -> Self {
        let own = Scaffold { server_step: 1.0, ..Scaffold::default() };
        Self::plain(step_size, WithWork { common: Work::equal(local_steps), own })
    }
}

impl AlgorithmKind for WithWork<Scaffold> {
    const FAMILY: Family = Family::Scaffold;

    has_cohort!();
    has_work!();

    /// What the algorithm does in a round, as pages write it.
    fn round(&self) -> Option<RoundFormula> {
        if self.communication_probability.is_some() {
            return Some(BY_COIN);
        }
        const LEARN: &str = r"\xi_c \leftarrow \xi_c + \frac{\theta_c - \theta_{t+1}}{\gamma H}";
        let words = "as FedAvg, with control variates that are updated at the end of a round";
        Some(RoundFormula { words, tex: &[CORRECTED, MEAN, LEARN] })
    }

    /// One run of the engine. The keys of [`Work`] replace the 1 local step that is written here; under a coin, where
    /// they are not written, the coin decides on the number of local steps.
    fn components(&self, step_size: f64) -> Vec<Component> {
        let schedule = match self.communication_probability {
            Some(probability) => {
                Schedule::Bernoulli { probability: probability.value(), clock: self.clock }
            }
            None => Schedule::Every,
        };
        vec![Component::one(self.common.terms(Terms {
            schedule,
            batches: numbers(None, &self.batch_per_client),
            cohort: self.cohort.map(Participation::number),
            participation: self.participation.clone(),
            server_step: self.server_step,
            variates: Variates::Kept(self.variates),
            ..Terms::fedavg(step_size, 1)
        }))]
    }

    /// The probability of communication, if it is written.
    fn relative_numbers_mut(&mut self) -> Vec<(&'static str, &mut RelativeNumber)> {
        let probability = self.own.communication_probability.as_mut();
        probability.map(|p| ("communication-probability", p)).into_iter().collect()
    }

    fn set_local_steps(&mut self, local_steps: u64) {
        self.common.local_steps = Some(local_steps);
    }

    /// The first thing that is wrong with the combination of keys, if any: those of a coin and those of fixed numbers
    /// of local steps exclude each other, but for `decay`. `cohort` and `server-step`, and the numbers themselves, are
    /// checked with the terms.
    fn faults(&self) -> Vec<Fault> {
        if self.communication_probability.is_none() {
            if self.clock != Clock::Communications {
                return one_fault("clock", "has a meaning with `communication-probability` only");
            }
            return self.common.faults();
        }
        // Step sizes may fall from one communication to the next.
        let mut others = self.common.clone();
        others.decay = None;
        if others != Work::default() {
            let message = "stands in place of `local-steps`, `steps-per-client`, `local-epochs`, `stragglers` and `normalised`: the number of local steps is random";
            return one_fault("communication-probability", message);
        }
        if self.variates != Learning::OptionTwo {
            return one_fault("variates", "cannot be chosen beside `communication-probability`");
        }
        Vec::new()
    }
}

/// A list of the one thing that is wrong with settings.
fn one_fault(key: &'static str, message: &str) -> Vec<Fault> {
    vec![Fault::new(key, message)]
}
