//! exactfed: results, their analysis, pages, and the command line.
//!
//! The portable core is [`exactfed_core`]; manifests and runs are [`exactfed_runner`].
//! Both are re-exported here module by module, so that `exactfed::` reaches everything.
//!
//! The modules of this crate, each of which imports only from those before it: [`store`]; [`compare`]; [`chart`]; [`report`]; [`cli`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub use cli::main_with;
pub use exactfed_core::{
    algorithm, client_sampling, compression, custom_metric, definition, federated, kernel, linalg,
    moments, problem, registry, rng, round_program, theory, words,
};
pub use exactfed_evidence::{self as evidence, stats};
pub use exactfed_runner::{data, files, manifest, plan, registered, runner, trace};

pub mod chart;
pub mod cli;
pub mod compare;
pub mod report;
pub mod store;

#[cfg(test)]
mod test_support;
