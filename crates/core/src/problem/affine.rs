//! Affine mean fields, Ā θ − b̄, and their covariances: what several problems share.

use super::facts::Facts;
use super::lazy::get_or_compute;
use super::optimum_set::Roots;
use crate::kernel::{axpy, difference, dot};
use crate::linalg::{Matrix, Singular, solve};
use std::sync::OnceLock;

/// An affine mean field Ā θ − b̄ of one client, or of all clients.
pub struct Affine {
    /// Ā, d × d.
    pub matrix: Matrix,
    /// b̄, d numbers.
    pub offset: Vec<f64>,
    /// What [`Self::root`] returns, once it is asked for.
    root: OnceLock<Option<Vec<f64>>>,
}

impl Affine {
    /// The field Ā θ − b̄, which need not have a root.
    pub fn new(matrix: Matrix, offset: Vec<f64>) -> Self {
        Self { matrix, offset, root: OnceLock::new() }
    }

    /// The mean of the clients' fields, which are summed in their order, weighted by the clients' shares, N numbers
    /// whose sum must be 1 (Ā is divided by their sum, b̄ is not); all weigh 1/N if `shares` is `None`.
    pub fn weighted_mean<'a>(
        clients: impl ExactSizeIterator<Item = &'a Self> + Clone,
        shares: Option<&[f64]>,
    ) -> Self {
        let equal = 1.0 / clients.len() as f64;
        let matrix = Matrix::weighted_mean(clients.clone().map(|client| &client.matrix), shares);
        let mut offset = vec![0.0; matrix.rows()];
        for (c, client) in clients.enumerate() {
            axpy(shares.map_or(equal, |shares| shares[c]), &client.offset, &mut offset);
        }
        Self::new(matrix, offset)
    }

    /// Solves for the root of a field that should have one, d numbers. A singular Ā is found where the solution breaks
    /// down, which it need not do if rounding errors make Ā regular.
    ///
    /// # Errors
    /// [`Singular`] if no unique root can be found.
    pub fn solve(&self) -> Result<Vec<f64>, Singular> {
        solve(&self.matrix, &self.offset)
    }

    /// The root, d numbers, which is solved for at the first call; `None` if Ā is singular up to rounding errors, as
    /// that of a client may be.
    pub fn root(&self) -> Option<&[f64]> {
        let root = get_or_compute(&self.root, || {
            let found = Roots::new(&self.matrix, &self.offset).ok()?;
            found.set.is_none().then_some(found.root)
        });
        root.as_deref()
    }

    /// Writes the field at θ, Ā θ − b̄, to `field`, d numbers.
    pub fn evaluate(&self, theta: &[f64], field: &mut [f64]) {
        field.copy_from_slice(&self.matrix.apply(theta));
        axpy(-1.0, &self.offset, field);
    }
}

/// ½ (θ − θ*)ᵀ A (θ − θ*): f(θ) − f(θ*) of a quadratic f with the Hessian A, d × d, and the minimiser θ* = `optimum`.
pub fn half_square(a: &Matrix, theta: &[f64], optimum: &[f64]) -> f64 {
    let apart = difference(theta, optimum);
    0.5 * dot(&apart, &a.apply(&apart))
}

/// E F̄_c(θ) F̄_c(θ')ᵀ of the mean field F̄_c of a client whose field is affine, d × d, for two random points θ and θ'
/// with s = E (e, 1)(e', 1)ᵀ, (d+1) × (d+1), where e = θ − θ* and e' = θ' − θ*. The mean field at θ is M (e, 1) with
/// M = (H_c, F̄_c(θ*)), so this is M s Mᵀ. Noise maps subtract it from second moments of draws to get covariances
/// ([`Facts::noise_map`]).
pub fn mean_part(facts: &dyn Facts, client: usize, s: &Matrix) -> Matrix {
    let d = facts.dim();
    let jacobian = facts.jacobian(client);
    let field = facts.field_at_optimum(client);
    let m = Matrix::from_fn(d, d + 1, |i, j| if j < d { jacobian[(i, j)] } else { field[i] });
    m.times(s).times(&m.transpose())
}
