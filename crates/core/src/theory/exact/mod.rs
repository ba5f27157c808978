//! The exact moments of [`crate::round_program`]s on linear problems, without sampling.
//!
//! Given the state at the start of a round, an operation makes affine functions of it and of noises
//! whose covariances are linear in its second moments, so these close. Clients that no round tells
//! apart form a type. Means over types, and the covariance of a client's deviation from the mean of
//! its type, say everything: cost and size grow with the types, not with the clients.

mod draws;
mod form;
mod known;
mod layers;
mod local;
mod moments;
mod noise;
mod outline;
mod reduction;
mod round;
mod setup;
mod sizes;
mod squares;
mod stability;
mod stages;
mod stationary;
mod types;
mod values;
mod variates;

pub use known::KnownSteps;
pub use moments::{ProgramMoments, closes};
pub use outline::Outline;
pub use sizes::ProgramSizes;
pub use squares::{MeanRounds, Squares, StartError};
pub use stationary::Cycle;
pub use types::Type;
pub use values::{CovarianceBlocks, Moments, SpectralRadii};

#[cfg(test)]
mod tests;
