//! Dithering: the norm of a vector, and for each coordinate a level between 0 and 1 next to its share of the norm.

use super::{Compressor, CompressorInfo, CompressorNumber, NUMBER_BITS, Operator};
use crate::rng::Stream;
use std::num::NonZeroU32;

/// The norm by which dithering divides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DitheringNorm {
    /// ‖x‖, the square root of the sum of squares.
    #[default]
    Euclidean,
    /// max |x_i|.
    Max,
}

/// Dithering with the levels 0, 1/s, 2/s, …, 1: QSGD of Alistarh et al. 2017, with the Euclidean norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qsgd {
    /// s, the number of levels above 0.
    pub levels: NonZeroU32,
    /// The norm by which coordinates are divided.
    pub norm: DitheringNorm,
}

/// Dithering with the levels 0, 2^(1−s), …, 1/2, 1: natural dithering of Horváth et al. 2019.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NaturalDithering {
    /// s, the number of levels above 0, at most [`NaturalDithering::MOST_LEVELS`].
    pub levels: NonZeroU32,
    /// The norm by which coordinates are divided.
    pub norm: DitheringNorm,
}

/// The formula of the bits of both compressors ([`dithering_bits`]).
const BITS: &str = "64 + d (1 + ⌈log₂(S + 1)⌉)";

/// QSGD in the list.
pub(super) const QSGD: CompressorInfo = CompressorInfo {
    name: "qsgd",
    number: Some(CompressorNumber { letter: "S", most: u32::MAX }),
    word: Some("max"),
    sends: "the norm of x, and for each coordinate its sign and one of the two levels of 0, 1/S, 2/S, …, 1 next to |x_i| divided by the norm, at random; the norm is ‖x‖, or max |x_i| with `max`",
    omega: Some("min(d/S², √d/S); with `max` min(d/(4 S²), (1 + √d)/(2 S))"),
    bits: BITS,
    make: |levels, is_max| Compressor::Qsgd(Qsgd { levels, norm: DitheringNorm::new(is_max) }),
};

/// Natural dithering in the list.
pub(super) const NATURAL_DITHERING: CompressorInfo = CompressorInfo {
    name: "natural-dithering",
    number: Some(CompressorNumber { letter: "S", most: NaturalDithering::MOST_LEVELS }),
    word: Some("max"),
    sends: "what `qsgd` does, with the levels 0, 2^(1−S), …, 1/4, 1/2, 1",
    omega: Some("1/8 + √d 2^(1−S) min(1, √d 2^(1−S))"),
    bits: BITS,
    make: |levels, is_max| {
        let norm = DitheringNorm::new(is_max);
        Compressor::NaturalDithering(NaturalDithering { levels, norm })
    },
};

impl NaturalDithering {
    /// The most levels above 0: with more the smallest would not be a normal number of double precision.
    pub const MOST_LEVELS: u32 = 1000;

    /// The smallest level above 0, 2^(1−s).
    fn least_level(&self) -> f64 {
        libm::exp2(1.0 - f64::from(self.levels.get()))
    }
}

impl DitheringNorm {
    /// The norm for the word `max` in a text, or without it.
    fn new(is_max: bool) -> Self {
        if is_max { Self::Max } else { Self::Euclidean }
    }

    /// The norm of a vector, NaN if one of its numbers is.
    fn of(self, x: &[f64]) -> f64 {
        match self {
            Self::Euclidean => libm::sqrt(x.iter().fold(0.0, |sum, x| sum + x * x)),
            Self::Max => x.iter().fold(0.0, |most: f64, x| {
                if x.is_nan() || most.is_nan() { f64::NAN } else { most.max(x.abs()) }
            }),
        }
    }
}

/// The bits of a norm, and of a sign and one of s + 1 levels for each of d coordinates.
fn dithering_bits(levels: NonZeroU32, d: usize) -> u64 {
    // ⌈log₂(s + 1)⌉ is the number of binary digits of s.
    let of_level = u64::from(u32::BITS - levels.get().leading_zeros());
    NUMBER_BITS + d as u64 * (1 + of_level)
}

/// Writes norm · level · sign for each coordinate, where `level` takes |x_i| divided by the norm and a uniform draw.
fn dither(
    norm: f64,
    x: &[f64],
    stream: &mut Stream,
    out: &mut [f64],
    level: impl Fn(f64, f64) -> f64,
) {
    for (to, x) in out.iter_mut().zip(x) {
        let draw = stream.uniform();
        // The zero vector has no levels, and is sent as it is.
        *to = if norm == 0.0 { 0.0 } else { (norm * level(x.abs() / norm, draw)).copysign(*x) };
    }
}

impl Operator for Qsgd {
    fn info(&self) -> &'static CompressorInfo {
        &QSGD
    }

    /// Alistarh et al. 2017, Lemma 3.1, for the Euclidean norm. With M = max |x_i|, the variance is at most
    /// Σ (M/s)² min(1/4, s|x_i|/M), and M Σ |x_i| ≤ (1 + √d)/2 ‖x‖².
    fn omega(&self, d: usize) -> Option<f64> {
        let d = d as f64;
        let s = f64::from(self.levels.get());
        let root = libm::sqrt(d);
        Some(match self.norm {
            DitheringNorm::Euclidean => (d / (s * s)).min(root / s),
            DitheringNorm::Max => (d / (4.0 * s * s)).min((1.0 + root) / (2.0 * s)),
        })
    }

    fn bits(&self, d: usize) -> u64 {
        dithering_bits(self.levels, d)
    }

    /// Takes one draw for each coordinate.
    fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]) {
        let s = f64::from(self.levels.get());
        dither(self.norm.of(x), x, stream, out, |share, draw| {
            let below = (share * s).floor();
            let is_up = draw < share * s - below;
            // The share of a single coordinate may be above 1 by a rounding error.
            (below + f64::from(u8::from(is_up))).min(s) / s
        });
    }
}

impl Operator for NaturalDithering {
    fn info(&self) -> &'static CompressorInfo {
        &NATURAL_DITHERING
    }

    /// Horváth et al. 2019, for both norms.
    fn omega(&self, d: usize) -> Option<f64> {
        let size = libm::sqrt(d as f64) * self.least_level();
        Some(0.125 + size * size.min(1.0))
    }

    fn bits(&self, d: usize) -> u64 {
        dithering_bits(self.levels, d)
    }

    /// Takes one draw for each coordinate.
    fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]) {
        let least = self.least_level();
        dither(self.norm.of(x), x, stream, out, |share, draw| {
            if share < least {
                return if draw * least < share { least } else { 0.0 };
            }
            super::rounding::to_power_of_two(share, draw).min(1.0)
        });
    }
}
