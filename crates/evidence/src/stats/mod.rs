//! Pure statistics: numbers in, estimates with their uncertainty out.

mod basics;
pub mod distance;
pub mod log_means;
pub mod looks;
pub mod paired;
pub mod resolution;
mod summary;
pub mod verdict;

pub use basics::{holm, holm_order, mean, quantile, standard_deviation, student_95};
pub use summary::{Ratio, Summary};

/// Squared errors below this are rounding and count as 0: θ of size 1 is known to 1e-16.
pub const ROUNDING_FLOOR: f64 = 1e-28;
