//! log(1 + x) for several x at a time, with the bits of `libm`.
//!
//! The operations are those of `libm` (FreeBSD's `s_log1p.c`: 1 + x = 2^k (1 + f), and a rational
//! approximation of log(1 + f)), in its order, in lanes. Its cases are selected instead of
//! branched, apart from those of numbers that have no logarithm. The Bregman divergences of softmax regression
//! need it.

use super::exp::{LN2_HIGH, LN2_LOW};
use super::padding::WIDEST;
use super::simd::Simd;

/// Coefficients of z L₁ + z² L₂ + …, with z = s² and s = f/(2 + f).
const L: [f64; 7] = [
    f64::from_bits(0x3fe5_5555_5555_5593),
    f64::from_bits(0x3fd9_9999_9997_fa04),
    f64::from_bits(0x3fd2_4924_9422_9359),
    f64::from_bits(0x3fcc_71c5_1d8e_78af),
    f64::from_bits(0x3fc7_4664_96cb_03de),
    f64::from_bits(0x3fc3_9a09_d078_c69f),
    f64::from_bits(0x3fc2_f112_df3e_5244),
];
/// √½ − 1, by its leading bits: for x between this and [`TO`], k = 0 and f = x.
const FROM: f64 = f64::from_bits(0xbfd2_bec5_0000_0000);
/// √2 − 1, by its leading bits.
const TO: f64 = f64::from_bits(0x3fda_827a_0000_0000);
/// Below this |x|, log(1 + x) is x: 2⁻⁵³.
const TINY: f64 = f64::from_bits(0x3ca0_0000_0000_0000);

/// log(1 + x) of each number of a register, with the bits of `libm`.
///
/// # Safety
/// The instruction set `I` is present.
#[inline(always)]
pub(in crate::kernel) unsafe fn log1p<I: Simd>(x: I::V) -> I::V {
    // SAFETY: passed on to the caller; 1 + x is positive and normal.
    unsafe {
        let zero = I::splat(0.0);
        let one = I::splat(1.0);
        // `outside` is 1 where x is −1 or less, infinite or NaN, and 0 elsewhere.
        let no_logarithm = I::below(I::splat(-1.0), x, zero, one);
        let outside = I::below(x, I::splat(f64::INFINITY), no_logarithm, one);
        if I::fold(outside) > 0.0 {
            let mut each = [0.0; WIDEST];
            I::store(each.as_mut_ptr(), x);
            each[..I::LANES].iter_mut().for_each(|x| *x = libm::log1p(*x));
            return I::load(each.as_ptr());
        }
        let u = I::add(one, x);
        let (k, m) = I::split(u);
        // The rounding error of the sum u and, divided by u, what it changes in the logarithm.
        let lost = I::below(k, I::splat(1.5), I::sub(x, I::sub(u, one)), I::sub(one, I::sub(u, x)));
        let correction = I::below(k, I::splat(53.5), I::div(lost, u), zero);
        let not_above = I::below(x, I::splat(TO), one, zero);
        let near = I::below(I::splat(FROM), x, not_above, zero);
        // Near 0, f is x itself: there is nothing to scale and nothing lost.
        let k = I::below(zero, near, zero, k);
        let c = I::below(zero, near, zero, correction);
        let f = I::below(zero, near, x, I::sub(m, one));
        let half_square = I::mul(I::mul(I::splat(0.5), f), f);
        let s = I::div(f, I::add(I::splat(2.0), f));
        let z = I::mul(s, s);
        let w = I::mul(z, z);
        let mut even = I::splat(L[5]);
        for l in [L[3], L[1]] {
            even = I::add(I::splat(l), I::mul(w, even));
        }
        let mut odd = I::splat(L[6]);
        for l in [L[4], L[2], L[0]] {
            odd = I::add(I::splat(l), I::mul(w, odd));
        }
        let r = I::add(I::mul(z, odd), I::mul(w, even));
        // s (f²/2 + r) + (k ln2_low + c) − f²/2 + f + k ln2_high, in the order of `libm`.
        let product = I::mul(s, I::add(half_square, r));
        let small_terms = I::add(product, I::add(I::mul(k, I::splat(LN2_LOW)), c));
        let log_of_m = I::add(I::sub(small_terms, half_square), f);
        let value = I::add(log_of_m, I::mul(k, I::splat(LN2_HIGH)));
        I::below(I::abs(x), I::splat(TINY), x, value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::testing::assert_bits_of;
    use super::super::simd::{InstructionSet, in_lanes};
    use super::*;

    #[test]
    fn every_path_has_the_bits_of_libm() {
        let root = std::f64::consts::SQRT_2;
        let powers = (-60..=60).chain([600, 1000, 1023]).map(|k| libm::exp2(f64::from(k)));
        // Seams of 1 + x, where k changes, and of x.
        let seams = powers.flat_map(|power| [power, power * root, power - 1.0, power * root - 1.0]);
        let special = [FROM, TO, TINY, 0.0, 1.0, 5e-324, 1e-310, f64::MIN_POSITIVE, f64::MAX];
        let mut samples: Vec<f64> = seams
            .chain(special)
            .chain([f64::INFINITY])
            .flat_map(|x: f64| [x, x.next_up(), x.next_down(), x * (1.0 + 1e-8)])
            .collect();
        samples.push(f64::NAN);
        let scales = [1e-300, 1e-16, 1e-9, 1e-3, 0.1, 0.5, 1.0, 40.0, 1e15, 1e17, 1e200];
        let replace = |path: InstructionSet, x: &mut [f64]| {
            // SAFETY: whole registers.
            in_lanes!(path, I, (x: &mut [f64]) => {
                for x in x.chunks_exact_mut(I::LANES) {
                    I::store(x.as_mut_ptr(), log1p::<I>(I::load(x.as_ptr())));
                }
            });
        };
        assert_bits_of(libm::log1p, replace, &samples, &scales);
    }
}
