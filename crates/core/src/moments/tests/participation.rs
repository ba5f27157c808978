//! Moments of rounds in which some of the clients take part, which have unequal shares.

use super::*;
use crate::client_sampling::ParticipationScheme;
use crate::client_sampling::ParticipationScheme::{
    Normalised, Proportional, Rescaled, WithReplacement,
};
use crate::problem::{Exact, Problem};
use crate::sample::assert_mean;

/// The schemes by which E w_k = π_k.
const UNBIASED: [ParticipationScheme; 3] = [Rescaled, WithReplacement, Proportional];

/// One run in which `size` clients take part in each round by this scheme.
fn partial(
    variates: Variates,
    steps: u64,
    size: usize,
    participation: &ParticipationScheme,
) -> Vec<Component> {
    with_scheme(variates, steps, Some(size), participation)
}

/// One run by this scheme, with a number of clients that are drawn or without.
pub(super) fn with_scheme(
    variates: Variates,
    steps: u64,
    cohort: Option<usize>,
    participation: &ParticipationScheme,
) -> Vec<Component> {
    let mut components = one_run(variates, 0.1, steps, None);
    components[0].terms.cohort = cohort;
    components[0].terms.participation = participation.clone();
    components
}

/// Asserts that the error and the mean of 2000 runs after rounds 1, 2 and 6 are the exact ones, within four standard
/// errors. Errors are distances to the set of optima if there are several.
pub(super) fn assert_moments_of_runs<P: Problem>(
    problem: &P,
    components: &[Component],
    what: &str,
) {
    let rounds = [1, 2, 6];
    let d = problem.dim();
    let start = vec![1.0; d];
    let exact = ExactMoments::new(problem, components).unwrap();
    let exact = exact.at_rounds(&start, &rounds, None).unwrap();
    let mut errors = vec![Vec::new(); rounds.len()];
    let mut entries = vec![Vec::new(); rounds.len() * d];
    for replicate in 0..2000 {
        let mut run = sample::launch(problem, &components[0].terms, &start, replicate);
        let mut done = 0;
        for (row, round) in rounds.iter().enumerate() {
            while done < *round {
                run.round();
                done += 1;
            }
            let theta = run.estimate();
            errors[row].push(problem.sq_distance_to_optimum(theta));
            for i in 0..d {
                entries[row * d + i].push(theta[i] - problem.optimum()[i]);
            }
        }
    }
    for (row, moments) in exact.iter().enumerate() {
        let round = rounds[row];
        let sq_error = match problem.optimum_set() {
            Some(set) => set.expected_sq_distance(&moments.mean, &moments.covariance),
            None => moments.sq_error,
        };
        assert_mean(&errors[row], sq_error, &format!("{what}: error after {round}"));
        for i in 0..d {
            let what = format!("{what}: entry {i} after {round}");
            assert_mean(&entries[row * d + i], moments.mean[i], &what);
        }
    }
}

/// Runs of FedAvg with five local steps, and of Scaffold by both options, have their exact moments under each scheme.
/// Scaffold's moments depend on which clients learn, and on the covariance of that with the server's weights.
#[test]
fn runs_have_the_moments_of_each_scheme() {
    let problem = sample::weighted_ridge();
    for scheme in UNBIASED {
        for (variates, size) in [(NONE, 2), (KEPT, 2), (KEPT_OF_OPTION_ONE, 1)] {
            let what = format!("{}, {variates:?}, {size}", scheme.word());
            assert_moments_of_runs(&problem, &partial(variates, 5, size, &scheme), &what);
        }
    }
    let all = partial(KEPT, 5, 4, &WithReplacement);
    assert_moments_of_runs(&problem, &all, "four of four, with replacement");
    let few = partial(KEPT, 5, 1, &WithReplacement);
    assert_moments_of_runs(&problem, &few, "one of four, with replacement");
}

/// Clients of one type, whose draws depend on each other: six clients of one distribution, with equal shares.
#[test]
fn clients_of_one_type_are_drawn_with_replacement() {
    let problem = scalar(6, 1.0, 0.5, 0.3);
    for variates in [NONE, KEPT] {
        let components = partial(variates, 5, 3, &WithReplacement);
        assert_moments_of_runs(&problem, &components, &format!("{variates:?}"));
    }
}

/// With one local step and without noise of the gradients, the mean of the iterates tends to θ* under the unbiased
/// schemes, and with five to the limit of full participation. With shares that are divided by their sum there are no
/// exact moments, and runs go elsewhere.
#[test]
fn unbiased_schemes_have_the_limit_of_full_participation() {
    let problem = Exact::new(sample::weighted_ridge());
    for scheme in UNBIASED {
        let components = partial(NONE, 1, 1, &scheme);
        let (rest, _) = ExactMoments::new(&problem, &components).unwrap().stationary().unwrap();
        let largest = rest.mean.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        assert!(largest < 1e-10, "{}: {largest:e}", scheme.word());
        assert!(rest.covariance.trace() > 1e-6, "the draw of clients is noise");
        let some = ExactMoments::new(&problem, &partial(NONE, 5, 2, &scheme)).unwrap().stationary();
        let all = ExactMoments::new(&problem, &one_run(NONE, 0.1, 5, None)).unwrap().stationary();
        let apart = sample::distance(&some.unwrap().0.mean, &all.unwrap().0.mean);
        assert!(apart < 1e-10, "{}: {apart:e}", scheme.word());
    }
    let components = partial(NONE, 1, 1, &Normalised);
    let refused = ExactMoments::new(&problem, &components).map(|_| ()).unwrap_err();
    assert_eq!(refused, MomentsError::UnequalPart);
    let mut run = sample::launch(&problem, &components[0].terms, problem.optimum(), 0);
    let mut mean = [0.0; 3];
    for _ in 0..4000 {
        run.round();
        for (sum, theta) in mean.iter_mut().zip(run.estimate()) {
            *sum += theta / 4000.0;
        }
    }
    let apart = sample::distance(&mean, problem.optimum());
    assert!(apart > 0.02, "{apart}");
}

/// With equal shares the rescaled and the proportional scheme have the bits of the default.
#[test]
fn equal_shares_make_schemes_equal() {
    let problem = sample::noisy(4);
    for variates in [NONE, KEPT] {
        let bits = [Normalised, Rescaled, Proportional].map(|scheme| {
            let components = partial(variates, 5, 2, &scheme);
            let terms = &components[0].terms;
            let run = sample::run(&problem, terms, &[1.0, 2.0], 9, 3);
            (run.estimate().to_vec(), run.cost())
        });
        assert_eq!(bits[0], bits[1]);
        assert_eq!(bits[0], bits[2]);
    }
}

/// A share of 0.4 cannot be drawn with the probability 3 · 0.4, and a scheme needs a cohort.
#[test]
fn schemes_that_cannot_be_are_refused() {
    let problem = sample::weighted_ridge();
    let components = partial(NONE, 5, 3, &Proportional);
    let shares = problem.unequal_shares().unwrap();
    let faults = components[0].terms.check_for_shares(shares);
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].key, "participation");
    let exact = ExactMoments::new(&problem, &components).unwrap();
    assert_eq!(exact.stationary().map(|_| ()).unwrap_err(), MomentsError::ImpossibleDraw);
    let mut terms = components[0].terms.clone();
    terms.participation = Rescaled;
    assert!(terms.check_for_shares(shares).is_empty() && terms.check().is_empty());
    terms.cohort = None;
    assert_eq!(terms.check()[0].key, "participation");
}
