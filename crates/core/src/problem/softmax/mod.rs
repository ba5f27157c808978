//! Softmax regression with K classes, on a user's records ([`dataset`]) or on those of
//! Li et al. 2020 ([`synthetic`]).
//!
//! f_c(Θ) = E \[log Σ_k exp(θ_kᵀx) − θ_yᵀx\] + λ/2 ‖Θ‖² over client c's records (x, y), with
//! Θ of K × d: θ has K·d numbers, one class after the other. The oracle draws a batch of records
//! with replacement; [`crate::kernel::softmax`] states its operations and their order.

pub mod dataset;
mod loss;
pub mod synthetic;

pub use loss::{ClassRecords, Softmax, SoftmaxLoss};

#[cfg(test)]
mod tests;
