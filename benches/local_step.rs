//! Time of a local step of one client, by problem, dimension, number of
//! clients and instruction set: read the time per element.
//!
//! `cargo bench --bench local_step`, or `make bench`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use driftbench::federated::{Conditions, Federated, Run, Terms};
use driftbench::kernel::{Local, Path};
use driftbench::problem::arrays::NoFiles;
use driftbench::problem::td::{Noise, Td};
use driftbench::problem::{Problem, Settings as _, garnet, logistic};
use driftbench::rng::{Purpose, Stream};
use std::hint::black_box;

fn td(features: usize, clients: usize) -> Td {
    garnet::Settings {
        states: 30.max(4 * features),
        actions: 2,
        branching: 2,
        features,
        discount: 0.95,
        clients,
        heterogeneity: garnet::Heterogeneity::Perturbed { kernel: 0.02, reward: 0.02 },
        policy: garnet::Policy::Uniform,
        noise: Noise::Independent,
    }
    .build(1, &NoFiles)
    .expect("the instance has a unique solution")
}

/// Every path of the fused kernel against draws alone: the limit of any kernel.
fn paths(c: &mut Criterion) {
    let (d, clients, steps) = (8, 100, 1000);
    let problem = td(d, clients);
    let mut group = c.benchmark_group("td d=8 N=100 H=1000");
    group.throughput(Throughput::Elements(clients as u64 * steps));
    let mut streams: Vec<Stream> =
        (0..clients as u64).map(|c| Stream::new(1, Purpose::Client, 0, 0, c)).collect();
    let mut theta = vec![0.0; d * clients];
    let (correction, mut units) = (vec![0.0; d], vec![(); clients]);
    for path in Path::available() {
        group.bench_function(format!("{path:?}"), |b| {
            b.iter(|| {
                let rows = theta.chunks_exact_mut(d).zip(&mut streams).zip(&mut units);
                let mut cohort: Vec<Local<'_, ()>> = rows
                    .enumerate()
                    .map(|(client, ((theta, rng), state))| Local {
                        client,
                        theta,
                        correction: &correction,
                        rng,
                        state,
                        step: 0.1,
                        steps,
                    })
                    .collect();
                problem.tables().advance_on(path, &mut cohort);
            });
        });
    }
    group.bench_function("draws alone", |b| {
        let mut draws = [0; 32];
        b.iter(|| {
            for stream in &mut streams {
                for _ in 0..steps / 32 {
                    stream.fill(&mut draws);
                    black_box(&draws);
                }
            }
        });
    });
    group.finish();
}

/// A round of FedAvg, with all that the engine adds to the kernel.
fn rounds<P: Problem>(c: &mut Criterion, name: &str, problem: &P, steps: u64) {
    let mut group = c.benchmark_group("round");
    group.throughput(Throughput::Elements(problem.clients() as u64 * steps));
    let start = vec![0.0; problem.dim()];
    let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 1, copy: 0 };
    let mut run = Federated::new(problem, Terms::fedavg(0.01, steps), &from);
    let id =
        BenchmarkId::new(name, format!("d={} N={} H={steps}", problem.dim(), problem.clients()));
    group.bench_function(id, |b| b.iter(|| run.round()));
    group.finish();
}

fn engines(c: &mut Criterion) {
    for (d, clients, steps) in
        [(8, 100, 1000), (8, 100, 10), (8, 100, 1), (8, 10, 100), (8, 10, 1), (32, 100, 1000)]
    {
        rounds(c, "td", &td(d, clients), steps);
    }
    for d in [2, 10, 50] {
        let settings = logistic::Settings {
            dimension: d,
            records: 200,
            clients: 10,
            data: logistic::Data::Noisy { spread: 3.0, separation: 1.0 },
            split: logistic::Split::Own,
            l2: 0.1,
            margin: 0.0,
            batch: 1,
        };
        rounds(c, "logistic", &settings.build(1, &NoFiles).expect("it has an optimum"), 100);
    }
}

criterion_group!(benches, paths, engines);
criterion_main!(benches);
