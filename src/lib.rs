//! One iteration stands behind all that driftbench runs. Clients c = 1..N hold
//! local fields F_c(θ; Z) with means F̄_c, and θ* solves N⁻¹ Σ F̄_c(θ*) = 0:
//!
//! ```text
//! θ_c ← θ_t;  H times: θ_c ← θ_c − γ (F_c(θ_c; Z) + ξ_c);  θ_{t+1} = N⁻¹ Σ θ_c
//! ```
//!
//! with ξ = 0 (FedAvg; FedLSA where F_c is affine) or control variates
//! (Scaffold; SCAFFLSA), alone, averaged, or extrapolated over γ.
//!
//! The modules in layer order, imports going down only:
//! [`rng`] [`kernel`] [`linalg`] [`stats`], [`problem`], [`federated`],
//! [`algorithm`] beside [`theory`]; with the feature `runner`, files and data,
//! manifest, plan, trace and runner; with the feature `harness`, store, analysis,
//! chart, report and cli.

#![deny(unsafe_code)]
#![warn(missing_docs)]

#[allow(unsafe_code)]
pub mod kernel;
pub mod linalg;
pub mod rng;
pub mod stats;

pub mod problem;

pub mod federated;

pub mod algorithm;
pub mod theory;

#[cfg(feature = "runner")]
pub mod data;
#[cfg(feature = "runner")]
pub mod files;
#[cfg(feature = "runner")]
pub mod manifest;
#[cfg(feature = "runner")]
mod panics;
#[cfg(feature = "runner")]
pub mod plan;
#[cfg(feature = "runner")]
pub mod runner;
#[cfg(feature = "runner")]
pub mod trace;
pub mod words;

#[cfg(feature = "harness")]
pub mod analysis;
#[cfg(feature = "harness")]
pub mod chart;
#[cfg(feature = "harness")]
pub mod cli;
#[cfg(feature = "harness")]
pub mod report;
#[cfg(feature = "harness")]
pub mod store;

#[cfg(test)]
#[path = "../tests/support/process.rs"]
mod process;
