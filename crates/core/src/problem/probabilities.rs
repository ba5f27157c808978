//! Probabilities that users give in files, and how far they may be from summing to one.

use super::arrays::{NpzArrays, index_text};
use super::fault::Fault;

/// The largest difference between the sum of a row of probabilities and 1.
pub const ROUNDING: f64 = 1e-9;

/// Whether all numbers are numbers of single precision, as those that a file holds as float32. Readers of files make
/// doubles of float32 and float64 alike, so that only the numbers themselves show it.
pub fn has_single_precision(data: &[f64]) -> bool {
    data.iter().all(|x| f64::from(*x as f32) == *x)
}

/// Checks the array `name` of a file, whose rows along its last axis are probability distributions: no entry
/// is negative and each row sums to one. `data` are its entries and `shape` its shape, as [`NpzArrays::get`] checked
/// them: entries are finite, and no axis is empty. Returns `data`, in which rows of float32 numbers whose sum is 1 only
/// up to the rounding of such numbers are divided by their sums.
///
/// # Errors
/// The first entry or row that fails, by its index.
pub fn check_probabilities(
    arrays: &NpzArrays<'_>,
    name: &str,
    data: &[f64],
    shape: &[usize],
) -> Result<Vec<f64>, Fault> {
    if let Some(entry) = data.iter().position(|&p| p < 0.0) {
        let index = index_text(entry, shape);
        let p = data[entry];
        return Err(arrays.fault(format!("`{name}`[{index}] is {p}; a probability is 0 or more")));
    }
    let width = shape[shape.len() - 1];
    // Each float32 number is rounded by at most half an epsilon; short rows count as eight numbers.
    let within = 0.5 * f64::from(f32::EPSILON) * width.max(8) as f64;
    let mut data = data.to_vec();
    for (i, row) in data.chunks_exact_mut(width).enumerate() {
        let sum = row.iter().fold(0.0, |sum, p| sum + p);
        let off = (sum - 1.0).abs();
        if off <= ROUNDING {
            continue;
        }
        if off <= within && has_single_precision(row) {
            row.iter_mut().for_each(|p| *p /= sum);
            continue;
        }
        let row = index_text(i, &shape[..shape.len() - 1]);
        return Err(arrays.fault(format!("`{name}`[{row}] sums to {sum}; a row must sum to one")));
    }
    Ok(data)
}
