//! Slices in a fixed order of operations: the only place where the hot loops
//! of a run touch numbers, and the only module that may say `unsafe`.
//!
//! *Invariant*: additions, subtractions and products only, in an order that
//! depends on the dimension alone. No fused multiply-add, no library sum. So
//! every path (scalar, SSE2, AVX2, NEON) gives the same bits.

pub mod alias;
mod cohort;
pub mod exp;
pub mod logistic;
mod simd;
pub mod td;

pub use cohort::{Cohort, Local, Members, Work};
pub use simd::Path;

/// Accumulators of a dot product; beyond this dimension blocks are added up.
const WIDTH: usize = 16;

/// Folds the first `width` (a power of two) numbers to one: x_i ← x_i + x_{i+n}
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

/// Σ term(i) over `0..d` by the folding tree that every path shares.
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
        // As rows that are padded to whole registers have it: −0 + 0 is 0.
        (d..d.next_multiple_of(4)).for_each(|i| acc[i % WIDTH] += 0.0);
    }
    fold(&mut acc, first.next_power_of_two())
}

/// xᵀy by the folding tree.
#[inline]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let d = x.len();
    let y = &y[..d];
    fold_sum(d, |i| x[i] * y[i])
}

/// ‖x − y‖² by the folding tree.
pub fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    let d = x.len();
    let y = &y[..d];
    fold_sum(d, |i| (x[i] - y[i]) * (x[i] - y[i]))
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

/// The mean of the rows of `rows` (each `out.len()` long), summed in order.
pub fn mean_rows(rows: &[f64], out: &mut [f64]) {
    let d = out.len();
    sum_columns(d, out, |at| rows.chunks_exact(d).map(move |row| &row[at..]));
    let n = (rows.len() / d) as f64;
    out.iter_mut().for_each(|x| *x /= n);
}

/// The mean of the members' rows of `rows` (each `out.len()` long), summed in
/// order.
pub fn mean_of(members: &Members, rows: &[f64], out: &mut [f64]) {
    let (d, who) = (out.len(), members.who());
    if who.len() * d == rows.len() {
        return mean_rows(rows, out);
    }
    sum_columns(d, out, |at| who.iter().map(move |client| &rows[client * d + at..]));
    out.iter_mut().for_each(|x| *x /= who.len() as f64);
}

/// Sums of columns, some at a time so that they stay in registers: `from(i)`
/// gives the rows from column i on.
#[inline(always)]
fn sum_columns<'a, R: Iterator<Item = &'a [f64]>>(
    d: usize,
    out: &mut [f64],
    from: impl Fn(usize) -> R,
) {
    let mut at = 0;
    while at < d {
        at += match d - at {
            8.. => columns::<8>(from(at), &mut out[at..]),
            4.. => columns::<4>(from(at), &mut out[at..]),
            2.. => columns::<2>(from(at), &mut out[at..]),
            _ => columns::<1>(from(at), &mut out[at..]),
        };
    }
}

#[inline(always)]
fn columns<'a, const W: usize>(rows: impl Iterator<Item = &'a [f64]>, out: &mut [f64]) -> usize {
    let mut acc = [0.0; W];
    for row in rows {
        let row = &row[..W];
        (0..W).for_each(|i| acc[i] += row[i]);
    }
    out[..W].copy_from_slice(&acc);
    W
}

/// Every member's row of `rows` becomes `theta`.
pub fn spread(theta: &[f64], members: &Members, rows: &mut [f64]) {
    let d = theta.len();
    for &client in members.who() {
        let (row, rest) = rows[client * d..][..d].as_chunks_mut::<4>();
        let (theta, rest_theta) = theta.as_chunks::<4>();
        row.iter_mut().zip(theta).for_each(|(row, theta)| *row = *theta);
        rest.iter_mut().zip(rest_theta).for_each(|(row, theta)| *row = *theta);
    }
}

/// Calls `run` compiled for the widest vectors that this processor has. The
/// bits are the same: the compiler may not reorder or fuse what it widens.
#[inline(always)]
pub fn widest<R>(run: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2<R>(run: impl FnOnce() -> R) -> R {
            run()
        }
        if Path::best() == Path::Avx2 {
            // SAFETY: the instruction set was found on this processor.
            return unsafe { avx2(run) };
        }
    }
    run()
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
    fn mean_of_rows() {
        let mut out = [0.0; 2];
        mean_rows(&[1.0, 2.0, 3.0, 6.0], &mut out);
        assert_eq!(out, [2.0, 4.0]);
    }
}
