//! The portable core of exactfed: no I/O, no clock, no environment.
//!
//! One iteration underlies every algorithm. Clients c = 1..N hold local fields
//! F_c(θ; Z) with means F̄_c, and θ* solves N⁻¹ Σ F̄_c(θ*) = 0:
//!
//! ```text
//! θ_c ← θ_t;  H times: θ_c ← θ_c − γ (F_c(θ_c; Z) + ξ_c);  θ_{t+1} = N⁻¹ Σ θ_c
//! ```
//!
//! with ξ = 0 (FedAvg; FedLSA where F_c is affine) or control variates
//! (Scaffold; SCAFFLSA), alone, averaged, or extrapolated over γ.
//!
//! Each of these modules imports only from modules that are named before it: [`rng`], [`linalg`], [`sources`],
//! [`words`], [`flattened`]; [`compression`]; [`definition`]; [`client_sampling`]; [`kernel`]; [`problem`],
//! [`round_program`]; [`federated`], the engine; [`algorithm`] and, apart from [`algorithm`] and from the engine,
//! [`theory`]; [`moments`], which puts them together.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod algorithm;
pub mod client_sampling;
pub mod compression;
pub mod custom_metric;
pub mod definition;
pub mod federated;
pub mod flattened;
#[allow(unsafe_code)]
pub mod kernel;
pub mod linalg;
pub mod moments;
pub mod problem;
pub mod registry;
pub mod rng;
pub mod round_program;
pub mod sources;
pub mod theory;
pub mod words;

#[cfg(test)]
mod sample;
