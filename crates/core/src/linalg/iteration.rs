//! Fixed points and growth rates of linear maps, such as the maps of means and of second moments over a round. Only
//! products of a map with vectors are needed.
//!
//! A map of second moments preserves positive semidefinite matrices. So its powers, applied to the
//! identity, grow like powers of its spectral radius (Krein and Rutman), and no eigenvalue is needed.
//! A map of means is squared repeatedly (Gelfand). Neither number says on which side of 1 a radius close
//! to 1 is: that is proven, by [`contracts`] for means and by [`super::SymmetricBlocks`] for second moments.

use super::{Matrix, solve};
use crate::kernel::{axpy, difference, dot};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};

/// The largest order of a system that is solved directly, by its matrix; larger ones are solved by GMRES.
pub const DIRECT: usize = 600;
/// The most restarts of GMRES.
pub const RESTARTS: usize = 40;
/// The directions that GMRES keeps between restarts, each with its image.
pub const KRYLOV: usize = 30;
/// The number of rounds after which the growth rate is estimated for the first time.
const FIRST_ROUNDS: u32 = 32;
/// The number of rounds after which the growth rate is estimated for the last time.
const LAST_ROUNDS: u32 = 4096;
/// The relative difference of two estimates of a growth rate below which they count as equal.
const SETTLED: f64 = 1e-7;
/// The largest difference of the last two estimates, relative to the rate or to 1, with which there is a result.
const AT_MOST: f64 = 1e-5;
/// The number of squarings of a matrix by which its spectral radius is found, from its power 2³⁰.
const SQUARINGS: i32 = 30;
/// The most squarings by which [`contracts`] proves that powers vanish. After more of them rounding
/// errors, which double with each squaring, could decide about a radius of 1.
const PROOF_SQUARINGS: u32 = 40;
/// The norm at which the powers of a map count as growing.
const GROWN: f64 = 1e100;
/// The residuals at which GMRES ends, relative to the norm of the constant.
#[derive(Clone, Copy)]
struct Residuals {
    /// The residual at which it ends before the last restart.
    wanted: f64,
    /// The largest residual that is accepted after the last restart.
    accepted: f64,
}

/// The residuals of a fixed point that is a result.
const SOLVED: Residuals = Residuals { wanted: 1e-14, accepted: 1e-9 };

/// The x with x = B x + c, c being `constant`. `map` multiplies by B, and `whole` makes the matrix B, which is asked
/// for only if its order is at most [`DIRECT`]. `None` if there is no such x, or GMRES does not find it. That there
/// is an x does not say that x ← B x + c converges to it: whoever needs a limit has to know that the spectral radius
/// of B is below 1.
pub fn fixed_point(
    constant: &[f64],
    map: impl Fn(&[f64]) -> Vec<f64>,
    whole: impl FnOnce() -> Matrix,
) -> Option<Vec<f64>> {
    match constant.len() {
        0 => Some(Vec::new()),
        n if n <= DIRECT => solve(&Matrix::identity(n).plus(-1.0, &whole()), constant).ok(),
        _ => gmres(constant, map, SOLVED),
    }
}

/// An approximation of the x with x = B x + c, with the arguments of [`fixed_point`]: if the order of B is above
/// [`DIRECT`], one whose residual is at most `residual` times the norm of c, which takes less time. `None` if none
/// is found.
pub(super) fn rough_fixed_point(
    constant: &[f64],
    map: impl Fn(&[f64]) -> Vec<f64>,
    whole: impl FnOnce() -> Matrix,
    residual: f64,
) -> Option<Vec<f64>> {
    if constant.len() <= DIRECT {
        return fixed_point(constant, map, whole);
    }
    gmres(constant, map, Residuals { wanted: residual, accepted: residual })
}

/// The x with x = B x + c, by restarted GMRES from 0, where `map` multiplies by B; `None` if the residual after the
/// last restart is above the accepted one.
fn gmres(
    constant: &[f64],
    map: impl Fn(&[f64]) -> Vec<f64>,
    residuals: Residuals,
) -> Option<Vec<f64>> {
    let scale = norm(constant).max(f64::MIN_POSITIVE);
    // (I − B) x; a closure, since it stands for the matrix of the system in three places.
    let apply = |x: &[f64]| difference(x, &map(x));
    let mut x = vec![0.0; constant.len()];
    for _ in 0..RESTARTS {
        let mut residual = difference(constant, &apply(&x));
        let size = norm(&residual);
        if !size.is_finite() {
            return None;
        }
        if size <= residuals.wanted * scale {
            return Some(x);
        }
        // Directions with their images under I − B, which are orthonormal.
        let mut steps: Vec<[Vec<f64>; 2]> = Vec::new();
        let mut direction: Vec<f64> = residual.iter().map(|v| v / size).collect();
        for _ in 0..KRYLOV {
            let mut image = apply(&direction);
            let before = norm(&image);
            // Orthogonalised twice: after one pass, rounding leaves parts along earlier images.
            for [earlier, its_image] in steps.iter().chain(&steps) {
                let along = dot(&image, its_image);
                axpy(-along, its_image, &mut image);
                axpy(-along, earlier, &mut direction);
            }
            let left = norm(&image);
            if left <= 1e-13 * before {
                break;
            }
            direction.iter_mut().chain(&mut image).for_each(|v| *v /= left);
            let along = dot(&residual, &image);
            axpy(along, &direction, &mut x);
            axpy(-along, &image, &mut residual);
            let next = image.clone();
            steps.push([direction, image]);
            direction = next;
        }
    }
    (norm(&difference(constant, &apply(&x))) <= residuals.accepted * scale).then_some(x)
}

/// The Euclidean norm of a vector.
fn norm(x: &[f64]) -> f64 {
    libm::sqrt(dot(x, x))
}

/// The factor by which the second moments of a run grow in a round in the long run: the spectral radius of the linear
/// map `after` of a round, applied again and again from `state`, which must be positive definite, as the identity is,
/// so that it has a part along every direction that grows. `size` is a trace of the moments, by which they are
/// normalised. It is 0 if the moments vanish, and `None` if they become infinite or the rate does not settle. It is
/// an estimate: on which side of 1 a radius close to 1 is, only [`super::SymmetricBlocks::contracts`] can tell.
pub fn growth(
    mut state: Vec<f64>,
    after: impl Fn(&[f64]) -> Vec<f64>,
    size: impl Fn(&[f64]) -> f64,
) -> Option<f64> {
    // The logarithm of the size after each round.
    let mut logs = Vec::new();
    let mut log = 0.0;
    // The previous estimate of the rate.
    let mut before = f64::NAN;
    let mut take = FIRST_ROUNDS;
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
        if apart <= SETTLED * rate || take >= LAST_ROUNDS {
            return (apart <= AT_MOST * rate.max(1.0)).then_some(rate);
        }
        before = rate;
        take *= 2;
    }
}

/// The slope of the line through values at 0, 1, 2, … by least squares, of two values or more. Oscillations, which
/// complex eigenvalues make, nearly cancel in it.
fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let mut products = 0.0;
    let mut squares = 0.0;
    for (i, value) in values.iter().enumerate() {
        let apart = i as f64 - middle;
        products += apart * (value - values[0]);
        squares += apart * apart;
    }
    products / squares
}

/// The spectral radius of a matrix, as ‖Aᵏ‖^{1/k} at k = 2³⁰, such as the rate at which means converge; infinity if an
/// entry is not finite. On which side of 1 it is only [`contracts`] can tell.
pub fn radius(mut a: Matrix) -> f64 {
    if a.entries().iter().any(|x| !x.is_finite()) {
        return f64::INFINITY;
    }
    // Squares of entries this large would not be finite.
    let largest = a.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if largest > GROWN {
        return largest * radius(a.scaled(1.0 / largest));
    }
    let mut log = 0.0;
    for k in 0..=SQUARINGS {
        let norm = libm::sqrt(a.entries().iter().map(|x| x * x).sum());
        if norm == 0.0 {
            return 0.0;
        }
        log += libm::ldexp(libm::log(norm), -k);
        let normalised = a.scaled(1.0 / norm);
        a = normalised.times(&normalised);
    }
    libm::exp(log)
}

/// Whether the spectral radius ρ of a matrix is below 1 beyond doubt: ρ(A)ᵏ ≤ ‖Aᵏ‖ ≤ ½ for some
/// k ≤ 2⁴⁰. `false` says that this was not shown, as of a radius that is closer to 1 than about 10⁻¹².
pub fn contracts(a: &Matrix) -> bool {
    let n = a.rows();
    let mut power = Mat::from_fn(n, n, |i, j| a[(i, j)]);
    for _ in 0..=PROOF_SQUARINGS {
        let norm = power.norm_l2();
        if norm <= 0.5 {
            return true;
        }
        if norm.is_nan() || norm > GROWN {
            return false;
        }
        let mut square = Mat::zeros(n, n);
        matmul(square.as_mut(), Accum::Replace, &power, &power, 1.0, Par::Seq);
        power = square;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::squared_distance;

    /// A random map of norm 1 or less that is not symmetric.
    #[test]
    fn fixed_points_of_large_maps_are_those_of_the_direct_solution() {
        let mut rng = crate::rng::Stream::shared_instance(7);
        let mut random = |rows, cols| {
            let all = (0..rows * cols).map(|_| rng.gaussian()).collect();
            Matrix::from_entries(rows, cols, all)
        };
        let map = random(60, 60).scaled(0.06);
        let constant = random(1, 60);
        let found = gmres(constant.row(0), |x| map.apply(x), SOLVED).unwrap();
        let direct = solve(&Matrix::identity(60).plus(-1.0, &map), constant.row(0)).unwrap();
        assert!(squared_distance(&found, &direct) < 1e-24 * dot(&direct, &direct));
        assert_eq!(gmres(constant.row(0), |x| x.to_vec(), SOLVED), None);
    }

    fn radius_of(entries: [f64; 4]) -> f64 {
        radius(Matrix::from_entries(2, 2, entries.to_vec()))
    }

    /// A rotation, a Jordan block, a diagonal matrix, a nilpotent matrix.
    #[test]
    fn radii_of_matrices_that_are_known() {
        let c = libm::cos(0.7);
        let s = libm::sin(0.7);
        assert!((radius_of([0.9 * c, -0.9 * s, 0.9 * s, 0.9 * c]) - 0.9).abs() < 1e-8);
        assert!((radius_of([1.1, 5.0, 0.0, 1.1]) - 1.1).abs() < 1e-6);
        assert!((radius_of([0.5, 0.0, 0.0, -2.0]) - 2.0).abs() < 1e-8);
        assert_eq!(radius_of([0.0, 3.0, 0.0, 0.0]), 0.0);
    }

    /// Entries that are no number, or whose squares are none, make no radius of 0.
    #[test]
    fn radii_of_large_matrices_are_large() {
        assert!((radius_of([3e200, 1.0, 0.0, 2.0]) / 3e200 - 1.0).abs() < 1e-6);
        assert_eq!(radius_of([f64::INFINITY, 0.0, 0.0, 0.5]), f64::INFINITY);
        assert_eq!(radius_of([0.5, f64::NAN, 0.0, 0.5]), f64::INFINITY);
    }

    /// A Jordan block with the eigenvalue r.
    fn jordan(r: f64) -> Matrix {
        Matrix::from_entries(2, 2, vec![r, 5.0, 0.0, r])
    }

    /// Rotations and Jordan blocks on both sides of 1, and eigenvalues of exactly 1 and −1.
    #[test]
    fn only_what_contracts_is_said_to_contract() {
        let c = libm::cos(0.7);
        let s = libm::sin(0.7);
        let rotation = |r: f64| Matrix::from_entries(2, 2, vec![r * c, -r * s, r * s, r * c]);
        for apart in [1e-1, 1e-3, 1e-6, 1e-9] {
            assert!(contracts(&rotation(1.0 - apart)) && contracts(&jordan(1.0 - apart)));
            assert!(!contracts(&rotation(1.0 + apart)) && !contracts(&jordan(1.0 + apart)));
        }
        assert!(!contracts(&rotation(1.0)) && !contracts(&jordan(-1.0)));
        assert!(!contracts(&Matrix::identity(3)) && contracts(&Matrix::zeros(0, 0)));
        assert!(!contracts(&Matrix::from_entries(1, 1, vec![f64::NAN])));
    }
}
