//! The order in which all kernels add up the terms of a sum.

use super::padding::padded;

/// The number of accumulators of a dot product; longer vectors are added up in blocks.
pub const WIDTH: usize = 16;

/// The sum of the first `width` numbers (a power of two), which are folded by halves: x_i ← x_i + x_{i+n}
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

/// Σ term(i) over `0..d`, in the order of operations that kernels follow on every instruction set: term i is added to
/// accumulator i modulo 16, and the accumulators are folded by halves. So a sum has the same bits in all registers. It
/// is 0 if there is no term. Stored results depend on this order.
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
        // Kernels add the zeros of padded rows. That changes a sum of −0 to 0.
        (d..padded(d)).for_each(|i| acc[i % WIDTH] += 0.0);
    }
    fold(&mut acc, first.next_power_of_two())
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
}
