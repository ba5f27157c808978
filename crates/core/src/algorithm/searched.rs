//! Algorithms of manifests as a search over step sizes and numbers of local steps tries them.

use super::rounds::{ProblemSize, constant_rounds, local_runs, treats_clients_alike};
use super::{Component, Spec};
use crate::round_program::{LocalRuns, RoundPrice, RoundSettings, Rounds, Traced};
use std::sync::Arc;

/// A function that returns the rounds of an algorithm as a program, or why they are none.
pub type ProgramOf = Arc<dyn Fn(&Spec) -> Traced + Send + Sync>;

/// An algorithm of which a search varies the step size γ, the number H of local steps and the choice of its other
/// settings.
#[derive(Clone)]
pub struct SearchedSpecs {
    /// The name of the algorithm, for messages.
    pub name: String,
    /// The settings of the algorithm for each choice. Their γ and H count for nothing, since the search replaces them.
    pub choices: Vec<Spec>,
    /// Whether H is searched.
    pub has_local_steps: bool,
    /// Returns the rounds of the algorithm with given settings, on the problem of the search.
    pub program_of: ProgramOf,
}

impl SearchedSpecs {
    /// A built-in algorithm with one choice of other settings, on problems of this size. Its name is its kind, and H is
    /// searched.
    pub fn built_in(spec: Spec, size: ProblemSize) -> Self {
        let name = spec.kind().to_owned();
        let program_of: ProgramOf = Arc::new(move |spec| constant_rounds(&spec.components(), size));
        Self { name, choices: vec![spec], has_local_steps: true, program_of }
    }

    /// The algorithm with these settings: its choice at their step size γ and number H of local steps.
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

    /// False where all choices are runs of local steps or are under a coin: their errors, once below a target, stay
    /// there or rise above it again within the rounds that a search looks at one by one. Of other rounds that is not
    /// known.
    fn may_oscillate(&self) -> bool {
        !self.choices.iter().all(is_known_not_to_oscillate)
    }

    /// The runs of local steps with one client, which stands for all, since they are alike. `None` if clients differ,
    /// or rounds are no runs of local steps.
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

/// The runs of a built-in algorithm whose clients all take part in each round and take the same local steps; `None` for
/// any other algorithm.
fn runs_of_all_clients_alike(spec: &Spec) -> Option<Vec<Component>> {
    if spec.is_custom() {
        return None;
    }
    let runs = spec.components();
    let are_alike = runs
        .iter()
        .all(|run| !run.terms.may_leave_out_clients() && treats_clients_alike(&run.terms));
    are_alike.then_some(runs)
}

/// Whether rounds are ended by a coin, or are runs of local steps ([`local_runs`]), for which
/// [`Rounds::may_oscillate`] is false.
fn is_known_not_to_oscillate(spec: &Spec) -> bool {
    let Some(runs) = runs_of_all_clients_alike(spec) else { return false };
    runs.iter().all(|run| run.terms.coin().is_some()) || local_runs(&runs, 1).is_some()
}
