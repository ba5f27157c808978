//! Algorithms of manifests as those of a search.

use super::rounds::{ProblemSize, constant_rounds, local_runs, treats_clients_alike};
use super::{Component, Spec};
use crate::round_program::{LocalRuns, RoundPrice, RoundSettings, Rounds, Traced};
use std::sync::Arc;

/// The rounds of an algorithm as a program, or why they are none.
pub type ProgramOf = Arc<dyn Fn(&Spec) -> Traced + Send + Sync>;

/// An algorithm of which a search varies γ, H and the choice of its other settings.
#[derive(Clone)]
pub struct SearchedSpecs {
    /// The name of the algorithm, for messages.
    pub name: String,
    /// Its settings for each choice. Their γ and H are replaced.
    pub choices: Vec<Spec>,
    /// Whether H is searched.
    pub has_local_steps: bool,
    /// The rounds of settings, on the problem of the search.
    pub program_of: ProgramOf,
}

impl SearchedSpecs {
    /// A built-in algorithm with one choice of other settings, on problems of this size.
    pub fn built_in(spec: Spec, size: ProblemSize) -> Self {
        let name = spec.kind().to_owned();
        let program_of: ProgramOf = Arc::new(move |spec| constant_rounds(&spec.components(), size));
        Self { name, choices: vec![spec], has_local_steps: true, program_of }
    }

    fn spec(&self, settings: &RoundSettings) -> Spec {
        self.choices[settings.choice].with_scale(settings.step_size, settings.local_steps)
    }
}

impl Rounds for SearchedSpecs {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self, settings: &RoundSettings) -> Traced {
        (self.program_of)(&self.spec(settings))
    }

    fn price(&self, settings: &RoundSettings) -> RoundPrice {
        self.spec(settings).round_price(settings.clients)
    }

    fn choices(&self) -> usize {
        self.choices.len()
    }

    fn has_local_steps(&self) -> bool {
        self.has_local_steps
    }

    fn treats_clients_alike(&self) -> bool {
        self.choices.iter().all(Spec::treats_clients_alike)
    }

    /// Errors of runs of local steps, and of rounds that a coin ends, come below a target and stay there, or rise above
    /// it within the rounds that are looked at one by one. Of other rounds that is not known.
    fn may_oscillate(&self) -> bool {
        !self.choices.iter().all(is_known_not_to_oscillate)
    }

    fn local_runs(&self, settings: &RoundSettings) -> Option<LocalRuns> {
        local_runs(&runs_of_all_clients_alike(&self.spec(settings))?, 1)
    }
}

impl Spec {
    /// Whether all clients take part in each round with the same local steps, so that the rounds are known for every
    /// number of clients. It is not known of custom algorithms, whose rounds are traced with one number of clients.
    pub fn treats_clients_alike(&self) -> bool {
        runs_of_all_clients_alike(self).is_some()
    }
}

/// The runs of a built-in algorithm whose clients all take part in each round, with the same local steps; `None` of any
/// other algorithm.
fn runs_of_all_clients_alike(spec: &Spec) -> Option<Vec<Component>> {
    if spec.is_custom() {
        return None;
    }
    let runs = spec.components();
    let are_alike =
        runs.iter().all(|run| run.terms.cohort.is_none() && treats_clients_alike(&run.terms));
    are_alike.then_some(runs)
}

/// Whether rounds are ended by a coin, or are runs of local steps.
fn is_known_not_to_oscillate(spec: &Spec) -> bool {
    let Some(runs) = runs_of_all_clients_alike(spec) else { return false };
    runs.iter().all(|run| run.terms.coin().is_some()) || local_runs(&runs, 1).is_some()
}
