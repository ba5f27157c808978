//! The exact moments of [`crate::round_program`]s on linear problems, without sampling.
//!
//! Given the state at the start of a round, each operation makes affine functions of that state and of
//! noises, whose covariances are linear in the second moments of the state. So second moments close.
//! Clients that no round distinguishes form a type. All moments follow from means over types and from
//! the covariance of a client's deviation from the mean of its type, so that cost and size grow with
//! the number of types, not with the number of clients.
//!
//! Moments at the rounds of runs are cached with results, so that a change of a bit of them needs another
//! [`crate::moments::VERSION`].
//!
//! docs/THEORY.md derives all of this. `THEORY (4.2)` in the documentation of a function, a type or a
//! field means that it computes or holds what equation (4.2) of that document says; a list such as
//! `THEORY (2.5), (2.6)` means several equations. Symbols are those of the document: θ* is the optimum,
//! e = θ − θ* an error, d the dimension, k a client, g a type of n_g clients, y the state in which a client
//! begins its local steps, and a prime marks a second run or a second client. Vectors of several clients
//! or types follow each other, and matrices are written row by row.

mod coin;
mod covariances;
mod draws;
mod error;
mod form;
mod known;
mod layers;
mod linear_rounds;
mod local;
mod moments;
mod noise;
mod outline;
mod participation;
mod pass;
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

pub use error::{KeptSum, MomentsError};
pub use known::KnownSteps;
pub use linear_rounds::{ErrorParts, LinearRounds};
pub use moments::{ProgramMoments, closes};
pub use outline::Outline;
pub use pass::check_passes;
pub use sizes::ProgramSizes;
pub use squares::{MeanRounds, Squares, StartError};
pub use stationary::Cycle;
pub use types::Type;
pub use values::{CovarianceBlocks, Moments, SpectralRadii};

#[cfg(test)]
mod tests;
