//! The time of a client step including its round, with the engine on one thread, and its
//! growth with clients, local steps and dimension. Read the time per element.
//!
//! `cargo bench --bench round`, or `make bench`.

#[path = "support/problems.rs"]
mod problems;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use exactfed::federated::{Conditions, Federated, Run, RunsTogether, Terms, Together};
use exactfed::problem::Problem;
use problems::{logistic, td, timing};

/// A round of `terms`, including the overhead of the engine.
fn round<P: Problem>(c: &mut Criterion, group: &str, id: BenchmarkId, problem: &P, terms: Terms) {
    let mut group = problems::group(c, group, terms.steps(0) * problem.clients() as u64);
    let start = vec![0.0; problem.dim()];
    let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 1, copy: 0 };
    let mut run = Federated::new(problem, terms, &from);
    group.bench_function(id, |b| b.iter(|| run.round()));
    group.finish();
}

fn temporal_differences(c: &mut Criterion) {
    for (clients, steps) in
        [(100, 1000), (100, 100), (100, 10), (100, 1), (10, 1000), (10, 100), (10, 10), (10, 1)]
    {
        let problem = td(8, clients);
        let id = |name: &str| BenchmarkId::new(name, format!("N={clients} H={steps}"));
        round(c, "round", id("fedlsa"), &problem, Terms::fedavg(0.1, steps));
        round(c, "round", id("scafflsa"), &problem, Terms::scaffold(0.1, steps));
    }
}

fn logistics(c: &mut Criterion) {
    for d in [2, 10, 50] {
        let problem = logistic(d, 200, 10);
        let id = |name: &str| BenchmarkId::new(name, format!("d={d}"));
        round(c, "round", id("fedavg logistic"), &problem, Terms::fedavg(0.01, 100));
        round(c, "round", id("scaffold logistic"), &problem, Terms::scaffold(0.01, 100));
    }
}

/// Ten replicates on 5000 records, one after the other and client by client.
fn replicates(c: &mut Criterion) {
    for d in [300, 617, 784] {
        let problem = logistic(d, 250, 20);
        let (terms, start) = (Terms::fedavg(0.01, 100), vec![0.0; d]);
        let from = |replicate| Conditions { seed: 1, replicate, start: &start, rounds: 1, copy: 0 };
        let from: Vec<_> = (0..10).map(from).collect();
        let mut apart: Vec<_> =
            from.iter().map(|from| Federated::new(&problem, terms.clone(), from)).collect();
        let mut together = Together::new(&problem, &terms, &from);
        let mut group = problems::group(c, "replicates", 10 * 20 * 100);
        let id = |name: &str| BenchmarkId::new(name, format!("d={d}"));
        group.bench_function(id("apart"), |b| b.iter(|| apart.iter_mut().for_each(Run::round)));
        group.bench_function(id("together"), |b| b.iter(|| together.round()));
        group.finish();
    }
}

fn growth(c: &mut Criterion) {
    for clients in [10, 100, 1000, 10_000] {
        let id = BenchmarkId::from_parameter(clients);
        round(c, "growth N", id, &td(8, clients), Terms::fedavg(0.1, 10));
    }
    let problem = td(8, 100);
    for steps in [1, 10, 100, 1000, 10_000] {
        let id = BenchmarkId::from_parameter(steps);
        round(c, "growth TH", id, &problem, Terms::fedavg(0.1, steps));
    }
    for d in [2, 4, 8, 16, 32, 64, 128, 256] {
        round(c, "growth d", BenchmarkId::from_parameter(d), &td(d, 10), Terms::fedavg(0.01, 100));
    }
}

criterion_group! { name = benches; config = timing(); targets = temporal_differences, logistics, replicates, growth }
criterion_main!(benches);
