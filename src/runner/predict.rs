//! What theory says of a cell: its terms, translated for a theory that knows no
//! engine.

use super::prepare::Ground;
use crate::algorithm::{Average, Component};
use crate::federated::{Clock, Learning, Schedule, Terms, Variates};
use crate::plan::{Cell, Identity};
use crate::problem::Facts;
use crate::theory::linear::Work;
use crate::theory::moments::{self, Correction, Exact, Moments, Run, Scheme};

/// What a client does in a round of these terms.
pub fn work(terms: &Terms, client: usize) -> Work {
    Work {
        step: terms.step(client),
        steps: terms.steps(client),
        batch: terms.batch(client),
        proximal: terms.proximal,
    }
}

/// The algorithm of a cell on so many clients; `None` where theory has no name
/// for it: a coin that is looked at between communications.
pub fn scheme(identity: &Identity, clients: usize) -> Option<Scheme<'static>> {
    let components = identity.algorithm.components();
    let first = &components[0].terms;
    let coin = match first.schedule {
        Schedule::Every => None,
        Schedule::Bernoulli { probability, clock: Clock::Communications } => Some(probability),
        Schedule::Bernoulli { probability: 1.0, .. } => Some(1.0),
        Schedule::Bernoulli { .. } => return None,
    };
    let (cohort, copy) = (first.cohort.unwrap_or(clients), components[0].copy);
    let common = components.iter().all(|c| c.copy == copy);
    let run = |Component { weight, terms, .. }: Component| Run {
        weight,
        server_step: terms.server_step,
        correction: match terms.variates {
            Variates::None => Correction::None,
            Variates::Kept(Learning::OptionTwo) => Correction::Kept,
            Variates::Kept(Learning::OptionOne) => Correction::KeptFresh,
            Variates::Fresh => Correction::Fresh,
        },
        work: Box::new(move |client| work(&terms, client)),
    };
    let burn_in = match identity.algorithm.average() {
        Average::None => None,
        Average::BurnIn(share) => Some((share * identity.rounds as f64) as u64),
    };
    Some(Scheme { runs: components.into_iter().map(run).collect(), cohort, common, coin, burn_in })
}

/// Why a cell has no exact moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Without {
    /// They do not close.
    Open,
    /// They would take about so many products.
    Costly(f64),
}

/// Whether the exact moments of a cell can be worked out.
///
/// # Errors
/// Why they cannot.
pub fn known(cell: &Cell, ground: &Ground) -> Result<(), Without> {
    let facts: &dyn Facts = &*ground.instance;
    if !facts.linear() || !facts.independent() {
        return Err(Without::Open);
    }
    let scheme = scheme(&cell.identity, facts.clients()).ok_or(Without::Open)?;
    if !moments::followed(facts, &scheme) {
        return Err(Without::Open);
    }
    let products = moments::products(facts, &scheme, cell.identity.rounds);
    if products > moments::MOST_PRODUCTS { Err(Without::Costly(products)) } else { Ok(()) }
}

/// The exact moments of a cell at its recorded rounds.
///
/// # Errors
/// Why there are none.
pub fn expected(cell: &Cell, ground: &Ground) -> Result<Vec<Moments>, Without> {
    known(cell, ground)?;
    let facts: &dyn Facts = &*ground.instance;
    let scheme = scheme(&cell.identity, facts.clients()).ok_or(Without::Open)?;
    let exact = Exact::new(facts, &scheme).ok_or(Without::Open)?;
    Ok(exact.at(&ground.start, &cell.identity.recorded()))
}
