//! Manifests, and the runs that they describe, in memory.
//!
//! The modules, each of which imports only from those before it: [`files`], [`panics`] and [`hex`];
//! [`data`], data files as plain values; [`quantity`], what is measured and what runs cost;
//! [`manifest`], the types that a user writes;
//! [`registered`], what the process adds to them; [`plan`], the cells of a manifest; [`trace`], the numbers of a run; [`runner`].
//!
//! Neither a terminal nor a table library is needed: the crate builds for any target.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod data;
pub mod files;
pub mod hex;
pub mod manifest;
pub mod panics;
pub mod plan;
pub mod quantity;
pub mod registered;
pub mod runner;
#[cfg(test)]
mod sample;
pub mod trace;
