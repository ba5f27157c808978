//! Bregman divergences of log Σ_k exp(u_k) between records' logits, records in lanes.

use super::{ClassTables, MOST_CLASSES, TOGETHER};
use crate::kernel::exp::{beyond_linear, beyond_linears};
use crate::kernel::log::log1p;
use crate::kernel::simd::{FoldEach, Simd, Strips, WIDEST_SHORT, padded};
use crate::kernel::{Aligned, WIDTH, dot, fold_sum};

/// Numbers of [`TOGETHER`] records: those of a class one after the other.
pub type SideBySide = [[f64; WIDEST_SHORT]; MOST_CLASSES];

/// Up to here, exponentials of changes of logits do not overflow.
const FAR: f64 = 700.0;

/// The Bregman divergence of log Σ_k exp(u_k) between the logits of a record with probabilities p
/// and those that are apart from them by h, log Σ_k p_k exp(h_k) − Σ_k p_k h_k, 0 or more; to some
/// ulps also where h is small: the definition. `h` is overwritten.
pub fn divergence(p: &[f64], h: &mut [f64]) -> f64 {
    let mean = dot(p, h);
    h.iter_mut().for_each(|h| *h -= mean);
    centred(p, h)
}

/// [`divergence`] where Σ p_k h_k is 0.
fn centred(p: &[f64], h: &[f64]) -> f64 {
    let most = h.iter().fold(f64::NEG_INFINITY, |most, h| most.max(*h));
    if most > FAR {
        let sum = fold_sum(p.len(), |k| p[k] * libm::exp(h[k] - most));
        return most + libm::log(sum);
    }
    libm::log1p(fold_sum(p.len(), |k| p[k] * beyond_linear(h[k])))
}

impl ClassTables {
    /// The [`divergence`] of each of these records of a set, whose logits change by those of θ.
    ///
    /// # Safety
    /// As for `execute`; θ is padded rows, and `p` has K numbers per record.
    #[inline(always)]
    pub(super) unsafe fn divergences_of<I: Strips, const W: usize>(
        &self,
        set: usize,
        theta: &Aligned,
        p: &[f64],
        out: &mut [f64],
    ) {
        let rows: Vec<_> = self.rows(set).iter().map(<[f64]>::as_ptr).collect();
        let mut partial = [[0.0; WIDEST_SHORT]; TOGETHER * MOST_CLASSES];
        let (mut along, mut weights) =
            ([[0.0; WIDEST_SHORT]; MOST_CLASSES], [[0.0; WIDEST_SHORT]; MOST_CLASSES]);
        let records = rows.chunks(TOGETHER).zip(p.chunks(TOGETHER * self.classes));
        for ((rows, p), out) in records.zip(out.chunks_mut(TOGETHER)) {
            let mut each = [0.0; WIDEST_SHORT];
            for (lane, p) in p.chunks_exact(self.classes).enumerate() {
                for (weights, p) in weights.iter_mut().zip(p) {
                    weights[lane] = *p;
                }
            }
            // SAFETY: passed on to the caller; whole registers of each class.
            unsafe {
                self.products::<I, W>(rows, theta.as_ptr(), &mut partial, &[]);
                self.side_by_side::<I::Short>(&partial, rows.len(), &mut along);
                for first in (0..rows.len()).step_by(I::Short::LANES) {
                    self.divergences_in_lanes::<I::Short>(&weights, &mut along, first, &mut each);
                }
            }
            out.copy_from_slice(&each[..out.len()]);
        }
    }

    /// The logits of records from the folded products, records beside each other. Beyond the last
    /// record it is repeated.
    ///
    /// # Safety
    /// As for `execute`; there are K products of each record.
    #[inline(always)]
    pub(super) unsafe fn side_by_side<I: FoldEach>(
        &self,
        partial: &[[f64; WIDEST_SHORT]],
        records: usize,
        out: &mut SideBySide,
    ) {
        let partial = partial[..records * self.classes].as_ptr();
        for (k, out) in out[..self.classes].iter_mut().enumerate() {
            for first in (0..records).step_by(I::LANES) {
                // SAFETY: passed on to the caller; `first` is a multiple of the lanes, of which
                // `out` has whole registers.
                unsafe {
                    let mut sums = [I::splat(0.0); WIDEST_SHORT];
                    for (lane, sums) in sums[..I::LANES].iter_mut().enumerate() {
                        let record = (first + lane).min(records - 1);
                        *sums = I::load(partial.add(record * self.classes + k).cast());
                    }
                    I::store(out.as_mut_ptr().add(first), I::fold_each(sums));
                }
            }
        }
    }

    /// The divergences of a register of records from `first` on, from their probabilities and the
    /// changes of their logits, which are overwritten.
    ///
    /// # Safety
    /// As for `execute`; there is a register from `first` on.
    #[inline(always)]
    unsafe fn divergences_in_lanes<I: Simd>(
        &self,
        p: &SideBySide,
        h: &mut SideBySide,
        first: usize,
        out: &mut [f64; WIDEST_SHORT],
    ) {
        let (p, h) = (&p[..self.classes], &mut h[..self.classes]);
        // SAFETY: passed on to the caller.
        unsafe {
            let mean = weighted_sum::<I>(p, h, first);
            let mut most = I::splat(f64::NEG_INFINITY);
            for h in &mut *h {
                let h = h.as_mut_ptr().add(first);
                let from_mean = I::sub(I::load(h), mean);
                most = I::below(most, from_mean, from_mean, most);
                I::store(h, from_mean);
            }
            let far = I::below(I::splat(FAR), most, I::splat(1.0), I::splat(0.0));
            if I::fold(far) > 0.0 {
                for record in first..first + I::LANES {
                    let of = |all: &[[f64; WIDEST_SHORT]]| -> Vec<f64> {
                        all.iter().map(|class| class[record]).collect()
                    };
                    out[record] = centred(&of(p), &of(h));
                }
                return;
            }
            for h in &mut *h {
                let h = h.as_mut_ptr().add(first);
                I::store(h, beyond_linears::<I>(I::load(h)));
            }
            I::store(out.as_mut_ptr().add(first), log1p::<I>(weighted_sum::<I>(p, h, first)));
        }
    }
}

/// Σ_k p_k x_k in the order of [`fold_sum`], of a register of records from `first` on.
///
/// # Safety
/// `I` is present, and there is a register from `first` on.
#[inline(always)]
unsafe fn weighted_sum<I: Simd>(
    p: &[[f64; WIDEST_SHORT]],
    x: &[[f64; WIDEST_SHORT]],
    first: usize,
) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut acc = [I::splat(0.0); WIDTH];
        for (k, (p, x)) in p.iter().zip(x).enumerate() {
            let (p, x) = (I::load(p.as_ptr().add(first)), I::load(x.as_ptr().add(first)));
            let term = I::mul(p, x);
            acc[k % WIDTH] = if k < WIDTH { term } else { I::add(acc[k % WIDTH], term) };
        }
        if p.len() > WIDTH {
            for k in p.len()..padded(p.len()) {
                acc[k % WIDTH] = I::add(acc[k % WIDTH], I::splat(0.0));
            }
        }
        let mut n = p.len().min(WIDTH).next_power_of_two() / 2;
        while n > 0 {
            for i in 0..n {
                acc[i] = I::add(acc[i], acc[i + n]);
            }
            n /= 2;
        }
        acc[0]
    }
}
