//! The instruction set of aarch64.

use super::lanes::{FoldEach, ROOT, SIGNIFICAND, Simd, TO_ROOT, simd};
use crate::kernel::padding::WIDEST_SHORT;
use std::arch::aarch64::*;

impl FoldEach for Neon {
    /// The sum of the two numbers of each of the first two registers: a₀ + a₁, b₀ + b₁.
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
