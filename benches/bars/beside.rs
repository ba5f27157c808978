//! The peers' workloads, run by the engine right before and after the peers: the best of
//! several runs, as for the peers.

use crate::problems::{garnet, logistic, perturbed, softmax, sparse_logistic, td};
use crate::values::Values;
use exactfed::federated::{Conditions, Federated, Run, Terms};
use exactfed::problem::Problem;
use exactfed::problem::td::Noise;
use exactfed::rng::Stream;
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// The seconds of a measurement.
const SECONDS: f64 = 0.2;

/// Times every workload on so many threads, one replicate per thread, and stores the best
/// time, also over earlier calls.
pub fn measure(values: &mut Values, threads: usize) {
    for (clients, steps) in [(100, 1000), (10, 100), (10, 10), (10, 1)] {
        let problem = td(8, clients);
        let name = |kind: &str| format!("{kind} d=8 N={clients} H={steps}");
        best(values, &name("fedlsa"), &problem, &Terms::fedavg(0.1, steps), threads);
        best(values, &name("scafflsa"), &problem, &Terms::scaffold(0.1, steps), threads);
    }
    for d in [2, 10, 50] {
        let problem = logistic(d, 200, 10);
        let name = |kind: &str| format!("{kind} logistic d={d}");
        best(values, &name("fedavg"), &problem, &Terms::fedavg(0.01, 100), threads);
        best(values, &name("scaffold"), &problem, &Terms::scaffold(0.01, 100), threads);
    }
    for (d, nonzeros, records, steps) in [
        (123, 14, 250, 100),
        (4000, 60, 250, 100),
        (47_236, 75, 1000, 100),
        (47_236, 75, 1000, 1000),
    ] {
        let problem = sparse_logistic(d, nonzeros, records);
        let name = |kind: &str| format!("{kind} sparse d={d} H={steps}");
        best(values, &name("fedavg"), &problem, &Terms::fedavg(0.1, steps), threads);
        best(values, &name("scaffold"), &problem, &Terms::scaffold(0.1, steps), threads);
    }
    wide(values, threads);
}

/// The same with dense rows of any length: twenty clients, H = 100.
fn wide(values: &mut Values, threads: usize) {
    let terms = Terms::fedavg(0.1, 100);
    for (states, d) in
        [(30, 2), (30, 8), (100, 16), (300, 32), (1000, 64), (1000, 128), (2000, 256)]
    {
        let problem = garnet([states, d, 20], perturbed(), Noise::Independent, 1);
        best(values, &format!("fedlsa wide S={states} d={d}"), &problem, &terms, threads);
    }
    for d in [2, 10, 50, 123, 300, 784] {
        let problem = logistic(d, 250, 20);
        best(values, &format!("fedavg wide logistic d={d}"), &problem, &terms, threads);
    }
    for (d, batch) in [(8, 1), (8, 32), (64, 1), (64, 32), (784, 1), (784, 32)] {
        let problem = softmax(d, 20, batch);
        best(values, &format!("fedavg softmax d={d} batch={batch}"), &problem, &terms, threads);
    }
}

/// Reads what the local steps of wide problems read: so many rows of d numbers per step, drawn
/// from as many for each of twenty clients. Stores the best time of a step, on one thread.
pub fn floors(values: &mut Values) {
    for (states, d) in [(300, 32), (1000, 64), (1000, 128), (2000, 256)] {
        floor(values, &format!("fedlsa wide S={states} d={d}"), [1, states, d], 2);
    }
    for d in [50, 123, 300, 784] {
        floor(values, &format!("fedavg wide logistic d={d}"), [CLIENTS, 250, d], 1);
    }
}

const CLIENTS: usize = 20;

/// One of `sets` tables of rows belongs to each client in turn; `reads` rows are read per step.
fn floor(values: &mut Values, workload: &str, [sets, rows, d]: [usize; 3], reads: usize) {
    const STEPS: usize = 2000;
    const LANES: usize = 16;
    let table = vec![1.0; sets * rows * d];
    let mut rng = Stream::shared_instance(1);
    let mut time = f64::INFINITY;
    for _ in 0..20 {
        let mut sums = [0.0; LANES];
        let begin = Instant::now();
        for step in 0..STEPS * CLIENTS {
            // A hundred steps of a client after another, as in a round.
            let set = step / 100 % sets;
            for _ in 0..reads {
                let row = &table[(set * rows + rng.index(rows)) * d..][..d];
                let (blocks, rest) = row.as_chunks::<LANES>();
                blocks.iter().for_each(|block| (0..LANES).for_each(|l| sums[l] += block[l]));
                rest.iter().zip(&mut sums).for_each(|(x, sum)| *sum += x);
            }
        }
        time = time.min(begin.elapsed().as_secs_f64());
        black_box(sums);
    }
    values.put(format!("floor/{workload}"), time * 1e9 / (STEPS * CLIENTS) as f64, "ns/element");
}

fn best<P: Problem>(
    values: &mut Values,
    workload: &str,
    problem: &P,
    terms: &Terms,
    threads: usize,
) {
    let id = format!("ours/{workload}/threads={threads}");
    let before = values.get(&id).map_or(f64::INFINITY, |value| value.value);
    let now = (0..3).map(|_| nanoseconds(problem, terms, threads)).fold(before, f64::min);
    values.put(id, now, "ns/element");
}

/// Elapsed nanoseconds per client step of all threads.
fn nanoseconds<P: Problem>(problem: &P, terms: &Terms, threads: usize) -> f64 {
    let each = terms.steps(0) * problem.clients() as u64;
    let start = vec![0.0; problem.dim()];
    let rounds = rounds(problem, terms, &start);
    let runs = (0..threads as u64).map(|replicate| {
        let from = Conditions { seed: 1, replicate, start: &start, rounds, copy: 0 };
        Federated::new(problem, terms.clone(), &from)
    });
    let runs: Vec<_> = runs.collect();
    let begin = Instant::now();
    thread::scope(|scope| {
        for mut run in runs {
            scope.spawn(move || (0..rounds).for_each(|_| run.round()));
        }
    });
    begin.elapsed().as_secs_f64() * 1e9 / (rounds * each * threads as u64) as f64
}

/// How many rounds take [`SECONDS`], judged by some of them.
fn rounds<P: Problem>(problem: &P, terms: &Terms, start: &[f64]) -> u64 {
    let from = Conditions { seed: 1, replicate: 0, start, rounds: 3, copy: 0 };
    let mut run = Federated::new(problem, terms.clone(), &from);
    run.round();
    let begin = Instant::now();
    (0..2).for_each(|_| run.round());
    (2.0 * SECONDS / begin.elapsed().as_secs_f64()) as u64 + 2
}
