//! How many rounds a budget allows.

use crate::manifest::{Budget, Oracle};
use exactfed_core::{algorithm, problem};

/// The number of rounds T of a run within a budget: as many as the budget states, or as many as its local steps or its
/// costs allow, and at least `min-rounds`, also where these cost more. Local steps are those of the slowest client (of
/// mini-batch SGD the batch), and are rounded up to whole rounds. It is 0 where the budget states nothing or allows no
/// round, which checks of the cell refuse, as they do a budget with two lengths.
pub fn rounds_of_budget(
    budget: &Budget,
    algorithm: &algorithm::Spec,
    problem: &problem::Spec,
    oracle: Oracle,
) -> u64 {
    let local_steps = algorithm.scale().1.max(1);
    let from_steps = budget.local_steps.map(|steps| steps.div_ceil(local_steps));
    let rounds = budget
        .rounds
        .or(from_steps)
        .or_else(|| affordable_rounds(budget, algorithm, problem, oracle))
        .unwrap_or(0);
    rounds.max(budget.min_rounds.unwrap_or(0))
}

/// The most rounds that cost at most the communications and the gradients of a budget, by what a round of all runs of
/// the algorithm costs on average; the gradients are those of the client that computes the most. `None` if the budget
/// limits neither.
fn affordable_rounds(
    budget: &Budget,
    algorithm: &algorithm::Spec,
    problem: &problem::Spec,
    oracle: Oracle,
) -> Option<u64> {
    // Where a file decides on the number of clients, every entry of a list of clients counts.
    let clients = problem.extent().map_or(usize::MAX, |extent| extent.clients);
    let batch = evaluations_per_call(problem, oracle);
    let mut communications_of_round = 0.0;
    let mut gradients_of_round = 0.0;
    for component in algorithm.components() {
        let (communications, gradients) = component.terms.mean_round(clients, batch);
        communications_of_round += communications;
        gradients_of_round += gradients;
    }
    let by_communications = budget.communications.map(|most| most as f64 / communications_of_round);
    let by_gradients = budget.gradients.map(|most| most as f64 / gradients_of_round);
    let rounds = by_communications.into_iter().chain(by_gradients).reduce(f64::min)?;
    // Means are rounded: what is affordable but for rounding is affordable.
    Some((rounds * (1.0 + 1e-12)) as u64)
}

/// The gradients that one oracle call costs: the size of the problem's batch, or 1 for an exact oracle.
pub fn evaluations_per_call(problem: &problem::Spec, oracle: Oracle) -> u64 {
    if oracle == Oracle::Exact { 1 } else { problem.batch() }
}
