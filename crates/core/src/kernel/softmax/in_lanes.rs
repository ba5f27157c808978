//! What is computed of several records at a time, one in each lane: factors with which records enter a field, and
//! Bregman divergences of log Σ_k exp(u_k).
//!
//! Numbers of the classes of as many records as a register has lanes are K registers, one after the other: register k
//! has a number of class k for each record. The *folded products* of a record are its products with the K rows of θ,
//! each as partial sums in one register of at most four lanes, whose sum is the logit of the class.

use super::steps::TOGETHER;
use super::tables::ClassTables;
use crate::kernel::exp::{LARGE, beyond_linear, beyond_linears, exps};
use crate::kernel::fold::{WIDTH, fold_sum};
use crate::kernel::log::log1p;
use crate::kernel::padding::{WIDEST_SHORT, padded};
use crate::kernel::rows::Aligned;
use crate::kernel::simd::{FoldEach, Simd, Strips};
use crate::kernel::vectors::dot;

/// The largest change of a logit whose exponential does not overflow.
const FAR: f64 = 700.0;

/// The Bregman divergence of log Σ_k exp(u_k) for a record with probabilities p whose logits change by h: log Σ_k p_k
/// exp(h_k) − Σ_k p_k h_k, which is 0 or more. Its error is some units in the last place also where h is small. This is
/// the definition, which kernels repeat in lanes. `h` is overwritten.
pub fn divergence(p: &[f64], h: &mut [f64]) -> f64 {
    let mean = dot(p, h);
    h.iter_mut().for_each(|h| *h -= mean);
    divergence_from_mean(p, h)
}

/// [`divergence`] for changes h of the logits whose mean Σ p_k h_k is 0.
fn divergence_from_mean(p: &[f64], h: &[f64]) -> f64 {
    let most = h.iter().fold(f64::NEG_INFINITY, |most, h| most.max(*h));
    if most > FAR {
        let sum = fold_sum(p.len(), |k| p[k] * libm::exp(h[k] - most));
        return most + libm::log(sum);
    }
    libm::log1p(fold_sum(p.len(), |k| p[k] * beyond_linear(h[k])))
}

impl ClassTables {
    /// Writes the logits of a set's records at θ to `out`, K numbers for each record. With probabilities `apart_from`,
    /// K numbers for each record too, it writes one number for each record instead: its [`divergence`] if its logits
    /// change from those of the probabilities by the logits at θ.
    ///
    /// # Safety
    /// `I` is present, and W registers of it are 16 numbers; θ has a padded row for each class.
    #[inline(always)]
    pub(super) unsafe fn logits_of<I: Strips, const W: usize>(
        &self,
        set: usize,
        theta: &Aligned,
        apart_from: Option<&[f64]>,
        out: &mut [f64],
    ) {
        let classes = self.classes;
        let lanes = I::Short::LANES;
        let all: Vec<_> = self.rows(set).iter().map(<[f64]>::as_ptr).collect();
        let mut room = Aligned::zeros(WIDEST_SHORT * TOGETHER * classes);
        let partial = room.as_chunks_mut::<WIDEST_SHORT>().0;
        let mut u = Aligned::zeros(classes * lanes);
        let mut p = Aligned::zeros(classes * lanes);
        for (group, rows) in all.chunks(TOGETHER).enumerate() {
            // SAFETY: passed on to the caller.
            unsafe { self.products::<I, W>(rows, theta.as_ptr(), partial, &[]) };
            for first in (0..rows.len()).step_by(lanes) {
                let begin = group * TOGETHER + first;
                let end = group * TOGETHER + rows.len();
                let records = begin..end.min(begin + lanes);
                let numbers = classes * records.start..classes * records.end;
                // SAFETY: passed on to the caller.
                unsafe {
                    self.logits_in_lanes::<I::Short>(partial, first, rows.len(), &mut u);
                    let Some(apart_from) = apart_from else {
                        for (lane, out) in out[numbers].chunks_exact_mut(classes).enumerate() {
                            let u = u.chunks_exact(lanes).map(|class| class[lane]);
                            out.iter_mut().zip(u).for_each(|(out, u)| *out = u);
                        }
                        continue;
                    };
                    for (lane, own) in apart_from[numbers].chunks_exact(classes).enumerate() {
                        let p = p.chunks_exact_mut(lanes).map(|class| &mut class[lane]);
                        p.zip(own).for_each(|(p, own)| *p = *own);
                    }
                    let mut each = [0.0; WIDEST_SHORT];
                    let divergences = self.divergences_in_lanes::<I::Short>(&p, &mut u);
                    I::Short::store(each.as_mut_ptr(), divergences);
                    out[records.clone()].copy_from_slice(&each[..records.len()]);
                }
            }
        }
    }

    /// Writes the logits of a register of records, from number `first` on, to `out`, K registers. `partial` has the
    /// folded products of `records` records, K for each. Lanes beyond the last record repeat it.
    ///
    /// # Safety
    /// `I` is present, with at most [`WIDEST_SHORT`] lanes, and there is a record.
    #[inline(always)]
    pub(super) unsafe fn logits_in_lanes<I: FoldEach>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        first: usize,
        records: usize,
        out: &mut [f64],
    ) {
        let partial = partial[..records * self.classes].as_ptr();
        for (k, out) in out.chunks_exact_mut(I::LANES).take(self.classes).enumerate() {
            // SAFETY: passed on to the caller; a record before `records`, and a whole register.
            unsafe {
                let mut sums = [I::splat(0.0); WIDEST_SHORT];
                let mut lane = 0;
                while lane < I::LANES {
                    let record = (first + lane).min(records - 1);
                    sums[lane] = I::load(partial.add(record * self.classes + k).cast());
                    lane += 1;
                }
                I::store(out.as_mut_ptr(), I::fold_each(sums));
            }
        }
    }

    /// Writes the factors (p_k − 1\[y = k\]) / B of a register of records, with which they enter the field of a batch
    /// of B records: those for class k go to the register at `out` + k · `distance`. `u` are the logits of the records,
    /// K registers, which are overwritten, and `labels` the classes y of these records and perhaps of later ones.
    ///
    /// # Safety
    /// `I` is present; at `out` there is room for K registers at this distance.
    #[inline(always)]
    pub(super) unsafe fn shares_in_lanes<I: Simd>(
        &self,
        u: &mut [f64],
        labels: &[usize],
        batch: usize,
        out: *mut f64,
        distance: usize,
    ) {
        let u = &mut u[..self.classes * I::LANES];
        // SAFETY: passed on to the caller; whole registers of each class.
        unsafe {
            let zero = I::splat(0.0);
            let one = I::splat(1.0);
            let mut most = I::load(u.as_ptr());
            for u in u.chunks_exact(I::LANES) {
                let u = I::load(u.as_ptr());
                most = I::below(most, u, u, most);
            }
            let mut large = zero;
            for u in u.chunks_exact_mut(I::LANES) {
                let below = I::sub(I::load(u.as_ptr()), most);
                large = I::add(large, I::below(I::abs(below), I::splat(LARGE), zero, one));
                I::store(u.as_mut_ptr(), below);
            }
            exps::<I>(u, I::fold(large) == 0.0);
            let total = sum::<I>(None, u);
            // A product with a power of two is the quotient by its inverse, to the last bit.
            let divisor = I::splat(batch as f64);
            let inverse = I::splat(1.0 / batch as f64);
            let exact = batch.is_power_of_two();
            for (k, u) in u.chunks_exact_mut(I::LANES).enumerate() {
                let p = I::div(I::load(u.as_ptr()), total);
                let share = if exact { I::mul(p, inverse) } else { I::div(p, divisor) };
                I::store(u.as_mut_ptr(), p);
                I::store(out.add(k * distance), share);
            }
            for (lane, label) in labels.iter().take(I::LANES).enumerate() {
                // At the record's own class 1 is subtracted.
                let own_share = (u[label * I::LANES + lane] - 1.0) / batch as f64;
                *out.add(label * distance + lane) = own_share;
            }
        }
    }

    /// The [`divergence`] of each record of a register, from their probabilities `p` and the changes `h` of their
    /// logits, K registers each; `h` is overwritten.
    ///
    /// # Safety
    /// `I` is present, with at most [`WIDEST_SHORT`] lanes.
    #[inline(always)]
    pub(super) unsafe fn divergences_in_lanes<I: Simd>(&self, p: &[f64], h: &mut [f64]) -> I::V {
        let p = &p[..self.classes * I::LANES];
        let h = &mut h[..self.classes * I::LANES];
        // SAFETY: passed on to the caller; whole registers of each class.
        unsafe {
            let mean = sum::<I>(Some(p), h);
            let mut most = I::splat(f64::NEG_INFINITY);
            for h in h.chunks_exact_mut(I::LANES) {
                let from_mean = I::sub(I::load(h.as_ptr()), mean);
                most = I::below(most, from_mean, from_mean, most);
                I::store(h.as_mut_ptr(), from_mean);
            }
            if I::fold(I::below(I::splat(FAR), most, I::splat(1.0), I::splat(0.0))) > 0.0 {
                let mut each = [0.0; WIDEST_SHORT];
                for (lane, each) in each[..I::LANES].iter_mut().enumerate() {
                    let p = lane_of_classes(p, I::LANES, lane);
                    let h = lane_of_classes(h, I::LANES, lane);
                    *each = divergence_from_mean(&p, &h);
                }
                return I::load(each.as_ptr());
            }
            beyond_linears::<I>(h);
            log1p::<I>(sum::<I>(Some(p), h))
        }
    }
}

/// The numbers of one record, one per class: lane number `lane` of each of K registers.
fn lane_of_classes(registers: &[f64], lanes: usize, lane: usize) -> Vec<f64> {
    registers.chunks_exact(lanes).map(|class| class[lane]).collect()
}

/// Σ_k x_k or, with `p`, Σ_k p_k x_k for each record of a register, in the order of [`fold_sum`]; `x` and `p` are K
/// registers.
///
/// # Safety
/// `I` is present, and these are whole registers.
#[inline(always)]
unsafe fn sum<I: Simd>(p: Option<&[f64]>, x: &[f64]) -> I::V {
    let classes = x.len() / I::LANES;
    // SAFETY: passed on to the caller.
    unsafe {
        let mut acc = [I::splat(0.0); WIDTH];
        for k in 0..classes {
            let mut term = I::load(x.as_ptr().add(k * I::LANES));
            if let Some(p) = p {
                term = I::mul(I::load(p.as_ptr().add(k * I::LANES)), term);
            }
            acc[k % WIDTH] = if k < WIDTH { term } else { I::add(acc[k % WIDTH], term) };
        }
        if classes > WIDTH {
            for k in classes..padded(classes) {
                acc[k % WIDTH] = I::add(acc[k % WIDTH], I::splat(0.0));
            }
        }
        let mut n = classes.min(WIDTH).next_power_of_two() / 2;
        while n > 0 {
            for i in 0..n {
                acc[i] = I::add(acc[i], acc[i + n]);
            }
            n /= 2;
        }
        acc[0]
    }
}
