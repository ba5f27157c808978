//! Parse, dispatch, print the error, exit code.

#![forbid(unsafe_code)]

use clap::Parser;
use driftbench::cli::{Cli, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    match driftbench::cli::dispatch(Cli::parse()) {
        Ok(code) => code.into(),
        Err(Failure { message, code }) => {
            eprintln!("{}", message.trim_end());
            code.into()
        }
    }
}
