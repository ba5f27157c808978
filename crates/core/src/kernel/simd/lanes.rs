//! What an instruction set offers to the fused kernels: registers of a few numbers, and the set of a
//! single lane, which every processor has.

use crate::kernel::fold::WIDTH;
use crate::kernel::padding::{WIDEST, WIDEST_SHORT};
use std::convert::identity;
use std::ops::{Add, Div, Mul, Sub};
use std::ptr;

/// An instruction set with registers `V` of `LANES` numbers. Operations act on each lane by itself.
///
/// # Safety
/// A method may only be called on a processor that has the instruction set;
/// `load` and `store` access `LANES` consecutive numbers.
pub(in crate::kernel) trait Simd {
    const LANES: usize;
    type V: Copy;
    unsafe fn load(from: *const f64) -> Self::V;
    unsafe fn store(to: *mut f64, v: Self::V);
    /// The same number in every lane.
    unsafe fn splat(x: f64) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// The absolute values |x|.
    unsafe fn abs(x: Self::V) -> Self::V;
    /// `size`, which is not negative, with the sign of `sign`.
    unsafe fn signed(size: Self::V, sign: Self::V) -> Self::V;
    /// `yes` in the lanes where a < b, and `no` in all others, also where a or b is NaN.
    unsafe fn below(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// k and 2^k, where the whole number k is x without its fraction; |x| < 1023.
    unsafe fn whole(x: Self::V) -> (Self::V, Self::V);
    /// k and m with x = 2^k m and m between √½ and √2, rounded as in the logarithms of `libm`; x is
    /// positive and normal.
    unsafe fn split(x: Self::V) -> (Self::V, Self::V);
    /// The sum of the lanes, which are folded by halves: x_i ← x_i + x_{i+n}, n = LANES/2, …, 1.
    unsafe fn fold(v: Self::V) -> f64;

    // The methods below use no closures: a closure is compiled without the
    // instruction set of its function, so its intrinsics may not be inlined.

    /// Loads R · `LANES` consecutive numbers into R registers.
    ///
    /// # Safety
    /// The instruction set is present, and `from` points to so many numbers.
    #[inline(always)]
    unsafe fn load_all<const R: usize>(from: *const f64) -> [Self::V; R] {
        // SAFETY: the caller's pointer covers R·LANES numbers.
        unsafe {
            let mut v = [Self::splat(0.0); R];
            let mut r = 0;
            while r < R {
                v[r] = Self::load(from.add(r * Self::LANES));
                r += 1;
            }
            v
        }
    }

    /// Loads a row of `d` numbers, at most R·LANES of them, into R registers; the other lanes are 0.
    ///
    /// # Safety
    /// The instruction set is present, `from` points to d numbers, and d is at most R·LANES.
    #[inline(always)]
    unsafe fn load_row<const R: usize>(from: *const f64, d: usize) -> [Self::V; R] {
        // SAFETY: no more than d numbers are read of the caller's row.
        unsafe {
            if d == R * Self::LANES {
                return Self::load_all(from);
            }
            let mut row = [[0.0; WIDEST]; R];
            let flat = row.as_flattened_mut().as_mut_ptr();
            ptr::copy_nonoverlapping(from, flat, d);
            Self::load_all(flat)
        }
    }

    /// Stores the first `d` numbers of a row that fills R registers.
    ///
    /// # Safety
    /// The instruction set is present, and at `to` there is room for d numbers.
    #[inline(always)]
    unsafe fn store_row<const R: usize>(to: *mut f64, d: usize, row: [Self::V; R]) {
        // SAFETY: no more than d numbers are written of the caller's row.
        unsafe {
            for (r, v) in row.into_iter().enumerate() {
                let offset = r * Self::LANES;
                if offset + Self::LANES <= d {
                    Self::store(to.add(offset), v);
                } else if offset < d {
                    let mut part = [0.0; WIDEST];
                    Self::store(part.as_mut_ptr(), v);
                    (offset..d).for_each(|i| *to.add(i) = part[i - offset]);
                }
            }
        }
    }
}

/// The leading half of the bits of √½, with zeros after it.
pub(super) const ROOT: i64 = 0x3fe6_a09e << 32;
/// What [`Simd::split`] adds to the bits of a number, so that its exponent field counts powers of two from √½ on.
pub(super) const TO_ROOT: i64 = (0x3ff0_0000 << 32) - ROOT;
/// The bits of a number that are its significand.
pub(super) const SIGNIFICAND: i64 = (1 << 52) - 1;

/// An instruction set that can fold several registers at once.
pub(in crate::kernel) trait FoldEach: Simd {
    /// A register whose lane i is [`Simd::fold`] of register i, the sum of its lanes; only the first `LANES` registers
    /// are read. The registers have the partial sums of several products of rows, whose sums are found at once.
    ///
    /// # Safety
    /// The instruction set is present.
    unsafe fn fold_each(v: [Self::V; WIDEST_SHORT]) -> Self::V;
}

/// An instruction set for rows that are passed over in strips, together with registers of at most [`WIDEST_SHORT`]
/// lanes for what is computed of a few numbers.
pub(in crate::kernel) trait Strips: Simd {
    /// The instruction set with registers of at most [`WIDEST_SHORT`] lanes; the same one if its own are not wider.
    type Short: FoldEach;

    /// Writes the partial sums of a product of two rows, which are the lanes of `v`, to `to`, as many as `Short` has
    /// lanes: where `v` has more, its upper half is added to the lower one first. [`FoldEach::fold_each`] of `Short`
    /// later adds up the numbers at `to`.
    ///
    /// # Safety
    /// The instruction set is present; `to` has room for [`WIDEST_SHORT`] numbers.
    unsafe fn store_short(to: *mut f64, v: Self::V);
}

impl<I: FoldEach> Strips for I {
    type Short = Self;

    /// Writes all lanes, since they are no more than those of `Short`.
    #[inline(always)]
    unsafe fn store_short(to: *mut f64, v: Self::V) {
        // SAFETY: passed on to the caller.
        unsafe { Self::store(to, v) }
    }
}

impl FoldEach for ScalarLane {
    /// The first register, whose only lane is the sum of its lanes.
    #[inline(always)]
    unsafe fn fold_each([v, ..]: [f64; WIDEST_SHORT]) -> f64 {
        v
    }
}

/// The sum of the numbers of R registers, which hold the terms of a padded row, in the order of
/// [`crate::kernel::fold::fold_sum`]: first over blocks of 16 numbers, then over registers, then within one register.
///
/// # Safety
/// The instruction set `I` is present.
#[inline(always)]
pub(in crate::kernel) unsafe fn fold_registers<I: Simd, const R: usize>(v: [I::V; R]) -> f64 {
    let width = WIDTH / I::LANES;
    // SAFETY: passed on to the caller.
    unsafe {
        let mut acc = [I::splat(0.0); WIDTH];
        for (r, v) in v.into_iter().enumerate() {
            acc[r % width] = if r < width { v } else { I::add(acc[r % width], v) };
        }
        let mut n = R.min(width).next_power_of_two() / 2;
        while n > 0 {
            for r in 0..n {
                acc[r] = I::add(acc[r], acc[r + n]);
            }
            n /= 2;
        }
        I::fold(acc[0])
    }
}

/// Defines an instruction set by its intrinsics, each of which needs only that the
/// set is present and, for load and store, the pointers that the trait asks for.
macro_rules! simd {
    ($name:ident, $v:ident, $lanes:literal,
     $load:path, $store:path, $splat:path, $add:path, $sub:path, $mul:path, $div:path;
     abs($x:ident) $abs:expr;
     signed($size:ident, $sign:ident) $signed:expr;
     below($a:ident, $b:ident, $yes:ident, $no:ident) $below:expr;
     whole($y:ident) $whole:expr;
     split($split:ident) $parts:expr;
     fold($folded:ident) $fold:expr;) => {
        pub(in crate::kernel) struct $name;

        // SAFETY, for every block below: the trait's contract.
        #[allow(unused_unsafe, reason = "some functions of a single lane are safe")]
        impl Simd for $name {
            const LANES: usize = $lanes;
            type V = $v;
            #[inline(always)]
            unsafe fn load(from: *const f64) -> $v {
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut f64, v: $v) {
                unsafe { $store(to, v) }
            }
            #[inline(always)]
            unsafe fn splat(x: f64) -> $v {
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn sub(a: $v, b: $v) -> $v {
                unsafe { $sub(a, b) }
            }
            #[inline(always)]
            unsafe fn mul(a: $v, b: $v) -> $v {
                unsafe { $mul(a, b) }
            }
            #[inline(always)]
            unsafe fn div(a: $v, b: $v) -> $v {
                unsafe { $div(a, b) }
            }
            #[inline(always)]
            unsafe fn abs($x: $v) -> $v {
                unsafe { $abs }
            }
            #[inline(always)]
            unsafe fn signed($size: $v, $sign: $v) -> $v {
                unsafe { $signed }
            }
            #[inline(always)]
            unsafe fn below($a: $v, $b: $v, $yes: $v, $no: $v) -> $v {
                unsafe { $below }
            }
            #[inline(always)]
            unsafe fn whole($y: $v) -> ($v, $v) {
                unsafe { $whole }
            }
            #[inline(always)]
            unsafe fn split($split: $v) -> ($v, $v) {
                unsafe { $parts }
            }
            #[inline(always)]
            unsafe fn fold($folded: $v) -> f64 {
                unsafe { $fold }
            }
        }
    };
}
pub(super) use simd;

simd! { ScalarLane, f64, 1,
    ptr::read, ptr::write, identity, f64::add, f64::sub, f64::mul, f64::div;
    abs(x) x.abs();
    signed(size, sign) size.copysign(sign);
    below(a, b, yes, no) if a < b { yes } else { no };
    whole(x) {
        let k = x as i32;
        (f64::from(k), f64::from_bits(((k + 1023) as u64) << 52))
    };
    split(x) {
        let moved = x.to_bits() as i64 + TO_ROOT;
        let m = f64::from_bits(((moved & SIGNIFICAND) + ROOT) as u64);
        (((moved >> 52) - 1023) as f64, m)
    };
    fold(v) v;
}
