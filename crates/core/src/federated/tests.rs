//! The invariants of the engine, for any problem.

use super::*;
use crate::kernel;
use crate::problem::garnet::Heterogeneity;
use crate::problem::td::Td;
use crate::problem::{Draws, Exact, Facts};
use crate::round_program::LocalUpdate;
use crate::sample::{self, assert_mean, distance, standard_error};
use crate::theory::linear::{RoundMap, limit};

/// Clients with one distribution.
const SAME: Heterogeneity = Heterogeneity::Perturbed { kernel: 0.0, reward: 0.0 };

/// TD(0) in four dimensions on random environments.
fn td(heterogeneity: Heterogeneity, clients: usize) -> Td {
    sample::build(&sample::garnet(heterogeneity, clients), 3)
}

/// H = 1: FedAvg is mini-batch SGD, θ ← θ − γ N⁻¹ Σ F_c(θ; Z_c).
#[test]
fn one_local_step_is_minibatch_sgd() {
    let problem = sample::build(&sample::blobs(), 3);
    let mut run = sample::launch(&problem, &Terms::fedavg(0.1, 1), &[0.5; 3], 2);
    // The streams of the run: `launch` has the seed 5, and this is replicate 2.
    let mut streams: Vec<_> = (0..4).map(|c| Stream::new(5, Purpose::Client, 0, 2, c)).collect();
    let mut theta = vec![0.5; 3];
    for _ in 0..50 {
        run.round();
        let mut mean = vec![0.0; 3];
        let mut field = vec![0.0; 3];
        for (client, rng) in streams.iter_mut().enumerate() {
            let draws = &mut Draws { rng, state: &mut () };
            problem.oracle(client, draws, &theta, &mut field);
            kernel::axpy(0.25, &field, &mut mean);
        }
        kernel::axpy(-0.1, &mean, &mut theta);
        assert!(distance(run.estimate(), &theta) < 1e-13);
    }
}

/// Equal clients and no noise: FedAvg is H steps of gradient descent.
#[test]
fn equal_clients_without_noise_are_gradient_descent() {
    let problem = Exact::new(td(SAME, 3));
    let mut run = sample::launch(&problem, &Terms::fedavg(0.5, 7), &[1.0; 4], 0);
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

/// 2 θ^(γ) − θ^(2γ) from the limits θ^(γ) and θ^(2γ).
fn extrapolated(fine: &[f64], coarse: &[f64]) -> Vec<f64> {
    fine.iter().zip(coarse).map(|(f, c)| 2.0 * f - c).collect()
}

/// On a linear field the bias of FedAvg is linear in γ, that of Richardson-Romberg quadratic;
/// homogeneous clients have none.
#[test]
fn limits_have_their_order_in_the_step_size() {
    let problem = td(Heterogeneity::Independent {}, 5);
    let at = |step| limit(&problem, |_| LocalUpdate::of_steps(step, 10)).unwrap();
    let error = |theta: &[f64]| distance(theta, problem.optimum());
    let a = at(0.01);
    let b = at(0.02);
    let c = at(0.04);
    let first_order = libm::log2(error(&b) / error(&a));
    assert!((first_order - 1.0).abs() < 0.1, "FedAvg: order {first_order}");
    let second_order = libm::log2(error(&extrapolated(&b, &c)) / error(&extrapolated(&a, &b)));
    assert!((second_order - 2.0).abs() < 0.2, "Richardson-Romberg: order {second_order}");
    let same = td(SAME, 4);
    let none = limit(&same, |_| LocalUpdate::of_steps(0.1, 50)).unwrap();
    assert_eq!(none, same.optimum());
}

/// The mean over replicates of every round against the exact transient, by standard errors:
/// from far away, and from its limit, which is not θ* and where it stays in the mean.
#[test]
fn fedlsa_follows_its_exact_mean() {
    let far = td(Heterogeneity::Independent {}, 5);
    let near = td(Heterogeneity::TwoKernels {}, 4);
    let away: Vec<f64> = far.optimum().iter().map(|x| x + 1.0).collect();
    let there = limit(&near, |_| LocalUpdate::of_steps(0.3, 100)).unwrap();
    for (problem, start, step, steps) in [(far, away, 0.2, 8), (near, there, 0.3, 100)] {
        let map = RoundMap::new(&problem, step, steps).unwrap();
        let terms = Terms::fedavg(step, steps);
        let mut runs: Vec<_> =
            (0..400).map(|replicate| sample::launch(&problem, &terms, &start, replicate)).collect();
        let from_optimum = |theta: &[f64], i: usize| theta[i] - problem.optimum()[i];
        let mut exact: Vec<f64> = (0..4).map(|i| from_optimum(&start, i)).collect();
        let mut seen = false;
        for round in 0..30 {
            runs.iter_mut().for_each(Run::round);
            exact = map.gamma.apply(&exact);
            kernel::axpy(1.0, &map.rho, &mut exact);
            for (i, exact) in exact.iter().enumerate() {
                let entry = |run: &Federated<'_, Td>| from_optimum(run.estimate(), i);
                let errors: Vec<f64> = runs.iter().map(entry).collect();
                assert_mean(&errors, *exact, &format!("round {round}, entry {i}"));
                seen |= exact.abs() > 10.0 * standard_error(&errors);
            }
        }
        assert!(seen, "the bias is there to be seen");
    }
}

/// The correction enters each local step: with it, a client that starts at the
/// optimum stays there in the mean.
#[test]
fn corrections_cancel_the_local_fields_at_the_optimum() {
    let problem = Exact::new(td(Heterogeneity::Independent {}, 5));
    let run = sample::run(&problem, &Terms::scaffold(0.1, 20), problem.optimum(), 3000, 0);
    for client in 0..5 {
        let field = problem.field_at_optimum(client);
        let xi = &run.clients().unwrap().corrections[client * 4..][..4];
        let sum: Vec<f64> = field.iter().zip(xi).map(|(f, xi)| f + xi).collect();
        assert!(distance(&sum, &[0.0; 4]) < 1e-10, "client {client}: {sum:?}");
    }
}

#[test]
fn a_large_round_is_the_same_on_any_number_of_threads() {
    let problem = td(Heterogeneity::Independent {}, 20);
    let end = || {
        const { assert!(20 * 1000 * (4 + 8) > pool::WORTH, "the round is shared") };
        let run = sample::run(&problem, &Terms::scaffold(0.05, 1000), &[0.1; 4], 3, 0);
        run.estimate().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let alone = end();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(end), alone, "{threads} threads");
    }
}
