//! The local steps of logistic regression on sparse records.
//!
//! A dense step costs d operations even where a record has few non-zeros, because the penalty
//! and ξ change every number of θ. They change all of them alike, so within a pass of local steps
//! a client stores v instead of θ = α_i v − β_i ξ', where i is the number of the step in the pass:
//!
//! - ξ' = ξ − μ θ_t with μ the weight of a proximal term, and c = 1 − γ(λ + μ);
//! - α_0 = 1, β_0 = 0, α_{i+1} = c α_i, β_{i+1} = c β_i + γ;
//! - a step on a record x (already times its label) computes s = σ(m − xᵀθ) with
//!   xᵀθ = α_i xᵀv − β_i xᵀξ', then v ← v + (γ s / α_{i+1}) x, which touches the non-zeros alone. If the record has a
//!   *loss weight* w, by which its loss is multiplied, w s stands for s.
//!
//! A pass ends after the round's steps, after [`LONGEST`](super::scales) of them, or before α falls below
//! [`SMALLEST`](super::scales); then v ← α v − β ξ' is θ again, and the next pass begins there. So α and β depend
//! on γ, λ, μ and the number of the step alone. This is the *definition* of the local steps; it
//! equals the loop over the oracle up to rounding, and *is* that loop where c is below ½. A step
//! on a batch evaluates s for all its records before it adds them. Under a coin, a pass also ends
//! where a round ends, so the clock decides the last digits.
//!
//! *Invariant*: no multiply-add is fused, and σ of clients in lockstep, the only thing in lanes, has
//! the bits of the scalar one; so every instruction set gives the same bits.

use super::rows::{SparseRow, SparseRows};
use super::scales::{KnownScales, PassEnd, PassScales, ScaledPass};
use super::support::Support;
use crate::kernel::cohort::{Cohort, Local, Proximal};
use crate::kernel::exp::{sigmoid, sigmoids};
use crate::kernel::simd::{BaseLanes, prefetch_all};
use crate::kernel::vectors::{axpy, descend};
use std::mem::size_of_val;

/// The parameters of the logistic loss of records, sparse or dense.
#[derive(Clone, Copy, Debug)]
pub struct LogisticLoss {
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    pub l2: f64,
    /// m, which is subtracted from the product of a record with θ.
    pub margin: f64,
    /// B, the records of an oracle call.
    pub batch: usize,
}

/// How many clients are stepped in lockstep.
const LOCKSTEP: usize = 4;
/// The most numbers of θ for which clients are stepped in lockstep: if θ is longer, θ and ξ of several clients do not
/// fit in the first caches.
const TOGETHER: usize = 2048;

/// Sparse rows y x, in sets of which each client holds one: client c holds set c modulo the number of sets.
pub struct SparseRecords {
    /// The loss of a record, and the size of a batch.
    pub loss: LogisticLoss,
    /// The records of each set.
    pub sets: Vec<SparseRows>,
    /// The features that each set touches, if they are few enough for steps on them to take less time than steps on
    /// whole rows.
    pub(super) supports: Option<Vec<Support>>,
    /// The class, 0 or 1, of each record of each set; empty if it is not known. No step reads it.
    labels: Vec<Vec<u8>>,
    /// The loss weight of each record of each set; empty if all are 1.
    loss_weights: Vec<Vec<f64>>,
}

impl SparseRecords {
    /// The records of all clients under a loss, in sets whose rows are records x times their labels y. Client c holds
    /// set c modulo the number of sets.
    ///
    /// # Panics
    /// If a set is empty, or the sets differ in d.
    pub fn new(loss: LogisticLoss, sets: Vec<SparseRows>) -> Self {
        assert!(sets.iter().all(|set| set.dim() == sets[0].dim() && !set.is_empty()));
        let supports = Support::worth_keeping(&sets);
        Self { loss, sets, supports, labels: Vec::new(), loss_weights: Vec::new() }
    }

    /// Adds the class, 0 or 1, of each record of each set, which rows y x do not show. Metrics of classes need it;
    /// steps do not.
    ///
    /// # Panics
    /// If there is not one class per record.
    pub fn with_labels(self, labels: Vec<Vec<u8>>) -> Self {
        assert!(labels.iter().map(Vec::len).eq(self.sets.iter().map(SparseRows::len)));
        Self { labels, ..self }
    }

    /// The class of each record of a set; `None` if it is not known.
    pub fn labels(&self, set: usize) -> Option<&[u8]> {
        self.labels.get(set).map(Vec::as_slice)
    }

    /// Multiplies the loss of each record of each set by a weight.
    ///
    /// # Panics
    /// If there is not one weight per record.
    pub fn with_loss_weights(self, loss_weights: Vec<Vec<f64>>) -> Self {
        assert!(loss_weights.iter().map(Vec::len).eq(self.sets.iter().map(SparseRows::len)));
        Self { loss_weights, ..self }
    }

    /// The loss weight of each record of a set; `None` if all are 1.
    pub fn loss_weights(&self, set: usize) -> Option<&[f64]> {
        self.loss_weights.get(set).map(Vec::as_slice)
    }

    /// The number of the set that a client holds.
    #[inline(always)]
    pub(super) fn set_of(&self, client: usize) -> usize {
        client % self.sets.len()
    }

    /// The clients of a cohort as the steps see them: the number of a client is that of its set from here on, so that
    /// no step computes it again.
    pub(super) fn by_set<'l>(&self, local: Local<'l, ()>) -> Local<'l, ()> {
        Local { client: self.set_of(local.client), ..local }
    }

    /// w s of a record, where `margin` = m − xᵀθ.
    #[inline(always)]
    fn weighted_sigmoid(&self, set: usize, record: usize, margin: f64) -> f64 {
        let s = sigmoid(margin);
        self.loss_weights(set).map_or(s, |weights| weights[record] * s)
    }

    /// An empty cache of the scales of steps with a proximal term of this weight.
    pub(super) fn scale_cache(&self, weight: f64) -> KnownScales {
        KnownScales { pull: self.loss.l2 + weight, last: None }
    }

    /// The definition of an oracle call: `field` ← λθ − B⁻¹ Σ w s x over B = `batch` records of the client, whose numbers
    /// in its set `next_record` returns one by one, with s = σ(m − xᵀθ) and w the loss weight of the record.
    pub fn field(
        &self,
        client: usize,
        theta: &[f64],
        batch: usize,
        mut next_record: impl FnMut() -> usize,
        field: &mut [f64],
    ) {
        let LogisticLoss { l2, margin, .. } = self.loss;
        let set_number = self.set_of(client);
        let set = &self.sets[set_number];
        for (field, theta) in field.iter_mut().zip(theta) {
            *field = l2 * theta;
        }
        for _ in 0..batch {
            let record = next_record();
            let row = set.row(record);
            let s = self.weighted_sigmoid(set_number, record, margin - row.dot(theta));
            row.add_to(-s / batch as f64, field);
        }
    }

    /// Runs the local steps of every client of the cohort, also extended ones (with a proximal term, or on means of
    /// several oracle calls), as the head of this module defines them. If the cohort is to be `on_supports`, and
    /// supports are kept, only the entries of a client's support are written.
    ///
    /// # Panics
    /// If dimensions do not agree; on supports also if clients begin at their own rows, or c = 1 − γ(λ + μ) of a client
    /// is below ½ or NaN.
    pub fn advance(&self, cohort: Cohort<'_, ()>) {
        let proximal = cohort.extended.unwrap_or(Proximal::NONE);
        if let (true, Some(supports)) = (cohort.on_supports, &self.supports) {
            return self.advance_on_supports(supports, cohort, proximal);
        }
        let Proximal { weight, anchor } = proximal;
        let mut known = self.scale_cache(weight);
        let mut pull = vec![0.0; if weight == 0.0 { 0 } else { cohort.dim() }];
        // Clients may share a row of ξ. So ξ' is kept for the row `pulled`, and `zero` is a row that was found to be 0.
        let mut pulled = std::ptr::null();
        let mut zero = std::ptr::null();
        let alone = self.loss.batch > 1 || cohort.dim() > TOGETHER;
        let together = if alone { 1 } else { LOCKSTEP };
        let mut locals = cohort.locals();
        let mut group: Vec<Local<'_, ()>> = Vec::with_capacity(together);
        loop {
            let missing = together - group.len();
            group.extend(locals.by_ref().take(missing).map(|local| self.by_set(local)));
            let Some(first) = group.first() else { return };
            let step = first.step;
            let steps = first.steps;
            let xi = first.correction;
            let Some(scales) = known.for_steps(step, steps) else {
                self.run_oracle_loop(group.remove(0), proximal);
                continue;
            };
            if weight != 0.0 {
                if pulled != xi.as_ptr() {
                    for ((pull, xi), anchor) in pull.iter_mut().zip(xi).zip(anchor) {
                        *pull = xi - weight * anchor;
                    }
                    pulled = xi.as_ptr();
                }
                let mut one = group.remove(0);
                one.correction = &pull;
                self.run_passes::<true>(&mut [one], None, scales);
                continue;
            }
            let is_zero = is_zero_row(xi, zero);
            // Neighbours that take the same steps, all with a ξ of 0 or all with another one.
            let alike = group.iter().take_while(|local| {
                (local.step, local.steps, local.batch) == (step, steps, 1)
                    && is_zero_row(local.correction, zero) == is_zero
            });
            let count = alike.count().max(1);
            if is_zero {
                zero = xi.as_ptr();
                self.run_passes::<false>(&mut group[..count], None, scales);
            } else {
                group[..count].iter().for_each(|local| {
                    prefetch_all(local.correction.as_ptr(), size_of_val(local.correction));
                });
                self.run_passes::<true>(&mut group[..count], None, scales);
            }
            group.drain(..count);
        }
    }

    /// Runs the local steps of a client as a loop over the oracle, as it is done where c is below ½. A mean of several
    /// oracle calls is summed of B⁻¹ times each call.
    fn run_oracle_loop(&self, local: Local<'_, ()>, proximal: Proximal<'_>) {
        let d = local.theta.len();
        let mut field = vec![0.0; d];
        let mut one = vec![0.0; d];
        for _ in 0..local.steps {
            field.fill(0.0);
            for _ in 0..local.batch {
                let records = self.sets[local.client].len();
                let next_record = || local.draws.rng.index(records);
                self.field(local.client, local.theta, self.loss.batch, next_record, &mut one);
                axpy(1.0 / local.batch as f64, &one, &mut field);
            }
            if proximal.weight != 0.0 {
                proximal.add_to(local.theta, &mut field);
            }
            descend(local.theta, &field, local.correction, local.step);
        }
    }

    /// Runs all local steps of some clients, which have equal numbers of steps, in passes: parts of the steps of a
    /// round, during which a client's θ holds v. ξ' is the clients' `correction` if `PULLED`, and 0 otherwise. Several
    /// clients must take steps on single records. With a support there must be one client, whose θ and ξ' have only the
    /// entries of the support. The numbers of the clients are those of their sets ([`Self::by_set`]).
    ///
    /// # Panics
    /// If one of these conditions does not hold, or θ or, if `PULLED`, ξ' has another length than the records.
    pub(super) fn run_passes<const PULLED: bool>(
        &self,
        group: &mut [Local<'_, ()>],
        support: Option<&Support>,
        scales: &PassScales,
    ) {
        let batch = self.loss.batch as u64 * group[0].batch;
        assert!(support.is_none() || group.len() == 1);
        for local in &*group {
            let d = support.map_or(self.sets[local.client].dim(), |all| all.columns.len());
            assert!(local.theta.len() == d && (!PULLED || local.correction.len() == d));
        }
        let columns = support.map(|support| &support.places[..]);
        for length in scales.pass_lengths(group[0].steps) {
            let pass = ScaledPass { scales, steps: length };
            match (batch, &mut *group) {
                (1, group) => self.run_single_records::<PULLED>(group, columns, pass),
                (_, [local]) => self.run_batches::<PULLED>(local, columns, pass, batch),
                _ => unreachable!("clients in lockstep have no batches"),
            }
            // From v to θ, where the next pass begins.
            let PassEnd { alpha, beta } = scales.end(length);
            for Local { theta, correction, .. } in &mut *group {
                if PULLED {
                    theta
                        .iter_mut()
                        .zip(*correction)
                        .for_each(|(v, xi)| *v = alpha * *v - beta * xi);
                } else {
                    theta.iter_mut().for_each(|v| *v *= alpha);
                }
            }
        }
    }

    /// Record number k of a client. If `columns` are given, they replace its columns: the places of the columns in the
    /// client's support.
    #[inline(always)]
    fn record<'s>(&'s self, client: usize, k: usize, columns: Option<&'s [u32]>) -> SparseRow<'s> {
        let set = &self.sets[client];
        columns.map_or_else(|| set.row(k), |columns| set.row_in(k, columns))
    }

    /// Runs the steps of a pass, with one record each, for the clients of a group, at most [`LOCKSTEP`], whose θ holds
    /// v. The steps of several clients are interleaved, so that the processor works on one client while it waits for σ
    /// of another. Unless `PULLED`, ξ' is 0.
    fn run_single_records<const PULLED: bool>(
        &self,
        group: &mut [Local<'_, ()>],
        columns: Option<&[u32]>,
        pass: ScaledPass<'_>,
    ) {
        let ScaledPass { scales, steps } = pass;
        let mut rows = [SparseRow { indices: &[], values: &[] }; LOCKSTEP];
        let mut drawn = [0; LOCKSTEP];
        let mut done = 0;
        while done < steps {
            let ready = group.iter_mut().map(|local| local.draws.rng.ready().len()).min();
            let some = ready.map_or(0, |ready| ready.min(steps - done));
            // Turn i draws and prefetches the records of step i, and takes step i − 1.
            for i in 0..=some {
                let mut weights = [0.0; LOCKSTEP];
                let these = rows;
                let records = drawn;
                let nexts = rows.iter_mut().zip(&mut drawn);
                for (local, (next, record)) in group.iter().zip(nexts).filter(|_| i < some) {
                    let draw = u128::from(local.draws.rng.unused()[i]);
                    *record = ((draw * self.sets[local.client].len() as u128) >> 64) as usize;
                    *next = self.record(local.client, *record, columns);
                    prefetch_all(next.indices.as_ptr(), size_of_val(next.indices));
                    prefetch_all(next.values.as_ptr(), size_of_val(next.values));
                }
                if i == 0 {
                    continue;
                }
                let step = done + i - 1;
                for ((local, row), weight) in group.iter().zip(&these).zip(&mut weights) {
                    // SAFETY: θ and ξ have as many numbers as there are columns (`run_passes`).
                    let along =
                        unsafe { scales.along::<PULLED>(step, row, local.theta, local.correction) };
                    *weight = self.loss.margin - along;
                }
                match &mut weights[..group.len()] {
                    [weight] => *weight = sigmoid(*weight),
                    // SAFETY: whole registers of the set that is always present.
                    _ => unsafe { sigmoids::<BaseLanes>(&mut weights) },
                }
                if !self.loss_weights.is_empty() {
                    for ((local, record), weight) in group.iter().zip(records).zip(&mut weights) {
                        *weight *= self.loss_weights[local.client][record];
                    }
                }
                for ((local, row), weight) in group.iter_mut().zip(&these).zip(weights) {
                    // SAFETY: as above.
                    unsafe { add_unchecked(row, scales.rate[step] * weight, local.theta) };
                }
            }
            group.iter_mut().for_each(|local| local.draws.rng.skip(some));
            done += some;
        }
    }

    /// Runs the steps of a pass, with `batch` records each, for a client whose θ holds v. Unless `PULLED`, ξ' is 0.
    fn run_batches<const PULLED: bool>(
        &self,
        local: &mut Local<'_, ()>,
        columns: Option<&[u32]>,
        pass: ScaledPass<'_>,
        batch: u64,
    ) {
        let Local { client, theta, correction: pull, draws, .. } = local;
        let ScaledPass { scales, steps } = pass;
        let records = self.sets[*client].len();
        // Every record of a batch is evaluated at the same θ, before the first one changes it.
        let mut drawn = Vec::new();
        for step in 0..steps {
            drawn.clear();
            for _ in 0..batch {
                let record = draws.rng.index(records);
                let row = self.record(*client, record, columns);
                // SAFETY: θ and ξ' have as many numbers as there are columns (`run_passes`).
                let along = unsafe { scales.along::<PULLED>(step, &row, theta, pull) };
                drawn.push((
                    record,
                    self.weighted_sigmoid(*client, record, self.loss.margin - along),
                ));
            }
            let rate = scales.rate[step] / batch as f64;
            for &(record, weight) in &drawn {
                let row = self.record(*client, record, columns);
                // SAFETY: as above.
                unsafe { add_unchecked(&row, rate * weight, theta) };
            }
        }
    }
}

/// Whether all numbers of a row of ξ are 0. `zero` points to the row that was last found to be 0, or is null: clients
/// may share that row, so that it need not be searched again.
pub(super) fn is_zero_row(xi: &[f64], zero: *const f64) -> bool {
    zero == xi.as_ptr() || xi.iter().all(|x| *x == 0.0)
}

/// Adds a row x, times a factor, to a vector, without a check of its indices: out ← out + factor x.
///
/// # Safety
/// `out` has more numbers than any index of the row.
#[inline(always)]
unsafe fn add_unchecked(row: &SparseRow<'_>, factor: f64, out: &mut [f64]) {
    for (j, x) in row.iter() {
        // SAFETY: passed on to the caller.
        unsafe { *out.get_unchecked_mut(j) += factor * x };
    }
}

#[cfg(test)]
mod tests {
    use super::super::scales::SMALLEST;
    use super::*;
    use crate::kernel::cohort::testing::thetas;
    use crate::rng::Stream;

    /// Sets of random rows, three in ten of whose numbers are not 0: 3 + 2 c rows of client c.
    fn sets(d: usize, clients: usize) -> Vec<SparseRows> {
        let mut rng = Stream::shared_instance(7);
        let mut sets = Vec::new();
        for client in 0..clients {
            let mut rows = Vec::new();
            for _ in 0..(3 + 2 * client) * d {
                rows.push(if rng.uniform() < 0.3 { rng.gaussian() } else { 0.0 });
            }
            sets.push(SparseRows::from_dense(d, &rows));
        }
        sets
    }

    /// Loss weights that differ from record to record.
    fn weights_of(sets: &[SparseRows]) -> Vec<Vec<f64>> {
        sets.iter()
            .map(|set| (0..set.len()).map(|i| 0.3 + 0.7 * (i % 4) as f64).collect())
            .collect()
    }

    /// θ of five clients with loss weights after two rounds of local steps, by the plain loop over the oracle and by
    /// [`SparseRecords::advance`].
    fn compare(l2: f64, proximal: f64, batch: usize, steps: u64) -> (Vec<f64>, Vec<f64>) {
        let d = 30;
        let clients = 5;
        let sets = sets(d, clients);
        let weights = weights_of(&sets);
        let anchor = vec![0.2; d];
        let loss = LogisticLoss { l2, margin: 0.3, batch };
        let proximal = Proximal { weight: proximal, anchor: &anchor };
        let all = SparseRecords::new(loss, sets).with_loss_weights(weights);
        let values = |run: &dyn Fn(Cohort<'_, ()>)| -> Vec<f64> {
            let mut bits = thetas([1, d, clients], |c| steps + c as u64 % 2, run);
            bits.truncate(2 * d * clients);
            bits.into_iter().map(f64::from_bits).collect()
        };
        let plain = values(&|cohort| cohort.each(|local| all.run_oracle_loop(local, proximal)));
        let scaled = values(&|cohort| {
            // A binding of its own, whose lifetime may be that of `anchor`.
            let mut cohort = cohort;
            cohort.extended = Some(proximal);
            all.advance(cohort);
        });
        (plain, scaled)
    }

    /// Also after hundreds of steps, which take several passes for some of the penalties.
    #[test]
    fn steps_equal_the_plain_loop_up_to_rounding() {
        for (l2, proximal) in [(1e-6, 0.0), (0.1, 0.0), (2.0, 0.0), (0.1, 1.5), (4.9, 0.0)] {
            for batch in [1, 4] {
                for steps in [1, 30, 600] {
                    let (plain, scaled) = compare(l2, proximal, batch, steps);
                    let size = plain.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
                    for (plain, scaled) in plain.iter().zip(&scaled) {
                        let off = (plain - scaled).abs() / size;
                        assert!(off < 1e-12, "λ {l2}, μ {proximal}, B {batch}: {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn steps_that_shrink_by_more_than_half_are_the_plain_loop() {
        for (l2, proximal) in [(5.1, 0.0), (10.0, 0.0), (12.0, 0.0), (1.0, 4.5)] {
            let (plain, scaled) = compare(l2, proximal, 1, 40);
            assert_eq!(plain, scaled);
        }
    }

    /// The definition, step by step with α, β and rates of its own.
    #[test]
    fn bits_are_those_of_the_stated_recursion() {
        let d = 30;
        let clients = 5;
        let step = 0.1;
        let l2 = 2.0;
        let sets = sets(d, clients);
        let loss = LogisticLoss { l2, margin: 0.3, batch: 1 };
        let weights = weights_of(&sets);
        for all in [
            SparseRecords::new(loss, sets.clone()),
            SparseRecords::new(loss, sets).with_loss_weights(weights),
        ] {
            let stated = |cohort: Cohort<'_, ()>| {
                cohort.each(|local| {
                    let set = &all.sets[local.client];
                    let v = local.theta;
                    let xi = local.correction;
                    let factor = 1.0 - step * l2;
                    let mut a = 1.0;
                    let mut b = 0.0;
                    for left in (0..local.steps).rev() {
                        let record = local.draws.rng.index(set.len());
                        let row = set.row(record);
                        let weight =
                            all.loss_weights(local.client).map_or(1.0, |weights| weights[record]);
                        let along = a * row.dot(v) - b * row.dot(xi);
                        (a, b) = (factor * a, factor * b + step);
                        row.add_to(step / a * (weight * sigmoid(0.3 - along)), v);
                        if left == 0 || factor * a < SMALLEST {
                            v.iter_mut().zip(xi).for_each(|(v, xi)| *v = a * *v - b * xi);
                            (a, b) = (1.0, 0.0);
                        }
                    }
                });
            };
            for steps in [0, 1, 33, 198, 199, 500] {
                let steps_of = |client: usize| steps + client as u64 % 2;
                let expected = thetas([1, d, clients], steps_of, stated);
                let got = thetas([1, d, clients], steps_of, |cohort| all.advance(cohort));
                assert_eq!(got, expected, "{steps}");
            }
        }
    }
}
