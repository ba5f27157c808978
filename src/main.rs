//! The command line, with nothing registered beside the built-in algorithms and problems.

#![forbid(unsafe_code)]

use exactfed::registry::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    exactfed::main_with(Registry::default())
}
