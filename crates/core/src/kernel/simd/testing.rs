//! What tests run on each instruction set.

use super::InstructionSet;
use crate::kernel::padding::WIDEST;
use crate::rng::Stream;

/// Asserts that `replace`, which replaces each of many numbers in registers, gives the bits of `definition` on every
/// instruction set: for `samples` and for Gaussian numbers of these standard deviations, with both signs. Each number
/// is tried in a register with others of them, and in one with ordinary numbers. `replace` gets a multiple of the
/// lanes.
pub(in crate::kernel) fn assert_bits_of(
    definition: impl Fn(f64) -> f64,
    replace: impl Fn(InstructionSet, &mut [f64]),
    samples: &[f64],
    scales: &[f64],
) {
    let mut rng = Stream::shared_instance(9);
    let drawn = scales.iter().flat_map(|scale| [*scale; 40_000]).map(|x| x * rng.gaussian());
    let both = samples.iter().copied().chain(drawn).flat_map(|x| [x, -x]);
    let samples: Vec<f64> = both.collect();
    let apart = samples.iter().flat_map(|&x| [x, 0.1, -0.5, 0.25]);
    let mut all: Vec<f64> = samples.iter().copied().chain(apart).collect();
    all.resize(all.len().next_multiple_of(WIDEST), 0.75);
    for path in InstructionSet::available() {
        let mut out = all.clone();
        replace(path, &mut out);
        for (x, out) in all.iter().zip(out) {
            assert_eq!(out.to_bits(), definition(*x).to_bits(), "{x:e} on {path:?}");
        }
    }
}
