//! e^u and σ(u) = 1/(1 + e^−u) for several u at a time, with the bits of `libm::exp`.
//!
//! The operations are those of `libm` (FreeBSD's `e_exp.c`: e^x = 2^k e^r with
//! |r| ≤ ½ ln 2, and a rational approximation of e^r), in its order, in lanes. Its three
//! cases are selected instead of branched. If |u| is so large that e^−u is not a normal
//! number, `libm` itself is called.

use super::simd::Simd;

const INV_LN2: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
/// ln 2 in two parts; the first is short enough for k·LN2_HIGH to be exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Coefficients of r − r²(P₁ + r²(P₂ + …)).
const P: [f64; 5] = [
    f64::from_bits(0x3fc5_5555_5555_553e),
    f64::from_bits(0xbf66_c16c_16be_bd93),
    f64::from_bits(0x3f11_566a_af25_de2c),
    f64::from_bits(0xbebb_bd41_c5d2_6bf1),
    f64::from_bits(0x3e66_3769_72be_a4d0),
];
/// From here on, `libm` checks for overflow and underflow.
pub(in crate::kernel) const LARGE: f64 = f64::from_bits(0x4086_232b_0000_0000);
/// Below this, k = 0: ½ ln 2, truncated as in `libm`.
const REDUCED: f64 = f64::from_bits(0x3fd6_2e43_0000_0000);
/// Below this, e^x is 1 + x: 2⁻²⁸, rounded as in `libm`.
const TINY: f64 = f64::from_bits(0x3e30_0001_0000_0000);

/// 1/(1 + e^−u).
#[inline]
pub fn sigmoid(u: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-u))
}

/// Whether |x| < `LARGE` for all of these numbers; false if one is NaN, for which `libm` is
/// called too.
#[inline(always)]
fn ordinary(x: &[f64]) -> bool {
    let mut ordinary = true;
    for x in x {
        ordinary &= x.abs() < LARGE;
    }
    ordinary
}

/// Replaces each u by σ(u).
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

/// Replaces each x by e^x; `ordinary` says whether all |x| are below [`LARGE`].
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

/// e^x.
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

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::super::simd::{Avx2, Sse2};
    use super::super::simd::{InstructionSet, ScalarLane};
    use super::*;
    use crate::rng::Stream;

    /// σ and e^x of four numbers.
    fn on(path: InstructionSet, u: [f64; 4]) -> [[f64; 4]; 2] {
        /// # Safety
        /// The instruction set is present.
        #[inline(always)]
        unsafe fn both<I: Simd>([sigma, exp]: &mut [[f64; 4]; 2]) {
            // SAFETY: passed on to the caller.
            unsafe {
                sigmoids::<I>(sigma);
                let known = ordinary(exp);
                exps::<I>(exp, known);
            }
        }
        let mut out = [u; 2];
        // SAFETY: the path is available.
        unsafe {
            match path {
                InstructionSet::Scalar => both::<ScalarLane>(&mut out),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Sse2 => both::<Sse2>(&mut out),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 | InstructionSet::Avx512 => {
                    #[target_feature(enable = "avx2")]
                    fn run(u: &mut [[f64; 4]; 2]) {
                        // SAFETY: the attribute above.
                        unsafe { both::<Avx2>(u) }
                    }
                    run(&mut out);
                }
                #[cfg(target_arch = "aarch64")]
                InstructionSet::Neon => both::<super::super::simd::Neon>(&mut out),
            }
        }
        out
    }

    fn assert_bits(path: InstructionSet, x: &[f64; 4]) {
        let [sigma, exp] = on(path, *x);
        for ((sigma, exp), x) in sigma.iter().zip(exp).zip(x) {
            assert_eq!(sigma.to_bits(), sigmoid(*x).to_bits(), "σ({x:e}) on {path:?}");
            assert_eq!(exp.to_bits(), libm::exp(*x).to_bits(), "e^{x:e} on {path:?}");
        }
    }

    #[test]
    fn every_path_has_the_bits_of_libm() {
        let mut rng = Stream::shared_instance(9);
        let mut samples: Vec<f64> = [
            0.0,
            TINY,
            REDUCED,
            LARGE,
            1.0,
            0.5 * std::f64::consts::LN_2,
            1.5 * std::f64::consts::LN_2,
            1e-300,
            5e-324,
            700.0,
            709.0,
            745.2,
            1e3,
            f64::MAX,
            f64::INFINITY,
        ]
        .into_iter()
        .flat_map(|x: f64| [x, x.next_up(), x.next_down()])
        .collect();
        samples.push(f64::NAN);
        for scale in [1e-9, 1e-3, 0.3, 1.0, 10.0, 300.0, 740.0] {
            samples.extend((0..40_000).map(|_| scale * rng.gaussian()));
        }
        let both: Vec<f64> = samples.iter().flat_map(|&x| [x, -x]).collect();
        // Once with special values next to each other, and once next to ordinary ones.
        for path in InstructionSet::available() {
            both.as_chunks::<4>().0.iter().for_each(|four| assert_bits(path, four));
            both.iter().for_each(|&x| assert_bits(path, &[x, 1.0, -1.0, 0.25]));
        }
    }
}
