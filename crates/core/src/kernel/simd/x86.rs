//! The instruction sets of x86-64.

use super::lanes::{FoldEach, ROOT, SIGNIFICAND, Simd, Strips, TO_ROOT, simd};
use crate::kernel::padding::WIDEST_SHORT;
use std::arch::x86_64::*;

/// The bits of the number 2⁵². If the lowest of them are set to those of a small whole number, the number 2⁵² + that
/// number results.
const TWO_52: i64 = 0x4330 << 48;
/// 2⁵² and the bias of exponents.
const BIASED_TWO_52: f64 = (1_u64 << 52) as f64 + 1023.0;

impl Strips for Avx512 {
    type Short = Avx2;

    /// Adds the upper four numbers of the register to the lower four and writes these four sums to `to`, which has room
    /// for them. The eight numbers are partial sums of one product of two rows. The four are the next step by which
    /// the product is folded; [`FoldEach::fold_each`] later adds up the four of several products at once.
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
    /// The sum of the two numbers of each of the first two registers: a₀ + a₁, b₀ + b₁.
    #[inline(always)]
    unsafe fn fold_each([a, b, ..]: [__m128d; WIDEST_SHORT]) -> __m128d {
        // SAFETY: the trait's contract.
        unsafe { _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)) }
    }
}

impl FoldEach for Avx2 {
    /// The sum of the four numbers of each register, added up in the order of [`Simd::fold`]: (a₀ + a₂) + (a₁ + a₃),
    /// then the sums of b, c and d.
    #[inline(always)]
    unsafe fn fold_each([a, b, c, d]: [__m256d; WIDEST_SHORT]) -> __m256d {
        // SAFETY: the trait's contract.
        unsafe {
            // a₀ + a₂, a₁ + a₃, c₀ + c₂, c₁ + c₃.
            let low_of_a_c = _mm256_permute2f128_pd::<0x20>(a, c);
            let first = _mm256_add_pd(low_of_a_c, _mm256_permute2f128_pd::<0x31>(a, c));
            let low_of_b_d = _mm256_permute2f128_pd::<0x20>(b, d);
            let second = _mm256_add_pd(low_of_b_d, _mm256_permute2f128_pd::<0x31>(b, d));
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
        // Together with the bits of 2⁵², the biased exponent is the number 2⁵² + exponent.
        let exponent = _mm_or_si128(_mm_srli_epi64::<52>(moved), _mm_set1_epi64x(TWO_52));
        let k = _mm_sub_pd(_mm_castsi128_pd(exponent), _mm_set1_pd(BIASED_TWO_52));
        let significand = _mm_and_si128(moved, _mm_set1_epi64x(SIGNIFICAND));
        (k, _mm_castsi128_pd(_mm_add_epi64(significand, _mm_set1_epi64x(ROOT))))
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
        // Together with the bits of 2⁵², the biased exponent is the number 2⁵² + exponent.
        let exponent = _mm256_or_si256(_mm256_srli_epi64::<52>(moved), _mm256_set1_epi64x(TWO_52));
        let k = _mm256_sub_pd(_mm256_castsi256_pd(exponent), _mm256_set1_pd(BIASED_TWO_52));
        let significand = _mm256_and_si256(moved, _mm256_set1_epi64x(SIGNIFICAND));
        (k, _mm256_castsi256_pd(_mm256_add_epi64(significand, _mm256_set1_epi64x(ROOT))))
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
        // Together with the bits of 2⁵², the biased exponent is the number 2⁵² + exponent.
        let exponent = _mm512_or_si512(_mm512_srli_epi64::<52>(moved), _mm512_set1_epi64(TWO_52));
        let k = _mm512_sub_pd(_mm512_castsi512_pd(exponent), _mm512_set1_pd(BIASED_TWO_52));
        let significand = _mm512_and_si512(moved, _mm512_set1_epi64(SIGNIFICAND));
        (k, _mm512_castsi512_pd(_mm512_add_epi64(significand, _mm512_set1_epi64(ROOT))))
    };
    fold(v) {
        let high = _mm512_extractf64x4_pd::<1>(v);
        Avx2::fold(_mm256_add_pd(_mm512_castpd512_pd256(v), high))
    };
}
