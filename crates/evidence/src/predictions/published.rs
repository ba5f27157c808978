//! Published bounds for the cells of an experiment: which apply to a cell, and to which quantity.
//!
//! *Invariant*: a cell that does not meet a bound's conditions has no value of it.

use super::Theory;
use super::refused::Computation;
use exactfed_core::algorithm::Average;
use exactfed_core::federated::{Clock, Schedule, Terms, Variates};
use exactfed_core::kernel::squared_distance;
use exactfed_core::problem::Facts;
use exactfed_core::theory::bounds::{self, Bound, Bounded, Constants};
use exactfed_runner::manifest::Prediction;
use exactfed_runner::manifest::Quantity;
use exactfed_runner::runner::Prepared;
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
        let find = |bounds: Vec<Bound>| bounds.into_iter().find(|b| b.name == name);
        find(self.bounds(id, round)).or_else(|| find(self.statements(id, round)))
    }

    /// All published bounds that apply to a cell, at a round.
    pub fn bounds(&self, id: &str, round: u64) -> Vec<Bound> {
        let find = || {
            let run = self.published_run(id, round)?;
            let PublishedRun { facts, constants, terms, scheme, setup } = &run;
            if terms.batches != [1] {
                return None;
            }
            if *scheme == bounds::Algorithm::FedAvg && terms.normalised {
                let steps: Vec<u64> = (0..facts.clients()).map(|c| terms.steps(c)).collect();
                return Some(vec![bounds::book::unequal(constants, &run.whole_round(), &steps)]);
            }
            if terms.local_steps.iter().any(|e| *e != terms.local_steps[0]) {
                return None;
            }
            Some(bounds::all(*facts, constants, *scheme, setup))
        };
        find().unwrap_or_default()
    }

    /// Further published statements that apply to a cell, at a round: those of single claims, which
    /// tables of bounds do not have.
    pub fn statements(&self, id: &str, round: u64) -> Vec<Bound> {
        let Some(run) = self.published_run(id, round) else { return Vec::new() };
        let PublishedRun { facts, constants, terms, scheme, setup } = &run;
        let even = terms.local_steps.iter().all(|e| *e == terms.local_steps[0]);
        match *scheme {
            bounds::Algorithm::FedAvg if even || terms.normalised => {
                let batch = |c: usize| terms.batches[c % terms.batches.len()] as f64;
                let calls = |c: usize| batch(c) * terms.steps(c) as f64;
                let steps: Vec<u64> = (0..facts.clients()).map(|c| terms.steps(c)).collect();
                let whole = run.whole_round();
                vec![
                    bounds::scafflsa::drift(constants, setup, true),
                    bounds::scafflsa::drift(constants, setup, false),
                    bounds::book::lemma_5_1(*facts, constants, setup, &batch),
                    bounds::book::perturbation(constants, &whole, &steps),
                    bounds::book::mean_square_deviation(*facts, constants, &whole, &calls),
                ]
            }
            bounds::Algorithm::Coin { probability } => [true, false]
                .map(|printed| bounds::scafflsa::theorem_b4(constants, setup, probability, printed))
                .into(),
            _ => Vec::new(),
        }
    }

    /// A cell in the terms of published statements, at a round; `None` if none is about it.
    fn published_run(&self, id: &str, round: u64) -> Option<PublishedRun<'_>> {
        let prepared = self.cells.get(id)?;
        let scenario = super::single_scenario(prepared)?;
        let identity = &prepared.cell.identity;
        let mut components = identity.algorithm.components();
        let count = components.len();
        let terms = components.swap_remove(0).terms;
        let plain = terms.proximal == 0.0 && terms.server_step == 1.0 && terms.decay.is_none();
        if identity.algorithm.average() != Average::None || !plain {
            return None;
        }
        let scheme = match (count, terms.schedule, terms.variates) {
            (2, ..) => bounds::Algorithm::RichardsonRomberg,
            (3.., ..) => return None,
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
        Some(PublishedRun { facts, constants, terms, scheme, setup })
    }
}

/// A cell in the terms of published statements.
struct PublishedRun<'a> {
    facts: &'a dyn Facts,
    constants: Rc<Constants>,
    terms: Terms,
    scheme: bounds::Algorithm,
    setup: bounds::RunSetup,
}

impl PublishedRun<'_> {
    /// The setup of BOOK, whose step size μ is that of a whole round of normalised steps.
    fn whole_round(&self) -> bounds::RunSetup {
        let factor = if self.terms.normalised { 1 } else { self.setup.local_steps };
        let step_size = self.terms.step_size * factor as f64;
        bounds::RunSetup { step_size, local_steps: 1, ..self.setup }
    }
}

/// The name of a prediction's bound.
fn bound_name(by: Prediction) -> Option<&'static str> {
    Some(match by {
        Prediction::ScafflsaA5 => "SCAFFLSA, Theorem 4.1 (A.5)",
        Prediction::ScafflsaB2 => "SCAFFLSA, Theorem 5.1 (B.2)",
        Prediction::ScafflsaB5 => "SCAFFLSA, Theorem 5.3 (B.5)",
        Prediction::RrProposition4 => "RR (second version), Proposition 4",
        Prediction::RrTheorem2 => "RR, Theorem 2",
        Prediction::RrProposition5Printed => "RR, Proposition 5 as printed",
        Prediction::RrCorollary1 => "RR, Corollary 1",
        Prediction::RrProposition2 => "RR, Proposition 2",
        Prediction::RrLemma5 => "RR, Lemma 5",
        Prediction::SlidesRate => "SLIDES, rate of Scaffold",
        Prediction::RrLemma7 => "RR (second version), Lemma 7",
        Prediction::Book51 => "BOOK, Theorem 5.1",
        Prediction::Scafflsa26 => "SCAFFLSA, (26)",
        Prediction::Scafflsa26Printed => "SCAFFLSA, (26) as printed",
        Prediction::ScafflsaB4 => "SCAFFLSA, Theorem B.4",
        Prediction::ScafflsaB4Printed => "SCAFFLSA, Theorem B.4 as printed",
        Prediction::BookLemma51 => "BOOK, Lemma 5.1",
        Prediction::Book554 => "BOOK, (5.54)",
        Prediction::Book53 => "BOOK, problem 5.3 to first order",
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
