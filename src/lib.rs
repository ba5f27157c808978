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
//! [`algorithm`] beside [`theory`], then, with the feature `harness`,
//! manifest, plan and trace, runner, store, analysis, chart and report, cli.

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

#[cfg(feature = "harness")]
pub mod analysis;
#[cfg(feature = "harness")]
pub mod chart;
#[cfg(feature = "harness")]
pub mod cli;
#[cfg(feature = "harness")]
pub mod data;
#[cfg(feature = "harness")]
pub mod files;
#[cfg(feature = "harness")]
pub mod manifest;
#[cfg(feature = "harness")]
pub mod plan;
#[cfg(feature = "harness")]
pub mod report;
#[cfg(feature = "harness")]
pub mod runner;
#[cfg(feature = "harness")]
pub mod store;
#[cfg(feature = "harness")]
pub mod trace;
