//! What tests run on each instruction set.

#[cfg(target_arch = "aarch64")]
use super::Neon;
#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512, Sse2};
use super::{InstructionSet, ScalarLane, Simd};
use crate::rng::Stream;

/// What replaces numbers in lanes.
pub(in crate::kernel) trait InLanes {
    /// # Safety
    /// The instruction set `I` is present; the length is a multiple of its lanes.
    unsafe fn replace<I: Simd>(x: &mut [f64]);

    /// On an instruction set that is present.
    fn on(path: InstructionSet, x: &mut [f64]) {
        // SAFETY: the path is available, and registers are whole.
        unsafe {
            match path {
                InstructionSet::Scalar => Self::replace::<ScalarLane>(x),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Sse2 => Self::replace::<Sse2>(x),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => avx2::<Self>(x),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512 => avx512::<Self>(x),
                #[cfg(target_arch = "aarch64")]
                InstructionSet::Neon => Self::replace::<Neon>(x),
            }
        }
    }

    /// Compares every path with what replaces single numbers, bit by bit: these and Gaussian ones of
    /// these scales, of both signs, in different company: next to others of the list, and next to
    /// ordinary ones.
    fn assert_bits_of(definition: impl Fn(f64) -> f64, samples: &[f64], scales: &[f64]) {
        let mut rng = Stream::shared_instance(9);
        let drawn = scales.iter().flat_map(|scale| [*scale; 40_000]).map(|x| x * rng.gaussian());
        let both = samples.iter().copied().chain(drawn).flat_map(|x| [x, -x]);
        let samples: Vec<f64> = both.collect();
        let apart = samples.iter().flat_map(|&x| [x, 0.1, -0.5, 0.25]);
        let mut all: Vec<f64> = samples.iter().copied().chain(apart).collect();
        all.resize(all.len().next_multiple_of(super::WIDEST), 0.75);
        for path in InstructionSet::available() {
            let mut out = all.clone();
            Self::on(path, &mut out);
            for (x, out) in all.iter().zip(out) {
                assert_eq!(out.to_bits(), definition(*x).to_bits(), "{x:e} on {path:?}");
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<F: InLanes + ?Sized>(x: &mut [f64]) {
    // SAFETY: the attribute above.
    unsafe { F::replace::<Avx2>(x) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512dq,avx512vl")]
fn avx512<F: InLanes + ?Sized>(x: &mut [f64]) {
    // SAFETY: the attribute above.
    unsafe { F::replace::<Avx512>(x) }
}
