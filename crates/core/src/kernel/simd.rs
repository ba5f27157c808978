//! Explicit SIMD lanes: the instruction sets of the fused kernels.

use std::convert::identity;
use std::ops::{Add, Div, Mul, Sub};
use std::ptr;

/// The instruction set of a fused kernel. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// One lane, any processor.
    Scalar,
    /// Two lanes; every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Four lanes, with BMI2 for the draws.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Eight lanes, beside what [`InstructionSet::Avx2`] has; it serves rows that fill several of
    /// its registers, and elsewhere that path is taken.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Two lanes; every aarch64 has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// The instruction sets of this processor, slowest first.
    pub fn available() -> Vec<InstructionSet> {
        let mut paths = vec![InstructionSet::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            paths.push(InstructionSet::Sse2);
            if Self::has_avx2() {
                paths.push(InstructionSet::Avx2);
            }
            if Self::has_avx512() {
                paths.push(InstructionSet::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        paths.push(InstructionSet::Neon);
        paths
    }

    /// The fastest instruction set of this processor.
    #[inline]
    pub fn best() -> InstructionSet {
        #[cfg(target_arch = "x86_64")]
        return match () {
            () if Self::has_avx512() => InstructionSet::Avx512,
            () if Self::has_avx2() => InstructionSet::Avx2,
            () => InstructionSet::Sse2,
        };
        #[cfg(target_arch = "aarch64")]
        return InstructionSet::Neon;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return InstructionSet::Scalar;
    }

    /// The set that serves rows of `d` numbers: short ones do not fill the longest registers.
    #[inline]
    pub(in crate::kernel) fn for_rows(self, d: usize) -> Self {
        self.at_most(if d > SHORT { WIDEST } else { WIDEST_SHORT })
    }

    /// The widest set up to this one that has at most so many lanes, 2 or more.
    #[inline]
    pub(in crate::kernel) fn at_most(self, lanes: usize) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = lanes;
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if lanes < WIDEST => Self::Avx2.at_most(lanes),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if lanes < WIDEST_SHORT => Self::Sse2,
            path => path,
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx512() -> bool {
        Self::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }
}

/// Runs `$body` compiled for an instruction set of this processor, with `$I` for its lanes. The
/// variables that the body reads are listed with their types.
macro_rules! in_lanes {
    (@ $(#[$features:meta])? $I:ident = $lanes:ident, ($($arg:ident: $type:ty),*), $body:expr) => {{
        $(#[$features])?
        #[allow(unused_unsafe, reason = "some bodies are safe")]
        unsafe fn compiled($($arg: $type),*) {
            type $I = $crate::kernel::simd::$lanes;
            // SAFETY: the attribute above; the rest is said where the macro is called.
            unsafe { $body }
        }
        // SAFETY: this processor has the instruction set.
        unsafe { compiled($($arg),*) }
    }};
    ($path:expr, $I:ident, $args:tt => $body:expr) => {
        match $path {
            InstructionSet::Scalar => in_lanes!(@ $I = ScalarLane, $args, $body),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Sse2 => in_lanes!(@ $I = Sse2, $args, $body),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => {
                in_lanes!(@ #[target_feature(enable = "avx2,bmi2")] $I = Avx2, $args, $body)
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => in_lanes!(
                @ #[target_feature(enable = "avx2,bmi2,avx512f,avx512dq,avx512vl")]
                $I = Avx512, $args, $body
            ),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => in_lanes!(@ $I = Neon, $args, $body),
        }
    };
}
pub(in crate::kernel) use in_lanes;

/// A register of `LANES` numbers.
///
/// # Safety
/// A method may only be called on a processor that has the instruction set;
/// `load` and `store` access `LANES` consecutive numbers.
pub(in crate::kernel) trait Simd {
    const LANES: usize;
    type V: Copy;
    unsafe fn load(from: *const f64) -> Self::V;
    unsafe fn store(to: *mut f64, v: Self::V);
    unsafe fn splat(x: f64) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// |x|.
    unsafe fn abs(x: Self::V) -> Self::V;
    /// The size of the first with the sign of the second; the first is not negative.
    unsafe fn signed(size: Self::V, sign: Self::V) -> Self::V;
    /// `yes` where a < b, else `no`.
    unsafe fn below(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// x without its fraction, and 2 to that power; |x| < 1023.
    unsafe fn whole(x: Self::V) -> (Self::V, Self::V);
    /// k and m with x = 2^k m and m between √½ and √2, rounded as in the logarithms of `libm`; x is
    /// positive and normal.
    unsafe fn split(x: Self::V) -> (Self::V, Self::V);
    /// The folding tree within a register: x_i ← x_i + x_{i+n}, n = LANES/2, …, 1.
    unsafe fn fold(v: Self::V) -> f64;

    // The methods below use no closures: a closure is compiled without the
    // instruction set of its function, so its intrinsics may not be inlined.

    /// R registers.
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

    /// A row of `d` numbers, padded with zeros.
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

    /// The first `d` numbers of a row.
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

/// The leading half of √½, and what it takes to carry from there on into the exponent.
const ROOT: i64 = 0x3fe6_a09e << 32;
const TO_ROOT: i64 = (0x3ff0_0000 << 32) - ROOT;
/// The bits of a significand.
const SIGNIFICAND: i64 = (1 << 52) - 1;
/// Folds several registers at once.
pub(in crate::kernel) trait FoldEach: Simd {
    /// [`Simd::fold`] of the first `LANES` registers, one in each lane.
    ///
    /// # Safety
    /// The instruction set is present.
    unsafe fn fold_each(v: [Self::V; WIDEST_SHORT]) -> Self::V;
}

/// Registers for rows in strips, beside those of at most [`WIDEST_SHORT`] lanes for what there is
/// little of.
pub(in crate::kernel) trait Strips: Simd {
    /// The registers of at most [`WIDEST_SHORT`] lanes.
    type Short: FoldEach;

    /// Stores a register, folded down to the lanes of `Short`.
    ///
    /// # Safety
    /// The instruction set is present; `to` has room for [`WIDEST_SHORT`] numbers.
    unsafe fn store_short(to: *mut f64, v: Self::V);
}

impl<I: FoldEach> Strips for I {
    type Short = Self;
    #[inline(always)]
    unsafe fn store_short(to: *mut f64, v: Self::V) {
        // SAFETY: passed on to the caller.
        unsafe { Self::store(to, v) }
    }
}

impl FoldEach for ScalarLane {
    #[inline(always)]
    unsafe fn fold_each([v, ..]: [f64; WIDEST_SHORT]) -> f64 {
        v
    }
}

#[cfg(test)]
pub(in crate::kernel) mod testing;

/// Prefetches the cache line at `from`, if the processor can; nothing is read.
#[inline(always)]
pub(in crate::kernel) fn prefetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Prefetches the cache lines of `bytes` bytes from `from` on.
#[inline(always)]
pub(in crate::kernel) fn prefetch_all<T>(from: *const T, bytes: usize) {
    (0..bytes).step_by(64).for_each(|offset| prefetch(from.cast::<u8>().wrapping_add(offset)));
}

/// The longest rows that registers hold; longer ones are passed over in strips.
pub(in crate::kernel) const SHORT: usize = 32;

/// Lanes of the widest register, and of the widest one that serves short rows.
pub(in crate::kernel) const WIDEST: usize = 8;
pub(in crate::kernel) const WIDEST_SHORT: usize = 4;

/// The length of a row of `d` numbers padded with zeros to whole registers of any
/// instruction set. The padding changes no sum, since [`super::fold_sum`] adds zeros up
/// to the same length.
#[inline(always)]
pub(in crate::kernel) fn padded(d: usize) -> usize {
    match d {
        0..=2 => d,
        3..=SHORT => d.next_multiple_of(WIDEST_SHORT),
        _ => d.next_multiple_of(WIDEST),
    }
}

/// The folding tree over R registers: blocks of 16 numbers first, then whole
/// registers, then within one, as in [`super::fold_sum`].
///
/// # Safety
/// The instruction set `I` is present.
#[inline(always)]
pub(in crate::kernel) unsafe fn fold_registers<I: Simd, const R: usize>(v: [I::V; R]) -> f64 {
    let width = super::WIDTH / I::LANES;
    // SAFETY: passed on to the caller.
    unsafe {
        let mut acc = [I::splat(0.0); super::WIDTH];
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

#[cfg(target_arch = "aarch64")]
pub(in crate::kernel) use self::Neon as BaseLanes;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(in crate::kernel) use self::ScalarLane as BaseLanes;
/// The lanes that every processor of this architecture has.
#[cfg(target_arch = "x86_64")]
pub(in crate::kernel) use self::x86::Sse2 as BaseLanes;

/// An instruction set from its intrinsics, each of which needs only that the
/// set is present (and, for load and store, the trait's pointers).
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

#[cfg(target_arch = "x86_64")]
pub(in crate::kernel) use x86::{Avx2, Avx512, Sse2};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{FoldEach, ROOT, SIGNIFICAND, Simd, Strips, TO_ROOT, WIDEST_SHORT};
    use std::arch::x86_64::*;

    /// 2⁵², to which setting its bits adds a small whole number, and that with the bias of exponents.
    const TWO_52: i64 = 0x4330 << 48;
    const BIASED_TWO_52: f64 = (1_u64 << 52) as f64 + 1023.0;

    impl Strips for Avx512 {
        type Short = Avx2;
        #[inline(always)]
        unsafe fn store_short(to: *mut f64, v: __m512d) {
            // SAFETY: the trait's contract.
            unsafe {
                let high = _mm512_extractf64x4_pd::<1>(v);
                Avx2::store(to, _mm256_add_pd(_mm512_castpd512_pd256(v), high));
            }
        }
    }

    impl FoldEach for Sse2 {
        #[inline(always)]
        unsafe fn fold_each([a, b, ..]: [__m128d; WIDEST_SHORT]) -> __m128d {
            // SAFETY: the trait's contract.
            unsafe { _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)) }
        }
    }

    impl FoldEach for Avx2 {
        #[inline(always)]
        unsafe fn fold_each([a, b, c, d]: [__m256d; WIDEST_SHORT]) -> __m256d {
            // SAFETY: the trait's contract.
            unsafe {
                // a₀ + a₂, a₁ + a₃, c₀ + c₂, c₁ + c₃.
                let low = _mm256_permute2f128_pd::<0x20>(a, c);
                let first = _mm256_add_pd(low, _mm256_permute2f128_pd::<0x31>(a, c));
                let low = _mm256_permute2f128_pd::<0x20>(b, d);
                let second = _mm256_add_pd(low, _mm256_permute2f128_pd::<0x31>(b, d));
                let even = _mm256_unpacklo_pd(first, second);
                _mm256_add_pd(even, _mm256_unpackhi_pd(first, second))
            }
        }
    }

    simd! { Sse2, __m128d, 2,
        _mm_loadu_pd, _mm_storeu_pd, _mm_set1_pd, _mm_add_pd, _mm_sub_pd, _mm_mul_pd, _mm_div_pd;
        abs(x) _mm_andnot_pd(_mm_set1_pd(-0.0), x);
        signed(size, sign) _mm_or_pd(size, _mm_and_pd(_mm_set1_pd(-0.0), sign));
        below(a, b, yes, no) {
            let mask = _mm_cmplt_pd(a, b);
            _mm_or_pd(_mm_and_pd(mask, yes), _mm_andnot_pd(mask, no))
        };
        whole(x) {
            let k = _mm_cvttpd_epi32(x);
            let biased = _mm_add_epi32(k, _mm_set1_epi32(1023));
            let wide = _mm_unpacklo_epi32(biased, _mm_setzero_si128());
            (_mm_cvtepi32_pd(k), _mm_castsi128_pd(_mm_slli_epi64::<52>(wide)))
        };
        split(x) {
            let moved = _mm_add_epi64(_mm_castpd_si128(x), _mm_set1_epi64x(TO_ROOT));
            let k = _mm_or_si128(_mm_srli_epi64::<52>(moved), _mm_set1_epi64x(TWO_52));
            let m = _mm_and_si128(moved, _mm_set1_epi64x(SIGNIFICAND));
            let m = _mm_add_epi64(m, _mm_set1_epi64x(ROOT));
            let k = _mm_sub_pd(_mm_castsi128_pd(k), _mm_set1_pd(BIASED_TWO_52));
            (k, _mm_castsi128_pd(m))
        };
        fold(v) _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v)));
    }
    simd! { Avx2, __m256d, 4,
        _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd, _mm256_sub_pd,
        _mm256_mul_pd, _mm256_div_pd;
        abs(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
        signed(size, sign) _mm256_or_pd(size, _mm256_and_pd(_mm256_set1_pd(-0.0), sign));
        below(a, b, yes, no) _mm256_blendv_pd(no, yes, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b));
        whole(x) {
            let k = _mm256_cvttpd_epi32(x);
            let biased = _mm_add_epi32(k, _mm_set1_epi32(1023));
            let wide = _mm256_cvtepi32_epi64(biased);
            (_mm256_cvtepi32_pd(k), _mm256_castsi256_pd(_mm256_slli_epi64::<52>(wide)))
        };
        split(x) {
            let moved = _mm256_add_epi64(_mm256_castpd_si256(x), _mm256_set1_epi64x(TO_ROOT));
            let k = _mm256_or_si256(_mm256_srli_epi64::<52>(moved), _mm256_set1_epi64x(TWO_52));
            let m = _mm256_and_si256(moved, _mm256_set1_epi64x(SIGNIFICAND));
            let m = _mm256_add_epi64(m, _mm256_set1_epi64x(ROOT));
            let k = _mm256_sub_pd(_mm256_castsi256_pd(k), _mm256_set1_pd(BIASED_TWO_52));
            (k, _mm256_castsi256_pd(m))
        };
        fold(v) Sse2::fold(_mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v)));
    }
    simd! { Avx512, __m512d, 8,
        _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd, _mm512_sub_pd,
        _mm512_mul_pd, _mm512_div_pd;
        abs(x) _mm512_abs_pd(x);
        signed(size, sign) _mm512_or_pd(size, _mm512_and_pd(_mm512_set1_pd(-0.0), sign));
        below(a, b, yes, no) _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), no, yes);
        whole(x) {
            let k = _mm512_cvttpd_epi32(x);
            let biased = _mm256_add_epi32(k, _mm256_set1_epi32(1023));
            let wide = _mm512_cvtepi32_epi64(biased);
            (_mm512_cvtepi32_pd(k), _mm512_castsi512_pd(_mm512_slli_epi64::<52>(wide)))
        };
        split(x) {
            let moved = _mm512_add_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(TO_ROOT));
            let k = _mm512_or_si512(_mm512_srli_epi64::<52>(moved), _mm512_set1_epi64(TWO_52));
            let m = _mm512_and_si512(moved, _mm512_set1_epi64(SIGNIFICAND));
            let m = _mm512_add_epi64(m, _mm512_set1_epi64(ROOT));
            let k = _mm512_sub_pd(_mm512_castsi512_pd(k), _mm512_set1_pd(BIASED_TWO_52));
            (k, _mm512_castsi512_pd(m))
        };
        fold(v) {
            let high = _mm512_extractf64x4_pd::<1>(v);
            Avx2::fold(_mm256_add_pd(_mm512_castpd512_pd256(v), high))
        };
    }
}

#[cfg(target_arch = "aarch64")]
pub(in crate::kernel) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{FoldEach, ROOT, SIGNIFICAND, Simd, TO_ROOT, WIDEST_SHORT};
    use std::arch::aarch64::*;

    impl FoldEach for Neon {
        #[inline(always)]
        unsafe fn fold_each([a, b, ..]: [float64x2_t; WIDEST_SHORT]) -> float64x2_t {
            // SAFETY: the trait's contract.
            unsafe { vpaddq_f64(a, b) }
        }
    }

    simd! { Neon, float64x2_t, 2,
        vld1q_f64, vst1q_f64, vdupq_n_f64, vaddq_f64, vsubq_f64, vmulq_f64, vdivq_f64;
        abs(x) vabsq_f64(x);
        signed(size, sign) vbslq_f64(vdupq_n_u64(1 << 63), sign, size);
        below(a, b, yes, no) vbslq_f64(vcltq_f64(a, b), yes, no);
        whole(x) {
            let k = vcvtq_s64_f64(x);
            let biased = vshlq_n_s64::<52>(vaddq_s64(k, vdupq_n_s64(1023)));
            (vcvtq_f64_s64(k), vreinterpretq_f64_s64(biased))
        };
        split(x) {
            let moved = vaddq_s64(vreinterpretq_s64_f64(x), vdupq_n_s64(TO_ROOT));
            let k = vsubq_s64(vshrq_n_s64::<52>(moved), vdupq_n_s64(1023));
            let m = vandq_s64(moved, vdupq_n_s64(SIGNIFICAND));
            (vcvtq_f64_s64(k), vreinterpretq_f64_s64(vaddq_s64(m, vdupq_n_s64(ROOT))))
        };
        fold(v) vgetq_lane_f64::<0>(v) + vgetq_lane_f64::<1>(v);
    }
}
