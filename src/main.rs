//! The program `exactfed`: the command line with the built-in algorithms and problems alone.

#![forbid(unsafe_code)]

use exactfed::registry::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    exactfed::main_with(Registry::default())
}
