//! Rows that are too long for the registers: passes over strips of 16 numbers, whose sums stay
//! in the 16 accumulators of [`super::fold_sum`].

use super::fold::WIDTH;
use super::simd::Simd;

/// Evaluates `$call` with the constant `$W`: how many registers of `$I` hold the 16 numbers of a strip.
macro_rules! with_strip {
    ($I:ty, $W:ident => $call:expr) => {
        match <$I>::LANES {
            1 => {
                const $W: usize = 16;
                $call
            }
            2 => {
                const $W: usize = 8;
                $call
            }
            4 => {
                const $W: usize = 4;
                $call
            }
            _ => {
                const $W: usize = 2;
                $call
            }
        }
    };
}
pub(in crate::kernel) use with_strip;

/// The sum of the 16 accumulators of a strip, which are folded by halves as in [`super::fold_sum`].
///
/// # Safety
/// `I` is present, W is the number of its registers in a strip.
#[inline(always)]
pub(in crate::kernel) unsafe fn folded<I: Simd, const W: usize>(sums: [I::V; W]) -> f64 {
    // SAFETY: passed on to the caller.
    unsafe { I::fold(to_register::<I, W>(sums)) }
}

/// One register that the 16 accumulators of a strip, W registers, are folded to by halves. The sum of its lanes is the
/// sum of all 16.
///
/// # Safety
/// As for [`folded`].
#[inline(always)]
pub(in crate::kernel) unsafe fn to_register<I: Simd, const W: usize>(mut sums: [I::V; W]) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut n = W / 2;
        while n > 0 {
            let mut r = 0;
            while r < n {
                sums[r] = I::add(sums[r], sums[r + n]);
                r += 1;
            }
            n /= 2;
        }
        sums[0]
    }
}

/// Runs `$step` with the offset of each register of a row of `$stride` numbers and the number of
/// its accumulator, from 0 to W − 1. The row is whole strips and 0, 4, 8 or 12 numbers more; each of these cases
/// is unrolled, so that accumulators stay in registers. `$stride` must be a multiple of 4 and of the lanes of `$I`, as
/// the length of a padded row is: of any other, the last numbers are left out without an error.
macro_rules! over_strips {
    ($I:ident, $W:ident, $stride:expr, |$offset:ident, $r:ident| $step:expr) => {{
        macro_rules! registers {
            ($count:expr, $at:expr) => {{
                let mut $r = 0;
                while $r < $count {
                    let $offset = $at + $r * $I::LANES;
                    $step;
                    $r += 1;
                }
            }};
        }
        let mut begin = 0;
        let stride = $stride;
        while begin + WIDTH <= stride {
            registers!($W, begin);
            begin += WIDTH;
        }
        match stride - begin {
            4 => registers!($W / 4, begin),
            8 => registers!($W / 2, begin),
            12 => registers!($W / 4 * 3, begin),
            _ => {}
        }
    }};
}
pub(in crate::kernel) use over_strips;

/// The product xᵀy of two padded rows of `stride` numbers, summed in the order of [`super::fold_sum`].
///
/// # Safety
/// `I` is present, W is the number of its registers in a strip; `stride` is the length of padded rows, a multiple of 4
/// and of the lanes of `I`, 4 or more.
#[inline(always)]
pub(in crate::kernel) unsafe fn dot<I: Simd, const W: usize>(
    x: *const f64,
    y: *const f64,
    stride: usize,
) -> f64 {
    // SAFETY: passed on to the caller.
    unsafe {
        // The first term that is added to −0 keeps its bits, also if it is −0.
        let mut sums = [I::splat(-0.0); W];
        over_strips!(I, W, stride, |at, r| {
            sums[r] = I::add(sums[r], I::mul(I::load(x.add(at)), I::load(y.add(at))));
        });
        folded::<I, W>(sums)
    }
}
