//! Compressors that send some of the coordinates and leave out the others.

use super::{Compressor, CompressorInfo, CompressorNumber, INDEX_BITS, NUMBER_BITS, Operator};
use crate::rng::Stream;
use std::num::NonZeroU32;

/// Rand-k: k coordinates, drawn without replacement, times d/k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RandK {
    /// k; a vector of fewer coordinates is sent whole.
    pub size: NonZeroU32,
    /// Whether the indices are sent. Otherwise they follow from a seed that both sides share.
    pub sends_indices: bool,
}

/// Top-k: the k coordinates of the largest absolute values. Of equal ones the first is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// k; a vector of fewer coordinates is sent whole.
    pub size: NonZeroU32,
}

/// k in the texts of both compressors.
const SIZE: CompressorNumber = CompressorNumber { letter: "K", most: u32::MAX };

/// Rand-k in the list.
pub(super) const RAND_K: CompressorInfo = CompressorInfo {
    name: "rand-k",
    number: Some(SIZE),
    word: Some("indices"),
    sends: "d/K times K coordinates, drawn without replacement; the others are 0",
    omega: Some("d/K − 1"),
    bits: "64 K, since a seed that both sides share gives the indices; (64 + 32) K with `indices`",
    make: |size, sends_indices| Compressor::RandK(RandK { size, sends_indices }),
};

/// Top-k in the list.
pub(super) const TOP_K: CompressorInfo = CompressorInfo {
    name: "top-k",
    number: Some(SIZE),
    word: None,
    sends: "the K coordinates of largest absolute value; the others are 0",
    omega: None,
    bits: "(64 + 32) K",
    make: |size, _| Compressor::TopK(TopK { size }),
};

/// How many of d coordinates are sent.
fn sent_of(size: NonZeroU32, d: usize) -> usize {
    (size.get() as usize).min(d)
}

impl RandK {
    /// How many of d coordinates are sent: k, or d if it is less.
    pub fn sent(&self, d: usize) -> usize {
        sent_of(self.size, d)
    }
}

impl Operator for RandK {
    fn info(&self) -> &'static CompressorInfo {
        &RAND_K
    }

    fn omega(&self, d: usize) -> Option<f64> {
        Some(d as f64 / self.sent(d) as f64 - 1.0)
    }

    fn bits(&self, d: usize) -> u64 {
        let index = if self.sends_indices { INDEX_BITS } else { 0 };
        (NUMBER_BITS + index) * self.sent(d) as u64
    }

    /// Takes as many draws as coordinates are sent, and none if all are.
    fn apply(&self, x: &[f64], stream: &mut Stream, out: &mut [f64]) {
        let d = x.len();
        let k = self.sent(d);
        if k == d {
            out.copy_from_slice(x);
            return;
        }
        out.fill(0.0);
        let scale = d as f64 / k as f64;
        for place in stream.distinct(d, k) {
            out[place] = x[place] * scale;
        }
    }
}

impl Operator for TopK {
    fn info(&self) -> &'static CompressorInfo {
        &TOP_K
    }

    fn omega(&self, _: usize) -> Option<f64> {
        None
    }

    fn bits(&self, d: usize) -> u64 {
        (NUMBER_BITS + INDEX_BITS) * sent_of(self.size, d) as u64
    }

    fn apply(&self, x: &[f64], _: &mut Stream, out: &mut [f64]) {
        let k = sent_of(self.size, x.len());
        if k == x.len() {
            out.copy_from_slice(x);
            return;
        }
        let mut places: Vec<usize> = (0..x.len()).collect();
        // NaN counts as larger than every number, so that a run that diverges does not go on as if it did not.
        places.select_nth_unstable_by(k - 1, |&i, &j| {
            x[j].abs().total_cmp(&x[i].abs()).then(i.cmp(&j))
        });
        out.fill(0.0);
        for &place in &places[..k] {
            out[place] = x[place];
        }
    }
}
