//! A step with one record and the logits of the next, in one pass over two classes of θ.

use super::dots::add_products;
use super::tiles::descended;
use crate::kernel::fold::WIDTH;
use crate::kernel::padding::WIDEST_SHORT;
use crate::kernel::simd::Strips;
use crate::kernel::strips::{over_strips, to_register};

/// A local step on one record for some classes, and the products of the next step's record with the rows of θ that
/// result, in one pass over these rows.
pub struct Pass {
    /// x, the padded row of this step's record.
    pub record: *const f64,
    /// The padded row of the next step's record.
    pub next: *const f64,
    /// λ, the weight of the penalty λ/2 ‖θ‖².
    pub l2: f64,
    /// γ, the step size.
    pub step: f64,
    /// The padded rows of θ of the classes, from the first class of the pass on.
    pub theta: *mut f64,
    /// The padded rows of ξ of the classes, which are read only if there is a correction.
    pub xi: *const f64,
}

impl Pass {
    /// Makes the step for `CLASSES` classes k, in whose fields the record has the factors p_k − 1\[y = k\]; with `XI`
    /// there is a correction. With `DOTS` the products of the new rows with the next record, each folded down to one
    /// register, go to `partial`.
    ///
    /// # Safety
    /// `I` is present, W registers of it are 16 numbers, and rows have `stride` numbers, a multiple of 4 and of the
    /// lanes of `I`: those of the two records, and for each class those of θ and, if `XI`, of ξ. `factors` and
    /// `partial` have an entry for each class.
    #[inline(always)]
    pub unsafe fn run<
        I: Strips,
        const W: usize,
        const CLASSES: usize,
        const XI: bool,
        const DOTS: bool,
    >(
        &self,
        stride: usize,
        factors: &[f64],
        partial: &mut [[f64; WIDEST_SHORT]],
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut scale = [I::splat(0.0); CLASSES];
            for class in 0..CLASSES {
                scale[class] = I::splat(factors[class]);
            }
            let mut sums = [[I::splat(0.0); W]; CLASSES];
            over_strips!(I, W, stride, |column, r| {
                let new = self.step_register::<I, CLASSES, XI>(stride, column, scale);
                if DOTS {
                    add_products::<I, W, CLASSES>(&mut sums, r, self.next.add(column), new);
                }
            });
            if DOTS {
                for class in 0..CLASSES {
                    I::store_short(partial[class].as_mut_ptr(), to_register::<I, W>(sums[class]));
                }
            }
        }
    }

    /// Makes the step for one register of each class, from a column on, and returns the new values. `scale` has the
    /// factor of each class in all lanes; with `XI` there is a correction.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    unsafe fn step_register<I: Strips, const CLASSES: usize, const XI: bool>(
        &self,
        stride: usize,
        column: usize,
        scale: [I::V; CLASSES],
    ) -> [I::V; CLASSES] {
        // SAFETY: passed on to the caller.
        unsafe {
            let x = I::load(self.record.add(column));
            let mut new = scale;
            for (class, new) in new.iter_mut().enumerate() {
                let i = class * stride + column;
                let old = I::load(self.theta.add(i));
                let field = I::add(I::mul(I::splat(self.l2), old), I::mul(*new, x));
                let field = if XI { I::add(field, I::load(self.xi.add(i))) } else { field };
                *new = descended::<I>(old, field, self.step);
                I::store(self.theta.add(i), *new);
            }
            new
        }
    }
}
