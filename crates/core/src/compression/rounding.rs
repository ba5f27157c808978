//! Compressors that send every coordinate with fewer bits, without a norm that is common to all coordinates but a mean.

use super::{Compressor, CompressorInfo, NUMBER_BITS, Operator};
use crate::rng::Stream;

/// No compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoCompression;

/// Natural compression of Horváth et al. 2019: each coordinate is rounded at random to a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NaturalCompression;

/// The sign of each coordinate, times the mean of the absolute values (Karimireddy et al. 2019, "Error feedback fixes
/// SignSGD").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScaledSign;

/// No compression, in the list.
pub(super) const IDENTITY: CompressorInfo = CompressorInfo {
    name: "identity",
    number: None,
    word: None,
    sends: "x",
    omega: Some("0"),
    bits: "64 d",
    make: |_, _| Compressor::Identity(NoCompression),
};

/// Natural compression in the list.
pub(super) const NATURAL: CompressorInfo = CompressorInfo {
    name: "natural",
    number: None,
    word: None,
    sends: "for each coordinate its sign and one of the two powers of two next to |x_i|, at random",
    omega: Some("1/8"),
    bits: "12 d, for a sign and an exponent",
    make: |_, _| Compressor::Natural(NaturalCompression),
};

/// Signs in the list.
pub(super) const SIGN: CompressorInfo = CompressorInfo {
    name: "sign",
    number: None,
    word: None,
    sends: "the mean of all |x_i|, times the sign of each coordinate; 0 counts as positive",
    omega: None,
    bits: "64 + d",
    make: |_, _| Compressor::Sign(ScaledSign),
};

/// The bits of the fraction of a number of double precision.
const FRACTION_BITS: u32 = 52;
/// The bits of its sign and its exponent.
const SIGN_AND_EXPONENT_BITS: u64 = 12;

/// One of the two powers of two next to x, with the sign of x, so that the mean over uniform draws in [0, 1) is x.
/// Below the least normal number of double precision it is this number or 0; what is not finite stays as it is.
pub(super) fn to_power_of_two(x: f64, draw: f64) -> f64 {
    if !x.is_finite() {
        return x;
    }
    let fraction = x.to_bits() & ((1 << FRACTION_BITS) - 1);
    let below = x.to_bits() - fraction;
    // 2^a (1 + f) becomes 2^(a+1) with the probability f. The next exponent is one unit of the exponent's bits higher.
    let is_up = draw < fraction as f64 / (1u64 << FRACTION_BITS) as f64;
    f64::from_bits(if is_up { below + (1 << FRACTION_BITS) } else { below })
}

impl Operator for NoCompression {
    fn info(&self) -> &'static CompressorInfo {
        &IDENTITY
    }

    fn omega(&self, _: usize) -> Option<f64> {
        Some(0.0)
    }

    fn bits(&self, d: usize) -> u64 {
        NUMBER_BITS * d as u64
    }

    fn apply(&self, x: &[f64], _: &mut Stream, out: &mut [f64]) {
        out.copy_from_slice(x);
    }
}

impl Operator for NaturalCompression {
    fn info(&self) -> &'static CompressorInfo {
        &NATURAL
    }

    fn omega(&self, _: usize) -> Option<f64> {
        Some(0.125)
    }

    fn bits(&self, d: usize) -> u64 {
        SIGN_AND_EXPONENT_BITS * d as u64
    }

    /// Takes one draw for each coordinate.
    fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]) {
        for (to, x) in out.iter_mut().zip(x) {
            *to = to_power_of_two(*x, stream.uniform());
        }
    }
}

impl Operator for ScaledSign {
    fn info(&self) -> &'static CompressorInfo {
        &SIGN
    }

    fn omega(&self, _: usize) -> Option<f64> {
        None
    }

    fn bits(&self, d: usize) -> u64 {
        NUMBER_BITS + d as u64
    }

    fn apply(&self, x: &[f64], _: &mut Stream, out: &mut [f64]) {
        let mean = x.iter().fold(0.0, |sum, x| sum + x.abs()) / x.len() as f64;
        for (to, x) in out.iter_mut().zip(x) {
            *to = if *x < 0.0 { -mean } else { mean };
        }
    }
}
