//! Moments of rounds whose clients do unequal work, take steps that fall, or do random work.

use super::participation::assert_moments_of_runs;
use super::*;
use crate::client_sampling::ParticipationScheme;
use crate::federated::{DecayUnit, Stragglers};
use crate::round_program::ProgramError;

/// One run of these terms.
fn one(terms: Terms) -> Vec<Component> {
    vec![Component::one(terms)]
}

/// FedProx with unequal numbers of local steps, batches, a server step and a part of the clients has its exact moments.
#[test]
fn fedprox_with_unequal_work_has_its_moments() {
    let fedprox = Terms {
        local_steps: vec![1, 4, 2, 3],
        batches: vec![1, 2],
        proximal: 0.7,
        server_step: 1.3,
        ..Terms::fedavg(0.1, 1)
    };
    assert_moments_of_runs(&sample::noisy(4), &one(fedprox.clone()), "all");
    let participation = ParticipationScheme::Rescaled;
    let part = Terms { cohort: Some(2), participation, ..fedprox };
    assert_moments_of_runs(&sample::weighted_ridge(), &one(part), "two of four");
}

/// Steps that fall from local step to local step have the moments of runs: for unequal numbers of steps, a proximal
/// term, and control variates of each kind.
#[test]
fn steps_that_fall_from_step_to_step_have_their_moments() {
    let decay = Some(Decay { power: 0.8, offset: 2.0, by: DecayUnit::LocalSteps });
    let fedavg = Terms { local_steps: vec![3, 1, 4, 2], decay, ..Terms::fedavg(0.2, 1) };
    let problem = sample::noisy(4);
    assert_moments_of_runs(&problem, &one(fedavg.clone()), "FedAvg");
    let pulled = Terms { proximal: 0.9, server_step: 0.8, ..fedavg.clone() };
    assert_moments_of_runs(&problem, &one(pulled), "FedProx");
    for variates in [KEPT, KEPT_OF_OPTION_ONE, FRESH] {
        let corrected = Terms { variates, ..fedavg.clone() };
        assert_moments_of_runs(&problem, &one(corrected), &format!("{variates:?}"));
    }
}

/// Scaffnew with step sizes that fall from one communication to the next, and with a server step.
#[test]
fn scaffnew_with_falling_steps_and_a_server_step_has_its_moments() {
    let problem = sample::noisy(4);
    let coin = one_run(KEPT, 0.1, 1, Some(0.4)).remove(0).terms;
    let falling = Terms { decay: Some(Decay::by_rounds(0.7, 2.0)), ..coin.clone() };
    assert_moments_of_runs(&problem, &one(falling), "decay");
    let server = Terms { server_step: 0.7, batches: vec![2, 1], ..coin };
    assert_moments_of_runs(&problem, &one(server), "server step");
}

/// FedLin goes a server step, and with a cohort its corrections are means over the clients that take part: the rounds
/// are plain loops without noise of the gradients.
#[test]
fn fedlin_with_a_cohort_corrects_by_its_members() {
    let problem = crate::problem::Exact::new(sample::weighted_ridge());
    let shares = problem.unequal_shares().unwrap().to_vec();
    let terms =
        Terms { variates: FRESH, cohort: Some(2), server_step: 0.8, ..Terms::fedavg(0.05, 3) };
    let start = vec![1.0; 3];
    let mut run = sample::launch(&problem, &terms, &start, 1);
    let mut theta = start;
    for _ in 0..6 {
        run.round();
        let ends = run.clients().unwrap().ends.to_vec();
        // Any pair of clients may have taken part: that of which the loop has the ends of the run.
        let mut matched = false;
        for pair in [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]] {
            let total: f64 = pair.iter().map(|k| shares[*k]).sum();
            let mut fields = vec![vec![0.0; 3]; 2];
            for (field, client) in fields.iter_mut().zip(pair) {
                problem.mean_field(client, &theta, field);
            }
            let mut server = theta.clone();
            let mut is_this = true;
            for (place, client) in pair.into_iter().enumerate() {
                let mut own = theta.clone();
                for _ in 0..3 {
                    let mut field = vec![0.0; 3];
                    problem.mean_field(client, &own, &mut field);
                    for i in 0..3 {
                        let mean: f64 =
                            (0..2).map(|j| shares[pair[j]] / total * fields[j][i]).sum();
                        own[i] -= 0.05 * (field[i] + mean - fields[place][i]);
                    }
                }
                is_this &= sample::distance(&own, &ends[client * 3..][..3]) < 1e-12;
                for i in 0..3 {
                    server[i] += 0.8 * shares[client] / total * (own[i] - theta[i]);
                }
            }
            if is_this {
                assert!(sample::distance(run.estimate(), &server) < 1e-12);
                matched = true;
            }
        }
        assert!(matched, "no pair of clients has the ends of the run");
        theta = run.estimate().to_vec();
    }
    // With equal shares too the draw of the clients enters a round twice.
    let equal = sample::noisy(4);
    let refused = ExactMoments::new(&equal, &one(terms)).map(|_| ()).unwrap_err();
    assert_eq!(refused, ProgramError::CohortTwice.into());
}

/// Random work has no program, and neither has a round of very many steps of falling sizes.
#[test]
fn what_programs_cannot_say_is_refused_with_its_reason() {
    let problem = sample::noisy(4);
    let stragglers = Some(Stragglers { fraction: 0.5, most: None, epochs: None });
    let late = Terms { stragglers, ..Terms::fedavg(0.1, 5) };
    let refused = ExactMoments::new(&problem, &one(late.clone())).map(|_| ()).unwrap_err();
    assert_eq!(refused, ProgramError::RandomWork.into());
    assert!(!means_converge(&problem, &one(late), false));
    let decay = Some(Decay { power: 0.8, offset: 2.0, by: DecayUnit::LocalSteps });
    let many = Terms { decay, ..Terms::fedavg(0.1, 1001) };
    let refused = ExactMoments::new(&problem, &one(many)).map(|_| ()).unwrap_err();
    assert_eq!(refused, ProgramError::ManyFallingSteps { most: 1000 }.into());
}
