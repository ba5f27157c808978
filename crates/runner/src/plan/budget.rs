//! How many rounds a budget allows.

use crate::manifest::{Budget, Oracle};
use exactfed_core::{algorithm, problem};

/// The number of rounds T that a budget allows, given what a round costs.
pub fn rounds_of_budget(
    budget: &Budget,
    algorithm: &algorithm::Spec,
    problem: &problem::Spec,
    oracle: Oracle,
) -> u64 {
    let local_steps = algorithm.scale().1.max(1);
    let from_steps = budget.local_steps.map(|steps| steps.div_ceil(local_steps));
    let affordable = || {
        let clients = problem.extent().map_or(usize::MAX, |extent| extent.clients);
        let batch = evaluations_per_call(problem, oracle);
        let each = algorithm.components().into_iter().map(|c| c.terms.mean_round(clients, batch));
        let (communications, gradients) =
            each.fold((0.0, 0.0), |(c, g), (more_c, more_g)| (c + more_c, g + more_g));
        let communications = budget.communications.map(|most| most as f64 / communications);
        let gradients = budget.gradients.map(|most| most as f64 / gradients);
        let rounds = communications.into_iter().chain(gradients).reduce(f64::min)?;
        // Means are rounded: what is affordable but for rounding is affordable.
        Some((rounds * (1.0 + 1e-12)) as u64)
    };
    let rounds = budget.rounds.or(from_steps).or_else(affordable).unwrap_or(0);
    rounds.max(budget.min_rounds.unwrap_or(0))
}

/// The oracle evaluations that one oracle call makes.
pub fn evaluations_per_call(problem: &problem::Spec, oracle: Oracle) -> u64 {
    if oracle == Oracle::Exact { 1 } else { problem.batch() }
}
