//! Rows of one call of a field.

/// Rows at which a field is evaluated: M points, each with a client and a draw.
#[derive(Clone, Copy, Debug)]
pub struct FieldRows<'a> {
    /// θ of each row, M × d numbers.
    pub thetas: &'a [f64],
    /// The index of the client of each row, M numbers.
    pub clients: &'a [usize],
    /// The draw of each row, M numbers ([`DrawSpace`]).
    pub draws: &'a [u64],
}
