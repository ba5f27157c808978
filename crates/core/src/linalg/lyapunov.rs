//! A X + X Aᵀ = C, for any A whose eigenvalues have positive real parts.

use super::{Dd, Matrix, Singular, refine, solve_rows};

/// The most squarings of a matrix whose powers should vanish; if they have not by then, A counts as unstable.
const MAX_SQUARINGS: usize = 60;

/// **A**C: the X with A X + X Aᵀ = C, all d × d, where C need not be symmetric (RR (9)): to first order in the step
/// size, the covariance of SGD on a field with Jacobian A and noise covariance C is γX. It is computed by doubling on
/// the Cayley transform, then refined with residual and solution in double-double until it no longer changes, so that
/// it has the same bits on every processor.
///
/// # Errors
/// [`Singular`] if an eigenvalue of A has no positive real part, or one that is too small to tell.
pub fn solve_lyapunov(a: &Matrix, c: &Matrix) -> Result<Matrix, Singular> {
    let d = a.rows();
    // (q + A)X(q + A)ᵀ − (q − A)X(q − A)ᵀ = 2q(A X + X Aᵀ): so X = M X Mᵀ + 2q U C Uᵀ
    // with U = (q + A)⁻¹ and M = U(q − A), whose powers vanish. Any positive shift q does;
    // ‖A‖_F/√d is of the eigenvalues' size.
    let size = a.entries().iter().fold(0.0, |sum, x| sum + x * x);
    let shift = libm::sqrt(size / d as f64);
    let inverse = solve_rows(&a.plus(shift, &Matrix::identity(d)), &Matrix::identity(d))?;
    let mut powers = vec![inverse.times(&Matrix::identity(d).scaled(shift).plus(-1.0, a))];
    loop {
        let power = &powers[powers.len() - 1];
        let largest = power.entries().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        if !largest.is_finite() || powers.len() > MAX_SQUARINGS {
            return Err(Singular);
        }
        if largest < 1e-12 {
            break;
        }
        powers.push(power.times(power));
    }
    let doubling = Doubling { inverse, shift, powers };
    let x = refine(
        c.entries(),
        |residual| Ok(doubling.approximate(residual)),
        |x, entry| residual_entry(a, c, x, entry),
    )?;
    Ok(Matrix::from_entries(d, d, x))
}

/// What is computed once of A to solve A X + X Aᵀ = R for several right sides R.
struct Doubling {
    /// The inverse U = (q + A)⁻¹, d × d.
    inverse: Matrix,
    /// The shift q of the Cayley transform.
    shift: f64,
    /// The powers M, M², M⁴, … of M = U(q − A), each d × d, until they vanish.
    powers: Vec<Matrix>,
}

impl Doubling {
    /// The X with A X + X Aᵀ = R, in double precision, for the right side R; both are d × d numbers, row by row. It is
    /// Σ_k Mᵏ (2q U R Uᵀ) Mᵏᵀ, of whose terms each power of M that is kept doubles the number.
    fn approximate(&self, right_side: &[f64]) -> Vec<f64> {
        let d = self.inverse.rows();
        let right_side = Matrix::from_entries(d, d, right_side.to_vec());
        let inverse = &self.inverse;
        let mut x = inverse.times(&right_side).times(&inverse.transpose()).scaled(2.0 * self.shift);
        for power in &self.powers {
            let more = power.times(&x).times(&power.transpose());
            x.add(1.0, &more);
        }
        x.into_entries()
    }
}

/// Entry number `entry`, row by row, of C − A X − X Aᵀ, computed in double-double and rounded to a double; `x` is X
/// row by row.
fn residual_entry(a: &Matrix, c: &Matrix, x: &[Dd], entry: usize) -> f64 {
    let d = a.rows();
    let i = entry / d;
    let j = entry % d;
    let mut sum = Dd::from(c[(i, j)]);
    for k in 0..d {
        sum = sum.minus_product(a[(i, k)], x[k * d + j]);
        sum = sum.minus_product(a[(j, k)], x[i * d + k]);
    }
    sum.hi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::solve;
    use crate::rng::Stream;

    /// The solution from the system of d² equations with the matrix A ⊗ I + I ⊗ A.
    fn by_kronecker(a: &Matrix, c: &Matrix) -> Matrix {
        let d = a.rows();
        let system = Matrix::from_fn(d * d, d * d, |r, s| {
            // X_kl is unknown number s, and the equation of C_ij has number r.
            let i = r / d;
            let j = r % d;
            let k = s / d;
            let l = s % d;
            let left = if j == l { a[(i, k)] } else { 0.0 };
            let right = if i == k { a[(j, l)] } else { 0.0 };
            left + right
        });
        Matrix::from_entries(d, d, solve(&system, c.entries()).unwrap())
    }

    #[test]
    fn it_agrees_with_the_system_written_out() {
        let mut rng = Stream::shared_instance(5);
        for (d, least) in [(1, 0.3), (3, 1e-3), (6, 0.5), (9, 1e-6)] {
            let noise: Vec<f64> = (0..d * d).map(|_| 0.2 * rng.gaussian() / d as f64).collect();
            let a = Matrix::from_fn(d, d, |i, j| {
                let turn = noise[i * d + j] - noise[j * d + i];
                if i == j { least + i as f64 } else { turn }
            });
            let c = Matrix::from_fn(d, d, |i, j| 1.0 / (1.0 + i as f64 + 2.0 * j as f64));
            let x = solve_lyapunov(&a, &c).unwrap();
            let y = by_kronecker(&a, &c);
            let size = y.entries().iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            for (x, y) in x.entries().iter().zip(y.entries()) {
                assert!((x - y).abs() <= 1e-15 * size, "d = {d}: {x} {y}");
            }
        }
    }

    #[test]
    fn unstable_matrices_are_refused() {
        let c = Matrix::identity(2);
        let saddle = Matrix::from_fn(2, 2, |i, j| [[1.0, 0.0], [0.0, -0.5]][i][j]);
        assert_eq!(solve_lyapunov(&saddle, &c), Err(Singular));
        assert_eq!(solve_lyapunov(&Matrix::zeros(2, 2), &c), Err(Singular));
    }
}
