//! Rows that are mostly zeros, and the local steps of logistic regression on them.

mod rows;
mod steps;
mod supports;

pub use rows::{SparseRow, SparseRows};
pub use steps::{LogisticLoss, SparseSteps};
pub use supports::{Support, SupportRound};
