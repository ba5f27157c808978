//! The frontier against exact moments client by client, and against brute force.

use super::*;
use crate::algorithm::fedlin::FedLin;
use crate::algorithm::fedprox::FedProx;
use crate::algorithm::minibatch_sgd::MinibatchSgd;
use crate::algorithm::richardson_romberg::{Base, Coupling, Extrapolate, RichardsonRomberg};
use crate::algorithm::rounds::{ProblemSize, constant_rounds};
use crate::algorithm::scaffnew::Scaffnew;
use crate::algorithm::{SearchedSpecs, Settings, Spec, WithWork, fedavg, scaffold};
use crate::federated::Clock;
use crate::linalg::Matrix;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::spectrum::Spectrum;
use crate::problem::td::{Environment, Noise, Td};
use crate::round_program::{Level, Program, Round, mean, sum};
use crate::sample;
use crate::theory::exact::{Cycle, MeanRounds, ProgramMoments, Squares};
use std::sync::Mutex;

/// The places of algorithms in [`known`].
const SGD: usize = 0;
const FEDAVG: usize = 2;
const FEDAVG_SERVER_STEP: usize = 3;
const SCAFFOLD: usize = 4;
const SCAFFNEW: usize = 5;
const RICHARDSON_ROMBERG: usize = 6;
const SCAFFOLD_RR: usize = 8;
const FEDLIN: usize = 9;
const FEDPROX: usize = 10;

/// The number of algorithms.
const ALL: usize = 11;

/// The algorithms, on problems of this size.
fn known(facts: &dyn Facts) -> Vec<Arc<dyn Rounds>> {
    let romberg = |over, coupling| {
        let own = RichardsonRomberg { over, coupling, ..sample::romberg(1, Extrapolate::StepSize) };
        vec![Spec::RichardsonRomberg(Settings::plain(1.0, own))]
    };
    let minibatch = MinibatchSgd { batch: 1, cohort: None };
    let minibatch = vec![Spec::MinibatchSgd(Settings::plain(1.0, minibatch))];
    let coin = Scaffnew { communication_probability: 1.0, clock: Clock::default() };
    let server_steps = [1.0, 2.0, 4.0, 8.0, 32.0, 128.0].map(|server_step| {
        let mut settings = fedavg::Settings::new(1.0, 1);
        settings.own.own.server_step = server_step;
        Spec::FedAvg(settings)
    });
    let prox = FedProx { local_steps: 1, proximal: 0.7, cohort: None };
    let fedlin = fedavg::Settings::new(1.0, 1).own.common;
    let fedlin = WithWork { common: fedlin, own: FedLin {} };
    let all: [(&str, Vec<Spec>); ALL] = [
        ("sgd", minibatch.clone()),
        ("minibatch-sgd", minibatch),
        ("fedavg", vec![Spec::FedAvg(fedavg::Settings::new(1.0, 1))]),
        ("fedavg-server-step", server_steps.into()),
        ("scaffold", vec![Spec::Scaffold(scaffold::Settings::new(1.0, 1))]),
        ("scaffnew", vec![Spec::Scaffnew(Settings::plain(1.0, coin))]),
        ("richardson-romberg", romberg(Base::Fedavg, Coupling::Common)),
        ("richardson-romberg-independent", romberg(Base::Fedavg, Coupling::Independent)),
        ("scaffold-rr", romberg(Base::Scaffold, Coupling::Common)),
        ("fedlin", vec![Spec::FedLin(Settings::plain(1.0, fedlin))]),
        ("fedprox", vec![Spec::FedProx(Settings::plain(1.0, prox))]),
    ];
    let size = ProblemSize { clients: facts.clients(), dimension: facts.dim() };
    let rounds = |(name, choices): (&str, Vec<Spec>)| {
        Arc::new(SearchedSpecs {
            name: name.to_owned(),
            choices,
            has_local_steps: name != "sgd",
            program_of: Arc::new(move |spec| constant_rounds(&spec.components(), size)),
        }) as Arc<dyn Rounds>
    };
    all.map(rounds).into()
}

/// Settings of an algorithm, with a server step other than 1 where it has several.
fn run_of(algorithm: usize, clients: u64, local_steps: u64, step_size: f64) -> RoundSettings {
    let choice = usize::from(algorithm == FEDAVG_SERVER_STEP);
    RoundSettings { algorithm, clients, local_steps, step_size, choice }
}

/// A search that has this start.
fn from(facts: &dyn Facts, start: StartError) -> Search {
    Search { start, ..settings(facts, &[], &[]) }
}

/// Errors are the exact moments, and by types those of the problem with all its clients, also of ten thousand.
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

fn settings(facts: &dyn Facts, clients: &[u64], targets: &[f64]) -> Search {
    Search {
        known: known(facts),
        algorithms: (0..ALL).collect(),
        clients: clients.to_vec(),
        targets: targets.to_vec(),
        local_steps: vec![1, 3, 10],
        step_sizes: StepSizes { from: 0.004, to: 2.5, points: 15 },
        refinements: 0,
        prices: Vec::new(),
        start: StartError::Isotropic { mean_square: 4.0 },
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
const ROUNDS: usize = 6000;

/// What is best to stay below each target, and to come below it in fewer rounds.
fn by_brute_force(
    facts: &dyn Facts,
    search: &Search,
    (algorithm, clients, local_steps): (usize, u64, u64),
) -> Vec<[Option<BruteForce>; 2]> {
    let mut best = vec![[None; 2]; search.targets.len()];
    let range = &search.step_sizes;
    let steps = (0..range.points).flat_map(|i| {
        (0..search.known[algorithm].choices()).map(move |choice| (range.nth(i), choice))
    });
    for (step_size, choice) in steps {
        let run = RoundSettings { algorithm, clients, local_steps, step_size, choice };
        // Others have infinite second moments after one round.
        let Ok(mut curve) = curve(facts, search, &run) else { continue };
        let errors = curve.errors(ROUNDS);
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
    for [held, first] in &mut best {
        *first = first.filter(|first| held.is_none_or(|held| first.0 < held.0));
    }
    best
}

/// Compares what a search finds with what all step sizes and rounds, one by one, contain; how many targets are
/// held, and how many are passed in fewer rounds.
fn compare(facts: &dyn Facts, search: &Search) -> [usize; 2] {
    let found = super::search(facts, search, &|_| ()).unwrap();
    let mut compared = [0, 0];
    let runs = search.algorithms.iter().flat_map(|algorithm| {
        let local_steps = search.local_steps_of(*algorithm).iter();
        local_steps.flat_map(|h| search.clients.iter().map(|n| (*algorithm, *n, *h)))
    });
    for of in runs {
        let best = by_brute_force(facts, search, of);
        for (best, &target) in best.into_iter().zip(&search.targets) {
            for (best, is_held) in best.into_iter().zip([true, false]) {
                let is_same = |r: &&Reached| {
                    let RoundSettings { algorithm, clients, local_steps, .. } = r.run;
                    (algorithm, clients, local_steps) == of
                        && (r.target, r.held) == (target, is_held)
                };
                // More rounds are beyond the sight of brute force.
                let found = found.iter().find(is_same).filter(|r| r.rounds <= ROUNDS as u64 / 2);
                let found = found.map(|r| (r.rounds, r.run.step_size, r.run.choice));
                let best = best.map(|(rounds, _, step_size, choice)| (rounds, step_size, choice));
                assert_eq!(found, best, "{of:?}, {target}, {is_held}");
                compared[usize::from(!is_held)] += usize::from(best.is_some());
            }
        }
    }
    compared
}

/// The search finds what all step sizes and rounds, one by one, contain.
#[test]
fn the_search_equals_brute_force() {
    let problems: [&dyn Facts; 5] = [
        &sample::noisy(2),
        &sample::noisy(4),
        &two_chains(1, 1),
        &two_chains(2, 1),
        &scalar_types(),
    ];
    let held = problems.map(|facts| {
        let n = facts.clients() as u64;
        compare(facts, &settings(facts, &[n, 10 * n], &[1.0, 0.3, 0.1, 0.05]))[0]
    });
    assert!(held.iter().sum::<usize>() > 400, "{held:?} optima are compared");
}

/// At each price, what a search at prices finds is what costs least of all that a search of everything finds,
/// which equals brute force.
#[test]
fn a_search_at_prices_finds_what_costs_least() {
    let problems: [&dyn Facts; 3] = [&sample::noisy(4), &two_chains(2, 1), &scalar_types()];
    let cases = problems.into_iter().flat_map(|facts| [(facts, 0), (facts, 5)]);
    let mut compared = 0;
    for (facts, refinements) in cases {
        let n = facts.clients() as u64;
        let all = Search { refinements, ..settings(facts, &[n, 10 * n], &[1.0, 0.3, 0.1, 0.05]) };
        let priced = Search { prices: vec![1.0, 7.0, 200.0], ..all.clone() };
        let [all, found] =
            [&all, &priced].map(|search| super::search(facts, search, &|_| ()).unwrap());
        assert!(found.len() < all.len() && found.iter().all(|reached| reached.held));
        let cost = |one: &Reached, price: f64| {
            let round = priced.round_price(&one.run);
            one.rounds as f64 * (price * round.communications + round.gradients)
        };
        let of = |one: &Reached| (one.run.algorithm, one.run.clients, one.target.to_bits());
        for one in all.iter().filter(|one| one.held) {
            for &price in &priced.prices {
                let others = all.iter().filter(|other| other.held && of(other) == of(one));
                if others.map(|other| cost(other, price)).all(|other| cost(one, price) <= other) {
                    let is_it = |r: &Reached| {
                        (r.run, r.target, r.rounds) == (one.run, one.target, one.rounds)
                    };
                    assert!(found.iter().any(is_it), "{one:?} at the price {price}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 600, "{compared} least costs are compared");
}

/// Numbers of clients and targets that are refined at once are refined as each alone.
#[test]
fn refinements_do_not_depend_on_each_other() {
    let facts = two_chains(1, 1);
    let joint = Search { refinements: 6, ..settings(&facts, &[2, 40], &[0.3, 0.1, 0.05]) };
    let found = search(&facts, &joint, &|_| ()).unwrap();
    let mut compared = 0;
    for &clients in &joint.clients {
        // Larger targets may take what a smaller one needs.
        let alone = Search { clients: vec![clients], targets: vec![0.05], ..joint.clone() };
        let alone = search(&facts, &alone, &|_| ()).unwrap();
        let is_same = |r: &&Reached| (r.run.clients, r.target) == (clients, 0.05);
        compared += alone.len();
        let joint: Vec<Reached> = found.iter().filter(is_same).copied().collect();
        assert_eq!(alone, joint);
    }
    assert!(compared > 15, "{compared} are compared");
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

/// More step sizes in the same range are never worse, and the results have the same bits on any
/// number of threads. The shares of the work that are reported add up to the whole.
#[test]
fn refined_step_sizes_are_better_and_the_same_on_all_threads() {
    let facts = two_chains(1, 1);
    let coarse = settings(&facts, &[2, 40], &[0.3, 0.1, 0.05]);
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
    let before = on(2, &coarse);
    let after = on(1, &fine);
    assert_eq!(after, on(3, &fine));
    assert_eq!(before.len(), after.len());
    let mut gained = 0;
    for (before, after) in before.iter().zip(&after) {
        assert!(after.rounds <= before.rounds, "{before:?} {after:?}");
        gained += usize::from(after.rounds < before.rounds);
        let again = curve(&facts, &coarse, &after.run).unwrap().rounds_to(&[after.target]);
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
                algorithms: vec![FEDAVG_SERVER_STEP],
                local_steps: vec![1, 8, 64, 1024],
                step_sizes: StepSizes { from, to, points },
                refinements: 12,
                ..settings(facts.as_ref(), &[10], &[0.3, 0.1, 0.05])
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
        let mut settings = settings(&facts, &[3], &[0.1]);
        change(&mut settings);
        search(&facts, &settings, &|_| ()).unwrap_err().message
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
    let markovian =
        sample::chain((0..4).collect(), Noise::Markov { burn_in: 1, calls_per_state: 1.0 });
    let wide = quadratic::Settings { dimension: 20, noise: 1.0, ..sample::quadratic(4) };
    let problems: [(&dyn Facts, &str); 4] = [
        (&sample::weighted_ridge(), "needs clients of equal shares"),
        (&sample::weighted_logistic(), "needs a linear problem"),
        (&markovian, "needs a linear problem"),
        (&sample::build(&wide, 1), "moments on this problem; at most 1500 are computed"),
    ];
    for (facts, wanted) in problems {
        let refused = search(facts, &settings(facts, &[4], &[0.1]), &|_| ()).unwrap_err();
        assert!(refused.message.contains(wanted), "{refused:?}");
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
    Program { clients, dimension, rounds, order: vec![0, 1], cycle: 1, start_weight: 1.0 }
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
