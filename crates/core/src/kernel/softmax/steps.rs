//! Local steps on one record each, and on mini-batches.

use super::dots::dots;
use super::pass::Pass;
use super::tiles::{CORRECTED_STEP, RowSum, STEP};
use super::{ClassTables, MOST_CLASSES, whole};
use crate::kernel::Aligned;
use crate::kernel::simd::{Simd, Strips, WIDEST_SHORT, prefetch_all};
use crate::rng::Stream;

/// Records whose products with a pair of classes are computed together: both stay in the
/// first-level cache.
pub const TOGETHER: usize = 4;

/// Calls a generic function with the number of registers of the class lanes that are 16 numbers.
macro_rules! with_short {
    ($I:ident, $S:ident => $call:expr) => {
        match $I::Short::LANES {
            1 => {
                const $S: usize = 16;
                $call
            }
            2 => {
                const $S: usize = 8;
                $call
            }
            _ => {
                const $S: usize = 4;
                $call
            }
        }
    };
}

/// The local steps of one client.
pub struct ClientSteps<'a> {
    pub set: usize,
    pub batch: usize,
    pub steps: u64,
    pub step: f64,
    pub rng: &'a mut Stream,
    /// Padded rows, one per class.
    pub theta: &'a mut Aligned,
    /// Padded rows, or empty if ξ is 0.
    pub correction: &'a Aligned,
}

impl ClassTables {
    /// A record of a set and its class.
    #[inline(always)]
    fn drawn(&self, set: usize, rng: &mut Stream) -> (*const f64, usize) {
        let set = &self.sets[set];
        let record = rng.index(set.labels.len());
        (set.rows[record * self.stride..].as_ptr(), usize::from(set.labels[record]))
    }

    /// Steps of one record each; `XI` says whether there is a correction.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(always)]
    pub(super) unsafe fn singles<I: Strips, const W: usize, const XI: bool>(
        &self,
        work: ClientSteps<'_>,
    ) {
        let ClientSteps { set, steps, step, rng, theta, correction, .. } = work;
        if steps == 0 {
            return;
        }
        let (theta, xi) = (theta.as_mut_ptr(), correction.as_ptr());
        let mut partial = [[0.0; WIDEST_SHORT]; MOST_CLASSES];
        let mut factors = [0.0; MOST_CLASSES];
        let mut record = self.drawn(set, rng);
        let mut next = if steps > 1 { self.drawn(set, rng) } else { record };
        let pairs = self.classes.div_ceil(2);
        let part = (8 * self.stride).div_ceil(pairs).next_multiple_of(64);
        // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record.
        unsafe {
            self.products::<I, W>(&[record.0], theta, &mut partial, &[]);
            for left in (0..steps).rev() {
                with_short!(I, S => self.residuals::<I::Short, S>(&partial, &mut factors, (record.1, 1)));
                let after = if left > 1 { self.drawn(set, rng) } else { next };
                for pair in 0..pairs {
                    let ahead = after.0.cast::<u8>().wrapping_add(pair * part);
                    prefetch_all(ahead, part);
                    let k = 2 * pair;
                    let rows = Pass { record: record.0, next: next.0, l2: self.l2, step };
                    let (from, stride) = (k * self.stride, self.stride);
                    let own = (theta.add(from), if XI { xi.add(from) } else { xi });
                    let (factors, partial) = (&factors[k..], &mut partial[k..]);
                    match (self.classes - k, left > 0) {
                        (1, true) => rows.run::<I, W, 1, XI, true>(own, stride, factors, partial),
                        (_, true) => rows.run::<I, W, 2, XI, true>(own, stride, factors, partial),
                        (1, false) => rows.run::<I, W, 1, XI, false>(own, stride, factors, partial),
                        (_, false) => rows.run::<I, W, 2, XI, false>(own, stride, factors, partial),
                    }
                }
                (record, next) = (next, after);
            }
        }
    }

    /// Steps of a mini-batch each.
    ///
    /// # Safety
    /// As for `execute`.
    #[inline(always)]
    pub(super) unsafe fn batches<I: Strips, const W: usize>(&self, work: ClientSteps<'_>) {
        let ClientSteps { set, batch, steps, step, rng, theta, correction } = work;
        let lanes = whole(self.classes);
        let mut rows = vec![std::ptr::null(); batch];
        let mut labels = vec![0; batch];
        let mut factors = Aligned::zeros(batch * lanes);
        let mut partial = [[0.0; WIDEST_SHORT]; TOGETHER * MOST_CLASSES];
        for _ in 0..steps {
            for (row, label) in rows.iter_mut().zip(&mut labels) {
                (*row, *label) = self.drawn(set, rng);
            }
            let theta = theta.as_mut_ptr();
            // SAFETY: passed on to the caller; a row of `stride` numbers starts at each record,
            // and there are `lanes` factors for each.
            unsafe {
                for first in (0..batch).step_by(TOGETHER) {
                    let end = (first + TOGETHER).min(batch);
                    let ahead = &rows[end..(end + TOGETHER).min(batch)];
                    self.products::<I, W>(&rows[first..end], theta, &mut partial, ahead);
                    for b in first..end {
                        let partial = &partial[(b - first) * self.classes..];
                        let factors = &mut factors[b * lanes..][..lanes];
                        with_short!(I, S => self.residuals::<I::Short, S>(partial, factors, (labels[b], batch)));
                    }
                }
                let sum = RowSum {
                    rows: &rows,
                    factors: (factors.as_ptr(), lanes),
                    l2: self.l2,
                    step,
                    correction: correction.as_ptr(),
                };
                if correction.is_empty() {
                    self.tiles::<I, STEP>(&sum, theta);
                } else {
                    self.tiles::<I, CORRECTED_STEP>(&sum, theta);
                }
            }
        }
    }

    /// The products of up to [`TOGETHER`] records with all classes of θ, folded to one register
    /// each; K of them per record. Other records are prefetched.
    ///
    /// # Safety
    /// As for `execute`; records and θ are padded rows, and `partial` has room.
    #[inline(always)]
    pub(super) unsafe fn products<I: Strips, const W: usize>(
        &self,
        records: &[*const f64],
        theta: *const f64,
        partial: &mut [[f64; WIDEST_SHORT]],
        ahead: &[*const f64],
    ) {
        let pairs = self.classes.div_ceil(2);
        let part = (8 * self.stride).div_ceil(pairs).next_multiple_of(64);
        // SAFETY: passed on to the caller.
        unsafe {
            for pair in 0..pairs {
                let k = 2 * pair;
                let theta = theta.add(k * self.stride);
                for (b, record) in records.iter().enumerate() {
                    if let Some(ahead) = ahead.get(b) {
                        prefetch_all(ahead.cast::<u8>().wrapping_add(pair * part), part);
                    }
                    let partial = &mut partial[b * self.classes + k..];
                    if k + 1 < self.classes {
                        dots::<I, W, 2>(theta, *record, self.stride, partial);
                    } else {
                        dots::<I, W, 1>(theta, *record, self.stride, partial);
                    }
                }
            }
        }
    }
}
