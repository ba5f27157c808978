//! Adaptive optimisers of the server (Reddi et al. 2021, Algorithm 2): what the clients have moved on average in a
//! round is taken for a gradient, whose first and second moments are followed for each coordinate.

use crate::problem::Faults;

/// An adaptive optimiser of the server. With Δ_t, the mean of the clients' ends minus θ_t, it computes for each
/// coordinate m_t = β₁ m_{t−1} + (1 − β₁) Δ_t and the second moment v_t, and moves the server to
/// θ_{t+1} = θ_t + γ_g m_t/(√v_t + τ), where γ_g is the server step. Before the first round m is 0 and v is τ². As
/// in the paper, the moments are not divided by 1 − β^t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerOptimiser {
    /// β₁, the part of the first moment that is kept from one round to the next, from 0 on and below 1.
    pub beta1: f64,
    /// How the second moment follows from its last value and Δ_t².
    pub second_moment: SecondMoment,
    /// τ, above 0: the larger it is, the less the steps of the coordinates differ.
    pub tau: f64,
}

/// How the second moment v of an adaptive server follows from its last value and Δ_t².
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SecondMoment {
    /// v_t = v_{t−1} + Δ_t² (FedAdagrad).
    Sum,
    /// v_t = β₂ v_{t−1} + (1 − β₂) Δ_t² (FedAdam).
    Adam {
        /// β₂, from 0 on and below 1.
        beta2: f64,
    },
    /// v_t = v_{t−1} − (1 − β₂) Δ_t² sign(v_{t−1} − Δ_t²) (FedYogi).
    Yogi {
        /// β₂, from 0 on and below 1.
        beta2: f64,
    },
}

impl SecondMoment {
    /// v_t of a coordinate, from v_{t−1} and Δ_t.
    fn next(self, before: f64, change: f64) -> f64 {
        let square = change * change;
        match self {
            Self::Sum => before + square,
            Self::Adam { beta2 } => beta2 * before + (1.0 - beta2) * square,
            Self::Yogi { beta2 } => before - (1.0 - beta2) * square * sign(before - square),
        }
    }

    /// β₂, if the second moment has one.
    fn beta2(self) -> Option<f64> {
        match self {
            Self::Sum => None,
            Self::Adam { beta2 } | Self::Yogi { beta2 } => Some(beta2),
        }
    }
}

/// The sign of a number: −1, 0 or 1. It is 0 for both zeros, unlike [`f64::signum`].
fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

impl ServerOptimiser {
    /// Adds what is wrong with its numbers to `faults`, under the keys of the manifest.
    pub(super) fn check(&self, faults: &mut Faults) {
        check_decay(faults, "beta1", self.beta1);
        if let Some(beta2) = self.second_moment.beta2() {
            check_decay(faults, "beta2", beta2);
        }
        faults.positive("tau", self.tau);
    }
}

/// Requires that the part of a moment that is kept from round to round is in [0, 1).
fn check_decay(faults: &mut Faults, key: &'static str, beta: f64) {
    faults.require((0.0..1.0).contains(&beta), key, || {
        format!("must be 0 or more and below 1, not {beta}")
    });
}

/// The moments that an adaptive server keeps from round to round.
pub(super) struct ServerMoments {
    optimiser: ServerOptimiser,
    /// m, d numbers.
    first: Vec<f64>,
    /// v, d numbers.
    second: Vec<f64>,
}

impl ServerMoments {
    /// The moments before the first round, in dimension d: m = 0 and v = τ².
    pub(super) fn new(optimiser: ServerOptimiser, d: usize) -> Self {
        let second = vec![optimiser.tau * optimiser.tau; d];
        Self { optimiser, first: vec![0.0; d], second }
    }

    /// Moves the server from θ_t = `before` with the server step γ_g: `theta` has the mean of the clients' ends, and
    /// is replaced by θ_{t+1}. Both have d numbers.
    pub(super) fn move_server(&mut self, before: &[f64], server_step: f64, theta: &mut [f64]) {
        let ServerOptimiser { beta1, second_moment, tau } = self.optimiser;
        for (i, theta) in theta.iter_mut().enumerate() {
            let change = *theta - before[i];
            self.first[i] = beta1 * self.first[i] + (1.0 - beta1) * change;
            self.second[i] = second_moment.next(self.second[i], change);
            *theta = before[i] + server_step * self.first[i] / (self.second[i].sqrt() + tau);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One coordinate, two rounds, by hand: τ = 0.5, so that v is 0.25 at first; Δ is 1 and then 0.5.
    #[test]
    fn moments_are_those_of_the_paper() {
        for (second_moment, v) in [
            (SecondMoment::Sum, [1.25, 1.5]),
            (SecondMoment::Adam { beta2: 0.75 }, [0.4375, 0.390_625]),
            // v rises by (1 − β₂) Δ², since Δ² is above it, and then falls.
            (SecondMoment::Yogi { beta2: 0.75 }, [0.5, 0.4375]),
        ] {
            let optimiser = ServerOptimiser { beta1: 0.5, second_moment, tau: 0.5 };
            let mut moments = ServerMoments::new(optimiser, 1);
            let mut theta = [3.0];
            moments.move_server(&[2.0], 0.1, &mut theta);
            assert_eq!(moments.first, [0.5]);
            assert_eq!(moments.second, [v[0]], "{second_moment:?}");
            assert_eq!(theta, [2.0 + 0.1 * 0.5 / (v[0].sqrt() + 0.5)]);
            let mut theta = [2.5];
            moments.move_server(&[2.0], 0.1, &mut theta);
            assert_eq!(moments.first, [0.5]);
            assert_eq!(moments.second, [v[1]], "{second_moment:?}");
            assert_eq!(theta, [2.0 + 0.1 * 0.5 / (v[1].sqrt() + 0.5)]);
        }
    }

    /// Where Δ² is v, Yogi leaves v as it is.
    #[test]
    fn the_sign_of_zero_is_zero() {
        assert_eq!(SecondMoment::Yogi { beta2: 0.5 }.next(4.0, -2.0), 4.0);
        assert_eq!([sign(0.0), sign(-0.0), sign(-3.0), sign(2.0)], [0.0, 0.0, -1.0, 1.0]);
    }
}
