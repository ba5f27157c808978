//! The local steps of a problem without a fused kernel: the loop over its oracle, for small
//! d with θ and the field in arrays of constant length, so that an inlined oracle is
//! unrolled.

use super::Problem;
use crate::kernel::{Cohort, Local, Proximal, axpy, descend};

/// The definition of [`Problem::advance`].
pub fn advance<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    if let Some(proximal) = cohort.extended {
        return extended(problem, cohort, proximal);
    }
    match problem.dim() {
        1 => fixed::<P, 1>(problem, cohort),
        2 => fixed::<P, 2>(problem, cohort),
        3 => fixed::<P, 3>(problem, cohort),
        4 => fixed::<P, 4>(problem, cohort),
        5 => fixed::<P, 5>(problem, cohort),
        8 => fixed::<P, 8>(problem, cohort),
        10 => fixed::<P, 10>(problem, cohort),
        16 => fixed::<P, 16>(problem, cohort),
        20 => fixed::<P, 20>(problem, cohort),
        32 => fixed::<P, 32>(problem, cohort),
        _ => slices(problem, cohort),
    }
}

fn fixed<P: Problem, const D: usize>(problem: &P, cohort: Cohort<'_, P::State>) {
    let mut locals = cohort.locals();
    while let Some((local, start)) = locals.next_apart() {
        let Local { client, mut draws, step, .. } = local;
        let (mut theta, mut correction, mut field) = ([0.0; D], [0.0; D], [0.0; D]);
        theta.copy_from_slice(start.unwrap_or(local.theta));
        correction.copy_from_slice(local.correction);
        for _ in 0..local.steps {
            problem.oracle(client, &mut draws, &theta, &mut field);
            descend(&mut theta, &field, &correction, step);
        }
        local.theta.copy_from_slice(&theta);
    }
}

fn slices<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    let mut field = vec![0.0; problem.dim()];
    cohort.each(|mut local| {
        for _ in 0..local.steps {
            problem.oracle(local.client, &mut local.draws, local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    });
}

fn extended<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>, proximal: Proximal<'_>) {
    let d = problem.dim();
    let (mut field, mut one) = (vec![0.0; d], vec![0.0; d]);
    cohort.each(|mut local| {
        for _ in 0..local.steps {
            mean_of_calls(local.batch, &mut field, &mut one, |out| {
                problem.oracle(local.client, &mut local.draws, local.theta, out);
            });
            proximal.add_to(local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    });
}

/// The definition of [`Problem::advance_together`].
pub fn advance_together<P: Problem>(problem: &P, mut runs: Vec<Cohort<'_, P::State>>) {
    while runs.iter().all(|run| !run.is_empty()) {
        let (first, rest): (Vec<_>, _) = runs.into_iter().map(|run| run.split(1)).unzip();
        first.into_iter().for_each(|client| problem.advance(client));
        runs = rest;
    }
}

/// Writes the mean of `count` calls to `mean`; `one` is a buffer for one call.
pub fn mean_of_calls(
    count: u64,
    mean: &mut [f64],
    one: &mut [f64],
    mut call: impl FnMut(&mut [f64]),
) {
    if count == 1 {
        return call(mean);
    }
    mean.fill(0.0);
    for _ in 0..count {
        call(one);
        axpy(1.0, one, mean);
    }
    mean.iter_mut().for_each(|x| *x /= count as f64);
}
