//! The invariants of the engine, for any problem.

use super::*;
use crate::problem::arrays::NoFiles;
use crate::problem::{
    Exact, Facts, Settings as _, garnet, logistic,
    td::{Noise, Td},
};
use crate::theory::linear::LocalUpdate;

fn td(heterogeneity: garnet::Heterogeneity, clients: usize) -> Td {
    garnet::Settings {
        states: 10,
        actions: 2,
        branching: 3,
        features: 4,
        discount: 0.9,
        clients,
        heterogeneity,
        policy: garnet::Policy::Uniform,
        noise: Noise::Independent,
    }
    .build(3, &NoFiles)
    .unwrap()
}

fn blobs() -> logistic::Logistic {
    logistic::Settings {
        dimension: 3,
        records: 40,
        clients: 4,
        data: logistic::Data::Heterogeneous { spread: 1.0, separation: 1.0, perturbation: 1.0 },
        split: logistic::SharedRecords::Own,
        l2: 0.2,
        margin: 0.0,
        batch: 1,
    }
    .build(3, &NoFiles)
    .unwrap()
}

fn from(start: &[f64]) -> Conditions<'_> {
    Conditions { seed: 5, replicate: 2, start, rounds: 100, copy: 0 }
}

fn fedavg<'p, P: Problem>(
    problem: &'p P,
    step: f64,
    steps: u64,
    start: &[f64],
) -> Federated<'p, P> {
    Federated::new(problem, Terms::fedavg(step, steps), &from(start))
}

fn scaffold<'p, P: Problem>(
    problem: &'p P,
    step: f64,
    steps: u64,
    start: &[f64],
) -> Federated<'p, P> {
    Federated::new(problem, Terms::scaffold(step, steps), &from(start))
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    kernel::squared_distance(x, y).sqrt()
}

/// H = 1: FedAvg is mini-batch SGD, θ ← θ − γ N⁻¹ Σ F_c(θ; Z_c).
#[test]
fn one_local_step_is_minibatch_sgd() {
    let problem = blobs();
    let mut run = fedavg(&problem, 0.1, 1, &[0.5; 3]);
    let mut streams: Vec<_> = (0..4).map(|c| Stream::new(5, Purpose::Client, 0, 2, c)).collect();
    let mut theta = vec![0.5; 3];
    for _ in 0..50 {
        run.round();
        let mut mean = vec![0.0; 3];
        let mut field = vec![0.0; 3];
        for (client, rng) in streams.iter_mut().enumerate() {
            problem.oracle(client, &mut (), &theta, rng, &mut field);
            kernel::axpy(0.25, &field, &mut mean);
        }
        kernel::axpy(-0.1, &mean, &mut theta);
        assert!(distance(run.estimate(), &theta) < 1e-13);
    }
}

/// Equal clients and no noise: FedAvg is H steps of gradient descent.
#[test]
fn equal_clients_without_noise_are_gradient_descent() {
    let same = garnet::Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 };
    let problem = Exact::new(td(same, 3));
    let mut run = fedavg(&problem, 0.5, 7, &[1.0; 4]);
    let mut theta = vec![1.0; 4];
    let mut field = vec![0.0; 4];
    for _ in 0..20 {
        run.round();
        for _ in 0..7 {
            problem.mean_field(0, &theta, &mut field);
            kernel::axpy(-0.5, &field, &mut theta);
        }
        assert!(distance(run.estimate(), &theta) < 1e-13);
    }
}

/// Without noise Scaffold converges to θ* for every H, FedAvg only for H = 1.
#[test]
fn without_noise_scaffold_reaches_the_optimum() {
    let problem = Exact::new(blobs());
    let zero = [0.0; 3];
    let mut corrected = scaffold(&problem, 0.05, 10, &zero);
    let mut biased = fedavg(&problem, 0.05, 10, &zero);
    let mut unbiased = fedavg(&problem, 0.5, 1, &zero);
    for _ in 0..2000 {
        corrected.round();
        biased.round();
        unbiased.round();
    }
    assert!(distance(corrected.estimate(), problem.optimum()) < 1e-13);
    assert!(distance(unbiased.estimate(), problem.optimum()) < 1e-13);
    assert!(distance(biased.estimate(), problem.optimum()) > 1e-3);
}

/// On a linear field without noise, FedAvg's limit is the exact one, its
/// error linear in γ, and Richardson-Romberg's quadratic.
#[test]
fn noiseless_limits_are_those_of_theory() {
    let problem = Exact::new(td(garnet::Heterogeneity::Independent {}, 5));
    let limit = |step: f64| {
        let mut run = fedavg(&problem, step, 10, problem.optimum());
        for _ in 0..(4000.0 / step) as usize {
            run.round();
        }
        let exact =
            crate::theory::linear::limit(&problem, |_| LocalUpdate::plain(step, 10)).unwrap();
        assert!(distance(run.estimate(), &exact) < 1e-11, "γ = {step}");
        exact
    };
    let error = |theta: &[f64]| distance(theta, problem.optimum());
    let extrapolate = |fine: &[f64], coarse: &[f64]| -> Vec<f64> {
        fine.iter().zip(coarse).map(|(f, c)| 2.0 * f - c).collect()
    };
    let (a, b, c) = (limit(0.01), limit(0.02), limit(0.04));
    let first_order = libm::log2(error(&b) / error(&a));
    assert!((first_order - 1.0).abs() < 0.1, "FedAvg: order {first_order}");
    let second_order = libm::log2(error(&extrapolate(&b, &c)) / error(&extrapolate(&a, &b)));
    assert!((second_order - 2.0).abs() < 0.2, "Richardson-Romberg: order {second_order}");
}

/// Homogeneous clients: the exact bias is zero.
#[test]
fn homogeneous_clients_have_no_bias() {
    let same = garnet::Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 };
    let problem = td(same, 4);
    let limit = crate::theory::linear::limit(&problem, |_| LocalUpdate::plain(0.1, 50)).unwrap();
    assert_eq!(limit, problem.optimum());
}

/// The mean over replicates of every round against the exact transient, by
/// standard errors.
#[test]
fn fedlsa_follows_its_exact_mean() {
    let problem = td(garnet::Heterogeneity::Independent {}, 5);
    let (replicates, rounds, step, steps) = (400, 40, 0.2, 8);
    let map = crate::theory::linear::RoundMap::new(&problem, step, steps).unwrap();
    let start: Vec<f64> = problem.optimum().iter().map(|x| x + 1.0).collect();
    let mut exact = vec![1.0; 4];
    let mut means = vec![vec![0.0; 4]; rounds];
    let mut squares = vec![vec![0.0; 4]; rounds];
    for replicate in 0..replicates {
        let conditions = Conditions { replicate, ..from(&start) };
        let mut run = Federated::new(&problem, Terms::fedavg(step, steps), &conditions);
        for t in 0..rounds {
            run.round();
            for i in 0..4 {
                let error = run.estimate()[i] - problem.optimum()[i];
                means[t][i] += error / replicates as f64;
                squares[t][i] += error * error / replicates as f64;
            }
        }
    }
    for t in 0..rounds {
        exact = map.step(&exact);
        for i in 0..4 {
            let variance = squares[t][i] - means[t][i] * means[t][i];
            let error = (variance / replicates as f64).sqrt();
            let off = (means[t][i] - exact[i]).abs();
            assert!(off < 4.5 * error, "round {t}, entry {i}: {off} with standard error {error}");
        }
    }
}

/// From its exact limit, which is not θ*, FedLSA does not move in the mean.
#[test]
fn fedlsa_stays_at_its_exact_limit() {
    let problem = td(garnet::Heterogeneity::TwoKernels {}, 4);
    let (replicates, step, steps) = (400, 0.3, 100);
    let limit =
        crate::theory::linear::limit(&problem, |_| LocalUpdate::plain(step, steps)).unwrap();
    let mut ends = Vec::new();
    for replicate in 0..replicates {
        let conditions = Conditions { replicate, ..from(&limit) };
        let mut run = Federated::new(&problem, Terms::fedavg(step, steps), &conditions);
        (0..30).for_each(|_| run.round());
        ends.push(run.estimate().to_vec());
    }
    // How many standard errors the mean of entry i is away from a point.
    let away = |from: &[f64], i: usize| {
        let entry: Vec<f64> = ends.iter().map(|theta| theta[i] - from[i]).collect();
        let error = crate::sample::standard_error(&entry);
        crate::sample::mean(&entry).abs() / error
    };
    for i in 0..4 {
        assert!(away(&limit, i) < 4.5, "entry {i}: {} standard errors", away(&limit, i));
    }
    assert!((0..4).any(|i| away(problem.optimum(), i) > 10.0), "the bias is there to be seen");
}

/// One distribution for all clients, linear field: N clients have 1/N of the variance
/// after one round from θ*, where the noise is additive.
#[test]
fn variance_falls_with_the_number_of_clients() {
    let same = garnet::Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 };
    let spread = |clients: usize| {
        let problem = td(same, clients);
        let total: f64 = (0..4000)
            .map(|replicate| {
                let conditions = Conditions { replicate, ..from(problem.optimum()) };
                let mut run = Federated::new(&problem, Terms::fedavg(0.1, 1), &conditions);
                run.round();
                kernel::squared_distance(run.estimate(), problem.optimum())
            })
            .sum();
        total / 4000.0
    };
    let ratio = spread(2) / spread(8);
    assert!((ratio - 4.0).abs() < 0.4, "ratio of variances {ratio}");
    let problem = td(same, 2);
    let trace: f64 = (0..4).map(|i| problem.noise_covariance(0)[(i, i)]).sum();
    let predicted = 0.1 * 0.1 * trace / 2.0;
    assert!((spread(2) / predicted - 1.0).abs() < 0.1);
}

#[test]
fn costs_are_counted() {
    let problem = blobs();
    let mut run = scaffold(&problem, 0.1, 6, &[0.0; 3]);
    run.round();
    run.round();
    let expected = Cost {
        communications: 2,
        local_steps: 12,
        oracle_calls: 48,
        sequential_calls: 12,
        vectors_sent: 32,
        bytes_sent: 32 * 24,
    };
    assert_eq!(run.cost(), expected);
}

/// The correction enters each local step: with it, a client that starts at the
/// optimum stays there in the mean.
#[test]
fn corrections_cancel_the_local_fields_at_the_optimum() {
    let problem = Exact::new(td(garnet::Heterogeneity::Independent {}, 5));
    let mut run = scaffold(&problem, 0.1, 20, problem.optimum());
    for _ in 0..3000 {
        run.round();
    }
    let mut field = vec![0.0; 4];
    for client in 0..5 {
        problem.mean_field(client, problem.optimum(), &mut field);
        let xi = &run.clients().unwrap().corrections[client * 4..][..4];
        let sum: Vec<f64> = field.iter().zip(xi).map(|(f, xi)| f + xi).collect();
        assert!(distance(&sum, &[0.0; 4]) < 1e-10, "client {client}: {sum:?}");
    }
}

#[test]
fn a_large_round_is_the_same_on_any_number_of_threads() {
    let problem = td(garnet::Heterogeneity::Independent {}, 20);
    let start = vec![0.1; 4];
    let end = || {
        let from = Conditions { seed: 5, replicate: 0, start: &start, rounds: 3, copy: 0 };
        let mut run = Federated::new(&problem, Terms::scaffold(0.05, 1000), &from);
        const { assert!(20 * 1000 * (4 + 8) > WORTH, "the round is shared") };
        (0..3).for_each(|_| run.round());
        run.estimate().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let alone = end();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(end), alone, "{threads} threads");
    }
}
