//! Mean fields that are affine, Ā θ − b̄, and their roots: what the linear
//! problems share.

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
    pub fn at(&self, theta: &[f64], field: &mut [f64]) {
        field.copy_from_slice(&self.matrix.apply(theta));
        axpy(-1.0, &self.offset, field);
    }
}
