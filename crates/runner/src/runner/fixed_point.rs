//! The mean that the rounds of a cell leave as it is, where theory knows it.

use crate::manifest::{Metric, Oracle};
use crate::plan::{Cell, Identity};
use exactfed_core::algorithm::rounds::local_runs;
use exactfed_core::algorithm::{Component, Instance};
use exactfed_core::federated::{Terms, Variates};
use exactfed_core::kernel::axpy;
use exactfed_core::moments;
use exactfed_core::problem::Facts;
use exactfed_core::round_program::LocalRuns;
use exactfed_core::theory::{deterministic, linear, markov};

/// The runs that the estimate of an algorithm combines, each with its weight, on a problem whose draws follow
/// trajectories. `None` if the means of a run are not known, or too costly to compute.
pub(super) fn runs_along_trajectories(
    identity: &Identity,
    facts: &dyn Facts,
) -> Option<Vec<(f64, LocalRuns)>> {
    let mut all = Vec::new();
    for component in identity.algorithm.on_instance(facts).components() {
        let alone = [Component { weight: 1.0, ..component.clone() }];
        let run = local_runs(&alone, facts.clients())?;
        if !markov::are_closed(facts, &run) || !markov::limit_effort(facts, &run).fits() {
            return None;
        }
        all.push((component.weight, run));
    }
    Some(all)
}

/// The fixed point of the mean where draws follow trajectories, d numbers: the weighted sum over the runs that the
/// estimate combines. `None` if it is not known, or too costly to compute.
fn fixed_point_along_trajectories(identity: &Identity, facts: &dyn Facts) -> Option<Vec<f64>> {
    let mut sum = vec![0.0; facts.dim()];
    for (weight, run) in runs_along_trajectories(identity, facts)? {
        axpy(weight, &markov::limit(facts, &run)?, &mut sum);
    }
    Some(sum)
}

/// Whether clients measure their variates anew in each round, and only a part of them does: the mean field of this part
/// is not 0 at θ*, so that a bias is left.
fn is_fedlin_with_cohort(terms: &Terms, clients: usize) -> bool {
    terms.variates == Variates::Fresh && terms.draws_clients(clients)
}

/// The mean that rounds of a cell on an instance leave as it is, d numbers: the weighted sum over the runs that the
/// estimate combines. It is lim E θ_t if means converge. On a linear field it is exact, and computed if that is not
/// too costly. On any other field it is known without noise alone, and computed if the manifest lists
/// `sq-error-limit`. `None` where theory does not know it, the manifest leaves θ* out, θ* is not unique, or the facts at
/// θ* are not known.
pub(super) fn fixed_point(cell: &Cell, instance: &dyn Instance) -> Option<Vec<f64>> {
    let facts: &dyn Facts = instance;
    let identity = &cell.identity;
    let is_known = facts.knows_facts_at_optimum() && facts.optimum_set().is_none();
    if !identity.record.optimum || !is_known {
        return None;
    }
    let closed = facts.linear() && facts.independent();
    if facts.linear() && !facts.independent() {
        return fixed_point_along_trajectories(identity, facts);
    }
    let listed = identity.record.metrics.contains(&Metric::SqErrorLimit);
    let deterministic = identity.oracle == Oracle::Exact;
    if !closed && (!listed || !deterministic) {
        return None;
    }
    let components = identity.algorithm.on_instance(facts).components();
    let steps = components.iter().map(|component| component.terms.most_steps());
    if closed && !linear::limit_effort(facts, steps.max().unwrap_or(1)).fits() {
        return None;
    }
    let mut sum = vec![0.0; facts.dim()];
    for Component { weight, terms, .. } in components {
        axpy(weight, &limit_of_rounds(&terms, facts, closed)?, &mut sum);
    }
    Some(sum)
}

/// What [`fixed_point`] says of the rounds of one of the runs that an estimate combines, d numbers. The field is linear
/// with independent draws if it `is_closed`, and else the oracle is exact.
fn limit_of_rounds(terms: &Terms, facts: &dyn Facts, is_closed: bool) -> Option<Vec<f64>> {
    let is_known = !matches!(terms.variates, Variates::Unknown(_))
        && terms.server_optimiser.is_none()
        && !is_fedlin_with_cohort(terms, facts.clients());
    if !is_known {
        return None;
    }
    if terms.variates != Variates::None {
        // Control variates remove the bias.
        return Some(facts.optimum().to_vec());
    }
    let is_partial = terms.draws_clients(facts.clients());
    // By a schedule the mean tends to another limit after each round of the period, or with falling steps to a point that
    // depends on the weights. With stragglers the mean of what a round does is over random numbers of local steps.
    if is_partial && terms.participation.is_scheduled() || terms.stragglers.is_some() {
        return None;
    }
    let is_biased = is_partial && !terms.participation.is_unbiased();
    let is_uniform = terms.participation.is_uniform();
    // The mean of a part of the clients by their shares, divided by their sum, is no fixed linear map of theirs.
    let is_ratio = is_biased && facts.unequal_shares().is_some();
    if terms.decay.is_some() {
        // γ_t → 0, and with it the bias, unless expected weights are not the shares, or clients with more local steps
        // weigh more.
        let even = terms.normalised || terms.local_steps.iter().all(|e| *e == terms.local_steps[0]);
        let tends_to_optimum = even && !is_ratio && (is_uniform || !is_biased);
        return tends_to_optimum.then(|| facts.optimum().to_vec());
    }
    // FedNova weighs the clients otherwise than by their shares, and changes the server step.
    let is_progress_weighted = terms.progress_weights(facts.clients(), None).is_some();
    if is_ratio && !is_progress_weighted {
        return None;
    }
    // Expected weights are not the shares where coins have unequal probabilities.
    if is_progress_weighted || is_biased && !is_uniform {
        return moments::fixed_point(
            facts,
            &Component { weight: 1.0, terms: terms.clone(), copy: 0 },
        );
    }
    let work = |client| terms.local_update(client);
    if is_closed {
        linear::limit(facts, work)
    } else if !terms.may_leave_out_clients() {
        deterministic::fixed_point(facts, work)
    } else {
        None
    }
}
