//! A matrix times a vector of large dimension, each entry in the
//! order of [`super::fold_sum`].

use super::fold::{WIDTH, fold_sum};
use super::padding::padded;
use super::rows::Rows;
use super::simd::{InstructionSet, Simd, in_lanes};
use super::strips::{folded, over_strips};

/// Writes the product of a matrix with the vector x to `out`; `matrix` has one row of d numbers for each number of
/// `out`.
///
/// # Panics
/// If lengths do not agree, or x is empty.
pub fn product(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    assert!(matrix.len() == x.len() * out.len());
    products(Rows::new(matrix, x.len(), x.len()), x, out);
}

/// Writes the product of each row with the vector x, d numbers, to `out`, one number per row.
///
/// # Panics
/// If lengths do not agree.
pub fn products(rows: Rows<'_>, x: &[f64], out: &mut [f64]) {
    products_on(InstructionSet::best(), rows, x, out);
}

/// [`products`] on a chosen instruction set, on which the bits do not depend.
fn products_on(path: InstructionSet, rows: Rows<'_>, x: &[f64], out: &mut [f64]) {
    assert!(rows.dim() == x.len() && rows.len() == out.len());
    // The strips below need 16 numbers.
    if x.len() < WIDTH {
        for (out, row) in out.iter_mut().zip(rows.iter()) {
            *out = fold_sum(x.len(), |i| row[i] * x[i]);
        }
        return;
    }
    // SAFETY: lengths were checked; d is 16 or more.
    in_lanes!(path.for_rows(x.len()), I, (rows: Rows<'_>, x: &[f64], out: &mut [f64]) => {
        in_strips::<I, { WIDTH / I::LANES }>(rows, x, out)
    });
}

/// [`products`] of long rows, which are passed over in strips of 16 numbers.
///
/// # Safety
/// `I` is present, and W is the number of its registers in a strip; lengths agree; d is 16 or more.
#[inline(always)]
unsafe fn in_strips<I: Simd, const W: usize>(rows: Rows<'_>, x: &[f64], out: &mut [f64]) {
    let d = x.len();
    let n = out.len();
    let x = x.as_ptr();
    let mut i = 0;
    // SAFETY: passed on to the caller.
    unsafe {
        while i + 2 <= n {
            // Two rows at a time, so that each register of x is loaded once for both.
            let pair = [rows.row(i).as_ptr(), rows.row(i + 1).as_ptr()];
            out[i..i + 2].copy_from_slice(&long_dots::<I, W, 2>(pair, x, d));
            i += 2;
        }
        if i < n {
            [out[i]] = long_dots::<I, W, 1>([rows.row(i).as_ptr()], x, d);
        }
    }
}

/// The products of K rows with x, each with the 16 accumulators of [`super::fold_sum`].
///
/// # Safety
/// `I` is present, W is the number of its registers in a strip; rows and x have d numbers, 16
/// or more.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "an index runs over several arrays")]
unsafe fn long_dots<I: Simd, const W: usize, const K: usize>(
    rows: [*const f64; K],
    x: *const f64,
    d: usize,
) -> [f64; K] {
    // SAFETY: passed on to the caller; no more than d numbers are read.
    unsafe {
        // The first term that is added to −0 keeps its bits, also if it is −0.
        let mut sums = [[I::splat(-0.0); W]; K];
        let whole = d - d % WIDTH;
        over_strips!(I, W, whole, |at, r| {
            let x = I::load(x.add(at));
            for k in 0..K {
                sums[k][r] = I::add(sums[k][r], I::mul(I::load(rows[k].add(at)), x));
            }
        });
        for r in 0..W {
            let at = whole + r * I::LANES;
            if at < d {
                let [x] = I::load_row::<1>(x.add(at), I::LANES.min(d - at));
                for k in 0..K {
                    let [row] = I::load_row::<1>(rows[k].add(at), I::LANES.min(d - at));
                    sums[k][r] = I::add(sums[k][r], I::mul(row, x));
                }
            } else if at < padded(d) {
                // `fold_sum` adds zeros up to the widest register, so that all instruction sets give the same bits.
                for k in 0..K {
                    sums[k][r] = I::add(sums[k][r], I::splat(0.0));
                }
            }
        }
        let mut out = [0.0; K];
        for k in 0..K {
            out[k] = folded::<I, W>(sums[k]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn every_path_gives_the_bits_of_the_definition() {
        for d in (1..=130).chain([300, 784, 1025]) {
            for n in [1, 2, 5] {
                let mut rng = Stream::shared_instance(d as u64);
                let mut numbers =
                    |n: usize| -> Vec<f64> { (0..n).map(|_| rng.gaussian()).collect() };
                let matrix = numbers(n * d);
                let x = numbers(d);
                for path in InstructionSet::available() {
                    let mut out = vec![0.0; n];
                    products_on(path, Rows::new(&matrix, d, d), &x, &mut out);
                    for (out, row) in out.iter().zip(matrix.chunks_exact(d)) {
                        let expected = fold_sum(d, |i| row[i] * x[i]);
                        assert_eq!(out.to_bits(), expected.to_bits(), "d {d}, {path:?}");
                    }
                }
            }
        }
    }
}
