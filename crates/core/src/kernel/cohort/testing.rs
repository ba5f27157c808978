//! Runs of a cohort whose bits tests compare.

use super::*;
use crate::kernel::{InstructionSet, descend};
use crate::rng::Purpose;

/// Asserts that [`thetas`] with local steps by `run` on every instruction set has the bits that it has with steps by
/// `define`, the definition of the steps. `what` names the steps in messages.
#[track_caller]
pub(crate) fn assert_paths(
    what: &str,
    [batch, d, clients]: [usize; 3],
    steps: impl Fn(usize) -> u64,
    define: impl Fn(Cohort<'_, ()>),
    run: impl Fn(InstructionSet, Cohort<'_, ()>),
) {
    let expected = thetas([batch, d, clients], &steps, define);
    for path in InstructionSet::available() {
        let got = thetas([batch, d, clients], &steps, |cohort| run(path, cohort));
        let first = steps(0);
        assert!(got == expected, "{what}: d {d}, {clients} clients, {first} steps, {path:?}");
    }
}

/// The bits of θ of every client after `steps(client)` local steps on means of `batch` oracle calls, which `run` makes,
/// in three rounds: first all clients step from their own rows; then some of them, in two cohorts, from one start and
/// with one ξ; then all from that start without ξ. At the end comes the next draw of each client's stream.
pub(in crate::kernel) fn thetas(
    [batch, d, clients]: [usize; 3],
    steps: impl Fn(usize) -> u64,
    run: impl Fn(Cohort<'_, ()>),
) -> Vec<u64> {
    let batch = batch as u64;
    let mut streams: Vec<_> =
        (0..clients).map(|c| Stream::new(1, Purpose::Client, 0, 0, c as u64)).collect();
    // The streams are at different positions.
    for stream in streams.iter_mut().step_by(3) {
        for _ in 0..5 {
            stream.bits();
        }
    }
    let mut theta = vec![0.5; d * clients];
    let correction: Vec<f64> = (0..d * clients).map(|i| 0.01 * (i % 5) as f64 - 0.02).collect();
    let mut units = vec![(); clients];
    let plans: Vec<_> =
        (0..clients).map(|c| LocalSteps { step: 0.1, steps: steps(c), batch }).collect();
    let members = Members::all(clients);
    let data = CohortData {
        start: None,
        theta: &mut theta,
        corrections: &correction,
        streams: &mut streams,
        states: &mut units,
        plans: &plans,
        steps: None,
    };
    run(Cohort::new(&members, data));
    let mut out: Vec<u64> = theta.iter().map(|x| x.to_bits()).collect();
    let some = Members::new((0..clients).filter(|c| c % 3 != 1).collect());
    let start = vec![-0.25; d];
    let data = CohortData {
        start: Some(&start),
        theta: &mut theta,
        corrections: &correction[..d],
        streams: &mut streams,
        states: &mut units,
        plans: &plans,
        steps: None,
    };
    let cohort = Cohort::new(&some, data);
    let half = cohort.len() / 2;
    let (low, high) = cohort.split(half);
    run(low);
    run(high);
    out.extend(theta.iter().map(|x| x.to_bits()));
    let zeros = vec![0.0; d];
    let data = CohortData {
        start: Some(&start),
        theta: &mut theta,
        corrections: &zeros,
        streams: &mut streams,
        states: &mut units,
        plans: &plans,
        steps: None,
    };
    run(Cohort::new(&members, data));
    out.extend(theta.iter().map(|x| x.to_bits()));
    out.extend(streams.iter_mut().map(|s| s.bits()));
    out
}

/// A function that makes the plain local steps of a cohort as a loop over an oracle: `oracle(client, theta, rng,
/// field)` writes the d numbers of the client's field at θ.
pub(in crate::kernel) fn plain_steps(
    d: usize,
    oracle: impl Fn(usize, &[f64], &mut Stream, &mut [f64]),
) -> impl Fn(Cohort<'_, ()>) {
    move |cohort| {
        cohort.each(|local| {
            let mut field = vec![0.0; d];
            for _ in 0..local.steps {
                oracle(local.client, local.theta, local.draws.rng, &mut field);
                descend(local.theta, &field, local.correction, local.step);
            }
        });
    }
}

/// The bits of θ of every client of several runs after `steps(client)` local steps, and the next draws of their
/// streams. `run` gets a cohort of each run and makes the steps of all. Runs differ in their streams, starts, step
/// sizes and ξ.
pub(in crate::kernel) fn thetas_of_runs(
    runs: usize,
    d: usize,
    clients: usize,
    steps: impl Fn(usize) -> u64,
    run: impl Fn(Vec<Cohort<'_, ()>>),
) -> Vec<u64> {
    let mut streams: Vec<Vec<_>> = Vec::new();
    for run in 0..runs as u64 {
        let of_run = (0..clients as u64).map(|c| Stream::new(1, Purpose::Client, 0, run, c));
        streams.push(of_run.collect());
    }
    let starts: Vec<Vec<f64>> = (0..runs).map(|r| vec![0.25 * r as f64; d]).collect();
    let correction: Vec<f64> = (0..d * clients).map(|i| 0.01 * (i % 5) as f64 - 0.02).collect();
    let mut ends = vec![vec![0.0; d * clients]; runs];
    let mut units = vec![vec![(); clients]; runs];
    let mut plans: Vec<Vec<_>> = Vec::new();
    for run in 0..runs {
        let step = 0.1 / (1 + run) as f64;
        let of_run = (0..clients).map(|c| LocalSteps { step, steps: steps(c), batch: 1 });
        plans.push(of_run.collect());
    }
    let members = Members::new((0..clients).filter(|c| clients < 3 || c % 3 != 1).collect());
    let own = streams.iter_mut().zip(&mut ends).zip(&mut units).enumerate();
    let cohort = own.map(|(r, ((streams, ends), units))| {
        let xi = if r == 0 { &correction[..d] } else { &correction[..] };
        let data = CohortData {
            start: Some(&starts[r]),
            theta: ends,
            corrections: xi,
            streams,
            states: units,
            plans: &plans[r],
            steps: None,
        };
        Cohort::new(&members, data)
    });
    run(cohort.collect());
    let mut out: Vec<u64> = ends.iter().flatten().map(|x| x.to_bits()).collect();
    out.extend(streams.iter_mut().flatten().map(|stream| stream.bits()));
    out
}
