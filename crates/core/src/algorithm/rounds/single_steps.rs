//! The program of runs under a coin whose rounds are single local steps. An *atom* is a vector of the server, or one
//! vector for each client, which the state has at the start of a round or an operation makes; first the state is
//! numbered, then the operations.

use super::{ProblemSize, has_variates, per_client, program_of};
use crate::client_sampling::ParticipationScheme;
use crate::federated::Terms;
use crate::round_program::{
    Each, Level, Mask, Operation, PerClient, ProgramError, Round, Traced, mean, sum,
};

/// The rounds of a run under a coin, where a round is one local step of all clients, after which they communicate with
/// probability p: a mask, THEORY (4.5). For clocks by which a round is a fixed number of local steps.
///
/// From the second round on the state has the θ_k of each client as atom 0, by which ψ of THEORY (4.10) is made of the
/// clients' errors, and the variates c_k as atom 1, if there are some ([`super::variates_atom`]). ψ takes p from the
/// first mask.
///
/// # Errors
/// Why no program says what they do: no coin ends the local steps, or there is a proximal term, whose anchor the state
/// does not have.
pub fn single_steps(terms: &Terms, size: ProblemSize) -> Traced {
    let Some(probability) = terms.coin() else { return Err(ProgramError::NoCoin) };
    if terms.proximal != 0.0 {
        return Err(ProgramError::Open);
    }
    let first = round_of_a_step(terms, size, probability, true);
    let later = round_of_a_step(terms, size, probability, false);
    Ok(program_of(size, 1.0, vec![first, later], 1))
}

/// The first round of one local step if `is_first`, which begins at θ_0 with variates of 0, or else a later one. The
/// estimate after it, its `result`, is the mean of the clients, whether or not they communicate.
fn round_of_a_step(terms: &Terms, size: ProblemSize, probability: f64, is_first: bool) -> Round {
    let is_corrected = has_variates(terms);
    let theta = 0;
    let variates = (is_corrected && !is_first).then_some(1);
    let mut state = vec![if is_first { Level::Server } else { Level::Clients }];
    state.extend(variates.map(|_| Level::Clients));
    // ξ_k is −c_k, since the mean of the variates stays 0.
    let correction = match variates {
        Some(variates) => sum([(variates, -1.0)]),
        None => sum([]),
    };
    let step = Operation::Steps {
        start: sum([(theta, 1.0)]),
        correction: is_corrected.then_some(correction),
        anchor: None,
        step: per_client(terms, size.clients, |k| terms.step(k)),
        count: PerClient::All(1),
        batch: per_client(terms, size.clients, |k| terms.batch(k)),
        proximal: 0.0,
        members: false,
        draws: None,
        coin: None,
    };
    // The atoms that the three operations of the round make.
    let ends = state.len();
    let all = ends + 1;
    let moved = ends + 2;
    // What takes each client to the mean, θ̄ − θ_k, where they communicate, and 0 where they do not.
    let to_mean = sum([(ends, -1.0), (all, 1.0)]);
    let communicate = Operation::Mask { of: to_mean, mask: 0, level: Level::Clients };
    let operations = vec![step, mean(sum([(ends, 1.0)])), communicate];
    let next_theta = sum([(ends, 1.0), (moved, 1.0)]);
    let mut next = vec![next_theta.clone()];
    if is_corrected {
        // c_k ← c_k + (p/γ)(θ̄ − θ_k) at a communication; under a coin all clients have the step size γ.
        let rate = probability / terms.step(0);
        next.push(match variates {
            Some(variates) => sum([(variates, 1.0), (moved, rate)]),
            None => sum([(moved, rate)]),
        });
    }
    let coin = Mask { probability, each: Each::Row, level: Level::Server };
    Round {
        state,
        cohort: None,
        participation: ParticipationScheme::Normalised,
        masks: vec![coin],
        operations,
        next,
        result: sum([(all, 1.0)]),
        ends: Some(next_theta),
    }
}
