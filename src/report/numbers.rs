//! Numbers inside a page: all of them in two blocks of base64, each sequence once.
//!
//! *Invariant*: a number is stored with seven digits or more; sequences that exceed the exponents
//! of single precision are in the block of doubles.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::HashMap;

/// Where a sequence of numbers is stored: its block (0 of singles, 1 of doubles), the index of its first number there,
/// and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slice(pub u8, pub usize, pub usize);

/// The blocks while they grow.
#[derive(Default)]
pub struct Numbers {
    /// The bytes of the numbers in single precision.
    singles: Vec<u8>,
    /// The bytes of the numbers in double precision.
    doubles: Vec<u8>,
    /// The sequences that are stored, by the bits of their numbers.
    known: HashMap<Vec<u64>, Slice>,
}

/// The blocks in base64, as a page holds them.
#[derive(Serialize)]
pub struct NumberBlocks {
    pub singles: String,
    pub doubles: String,
}

/// Whether single precision stores a number to seven digits.
fn fits_single(x: f64) -> bool {
    let size = x.abs();
    x == 0.0 || !x.is_finite() || (1e-37..1e38).contains(&size)
}

impl Numbers {
    /// Stores a sequence, unless one with the same bits is stored already, and returns where it is. It is stored in
    /// single precision, by which its numbers are rounded, if all of them keep seven digits then; else in double
    /// precision.
    pub fn add(&mut self, values: impl IntoIterator<Item = f64>) -> Slice {
        let values: Vec<f64> = values.into_iter().collect();
        let bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
        if let Some(known) = self.known.get(&bits) {
            return *known;
        }
        let slice = if values.iter().all(|x| fits_single(*x)) {
            let first = self.singles.len() / 4;
            values.iter().for_each(|x| self.singles.extend((*x as f32).to_le_bytes()));
            Slice(0, first, values.len())
        } else {
            let first = self.doubles.len() / 8;
            values.iter().for_each(|x| self.doubles.extend(x.to_le_bytes()));
            Slice(1, first, values.len())
        };
        self.known.insert(bits, slice);
        slice
    }

    /// The bytes that the blocks take in a page, where base64 makes four of three.
    pub fn bytes(&self) -> usize {
        [&self.singles, &self.doubles].map(|block| block.len().div_ceil(3) * 4).iter().sum()
    }

    /// The blocks of all sequences that were added, in base64.
    pub fn blocks(&self) -> NumberBlocks {
        NumberBlocks {
            singles: STANDARD.encode(&self.singles),
            doubles: STANDARD.encode(&self.doubles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_stored_once_and_in_the_block_that_fits() {
        let mut numbers = Numbers::default();
        let a = numbers.add([1.0, 0.0, f64::NAN, -3e37]);
        assert_eq!(a, Slice(0, 0, 4));
        assert_eq!(numbers.add([1e-60, 1.0]), Slice(1, 0, 2));
        assert_eq!(numbers.add([1.0, 0.0, f64::NAN, -3e37]), a);
        assert_eq!(numbers.add([2.0]), Slice(0, 4, 1));
        let blocks = numbers.blocks();
        let NumberBlocks { singles, doubles } = &blocks;
        assert_eq!(STANDARD.decode(doubles).unwrap()[..8], 1e-60_f64.to_le_bytes());
        assert_eq!(STANDARD.decode(singles).unwrap().len(), 20);
        assert_eq!(numbers.bytes(), singles.len() + doubles.len());
    }
}
