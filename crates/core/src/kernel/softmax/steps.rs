//! Local steps on one record each, and on mini-batches.

use super::dots::dots;
use super::pass::Pass;
use super::tables::{ClassTables, MOST_CLASSES};
use super::tiles::{CORRECTED_STEP, Calls, EXTENDED_STEP, FactorTable, RowSum, STEP};
use crate::kernel::padding::WIDEST_SHORT;
use crate::kernel::rows::Aligned;
use crate::kernel::simd::{Simd, Strips, prefetch_all};
use crate::kernel::strips::with_strip;
use crate::rng::Stream;

/// How many records are multiplied with the rows of θ together: they and the rows of a few classes stay in the
/// first-level cache.
pub const TOGETHER: usize = 4;
/// The most classes whose rows are multiplied with a record in one pass over the record.
const MOST_CLASSES_TOGETHER: usize = 3;
/// The most records of several oracle calls that are drawn and added together; one call may have more.
const MOST_TOGETHER: usize = 256;

/// The local steps of one client in a round.
pub struct ClientSteps<'a> {
    /// The number of the client's set of records.
    pub set: usize,
    /// B, the records of an oracle call.
    pub batch: usize,
    /// The number of oracle calls that a step averages; 1 without `proximal`.
    pub calls: usize,
    /// The number of steps.
    pub steps: u64,
    /// The step size γ.
    pub step: f64,
    /// The client's stream.
    pub rng: &'a mut Stream,
    /// θ, padded rows, one per class, which the steps change.
    pub theta: &'a mut Aligned,
    /// ξ, padded rows, one per class, or empty if ξ is 0; not empty with `proximal`.
    pub correction: &'a Aligned,
    /// The proximal term of extended steps, which have such a term or average several oracle calls; `None` for plain
    /// steps.
    pub proximal: Option<PaddedProximal<'a>>,
}

/// The proximal term μ(θ − θ_t) of extended steps.
pub struct PaddedProximal<'a> {
    /// μ; 0 if steps are extended only because they average several oracle calls.
    pub weight: f64,
    /// θ_t, padded rows, one per class.
    pub anchor: &'a Aligned,
}

/// A record that is drawn for a step.
#[derive(Clone, Copy)]
struct DrawnRecord {
    /// Its padded row.
    row: *const f64,
    /// Its class.
    label: usize,
    /// The weight of its loss.
    loss_weight: f64,
}

/// Records that are drawn together for a step, and what is computed of them.
struct DrawnRecords {
    /// The padded row of each record.
    rows: Vec<*const f64>,
    /// The class of each record.
    labels: Vec<usize>,
    /// The loss weight of each record.
    loss_weights: Vec<f64>,
    /// The factors w (p_k − 1\[y = k\]) / B with which the records enter the field: for the first class one for each
    /// record, then for the next class.
    factors: Aligned,
    /// The distance from the factors for one class to the factors for the next class.
    distance: usize,
    /// Room for the folded products of [`TOGETHER`] records with all classes: for each product partial sums in one
    /// register, whose sum is a logit.
    partial: Aligned,
    /// Room for the logits of a register of records.
    logits: Aligned,
}

impl DrawnRecords {
    /// Room for `count` records and for what is computed of them with this number of classes.
    fn new(count: usize, classes: usize) -> Self {
        let distance = count.next_multiple_of(WIDEST_SHORT);
        Self {
            rows: vec![std::ptr::null(); count],
            labels: vec![0; count],
            loss_weights: vec![1.0; count],
            factors: Aligned::zeros(classes * distance),
            distance,
            partial: Aligned::zeros(WIDEST_SHORT * TOGETHER * classes),
            logits: Aligned::zeros(WIDEST_SHORT * classes),
        }
    }
}

/// Multiplies the factors of a record by the weight of its loss.
#[inline(always)]
fn weigh(loss_weight: f64, factors: &mut [f64]) {
    // A product with 1 has the same bits, and takes time.
    if loss_weight != 1.0 {
        factors.iter_mut().for_each(|factor| *factor *= loss_weight);
    }
}

impl ClassTables {
    /// Draws a record of a set, uniformly and by one draw of the stream.
    #[inline(always)]
    fn draw_record(&self, set: usize, rng: &mut Stream) -> DrawnRecord {
        let set = &self.sets[set];
        let record = rng.index(set.labels.len());
        DrawnRecord {
            row: set.rows[record * self.stride..].as_ptr(),
            label: usize::from(set.labels[record]),
            loss_weight: set.loss_weight(record),
        }
    }

    /// Runs plain local steps of one record each; `XI` says whether there is a correction. What the work says of
    /// batches, calls and a proximal term is not read. Each pass over θ makes a step and multiplies the result with the
    /// next step's record.
    ///
    /// # Safety
    /// `I` is present, and W registers of it are 16 numbers; θ and, if `XI`, ξ have a padded row for each class.
    #[inline(always)]
    pub(super) unsafe fn singles<I: Strips, const W: usize, const XI: bool>(
        &self,
        work: ClientSteps<'_>,
    ) {
        let ClientSteps { set, steps, step, rng, theta, correction, .. } = work;
        if steps == 0 {
            return;
        }
        let theta = theta.as_mut_ptr();
        let xi = correction.as_ptr();
        let mut partial = [[0.0; WIDEST_SHORT]; MOST_CLASSES];
        let mut factors = [0.0; MOST_CLASSES];
        let mut record = self.draw_record(set, rng);
        let mut next = if steps > 1 { self.draw_record(set, rng) } else { record };
        let pairs = self.classes.div_ceil(2);
        let part = (8 * self.stride).div_ceil(pairs).next_multiple_of(64);
        // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record.
        unsafe {
            self.products::<I, W>(&[record.row], theta, &mut partial, &[]);
            for left in (0..steps).rev() {
                with_strip!(I::Short, S => self.residuals::<I::Short, S>(&partial, &mut factors, record.label));
                weigh(record.loss_weight, &mut factors[..self.classes]);
                let after = if left > 1 { self.draw_record(set, rng) } else { next };
                for pair in 0..pairs {
                    let ahead = after.row.cast::<u8>().wrapping_add(pair * part);
                    prefetch_all(ahead, part);
                    let k = 2 * pair;
                    let from = k * self.stride;
                    let pass = Pass {
                        record: record.row,
                        next: next.row,
                        l2: self.l2,
                        step,
                        theta: theta.add(from),
                        xi: if XI { xi.add(from) } else { xi },
                    };
                    let stride = self.stride;
                    let factors = &factors[k..];
                    let partial = &mut partial[k..];
                    match (self.classes - k, left > 0) {
                        (1, true) => pass.run::<I, W, 1, XI, true>(stride, factors, partial),
                        (_, true) => pass.run::<I, W, 2, XI, true>(stride, factors, partial),
                        (1, false) => pass.run::<I, W, 1, XI, false>(stride, factors, partial),
                        (_, false) => pass.run::<I, W, 2, XI, false>(stride, factors, partial),
                    }
                }
                (record, next) = (next, after);
            }
        }
    }

    /// Runs local steps of one mini-batch each, or extended steps on the mean of several, with a proximal term or
    /// without.
    ///
    /// # Safety
    /// `I` is present, and W registers of it are 16 numbers; θ, ξ unless it is empty, and θ_t have a padded row for
    /// each class. With a proximal term ξ is not empty.
    #[inline(always)]
    pub(super) unsafe fn batches<I: Strips, const W: usize>(&self, work: ClientSteps<'_>) {
        let ClientSteps { set, batch, calls, steps, step, rng, theta, correction, proximal } = work;
        let theta = theta.as_mut_ptr();
        // As many oracle calls at a time as have records that stay in a cache together, and at least one.
        let most = (MOST_TOGETHER / batch).clamp(1, calls);
        let mut drawn = DrawnRecords::new(most * batch, self.classes);
        // The sum over the calls so far, if the calls of a step are added in several parts.
        let mut sums = Aligned::zeros(if most < calls { self.classes * self.stride } else { 0 });
        for _ in 0..steps {
            for first in (0..calls).step_by(most) {
                let now = most.min(calls - first);
                // SAFETY: passed on to the caller; θ is padded rows.
                unsafe {
                    self.draw_batches::<I, W>(&mut drawn, set, now * batch, batch, rng, theta);
                    let mut sum = RowSum {
                        rows: &drawn.rows[..now * batch],
                        factors: FactorTable {
                            first: drawn.factors.as_ptr(),
                            row_distance: 1,
                            class_distance: drawn.distance,
                        },
                        l2: self.l2,
                        step,
                        correction: correction.as_ptr(),
                        calls: Calls::NONE,
                    };
                    match &proximal {
                        None if correction.is_empty() => self.tiles::<I, STEP>(&sum, theta),
                        None => self.tiles::<I, CORRECTED_STEP>(&sum, theta),
                        Some(proximal) => {
                            sum.calls = Calls {
                                rows: batch,
                                count: calls,
                                sums: sums.as_mut_ptr(),
                                first: first == 0,
                                last: first + now == calls,
                                weight: proximal.weight,
                                anchor: proximal.anchor.as_ptr(),
                            };
                            self.tiles::<I, EXTENDED_STEP>(&sum, theta);
                        }
                    }
                }
            }
        }
    }

    /// Draws `count` records of a set, for one oracle call or for several, and computes the factors
    /// w (p_k − 1\[y = k\]) / B with which they enter the field of their call at θ, where B = `batch` is the number of
    /// records of a call.
    ///
    /// # Safety
    /// `I` is present, and W registers of it are 16 numbers; θ has a padded row for each class, and `drawn` was made
    /// for `count` records or more of K classes.
    #[inline(always)]
    unsafe fn draw_batches<I: Strips, const W: usize>(
        &self,
        drawn: &mut DrawnRecords,
        set: usize,
        count: usize,
        batch: usize,
        rng: &mut Stream,
        theta: *const f64,
    ) {
        let DrawnRecords { rows, labels, loss_weights, factors, distance, partial, logits } = drawn;
        let rows = &mut rows[..count];
        let labels = &mut labels[..count];
        let partial = partial.as_chunks_mut::<WIDEST_SHORT>().0;
        for b in 0..count {
            let record = self.draw_record(set, rng);
            rows[b] = record.row;
            labels[b] = record.label;
            loss_weights[b] = record.loss_weight;
        }
        for first in (0..count).step_by(TOGETHER) {
            let end = (first + TOGETHER).min(count);
            let ahead = &rows[end..(end + TOGETHER).min(count)];
            // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record,
            // and each class has a whole number of registers of factors.
            unsafe {
                self.products::<I, W>(&rows[first..end], theta, partial, ahead);
                for b in (first..end).step_by(I::Short::LANES) {
                    self.logits_in_lanes::<I::Short>(partial, b - first, end - first, logits);
                    let out = factors.as_mut_ptr().add(b);
                    let labels = &labels[b..end];
                    self.shares_in_lanes::<I::Short>(logits, labels, batch, out, *distance);
                }
            }
        }
        if self.loss_weights(set).is_some() {
            for factors in factors.chunks_exact_mut(*distance) {
                for (factor, loss_weight) in factors.iter_mut().zip(&loss_weights[..count]) {
                    *factor *= loss_weight;
                }
            }
        }
    }

    /// Writes the products of up to [`TOGETHER`] records with the rows of θ to `partial`, each folded down to one
    /// register: K of them for one record after the other. The records `ahead` are prefetched meanwhile.
    ///
    /// # Safety
    /// `I` is present, and W registers of it are 16 numbers; records are padded rows, and θ has one for each class.
    #[inline(always)]
    pub(super) unsafe fn products<I: Strips, const W: usize>(
        &self,
        records: &[*const f64],
        theta: *const f64,
        partial: &mut [[f64; WIDEST_SHORT]],
        ahead: &[*const f64],
    ) {
        let groups = self.classes.div_ceil(MOST_CLASSES_TOGETHER);
        let part = (8 * self.stride).div_ceil(groups).next_multiple_of(64);
        let mut k = 0;
        for group in 0..groups {
            // The classes that are left, divided as evenly as possible among the groups that are left.
            let together = (self.classes - k).div_ceil(groups - group);
            for (b, record) in records.iter().enumerate() {
                if let Some(ahead) = ahead.get(b) {
                    prefetch_all(ahead.cast::<u8>().wrapping_add(group * part), part);
                }
                let partial = &mut partial[b * self.classes + k..];
                // SAFETY: passed on to the caller.
                unsafe {
                    let theta = theta.add(k * self.stride);
                    match together {
                        1 => dots::<I, W, 1>(theta, *record, self.stride, partial),
                        2 => dots::<I, W, 2>(theta, *record, self.stride, partial),
                        _ => dots::<I, W, 3>(theta, *record, self.stride, partial),
                    }
                }
            }
            k += together;
        }
    }
}
