//! The scales α and β of the steps of a pass. A pass is a part of a client's local steps in a round during which v is
//! stored instead of θ = α v − β ξ'; [`super::steps`] states the recursion.

use super::rows::{SparseRow, fold_sparse};

/// The most local steps of a pass.
const LONGEST: u64 = 4096;
/// The least α of a pass, 2⁻⁶⁴: a pass ends before α falls below it.
pub(super) const SMALLEST: f64 = 5.421_010_862_427_522e-20;
/// Below this c = 1 − γ(λ + μ), there are no passes: the local steps are a loop over the oracle.
const LEAST_FACTOR: f64 = 0.5;

/// The scales of the longest pass that is needed. A shorter pass has the first of them, since the scales of a step do
/// not depend on how many steps follow.
pub(super) struct PassScales {
    /// γ, the step size for which they are computed.
    step: f64,
    /// α_i before step i, from 0 on, and after the last step: one number more than there are steps.
    alpha: Vec<f64>,
    /// β_i, as many numbers as α_i.
    beta: Vec<f64>,
    /// γ/α_{i+1}, by which step i multiplies s when it changes v; one number for each step.
    pub(super) rate: Vec<f64>,
}

/// α and β after the last step of a pass: then θ = α v − β ξ'.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct PassEnd {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// A pass of some local steps with their scales.
#[derive(Clone, Copy)]
pub(super) struct ScaledPass<'a> {
    pub(super) scales: &'a PassScales,
    /// The number of local steps of the pass, at most as many as there are scales for.
    pub(super) steps: usize,
}

/// A cache of the scales that were used last, which clients with the same step size share.
pub(super) struct KnownScales {
    /// λ + μ, by which θ is pulled towards 0 and θ_t.
    pub(super) pull: f64,
    /// The scales of the step size that was asked for last, if any.
    pub(super) last: Option<PassScales>,
}

impl KnownScales {
    /// The scales for `steps` local steps of size γ = `step`, from the cache if it has enough of them; they reach at
    /// least to the end of the first pass. `None` where c = 1 − γ(λ + μ) is below ½ or NaN, because such steps are not
    /// taken in passes.
    pub(super) fn for_steps(&mut self, step: f64, steps: u64) -> Option<&PassScales> {
        let factor = 1.0 - step * self.pull;
        if factor.is_nan() || factor < LEAST_FACTOR {
            return None;
        }
        let least = steps.min(LONGEST);
        let known = self.last.take();
        let fitting = known.filter(|known| known.step == step && known.rate.len() as u64 >= least);
        Some(self.last.insert(fitting.unwrap_or_else(|| PassScales::new(step, factor, steps))))
    }
}

impl PassScales {
    /// The scales of a pass of `steps` local steps of size γ = `step` with c = `factor`, which is ½ or more, or of
    /// fewer steps if a pass has to end before.
    fn new(step: f64, factor: f64, steps: u64) -> Self {
        let mut alpha = vec![1.0];
        let mut beta = vec![0.0];
        let mut rate = Vec::new();
        let mut a = 1.0;
        let mut b = 0.0;
        while (rate.len() as u64) < steps.min(LONGEST) && factor * a >= SMALLEST {
            a *= factor;
            b = factor * b + step;
            alpha.push(a);
            beta.push(b);
            rate.push(step / a);
        }
        Self { step, alpha, beta, rate }
    }

    /// The numbers of steps of the passes into which `steps` local steps are divided: each is as long as these scales
    /// reach, and the last pass has the rest.
    pub(super) fn pass_lengths(&self, steps: u64) -> impl Iterator<Item = usize> {
        // There are no scales where there is no step.
        let most = (self.rate.len() as u64).max(1);
        let whole = steps / most;
        let rest = steps % most;
        (0..whole).map(move |_| most).chain((rest > 0).then_some(rest)).map(|now| now as usize)
    }

    /// α and β after the first `steps` steps of a pass.
    pub(super) fn end(&self, steps: usize) -> PassEnd {
        PassEnd { alpha: self.alpha[steps], beta: self.beta[steps] }
    }

    /// α and β at the end of each of the passes into which `steps` local steps are divided.
    pub(super) fn ends(&self, steps: u64) -> Vec<PassEnd> {
        self.pass_lengths(steps).map(|length| self.end(length)).collect()
    }

    /// xᵀθ = α xᵀv − β xᵀξ' for a record x = `row` before step number `step` of a pass, from 0 on. `pull` is ξ';
    /// without `PULLED` it is 0 and not read.
    ///
    /// # Safety
    /// `v`, and `pull` if `PULLED`, have more numbers than any index of the row.
    #[inline(always)]
    pub(super) unsafe fn along<const PULLED: bool>(
        &self,
        step: usize,
        row: &SparseRow<'_>,
        v: &[f64],
        pull: &[f64],
    ) -> f64 {
        // SAFETY: passed on to the caller.
        unsafe {
            if PULLED {
                let [v, pull] =
                    fold_sparse(row, |j: usize| [*v.get_unchecked(j), *pull.get_unchecked(j)]);
                self.alpha[step] * v - self.beta[step] * pull
            } else {
                let [v] = fold_sparse(row, |j| [*v.get_unchecked(j)]);
                self.alpha[step] * v
            }
        }
    }
}
