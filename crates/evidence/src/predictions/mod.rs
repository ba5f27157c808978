//! Predictions of theory for the cells of an experiment, by cell and by name. They are computed
//! when they are first asked for.

pub mod exact;
mod expanded;
mod expected;
pub mod first_order;
pub mod instances;
pub mod measures;
pub mod problems;
mod published;
pub mod radii;
mod refused;
#[cfg(test)]
mod stability_tests;
mod theory;
mod uniform;

pub use expected::{MomentsCache, cacheable_moments};
pub use refused::bounds as bounds_of_cost;
pub use theory::{Theory, exact_bias, fits, quantity_of};
