//! Explicit lanes: the instruction sets that a fused kernel can run on.

/// Which instruction set a fused kernel runs on. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// One lane, any processor.
    Scalar,
    /// Two lanes; every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Four lanes, with BMI2 for the draws.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Two lanes; every aarch64 has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Path {
    /// The paths that this processor can take, slowest first.
    pub fn available() -> Vec<Path> {
        let mut paths = vec![Path::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            paths.push(Path::Sse2);
            if Self::has_avx2() {
                paths.push(Path::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        paths.push(Path::Neon);
        paths
    }

    /// The fastest path of this processor.
    #[inline]
    pub fn best() -> Path {
        #[cfg(target_arch = "x86_64")]
        return if Self::has_avx2() { Path::Avx2 } else { Path::Sse2 };
        #[cfg(target_arch = "aarch64")]
        return Path::Neon;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return Path::Scalar;
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
    }
}

/// A register of `LANES` numbers.
///
/// # Safety
/// Each method may only be called where the instruction set is present;
/// `load` and `store` touch `LANES` consecutive numbers.
pub(in crate::kernel) trait Simd {
    const LANES: usize;
    type V: Copy;
    unsafe fn load(from: *const f64) -> Self::V;
    unsafe fn store(to: *mut f64, v: Self::V);
    unsafe fn splat(x: f64) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// The folding tree within a register: x_i ← x_i + x_{i+n}, n = LANES/2, …, 1.
    unsafe fn fold(v: Self::V) -> f64;
}

pub(in crate::kernel) struct Scalar;

impl Simd for Scalar {
    const LANES: usize = 1;
    type V = f64;
    #[inline(always)]
    unsafe fn load(from: *const f64) -> f64 {
        // SAFETY: the caller's pointer covers one number.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: f64) {
        // SAFETY: the caller's pointer covers one number.
        unsafe { *to = v }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    unsafe fn add(a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    unsafe fn sub(a: f64, b: f64) -> f64 {
        a - b
    }
    #[inline(always)]
    unsafe fn mul(a: f64, b: f64) -> f64 {
        a * b
    }
    #[inline(always)]
    unsafe fn fold(v: f64) -> f64 {
        v
    }
}

/// An instruction set from its intrinsics, each of which needs only that the
/// set is present (and, for load and store, the trait's pointers).
macro_rules! simd {
    ($name:ident, $v:ident, $lanes:literal, $load:ident, $store:ident, $splat:ident,
     $add:ident, $sub:ident, $mul:ident, |$folded:ident| $fold:expr) => {
        pub(in crate::kernel) struct $name;

        // SAFETY, for every block below: the trait's contract.
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
            unsafe fn fold($folded: $v) -> f64 {
                unsafe { $fold }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(in crate::kernel) use x86::{Avx2, Sse2};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    simd!(
        Sse2,
        __m128d,
        2,
        _mm_loadu_pd,
        _mm_storeu_pd,
        _mm_set1_pd,
        _mm_add_pd,
        _mm_sub_pd,
        _mm_mul_pd,
        |v| _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v)))
    );
    simd!(
        Avx2,
        __m256d,
        4,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        |v| Sse2::fold(_mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v)))
    );
}

#[cfg(target_arch = "aarch64")]
pub(in crate::kernel) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Simd;
    use std::arch::aarch64::*;

    simd!(
        Neon,
        float64x2_t,
        2,
        vld1q_f64,
        vst1q_f64,
        vdupq_n_f64,
        vaddq_f64,
        vsubq_f64,
        vmulq_f64,
        |v| vgetq_lane_f64::<0>(v) + vgetq_lane_f64::<1>(v)
    );
}
