//! Sums of rows, times factors, added to rows of θ in tiles of five classes and two registers.

use super::ClassTables;
use crate::kernel::simd::Strips;

/// What tiles do with their sums: they add them to the target, or they begin with λθ and make a
/// step, with a correction or without one, or with a correction and the terms of [`Calls`].
pub const ADD: u8 = 0;
pub const STEP: u8 = 1;
pub const CORRECTED_STEP: u8 = 2;
pub const EXTENDED_STEP: u8 = 3;

/// A sum of rows, times factors.
pub struct RowSum<'a> {
    pub rows: &'a [*const f64],
    /// The factors of the first row, and the distance to those of the next.
    pub factors: (*const f64, usize),
    pub l2: f64,
    pub step: f64,
    pub correction: *const f64,
    /// Read by extended steps only.
    pub calls: Calls,
}

/// The oracle calls of an extended step, of which the rows of a sum are a part or all, and its
/// proximal term.
pub struct Calls {
    /// The rows of a call.
    pub rows: usize,
    /// All calls of the step.
    pub count: usize,
    /// Where the sum of the calls so far is kept between the parts of a step.
    pub sums: *mut f64,
    /// Whether these are the first calls of the step, and whether they are the last.
    pub first: bool,
    pub last: bool,
    /// μ and θ_t.
    pub proximal: (f64, *const f64),
}

impl Calls {
    /// Of a sum that is no extended step.
    pub const NONE: Self = Self {
        rows: usize::MAX,
        count: 1,
        sums: std::ptr::null_mut(),
        first: true,
        last: true,
        proximal: (0.0, std::ptr::null()),
    };
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
        let calls = &self.calls;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut sums = [[I::splat(0.0); REGISTERS]; CLASSES];
            // A sum of several calls begins with 0; −0 changes no bit of a single one.
            let mut totals =
                [[I::splat(if calls.count == 1 { -0.0 } else { 0.0 }); REGISTERS]; CLASSES];
            if KIND == EXTENDED_STEP && !calls.first {
                for class in 0..CLASSES {
                    totals[class] = I::load_all::<REGISTERS>(calls.sums.add(at(class, 0)));
                }
            }
            let mut factors = factors.add(k);
            let (mut rows, mut left) = (self.rows.as_ptr(), self.rows.len());
            loop {
                for class in 0..CLASSES {
                    for r in 0..REGISTERS {
                        let start = I::load(target.add(at(class, r)));
                        let scale = I::splat(self.l2);
                        sums[class][r] = if KIND == ADD { start } else { I::mul(scale, start) };
                    }
                }
                let now = if KIND == EXTENDED_STEP { calls.rows } else { left };
                for row in std::slice::from_raw_parts(rows, now) {
                    let x = I::load_all::<REGISTERS>(row.add(column));
                    for class in 0..CLASSES {
                        let factor = I::splat(*factors.add(class));
                        for r in 0..REGISTERS {
                            sums[class][r] = I::add(sums[class][r], I::mul(factor, x[r]));
                        }
                    }
                    factors = factors.wrapping_add(pitch);
                }
                if KIND != EXTENDED_STEP {
                    break;
                }
                for class in 0..CLASSES {
                    for r in 0..REGISTERS {
                        totals[class][r] = I::add(totals[class][r], sums[class][r]);
                    }
                }
                (rows, left) = (rows.add(now), left - now);
                if left == 0 {
                    break;
                }
            }
            if KIND == EXTENDED_STEP && !calls.last {
                for class in 0..CLASSES {
                    for r in 0..REGISTERS {
                        I::store(calls.sums.add(at(class, r)), totals[class][r]);
                    }
                }
                return;
            }
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let to = target.add(at(class, r));
                    let sum = sums[class][r];
                    let xi = || I::load(self.correction.add(at(class, r)));
                    let value = match KIND {
                        ADD => sum,
                        STEP => descended::<I>(I::load(to), sum, self.step),
                        CORRECTED_STEP => descended::<I>(I::load(to), I::add(sum, xi()), self.step),
                        _ => {
                            let theta = I::load(to);
                            let (weight, anchor) = calls.proximal;
                            let apart = I::sub(theta, I::load(anchor.add(at(class, r))));
                            let mean = calls.mean::<I>(totals[class][r]);
                            let field = I::add(mean, I::mul(I::splat(weight), apart));
                            descended::<I>(theta, I::add(field, xi()), self.step)
                        }
                    };
                    I::store(to, value);
                }
            }
        }
    }
}

impl Calls {
    /// The mean of all calls from their sum.
    ///
    /// # Safety
    /// `I` is present.
    #[inline(always)]
    unsafe fn mean<I: Strips>(&self, sum: I::V) -> I::V {
        let count = self.count as f64;
        // SAFETY: passed on to the caller. A product with a power of two is the quotient by its
        // inverse, to the last bit.
        unsafe {
            if self.count.is_power_of_two() {
                I::mul(sum, I::splat(1.0 / count))
            } else {
                I::div(sum, I::splat(count))
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
