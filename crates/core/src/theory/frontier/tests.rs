//! The frontier against exact moments client by client, and against brute force.

use super::*;
use crate::linalg::Matrix;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::problem::td::{Environment, Noise, Td};
use crate::program::{Level, Program, Round, mean, sum};
use crate::sample;
use crate::theory::moments::{AlgorithmModel, ExactMoments};
use crate::theory::program::Squares;
use std::sync::Mutex;

/// A run of a method, with a server step other than 1 where it has several.
fn run_of(method: FrontierAlgorithm, clients: u64, local_steps: u64, step_size: f64) -> MethodRun {
    let choice = method.server_steps().iter().position(|step| *step > 1.0).unwrap_or(0);
    MethodRun { method, clients, local_steps, step_size, choice }
}

/// Asserts that the errors of a run on a problem are the exact moments of one with all its clients.
fn assert_exact(
    (small, large): (&dyn Facts, &dyn Facts),
    run: &MethodRun,
    start: &[f64],
    rounds: &[u64],
) {
    let model = AlgorithmModel { cohort: run.clients as usize, ..rounds::model(run) };
    let exact = ExactMoments::new(large, &model).unwrap().at_rounds(start, rounds);
    let last = rounds[rounds.len() - 1] as usize;
    let found = errors(small, run, &StartError::Point(start.to_vec()), last).unwrap();
    for moments in exact {
        let ratio = found[moments.round as usize] / moments.sq_error;
        assert!((ratio - 1.0).abs() < 1e-10, "{run:?}, {}: {ratio}", moments.round);
    }
}

#[test]
fn errors_are_the_exact_moments() {
    let facts = sample::noisy(4);
    let start = [facts.optimum()[0] + 1.0, facts.optimum()[1] + 2.0];
    let steps = [(1, 0.3), (4, 0.1), (37, 0.01)];
    for (method, (local_steps, step_size)) in
        FrontierAlgorithm::ALL.into_iter().flat_map(|method| steps.map(|steps| (method, steps)))
    {
        let run = run_of(method, 4, local_steps, step_size);
        assert_exact((&facts, &facts), &run, &start, &[0, 1, 2, 7, 40]);
    }
}

/// TD(0) on two chains, one for `first` and one for `second` clients: two types.
fn two_chains(first: usize, second: usize) -> Td {
    let turned = |i: usize, j: usize| sample::CHAIN[3 * ((i + 1) % 3) + (j + 1) % 3];
    let environments = [(0.0, 1.0), (1.0, -1.0)].map(|(turn, sign)| Environment {
        transitions: Matrix::from_fn(3, 3, |i, j| {
            (1.0 - turn) * sample::CHAIN[3 * i + j] + turn * turned(i, j)
        }),
        rewards: vec![sign, -sign, 0.5 * sign],
    });
    let phi = vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5];
    let of_clients = [vec![0; first], vec![1; second]].concat();
    Td::new(phi, 2, 0.8, environments.into_iter(), of_clients, Noise::Independent).unwrap()
}

/// By types, errors are those of the problem with all its clients, also of ten thousand.
#[test]
fn clients_scale_the_types() {
    let small = two_chains(2, 1);
    let start: Vec<f64> = small.optimum().iter().map(|x| x + 1.0).collect();
    for large in [two_chains(4, 2), two_chains(20, 10), two_chains(6_666, 3_333)] {
        for method in FrontierAlgorithm::ALL {
            let run = run_of(method, large.clients() as u64, 5, 0.05);
            assert_exact((&small, &large), &run, &start, &[1, 3, 30]);
        }
    }
}

/// The error is a quadratic function of the start, so its mean over an isotropic start is that
/// over the axes and their opposites.
#[test]
fn an_isotropic_start_is_the_mean_of_points() {
    let (facts, mean_square, rounds) = (two_chains(1, 1), 4.0, 20);
    let d = facts.dim();
    for method in FrontierAlgorithm::ALL {
        let run = run_of(method, 6, 3, 0.1);
        let found = errors(&facts, &run, &StartError::Isotropic { mean_square }, rounds).unwrap();
        let mut mean = vec![0.0; rounds + 1];
        for (axis, sign) in (0..d).flat_map(|axis| [(axis, 2.0), (axis, -2.0)]) {
            let mut start = facts.optimum().to_vec();
            start[axis] += sign;
            let each = errors(&facts, &run, &StartError::Point(start), rounds).unwrap();
            mean.iter_mut().zip(each).for_each(|(mean, x)| *mean += x / (2 * d) as f64);
        }
        for (a, b) in found.iter().zip(mean) {
            assert!((a / b - 1.0).abs() < 1e-11, "{run:?}: {a} {b}");
        }
    }
}

fn settings(clients: &[u64], targets: &[f64]) -> Search {
    Search {
        methods: FrontierAlgorithm::ALL.to_vec(),
        clients: clients.to_vec(),
        targets: targets.to_vec(),
        local_steps: vec![1, 3, 10],
        step_sizes: StepSizes { from: 0.004, to: 2.5, points: 15 },
        refinements: 0,
        prices: Vec::new(),
        start: StartError::Isotropic { mean_square: 4.0 },
        own: None,
    }
}

/// The last round whose error is above the target, and the first below, if all rounds of the
/// last half are below.
fn passages(errors: &[f64], target: f64) -> (Option<usize>, Option<usize>) {
    let is_above = |error: &f64| !(*error >= 0.0 && *error <= target * target);
    let held = errors.iter().rposition(is_above).map_or(0, |last| last + 1);
    let first = errors.iter().position(|error| !is_above(error));
    ((held <= errors.len() / 2).then_some(held), first)
}

/// The fewest rounds, the error after them, γ and the choice of further settings.
type BruteForce = (u64, f64, f64, usize);

/// The rounds that brute force sees.
const ROUNDS: usize = 3000;

/// What is best to stay below each target, and to come below it.
fn by_brute_force(
    facts: &dyn Facts,
    search: &Search,
    method: FrontierAlgorithm,
    clients: u64,
    local_steps: u64,
) -> Vec<[Option<BruteForce>; 2]> {
    let mut best = vec![[None; 2]; search.targets.len()];
    let range = &search.step_sizes;
    let steps = (0..range.points)
        .flat_map(|i| (0..method.choices()).map(move |choice| (range.nth(i), choice)));
    for (step_size, choice) in steps {
        let run = MethodRun { method, clients, local_steps, step_size, choice };
        let errors = errors(facts, &run, &search.start, ROUNDS).unwrap();
        for (best, &target) in best.iter_mut().zip(&search.targets) {
            let (held, first) = passages(&errors, target);
            let first = first.filter(|first| *first <= MOST_PASSING as usize);
            for (best, rounds) in best.iter_mut().zip([held, first]) {
                let Some(rounds) = rounds else { continue };
                let key = (rounds as u64, errors[rounds], step_size, choice);
                if best.is_none_or(|best| key < best) {
                    *best = Some(key);
                }
            }
        }
    }
    best
}

/// The search finds what all step sizes and rounds, one by one, contain.
#[test]
fn the_search_equals_brute_force() {
    let problems: [Box<dyn Facts>; 5] = [
        Box::new(sample::noisy(2)),
        Box::new(sample::noisy(4)),
        Box::new(two_chains(1, 1)),
        Box::new(two_chains(2, 1)),
        Box::new(scalar_types()),
    ];
    let mut compared = 0;
    for (number, facts) in problems.iter().enumerate() {
        let n = facts.clients() as u64;
        let settings = settings(&[n, 10 * n], &[1.0, 0.3, 0.1, 0.05]);
        let found = search(facts.as_ref(), &settings, &|_| ()).unwrap();
        for &method in &settings.methods {
            let all = settings.local_steps_of(method);
            for (&clients, &local_steps) in
                settings.clients.iter().flat_map(|n| all.iter().map(move |h| (n, h)))
            {
                let best = by_brute_force(facts.as_ref(), &settings, method, clients, local_steps);
                for (&[held, first], &target) in best.iter().zip(&settings.targets) {
                    let of = |is_held: bool| {
                        let is_same = |r: &&Reached| {
                            (r.run.method, r.run.clients, r.target) == (method, clients, target)
                                && (r.run.local_steps, r.held) == (local_steps, is_held)
                        };
                        // More rounds are beyond the sight of brute force.
                        let found = found.iter().find(is_same);
                        let found = found.filter(|r| r.rounds <= ROUNDS as u64 / 2);
                        found.map(|r| (r.rounds, r.run.step_size, r.run.choice))
                    };
                    let what = format!("{number}, {method:?}, {clients}, {target}, {local_steps}");
                    let settings = |(rounds, _, step, server)| (rounds, step, server);
                    assert_eq!(of(true), held.map(settings), "{what}");
                    let is_fewer = |first: &BruteForce| held.is_none_or(|h| first.0 < h.0);
                    assert_eq!(of(false), first.filter(is_fewer).map(settings), "{what}, passing");
                    compared += usize::from(held.is_some());
                }
            }
        }
    }
    assert!(compared > 400, "{compared} optima are compared");
}

/// One dimension, two clients of curvatures of their own.
fn scalar_types() -> Quadratic {
    let settings = quadratic::Settings {
        gradient_heterogeneity: 0.7,
        hessian_heterogeneity: 0.3,
        noise: 0.4,
        multiplicative_noise: 0.2,
        ..sample::isotropic(2, 1, 0.8)
    };
    sample::build(&settings, 5)
}

/// Beyond the rounds that are computed one by one, too, T is exact.
#[test]
fn many_rounds_are_exact_to_the_integer() {
    let facts = two_chains(1, 1);
    let start = StartError::Isotropic { mean_square: 4.0 };
    for method in [
        FrontierAlgorithm::Sgd,
        FrontierAlgorithm::Fedavg,
        FrontierAlgorithm::RichardsonRomberg,
        FrontierAlgorithm::Scaffold,
        FrontierAlgorithm::Scaffnew,
        FrontierAlgorithm::ScaffoldRr,
    ] {
        let run = run_of(method, 10, 4, 1e-4);
        let targets = [0.5, 0.1, 0.03];
        let found = rounds_to(&facts, &run, (&start, None), &targets).unwrap();
        let last = found.iter().flatten().copied().max().unwrap();
        let errors = errors(&facts, &run, &start, 2 * last as usize).unwrap();
        assert!(last > 10_000, "{run:?}: {found:?}");
        for (found, target) in found.into_iter().zip(targets) {
            let passage = passages(&errors, target).0.map(|held| held as u64);
            assert_eq!(found, passage, "{run:?}, {target}");
        }
    }
}

/// More step sizes in the same range are never worse, and the results have the same bits on any
/// number of threads. The shares of the work that are reported add up to the whole.
#[test]
fn refined_step_sizes_are_better_and_the_same_on_all_threads() {
    let facts = two_chains(1, 1);
    let coarse = settings(&[2, 40], &[0.3, 0.1, 0.05]);
    let fine = Search { refinements: 6, ..coarse.clone() };
    let on = |threads: usize, settings: &Search| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let shares = Mutex::new(Vec::new());
        let worked = |share| shares.lock().unwrap().push(share);
        let found = pool.install(|| search(&facts, settings, &worked).unwrap());
        let shares = shares.into_inner().unwrap();
        assert!(shares.len() > 50 && shares.iter().all(|share| (0.0..1.0).contains(share)));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        found
    };
    let (before, after) = (on(2, &coarse), on(1, &fine));
    assert_eq!(after, on(3, &fine));
    assert_eq!(before.len(), after.len());
    let mut gained = 0;
    for (before, after) in before.iter().zip(&after) {
        assert!(after.rounds <= before.rounds, "{before:?} {after:?}");
        gained += usize::from(after.rounds < before.rounds);
        let again = rounds_to(&facts, &after.run, (&coarse.start, None), &[after.target]).unwrap();
        assert_eq!(again, [Some(after.rounds)]);
    }
    assert!(gained > before.len() / 4, "{gained} of {} have gained", before.len());
}

/// Where a wider range of step sizes is better, as one is for larger server steps, this is said; of
/// a range that is wide enough it is not.
#[test]
fn ranges_that_end_too_early_are_flagged() {
    let problems: [Box<dyn Facts>; 2] = [Box::new(sample::noisy(2)), Box::new(two_chains(1, 1))];
    let mut found_worse = [0, 0];
    for facts in &problems {
        let with = |from: f64, to: f64| {
            let points = libm::ceil(libm::log(to / from) / 0.4) as usize;
            let search = Search {
                methods: vec![FrontierAlgorithm::FedavgServerStep],
                local_steps: vec![1, 8, 64, 1024],
                step_sizes: StepSizes { from, to, points },
                refinements: 12,
                ..settings(&[10], &[0.3, 0.1, 0.05])
            };
            super::search(facts.as_ref(), &search, &|_| ()).unwrap()
        };
        let wide = with(1e-8, 10.0);
        assert!(wide.iter().all(|reached| reached.edge.is_none()), "{wide:?}");
        let above = [1e-3, 1e-2, 0.1].map(|from| (from, 10.0));
        for (from, to) in above.into_iter().chain([(1e-8, 1e-2)]) {
            for narrow in with(from, to).iter().filter(|narrow| narrow.held) {
                let key = |r: &Reached| (r.run.local_steps, r.target.to_bits(), r.held);
                let best = wide.iter().find(|wide| key(wide) == key(narrow)).unwrap();
                // A grid is coarser than that for the other server steps.
                let is_worse = narrow.rounds as f64 > 1.05 * best.rounds as f64 + 1.0;
                assert!(!is_worse || narrow.edge.is_some(), "{narrow:?} against {best:?}");
                let of_another = is_worse && narrow.edge == Some(RangeEnd::OfAnotherChoice);
                found_worse[usize::from(to < 1.0)] += usize::from(of_another);
            }
        }
    }
    assert!(found_worse.iter().all(|count| *count > 0), "{found_worse:?}");
}

#[test]
fn what_cannot_be_computed_is_refused() {
    let facts = two_chains(2, 1);
    let of = |change: &dyn Fn(&mut Search)| {
        let mut settings = settings(&[3], &[0.1]);
        change(&mut settings);
        search(&facts, &settings, &|_| ()).unwrap_err().to_string()
    };
    for (message, wanted) in [
        (of(&|s| s.clients = vec![3, 10]), "10 clients cannot have the problem's proportions"),
        (of(&|s| s.clients = vec![0]), "must be a multiple of 3"),
        (of(&|s| s.targets = vec![0.1, 2.0]), "the target 2 is not below the root mean square 2"),
        (of(&|s| s.targets = vec![]), "targets must be a list of positive finite numbers"),
        (of(&|s| s.local_steps = vec![0]), "local steps must be"),
        (of(&|s| s.step_sizes.from = f64::NAN), "step sizes must be"),
        (of(&|s| s.start = StartError::Point(vec![1.0])), "the start must be 2 finite numbers"),
        (of(&|s| s.start = StartError::Point(facts.optimum().to_vec())), "other than the optimum"),
    ] {
        assert!(message.contains(wanted), "{message}");
    }
    let refused = |facts: &dyn Facts| search(facts, &settings(&[4], &[0.1]), &|_| ()).unwrap_err();
    assert_eq!(refused(&sample::weighted_ridge()), Refusal::UnequalShares);
    assert_eq!(refused(&sample::weighted_logistic()), Refusal::MomentsDoNotClose);
    let markovian =
        sample::chain((0..4).collect(), Noise::Markov { burn_in: 1, calls_per_state: 1.0 });
    assert_eq!(refused(&markovian), Refusal::MomentsDoNotClose);
    let wide = quadratic::Settings { dimension: 20, noise: 1.0, ..sample::quadratic(4) };
    let many = refused(&sample::build(&wide, 1));
    assert!(matches!(many, Refusal::Size { .. }), "{many}");
}

/// Compares the first passages that a search of this run alone finds with those of its errors; their
/// number.
fn compared_passages(
    facts: &dyn Facts,
    run: &MethodRun,
    start: &StartError,
    targets: &[f64],
    errors: &[f64],
) -> usize {
    // Around the stationary error, so that some are passed and never held.
    let targets: Vec<f64> = targets.iter().map(|target| 0.85 * target).collect();
    let search = Search {
        methods: vec![run.method],
        local_steps: vec![run.local_steps],
        step_sizes: StepSizes { from: run.step_size, to: run.step_size, points: 1 },
        start: start.clone(),
        ..settings(&[run.clients], &targets)
    };
    let found = super::search(facts, &search, &|_| ()).unwrap();
    let passing = |target: &f64| {
        let (held, first) = passages(errors, *target);
        let first = first.filter(|f| *f <= MOST_PASSING as usize && held.is_none_or(|h| *f < h));
        let found = found.iter().find(|r| !r.held && r.target == *target).map(|r| r.rounds);
        assert_eq!(found, first.map(|first| first as u64), "{run:?}, {target}");
        found
    };
    targets.iter().filter_map(passing).count()
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
    let (mut compared, mut early, mut late, mut passing) = (0, 0, 0, 0);
    for direction in 0..12 {
        let angle = f64::from(direction) * std::f64::consts::PI / 12.0;
        for (local_steps, step_size) in [(1, 0.01), (4, 0.01), (20, 0.05)] {
            // Above the stationary variance σ²γ/(2λN), below where noise adds less than decays.
            let radius = libm::sqrt(1.5 * 0.49 * step_size / (2.0 * 0.05 * 2.0));
            let start = [radius * libm::cos(angle), radius * libm::sin(angle)];
            let start = facts.optimum().iter().zip(start).map(|(x, y)| x + y).collect();
            let start = StartError::Point(start);
            let targets: Vec<f64> =
                (0..40).map(|i| radius * (0.95 + 0.0025 * f64::from(i))).collect();
            for method in [
                FrontierAlgorithm::Fedavg,
                FrontierAlgorithm::Scaffold,
                FrontierAlgorithm::RichardsonRomberg,
            ] {
                let run = run_of(method, 2, local_steps, step_size);
                let errors = errors(&facts, &run, &start, 6000).unwrap();
                let found = rounds_to(&facts, &run, (&start, None), &targets).unwrap();
                passing += compared_passages(&facts, &run, &start, &targets, &errors);
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

/// FedAvg with the momentum β of the server: v ← β v + θ̄ − θ, θ ← θ + v.
fn momentum(clients: usize, dimension: usize, steps: (u64, f64), beta: f64) -> Program {
    let (count, step) = steps;
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
            masks: vec![],
            operations: vec![sample::steps(count, step), mean],
            next: vec![theta.clone(), velocity],
            result: theta,
            ends: None,
        }
    };
    let rounds = vec![round(true), round(false)];
    Program { clients, dimension, rounds, order: vec![0, 1], cycle: 1 }
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
    let (mut proven, mut returned) = (0, 0);
    for (steps, beta) in [((1, 0.1), 0.9), ((8, 0.02), 0.9), ((1, 0.01), 0.95), ((4, 0.01), 0.0)] {
        let program = momentum(6, 3, steps, beta);
        program.check().unwrap();
        let found = Squares::new(&program, &problem, &start, None).unwrap();
        let mut curve = ErrorCurve::new(&found);
        let errors = curve.errors(3000);
        for square in squares {
            let wanted = errors.iter().rposition(|error| *error > square).map_or(0, |t| t + 1);
            let crossing = curve.proven(square).map(|crossing| crossing.rounds as usize);
            if wanted > errors.len() - 10 {
                assert_eq!(crossing, None, "{steps:?}, {beta}: {square}");
                continue;
            }
            assert_eq!(crossing, Some(wanted), "{steps:?}, {beta}: {square}");
            proven += 1;
            returned += usize::from(errors[..wanted].iter().any(|error| *error <= square));
        }
    }
    assert!(proven >= 12 && returned >= 3, "{proven} proven, {returned} after a return");
}
