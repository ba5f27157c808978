//! Invariants of every choice of terms: limits, sums, distributions, costs.

use super::*;
use crate::algorithm::Component;
use crate::kernel;
use crate::moments::ExactMoments;
use crate::problem::quadratic::{self, Quadratic};
use crate::problem::{Exact, Facts, logistic};
use crate::round_program::LocalUpdate;
use crate::sample::{self, assert_mean, distance, standard_error};
use crate::theory::deterministic::fixed_point;
use crate::theory::linear;

/// Heterogeneous quadratic functions of four clients in three dimensions, with noise.
fn linear_problem() -> Quadratic {
    let settings = quadratic::Settings {
        gradient_heterogeneity: 1.0,
        hessian_heterogeneity: 0.3,
        noise: 0.5,
        multiplicative_noise: 0.2,
        ..sample::quadratic(4)
    };
    sample::build(&settings, 7)
}

/// Logistic regression of four heterogeneous clients in three dimensions.
fn curved_problem() -> logistic::Logistic {
    sample::build(&logistic::Settings { records: 30, l2: 0.5.into(), ..sample::blobs() }, 3)
}

/// Clients with one distribution, additive noise.
fn homogeneous(clients: usize) -> Quadratic {
    sample::build(&quadratic::Settings { noise: 1.0, ..sample::quadratic(clients) }, 7)
}

/// The estimate of a replicate after `rounds` rounds, in three dimensions from θ_0 = (½, ½, ½).
fn run<P: Problem>(problem: &P, terms: &Terms, rounds: u64, replicate: u64) -> Vec<f64> {
    sample::run(problem, terms, &[0.5; 3], rounds, replicate).estimate().to_vec()
}

/// A coin after each local step.
fn coin(probability: f64, clock: Clock) -> Schedule {
    Schedule::Bernoulli { probability, clock }
}

/// Terms under which control variates remove every bias, with a name for messages, for problems of four clients.
fn corrected() -> Vec<(&'static str, Terms)> {
    let scaffold = Terms::scaffold(0.1, 5);
    let work = vec![1, 7, 2];
    let fresh = Variates::Fresh;
    let option_one = Variates::Kept(Learning::OptionOne);
    vec![
        ("H2", scaffold.clone()),
        ("option I", Terms { variates: option_one, ..scaffold.clone() }),
        ("FedLin", Terms { variates: fresh, ..scaffold.clone() }),
        (
            "FedLin, unequal work",
            Terms {
                variates: fresh,
                local_steps: work.clone(),
                normalised: true,
                ..scaffold.clone()
            },
        ),
        ("server step", Terms { server_step: 0.5, ..scaffold.clone() }),
        ("unequal work", Terms { local_steps: work.clone(), ..scaffold.clone() }),
        (
            "unequal work, normalised",
            Terms { local_steps: work.clone(), normalised: true, ..scaffold.clone() },
        ),
        ("two of four", Terms { cohort: Some(2), ..scaffold.clone() }),
        (
            "one of four, unequal work, server step",
            Terms { cohort: Some(1), local_steps: work, server_step: 0.7, ..scaffold.clone() },
        ),
        (
            "two of four, option I",
            Terms { cohort: Some(2), variates: option_one, ..scaffold.clone() },
        ),
        ("H1", Terms { schedule: coin(0.2, Clock::Communications), ..scaffold.clone() }),
        ("H1 by steps", Terms { schedule: coin(0.3, Clock::Steps), ..scaffold.clone() }),
        ("H1, p = 1", Terms { schedule: coin(1.0, Clock::Communications), ..scaffold }),
    ]
}

/// Problems in three dimensions without noise, of equal and of unequal shares, with a name for messages.
fn noiseless() -> [(&'static str, Exact); 4] {
    [
        ("linear", Exact::new(linear_problem())),
        ("logistic", Exact::new(curved_problem())),
        ("linear, weighted", Exact::new(sample::weighted_ridge())),
        ("logistic, weighted", Exact::new(sample::weighted_logistic())),
    ]
}

/// Under a coin, the local steps of a round are N/p on average if rounds end with a communication, rounded up once. By
/// the other clock each client takes the same whole number of them.
#[test]
fn steps_of_all_clients_under_a_coin_are_rounded_once() {
    for (clients, probability, mean, by_steps) in [
        (10, 0.7, 15, 10),
        (10, 0.66, 16, 20),
        (100, 2.0 / 3.0, 150, 200),
        (4, 0.07, 58, 56),
        (7, 0.1, 70, 70),
        (5, 1.0, 5, 5),
        (3, 1e-9, 3_000_000_000, 3_000_000_000),
        // It is refused elsewhere.
        (3, 0.0, 3, 3),
    ] {
        for (clock, wanted) in [(Clock::Communications, mean), (Clock::Steps, by_steps)] {
            let schedule = coin(probability, clock);
            let terms = Terms { schedule, ..Terms::scaffold(0.1, 1) };
            assert_eq!(terms.steps_of_all(clients), wanted, "{clients}, {probability}, {clock:?}");
        }
    }
    let third = coin(1.0 / 3.0, Clock::Communications);
    let terms = Terms { schedule: third, ..Terms::scaffold(0.1, 1) };
    for clients in 1..1000 {
        assert_eq!(terms.steps_of_all(clients), 3 * clients as u64);
    }
}

/// Without noise, every algorithm with control variates or one local step converges to θ*.
#[test]
fn corrected_runs_without_noise_reach_the_optimum() {
    let single = ("FedAvg, one local step", Terms::fedavg(0.1, 1));
    for (name, terms) in corrected().into_iter().chain([single]) {
        for (problem, exact) in noiseless() {
            let off = distance(&run(&exact, &terms, 4000, 0), exact.optimum());
            assert!(off < 1e-12, "{name}, {problem}: {off}");
        }
    }
}

/// Without noise, every algorithm without control variates converges to its exact limit.
#[test]
fn uncorrected_runs_without_noise_reach_their_own_limit() {
    let plain = Terms::fedavg(0.1, 5);
    let work = vec![1, 7, 2];
    for (name, terms) in [
        ("FedAvg", plain.clone()),
        ("unequal work", Terms { local_steps: work.clone(), ..plain.clone() }),
        ("normalised", Terms { local_steps: work.clone(), normalised: true, ..plain.clone() }),
        ("server step", Terms { server_step: 0.5, ..plain.clone() }),
        ("FedProx", Terms { proximal: 2.0, ..plain.clone() }),
        ("FedProx, unequal work", Terms { proximal: 1.0, local_steps: work, ..plain }),
    ] {
        let work = |c: usize| LocalUpdate {
            batch: 1,
            step: terms.step(c),
            steps: terms.steps(c),
            proximal: terms.proximal,
        };
        for (what, problem) in noiseless() {
            let exact = fixed_point(&problem, work).unwrap();
            let off = distance(&run(&problem, &terms, 3000, 0), &exact);
            assert!(off < 1e-12, "{name}, {what}: {off}");
            let bias = distance(&exact, problem.optimum());
            assert!(bias > 1e-3, "{name}, {what}: there is a bias to be seen, {bias}");
            if problem.linear() {
                let again = linear::limit(&problem, work).unwrap();
                assert!(distance(&exact, &again) < 1e-13, "{name}, {what}: two ways to one limit");
            }
        }
    }
}

/// BOOK problem 5.1: without normalisation, unequal numbers of steps lead to the root of
/// Σ E_k F̄_k as γ → 0, with normalisation to that of Σ F̄_k.
#[test]
fn unnormalised_work_weighs_clients() {
    let problem = linear_problem();
    let work = [1, 7, 2, 1];
    let mut system = crate::linalg::Matrix::zeros(3, 3);
    let mut rhs = vec![0.0; 3];
    for (c, e) in work.iter().enumerate() {
        let hessian = problem.jacobian(c);
        system = system.plus(f64::from(*e), &hessian);
        let own = problem.local_optimum(c).unwrap();
        kernel::axpy(f64::from(*e), &hessian.apply(own), &mut rhs);
    }
    let weighted = crate::linalg::solve(&system, &rhs).unwrap();
    let gap = |gamma: f64, normalised: bool, from: &[f64]| {
        let terms = Terms { local_steps: vec![1, 7, 2], normalised, ..Terms::fedavg(gamma, 1) };
        let work = |c: usize| LocalUpdate::of_steps(terms.step(c), terms.steps(c));
        distance(&linear::limit(&problem, work).unwrap(), from)
    };
    for (normalised, limit) in [(false, &weighted[..]), (true, problem.optimum())] {
        let coarse = gap(1e-3, normalised, limit);
        let fine = gap(1e-4, normalised, limit);
        assert!((coarse / fine - 10.0).abs() < 0.2, "of order γ: {coarse}, {fine}");
    }
    assert!(distance(&weighted, problem.optimum()) > 0.1);
}

/// Σ π ξ = 0 along every noisy run.
#[test]
fn corrections_sum_to_zero() {
    assert_sums_are_zero(&linear_problem());
    assert_sums_are_zero(&sample::weighted_ridge());
}

/// Asserts Σ π_k ξ_k = 0 after each of 200 rounds, for all terms with control variates.
fn assert_sums_are_zero<P: Problem>(problem: &P) {
    for (name, terms) in corrected() {
        let mut run = sample::launch(problem, &terms, &[1.0; 3], 1);
        for round in 0..200 {
            run.round();
            let clients = run.clients().unwrap();
            for i in 0..3 {
                let column = clients.corrections.iter().skip(i).step_by(3);
                let (sum, size) = column.enumerate().fold((0.0, 1.0), |(s, z), (client, x)| {
                    (s + problem.weight(client) * x, f64::max(z, x.abs()))
                });
                assert!(f64::abs(sum) < 1e-13 * size, "{name}, round {round}: {sum}");
            }
        }
    }
}

/// A coin with p = 1 is one local step per round.
#[test]
fn a_sure_coin_is_one_local_step() {
    let problem = linear_problem();
    let h1 = Terms { schedule: coin(1.0, Clock::Communications), ..Terms::scaffold(0.1, 1) };
    let one = run(&problem, &h1, 50, 0);
    let two = run(&problem, &Terms::scaffold(0.1, 1), 50, 0);
    assert!(distance(&one, &two) < 1e-13);
}

/// Both clocks describe one run: where a round of a fixed number of steps ends with a communication, estimates and
/// costs are those that the other clock has after this communication, to the last bit.
#[test]
fn two_clocks_read_one_run() {
    let problem = linear_problem();
    let run_for = |clock, rounds: u64| {
        let terms = Terms { schedule: coin(0.25, clock), ..Terms::scaffold(0.1, 1) };
        let mut run = sample::launch(&problem, &terms, &[0.5; 3], 0);
        (0..rounds)
            .map(|_| {
                run.round();
                (run.cost(), run.estimate().to_vec(), run.clients().unwrap().apart)
            })
            .collect::<Vec<_>>()
    };
    let talks = run_for(Clock::Communications, 300);
    let steps = run_for(Clock::Steps, 300);
    let mut met = 0;
    for (cost, theta, apart) in &steps {
        assert_eq!(cost.local_steps % 4, 0);
        let Some((same, there, _)) = talks.iter().find(|t| t.0.local_steps == cost.local_steps)
        else {
            continue;
        };
        assert_eq!((same, there, *apart), (cost, theta, false));
        met += 1;
    }
    assert!(met > 30, "{met} meetings");
    let total = talks.last().unwrap().0;
    assert_eq!((total.communications, total.vectors_sent), (300, 300 * 8));
    let mean = total.local_steps as f64 / 300.0;
    assert!((mean - 4.0).abs() < 4.5 * (12.0_f64 / 300.0).sqrt(), "geometric of mean 4: {mean}");
}

/// At p = 1/H the two schedules have different distributions. Where γμ is negligible, fixed
/// work gives Var ξ_c = (1 − 1/N) C/H after each round; under the coin a round
/// takes it from v to (1 − p) v + p (1 − 1/N) C, since E(1 − pτ)² = 1 − p: it
/// grows to (1 − 1/N) C. (The distribution has heavy tails there: E(1 − pτ)⁴ is near 9, so
/// that long averages of ξ² do not settle, and the first rounds are tested.)
#[test]
fn the_coin_makes_control_variates_noisier() {
    let settings = quadratic::Settings { noise: 1.0, ..sample::isotropic(5, 2, 0.5) };
    let problem = sample::build(&settings, 1);
    let gamma = 1e-6;
    let squares = |terms: &Terms, replicate| -> Vec<f64> {
        let mut run = sample::launch(&problem, terms, problem.optimum(), replicate);
        let mut after_rounds = Vec::new();
        for _ in 0..3 {
            run.round();
            let xi = run.clients().unwrap().corrections;
            after_rounds.push(kernel::dot(xi, xi) / 10.0);
        }
        after_rounds
    };
    let schedule = coin(0.2, Clock::Communications);
    let under_coin = Terms { schedule, ..Terms::scaffold(gamma, 1) };
    let fixed = Terms::scaffold(gamma, 5);
    for (terms, exact) in [(under_coin, [0.2, 0.36, 0.488]), (fixed, [0.2, 0.2, 0.2])] {
        let all: Vec<Vec<f64>> = (0..20_000).map(|r| squares(&terms, r)).collect();
        for t in 0..3 {
            let sample: Vec<f64> = all.iter().map(|run| run[t]).collect();
            assert_mean(&sample, 0.8 * exact[t], &format!("round {t}"));
        }
    }
}

/// A cohort of 2 of 4 clients: the mean of a round's estimate over all cohorts is the estimate of a round in which all
/// take part. A cohort of all 4 has the bits of no cohort.
#[test]
fn cohorts_are_unbiased() {
    let problem = Exact::new(linear_problem());
    let full = run(&problem, &Terms::fedavg(0.1, 5), 1, 0);
    let some = Terms { cohort: Some(2), ..Terms::fedavg(0.1, 5) };
    let ends: Vec<Vec<f64>> = (0..3000).map(|r| run(&problem, &some, 1, r)).collect();
    for i in 0..3 {
        let entry: Vec<f64> = ends.iter().map(|theta| theta[i]).collect();
        assert!(standard_error(&entry) > 0.0);
        assert_mean(&entry, full[i], &format!("entry {i}"));
    }
    let all = Terms { cohort: Some(4), ..Terms::fedavg(0.1, 5) };
    assert_eq!(run(&problem, &all, 20, 0), run(&problem, &Terms::fedavg(0.1, 5), 20, 0));
}

/// Two rounds of four clients in three dimensions, against numbers counted by hand.
#[test]
fn costs_follow_the_work() {
    let problem = curved_problem();
    let plain = Terms::fedavg(0.1, 3);
    let scaffold = Terms::scaffold(0.1, 3);
    let option_one = Variates::Kept(Learning::OptionOne);
    let some = Some(2);
    let all = Some(4);
    let unequal = Terms { local_steps: vec![1, 4], ..scaffold.clone() };
    // Communications, local steps, oracle calls of all clients and of the one that makes the most, vectors.
    for (terms, expected) in [
        (plain.clone(), [2, 6, 24, 6, 16]),
        (Terms { batches: vec![5], ..plain.clone() }, [2, 6, 120, 30, 16]),
        (Terms { cohort: some, ..plain.clone() }, [2, 6, 12, 6, 8]),
        (Terms { local_steps: vec![1, 4], ..plain.clone() }, [2, 8, 20, 8, 16]),
        (Terms { variates: Variates::Fresh, ..plain.clone() }, [4, 6, 48, 12, 32]),
        (Terms { variates: option_one, ..plain }, [2, 6, 48, 12, 32]),
        // Clients compute their variates from what FedAvg's clients receive.
        (Terms { server_step: 0.5, ..scaffold.clone() }, [2, 6, 24, 6, 16]),
        (Terms { cohort: all, ..scaffold.clone() }, [2, 6, 24, 6, 16]),
        (Terms { batches: vec![1, 5], ..scaffold.clone() }, [2, 6, 72, 30, 16]),
        (Terms { local_steps: vec![3, 3], ..scaffold.clone() }, [2, 6, 24, 6, 16]),
        (Terms { normalised: true, ..unequal.clone() }, [2, 8, 20, 8, 16]),
        // They cannot.
        (unequal, [2, 8, 20, 8, 32]),
        (Terms { cohort: some, ..scaffold.clone() }, [2, 6, 12, 6, 16]),
        (scaffold, [2, 6, 24, 6, 16]),
    ] {
        let expected = sample::cost(expected, 3);
        let have = sample::run(&problem, &terms, &[0.0; 3], 2, 0).cost();
        assert_eq!(have, expected, "{terms:?}");
        let round = terms.round_cost(4, problem.batch(), 3).unwrap();
        assert_eq!(round + round, expected, "{terms:?}");
        let (communications, gradients) = terms.mean_round(4, problem.batch());
        let counted = (2.0 * communications, 2.0 * gradients);
        assert_eq!(counted, (expected.communications as f64, expected.sequential_calls as f64));
    }
}

/// Rounds of a random cohort of unequal clients, and those under a coin, have no fixed cost; the
/// mean over many is what is said of one.
#[test]
fn random_rounds_have_a_mean_cost() {
    let problem = curved_problem();
    let unequal = Terms { local_steps: vec![1, 4], ..Terms::fedavg(0.1, 1) };
    assert_eq!(Terms { cohort: Some(2), ..unequal.clone() }.round_cost(4, 1, 3), None);
    assert_eq!(unequal.mean_round(1, 1), (1.0, 1.0), "the first client has one step");
    for clock in [Clock::Communications, Clock::Steps] {
        let schedule = coin(0.15, clock);
        let terms = Terms { schedule, batches: vec![1, 2], ..Terms::scaffold(0.01, 1) };
        assert_eq!(terms.round_cost(4, 1, 3), None);
        let costs: Vec<Cost> =
            (0..400).map(|r| sample::run(&problem, &terms, &[0.0; 3], 20, r).cost()).collect();
        let (communications, gradients) = terms.mean_round(4, problem.batch());
        let mean = |of: &dyn Fn(&Cost) -> u64, expected: f64, what: &str| {
            let all: Vec<f64> = costs.iter().map(|cost| of(cost) as f64).collect();
            assert_mean(&all, 20.0 * expected, &format!("{clock:?}: {what}"));
        };
        mean(&|cost| cost.communications, communications, "communications");
        mean(&|cost| cost.sequential_calls, gradients, "gradients");
    }
}

/// What Scaffold is charged for: where two vectors suffice, each client finds its next ξ_k from its
/// own end and the server's θ, and where they do not, it is wrong.
#[test]
fn clients_compute_their_corrections_from_what_they_receive() {
    let weighted = sample::weighted_ridge();
    let scaffold = Terms { server_step: 0.5, ..Terms::scaffold(0.05, 3) };
    let unequal = Terms { local_steps: vec![1, 4], ..scaffold.clone() };
    let cases = [
        (scaffold.clone(), 2),
        (Terms { normalised: true, ..unequal.clone() }, 2),
        (unequal, 4),
        (Terms { cohort: Some(2), ..scaffold }, 4),
    ];
    for (terms, vectors) in cases {
        assert_eq!(terms.vectors_per_client(4), vectors);
        let mut run = sample::launch(&weighted, &terms, &[1.0; 3], 0);
        let mut known = [0.0; 12];
        let mut gap = 0.0_f64;
        for _ in 0..5 {
            let before = run.estimate().to_vec();
            run.round();
            let after = run.estimate();
            let clients = run.clients().unwrap();
            for (i, xi) in known.iter_mut().enumerate() {
                let mean = before[i % 3] + (after[i % 3] - before[i % 3]) / terms.server_step;
                *xi += (clients.ends[i] - mean) / clients.lengths[i / 3];
                gap = gap.max((*xi - clients.corrections[i]).abs());
            }
        }
        assert_eq!(gap < 1e-12, vectors == 2, "{terms:?}: {gap}");
    }
}

/// Clients with one distribution, a linear field: under every choice of terms the estimate and the
/// control variates have the mean that they start with, θ* and 0.
#[test]
fn homogeneous_clients_have_no_bias_under_any_scheme() {
    let problem = homogeneous(4);
    let mut schemes = corrected();
    schemes.push(("FedAvg", Terms::fedavg(0.1, 5)));
    schemes.push(("unequal", Terms { local_steps: vec![1, 7, 2], ..Terms::fedavg(0.1, 5) }));
    schemes.push(("FedProx", Terms { proximal: 1.0, ..Terms::fedavg(0.1, 5) }));
    for (name, terms) in schemes {
        let mut thetas = vec![Vec::new(); 3];
        let mut variates = vec![Vec::new(); 3];
        for replicate in 0..400 {
            let run = sample::run(&problem, &terms, problem.optimum(), 20, replicate);
            let xi = run.clients().unwrap().corrections;
            for i in 0..3 {
                thetas[i].push(run.estimate()[i] - problem.optimum()[i]);
                variates[i].push(xi.get(i).copied().unwrap_or(0.0));
            }
        }
        thetas.iter().chain(&variates).for_each(|sample| assert_mean(sample, 0.0, name));
    }
}

/// Clients with one distribution, a linear field, additive noise: the variance of the
/// estimate is 1/N of one client's, exactly, wherever all clients take part, and 1/B of it
/// where a step averages B calls.
#[test]
fn the_variance_is_divided_by_clients_and_batches() {
    let two = homogeneous(2);
    let eight = homogeneous(8);
    let mut schemes = corrected();
    schemes.push(("FedAvg", Terms::fedavg(0.1, 5)));
    schemes.retain(|(_, terms)| terms.cohort.is_none() && terms.local_steps.len() == 1);
    assert!(schemes.len() > 6);
    let squares = |problem: &Quadratic, terms: &Terms| -> Vec<f64> {
        let mut squares = Vec::new();
        for replicate in 0..1000 {
            let run = sample::run(problem, terms, problem.optimum(), 20, replicate);
            squares.push(kernel::squared_distance(run.estimate(), problem.optimum()));
        }
        squares
    };
    for (name, terms) in schemes {
        let few = squares(&two, &terms);
        assert_a_fourth(name, &few, &squares(&eight, &terms));
        assert_a_fourth(name, &few, &squares(&two, &Terms { batches: vec![4], ..terms }));
    }
}

/// Asserts that the mean of the second sample is a fourth of the mean of the first, within 4.5 standard errors.
fn assert_a_fourth(name: &str, few: &[f64], many: &[f64]) {
    let ratio = sample::mean(few) / sample::mean(many);
    let error_of_few = standard_error(few) / sample::mean(few);
    let error_of_many = standard_error(many) / sample::mean(many);
    let most = 4.5 * (error_of_few.powi(2) + error_of_many.powi(2)).sqrt();
    assert!((ratio / 4.0 - 1.0).abs() < most, "{name}: ratio {ratio}, within {most}");
}

/// The mean square distance of two runs on the same draws has its exact value.
#[test]
fn coupled_runs_have_their_exact_distance() {
    let problem = linear_problem();
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    for terms in [Terms::fedavg(0.1, 3), Terms::scaffold(0.1, 3)] {
        let components = [Component::one(terms.clone())];
        let moments = ExactMoments::new(&problem, &components).unwrap();
        let exact = moments.coupled(&start, &[4]).unwrap();
        let end = |from: &[f64], replicate| {
            sample::run(&problem, &terms, from, 4, replicate).estimate().to_vec()
        };
        let apart = |r| distance(&end(&start, r), &end(problem.optimum(), r)).powi(2);
        let found: Vec<f64> = (0..4000).map(apart).collect();
        assert_mean(&found, exact[0], &format!("{:?}", terms.variates));
    }
}

/// So has their mean square distance with control variates.
#[test]
fn coupled_runs_have_their_exact_distance_with_variates() {
    let problem = linear_problem();
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    let terms = Terms::scaffold(0.1, 3);
    let components = [Component::one(terms.clone())];
    let moments = ExactMoments::new(&problem, &components).unwrap();
    let exact = moments.coupled_with_variates(&start, &[4]).unwrap().unwrap();
    // γH.
    let length = 0.3_f64;
    let weight = length * length / problem.clients() as f64;
    let apart = |replicate| {
        let one = sample::run(&problem, &terms, &start, 4, replicate);
        let other = sample::run(&problem, &terms, problem.optimum(), 4, replicate);
        let [variates, others] = [&one, &other].map(|run| run.clients().unwrap().corrections);
        distance(one.estimate(), other.estimate()).powi(2)
            + weight * distance(variates, others).powi(2)
    };
    let found: Vec<f64> = (0..4000).map(apart).collect();
    assert_mean(&found, exact[0], "with variates");
}
