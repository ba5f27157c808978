//! Errors of algorithms on classes of quadratic problems. A problem of a class has numbers of its own for the distance
//! of the start, the heterogeneity of gradients and the noise, in which the mean square error is a quadratic form. Its
//! coefficients over rounds are computed once for all of them.
//!
//! The oracles' noise must be the same at every θ. What `THEORY (6.9)` means, and its symbols, are explained in
//! [`super::exact`].

mod coefficients;
mod costs;

pub use coefficients::{Coefficients, ProblemScale};
pub use costs::{
    BestCosts, ClassInstance, ClassSquare, CostTables, LeastCost, ROBUST_FACTOR, SettingsGrid,
};

#[cfg(test)]
mod tests;
