//! The residuals of a record, p_k − 1\[y = k\]: the probabilities of the classes, minus 1 at the record's own class.
//!
//! The *folded products* of a record are its products with the K rows of θ, each as partial sums in one register of at
//! most four lanes, whose sum is the logit of the class.

use super::tables::{ClassTables, whole};
use crate::kernel::exp::{LARGE, exps};
use crate::kernel::padding::WIDEST_SHORT;
use crate::kernel::simd::FoldEach;
use crate::kernel::strips::folded;

impl ClassTables {
    /// Writes the logits of a record to `u`, K numbers in whole registers, by adding up the lanes of the folded
    /// products; returns the greatest logit.
    ///
    /// # Safety
    /// `I` is present, with at most [`WIDEST_SHORT`] lanes; at `u` there is room for K numbers in whole registers.
    #[inline(always)]
    unsafe fn folded_logits<I: FoldEach>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        u: *mut f64,
    ) -> f64 {
        let partial = partial[..self.classes].as_ptr().cast::<f64>();
        // SAFETY: passed on to the caller.
        unsafe {
            let mut most = I::splat(f64::NEG_INFINITY);
            let mut k = 0;
            while k < self.classes {
                let mut sums = [most; WIDEST_SHORT];
                let mut lane = 0;
                while lane < I::LANES {
                    // Lanes beyond the last class repeat it.
                    let own = (k + lane).min(self.classes - 1);
                    sums[lane] = I::load(partial.add(own * WIDEST_SHORT));
                    lane += 1;
                }
                let logits = I::fold_each(sums);
                most = I::below(most, logits, logits, most);
                I::store(u.add(k), logits);
                k += I::LANES;
            }
            greatest::<I>(most)
        }
    }

    /// Writes the residuals p_k − 1\[y = k\] of a record of class y = `label` to `out`, K numbers in whole registers,
    /// from the folded products of the record with the rows of θ.
    ///
    /// # Safety
    /// `I` is present, with at most [`WIDEST_SHORT`] lanes, and W registers of it are 16 numbers; `label` is below K.
    #[inline(always)]
    pub(super) unsafe fn residuals<I: FoldEach, const W: usize>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        out: &mut [f64],
        label: usize,
    ) {
        let lanes = self.classes.next_multiple_of(I::LANES);
        let out = &mut out[..lanes];
        let u = out.as_mut_ptr();
        let live = self.live.as_ptr();
        // SAFETY: passed on to the caller; whole registers of `lanes` numbers.
        unsafe {
            let zero = I::splat(0.0);
            let one = I::splat(1.0);
            let most = I::splat(self.folded_logits::<I>(partial, u));
            let mut large = zero;
            for k in (0..lanes).step_by(I::LANES) {
                let below = I::sub(I::load(u.add(k)), most);
                large = I::add(large, I::below(I::abs(below), I::splat(LARGE), zero, one));
                I::store(u.add(k), below);
            }
            exps::<I>(out, I::fold(large) == 0.0);
            let mut sums = [zero; W];
            for k in (0..lanes).step_by(I::LANES) {
                let exp = I::below(zero, I::load(live.add(k)), I::load(u.add(k)), zero);
                I::store(u.add(k), exp);
                let r = k / I::LANES % W;
                sums[r] = I::add(sums[r], exp);
            }
            let total = I::splat(folded::<I, W>(sums));
            let own = self.indicators.as_ptr().add(label * whole(self.classes));
            for k in (0..lanes).step_by(I::LANES) {
                let p = I::div(I::load(u.add(k)), total);
                I::store(u.add(k), I::sub(p, I::load(own.add(k))));
            }
        }
    }
}

/// The greatest number of a register.
///
/// # Safety
/// `I` is present, with at most [`WIDEST_SHORT`] lanes.
#[inline(always)]
unsafe fn greatest<I: FoldEach>(v: I::V) -> f64 {
    let mut each = [0.0; WIDEST_SHORT];
    // SAFETY: passed on to the caller; a register has at most as many lanes.
    unsafe { I::store(each.as_mut_ptr(), v) };
    let mut most = each[0];
    for &x in &each[1..I::LANES] {
        most = if x > most { x } else { most };
    }
    most
}
