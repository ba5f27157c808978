//! Moments of rounds in which clients take part by coins of their own, with probabilities of their own, or by a
//! schedule.

use super::participation::{assert_moments_of_runs, with_scheme};
use super::*;
use crate::client_sampling::ParticipationScheme::{
    self, Available, Bernoulli, BernoulliNormalised, Cyclic, Proportional, Rescaled, Weighted,
    WithReplacement,
};
use crate::client_sampling::{
    Availability, ClientProbabilities, CycleOrder, CyclicGroups, ParticipantWeights,
};
use crate::federated::{Cost, Run, SecondMoment, ServerOptimiser, Terms};
use crate::problem::Exact;
use crate::round_program::ProgramError;

/// A coin for each of four clients, with these probabilities.
fn coins(probabilities: [f64; 4]) -> ParticipationScheme {
    Bernoulli(ClientProbabilities::Given(probabilities.to_vec()))
}

/// The clients of these texts in turn, with these weights.
fn available(texts: &[&str], client_weights: ParticipantWeights) -> ParticipationScheme {
    let schedule = texts.iter().map(|text| (*text).to_owned()).collect();
    Available(Availability { schedule, client_weights })
}

/// This number of groups of clients in turn, in this order.
fn cyclic(groups: usize, order: CycleOrder) -> ParticipationScheme {
    Cyclic(CyclicGroups { groups: Some(groups), order, ..CyclicGroups::default() })
}

/// The schemes that do not depend on shares for their draws, with the number of clients that they draw. Those of
/// schedules draw one client of two or none, since shares of others may be unequal.
fn schemes() -> Vec<(ParticipationScheme, Option<usize>)> {
    let rescaled = ParticipantWeights::Rescaled;
    let normalised = ParticipantWeights::Normalised;
    vec![
        (coins([0.3, 0.9, 0.5, 1.0]), None),
        (Bernoulli(ClientProbabilities::Fraction(0.4)), None),
        (Weighted(vec![1.0, 2.0, 2.0, 1.5]), Some(2)),
        (cyclic(2, CycleOrder::Given), None),
        (cyclic(4, CycleOrder::Given), None),
        (available(&["1, 3", "", "2-4"], normalised), None),
        (available(&["1, 3", "", "2-4"], rescaled), Some(1)),
    ]
}

/// Runs have their exact moments under each scheme on clients of unequal shares, where rounds may have nobody: those of
/// FedAvg, and of Scaffold, whose moments depend on which clients learn.
#[test]
fn runs_have_the_moments_of_each_scheme() {
    let problem = sample::weighted_ridge();
    for (scheme, cohort) in schemes() {
        for variates in [NONE, KEPT] {
            let components = with_scheme(variates, 3, cohort, &scheme);
            assert!(components[0].terms.check().is_empty());
            assert!(components[0].terms.check_for(4).is_empty());
            assert_moments_of_runs(&problem, &components, &format!("{scheme:?}, {variates:?}"));
        }
    }
}

/// With equal shares the sums of the weights of those who take part are known: coins of unequal probabilities whose
/// weights are normalised, and one client that is drawn of each group.
#[test]
fn normalised_weights_have_moments_where_shares_are_equal() {
    let problem = sample::noisy(4);
    let given = ClientProbabilities::Given(vec![0.2, 0.7, 0.7, 0.4]);
    for (scheme, cohort) in [
        (BernoulliNormalised(given), None),
        (BernoulliNormalised(ClientProbabilities::Fraction(0.3)), None),
        (cyclic(2, CycleOrder::Given), Some(1)),
        (available(&["1-3", "2-4"], ParticipantWeights::Normalised), Some(2)),
    ] {
        for variates in [NONE, KEPT] {
            let components = with_scheme(variates, 3, cohort, &scheme);
            assert_moments_of_runs(&problem, &components, &format!("{scheme:?}, {variates:?}"));
        }
    }
    // Six clients of one type, which coins of one probability do not tell apart.
    let alike = scalar(6, 1.0, 0.5, 0.3);
    for scheme in [
        Bernoulli(ClientProbabilities::Fraction(0.3)),
        BernoulliNormalised(ClientProbabilities::Fraction(0.3)),
        cyclic(3, CycleOrder::Given),
    ] {
        let components = with_scheme(KEPT, 3, None, &scheme);
        assert_moments_of_runs(&alike, &components, &format!("{scheme:?}, one type"));
    }
}

/// With one local step and without noise of the gradients, the mean of the iterates tends to θ* under the unbiased
/// schemes, and with five to the limit of full participation. Control variates have θ* as the limit by a schedule too.
#[test]
fn unbiased_schemes_have_the_limit_of_full_participation() {
    let problem = Exact::new(sample::weighted_ridge());
    for (scheme, cohort) in schemes().into_iter().filter(|(scheme, _)| scheme.is_unbiased()) {
        let components = with_scheme(NONE, 1, cohort, &scheme);
        let (rest, _) = ExactMoments::new(&problem, &components).unwrap().stationary().unwrap();
        assert!(rest.mean.iter().all(|x| x.abs() < 1e-10), "{scheme:?}: {:?}", rest.mean);
        assert!(rest.covariance.trace() > 1e-6, "the draw of clients is noise");
        let components = with_scheme(NONE, 5, cohort, &scheme);
        let some = ExactMoments::new(&problem, &components).unwrap().stationary();
        let all = ExactMoments::new(&problem, &one_run(NONE, 0.1, 5, None)).unwrap().stationary();
        let apart = sample::distance(&some.unwrap().0.mean, &all.unwrap().0.mean);
        assert!(apart < 1e-10, "{scheme:?}: {apart:e}");
    }
    for scheme in [cyclic(2, CycleOrder::Given), cyclic(2, CycleOrder::Shuffled)] {
        let run = sample::run(
            &problem,
            &with_scheme(KEPT, 1, None, &scheme)[0].terms,
            &[1.0; 3],
            4000,
            0,
        );
        assert!(sample::distance(run.estimate(), problem.optimum()) < 1e-9, "{scheme:?}");
    }
}

/// Over a cycle of single clients with weights that are rescaled, FedAvg with a small step is near θ*, and with those
/// that are normalised it is not, since each client counts once. The limits are those of the program after each round.
#[test]
fn cycles_have_a_limit_after_each_round() {
    let problem = Exact::new(sample::weighted_ridge());
    let mut errors = Vec::new();
    for client_weights in [ParticipantWeights::Normalised, ParticipantWeights::Rescaled] {
        let scheme = Cyclic(CyclicGroups { client_weights, ..CyclicGroups::default() });
        let mut components = with_scheme(NONE, 1, None, &scheme);
        components[0].terms.step_size = 0.01;
        let size = ProblemSize { clients: 4, dimension: 3 };
        let program = constant_rounds(&components, size).unwrap();
        program.check().unwrap();
        assert_eq!((program.cycle, program.rounds.len()), (4, 4));
        let biases = Cycle::of_means(&program, &problem).unwrap().biases().unwrap();
        // 10 000 rounds later the run is where the program says, after each round of the cycle.
        let mut run = sample::run(&problem, &components[0].terms, &[1.0; 3], 10_000, 0);
        for (phase, bias) in biases.iter().enumerate() {
            run.round();
            let mut limit = bias.clone();
            axpy(1.0, problem.optimum(), &mut limit);
            let off = sample::distance(run.estimate(), &limit);
            assert!(off < 1e-9, "{client_weights:?}, {phase}: {off:e}");
        }
        errors.push(sample::distance(&biases[0], &[0.0; 3]));
    }
    assert!(errors[1] < 0.02 && errors[0] > 3.0 * errors[1], "{errors:?}");
}

/// Groups in an order that is drawn for each cycle have no exact moments, and each client takes part once in a cycle.
#[test]
fn shuffled_groups_have_no_moments() {
    let problem = sample::noisy(4);
    let components = with_scheme(NONE, 3, None, &cyclic(4, CycleOrder::Shuffled));
    let refused = ExactMoments::new(&problem, &components).map(|_| ()).unwrap_err();
    assert_eq!(refused, MomentsError::Program(ProgramError::ShuffledCycle));
    assert!(!means_converge(&problem, &components, false));
    let mut run = sample::launch(&problem, &components[0].terms, &[1.0, 2.0], 0);
    let mut orders = Vec::new();
    for _ in 0..5 {
        let mut order = Vec::new();
        for _ in 0..4 {
            let before = run.clients().unwrap().ends.to_vec();
            run.round();
            let ends = run.clients().unwrap().ends;
            order
                .push((0..4).find(|k| ends[2 * k..2 * k + 2] != before[2 * k..2 * k + 2]).unwrap());
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        orders.push(order);
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
}

/// FedNova's mean number of local steps is that of all clients where each that takes part has a weight of its own: its
/// moments are exact, and its limit is that of all clients.
#[test]
fn fednova_has_the_moments_of_unbiased_schemes() {
    let problem = sample::noisy(4);
    let of_all = |cohort, scheme: &ParticipationScheme| {
        let mut components = with_scheme(NONE, 1, cohort, scheme);
        components[0].terms.normalised_progress = true;
        components[0].terms.local_steps = vec![1, 4, 2, 7];
        components
    };
    let everybody = of_all(None, &ParticipationScheme::Normalised);
    let (all, _) = ExactMoments::new(&problem, &everybody).unwrap().stationary().unwrap();
    for (scheme, cohort) in [
        (coins([0.3, 0.9, 0.5, 1.0]), None),
        (Rescaled, Some(2)),
        (WithReplacement, Some(2)),
        (Proportional, Some(2)),
        (Weighted(vec![1.0, 2.0, 2.0, 1.5]), Some(2)),
    ] {
        let components = of_all(cohort, &scheme);
        assert_moments_of_runs(&problem, &components, &format!("FedNova, {scheme:?}"));
        let (some, _) = ExactMoments::new(&problem, &components).unwrap().stationary().unwrap();
        let apart = sample::distance(&some.mean, &all.mean);
        assert!(apart < 1e-10, "{scheme:?}: {apart:e}");
    }
    let by_sum = of_all(Some(2), &ParticipationScheme::Normalised);
    assert!(ExactMoments::new(&problem, &by_sum).is_err());
}

/// What an adaptive server takes for the gradient is the weighted sum of what the clients have moved, also where the
/// weights do not sum to 1; if nobody takes part, it and its moments stay.
#[test]
fn adaptive_servers_follow_the_weighted_sum() {
    let problem = sample::weighted_ridge();
    let scheme = coins([0.3, 0.6, 0.2, 0.4]);
    let plain = with_scheme(NONE, 3, None, &scheme).remove(0).terms;
    let tau = 0.1;
    let second_moment = SecondMoment::Sum;
    let optimiser = ServerOptimiser { beta1: 0.0, second_moment, tau };
    let adaptive = Terms { server_optimiser: Some(optimiser), server_step: 0.5, ..plain.clone() };
    let start = [0.5, -1.0, 2.0];
    let mut empty = 0;
    for replicate in 0..30 {
        // The first round of both has the same draws from the same point.
        let moved = sample::run(&problem, &plain, &start, 1, replicate).estimate().to_vec();
        let run = sample::run(&problem, &adaptive, &start, 1, replicate);
        empty += usize::from(moved == start);
        for i in 0..3 {
            let change = moved[i] - start[i];
            let scale = libm::sqrt(tau * tau + change * change) + tau;
            let wanted = start[i] + 0.5 * change / scale;
            assert!((run.estimate()[i] - wanted).abs() < 1e-13, "{replicate}: {wanted}");
        }
    }
    assert!(empty > 0 && empty < 20, "{empty}");
}

/// In a round with nobody everything stays, and nothing is paid.
#[test]
fn nobody_costs_nothing() {
    let problem = sample::noisy(4);
    let scheme = available(&["", "1-4"], ParticipantWeights::Normalised);
    for variates in [NONE, KEPT, KEPT_OF_OPTION_ONE] {
        let terms = with_scheme(variates, 3, None, &scheme).remove(0).terms;
        let mut run = sample::launch(&problem, &terms, &[1.0, 2.0], 0);
        run.round();
        assert_eq!((run.estimate(), run.cost()), (&[1.0, 2.0][..], Cost::default()));
        run.round();
        let cost = run.cost();
        let vectors = terms.vectors_per_client(4) * 4;
        assert_eq!((cost.communications, cost.local_steps, cost.vectors_sent), (1, 3, vectors));
        assert_ne!(run.estimate(), [1.0, 2.0]);
        assert_eq!(terms.mean_round(4, 1).0, 0.5);
        assert_eq!(terms.round_cost(4, 1, 2), None);
    }
}

/// The costs of runs are those of the clients that took part, and their means are those that the terms state.
#[test]
fn costs_are_those_of_the_clients_that_take_part() {
    let problem = sample::noisy(4);
    for (scheme, cohort) in schemes() {
        let mut terms = with_scheme(NONE, 1, cohort, &scheme).remove(0).terms;
        terms.local_steps = vec![1, 2, 3, 4];
        let mut gradients = Vec::new();
        let mut vectors = Vec::new();
        let mut communications = Vec::new();
        for replicate in 0..500 {
            let run = sample::run(&problem, &terms, &[1.0, 2.0], 12, replicate);
            gradients.push(run.cost().oracle_calls as f64);
            vectors.push(run.cost().vectors_sent as f64);
            communications.push(run.cost().communications as f64);
        }
        let what = format!("{scheme:?}");
        sample::assert_mean(&gradients, 12.0 * 4.0 * terms.mean_calls(4), &what);
        sample::assert_mean(&vectors, 12.0 * 2.0 * 4.0 * terms.part_of_clients(4), &what);
        sample::assert_mean(&communications, 12.0 * terms.mean_round(4, 1).0, &what);
    }
}
