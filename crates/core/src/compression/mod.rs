//! Compressors: operators that shorten a message before it is sent, with the bits that the message then has.
//!
//! A compressor maps a vector x of d numbers to C(x), from draws of a stream of its own. It is *unbiased* if
//! E C(x) = x for every x. Then ω is the smallest number, or a published bound of it, with
//!
//! ```text
//! E ‖C(x) − x‖² ≤ ω ‖x‖²   for every x
//! ```
//!
//! A number takes [`NUMBER_BITS`] and the index of a coordinate [`INDEX_BITS`]. The bits of a message follow from d
//! and the compressor alone, not from x: [`COMPRESSORS`] has the formulas.

mod dithering;
mod rounding;
mod sparse;
mod text;

use crate::rng::Stream;
pub use dithering::{DitheringNorm, NaturalDithering, Qsgd};
pub use rounding::{NaturalCompression, NoCompression, ScaledSign};
pub use sparse::{RandK, TopK};
use std::num::NonZeroU32;
pub use text::CompressorError;

/// The bits of a number that is sent: numbers have double precision.
pub const NUMBER_BITS: u64 = 64;
/// The bits of the index of a coordinate.
pub const INDEX_BITS: u64 = 32;

/// What every compressor can say and do. Vectors have d numbers.
trait Operator {
    /// What the list of compressors says of the kind.
    fn info(&self) -> &'static CompressorInfo;

    /// ω in dimension d, for an unbiased compressor; `None` for a biased one.
    fn omega(&self, d: usize) -> Option<f64>;

    /// The bits of a compressed vector of d numbers.
    fn bits(&self, d: usize) -> u64;

    /// Writes C(x) to `out`, which has the length of x.
    fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]);
}

/// A compressor with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// Sends every number as it is.
    Identity(NoCompression),
    /// Sends coordinates that are drawn.
    RandK(RandK),
    /// Sends the largest coordinates.
    TopK(TopK),
    /// Rounds coordinates at random to multiples of a fraction of the norm.
    Qsgd(Qsgd),
    /// Rounds coordinates at random to powers of two times the norm.
    NaturalDithering(NaturalDithering),
    /// Rounds coordinates at random to powers of two.
    Natural(NaturalCompression),
    /// Sends signs and the mean of the absolute values.
    Sign(ScaledSign),
}

/// A kind of compressors: how it is written, what it does, and what it costs.
#[derive(Debug)]
pub struct CompressorInfo {
    /// Its name, with which the text of a compressor begins.
    pub name: &'static str,
    /// The number that follows the name; `None` if none does.
    pub number: Option<CompressorNumber>,
    /// The word that may come last; `None` if there is none.
    pub word: Option<&'static str>,
    /// What it sends in place of x.
    pub sends: &'static str,
    /// The formula of ω; `None` if the compressor is biased.
    pub omega: Option<&'static str>,
    /// The formula of the bits of a message.
    pub bits: &'static str,
    /// The compressor of this number (1 if it has none), with the word or without it.
    make: fn(NonZeroU32, bool) -> Compressor,
}

/// The number in the text of a compressor.
#[derive(Clone, Copy, Debug)]
pub struct CompressorNumber {
    /// The letter for it in formulas.
    pub letter: &'static str,
    /// The largest value that it can have; the smallest is 1.
    pub most: u32,
}

/// Every kind of compressors.
pub const COMPRESSORS: [&CompressorInfo; 7] = [
    &rounding::IDENTITY,
    &sparse::RAND_K,
    &sparse::TOP_K,
    &dithering::QSGD,
    &dithering::NATURAL_DITHERING,
    &rounding::NATURAL,
    &rounding::SIGN,
];

impl Compressor {
    /// What the list of compressors says of this kind.
    pub fn info(&self) -> &'static CompressorInfo {
        self.operator().info()
    }

    /// The operator behind the variant.
    fn operator(&self) -> &dyn Operator {
        match self {
            Self::Identity(operator) => operator,
            Self::RandK(operator) => operator,
            Self::TopK(operator) => operator,
            Self::Qsgd(operator) => operator,
            Self::NaturalDithering(operator) => operator,
            Self::Natural(operator) => operator,
            Self::Sign(operator) => operator,
        }
    }

    /// Whether E C(x) = x for every x.
    pub fn is_unbiased(&self) -> bool {
        self.info().omega.is_some()
    }

    /// ω in dimension d, by the formula of the list; `None` for a biased compressor.
    pub fn omega(&self, d: usize) -> Option<f64> {
        self.operator().omega(d)
    }

    /// The bits of a compressed vector of d numbers, by the formula of the list.
    pub fn bits(&self, d: usize) -> u64 {
        self.operator().bits(d)
    }

    /// Writes C(x) to `out`. How many draws it takes from the stream may depend on x. What is not finite stays so, and
    /// makes no other compressor fail.
    ///
    /// # Panics
    /// If `out` has another length than x.
    pub fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]) {
        assert_eq!(x.len(), out.len(), "a compressed vector has the length of the vector");
        self.operator().apply(x, stream, out);
    }
}

#[cfg(test)]
mod tests;
