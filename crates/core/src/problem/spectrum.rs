//! Covariances and Hessians with chosen eigenvalues: a diagonal matrix between two
//! reflections.

use super::fault::Faults;
use crate::kernel::dot;
use crate::linalg::Matrix;
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Eigenvalues from `from` to `to`, evenly spaced in the logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Spectrum {
    /// The smallest eigenvalue, above 0.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 0.1)]
    pub from: f64,
    /// The largest eigenvalue, `from` or more.
    #[schemars(extend("exclusiveMinimum" = 0.0), example = 1.0)]
    pub to: f64,
}

impl Spectrum {
    /// Adds a fault for each end that is not above 0, and if the ends are in the wrong order.
    pub fn check(self, faults: &mut Faults) {
        faults.positive("spectrum.from", self.from);
        faults.positive("spectrum.to", self.to);
        faults.require(self.from <= self.to, "spectrum.to", || {
            format!("must be at least `from`, {}, not {}", self.from, self.to)
        });
    }

    /// The d eigenvalues, evenly spaced in the logarithm, from the smallest to the largest; if d is 1 the smallest.
    pub fn values(self, d: usize) -> Vec<f64> {
        let ratio = libm::log(self.to / self.from);
        let mut values = Vec::with_capacity(d);
        for i in 0..d {
            // The ends are the settings' own numbers, without rounding errors.
            values.push(if i == 0 {
                self.from
            } else if i + 1 == d {
                self.to
            } else {
                self.from * libm::exp(ratio * i as f64 / (d - 1) as f64)
            });
        }
        values
    }
}

/// A uniformly drawn direction: a vector of d numbers and length 1.
pub fn direction(d: usize, rng: &mut Stream) -> Vec<f64> {
    let mut u: Vec<f64> = (0..d).map(|_| rng.gaussian()).collect();
    let length = libm::sqrt(dot(&u, &u));
    u.iter_mut().for_each(|x| *x /= length);
    u
}

/// Reflects x along the direction u of length 1: x ← (I − 2uuᵀ)x.
#[inline(always)]
pub fn reflect(u: &[f64], x: &mut [f64]) {
    let twice = 2.0 * dot(x, u);
    for (x, u) in x.iter_mut().zip(u) {
        *x -= twice * u;
    }
}

/// (I − 2uuᵀ) diag(values) (I − 2uuᵀ), d × d, for a u of length 1: a symmetric matrix with these eigenvalues,
/// whose axes are reflected along u.
pub fn rotated(values: &[f64], u: &[f64]) -> Matrix {
    let d = values.len();
    let mut whole = Matrix::zeros(d, d);
    for (j, value) in values.iter().enumerate() {
        let mut column = vec![0.0; d];
        column[j] = 1.0;
        reflect(u, &mut column);
        whole.add_outer(*value, &column, &column);
    }
    whole
}
