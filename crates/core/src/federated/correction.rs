//! Control variates: c_k of each client, their mean c̄ = Σ π_k c_k by the clients' shares, and
//! ξ_k = c̄ − c_k, which is added to client k's field.
//!
//! *Invariant*: Σ_k π_k ξ_k = 0 up to rounding, for any cohort and any numbers of local
//! steps, since c̄ is the mean of the stored c_k.

use super::pool::average;
use crate::kernel::{
    self, FinishedSteps, ImpliedVariates, InstructionSet, Members, StoredVariates, VariatesToLearn,
};

/// The control variates c_k of all clients of a run, and the corrections ξ_k that follow from them.
pub struct ControlVariates {
    d: usize,
    /// c_k, N rows of d; empty while all clients learn with equal shares, which needs ξ alone.
    variates: Vec<f64>,
    /// The mean c̄ of the variates, d numbers.
    mean: Vec<f64>,
    /// ξ_k, N rows of d.
    corrections: Vec<f64>,
    /// π_k, N numbers, if they are not equal.
    shares: Option<Vec<f64>>,
}

impl ControlVariates {
    /// Variates of 0 for `clients` clients in dimension d. `shares` are π_k, N numbers; without them all are equal.
    pub fn new(clients: usize, d: usize, shares: Option<&[f64]>) -> Self {
        let mean = vec![0.0; d];
        let corrections = vec![0.0; clients * d];
        let shares = shares.map(<[f64]>::to_vec);
        Self { d, variates: Vec::new(), mean, corrections, shares }
    }

    /// Stores c_k = c̄ − ξ_k of every client, if they are not stored yet. Called before anything changes a c_k.
    fn store_variates(&mut self) {
        if self.variates.is_empty() {
            for correction in self.corrections.chunks_exact(self.d) {
                self.variates.extend(self.mean.iter().zip(correction).map(|(mean, xi)| mean - xi));
            }
        }
    }

    /// The correction ξ_k of a client, from 0 on, d numbers.
    pub fn correction(&self, client: usize) -> &[f64] {
        &self.corrections[client * self.d..][..self.d]
    }

    /// ξ of all clients, N rows of d.
    pub fn corrections(&self) -> &[f64] {
        &self.corrections
    }

    /// c_k ← c_k − c̄ + (θ_t − θ_k)/(γ_k E_k) for each member of a cohort, then c̄ and ξ of all clients: option two of
    /// Scaffold, for rounds with fixed numbers of local steps. The round began at `before` (d numbers) and ended at
    /// `ends` (N rows of d); `lengths` are γ_k E_k (N numbers). Rows of clients that are no members are not read.
    ///
    /// With equal numbers of local steps and full participation this is
    /// ξ_k ← ξ_k + (θ_k − θ_{t+1})/(γH) (SLIDES II; SCAFFLSA Alg. 4 with the
    /// opposite sign). Otherwise it still converges to θ*, whereas the compact rule
    /// converges to the root of Σ E_k F̄_k.
    pub fn learn(&mut self, members: &Members, before: &[f64], ends: &[f64], lengths: &[f64]) {
        self.store_variates();
        if self.shares.is_none() {
            let steps = FinishedSteps { start: before, ends, lengths };
            let stored = StoredVariates {
                variates: &mut self.variates,
                mean: &mut self.mean,
                corrections: &mut self.corrections,
            };
            return kernel::learn_on(InstructionSet::best(), members, steps, stored);
        }
        let d = self.d;
        for &client in members.indices() {
            let variate = &mut self.variates[client * d..][..d];
            let end = &ends[client * d..][..d];
            for i in 0..d {
                variate[i] += (before[i] - end[i]) / lengths[client] - self.mean[i];
            }
        }
        self.update_corrections();
    }

    /// The variates for a kernel that lets those of all clients learn: it reads `lengths`, γ_k E_k (N numbers), and
    /// updates c̄ and ξ in place. It does not update stored c_k, which are dropped here: c_k = c̄ − ξ_k gives them
    /// back. Shares must be equal.
    pub fn to_learn<'a>(&'a mut self, lengths: &'a [f64]) -> VariatesToLearn<'a> {
        self.variates.clear();
        VariatesToLearn { lengths, mean: &mut self.mean, corrections: &mut self.corrections }
    }

    /// Writes the mean of the members' ends by their shares, θ_{t+1}, to `after` (d numbers), and does what
    /// [`ControlVariates::learn`] does; in one pass over the rows if all clients take part with equal shares.
    pub fn average_and_learn(
        &mut self,
        members: &Members,
        before: &[f64],
        ends: &[f64],
        lengths: &[f64],
        after: &mut [f64],
    ) {
        if members.indices().len() == lengths.len() && self.shares.is_none() {
            let stride = self.d;
            let VariatesToLearn { lengths, mean, corrections } = self.to_learn(lengths);
            let steps = FinishedSteps { start: before, ends, lengths };
            let implied = ImpliedVariates { mean, corrections, stride };
            return kernel::learn_all_on(InstructionSet::best(), steps, after, implied);
        }
        average(self.shares.as_deref(), members, ends, after);
        self.learn(members, before, ends, lengths);
    }

    /// c_k ← `value`, d numbers, for variates that are measured. c̄ and ξ are right only after the next call of
    /// [`Self::update_corrections`].
    pub fn set(&mut self, client: usize, value: &[f64]) {
        self.store_variates();
        self.variates[client * self.d..][..self.d].copy_from_slice(value);
    }

    /// The stored c_k, N rows of d; empty before any was stored.
    pub(super) fn stored(&self) -> &[f64] {
        &self.variates
    }

    /// ξ_k ← `mean` − c_k for the members of a cohort, whose c_k were set; those of other clients stay as they are. The
    /// mean is the caller's, d numbers, so that Σ π_k ξ_k need not be 0.
    pub(super) fn correct_members(&mut self, members: &Members, mean: &[f64]) {
        let d = self.d;
        for &client in members.indices() {
            let own = client * d..(client + 1) * d;
            let corrections = self.corrections[own.clone()].iter_mut();
            for ((correction, mean), variate) in corrections.zip(mean).zip(&self.variates[own]) {
                *correction = mean - variate;
            }
        }
    }

    /// ξ_k ← ξ_k + (p/γ)(θ_k − θ̄) for every client, at a communication under
    /// a coin of probability p (SCAFFLSA Alg. 2; Scaffnew): `ends` are θ_k, N
    /// rows of d, `mean` is θ̄ by the clients' shares, `rate` p/γ. It is done by c_k ← c_k − (p/γ)(θ_k − θ̄), from
    /// which ξ is computed again.
    pub fn learn_by_coin(&mut self, ends: &[f64], mean: &[f64], rate: f64) {
        self.store_variates();
        let rows = self.variates.chunks_exact_mut(self.d).zip(ends.chunks_exact(self.d));
        for (variate, end) in rows {
            for i in 0..mean.len() {
                variate[i] -= rate * (end[i] - mean[i]);
            }
        }
        self.update_corrections();
    }

    /// c̄ ← Σ π_k c_k and ξ_k ← c̄ − c_k for all clients, whose c_k are stored from here on.
    pub fn update_corrections(&mut self) {
        self.store_variates();
        let Some(shares) = &self.shares else {
            let variates = &mut self.variates;
            let mean = &mut self.mean;
            return kernel::update_corrections(variates, mean, &mut self.corrections);
        };
        let all = Members::all(shares.len());
        kernel::weighted_mean_of(&all, shares, &self.variates, &mut self.mean);
        let rows = self.corrections.chunks_exact_mut(self.d);
        for (correction, variate) in rows.zip(self.variates.chunks_exact(self.d)) {
            for i in 0..self.mean.len() {
                correction[i] = self.mean[i] - variate[i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// ξ_k ← ξ_k + (θ_k − θ̄)/ℓ with ℓ = γH, or γ/p under a coin.
    #[test]
    fn corrections_sum_to_zero_and_follow_the_published_rule() {
        let n = 5;
        let d = 3;
        let length = 0.7;
        let unequal = [0.1, 0.3, 0.2, 0.15, 0.25];
        let all = [false, true].map(|coin| [(coin, None), (coin, Some(&unequal[..]))]);
        for (coin, shares) in all.into_iter().flatten() {
            let mut rng = Stream::shared_instance(1);
            let mut variates = ControlVariates::new(n, d, shares);
            let mut published = vec![0.0; n * d];
            for _ in 0..20 {
                let before: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
                // As the engine does it: the correction acts on the round's ends.
                let ends: Vec<f64> = (0..n * d)
                    .map(|k| before[k % d] - length * (rng.gaussian() + variates.corrections[k]))
                    .collect();
                let mut after = vec![0.0; d];
                average(shares, &Members::all(n), &ends, &mut after);
                if coin {
                    variates.learn_by_coin(&ends, &after, 1.0 / length);
                } else {
                    variates.learn(&Members::all(n), &before, &ends, &[length; 5]);
                }
                let mut sum = vec![0.0; d];
                for (k, xi) in published.iter_mut().enumerate() {
                    *xi += (ends[k] - after[k % d]) / length;
                    assert!((variates.corrections[k] - *xi).abs() < 1e-12);
                    let share = shares.map_or(1.0, |shares| shares[k / d]);
                    sum[k % d] += share * variates.corrections[k];
                }
                assert!(sum.iter().all(|sum| sum.abs() < 1e-13), "{sum:?}");
            }
        }
    }
}
