//! Fixed points and growth of linear maps of which only the product with a vector is known.
//!
//! A map of second moments preserves positive semidefinite matrices. So its powers, applied to the
//! identity, grow like powers of its spectral radius (Krein and Rutman), and no eigenvalue is needed.
//! A map of means is squared repeatedly (Gelfand).

use crate::kernel::{axpy, dot};
use crate::linalg::{Matrix, solve};

/// The largest order of a system that is solved directly.
pub const DIRECT: usize = 600;
/// The most restarts of GMRES.
pub const RESTARTS: usize = 40;
/// Its vectors between restarts.
pub const KRYLOV: usize = 30;
/// The rounds after which the growth rate is estimated first, and last.
const ROUNDS: (u32, u32) = (32, 4096);
/// The relative difference of two rates below which they count as equal.
const SETTLED: f64 = 1e-7;
/// The largest relative difference of the last two rates; beyond it there is no result.
const AT_MOST: f64 = 1e-5;
/// The number of squarings of the map of means: its power 2³⁰.
const SQUARINGS: i32 = 30;

/// x with x = B x + c, where `map` multiplies by B and `whole` is B, if it is small; `None` if there
/// is none, or none is found.
pub fn fixed_point(
    constant: &[f64],
    map: impl Fn(&[f64]) -> Vec<f64>,
    whole: impl FnOnce() -> Matrix,
) -> Option<Vec<f64>> {
    match constant.len() {
        0 => Some(Vec::new()),
        n if n <= DIRECT => solve(&Matrix::identity(n).plus(-1.0, &whole()), constant).ok(),
        _ => gmres(constant, map),
    }
}

/// x with x = B x + c, by GMRES from 0; `None` if the residual does not shrink to rounding error.
fn gmres(constant: &[f64], map: impl Fn(&[f64]) -> Vec<f64>) -> Option<Vec<f64>> {
    let norm = |x: &[f64]| libm::sqrt(dot(x, x));
    let mut x = vec![0.0; constant.len()];
    let residual = |x: &[f64]| -> Vec<f64> {
        let mapped = map(x);
        (0..x.len()).map(|i| constant[i] + mapped[i] - x[i]).collect()
    };
    let mut r = residual(&x);
    let scale = norm(constant).max(f64::MIN_POSITIVE);
    for _ in 0..RESTARTS {
        let size = norm(&r);
        if !size.is_finite() {
            return None;
        }
        if size <= 1e-14 * scale {
            return Some(x);
        }
        // Arnoldi on I − B, orthogonalised twice.
        let mut basis = vec![r.iter().map(|v| v / size).collect::<Vec<f64>>()];
        let mut hessenberg: Vec<Vec<f64>> = Vec::new();
        for _ in 0..KRYLOV {
            let last = &basis[basis.len() - 1];
            let mapped = map(last);
            let mut w: Vec<f64> = (0..last.len()).map(|i| last[i] - mapped[i]).collect();
            let before = norm(&w);
            let mut column = vec![0.0; basis.len() + 1];
            for _ in 0..2 {
                for (i, v) in basis.iter().enumerate() {
                    let along = dot(&w, v);
                    column[i] += along;
                    axpy(-along, v, &mut w);
                }
            }
            let left = norm(&w);
            let end = column.len() - 1;
            column[end] = left;
            hessenberg.push(column);
            if left <= 1e-13 * before {
                break;
            }
            basis.push(w.iter().map(|v| v / left).collect());
        }
        let weights = least_squares(&hessenberg, size);
        for (weight, v) in weights.iter().zip(&basis) {
            axpy(*weight, v, &mut x);
        }
        r = residual(&x);
    }
    (norm(&r) <= 1e-9 * scale).then_some(x)
}

/// y that minimises ‖size e₁ − H y‖, H upper Hessenberg by columns, by Givens
/// rotations.
fn least_squares(columns: &[Vec<f64>], size: f64) -> Vec<f64> {
    let k = columns.len();
    let mut r: Vec<Vec<f64>> = columns.to_vec();
    let mut rhs = vec![0.0; k + 1];
    rhs[0] = size;
    let mut turns: Vec<(f64, f64)> = Vec::new();
    for j in 0..k {
        for (i, (c, s)) in turns.iter().enumerate() {
            let (a, b) = (r[j][i], r[j][i + 1]);
            (r[j][i], r[j][i + 1]) = (c * a + s * b, c * b - s * a);
        }
        let (a, b) = (r[j][j], r[j][j + 1]);
        let length = libm::sqrt(a * a + b * b);
        let (c, s) = if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) };
        r[j][j] = length;
        let (a, b) = (rhs[j], rhs[j + 1]);
        (rhs[j], rhs[j + 1]) = (c * a + s * b, c * b - s * a);
        turns.push((c, s));
    }
    let mut y = vec![0.0; k];
    for i in (0..k).rev() {
        let sum = (i + 1..k).fold(rhs[i], |sum, j| sum - r[j][i] * y[j]);
        y[i] = if r[i][i] != 0.0 { sum / r[i][i] } else { 0.0 };
    }
    y
}

/// The rate at which a linear map of second moments grows from `state`, its size being a trace;
/// `None` if it does not settle.
pub fn growth(
    mut state: Vec<f64>,
    after: impl Fn(&[f64]) -> Vec<f64>,
    size: impl Fn(&[f64]) -> f64,
) -> Option<f64> {
    // The logarithm of the size after each round.
    let (mut logs, mut log) = (Vec::new(), 0.0);
    let (mut before, mut take) = (f64::NAN, ROUNDS.0);
    loop {
        while logs.len() < take as usize {
            state = after(&state);
            let size = size(&state);
            if size == 0.0 {
                return Some(0.0);
            }
            if !size.is_finite() {
                return None;
            }
            log += libm::log(size);
            state.iter_mut().for_each(|x| *x /= size);
            logs.push(log);
        }
        let rate = libm::exp(slope(&logs[logs.len() / 2..]));
        let apart = (rate - before).abs();
        if apart <= SETTLED * rate || take >= ROUNDS.1 {
            return (apart <= AT_MOST * rate.max(1.0)).then_some(rate);
        }
        before = rate;
        take *= 2;
    }
}

/// The slope of the line through values at 0, 1, 2, … by least squares, in which oscillations, as of
/// complex eigenvalues, cancel.
fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let apart = i as f64 - middle;
        products += apart * (value - values[0]);
        squares += apart * apart;
    }
    products / squares
}

/// The spectral radius of a matrix, ‖Aᵏ‖^{1/k} at k = 2³⁰.
pub fn radius(mut a: Matrix) -> f64 {
    let mut log = 0.0;
    for k in 0..=SQUARINGS {
        let norm = libm::sqrt(a.entries().iter().map(|x| x * x).sum());
        if norm == 0.0 {
            return 0.0;
        }
        log += libm::ldexp(libm::log(norm), -k);
        a = a.scaled(1.0 / norm);
        a = a.times(&a);
    }
    libm::exp(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rotation, a Jordan block, a diagonal matrix, a nilpotent matrix.
    #[test]
    fn radii_of_matrices_that_are_known() {
        let radius_of = |entries: [f64; 4]| radius(Matrix::from_entries(2, 2, entries.to_vec()));
        let (c, s) = (libm::cos(0.7), libm::sin(0.7));
        assert!((radius_of([0.9 * c, -0.9 * s, 0.9 * s, 0.9 * c]) - 0.9).abs() < 1e-8);
        assert!((radius_of([1.1, 5.0, 0.0, 1.1]) - 1.1).abs() < 1e-6);
        assert!((radius_of([0.5, 0.0, 0.0, -2.0]) - 2.0).abs() < 1e-8);
        assert_eq!(radius_of([0.0, 3.0, 0.0, 0.0]), 0.0);
    }
}
