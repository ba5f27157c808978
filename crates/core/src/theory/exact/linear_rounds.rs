//! Rounds whose noise is the same everywhere, as one linear map with a constant and additive noise.

use crate::linalg::Matrix;

/// Rounds x ← M x + ζ₁ c + n of a state x, where the noise n has mean 0 and a covariance that is the same in all
/// rounds. The estimate's error is W x. THEORY (6.9).
#[derive(Clone, Debug)]
pub struct LinearRounds {
    /// M, of the order of the state.
    pub map: Matrix,
    /// c, what the clients' gradients at θ* add to the state in a round, where the problem's ζ₁ is taken as 1.
    pub constant: Vec<f64>,
    /// The state before the first round that comes of the distance of the start from θ*.
    pub start_of_distance: Vec<f64>,
    /// The state before the first round that comes of the clients' gradients at θ*.
    pub start_of_gradients: Vec<f64>,
    /// The covariance of n.
    pub noise: Matrix,
    /// W, d rows.
    pub result: Matrix,
}
