//! What theory says, computed from a problem's exact facts alone.
//!
//! *Invariant*: this module never imports the engine or the algorithms, so
//! that a bug they share cannot cancel.

pub mod bounds;
pub mod deterministic;
pub mod effort;
pub mod expansion;
pub mod heterogeneity;
pub mod linear;
pub mod lyapunov;
pub mod moments;
