//! The exact moments of [`crate::program`]s on linear problems, without sampling.
//!
//! Given the state at the start of a round, an operation makes affine functions of it and of noises
//! whose covariances are linear in its second moments, so these close. Clients that no round tells
//! apart form a type. Means over types, and the covariance of a client's deviation from the mean of
//! its type, say everything: cost and size grow with the types, not with the clients.

#[cfg(test)]
mod built_in;
mod form;
mod moments;
mod noise;
mod round;
mod stationary;
mod types;

pub use moments::{ProgramMoments, closes, effort};
pub use stationary::{Cycle, effort as stationary_effort};

#[cfg(test)]
mod tests;
