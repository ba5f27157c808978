//! The stochastic oracle of a problem, and the definition of its local steps: a loop over the oracle.
//! For small d this loop has θ and the field in arrays of constant length, so that an inlined oracle
//! is unrolled.
//!
//! A [`Cohort`] is the clients that participate in a round, or some of them, with what their local steps read and
//! write: θ_c, where a client's end is written and where it begins unless all begin at a common θ_t, the correction
//! ξ_c, the random stream and the state of the noise. Steps are *plain* if [`Cohort::extended`] is `None`, else
//! *extended*: they have a proximal term or average several oracle calls.

use super::facts::Facts;
use crate::kernel::{Cohort, Draws, Local, Proximal, SparseRecords, axpy, descend};
use crate::rng::Stream;

/// A problem that can be run: its stochastic oracle.
pub trait Problem: Facts {
    /// The state of a client's noise between steps; `()` if draws are i.i.d. It is cloned with each draw that is kept
    /// ([`Draw`](crate::federated::Draw)), so that clones should be cheap.
    type State: Clone + Default + Send + Sync + 'static;

    /// The state of a client's noise at the start of a run; `rng` is the stream from which the client's oracle calls
    /// draw in this run.
    fn begin(&self, _client: usize, _rng: &mut Stream) -> Self::State {
        Self::State::default()
    }

    /// Writes F_c(θ; Z) to `field`, d numbers, with a new Z from the client's draws: the definition of the oracle.
    fn oracle(
        &self,
        client: usize,
        draws: &mut Draws<Self::State>,
        theta: &[f64],
        field: &mut [f64],
    );

    /// Makes the draws of one call of [`Problem::oracle`] without evaluating a field: afterwards the client's stream
    /// and the state of its noise are as after the call. The numbers of the records that the call draws, from 0 on among
    /// those of the client, are appended to `records` in the order of the draw, if the problem has records. The default
    /// calls the oracle at the point 0, which takes as long as a gradient; what an oracle draws does not depend on θ.
    fn draw(&self, client: usize, draws: &mut Draws<Self::State>, _records: &mut Vec<usize>) {
        let mut field = vec![0.0; self.dim()];
        let origin = vec![0.0; self.dim()];
        self.oracle(client, draws, &origin, &mut field);
    }

    /// F_c(θ*; Z) + ∇F_c(θ*; Z)(θ − θ*) into `field`, d numbers, from the same draws
    /// as [`Problem::oracle`]: the field linearised for each draw. The default is the oracle itself, which is right for
    /// fields that are affine alone.
    fn linearised(
        &self,
        client: usize,
        draws: &mut Draws<Self::State>,
        theta: &[f64],
        field: &mut [f64],
    ) {
        self.oracle(client, draws, theta, field);
    }

    /// Takes the local steps of a round: for each client of the cohort E_c plain steps
    /// θ ← θ − γ_c (F_c(θ, Z) + ξ_c) or, if [`Cohort::extended`] is given, E_c steps on means of B_c calls,
    /// θ ← θ − γ_c (B_c⁻¹ Σ F_c(θ, Z_b) + ξ_c + μ(θ − θ_t)), with μ(θ − θ_t) the proximal term. A problem may
    /// fuse and interleave steps; the bits must equal those of this loop over the oracle.
    fn advance(&self, cohort: Cohort<'_, Self::State>)
    where
        Self: Sized,
    {
        advance_by_oracle(self, cohort);
    }

    /// Takes the plain steps of [`Problem::advance`] with [`Problem::linearised`] in place of the oracle,
    /// if the problem has a fused kernel for them, and returns `None`. Else it takes none and returns the
    /// cohort, and the caller loops over `linearised`. A linear field is its own linearisation, so that
    /// `advance` itself takes the steps. Callers take extended steps ([`Cohort::extended`]) by the oracle: kernels of
    /// linearised fields do not look whether the cohort has a proximal term or averages calls.
    fn advance_linearised<'a>(
        &self,
        cohort: Cohort<'a, Self::State>,
    ) -> Option<Cohort<'a, Self::State>>
    where
        Self: Sized,
    {
        if !self.linear() {
            return Some(cohort);
        }
        self.advance(cohort);
        None
    }

    /// What is gained if several runs are advanced together ([`Problem::advance_together`]): by default nothing.
    fn joint_gain(&self) -> JointGain {
        JointGain::None
    }

    /// The sparse records, whose local steps may keep to the features that a client's records have
    /// ([`Cohort::on_supports`], which is set for such problems alone, since a loop over the oracle does not read it);
    /// `None` if the problem has no records, or they are dense.
    fn sparse_records(&self) -> Option<&SparseRecords> {
        None
    }

    /// [`Problem::advance`] of several runs, client by client, so that what all runs read of a client is read while it
    /// is in a cache. The cohorts must have the same clients and each client the same number of steps in all of them,
    /// unless the gain is one of shared calls; the bits are those of one run after the other.
    fn advance_together(&self, runs: Vec<Cohort<'_, Self::State>>)
    where
        Self: Sized,
    {
        advance_together_by_client(self, runs);
    }
}

/// What is gained if several runs of an algorithm on a problem are advanced together.
#[derive(Clone, Copy, Debug)]
pub enum JointGain {
    /// Nothing.
    None,
    /// The dense records of a client, of these sizes, are read while they are in a cache.
    SharedRecords(RecordSizes),
    /// One call evaluates the fields of all clients of all runs, which takes much less time than one for each of them.
    /// Threads do not divide such a call.
    SharedCalls,
}

/// How large the dense records of a problem are.
#[derive(Clone, Copy, Debug)]
pub struct RecordSizes {
    /// The bytes of the records of all clients together.
    pub bytes: usize,
    /// The number of records of the client that holds most.
    pub largest: usize,
}

/// Takes the steps of [`Problem::advance`], plain or extended, by calls of [`Problem::oracle`]: the definition, which
/// fused kernels reproduce bit by bit. Dimensions that are common have a loop over arrays of constant length.
pub fn advance_by_oracle<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    if let Some(proximal) = cohort.extended {
        return advance_extended(problem, cohort, proximal);
    }
    match problem.dim() {
        1 => advance_in_arrays::<P, 1>(problem, cohort),
        2 => advance_in_arrays::<P, 2>(problem, cohort),
        3 => advance_in_arrays::<P, 3>(problem, cohort),
        4 => advance_in_arrays::<P, 4>(problem, cohort),
        5 => advance_in_arrays::<P, 5>(problem, cohort),
        8 => advance_in_arrays::<P, 8>(problem, cohort),
        10 => advance_in_arrays::<P, 10>(problem, cohort),
        16 => advance_in_arrays::<P, 16>(problem, cohort),
        20 => advance_in_arrays::<P, 20>(problem, cohort),
        32 => advance_in_arrays::<P, 32>(problem, cohort),
        _ => advance_in_slices(problem, cohort),
    }
}

/// Takes plain steps with θ, ξ and the field in arrays on the stack, for a dimension D that is known at
/// compile time and must be the problem's. The cohort must not be extended, which is not looked at.
fn advance_in_arrays<P: Problem, const D: usize>(problem: &P, cohort: Cohort<'_, P::State>) {
    let mut locals = cohort.locals();
    while let Some((local, start)) = locals.next_apart() {
        let Local { client, mut draws, step, .. } = local;
        let mut theta = [0.0; D];
        let mut correction = [0.0; D];
        let mut field = [0.0; D];
        // `start` is θ_t, if the round has not been copied to the client's own row yet.
        theta.copy_from_slice(start.unwrap_or(local.theta));
        correction.copy_from_slice(local.correction);
        for _ in 0..local.steps {
            problem.oracle(client, &mut draws, &theta, &mut field);
            descend(&mut theta, &field, &correction, step);
        }
        local.theta.copy_from_slice(&theta);
    }
}

/// Takes plain steps in any dimension, with θ in its row of the cohort, which must not be extended.
fn advance_in_slices<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>) {
    let mut field = vec![0.0; problem.dim()];
    cohort.each(|mut local| {
        for _ in 0..local.steps {
            problem.oracle(local.client, &mut local.draws, local.theta, &mut field);
            descend(local.theta, &field, local.correction, local.step);
        }
    });
}

/// Takes steps on means of several oracle calls, or with a proximal term, in any dimension.
fn advance_extended<P: Problem>(problem: &P, cohort: Cohort<'_, P::State>, proximal: Proximal<'_>) {
    let d = problem.dim();
    let mut field = vec![0.0; d];
    let mut one = vec![0.0; d];
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

/// Takes the steps of [`Problem::advance_together`] by [`Problem::advance`], client by client: its
/// definition. All cohorts must have as many clients: it ends with the shortest.
pub fn advance_together_by_client<P: Problem>(problem: &P, mut runs: Vec<Cohort<'_, P::State>>) {
    while runs.iter().all(|run| !run.is_empty()) {
        // The first client of every run, before the next client of any run.
        let (first_clients, rest): (Vec<_>, _) = runs.into_iter().map(|run| run.split(1)).unzip();
        first_clients.into_iter().for_each(|client| problem.advance(client));
        runs = rest;
    }
}

/// Writes the mean of `count` oracle calls, 1 or more, to `mean`, d numbers: the field of a step on a mini-batch.
/// `call` makes one of them and writes its field to its argument; `one` is a buffer of d numbers for it, which is not
/// used for a single call.
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
