//! e^u, σ(u) = 1/(1 + e^−u) and e^u − 1 − u for several u at a time, with the bits of `libm`.
//!
//! The operations are those of `libm` (FreeBSD's `e_exp.c`: e^x = 2^k e^r with
//! |r| ≤ ½ ln 2, and a rational approximation of e^r), in its order, in lanes. Its three
//! cases are selected instead of branched. If |u| is so large that e^−u is not a normal
//! number, `libm` itself is called.

use super::simd::Simd;

const INV_LN2: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
/// ln 2 in two parts; the first is short enough for k·LN2_HIGH to be exact.
pub(in crate::kernel) const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
pub(in crate::kernel) const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Coefficients of r − r²(P₁ + r²(P₂ + …)).
const P: [f64; 5] = [
    f64::from_bits(0x3fc5_5555_5555_553e),
    f64::from_bits(0xbf66_c16c_16be_bd93),
    f64::from_bits(0x3f11_566a_af25_de2c),
    f64::from_bits(0xbebb_bd41_c5d2_6bf1),
    f64::from_bits(0x3e66_3769_72be_a4d0),
];
/// From this |x| on, `libm` checks whether e^x overflows or underflows.
pub(in crate::kernel) const LARGE: f64 = f64::from_bits(0x4086_232b_0000_0000);
/// Below this |x|, k = 0: ½ ln 2, truncated as in `libm`.
const REDUCED: f64 = f64::from_bits(0x3fd6_2e43_0000_0000);
/// Below this |x|, e^x is 1 + x: 2⁻²⁸, rounded as in `libm`.
const TINY: f64 = f64::from_bits(0x3e30_0001_0000_0000);

/// σ(u) = 1/(1 + e^−u): the definition, which [`sigmoids`] repeats in lanes.
#[inline]
pub fn sigmoid(u: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-u))
}

/// Whether |x| < [`LARGE`] for all of these numbers, so that they need not be left to `libm`; false also if one is NaN.
#[inline(always)]
fn ordinary(x: &[f64]) -> bool {
    let mut ordinary = true;
    for x in x {
        ordinary &= x.abs() < LARGE;
    }
    ordinary
}

/// Replaces each u by σ(u), with the bits of [`sigmoid`].
///
/// # Safety
/// The instruction set `I` is present; the length is a multiple of its lanes.
#[inline(always)]
pub(in crate::kernel) unsafe fn sigmoids<I: Simd>(u: &mut [f64]) {
    if !ordinary(u) {
        u.iter_mut().for_each(|u| *u = sigmoid(*u));
        return;
    }
    // SAFETY: whole registers of u, and |u| is below `LARGE`.
    unsafe {
        let one = I::splat(1.0);
        let mut i = 0;
        while i < u.len() {
            let pointer = u.as_mut_ptr().add(i);
            let exp = exp::<I>(I::sub(I::splat(0.0), I::load(pointer)));
            I::store(pointer, I::div(one, I::add(one, exp)));
            i += I::LANES;
        }
    }
}

/// Replaces each x by e^x, with the bits of `libm`. `ordinary` says that all |x| are below [`LARGE`]: where it is said
/// wrongly, results are wrong; without it, `libm` is called for each number, which is always right.
///
/// # Safety
/// The instruction set `I` is present; the length is a multiple of its lanes.
#[inline(always)]
pub(in crate::kernel) unsafe fn exps<I: Simd>(x: &mut [f64], ordinary: bool) {
    if !ordinary {
        x.iter_mut().for_each(|x| *x = libm::exp(*x));
        return;
    }
    // SAFETY: whole registers of x, and |x| is below `LARGE`.
    unsafe {
        let mut i = 0;
        while i < x.len() {
            let pointer = x.as_mut_ptr().add(i);
            I::store(pointer, exp::<I>(I::load(pointer)));
            i += I::LANES;
        }
    }
}

/// e^x of each number of a register, with the bits of `libm`.
///
/// # Safety
/// The instruction set `I` is present; |x| < `LARGE`.
#[inline(always)]
unsafe fn exp<I: Simd>(x: I::V) -> I::V {
    // SAFETY: passed on to the caller; |x|/ln 2 is below 1023.
    unsafe {
        let size = I::abs(x);
        let half = I::signed(I::splat(0.5), x);
        let (k, power) = I::whole(I::add(I::mul(I::splat(INV_LN2), x), half));
        let reduced = I::splat(REDUCED);
        let k = I::below(size, reduced, I::splat(0.0), k);
        let power = I::below(size, reduced, I::splat(1.0), power);
        let high = I::sub(x, I::mul(k, I::splat(LN2_HIGH)));
        let low = I::mul(k, I::splat(LN2_LOW));
        let r = I::sub(high, low);
        let square = I::mul(r, r);
        let mut sum = I::splat(P[4]);
        for p in [P[3], P[2], P[1], P[0]] {
            sum = I::add(I::splat(p), I::mul(square, sum));
        }
        let c = I::sub(r, I::mul(square, sum));
        let ratio = I::div(I::mul(r, c), I::sub(I::splat(2.0), c));
        let y = I::add(I::splat(1.0), I::add(I::sub(ratio, low), high));
        let linear = I::add(I::splat(1.0), x);
        I::below(size, I::splat(TINY), linear, I::mul(y, power))
    }
}

/// e^x − 1 − x, with an error of some units in the last place also where x is small: the definition, which
/// [`beyond_linears`] repeats in lanes for divergences of softmax regression. The terms of the series that are left out
/// are below 1e-17 of the sum.
pub fn beyond_linear(x: f64) -> f64 {
    if x.abs() > SERIES {
        return libm::expm1(x) - x;
    }
    // x²/2 (1 + x/3 (1 + x/4 (…))).
    let series = (3..=14).rev().fold(1.0, |tail, n| 1.0 + x / f64::from(n) * tail);
    0.5 * x * x * series
}

/// The largest |x| for which [`beyond_linear`] is a series.
const SERIES: f64 = 0.5;
/// From this |x| on, [`beyond_linears`] computes numbers one by one.
const MOST_IN_LANES: f64 = 700.0;
/// From −56 ln 2 down, e^x − 1 is −1 in `libm`, by the leading bits.
const LEAST: f64 = f64::from_bits(0xc043_687a_0000_0000);
/// Coefficients of the rational approximation in `libm`'s `expm1` (FreeBSD's `s_expm1.c`).
const Q: [f64; 5] = [
    f64::from_bits(0xbfa1_1111_1111_10f4),
    f64::from_bits(0x3f5a_01a0_19fe_5585),
    f64::from_bits(0xbf14_ce19_9eaa_dbb7),
    f64::from_bits(0x3ed0_cfca_86e6_5239),
    f64::from_bits(0xbe8a_fdb7_6e09_c32d),
];

/// Replaces each x by [`beyond_linear`], to the last bit.
///
/// # Safety
/// The instruction set `I` is present; the length is a multiple of its lanes.
#[inline(always)]
pub(in crate::kernel) unsafe fn beyond_linears<I: Simd>(x: &mut [f64]) {
    // SAFETY: passed on to the caller; whole registers of x, and |x| is below `MOST_IN_LANES`
    // for `expm1`.
    unsafe {
        let zero = I::splat(0.0);
        let one = I::splat(1.0);
        let seam = I::splat(SERIES);
        // A number is extreme if |x| is at least `MOST_IN_LANES` or x is NaN, and large if the series does not serve
        // it.
        let mut extreme = zero;
        let mut large = zero;
        for x in x.chunks_exact(I::LANES) {
            let size = I::abs(I::load(x.as_ptr()));
            extreme = I::add(extreme, I::below(size, I::splat(MOST_IN_LANES), zero, one));
            large = I::add(large, I::below(seam, size, one, zero));
        }
        if I::fold(extreme) > 0.0 {
            x.iter_mut().for_each(|x| *x = beyond_linear(*x));
            return;
        }
        let no_large = I::fold(large) == 0.0;
        for lanes in x.chunks_exact_mut(I::LANES) {
            let x = I::load(lanes.as_ptr());
            let mut value = series::<I>(x);
            if !no_large {
                value = I::below(seam, I::abs(x), I::sub(expm1::<I>(x), x), value);
            }
            I::store(lanes.as_mut_ptr(), value);
        }
    }
}

/// The series of [`beyond_linear`] with its bits, but with fewer divisions: x/(2n) is half of x/n to the last bit,
/// unless it is so small that it does not change the 1 to which it is added.
///
/// # Safety
/// The instruction set `I` is present.
#[inline(always)]
unsafe fn series<I: Simd>(x: I::V) -> I::V {
    // SAFETY: passed on to the caller.
    unsafe {
        let half = I::splat(0.5);
        let [by_3, by_5, by_7, by_9, by_11, by_13] = [
            I::div(x, I::splat(3.0)),
            I::div(x, I::splat(5.0)),
            I::div(x, I::splat(7.0)),
            I::div(x, I::splat(9.0)),
            I::div(x, I::splat(11.0)),
            I::div(x, I::splat(13.0)),
        ];
        let by_4 = I::mul(x, I::splat(0.25));
        let by_6 = I::mul(by_3, half);
        let falling = [
            I::mul(by_7, half),
            by_13,
            I::mul(by_6, half),
            by_11,
            I::mul(by_5, half),
            by_9,
            I::mul(by_4, half),
            by_7,
            by_6,
            by_5,
            by_4,
            by_3,
        ];
        let mut tail = I::splat(1.0);
        for quotient in falling {
            tail = I::add(I::splat(1.0), I::mul(quotient, tail));
        }
        I::mul(I::mul(I::mul(half, x), x), tail)
    }
}

/// e^x − 1 with the operations of `libm` where |x| is above [`SERIES`]: it is 2^k e^r − 1 with
/// k from the nearest multiple of ln 2, which is not 0. In lanes with a smaller |x| the result means nothing:
/// [`beyond_linears`] takes the series there.
///
/// # Safety
/// The instruction set `I` is present; |x| < [`MOST_IN_LANES`].
#[inline(always)]
unsafe fn expm1<I: Simd>(x: I::V) -> I::V {
    // SAFETY: passed on to the caller; |x|/ln 2 is below 1023.
    unsafe {
        let one = I::splat(1.0);
        let half = I::splat(0.5);
        let two = I::splat(2.0);
        let nearest = I::add(I::mul(I::splat(INV_LN2), x), I::signed(half, x));
        let (k, power) = I::whole(nearest);
        let (_, inverse) = I::whole(I::sub(I::splat(0.0), k));
        let high = I::sub(x, I::mul(k, I::splat(LN2_HIGH)));
        let low = I::mul(k, I::splat(LN2_LOW));
        let r = I::sub(high, low);
        let c = I::sub(I::sub(high, r), low);
        let half_r = I::mul(half, r);
        let square = I::mul(r, half_r);
        let mut sum = I::splat(Q[4]);
        for q in [Q[3], Q[2], Q[1], Q[0], 1.0] {
            sum = I::add(I::splat(q), I::mul(square, sum));
        }
        let t = I::sub(I::splat(3.0), I::mul(sum, half_r));
        let ratio = I::div(I::sub(sum, t), I::sub(I::splat(6.0), I::mul(r, t)));
        let e_and_square = I::sub(I::mul(r, I::sub(I::mul(square, ratio), c)), c);
        let e = I::sub(e_and_square, square);
        // What the steps of `libm` are for each k.
        let near = I::sub(r, e);
        let minus_one = I::sub(I::mul(half, near), half);
        let below_quarter = I::mul(I::splat(-2.0), I::sub(e, I::add(r, half)));
        let above_quarter = I::add(one, I::mul(two, near));
        let plus_one = I::below(r, I::splat(-0.25), below_quarter, above_quarter);
        let to_19 = I::mul(I::add(near, I::sub(one, inverse)), power);
        let to_56 = I::mul(I::add(I::sub(r, I::add(e, inverse)), one), power);
        let other = I::sub(I::mul(I::add(near, one), power), one);
        // The case of k, from the largest k down.
        let from_20 = I::below(k, I::splat(56.5), to_56, other);
        let from_2 = I::below(k, I::splat(19.5), to_19, from_20);
        let from_1 = I::below(k, I::splat(1.5), plus_one, from_2);
        let from_minus_1 = I::below(k, I::splat(0.0), minus_one, from_1);
        let any = I::below(k, I::splat(-1.5), other, from_minus_1);
        I::below(I::splat(LEAST), x, any, I::splat(-1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::testing::assert_bits_of;
    use super::super::simd::{InstructionSet, in_lanes};
    use super::*;

    /// A function that replaces numbers on an instruction set: `$replace` is run on each slice of one register.
    macro_rules! in_registers {
        ($I:ident, $register:ident => $replace:expr) => {
            |path: InstructionSet, x: &mut [f64]| {
                // SAFETY: whole registers.
                in_lanes!(path, $I, (x: &mut [f64]) => {
                    for $register in x.chunks_exact_mut($I::LANES) {
                        $replace;
                    }
                });
            }
        };
    }

    #[test]
    fn every_path_has_the_bits_of_libm() {
        let half = 0.5 * std::f64::consts::LN_2;
        let special = [0.0, TINY, REDUCED, LARGE, 1.0, half, 3.0 * half, f64::MAX, f64::INFINITY];
        let ordinary_and_not = [1e-300, 5e-324, 700.0, 709.0, 745.2, 1e3];
        let all = special.into_iter().chain(ordinary_and_not);
        let mut samples: Vec<f64> = all.flat_map(|x| [x, x.next_up(), x.next_down()]).collect();
        samples.push(f64::NAN);
        let scales = [1e-9, 1e-3, 0.3, 1.0, 10.0, 300.0, 740.0];
        let by_sigmoids = in_registers!(I, x => sigmoids::<I>(x));
        assert_bits_of(sigmoid, by_sigmoids, &samples, &scales);
        let by_exps = in_registers!(I, x => exps::<I>(x, ordinary(x)));
        assert_bits_of(libm::exp, by_exps, &samples, &scales);
    }

    #[test]
    fn beyond_linear_has_the_bits_of_the_definition_on_every_path() {
        let ln2 = std::f64::consts::LN_2;
        let mut samples = vec![f64::NAN, f64::INFINITY, 1e300, 800.0, 5e-324, 1e-310, 1e-200, 0.0];
        // The seams of `libm` and of the series.
        let multiples = (1..=60).flat_map(|k| [f64::from(k) * ln2, (f64::from(k) - 0.5) * ln2]);
        let seams = [SERIES, MOST_IN_LANES, -LEAST, f64::from_bits(0x3ff0_a2b2_0000_0000)];
        for seam in multiples.chain(seams) {
            samples.extend([seam, seam.next_up(), seam.next_down(), seam * (1.0 + 1e-8)]);
        }
        let scales = [1e-9, 1e-3, 0.1, 0.5, 1.0, 10.0, 40.0, 300.0];
        let replace = in_registers!(I, x => beyond_linears::<I>(x));
        assert_bits_of(beyond_linear, replace, &samples, &scales);
    }
}
