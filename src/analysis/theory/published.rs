//! Published bounds for the cells of an experiment: which apply to a cell, and to which quantity.
//!
//! *Invariant*: a cell that does not meet a bound's conditions has no value of it.

use super::Theory;
use super::refused::Computation;
use driftbench_core::algorithm::Average;
use driftbench_core::federated::{Clock, Schedule, Variates};
use driftbench_core::kernel::squared_distance;
use driftbench_core::problem::Facts;
use driftbench_core::theory::bounds::{self, Bound, Bounded, Constants};
use driftbench_runner::manifest::Quantity;
use driftbench_runner::manifest::claim::Prediction;
use driftbench_runner::runner::Prepared;
use std::rc::Rc;
use std::sync::Arc;

impl Theory<'_> {
    /// The constants of a cell's instance; `None` if they are not known or too costly.
    pub fn constants(&self, prepared: &Prepared<'_>) -> Option<Rc<Constants>> {
        let scenario = &prepared.scenarios[0];
        let facts: &dyn Facts = &*scenario.instance;
        let key: *const () = Arc::as_ptr(&scenario.instance).cast();
        if let Some(known) = self.constants.borrow().get(&key) {
            return known.clone();
        }
        self.permit(prepared, Computation::Constants, || Constants::effort(facts))?;
        let found = Constants::new(facts).map(Rc::new);
        self.constants.borrow_mut().insert(key, found.clone());
        found
    }

    /// A published bound for a cell at a round.
    pub fn bound(&self, id: &str, by: Prediction, round: u64) -> Option<Bound> {
        let name = bound_name(by)?;
        self.bounds(id, round).into_iter().find(|b| b.name == name)
    }

    /// All published bounds that apply to a cell, at a round.
    pub fn bounds(&self, id: &str, round: u64) -> Vec<Bound> {
        let find = || {
            let prepared = self.cells.get(id)?;
            let scenario = super::single_scenario(prepared)?;
            let identity = &prepared.cell.identity;
            let components = identity.algorithm.components();
            let terms = &components[0].terms;
            if identity.algorithm.average() != Average::None {
                return None;
            }
            let scheme = match (components.len(), terms.schedule, terms.variates) {
                (2, ..) => bounds::Algorithm::RichardsonRomberg,
                (_, Schedule::Bernoulli { probability, clock: Clock::Steps }, _) => {
                    bounds::Algorithm::Coin { probability }
                }
                (_, Schedule::Every, Variates::None) => bounds::Algorithm::FedAvg,
                (_, Schedule::Every, Variates::Kept(_)) => bounds::Algorithm::Scaffold,
                _ => return None,
            };
            let facts: &dyn Facts = &*scenario.instance;
            let constants = self.constants(prepared)?;
            let steps = terms.most_steps();
            let setup = bounds::RunSetup {
                step_size: match terms.normalised {
                    true => terms.step_size / steps as f64,
                    false => terms.step_size,
                },
                local_steps: steps,
                rounds: round,
                start_sq_error: squared_distance(&scenario.start, facts.optimum()),
                cohort: terms.cohort,
            };
            if terms.batches != [1] || terms.proximal != 0.0 || terms.server_step != 1.0 {
                return None;
            }
            if scheme == bounds::Algorithm::FedAvg && terms.normalised {
                let steps: Vec<u64> = (0..facts.clients()).map(|c| terms.steps(c)).collect();
                // BOOK's μ is the step size of a whole round.
                let step_size = terms.step_size;
                let setup = bounds::RunSetup { step_size, local_steps: 1, ..setup };
                return Some(vec![bounds::book::unequal(&constants, &setup, &steps)]);
            }
            if terms.local_steps.iter().any(|e| *e != terms.local_steps[0]) {
                return None;
            }
            Some(bounds::all(facts, &constants, scheme, &setup))
        };
        find().unwrap_or_default()
    }
}

/// The name of a prediction's bound.
fn bound_name(by: Prediction) -> Option<&'static str> {
    Some(match by {
        Prediction::ScafflsaA5 => "SCAFFLSA, Theorem A.5",
        Prediction::ScafflsaB2 => "SCAFFLSA, Theorem B.2",
        Prediction::ScafflsaB5 => "SCAFFLSA, Theorem B.5",
        Prediction::RrProposition4 => "RR (second version), Proposition 4",
        Prediction::RrTheorem2 => "RR, Theorem 2",
        Prediction::RrCorollary1 => "RR, Corollary 1",
        Prediction::RrProposition2 => "RR, Proposition 2",
        Prediction::RrLemma5 => "RR, Lemma 5",
        Prediction::SlidesRate => "SLIDES, rate of Scaffold",
        Prediction::RrLemma7 => "RR (second version), Lemma 7",
        Prediction::Book51 => "BOOK, Theorem 5.1",
        _ => return None,
    })
}

/// The quantity that a bound bounds.
pub fn quantity_of(bound: &Bound) -> Quantity {
    match bound.quantity {
        Bounded::SqError => Quantity::SqError,
        Bounded::Lyapunov => Quantity::Lyapunov,
        Bounded::Bias => Quantity::Bias,
        Bounded::LimitSqError => Quantity::SqErrorLimit,
    }
}

/// Whether a bound bounds a quantity, perhaps as a part of its own.
pub fn fits(bound: &Bound, quantity: Quantity) -> bool {
    let own = quantity_of(bound);
    own == quantity || own == Quantity::Lyapunov && quantity == Quantity::SqError
}
