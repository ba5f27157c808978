//! The hot loops of a run, on slices and in a fixed order of operations. In this crate no
//! other module has `unsafe` code.
//!
//! *Invariant*: every result is made of IEEE operations in an order that depends on the
//! dimension alone, without fused multiply-add and library sums. So every instruction
//! set (scalar, SSE2, AVX2, AVX-512, NEON) gives the same bits.

pub mod alias;
mod cohort;
pub mod exp;
mod log;
pub mod outer;
mod product;
pub mod records;
mod rows;
mod server;
mod simd;
pub mod softmax;
mod sparse;
mod strips;
pub mod td;

#[cfg(test)]
pub(crate) use cohort::testing;
pub use cohort::{Cohort, Draws, Local, LocalSteps, Members, Proximal};
pub use product::{product, products};
pub use rows::{Aligned, Rows, Table};
pub use server::{learn_all_on, learn_on, mean_of, update_corrections, weighted_mean_of};
pub use simd::InstructionSet;
pub use sparse::{
    LogisticLoss, SparseRecords, SparseRow, SparseRows, SupportRound, VariatesToLearn,
};

/// The number of accumulators of a dot product; longer vectors are added up in blocks.
const WIDTH: usize = 16;

/// Folds the first `width` numbers (a power of two) into one: x_i ← x_i + x_{i+n}
/// for n = width/2, …, 1.
#[inline(always)]
fn fold(x: &mut [f64; WIDTH], width: usize) -> f64 {
    let mut n = width / 2;
    while n > 0 {
        for i in 0..n {
            x[i] += x[i + n];
        }
        n /= 2;
    }
    x[0]
}

/// Σ term(i) over `0..d` by the folding tree of all instruction sets.
#[inline(always)]
pub fn fold_sum(d: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut acc = [0.0; WIDTH];
    let first = d.min(WIDTH);
    for (i, slot) in acc.iter_mut().enumerate().take(first) {
        *slot = term(i);
    }
    for i in first..d {
        acc[i % WIDTH] += term(i);
    }
    if d > WIDTH {
        // As in rows that are padded with zeros to whole registers: −0 + 0 is 0.
        (d..simd::padded(d)).for_each(|i| acc[i % WIDTH] += 0.0);
    }
    fold(&mut acc, first.next_power_of_two())
}

/// xᵀy by the folding tree.
#[inline]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let d = x.len();
    let y = &y[..d];
    if d > simd::SHORT {
        let mut out = [0.0];
        products(Rows::new(x, d, d), y, &mut out);
        return out[0];
    }
    fold_sum(d, |i| x[i] * y[i])
}

/// ‖x − y‖² by the folding tree.
pub fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    match x.len() {
        2 => squared_of::<2>(x, y),
        4 => squared_of::<4>(x, y),
        5 => squared_of::<5>(x, y),
        8 => squared_of::<8>(x, y),
        10 => squared_of::<10>(x, y),
        16 => squared_of::<16>(x, y),
        d => {
            let y = &y[..d];
            fold_sum(d, |i| (x[i] - y[i]) * (x[i] - y[i]))
        }
    }
}

/// The same for a length known at compile time, so that the loop is unrolled: it runs
/// after every round.
#[inline(always)]
fn squared_of<const D: usize>(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (x.first_chunk::<D>().expect("D numbers"), y.first_chunk::<D>().expect("as many"));
    fold_sum(D, |i| (x[i] - y[i]) * (x[i] - y[i]))
}

/// x − y.
pub fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// y ← y + a x.
#[inline]
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// θ ← θ − step (field + ξ): the one local step of every algorithm.
#[inline]
pub fn descend(theta: &mut [f64], field: &[f64], correction: &[f64], step: f64) {
    for ((theta, field), xi) in theta.iter_mut().zip(field).zip(correction) {
        *theta -= step * (field + xi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folding_tree_is_a_sum() {
        for d in 1..100 {
            let x: Vec<f64> = (0..d).map(|i| (i * i) as f64).collect();
            assert_eq!(fold_sum(d, |i| x[i]), x.iter().sum::<f64>(), "d = {d}");
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
