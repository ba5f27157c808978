//! Products of records with rows of θ, in registers.

use crate::kernel::fold::WIDTH;
use crate::kernel::padding::WIDEST_SHORT;
use crate::kernel::simd::Strips;
use crate::kernel::strips::{over_strips, to_register};

/// Multiplies a register of a record with a register of each of some rows of θ, one row for each class, and adds the
/// products to accumulator number r of the class.
///
/// # Safety
/// `I` is present, and at `record` there is a register. `r` is below W.
#[inline(always)]
pub unsafe fn add_products<I: Strips, const W: usize, const CLASSES: usize>(
    sums: &mut [[I::V; W]; CLASSES],
    r: usize,
    record: *const f64,
    theta: [I::V; CLASSES],
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let x = I::load(record);
        for class in 0..CLASSES {
            sums[class][r] = I::add(sums[class][r], I::mul(x, theta[class]));
        }
    }
}

/// Writes the products of a record with `CLASSES` rows of θ to `partial`, each folded down to one register, whose lanes
/// are still to be added up.
///
/// # Safety
/// `I` is present, W registers of it are 16 numbers, and rows have `stride` numbers, a multiple of 4 and of the lanes
/// of `I`.
#[inline(always)]
pub unsafe fn dots<I: Strips, const W: usize, const CLASSES: usize>(
    theta: *const f64,
    record: *const f64,
    stride: usize,
    partial: &mut [[f64; WIDEST_SHORT]],
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut sums = [[I::splat(0.0); W]; CLASSES];
        over_strips!(I, W, stride, |column, r| {
            let theta = columns::<I, CLASSES>(theta.add(column), stride);
            add_products::<I, W, CLASSES>(&mut sums, r, record.add(column), theta);
        });
        for class in 0..CLASSES {
            I::store_short(partial[class].as_mut_ptr(), to_register::<I, W>(sums[class]));
        }
    }
}

/// The register at one place of each of `CLASSES` rows that are `stride` apart.
///
/// # Safety
/// `I` is present, and the rows have a register.
#[inline(always)]
unsafe fn columns<I: Strips, const CLASSES: usize>(
    from: *const f64,
    stride: usize,
) -> [I::V; CLASSES] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut all = [I::splat(0.0); CLASSES];
        for (class, register) in all.iter_mut().enumerate() {
            *register = I::load(from.add(class * stride));
        }
        all
    }
}
