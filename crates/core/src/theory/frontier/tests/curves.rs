//! Errors over rounds agree with exact moments, and so do the rounds from which they stay below a target.
//!
//! The parent module has the algorithms, which constants such as `FEDAVG` name; `two_chains`, TD(0) for clients of two
//! types; `scalar_types`, two types in one dimension; `from`, a search from a start, of which curves read nothing else;
//! `run_of`, the settings of an algorithm; and `passages`, which reads from errors when a target is held, and first
//! met.

use super::*;
use crate::client_sampling::ParticipationScheme;
use crate::problem::spectrum::Spectrum;
use crate::round_program::{Level, Program, Round, mean, sum};
use crate::theory::exact::{Cycle, MeanRounds, ProgramMoments, Squares};

/// Errors by types are the exact moments of the problem with all its clients, also of ten thousand.
#[test]
fn errors_are_the_exact_moments() {
    let noisy = sample::noisy(4);
    let small = two_chains(2, 1);
    let large = [(4, 2), (20, 10), (6_666, 3_333)].map(|(first, second)| two_chains(first, second));
    let mut cases: Vec<(&dyn Facts, &dyn Facts, u64, f64)> =
        vec![(&noisy, &noisy, 1, 0.3), (&noisy, &noisy, 4, 0.1), (&noisy, &noisy, 37, 0.01)];
    cases.extend(large.iter().map(|large| (&small as &dyn Facts, large as &dyn Facts, 5, 0.05)));
    for (small, large, local_steps, step_size) in cases {
        let start = vec![small.optimum()[0] + 1.0, small.optimum()[1] + 2.0];
        let search = from(small, StartError::Point(start.clone()));
        let known = known(large);
        for (algorithm, rounds) in known.iter().enumerate() {
            let run = run_of(algorithm, large.clients() as u64, local_steps, step_size);
            let program = rounds.program(&run).unwrap();
            let exact = ProgramMoments::new(&program, large, None).unwrap();
            let exact = exact.at_rounds(&start, &[0, 1, 2, 3, 7, 40], None).unwrap();
            let found = curve(small, &search, &run).unwrap().errors(40);
            for moments in exact {
                let ratio = found[moments.round as usize] / moments.sq_error;
                assert!((ratio - 1.0).abs() < 1e-10, "{run:?}, {}: {ratio}", moments.round);
            }
        }
    }
}

/// The error is a quadratic function of the start, so its mean over an isotropic start is that
/// over the axes and their opposites.
#[test]
fn an_isotropic_start_is_the_mean_of_points() {
    let facts = two_chains(1, 1);
    let mean_square = 4.0;
    let rounds = 20;
    let d = facts.dim();
    for algorithm in 0..ALL {
        let run = run_of(algorithm, 6, 3, 0.1);
        let start = from(&facts, StartError::Isotropic { mean_square });
        let found = curve(&facts, &start, &run).unwrap().errors(rounds);
        let mut mean = vec![0.0; rounds + 1];
        for (axis, sign) in (0..d).flat_map(|axis| [(axis, 2.0), (axis, -2.0)]) {
            let mut start = facts.optimum().to_vec();
            start[axis] += sign;
            let start = from(&facts, StartError::Point(start));
            let each = curve(&facts, &start, &run).unwrap().errors(rounds);
            mean.iter_mut().zip(each).for_each(|(mean, x)| *mean += x / (2 * d) as f64);
        }
        for (a, b) in found.iter().zip(mean) {
            assert!((a / b - 1.0).abs() < 1e-11, "{run:?}: {a} {b}");
        }
    }
}

/// An outline of rounds has the means of their program, and the same least stationary error, for all numbers
/// of clients; errors without a map of the rounds are those with one.
#[test]
fn outlines_agree_with_programs() {
    let problems: [&dyn Facts; 4] =
        [&sample::noisy(4), &two_chains(1, 1), &two_chains(2, 1), &scalar_types()];
    let mut outlined = 0;
    for facts in problems {
        let n = facts.clients() as u64;
        let d = facts.dim() as f64;
        let start = facts.optimum().iter().map(|x| x + 1.0 / d).collect();
        for start in [StartError::Isotropic { mean_square: 4.0 }, StartError::Point(start)] {
            let search = from(facts, start);
            for (local_steps, step_size) in [(1, 0.2), (3, 0.05), (40, 0.01)] {
                for (algorithm, clients) in (0..ALL).flat_map(|a| [(a, n), (a, 10 * n)]) {
                    let run = run_of(algorithm, clients, local_steps, step_size);
                    let problem = search.typed(facts, &[clients]).unwrap();
                    let known = problem.known.afresh();
                    let outline = problem.outline(&run, &known);
                    let has_none = [SCAFFNEW, FEDLIN, FEDPROX].contains(&algorithm);
                    assert_eq!(outline.is_none(), has_none);
                    let compare = |squares: &mut Squares<'_>| {
                        let curve = ErrorCurve::new(squares).errors(9);
                        for (a, b) in curve.iter().zip(squares.errors(9)) {
                            assert!((a / b - 1.0).abs() < 1e-11, "{run:?}: {a} {b}");
                        }
                        let Some(outline) = outline else { return };
                        let errors =
                            [&outline.means, &squares.mean].map(|means| noiseless(means, 9));
                        for (a, b) in errors[0].iter().zip(&errors[1]) {
                            assert!((a - b).abs() < 1e-11 * b + 1e-20, "{run:?}: {a} {b}");
                        }
                        let [bias, variance] = outline.least_stationary(|_| f64::INFINITY).unwrap();
                        let least = bias + variance * n as f64 / clients as f64;
                        let wanted = squares.least_stationary().unwrap();
                        assert!((least / wanted - 1.0).abs() < 1e-8, "{run:?}: {least} {wanted}");
                        let part = outline.least_stationary(|_| variance / 2.0).unwrap()[1];
                        assert!(part > variance / 2.0 && part < variance * (1.0 + 1e-9));
                        outlined += 1;
                    };
                    problem.squares(&run, &known, compare).unwrap();
                }
            }
        }
    }
    assert_eq!(outlined, 4 * 2 * 3 * 8 * 2);
}

/// ‖E θ_t − θ*‖² after 0, 1, …, `count` rounds, or its mean over the start.
fn noiseless(means: &MeanRounds, count: usize) -> Vec<f64> {
    let square = |m: &Matrix| m.entries().iter().map(|x| x * x).sum::<f64>();
    let mut errors = means.noiseless.clone();
    let mut state = means.columns.clone();
    while errors.len() <= count {
        errors.extend(means.ends.iter().map(|end| square(&end.times(&state))));
        state = means.means.times(&state);
    }
    errors.truncate(count + 1);
    errors
}

/// Beyond the rounds that are computed one by one, too, T is exact.
#[test]
fn many_rounds_are_exact_to_the_integer() {
    let facts = two_chains(1, 1);
    let search = from(&facts, StartError::Isotropic { mean_square: 4.0 });
    for algorithm in
        [SGD, FEDAVG, RICHARDSON_ROMBERG, SCAFFOLD, SCAFFNEW, SCAFFOLD_RR, FEDLIN, FEDPROX]
    {
        let run = run_of(algorithm, 10, 4, 1e-4);
        let targets = [0.5, 0.1, 0.03];
        let mut curve = curve(&facts, &search, &run).unwrap();
        let found = curve.rounds_to(&targets);
        let last = found.iter().flatten().copied().max().unwrap();
        let errors = curve.errors(2 * last as usize);
        assert!(last > 10_000, "{run:?}: {found:?}");
        for (found, target) in found.into_iter().zip(targets) {
            let passage = passages(&errors, target).0.map(|held| held as u64);
            assert_eq!(found, passage, "{run:?}, {target}");
        }
    }
}

/// An error that is below its target and rises above it later has not reached it yet: noise in a
/// direction of fast decay appears before the start's error in one of slow decay is gone.
#[test]
fn targets_are_held() {
    let settings = quadratic::Settings {
        dimension: 2,
        spectrum: Spectrum { from: 0.05, to: 1.5 },
        gradient_heterogeneity: 0.5,
        noise: 0.7,
        ..sample::quadratic(2)
    };
    let facts = sample::build(&settings, 3);
    let mut compared = 0;
    let mut early = 0;
    let mut late = 0;
    let mut passing = 0;
    for direction in 0..12 {
        let angle = f64::from(direction) * std::f64::consts::PI / 12.0;
        for (local_steps, step_size) in [(1, 0.01), (4, 0.01), (20, 0.05)] {
            // Above the stationary variance σ²γ/(2λN), below where noise adds less than decays.
            let radius = libm::sqrt(1.5 * 0.49 * step_size / (2.0 * 0.05 * 2.0));
            let start = [radius * libm::cos(angle), radius * libm::sin(angle)];
            let start = facts.optimum().iter().zip(start).map(|(x, y)| x + y).collect();
            let search = from(&facts, StartError::Point(start));
            let targets: Vec<f64> =
                (0..40).map(|i| radius * (0.95 + 0.0025 * f64::from(i))).collect();
            for algorithm in [FEDAVG, SCAFFOLD, RICHARDSON_ROMBERG] {
                let run = run_of(algorithm, 2, local_steps, step_size);
                let mut curve = curve(&facts, &search, &run).unwrap();
                let errors = curve.errors(ROUNDS);
                let found = curve.rounds_to(&targets);
                // Around the stationary error, so that some are passed and never held.
                let lower = Search {
                    algorithms: vec![algorithm],
                    clients: vec![2],
                    targets: targets.iter().map(|target| 0.85 * target).collect(),
                    local_steps: vec![local_steps],
                    step_sizes: StepSizes { from: step_size, to: step_size, points: 1 },
                    ..search.clone()
                };
                passing += compare(&facts, &lower)[1];
                for (found, &target) in found.into_iter().zip(&targets) {
                    let (held, first) = passages(&errors, target);
                    assert_eq!(found, held.map(|held| held as u64), "{run:?}, {target}");
                    let (Some(held), Some(first)) = (held, first) else { continue };
                    compared += 1;
                    early += usize::from(held != first && held <= 64);
                    late += usize::from(held != first && held > 64);
                }
            }
        }
    }
    assert!(early > 0 && late > 0, "{early} and {late} of {compared} rise again");
    assert!(passing > 10, "{passing} first passages are fewer rounds");
}

/// FedAvg with `count` local steps of size `step` and the momentum β of the server, v ← β v + θ̄ − θ, θ ← θ + v, for
/// six clients in three dimensions. The first round has no v before it.
fn momentum(count: u64, step: f64, beta: f64) -> Program {
    let round = |first: bool| {
        let after = usize::from(!first);
        let mean = mean(sum([(1 + after, 1.0)]));
        let (theta, velocity) = if first {
            (sum([(2, 1.0)]), sum([(0, -1.0), (2, 1.0)]))
        } else {
            (sum([(1, beta), (3, 1.0)]), sum([(0, -1.0), (1, beta), (3, 1.0)]))
        };
        Round {
            state: vec![Level::Server; 1 + after],
            cohort: None,
            participation: ParticipationScheme::Normalised,
            masks: vec![],
            operations: vec![sample::steps(count, step), mean],
            next: vec![theta.clone(), velocity],
            result: theta,
            ends: None,
        }
    };
    Program {
        clients: 6,
        dimension: 3,
        rounds: vec![round(true), round(false)],
        order: vec![0, 1],
        cycle: 1,
        start_weight: 1.0,
    }
}

/// Momentum that oscillates: the crossings are the last of the first 3000 rounds above the target,
/// also where the error was below it before.
#[test]
fn errors_that_oscillate_are_proven_to_stay_below() {
    let settings = quadratic::Settings {
        dimension: 3,
        spectrum: Spectrum { from: 0.2, to: 1.0 },
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.1,
        noise: 0.3,
        ..sample::quadratic(6)
    };
    let problem: Quadratic = sample::build(&settings, 3);
    let start = StartError::Point(problem.optimum().iter().map(|x| x + 1.0).collect());
    let squares = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003];
    let mut proven = 0;
    let mut returned = 0;
    for (count, step, beta) in [(1, 0.1, 0.9), (8, 0.02, 0.9), (1, 0.01, 0.95), (4, 0.01, 0.0)] {
        let program = momentum(count, step, beta);
        program.check().unwrap();
        let found = Squares::new(&program, &problem, &start, None).unwrap();
        let mut curve = ErrorCurve::new(&found);
        let errors = curve.errors(3000);
        for square in squares {
            let wanted = errors.iter().rposition(|error| *error > square).map_or(0, |t| t + 1);
            let crossing = curve.proven(square).map(|crossing| crossing.rounds as usize);
            if wanted > errors.len() - 10 {
                assert_eq!(crossing, None, "{count}, {step}, {beta}: {square}");
                continue;
            }
            assert_eq!(crossing, Some(wanted), "{count}, {step}, {beta}: {square}");
            proven += 1;
            returned += usize::from(errors[..wanted].iter().any(|error| *error <= square));
        }
    }
    assert!(proven >= 12 && returned >= 3, "{proven} proven, {returned} after a return");
}

/// A curve has stationary states where exact moments, client by client, are stationary, and they are the
/// same; beyond the edge no target is ever reached for good.
#[test]
fn curves_are_stationary_where_moments_are() {
    let facts = sample::noisy(4);
    let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
    let search = from(&facts, StartError::Point(start));
    let mut seen = [0, 0];
    for algorithm in 0..ALL {
        for step_size in [0.1, 0.7, 1.2, 1.4, 1.6, 2.0, 4.0] {
            let run = run_of(algorithm, 4, 2, step_size);
            let program = search.known[algorithm].program(&run).unwrap();
            let cycle = Cycle::new(&program, &facts, None);
            let rest = cycle.and_then(|cycle| cycle.stationary()).ok();
            let rest = rest.map(|(moments, _)| moments[0].sq_error);
            let Ok(mut curve) = curve(&facts, &search, &run) else {
                assert!(rest.is_none(), "{run:?}");
                continue;
            };
            let states = curve.stationary();
            let found = states.map(|states| curve.errors_in(&states, 0).next().unwrap());
            assert_eq!(found.is_some(), rest.is_some(), "{run:?}: {found:?} {rest:?}");
            seen[usize::from(found.is_some())] += 1;
            match found.zip(rest) {
                Some((x, y)) => assert!((x / y - 1.0).abs() < 1e-8, "{run:?}: {x} {y}"),
                None => assert_eq!(curve.rounds_to(&[1e9]), [None], "{run:?}"),
            }
        }
    }
    assert!(seen[0] > 9 && seen[1] > 9, "{seen:?}");
}
