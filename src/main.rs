//! The command line, with nothing registered beside the built-in algorithms and problems.

#![forbid(unsafe_code)]

use driftbench::registry::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    driftbench::main_with(Registry::default())
}
