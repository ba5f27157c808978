//! Sums of records times factors that are added to the rows of θ, one row per class, in tiles: the part of five rows
//! that is in two registers each.

use super::tables::ClassTables;
use crate::kernel::simd::Strips;

/// What tiles do with a sum: add it to the target.
pub const ADD: u8 = 0;
/// Tiles add the sum to λθ, where θ is the target, and make a step along the result.
pub const STEP: u8 = 1;
/// As [`STEP`], with the correction ξ.
pub const CORRECTED_STEP: u8 = 2;
/// As [`CORRECTED_STEP`], along the mean of the oracle calls and with the proximal term of [`Calls`].
pub const EXTENDED_STEP: u8 = 3;

/// A sum of records times factors, one sum for each class, and what a step along it needs.
pub struct RowSum<'a> {
    /// The padded rows of the records.
    pub rows: &'a [*const f64],
    pub factors: FactorTable,
    /// λ, the weight of the penalty λ/2 ‖θ‖², read by steps only.
    pub l2: f64,
    /// γ, the step size, read by steps only.
    pub step: f64,
    /// ξ, padded rows, one per class, read by steps with a correction only.
    pub correction: *const f64,
    /// Read by extended steps only.
    pub calls: Calls,
}

/// Where the factor of each row and class is.
#[derive(Clone, Copy)]
pub struct FactorTable {
    /// The factor of the first row for the first class.
    pub first: *const f64,
    /// The distance from a row's factors to the next row's factors.
    pub row_distance: usize,
    /// The distance from a row's factor for one class to its factor for the next class.
    pub class_distance: usize,
}

/// The oracle calls of an extended step and its proximal term. A [`RowSum`] has the records of all calls of the step,
/// or of some of the calls if the step is made in several parts.
pub struct Calls {
    /// The number of records of a call.
    pub rows: usize,
    /// The number of all calls of the step.
    pub count: usize,
    /// Where the sum of the calls so far is kept between the parts of a step: padded rows, one per class.
    pub sums: *mut f64,
    /// Whether the sum has the first calls of the step.
    pub first: bool,
    /// Whether the sum has the last calls of the step, after which θ changes.
    pub last: bool,
    /// μ, the weight of the proximal term.
    pub weight: f64,
    /// θ_t, padded rows.
    pub anchor: *const f64,
}

impl Calls {
    /// What stands in a [`RowSum`] that is no extended step, where it is not read.
    pub const NONE: Self = Self {
        rows: usize::MAX,
        count: 1,
        sums: std::ptr::null_mut(),
        first: true,
        last: true,
        weight: 0.0,
        anchor: std::ptr::null(),
    };

    /// The mean of the fields of all calls from their sum, in a register.
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

impl ClassTables {
    /// Computes a sum tile by tile, and does with each tile what `KIND` says ([`ADD`] and the constants after it).
    /// `target` has the rows of the classes: θ for steps.
    ///
    /// # Safety
    /// `I` is present. `target`, and of the sum ξ, θ_t and the sum of calls where `KIND` reads them, are K padded rows;
    /// records are padded rows too, with a factor for each class.
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
                    match (left, two) {
                        (1, true) => sum.tile::<I, KIND, 1, 2>(target, k, column, self.stride),
                        (2, true) => sum.tile::<I, KIND, 2, 2>(target, k, column, self.stride),
                        (3, true) => sum.tile::<I, KIND, 3, 2>(target, k, column, self.stride),
                        (4, true) => sum.tile::<I, KIND, 4, 2>(target, k, column, self.stride),
                        (_, true) => sum.tile::<I, KIND, 5, 2>(target, k, column, self.stride),
                        (1, false) => sum.tile::<I, KIND, 1, 1>(target, k, column, self.stride),
                        (2, false) => sum.tile::<I, KIND, 2, 1>(target, k, column, self.stride),
                        (3, false) => sum.tile::<I, KIND, 3, 1>(target, k, column, self.stride),
                        (4, false) => sum.tile::<I, KIND, 4, 1>(target, k, column, self.stride),
                        (_, false) => sum.tile::<I, KIND, 5, 1>(target, k, column, self.stride),
                    }
                    k += 5;
                }
                column += if two { 2 } else { 1 } * I::LANES;
            }
        }
    }
}

impl RowSum<'_> {
    /// Computes one tile, of `CLASSES` classes from k on and `REGISTERS` registers from a column on, adding the records
    /// in their order.
    ///
    /// # Safety
    /// `I` is present, all rows have these columns, and the sum has a factor of each row for each of these classes.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
    unsafe fn tile<I: Strips, const KIND: u8, const CLASSES: usize, const REGISTERS: usize>(
        &self,
        target: *mut f64,
        k: usize,
        column: usize,
        stride: usize,
    ) {
        let first = k * stride + column;
        // SAFETY: passed on to the caller.
        unsafe {
            let from = target.add(first);
            let sums: [[I::V; REGISTERS]; CLASSES] =
                if KIND == EXTENDED_STEP && self.calls.count > 1 {
                    let sums = self.sum_of_calls::<I, CLASSES, REGISTERS>(from, k, column, stride);
                    if !self.calls.last {
                        return store_tile::<I, CLASSES, REGISTERS>(
                            self.calls.sums.add(first),
                            stride,
                            sums,
                        );
                    }
                    sums
                } else {
                    let mut sums = load_tile::<I, CLASSES, REGISTERS>(from, stride);
                    if KIND != ADD {
                        scale::<I, CLASSES, REGISTERS>(&mut sums, self.l2);
                    }
                    let factors = self.factors.first.add(k * self.factors.class_distance);
                    self.add_rows::<I, CLASSES, REGISTERS>(&mut sums, self.rows, factors, column);
                    sums
                };
            for class in 0..CLASSES {
                for r in 0..REGISTERS {
                    let at = first + class * stride + r * I::LANES;
                    I::store(target.add(at), self.result::<I, KIND>(sums[class][r], target, at));
                }
            }
        }
    }

    /// Adds records, each times its factors, to the sums of a tile; `factors` is the place of the first record's factor
    /// for the first class of the tile.
    ///
    /// # Safety
    /// As for `tile`.
    #[inline(always)]
    unsafe fn add_rows<I: Strips, const CLASSES: usize, const REGISTERS: usize>(
        &self,
        sums: &mut [[I::V; REGISTERS]; CLASSES],
        rows: &[*const f64],
        mut factors: *const f64,
        column: usize,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            for row in rows {
                let x = I::load_all::<REGISTERS>(row.add(column));
                for (class, sums) in sums.iter_mut().enumerate() {
                    let factor = I::splat(*factors.add(class * self.factors.class_distance));
                    for r in 0..REGISTERS {
                        sums[r] = I::add(sums[r], I::mul(factor, x[r]));
                    }
                }
                factors = factors.wrapping_add(self.factors.row_distance);
            }
        }
    }

    /// One tile of the sum over the fields of the step's oracle calls so far, for a step on several calls. The field of
    /// each call begins with λθ.
    ///
    /// # Safety
    /// As for `tile`.
    #[inline(always)]
    unsafe fn sum_of_calls<I: Strips, const CLASSES: usize, const REGISTERS: usize>(
        &self,
        theta: *const f64,
        k: usize,
        column: usize,
        stride: usize,
    ) -> [[I::V; REGISTERS]; CLASSES] {
        let calls = &self.calls;
        // SAFETY: passed on to the caller.
        unsafe {
            let mut all = if calls.first {
                [[I::splat(0.0); REGISTERS]; CLASSES]
            } else {
                load_tile::<I, CLASSES, REGISTERS>(calls.sums.add(k * stride + column), stride)
            };
            let mut factors = self.factors.first.add(k * self.factors.class_distance);
            for rows in self.rows.chunks_exact(calls.rows) {
                let mut call = load_tile::<I, CLASSES, REGISTERS>(theta, stride);
                scale::<I, CLASSES, REGISTERS>(&mut call, self.l2);
                self.add_rows::<I, CLASSES, REGISTERS>(&mut call, rows, factors, column);
                for (all, call) in all.iter_mut().zip(call) {
                    for r in 0..REGISTERS {
                        all[r] = I::add(all[r], call[r]);
                    }
                }
                factors = factors.wrapping_add(calls.rows * self.factors.row_distance);
            }
            all
        }
    }

    /// The new numbers of a register of the target, `at` numbers after its beginning: with [`ADD`] the sum there, and
    /// otherwise θ, which is there, after the step of `KIND` along the sum.
    ///
    /// # Safety
    /// As for `tile`.
    #[inline(always)]
    unsafe fn result<I: Strips, const KIND: u8>(
        &self,
        sum: I::V,
        target: *const f64,
        at: usize,
    ) -> I::V {
        // SAFETY: passed on to the caller.
        unsafe {
            if KIND == ADD {
                return sum;
            }
            let theta = I::load(target.add(at));
            if KIND == STEP {
                return descended::<I>(theta, sum, self.step);
            }
            let xi = I::load(self.correction.add(at));
            if KIND == CORRECTED_STEP {
                return descended::<I>(theta, I::add(sum, xi), self.step);
            }
            let Calls { weight, anchor, .. } = self.calls;
            let pull = I::mul(I::splat(weight), I::sub(theta, I::load(anchor.add(at))));
            let mean = if self.calls.count == 1 { sum } else { self.calls.mean::<I>(sum) };
            let field = I::add(mean, pull);
            descended::<I>(theta, I::add(field, xi), self.step)
        }
    }
}

/// Multiplies all numbers of a tile by a factor.
///
/// # Safety
/// `I` is present.
#[inline(always)]
unsafe fn scale<I: Strips, const CLASSES: usize, const REGISTERS: usize>(
    tile: &mut [[I::V; REGISTERS]; CLASSES],
    factor: f64,
) {
    for number in tile.as_flattened_mut() {
        // SAFETY: passed on to the caller.
        *number = unsafe { I::mul(I::splat(factor), *number) };
    }
}

/// Loads a tile: some registers of each of `CLASSES` rows that are `stride` apart.
///
/// # Safety
/// `I` is present, and the rows have these numbers.
#[inline(always)]
unsafe fn load_tile<I: Strips, const CLASSES: usize, const REGISTERS: usize>(
    from: *const f64,
    stride: usize,
) -> [[I::V; REGISTERS]; CLASSES] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut tile = [[I::splat(0.0); REGISTERS]; CLASSES];
        for (class, row) in tile.iter_mut().enumerate() {
            *row = I::load_all::<REGISTERS>(from.add(class * stride));
        }
        tile
    }
}

/// Stores a tile where [`load_tile`] reads it.
///
/// # Safety
/// As for [`load_tile`].
#[inline(always)]
unsafe fn store_tile<I: Strips, const CLASSES: usize, const REGISTERS: usize>(
    to: *mut f64,
    stride: usize,
    tile: [[I::V; REGISTERS]; CLASSES],
) {
    for (class, row) in tile.into_iter().enumerate() {
        for (r, v) in row.into_iter().enumerate() {
            // SAFETY: passed on to the caller.
            unsafe { I::store(to.add(class * stride + r * I::LANES), v) };
        }
    }
}

/// θ after a local step along a field, θ − step · field, in a register.
///
/// # Safety
/// `I` is present.
#[inline(always)]
pub unsafe fn descended<I: Strips>(theta: I::V, field: I::V, step: f64) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe { I::sub(theta, I::mul(I::splat(step), field)) }
}
