//! Operations on one or two vectors, each sum in the order of [`fold_sum`].

use super::fold::fold_sum;
use super::padding::SHORT;
use super::product::products;
use super::rows::Rows;
use super::simd::{InstructionSet, in_lanes};

/// xᵀy of two vectors of one length, summed in the order of [`fold_sum`].
///
/// # Panics
/// If y is shorter than x.
#[inline]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let d = x.len();
    let y = &y[..d];
    // Long sums are faster in registers, where they have the same bits.
    if d > SHORT {
        let mut out = [0.0];
        products(Rows::new(x, d, d), y, &mut out);
        return out[0];
    }
    fold_sum(d, |i| x[i] * y[i])
}

/// ‖x − y‖² of two vectors of one length, summed in the order of [`fold_sum`]. Common lengths have loops of their own,
/// which are unrolled and give the same bits.
///
/// # Panics
/// If y is shorter than x.
pub fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    match x.len() {
        2 => squared_distance_of::<2>(x, y),
        4 => squared_distance_of::<4>(x, y),
        5 => squared_distance_of::<5>(x, y),
        8 => squared_distance_of::<8>(x, y),
        10 => squared_distance_of::<10>(x, y),
        16 => squared_distance_of::<16>(x, y),
        d => {
            let y = &y[..d];
            fold_sum(d, |i| (x[i] - y[i]) * (x[i] - y[i]))
        }
    }
}

/// [`squared_distance`] for a length known at compile time, so that the loop is unrolled: it runs
/// after every round.
#[inline(always)]
fn squared_distance_of<const D: usize>(x: &[f64], y: &[f64]) -> f64 {
    let x = x.first_chunk::<D>().expect("D numbers");
    let y = y.first_chunk::<D>().expect("as many");
    fold_sum(D, |i| (x[i] - y[i]) * (x[i] - y[i]))
}

/// The difference x − y, with as many numbers as each of the two.
pub fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// Adds a x to y, which has the length of x: y ← y + a x. Lengths are not checked: numbers of the longer vector beyond
/// the end of the shorter one are left out.
#[inline]
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// θ ← θ − step (field + ξ), where ξ is `correction`: the one local step of every algorithm. All three have d numbers.
/// The field and ξ are added first, an order that fused kernels repeat to the bit, but for those on sparse records.
#[inline]
pub fn descend(theta: &mut [f64], field: &[f64], correction: &[f64], step: f64) {
    if theta.len() > SHORT {
        descend_on(InstructionSet::best(), theta, field, correction, step);
    } else {
        descend_each(theta, field, correction, step);
    }
}

/// [`descend`] compiled for an instruction set, on which the bits do not depend.
fn descend_on(
    path: InstructionSet,
    theta: &mut [f64],
    field: &[f64],
    correction: &[f64],
    step: f64,
) {
    // SAFETY: the loop is safe.
    in_lanes!(path, _I, (theta: &mut [f64], field: &[f64], correction: &[f64], step: f64) => {
        descend_each(theta, field, correction, step)
    });
}

#[inline(always)]
fn descend_each(theta: &mut [f64], field: &[f64], correction: &[f64], step: f64) {
    for ((theta, field), xi) in theta.iter_mut().zip(field).zip(correction) {
        *theta -= step * (field + xi);
    }
}

/// A field of a record x with the slope φ′ of its loss and the weight λ of a penalty: φ′ x + λθ.
#[derive(Clone, Copy, Debug)]
pub struct MarginField<'a> {
    /// The record x, d numbers.
    pub record: &'a [f64],
    /// The slope φ′ of the loss at the record's margin.
    pub slope: f64,
    /// The weight λ of the penalty λ/2 ‖θ‖².
    pub l2: f64,
}

/// [`descend`] along the field of a record, with the same bits: θ ← θ − step ((φ′ x + λθ) + ξ).
pub fn descend_along(theta: &mut [f64], field: MarginField<'_>, correction: &[f64], step: f64) {
    descend_along_on(InstructionSet::best(), theta, field, correction, step);
}

/// [`descend_along`] compiled for an instruction set, on which the bits do not depend.
fn descend_along_on(
    path: InstructionSet,
    theta: &mut [f64],
    field: MarginField<'_>,
    correction: &[f64],
    step: f64,
) {
    // SAFETY: the loop is safe.
    in_lanes!(path, _I, (theta: &mut [f64], field: MarginField<'_>, correction: &[f64], step: f64) => {
        descend_along_each(theta, field, correction, step)
    });
}

#[inline(always)]
fn descend_along_each(theta: &mut [f64], field: MarginField<'_>, correction: &[f64], step: f64) {
    let MarginField { record, slope, l2 } = field;
    for ((theta, x), xi) in theta.iter_mut().zip(record).zip(correction) {
        *theta -= step * ((slope * x + l2 * *theta) + xi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All instruction sets and both forms of a step have the bits of the definition.
    #[test]
    fn every_path_takes_the_same_step() {
        for d in (1..=70).chain([123, 784]) {
            let numbers = |shift: f64| -> Vec<f64> {
                (0..d).map(|i| libm::sin(shift + 1.7 * f64::from(i))).collect()
            };
            let start = numbers(0.0);
            let record = numbers(1.0);
            let correction = numbers(2.0);
            let [slope, l2, step] = [-0.3, 0.01, 0.1];
            let field: Vec<f64> =
                record.iter().zip(&start).map(|(x, theta)| slope * x + l2 * theta).collect();
            let mut expected = start.clone();
            for (i, theta) in expected.iter_mut().enumerate() {
                *theta -= step * (field[i] + correction[i]);
            }
            for path in InstructionSet::available() {
                let mut theta = start.clone();
                descend_on(path, &mut theta, &field, &correction, step);
                assert_eq!(theta, expected, "d {d}, {path:?}");
                let mut theta = start.clone();
                let along = MarginField { record: &record, slope, l2 };
                descend_along_on(path, &mut theta, along, &correction, step);
                assert_eq!(theta, expected, "d {d}, {path:?}");
            }
            let mut theta = start;
            descend(&mut theta, &field, &correction, step);
            assert_eq!(theta, expected, "d {d}");
        }
    }

    #[test]
    fn distances_of_every_length_follow_the_tree() {
        for d in 1..40 {
            let x: Vec<f64> = (0..d).map(|i| 0.1 * (i * i) as f64).collect();
            let y: Vec<f64> = (0..d).map(|i| 0.7 * i as f64).collect();
            let expected = fold_sum(d, |i| (x[i] - y[i]) * (x[i] - y[i]));
            assert_eq!(squared_distance(&x, &y).to_bits(), expected.to_bits());
        }
    }
}
