//! Published bounds for the cells of an experiment: which apply to a cell, and to which quantity.
//!
//! *Invariant*: a cell that does not meet a bound's conditions has no value of it.

use super::refused::Computation;
use super::theory::{Theory, single_scenario};
use exactfed_core::algorithm::Average;
use exactfed_core::federated::{Clock, Schedule, Variates};
use exactfed_core::problem::Facts;
use exactfed_core::sources::StatedAlgorithm;
use exactfed_core::theory::bounds::{Bound, Constants, PublishedRun};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::runner::Prepared;
use std::rc::Rc;
use std::sync::Arc;

impl Theory<'_> {
    /// The constants of a cell's instance of which published bounds are made; `None` if they are not known or too
    /// costly.
    pub fn constants(&self, prepared: &Prepared<'_>) -> Option<Rc<Constants>> {
        let scenario = &prepared.scenarios[0];
        let facts: &dyn Facts = &*scenario.instance;
        let key: *const () = Arc::as_ptr(&scenario.instance).cast();
        if let Some(known) = self.constants.borrow().get(&key) {
            return known.clone();
        }
        if !facts.knows_facts_at_optimum() {
            return None;
        }
        self.refused.permit(prepared, Computation::Constants, || Constants::effort(facts))?;
        let found = Constants::new(facts).map(Rc::new);
        self.constants.borrow_mut().insert(key, found.clone());
        found
    }

    /// A published bound for a cell after this number of rounds; `None` if `by` is no bound, if it is not about the
    /// cell's algorithm, if the cell has several instances, or if the constants of its instance are not known. The
    /// conditions of a bound that is about the algorithm may still fail ([`Bound::value`]).
    pub fn bound(&self, id: &str, by: Prediction, round: u64) -> Option<Bound> {
        let Prediction::Bound(bound) = by else { return None };
        self.find_bounds(id, round, |run| bound.for_run(run))?
    }

    /// The published bounds about a cell's algorithm that tables list for every cell, after this number of rounds.
    pub fn listed_bounds(&self, id: &str, round: u64) -> Vec<Bound> {
        self.find_bounds(id, round, |run| run.listed_bounds()).unwrap_or_default()
    }

    /// All other published bounds about a cell's algorithm, after this number of rounds.
    pub fn unlisted_bounds(&self, id: &str, round: u64) -> Vec<Bound> {
        self.find_bounds(id, round, |run| run.unlisted_bounds()).unwrap_or_default()
    }

    /// What `find` finds for a cell after this number of rounds, once the cell is written in the terms of published
    /// bounds; `None` if no published bound is about its algorithm, it has several instances, or constants are not
    /// known.
    pub(super) fn find_bounds<T>(
        &self,
        id: &str,
        round: u64,
        find: impl FnOnce(&PublishedRun<'_>) -> T,
    ) -> Option<T> {
        let prepared = self.cells.get(id)?;
        let scenario = single_scenario(prepared)?;
        let identity = &prepared.cell.identity;
        let mut components = identity.algorithm.components();
        let count = components.len();
        // The two runs of Richardson-Romberg differ in the step size: that of the first one is γ.
        let terms = components.swap_remove(0).terms;
        let plain = terms.proximal == 0.0
            && terms.goes_to_mean()
            && terms.repeats_local_work()
            && !terms.normalised_progress;
        if identity.algorithm.average() != Average::None || !plain {
            return None;
        }
        let (algorithm, probability) = match (count, terms.schedule, terms.variates) {
            (2.., ..) => match identity.algorithm.stated() {
                two @ StatedAlgorithm::RichardsonRomberg => (two, None),
                _ => return None,
            },
            (_, Schedule::Bernoulli { probability, clock: Clock::Steps }, _) => {
                (StatedAlgorithm::RandomScaffold, Some(probability))
            }
            (_, Schedule::Every, Variates::None) => (StatedAlgorithm::FedAvg, None),
            (_, Schedule::Every, Variates::Kept(_)) => (StatedAlgorithm::Scaffold, None),
            _ => return None,
        };
        // The bounds take clients to be drawn without replacement, all with the same probability.
        if terms.may_leave_out_clients() && !terms.participation.is_uniform() {
            return None;
        }
        let facts: &dyn Facts = &*scenario.instance;
        // Bounds are about independent draws or draws along Markov chains. Where records are drawn without replacement
        // in an epoch, they are neither.
        if !facts.independent() && facts.positions(0).is_none() {
            return None;
        }
        let constants = self.constants(prepared)?;
        Some(find(&PublishedRun {
            facts,
            constants: &constants,
            algorithm,
            probability,
            step_size: terms.step_size,
            most_steps: terms.most_steps(),
            normalised: terms.normalised,
            rounds: round,
            start_sq_error: facts.sq_distance_to_optimum(&scenario.start),
            cohort: terms.cohort,
            local_steps: terms.local_steps,
            batches: terms.batches,
        }))
    }
}
