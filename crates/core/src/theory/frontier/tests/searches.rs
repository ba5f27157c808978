//! Searches find what brute force finds, on any number of threads.
//!
//! The parent module has the algorithms, which constants such as `FEDAVG` name; `two_chains`, TD(0) for clients of two
//! types; `scalar_types`, two types in one dimension; `settings`, a search of all algorithms over a coarse grid; and
//! `compare`, which compares a search with brute force and counts what is held and what is passed.

use super::*;
use std::sync::Mutex;

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

/// Settings that a search cannot use, and problems on which it knows no moments, are refused with the reason.
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

/// The size of a state is that with the most clients: the clients of a type deviate from its mean only if there are
/// several.
#[test]
fn sizes_are_those_with_the_most_clients() {
    let facts = scalar_types();
    let sizes = |clients: &[u64]| {
        let search = settings(&facts, clients, &[0.1]);
        let (_, sizes) = search.problem(&facts).unwrap();
        sizes
    };
    let one_of_each_type = sizes(&[2]);
    let ten_of_each_type = sizes(&[20]);
    assert!(one_of_each_type[SCAFFNEW] < ten_of_each_type[SCAFFNEW]);
    assert_eq!(sizes(&[2, 20]), ten_of_each_type);
    assert_eq!(sizes(&[20, 2]), ten_of_each_type);
}

/// A choice of further settings after the first is refused if its state is too large, and if it has no exact moments.
#[test]
fn all_choices_of_further_settings_are_checked() {
    let wide = quadratic::Settings { dimension: 20, noise: 1.0, ..sample::quadratic(4) };
    let facts = sample::build(&wide, 1);
    let size = ProblemSize { clients: 4, dimension: 20 };
    let check = |choices: Vec<Spec>| {
        let built_in = SearchedSpecs::built_in(choices[0].clone(), size);
        let known: Vec<Arc<dyn Rounds>> = vec![Arc::new(SearchedSpecs { choices, ..built_in })];
        let search = Search { known, algorithms: vec![0], ..settings(&facts, &[4], &[0.1]) };
        check_search(&facts, &search).map_err(|fault| fault.message)
    };
    let fedavg = Spec::FedAvg(fedavg::Settings::new(1.0, 1));
    let of_large_state = Spec::Scaffold(scaffold::Settings::new(1.0, 1));
    // Programs cannot say that each run draws a cohort of its own.
    let romberg = RichardsonRomberg {
        coupling: Coupling::Independent,
        cohort: Some(Participation::Clients(2)),
        ..sample::romberg(1, Extrapolate::StepSize)
    };
    let without_moments = Spec::RichardsonRomberg(Settings::plain(1.0, romberg));
    assert_eq!(check(vec![fedavg.clone()]), Ok(()));
    let too_large = check(vec![fedavg.clone(), of_large_state]).unwrap_err();
    assert!(too_large.starts_with("fedavg (choice 2 of 2) has a state of "), "{too_large}");
    let unknown = check(vec![fedavg.clone(), fedavg, without_moments]).unwrap_err();
    assert_eq!(
        unknown,
        "fedavg (choice 3 of 3) cannot be solved exactly: second moments do not close"
    );
}
