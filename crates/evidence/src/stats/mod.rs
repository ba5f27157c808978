//! Pure statistics: numbers in, estimates with their uncertainty out.

mod basics;
mod censored;
pub mod distance;
pub mod log_means;
pub mod looks;
pub mod paired;
mod quantiles;
pub mod resolution;
pub mod selection;
mod summary;
pub mod verdict;

pub use basics::{
    geometric_mean, holm, holm_order, mean, quantile, standard_deviation, student_95,
};
pub use censored::CensoredMedian;
pub use summary::{Ratio, Summary};

/// The share of trials in which something happens.
#[cfg(test)]
pub fn share(trials: u32, mut happens: impl FnMut() -> bool) -> f64 {
    f64::from((0..trials).map(|_| u32::from(happens())).sum::<u32>()) / f64::from(trials)
}

/// Squared errors below this are rounding and count as 0: θ of size 1 is known to 1e-16.
pub const ROUNDING_FLOOR: f64 = 1e-28;
