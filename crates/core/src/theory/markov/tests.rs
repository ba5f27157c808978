//! Moments along trajectories against long runs, and against the first order of the bias. Simulation
//! against them is in `tests/suite/moments.rs`.

use super::*;
use crate::kernel::{difference, dot};
use crate::linalg::solve;
use crate::problem::td::{Noise, Td};
use crate::round_program::{LocalUpdate, PerClient};
use crate::sample;

/// Clients on the chain of three states, each with a trajectory of its own.
fn chains(clients: usize, calls_per_state: f64) -> Td {
    sample::chain((0..clients).collect(), Noise::Markov { burn_in: 1, calls_per_state })
}

/// Runs on the same draws, given as weights and step sizes.
fn local_runs(runs: &[(f64, f64)], steps: u64, is_corrected: bool) -> LocalRuns {
    let run = |&(weight, step): &(f64, f64)| LocalRun {
        weight,
        updates: PerClient::All(LocalUpdate::of_steps(step, steps)),
        server_step: 1.0,
    };
    LocalRuns { runs: runs.iter().map(run).collect(), is_corrected, is_common: true }
}

/// A long run comes to rest at the stationary moments, whose mean is the limit.
#[test]
fn stationary_moments_are_the_limit_of_long_runs() {
    let facts = chains(2, 2.0);
    for (runs, is_corrected) in
        [(&[(1.0, 0.2)][..], false), (&[(1.0, 0.2)], true), (&[(2.0, 0.1), (-1.0, 0.2)], false)]
    {
        let runs = local_runs(runs, 3, is_corrected);
        let exact = TrajectoryMoments::new(&facts, &runs).unwrap();
        let long = exact.at_rounds(facts.optimum(), &[3000], None).remove(0);
        let (found, _) = exact.stationary().unwrap();
        let what = format!("{is_corrected}: {} {}", found.sq_error, long.sq_error);
        assert!((found.sq_error / long.sq_error - 1.0).abs() < 1e-8, "{what}");
        let bias = difference(&limit(&facts, &runs).unwrap(), facts.optimum());
        assert!(sample::distance(&bias, &found.mean) < 1e-10, "{bias:?} {:?}", found.mean);
    }
}

/// As γ → 0 the bias is γ A⁻¹ Σ_k w_k R_k with R_k = E (A(X_k) − A) F(θ*; X_0) and
/// w_k = 1/N + (1 − 1/N) max(0, 1 − k/H): an iterate meets its own client's draws of the same round
/// undivided, and those of earlier rounds divided by N.
#[test]
fn the_bias_has_its_first_order() {
    for (clients, steps, calls) in [(1, 1, 1.0), (1, 4, 3.0), (2, 1, 3.0), (2, 4, 3.0)] {
        let facts = chains(clients, calls);
        let path = facts.trajectory(0).unwrap();
        let mean = facts.jacobian(0);
        // v(s) = E F(θ*; X_0) 1{s after the call} is carried along the chain.
        let states = path.begin.len();
        let mut carried = vec![vec![0.0; 2]; states];
        for way in &path.moves {
            axpy(path.stationary[way.from] * way.probability, &way.offset, &mut carried[way.to]);
        }
        let mut sum = vec![0.0; 2];
        for k in 1..400 {
            let mut correlation = vec![0.0; 2];
            let mut next = vec![vec![0.0; 2]; states];
            for way in &path.moves {
                let apart = way.matrix.plus(-1.0, &mean);
                axpy(way.probability, &apart.apply(&carried[way.from]), &mut correlation);
                let moved = carried[way.from].clone();
                axpy(way.probability, &moved, &mut next[way.to]);
            }
            let share = 1.0 / clients as f64;
            let within = (1.0 - k as f64 / steps as f64).max(0.0);
            axpy(share + (1.0 - share) * within, &correlation, &mut sum);
            carried = next;
        }
        let first = solve(&mean, &sum).unwrap();
        let step = 1e-5;
        let is_corrected = false;
        let runs = local_runs(&[(1.0, step)], steps, is_corrected);
        let bias = difference(&limit(&facts, &runs).unwrap(), facts.optimum());
        let scaled: Vec<f64> = bias.iter().map(|x| x / step).collect();
        let off = sample::distance(&scaled, &first) / libm::sqrt(dot(&first, &first));
        assert!(off < 1e-3, "{clients} {steps} {calls}: {scaled:?} {first:?}");
    }
}

/// Richardson-Romberg over γ removes the first order of the bias, and SCAFFLSA has a bias, too.
#[test]
fn extrapolation_removes_the_first_order() {
    let facts = chains(2, 3.0);
    let bias = |runs: &[(f64, f64)], is_corrected| {
        let limit = limit(&facts, &local_runs(runs, 4, is_corrected)).unwrap();
        sample::distance(&limit, facts.optimum())
    };
    for is_corrected in [false, true] {
        let order = |scale: &dyn Fn(f64) -> f64| libm::log2(scale(0.01) / scale(0.005));
        let plain = order(&|step| bias(&[(1.0, step)], is_corrected));
        let extrapolated = order(&|step| bias(&[(2.0, step), (-1.0, 2.0 * step)], is_corrected));
        assert!((plain - 1.0).abs() < 0.2, "{is_corrected} {plain}");
        assert!((extrapolated - 2.0).abs() < 0.3, "{is_corrected} {extrapolated}");
    }
}

/// Independent draws, mini-batches and cohorts are refused, and what is too large is too costly.
#[test]
fn what_is_not_covered_is_refused() {
    let is_corrected = false;
    let plain = local_runs(&[(1.0, 0.1)], 2, is_corrected);
    let independent = sample::chain(vec![0, 1], Noise::Independent);
    assert!(!are_closed(&independent, &plain));
    let facts = chains(2, 1.0);
    assert!(are_closed(&facts, &plain));
    let mut batch = plain.clone();
    batch.runs[0].updates =
        PerClient::All(LocalUpdate { batch: 2, ..LocalUpdate::of_steps(0.1, 2) });
    assert!(!are_closed(&facts, &batch));
    let many = chains(12, 1.0);
    assert!(!rounds_effort(&many, &plain, 10).fits());
    assert!(!stationary_effort(&many, &plain).fits());
    assert!(!limit_effort(&many, &plain).fits());
}

/// Beyond the edge of stability there is a formal fixed point, and nothing comes to rest there.
#[test]
fn what_diverges_along_trajectories_has_no_stationary_moments() {
    let facts = chains(2, 2.0);
    let mut seen = [0, 0];
    for is_corrected in [false, true] {
        for step in [0.2, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0] {
            let runs = local_runs(&[(1.0, step)], 3, is_corrected);
            let exact = TrajectoryMoments::new(&facts, &runs).unwrap();
            let start: Vec<f64> = facts.optimum().iter().map(|x| x + 1.0).collect();
            let late = exact.at_rounds(&start, &[60, 120], None);
            // What overflows is no number.
            let grows = late[1].sq_error.is_nan() || late[1].sq_error >= 2.0 * late[0].sq_error;
            let rest = exact.stationary();
            assert_eq!(rest.is_none(), grows, "{is_corrected}, {step}: {late:?}");
            seen[usize::from(grows)] += 1;
            let [early, later] = [0, 1].map(|i: usize| dot(&late[i].mean, &late[i].mean));
            let leaves = later.is_nan() || later >= 2.0 * early;
            assert_eq!(means_converge(&facts, &runs), !leaves, "{is_corrected}, {step}: {late:?}");
        }
    }
    assert!(seen[0] > 1 && seen[1] > 1, "{seen:?}");
}
