//! Local steps without a fused kernel: mini-batches, a proximal term, and
//! oracle calls at a fixed point.

use crate::kernel::{Local, axpy, descend};
use crate::problem::Problem;

/// The terms of a local step beyond θ ← θ − γ_k (F_k(θ; Z) + ξ_k).
pub struct Extra<'a> {
    /// μ.
    pub proximal: f64,
    /// θ_t, the point to which the proximal term pulls; d numbers.
    pub anchor: &'a [f64],
}

/// θ ← θ − γ_k (B_k⁻¹ Σ F_k(θ; Z_b) + ξ_k + μ(θ − θ_t)), E_k times.
pub fn local_steps<P: Problem>(problem: &P, local: Local<'_, P::State>, extra: &Extra<'_>) {
    let d = problem.dim();
    let (mut field, mut one) = (vec![0.0; d], vec![0.0; d]);
    for _ in 0..local.steps {
        let (client, state, rng) = (local.client, &mut *local.state, &mut *local.rng);
        mean_field(local.batch, &mut field, &mut one, |out| {
            problem.oracle(client, state, local.theta, rng, out);
        });
        let apart = local.theta.iter().zip(extra.anchor).map(|(theta, anchor)| theta - anchor);
        field.iter_mut().zip(apart).for_each(|(field, apart)| *field += extra.proximal * apart);
        descend(local.theta, &field, local.correction, local.step);
    }
}

/// Writes the mean of `count` calls to `mean`; `one` is a buffer for one call.
pub fn mean_field(count: u64, mean: &mut [f64], one: &mut [f64], mut call: impl FnMut(&mut [f64])) {
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
