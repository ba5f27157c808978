//! How long rows are in memory: padded with zeros to whole registers.

/// The longest rows that registers hold; longer ones are passed over in strips.
pub const SHORT: usize = 32;

/// The lanes of the widest register of any instruction set.
pub const WIDEST: usize = 8;
/// The lanes of the widest register that serves rows of at most [`SHORT`] numbers.
pub const WIDEST_SHORT: usize = 4;

/// The length of a row of `d` numbers padded with zeros to whole registers of any instruction set that serves such
/// rows: of at most four lanes for rows of up to [`SHORT`] numbers. The padding changes no sum, since
/// [`super::fold::fold_sum`] adds zeros up to the same length.
///
/// One or two numbers are not padded: kernels hold two in registers of at most two lanes, and for one they loop over
/// the oracle (softmax pads its rows further).
#[inline(always)]
pub fn padded(d: usize) -> usize {
    match d {
        0..=2 => d,
        3..=SHORT => d.next_multiple_of(WIDEST_SHORT),
        _ => d.next_multiple_of(WIDEST),
    }
}
