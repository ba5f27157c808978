//! Rounds of clients whose records touch few of the features, where θ has so many numbers that passes
//! over all of them would take longer than the local steps.
//!
//! A number of θ that no record of a client touches is changed by λ, ξ' and the end of a pass
//! alone, v ← α v − β ξ', which does not depend on the draws. So a client's steps work on the
//! numbers that its records touch, its *support*, and the server forms the others when it takes the
//! mean: block by block, while a block of all clients is in the first caches.
//!
//! *Invariant*: every number of every client has the operations of [`SparseRecords::advance`], and the
//! mean and the variates those of the server on whole rows, so that the bits are the same.

use super::scales::PassEnd;
use super::steps::{SparseRecords, is_zero_row};
use super::support::{BLOCK, Support};
use crate::kernel::cohort::{Cohort, Local, LocalSteps, Members, Proximal};
use crate::kernel::server::{FinishedSteps, ImpliedVariates, learn_all_on, mean_of};
use crate::kernel::simd::InstructionSet;

/// The control variates that are to learn from a round in which all clients take part: `mean` and `corrections` are
/// updated.
pub struct VariatesToLearn<'a> {
    /// γ_k E_k, N numbers: the sum of the step sizes of client k in the round.
    pub lengths: &'a [f64],
    /// c̄, d numbers.
    pub mean: &'a mut [f64],
    /// ξ_k, N rows of d numbers.
    pub corrections: &'a mut [f64],
}

/// What the local steps of all clients on their supports have left, from which the server forms θ_{t+1}.
pub struct SupportRound<'a> {
    /// θ_t, d numbers.
    pub start: &'a [f64],
    /// N rows of d numbers. A client's row begins with the entries of its θ on its support, in the order of the
    /// features; its other numbers mean nothing.
    pub ends: &'a [f64],
    /// γ_k and E_k of each client, N.
    pub plans: &'a [LocalSteps],
    /// The control variates, if there are some; ξ is 0 without them.
    pub learning: Option<VariatesToLearn<'a>>,
}

/// What a round does to those entries of a client's θ that its records do not touch: it does not depend on the draws.
struct Elsewhere {
    /// α and β at the end of each pass, the parts into which the client's local steps are divided.
    passes: Vec<PassEnd>,
    /// Whether ξ' of the client is 0, so that a pass only multiplies by α.
    is_unpulled: bool,
}

impl SparseRecords {
    /// Runs the local steps of clients that begin at θ_t on the entries of θ that their records touch. These are at the
    /// beginning of a client's row afterwards; the rest of the row is not written.
    ///
    /// # Panics
    /// If dimensions do not agree, clients begin at their own rows, or c = 1 − γ(λ + μ) of a client is below ½ or NaN.
    pub(super) fn advance_on_supports(
        &self,
        supports: &[Support],
        cohort: Cohort<'_, ()>,
        Proximal { weight, anchor }: Proximal<'_>,
    ) {
        let mut known = self.scale_cache(weight);
        // The row of ξ that was last found to be 0: often all clients share it.
        let mut zero = std::ptr::null();
        let mut pull = Vec::new();
        let mut locals = cohort.locals();
        while let Some((local, start)) = locals.next_apart() {
            let local = self.by_set(local);
            let support = &supports[local.client];
            let xi = local.correction;
            let start = start.expect("clients begin at θ_t");
            let scales = known.for_steps(local.step, local.steps).expect("c is ½ or more");
            let theta = &mut local.theta[..support.columns.len()];
            for (v, j) in theta.iter_mut().zip(&support.columns) {
                *v = start[*j as usize];
            }
            let is_unpulled = weight == 0.0 && is_zero_row(xi, zero);
            pull.clear();
            let columns = support.columns.iter().map(|j| *j as usize);
            if is_unpulled {
                zero = xi.as_ptr();
            } else if weight == 0.0 {
                pull.extend(columns.map(|j| xi[j]));
            } else {
                pull.extend(columns.map(|j| xi[j] - weight * anchor[j]));
            }
            let mut local = [Local { theta, correction: &pull, ..local }];
            if is_unpulled {
                self.run_passes::<false>(&mut local, Some(support), scales);
            } else {
                self.run_passes::<true>(&mut local, Some(support), scales);
            }
        }
    }

    /// Whether all clients can step on the entries of θ that their records touch alone, with these plans and this
    /// weight μ of a proximal term: supports are kept, and c = 1 − γ(λ + μ) of no client is below ½ or NaN. Then
    /// cohorts with `on_supports` and [`SparseRecords::mean_on_supports`] give the bits of steps on whole rows and
    /// their mean, in less time.
    pub fn has_supports(&self, plans: &[LocalSteps], weight: f64) -> bool {
        let mut known = self.scale_cache(weight);
        self.supports.is_some()
            && plans.iter().all(|plan| known.for_steps(plan.step, plan.steps).is_some())
    }

    /// Writes the mean of the clients' θ after steps on supports to `after` (d numbers), and lets the variates, if
    /// there are some, learn from the steps. All clients took part, and weigh alike in the mean. `weight` is μ of the
    /// proximal term that the steps had, and ξ, if there are variates, what they had: it is read before it changes.
    ///
    /// # Panics
    /// If there are no supports, dimensions do not agree, or c = 1 − γ(λ + μ) of a client is below ½ or NaN: unless
    /// [`SparseRecords::has_supports`].
    pub fn mean_on_supports(&self, round: SupportRound<'_>, weight: f64, after: &mut [f64]) {
        let SupportRound { start, ends, plans, mut learning } = round;
        let supports = self.supports.as_ref().expect("clients have supports");
        let n = plans.len();
        let d = start.len();
        assert!(after.len() == d && ends.len() == n * d);
        let corrections = learning.as_ref().map(|variates| &*variates.corrections);
        let elsewhere = self.changes_elsewhere(plans, corrections, d, weight);
        // The columns of a block: so few that the numbers of all clients in them stay in the first caches.
        let widest = (BLOCK / n).max(1);
        // Where clients without variates end in a block if no record touches it.
        let mut without_variates = vec![0.0; widest];
        // The ends of all clients in a block.
        let mut rows = vec![0.0; n * widest];
        // How many entries of each client's support are in earlier blocks.
        let mut used = vec![0; n];
        let members = Members::all(n);
        for column in (0..d).step_by(widest) {
            let width = widest.min(d - column);
            let theta = &start[column..][..width];
            for (k, row) in rows[..n * width].chunks_exact_mut(width).enumerate() {
                match &learning {
                    Some(VariatesToLearn { corrections, .. }) => {
                        let xi = &corrections[k * d + column..][..width];
                        elsewhere[k].write_ends(theta, Some(xi), weight, row);
                    }
                    None => {
                        // Without ξ, clients with the same passes end at the same numbers.
                        if k == 0 || elsewhere[k - 1].passes != elsewhere[k].passes {
                            let ends = &mut without_variates[..width];
                            elsewhere[k].write_ends(theta, None, weight, ends);
                        }
                        row.copy_from_slice(&without_variates[..width]);
                    }
                }
                let rest = &supports[self.set_of(k)].columns[used[k]..];
                let here = rest.partition_point(|j| (*j as usize) < column + width);
                let own = &ends[k * d + used[k]..][..here];
                rest[..here].iter().zip(own).for_each(|(j, x)| row[*j as usize - column] = *x);
                used[k] += here;
            }
            let rows = &rows[..n * width];
            let after = &mut after[column..][..width];
            match &mut learning {
                None => mean_of(&members, rows, after),
                Some(VariatesToLearn { lengths, mean, corrections }) => {
                    let steps = FinishedSteps { start: theta, ends: rows, lengths };
                    let implied = ImpliedVariates {
                        mean: &mut mean[column..][..width],
                        corrections: &mut corrections[column..],
                        stride: d,
                    };
                    learn_all_on(InstructionSet::best(), steps, after, implied);
                }
            }
        }
    }

    /// What a round does to the entries of each client's θ outside of its support. `corrections` are
    /// ξ_k, N rows of d numbers, if there are variates; `weight` is μ of the proximal term.
    ///
    /// # Panics
    /// If c = 1 − γ(λ + μ) of a client is below ½ or NaN.
    fn changes_elsewhere(
        &self,
        plans: &[LocalSteps],
        corrections: Option<&[f64]>,
        d: usize,
        weight: f64,
    ) -> Vec<Elsewhere> {
        let mut known = self.scale_cache(weight);
        let mut all = Vec::with_capacity(plans.len());
        for (k, plan) in plans.iter().enumerate() {
            let scales = known.for_steps(plan.step, plan.steps).expect("c is ½ or more");
            let is_zero = corrections.is_none_or(|xi| xi[k * d..][..d].iter().all(|x| *x == 0.0));
            let passes = scales.ends(plan.steps);
            all.push(Elsewhere { passes, is_unpulled: weight == 0.0 && is_zero });
        }
        all
    }
}

impl Elsewhere {
    /// Writes to `ends` where the entries `theta` of θ_t end in a round if no record touches them: v ← α v − β ξ' for
    /// each pass, with ξ' = ξ − μ θ_t, where ξ are the same entries of ξ_k and μ is `weight`. The caller then writes
    /// over the entries that records touch.
    fn write_ends(&self, theta: &[f64], xi: Option<&[f64]>, weight: f64, ends: &mut [f64]) {
        ends.copy_from_slice(theta);
        for &PassEnd { alpha, beta } in &self.passes {
            match xi {
                _ if self.is_unpulled => ends.iter_mut().for_each(|v| *v *= alpha),
                Some(xi) if weight == 0.0 => {
                    ends.iter_mut().zip(xi).for_each(|(v, xi)| *v = alpha * *v - beta * xi);
                }
                _ => {
                    for (i, (v, theta)) in ends.iter_mut().zip(theta).enumerate() {
                        let pull = xi.map_or(0.0, |xi| xi[i]) - weight * theta;
                        *v = alpha * *v - beta * pull;
                    }
                }
            }
        }
    }
}
