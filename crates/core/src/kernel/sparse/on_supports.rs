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

use super::steps::SparseRecords;
use super::support::{BLOCK, Support};
use crate::kernel::cohort::{Cohort, Local, LocalSteps, Members, Proximal};
use crate::kernel::server::{learn_all_on, mean_of};
use crate::kernel::simd::InstructionSet;

/// The control variates that learn from a round: ℓ_k (N numbers), c̄ (d numbers) and ξ (N rows of d).
pub type VariatesToLearn<'a> = (&'a [f64], &'a mut [f64], &'a mut [f64]);

/// A round of all clients after their steps on supports.
pub struct SupportRound<'a> {
    /// θ_t, d numbers.
    pub start: &'a [f64],
    /// N rows of d, of which the first numbers are the client's on its support.
    pub ends: &'a [f64],
    /// γ_k and E_k.
    pub plans: &'a [LocalSteps],
    /// The variates; 0 without them.
    pub learning: Option<VariatesToLearn<'a>>,
}

/// What the end of a round does to a number that a client's records do not touch.
struct Elsewhere {
    /// α and β of the last step of each pass.
    passes: Vec<(f64, f64)>,
    /// Whether ξ' is 0.
    none: bool,
}

impl SparseRecords {
    /// [`SparseRecords::advance`] of clients that begin at θ_t, on their supports: the first numbers of
    /// a client's row are its numbers there, and the others are not written.
    ///
    /// # Panics
    /// If dimensions do not agree, clients begin at their own rows, or c is below ½.
    pub(super) fn advance_on_supports(
        &self,
        supports: &[Support],
        cohort: Cohort<'_, ()>,
        Proximal { weight, anchor }: Proximal<'_>,
    ) {
        let mut known = self.scales(weight);
        let mut zero = std::ptr::null();
        let mut pull = Vec::new();
        let mut locals = cohort.locals();
        while let Some((local, start)) = locals.next_apart() {
            let support = &supports[local.client];
            let xi = local.correction;
            let start = start.expect("clients begin at θ_t");
            let scales = known.of(local.step, local.steps).expect("c is ½ or more");
            let theta = &mut local.theta[..support.columns.len()];
            for (v, j) in theta.iter_mut().zip(&support.columns) {
                *v = start[*j as usize];
            }
            let none = weight == 0.0 && (zero == xi.as_ptr() || xi.iter().all(|x| *x == 0.0));
            pull.clear();
            let columns = support.columns.iter().map(|j| *j as usize);
            match (none, weight == 0.0) {
                (true, _) => zero = xi.as_ptr(),
                (false, true) => pull.extend(columns.map(|j| xi[j])),
                (false, false) => pull.extend(columns.map(|j| xi[j] - weight * anchor[j])),
            }
            let mut local = [Local { theta, correction: &pull, ..local }];
            match none {
                true => self.passes::<false>(&mut local, Some(support), scales),
                false => self.passes::<true>(&mut local, Some(support), scales),
            }
        }
    }

    /// Whether all clients can keep to the numbers of θ that their records touch, with these plans
    /// and this weight of a proximal term: steps of cohorts that are on supports, and
    /// [`SparseRecords::mean_on_supports`], instead of steps on rows and their mean, with the same
    /// bits.
    pub fn has_supports(&self, plans: &[LocalSteps], weight: f64) -> bool {
        let mut known = self.scales(weight);
        self.supports.is_some()
            && plans.iter().all(|plan: &LocalSteps| known.of(plan.step, plan.steps).is_some())
    }

    /// The mean of the clients' θ after such steps into `after` (d numbers), and what the variates
    /// learn.
    ///
    /// # Panics
    /// If there are no supports, dimensions do not agree, or c is below ½.
    pub fn mean_on_supports(
        &self,
        SupportRound { start, ends, plans, mut learning }: SupportRound<'_>,
        weight: f64,
        after: &mut [f64],
    ) {
        let supports = self.supports.as_ref().expect("clients have supports");
        let n = plans.len();
        let d = start.len();
        assert!(after.len() == d && ends.len() == n * d && supports.len() == n);
        let zero = |k: usize| {
            let row = |(_, _, xi): &VariatesToLearn<'_>| xi[k * d..][..d].iter().all(|x| *x == 0.0);
            learning.as_ref().is_none_or(row)
        };
        let mut known = self.scales(weight);
        let of = |(k, plan): (usize, &LocalSteps)| {
            let scales = known.of(plan.step, plan.steps).expect("c is ½ or more");
            Elsewhere { passes: scales.ends(plan.steps), none: weight == 0.0 && zero(k) }
        };
        let elsewhere: Vec<Elsewhere> = plans.iter().enumerate().map(of).collect();
        let width = (BLOCK / n).max(1);
        let mut base = vec![0.0; width];
        let mut rows = vec![0.0; n * width];
        let mut used = vec![0; n];
        let members = Members::all(n);
        for column in (0..d).step_by(width) {
            let width = width.min(d - column);
            let theta = &start[column..][..width];
            for (k, row) in rows[..n * width].chunks_exact_mut(width).enumerate() {
                let alike = |l: usize| elsewhere[l].passes == elsewhere[k].passes;
                match &learning {
                    Some((_, _, xi)) => {
                        let xi = &xi[k * d + column..][..width];
                        elsewhere[k].fill(row, (theta, Some(xi)), weight);
                    }
                    None => {
                        if k == 0 || !alike(k - 1) {
                            elsewhere[k].fill(&mut base[..width], (theta, None), weight);
                        }
                        row.copy_from_slice(&base[..width]);
                    }
                }
                let rest = &supports[k].columns[used[k]..];
                let here = rest.partition_point(|j| (*j as usize) < column + width);
                let own = &ends[k * d + used[k]..][..here];
                rest[..here].iter().zip(own).for_each(|(j, x)| row[*j as usize - column] = *x);
                used[k] += here;
            }
            let rows = &rows[..n * width];
            let after = &mut after[column..][..width];
            match &mut learning {
                None => mean_of(&members, rows, after),
                Some((lengths, mean, xi)) => {
                    let own = (&mut mean[column..][..width], &mut xi[column..]);
                    learn_all_on(InstructionSet::best(), (theta, rows, after), lengths, own, d);
                }
            }
        }
    }
}

impl Elsewhere {
    /// Numbers of θ that begin a round at θ_t (`theta`), with ξ, at its end.
    fn fill(&self, out: &mut [f64], (theta, xi): (&[f64], Option<&[f64]>), weight: f64) {
        out.copy_from_slice(theta);
        for &(alpha, beta) in &self.passes {
            match xi {
                _ if self.none => out.iter_mut().for_each(|v| *v *= alpha),
                Some(xi) if weight == 0.0 => {
                    out.iter_mut().zip(xi).for_each(|(v, xi)| *v = alpha * *v - beta * xi);
                }
                _ => {
                    let pull =
                        |(i, theta): (usize, &f64)| xi.map_or(0.0, |xi| xi[i]) - weight * theta;
                    let pulls = theta.iter().enumerate().map(pull);
                    out.iter_mut().zip(pulls).for_each(|(v, pull)| *v = alpha * *v - beta * pull);
                }
            }
        }
    }
}
