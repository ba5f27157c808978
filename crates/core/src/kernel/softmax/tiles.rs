//! Sums of rows, times factors, added to rows of θ in tiles of five classes and two registers.

use super::ClassTables;
use crate::kernel::simd::Strips;

/// What tiles do with their sums: they add them to the target, or they begin with λθ and make a
/// step, with a correction or without one.
pub const ADD: u8 = 0;
pub const STEP: u8 = 1;
pub const CORRECTED_STEP: u8 = 2;

/// A sum of rows, times factors.
pub struct RowSum<'a> {
    pub rows: &'a [*const f64],
    /// The factors of the first row, and the distance to those of the next.
    pub factors: (*const f64, usize),
    pub l2: f64,
    pub step: f64,
    pub correction: *const f64,
}

impl ClassTables {
    /// All tiles of a sum.
    ///
    /// # Safety
    /// As for `execute`; `target` is padded rows.
    #[inline(always)]
    pub(super) unsafe fn tiles<I: Strips, const KIND: u8>(
        &self,
        sum: &RowSum<'_>,
        target: *mut f64,
    ) {
        let mut column = 0;
        // SAFETY: passed on to the caller.
        unsafe {
            while column < self.stride {
                let two = column + 2 * I::LANES <= self.stride;
                let mut k = 0;
                while k < self.classes {
                    let left = self.classes - k;
                    let at = (target, k, column);
                    match (left, two) {
                        (1, true) => sum.tile::<I, KIND, 1, 2>(at, self.stride),
                        (2, true) => sum.tile::<I, KIND, 2, 2>(at, self.stride),
                        (3, true) => sum.tile::<I, KIND, 3, 2>(at, self.stride),
                        (4, true) => sum.tile::<I, KIND, 4, 2>(at, self.stride),
                        (_, true) => sum.tile::<I, KIND, 5, 2>(at, self.stride),
                        (1, false) => sum.tile::<I, KIND, 1, 1>(at, self.stride),
                        (2, false) => sum.tile::<I, KIND, 2, 1>(at, self.stride),
                        (3, false) => sum.tile::<I, KIND, 3, 1>(at, self.stride),
                        (4, false) => sum.tile::<I, KIND, 4, 1>(at, self.stride),
                        (_, false) => sum.tile::<I, KIND, 5, 1>(at, self.stride),
                    }
                    k += 5;
                }
                column += if two { 2 } else { 1 } * I::LANES;
            }
        }
    }
}

impl RowSum<'_> {
    /// `CLASSES` classes from k on, `REGISTERS` registers from a column on, in the order of rows.
    ///
    /// # Safety
    /// `I` is present, and all rows have these columns.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn tile<I: Strips, const KIND: u8, const CLASSES: usize, const REGISTERS: usize>(
        &self,
        (target, k, column): (*mut f64, usize, usize),
        stride: usize,
    ) {
        let (factors, pitch) = self.factors;
        let at = |class: usize, r: usize| (k + class) * stride + column + r * I::LANES;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut sums = [[I::splat(0.0); REGISTERS]; CLASSES];
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let start = I::load(target.add(at(class, r)));
                    let scale = I::splat(self.l2);
                    sums[class][r] = if KIND == ADD { start } else { I::mul(scale, start) };
                }
            }
            let mut factors = factors.add(k);
            for row in self.rows {
                let x = I::load_all::<REGISTERS>(row.add(column));
                for class in 0..CLASSES {
                    let factor = I::splat(*factors.add(class));
                    for r in 0..REGISTERS {
                        sums[class][r] = I::add(sums[class][r], I::mul(factor, x[r]));
                    }
                }
                factors = factors.wrapping_add(pitch);
            }
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let to = target.add(at(class, r));
                    let sum = sums[class][r];
                    let value = match KIND {
                        ADD => sum,
                        STEP => descended::<I>(I::load(to), sum, self.step),
                        _ => {
                            let xi = I::load(self.correction.add(at(class, r)));
                            descended::<I>(I::load(to), I::add(sum, xi), self.step)
                        }
                    };
                    I::store(to, value);
                }
            }
        }
    }
}

/// θ − step · field.
///
/// # Safety
/// `I` is present.
#[inline(always)]
pub unsafe fn descended<I: Strips>(theta: I::V, field: I::V, step: f64) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe { I::sub(theta, I::mul(I::splat(step), field)) }
}
