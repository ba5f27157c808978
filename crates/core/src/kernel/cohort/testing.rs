//! Runs of a cohort whose bits tests compare.

use super::*;
use crate::rng::Purpose;

/// θ of every client after `steps(client)` steps by `run`, and the next draw of its
/// stream: first all clients from their own rows; then some of them, in halves, from
/// one start and with one ξ.
pub(in crate::kernel) fn thetas(
    d: usize,
    clients: usize,
    steps: impl Fn(usize) -> u64,
    run: impl Fn(Cohort<'_, ()>),
) -> Vec<u64> {
    thetas_of_batches(1, d, clients, steps, run)
}

/// The same with steps on means of `batch` oracle calls.
pub(in crate::kernel) fn thetas_of_batches(
    batch: u64,
    d: usize,
    clients: usize,
    steps: impl Fn(usize) -> u64,
    run: impl Fn(Cohort<'_, ()>),
) -> Vec<u64> {
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
    let own = (&mut streams[..], &mut units[..]);
    run(Cohort::new(&members, (None, &mut theta), &correction, own, &plans, None));
    let mut out: Vec<u64> = theta.iter().map(|x| x.to_bits()).collect();
    let some = Members::new((0..clients).filter(|c| c % 3 != 1).collect());
    let (start, own) = (vec![-0.25; d], (&mut streams[..], &mut units[..]));
    let rows = (Some(&start[..]), &mut theta[..]);
    let (low, high) = Cohort::new(&some, rows, &correction[..d], own, &plans, None).halves();
    run(low);
    run(high);
    out.extend(theta.iter().map(|x| x.to_bits()));
    out.extend(streams.iter_mut().map(|s| s.bits()));
    out
}
