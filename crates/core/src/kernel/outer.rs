//! Sums of outer products and of scaled rows, for Hessians, covariances and factorisations.
//!
//! *Invariant*: every entry is summed in the order of the rows, whatever the tiling and the
//! instruction set, and no multiply-add is fused; so the bits are those of the plain loops. The
//! compiler vectorises the loops over columns, whose entries do not depend on each other.

use super::rows::Rows;
use super::simd::{InstructionSet, in_lanes};
use rayon::prelude::*;

/// Adds all rows, each times its factor, to a vector of d numbers: out ← out + Σ_k c_k x_k, with x_k the rows and c the
/// `factors`.
///
/// # Panics
/// If lengths do not agree.
pub fn add_rows(rows: Rows<'_>, factors: &[f64], out: &mut [f64]) {
    add_rows_on(InstructionSet::best(), rows, factors, out);
}

/// [`add_rows`] on a chosen instruction set, on which the bits do not depend.
fn add_rows_on(path: InstructionSet, rows: Rows<'_>, factors: &[f64], out: &mut [f64]) {
    assert!(rows.len() == factors.len() && rows.dim() == out.len());
    in_lanes!(path, _I, (rows: Rows<'_>, factors: &[f64], out: &mut [f64]) => {
        add_rows_body(rows, factors, out)
    });
}

/// [`add_rows`] as loops, which the compiler vectorises for the instruction set of the caller.
#[inline(always)]
fn add_rows_body(rows: Rows<'_>, factors: &[f64], out: &mut [f64]) {
    /// Rows that are added while a block of columns is in registers.
    const TOGETHER: usize = 4;
    let whole = factors.len() - factors.len() % TOGETHER;
    for (i, four) in factors[..whole].chunks_exact(TOGETHER).enumerate() {
        let [a, b, c, d]: [&[f64]; TOGETHER] =
            std::array::from_fn(|k| &rows.row(TOGETHER * i + k)[..out.len()]);
        for (j, out) in out.iter_mut().enumerate() {
            *out = *out + four[0] * a[j] + four[1] * b[j] + four[2] * c[j] + four[3] * d[j];
        }
    }
    for (k, factor) in factors.iter().enumerate().skip(whole) {
        for (out, x) in out.iter_mut().zip(rows.row(k)) {
            *out += factor * x;
        }
    }
}

/// Some rows of a matrix to which outer products are added.
struct OuterSums<'a> {
    /// The rows, from the first number of the first one on.
    data: &'a mut [f64],
    /// The distance from one row to the next.
    stride: usize,
    /// If only the lower triangle of the matrix is wanted, the number of the first of these rows in the matrix: entries
    /// above the diagonal are left as they are, but for those in a tile with entries that are not.
    lower: Option<usize>,
}

/// Adds a sum of outer products to a p × q matrix, out ← out + Σ_k a_k b_kᵀ, where `a` has rows a_k of p numbers and
/// `b` as many rows b_k of q numbers.
///
/// # Panics
/// If lengths do not agree.
pub fn add_outer_products(a: Rows<'_>, b: Rows<'_>, out: &mut [f64]) {
    add_on(InstructionSet::best(), a, b, out, Wanted::Whole);
}

/// [`add_outer_products`] for a sum that is symmetric, such as with each b_k a multiple of a_k, in about half of the
/// time: afterwards only the lower triangle of the matrix, with its diagonal, is right. Some entries above it have
/// changed.
///
/// # Panics
/// If lengths do not agree.
pub fn add_to_lower_triangle(a: Rows<'_>, b: Rows<'_>, out: &mut [f64]) {
    assert!(a.dim() == b.dim());
    add_on(InstructionSet::best(), a, b, out, Wanted::LowerTriangle);
}

/// Which part of a matrix is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All entries.
    Whole,
    /// The entries on the diagonal and below it.
    LowerTriangle,
}

/// [`add_outer_products`] or [`add_to_lower_triangle`], as `wanted`, on a chosen instruction set, on which the bits do
/// not depend.
fn add_on(path: InstructionSet, a: Rows<'_>, b: Rows<'_>, out: &mut [f64], wanted: Wanted) {
    assert!(a.len() == b.len() && out.len() == a.dim() * b.dim());
    let lower = (wanted == Wanted::LowerTriangle).then_some(0);
    let sums = OuterSums { data: out, stride: b.dim(), lower };
    outer::<false>(path, a, b, sums);
}

/// Adds Σ_k a_k b_kᵀ to `out`, or subtracts it if `SUBTRACT`. Blocks of rows of a large matrix run on all threads, on
/// which no bit depends.
fn outer<const SUBTRACT: bool>(path: InstructionSet, a: Rows<'_>, b: Rows<'_>, out: OuterSums<'_>) {
    /// Rows of the matrix that one thread sums at a time; whole tiles.
    const TOGETHER: usize = 16 * TALL;
    /// Products that are worth more than one thread.
    const LARGE: usize = 1 << 21;
    let OuterSums { data, stride, lower } = out;
    // Used by the loop on one thread and by the loop on all threads.
    let add_block = |(i, data): (usize, &mut [f64])| {
        let first = i * TOGETHER;
        let a = a.columns(first, (first + TOGETHER).min(a.dim()));
        let lower = lower.map(|row| row + first);
        in_panels::<SUBTRACT>(path, a, b, &mut OuterSums { data, stride, lower });
    };
    if a.len() * a.dim() * b.dim() < LARGE {
        data.chunks_mut(TOGETHER * stride).enumerate().for_each(add_block);
    } else {
        data.par_chunks_mut(TOGETHER * stride).enumerate().for_each(add_block);
    }
}

/// Adds Σ_k a_k b_kᵀ to `out`, or subtracts it, for a panel of a few k at a time, whose rows stay in the first-level
/// cache while all tiles of the matrix read them.
fn in_panels<const SUBTRACT: bool>(
    path: InstructionSet,
    a: Rows<'_>,
    b: Rows<'_>,
    out: &mut OuterSums<'_>,
) {
    /// The number of rows of a panel.
    const PANEL: usize = 32;
    for begin in (0..a.len()).step_by(PANEL) {
        let end = (begin + PANEL).min(a.len());
        let a = a.part(begin, end);
        let b = b.part(begin, end);
        if SUBTRACT {
            in_lanes!(path, _I, (a: Rows<'_>, b: Rows<'_>, out: &mut OuterSums<'_>) => {
                tiles::<true>(a, b, out)
            });
        } else {
            in_lanes!(path, _I, (a: Rows<'_>, b: Rows<'_>, out: &mut OuterSums<'_>) => {
                tiles::<false>(a, b, out)
            });
        }
    }
}

/// The number of rows of a tile.
const TALL: usize = 4;
/// The number of columns of a tile.
const WIDE: usize = 8;

/// Adds the outer products of a panel of rows to `out`, or subtracts them, tile by tile of the matrix. Entries that
/// fill no tile are summed one by one.
#[inline(always)]
fn tiles<const SUBTRACT: bool>(a: Rows<'_>, b: Rows<'_>, out: &mut OuterSums<'_>) {
    let mut i = 0;
    while i < a.dim() {
        let tall = TALL.min(a.dim() - i);
        let last = out.lower.map_or(b.dim(), |first| b.dim().min(first + i + tall));
        let mut j = 0;
        while j < last {
            if tall == TALL && j + WIDE <= b.dim() {
                tile::<SUBTRACT, TALL, WIDE>(a, b, i, j, out);
                j += WIDE;
            } else {
                (0..tall).for_each(|r| tile::<SUBTRACT, 1, 1>(a, b, i + r, j, out));
                j += 1;
            }
        }
        i += tall;
    }
}

/// Adds the outer products of a panel, or subtracts them, in the R × W entries of `out` from row i and column j on,
/// which are in registers during the pass over the rows of the panel.
#[inline(always)]
fn tile<const SUBTRACT: bool, const R: usize, const W: usize>(
    a: Rows<'_>,
    b: Rows<'_>,
    i: usize,
    j: usize,
    out: &mut OuterSums<'_>,
) {
    let mut sums: [[f64; W]; R] = std::array::from_fn(|r| {
        let row = &out.data[(i + r) * out.stride + j..][..W];
        std::array::from_fn(|w| row[w])
    });
    for k in 0..a.len() {
        let x = &a.row(k)[i..][..R];
        let y = &b.row(k)[j..][..W];
        for (sums, x) in sums.iter_mut().zip(x) {
            for (sum, y) in sums.iter_mut().zip(y) {
                if SUBTRACT {
                    *sum -= x * y;
                } else {
                    *sum += x * y;
                }
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        out.data[(i + r) * out.stride + j..][..W].copy_from_slice(sums);
    }
}

/// Replaces the lower triangle of a symmetric n × n matrix, the only part that is read, by the matrix's Cholesky factor
/// L; the upper triangle is left undefined. From entry (i, j) the products L_ik L_jk are subtracted in the order of k.
/// Returns whether all pivots are positive and finite, so that there is a factor; if not, the matrix is left undefined.
///
/// # Panics
/// If the matrix is not n × n.
pub fn factor(matrix: &mut [f64], n: usize) -> bool {
    factor_on(InstructionSet::best(), matrix, n)
}

/// [`factor`] on a chosen instruction set, on which the bits do not depend: a block of columns of L is computed, and
/// its products are subtracted from the rest of the matrix before the next block.
fn factor_on(path: InstructionSet, matrix: &mut [f64], n: usize) -> bool {
    /// Columns that are factored before the rest of the matrix is updated.
    const BLOCK: usize = 48;
    assert!(matrix.len() == n * n);
    for begin in (0..n).step_by(BLOCK) {
        let end = (begin + BLOCK).min(n);
        // Column k of L from row `begin` on is row k − begin of the panel.
        let mut panel = vec![0.0; (end - begin) * (n - begin)];
        for j in begin..end {
            let (done, rest) = panel.split_at_mut((j - begin) * (n - begin));
            let column = &mut rest[j - begin..n - begin];
            for (i, entry) in column.iter_mut().enumerate() {
                *entry = matrix[(j + i) * n + j];
            }
            for earlier in done.chunks_exact(n - begin) {
                let earlier = &earlier[j - begin..];
                let factor = earlier[0];
                column.iter_mut().zip(earlier).for_each(|(entry, x)| *entry -= factor * x);
            }
            if column[0].is_nan() || column[0] <= 0.0 || column[0].is_infinite() {
                return false;
            }
            let pivot = libm::sqrt(column[0]);
            column[0] = pivot;
            column[1..].iter_mut().for_each(|entry| *entry /= pivot);
            for (i, entry) in column.iter().enumerate() {
                matrix[(j + i) * n + j] = *entry;
            }
        }
        if end < n {
            // The columns from row `end` on.
            let below = Rows::new(&panel[end - begin..], n - end, n - begin);
            let rest = OuterSums { data: &mut matrix[end * n + end..], stride: n, lower: Some(0) };
            outer::<true>(path, below, below, rest);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn numbers(rng: &mut Stream, n: usize) -> Vec<f64> {
        (0..n).map(|_| rng.gaussian()).collect()
    }

    #[test]
    fn sums_have_the_bits_of_plain_loops_on_every_path() {
        let mut rng = Stream::shared_instance(3);
        for (count, p, q, stride) in
            [(1, 1, 1, 1), (7, 3, 9, 12), (33, 13, 24, 24), (70, 8, 40, 41), (90, 150, 170, 170)]
        {
            let numbers_of_a = numbers(&mut rng, count * stride);
            let numbers_of_b = numbers(&mut rng, count * stride);
            let a = Rows::new(&numbers_of_a, p, stride);
            let b = Rows::new(&numbers_of_b, q, stride);
            let factors = numbers(&mut rng, count);
            let start = numbers(&mut rng, p * q);
            let mut expected = start.clone();
            let mut along = start[..q].to_vec();
            for (k, factor) in factors.iter().enumerate() {
                for i in 0..p {
                    (0..q).for_each(|j| expected[i * q + j] += a.row(k)[i] * b.row(k)[j]);
                }
                (0..q).for_each(|j| along[j] += factor * b.row(k)[j]);
            }
            for path in InstructionSet::available() {
                let mut matrix = start.clone();
                add_on(path, a, b, &mut matrix, Wanted::Whole);
                assert_eq!(matrix, expected, "{path:?}");
                let mut vector = start[..q].to_vec();
                add_rows_on(path, b, &factors, &mut vector);
                assert_eq!(vector, along, "{path:?}");
            }
        }
    }

    #[test]
    fn factors_have_the_bits_of_the_plain_loops_on_every_path() {
        let mut rng = Stream::shared_instance(4);
        for n in [1, 2, 5, 47, 48, 49, 100, 131, 300] {
            let half = numbers(&mut rng, n * n);
            let rows = Rows::new(&half, n, n);
            let mut matrix = vec![0.0; n * n];
            add_outer_products(rows, rows, &mut matrix);
            let mut expected = matrix.clone();
            for j in 0..n {
                for i in j..n {
                    let mut sum = matrix[i * n + j];
                    (0..j).for_each(|k| sum -= expected[j * n + k] * expected[i * n + k]);
                    let pivot = if i == j { 1.0 } else { expected[j * n + j] };
                    expected[i * n + j] = if i == j { libm::sqrt(sum) } else { sum / pivot };
                }
            }
            for path in InstructionSet::available() {
                let mut out = matrix.clone();
                assert!(factor_on(path, &mut out, n));
                for i in 0..n {
                    assert_eq!(out[i * n..][..i + 1], expected[i * n..][..i + 1], "{n} {i}");
                }
            }
        }
        assert!(!factor(&mut [1.0, 0.0, 2.0, 1.0], 2));
        assert!(!factor(&mut [f64::NAN], 1));
    }
}
