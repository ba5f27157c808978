//! Mean fields that are affine, Ā θ − b̄, and their roots: what the linear
//! problems share.

use super::Facts;
use crate::kernel::axpy;
use crate::linalg::{Matrix, Singular, solve};

/// The mean field of a client, or of all.
pub struct Affine {
    /// Ā, d × d.
    pub matrix: Matrix,
    /// b̄, d numbers.
    pub offset: Vec<f64>,
    /// The root, d numbers.
    pub optimum: Vec<f64>,
}

impl Affine {
    /// The field Ā θ − b̄.
    ///
    /// # Errors
    /// [`Singular`] if it has no unique root.
    pub fn new(matrix: Matrix, offset: Vec<f64>) -> Result<Self, Singular> {
        let optimum = solve(&matrix, &offset)?;
        Ok(Self { matrix, offset, optimum })
    }

    /// The mean of the clients' fields, in their order; its root is θ*.
    ///
    /// # Errors
    /// [`Singular`] if it has no unique root.
    pub fn mean<'a>(
        clients: impl ExactSizeIterator<Item = &'a Self> + Clone,
    ) -> Result<Self, Singular> {
        let n = clients.len() as f64;
        let matrix = Matrix::mean(clients.clone().map(|client| &client.matrix));
        let mut offset = vec![0.0; matrix.rows()];
        clients.for_each(|client| axpy(1.0 / n, &client.offset, &mut offset));
        Self::new(matrix, offset)
    }

    /// Ā θ − b̄ into `field`, d numbers.
    pub fn evaluate(&self, theta: &[f64], field: &mut [f64]) {
        field.copy_from_slice(&self.matrix.apply(theta));
        axpy(-1.0, &self.offset, field);
    }
}

/// F̄_c F̄_c'ᵀ as a map of s = E (e, 1)(e', 1)ᵀ: with M = (H_c, F̄_c(θ*)), M s Mᵀ.
pub fn mean_part(facts: &dyn Facts, client: usize, s: &Matrix) -> Matrix {
    let d = facts.dim();
    let (jacobian, mut field) = (facts.jacobian(client), vec![0.0; d]);
    facts.mean_field(client, facts.optimum(), &mut field);
    let m = Matrix::from_fn(d, d + 1, |i, j| if j < d { jacobian[(i, j)] } else { field[i] });
    m.times(s).times(&m.transpose())
}

/// E δδ' p φφᵀ less the mean part, for fields δ φ: each atom is its probability,
/// φ (d numbers) and w (d + 1 numbers) with δ = wᵀ(e, 1).
pub fn rank_one_noise<'a>(
    facts: &dyn Facts,
    client: usize,
    s: &Matrix,
    atoms: impl Iterator<Item = (f64, &'a [f64], Vec<f64>)>,
) -> Matrix {
    let d = facts.dim();
    let mut second = Matrix::zeros(d, d);
    for (p, phi, w) in atoms {
        let along = crate::kernel::dot(&w, &s.apply(&w));
        second.add_outer(p * along, phi, phi);
    }
    second.plus(-1.0, &mean_part(facts, client, s))
}
