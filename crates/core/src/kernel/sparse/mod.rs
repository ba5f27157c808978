//! Rows that are mostly zeros, and the local steps of logistic regression on them.

mod on_supports;
mod rows;
mod scales;
mod steps;
mod support;

pub use on_supports::{SupportRound, VariatesToLearn};
pub use rows::{SparseRow, SparseRows, SparseRowsError};
pub use steps::{LogisticLoss, SparseRecords};
