//! The peers' workloads, run by the engine right before and after the peers: the best of
//! several runs, as for the peers.

use crate::problems::{logistic, sparse_logistic, td};
use crate::values::Values;
use driftbench::federated::{Conditions, Federated, Run, Terms};
use driftbench::problem::Problem;
use std::thread;
use std::time::Instant;

/// The client steps of a measurement, which take some tenths of a second.
const STEPS: u64 = 20_000_000;
/// The same where d is beyond a thousand.
const FEW_STEPS: u64 = 400_000;

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
    for (d, nonzeros, records, steps) in
        [(123, 14, 250, 100), (47_236, 75, 1000, 100), (47_236, 75, 1000, 1000)]
    {
        let problem = sparse_logistic(d, nonzeros, records);
        let name = |kind: &str| format!("{kind} sparse d={d} H={steps}");
        best(values, &name("fedavg"), &problem, &Terms::fedavg(0.1, steps), threads);
        best(values, &name("scaffold"), &problem, &Terms::scaffold(0.1, steps), threads);
    }
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
    let steps = if problem.dim() > 1000 { FEW_STEPS } else { STEPS };
    let (start, rounds) = (vec![0.0; problem.dim()], steps / each);
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
