//! Exact theory and published bounds, computed from a problem's facts alone.
//!
//! *Invariant*: this module imports neither the engine nor the algorithms, so that theory
//! and simulation share no code whose errors could cancel.

pub mod bounds;
pub mod classes;
pub mod conditions;
pub mod deterministic;
pub mod effort;
pub mod exact;
pub mod expansion;
pub mod frontier;
pub mod heterogeneity;
pub mod linear;
pub mod markov;
