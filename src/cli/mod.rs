//! The command line: one file per command, and files for what commands share.

mod check;
mod code;
mod commands;
mod completions;
mod confirm;
mod data;
mod decide;
mod diff;
mod digest;
mod export;
mod history;
mod init;
mod interrupt;
mod live;
mod manifests;
mod memory;
mod merge;
mod names;
mod outcome;
mod pages;
mod plan;
mod prepare;
mod progress;
mod report;
mod reproduce;
mod reuse;
mod run;
mod schema;
pub mod shard;
mod submit;
mod verify;

pub use check::check;
pub use commands::{Cli, dispatch, main, main_with};
pub use decide::decide;
pub use diff::{Compared, classes, compare_sides};
pub use interrupt::Interrupt;
pub use manifests::{manifest_source, planned, unfiled_source};
pub use memory::{fits_instances, parse_size};
pub use outcome::{Code, Failure};
pub use prepare::scenario;
pub use report::{FORMATS, Printed, Reported, figure_inches, report_results};
#[cfg(test)]
pub use reproduce::manifests_below;
pub use run::{Follower, PreparedRun, RunOptions, Workload};
pub use submit::set_program;
pub use verify::{Findings, Rerun, verify_results};
