//! driftbench: results, their analysis, pages, and the command line.
//!
//! The portable core is [`driftbench_core`]; manifests and runs are [`driftbench_runner`].
//! Both are re-exported here module by module, so that `driftbench::` reaches everything.
//!
//! The modules of this crate, each of which imports only from those before it: [`stats`];
//! [`store`]; [`analysis`]; [`chart`]; [`report`]; [`cli`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use cli::main_with;
pub use driftbench_core::{
    algorithm, definition, federated, kernel, linalg, problem, registry, rng, theory, words,
};
pub use driftbench_runner::{data, files, manifest, plan, registered, runner, trace};

pub mod analysis;
pub mod chart;
pub mod cli;
pub mod report;
pub mod stats;
pub mod store;

#[cfg(test)]
#[path = "../tests/support/npz.rs"]
#[allow(dead_code)]
mod npz;
#[cfg(test)]
#[path = "../tests/support/process.rs"]
mod process;
