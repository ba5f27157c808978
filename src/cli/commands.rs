//! The commands of the command line.

use super::outcome::{Code, Failure};
use super::{
    check, completions, data, decide, diff, digest, export, history, init, live, merge, plan,
    report, reproduce, run, schema, submit, verify,
};
use clap::{CommandFactory, Parser, Subcommand};
use exactfed_core::registry::Registry;
use exactfed_runner::registered::register;
use std::ffi::OsString;
use std::process::ExitCode;

/// Run federated optimisation algorithms from TOML manifests and compare their results with
/// exact theory
#[derive(Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Run the missing cells of experiments
    Run(run::Args),
    /// Write reports from results: HTML, Markdown, tables for LaTeX, figures as PDF, PNG and SVG
    Report(report::Args),
    /// Run the missing cells of experiments, and write reports whose pages reload: run --live
    Watch(live::Args),
    /// Run every manifest in a directory and write the reports
    Reproduce(reproduce::Args),
    /// Validate manifests and report all errors
    Check(check::Args),
    /// List the cells of manifests with their state and estimated time
    Plan(plan::Args),
    /// Write a manifest to start from, of a data file or of a synthetic problem
    Init(init::Args),
    /// Describe a data file, and print a manifest to start from
    Data(data::Args),
    /// Compare two sets of results or reports
    Diff(diff::Args),
    /// Show how committed results changed from commit to commit
    History(history::Args),
    /// Write the rows of all cells to one Parquet or CSV file
    Export(export::Args),
    /// Merge several results folders into one
    Merge(merge::Args),
    /// Submit the missing cells to a Slurm cluster
    Submit(submit::Args),
    /// Print the id and digest of every cell, one per line, sorted
    Digest(digest::Args),
    /// Run a sample of the stored cells again and compare the bits
    Verify(verify::Args),
    /// Print the JSON Schema of manifests
    Schema(schema::Args),
    /// Print the completions of commands and options for a shell
    Completions(completions::Args),
}

/// Runs the command line of this process and returns its exit code: the whole `main` of a program that adds
/// algorithms and problems of its own, in `registry`, to the built-in ones.
pub fn main_with(registry: Registry) -> ExitCode {
    register(|registered| *registered = registry);
    main(std::env::args_os()).into()
}

/// Runs a command line whose first argument is the name of the program, and returns the exit code. Errors
/// are printed on standard error. Programs and the Python package call it.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let ended = match Cli::try_parse_from(arguments) {
        Ok(cli) => dispatch(cli),
        Err(e) => {
            // Also the way in which --help and --version end.
            let _ = e.print();
            return e.exit_code().try_into().unwrap_or(Code::BadInput as u8);
        }
    };
    let code = ended.unwrap_or_else(|Failure { message, code, .. }| {
        eprintln!("{}", message.trim_end());
        code
    });
    code as u8
}

/// Runs the command of a parsed command line.
///
/// # Errors
/// A [`Failure`] with the message, which is not printed yet, and the exit code.
pub fn dispatch(cli: Cli) -> Result<Code, Failure> {
    match cli.command {
        Subcommands::Run(args) if args.until_decided => decide::run(&args),
        Subcommands::Run(args) if args.live => {
            live::run(&args.manifests, &args.options, &args.reports)
        }
        Subcommands::Run(args) => run::run(&args),
        Subcommands::Report(args) => report::run(&args),
        Subcommands::Watch(args) => live::run(&args.manifests, &args.options, &args.reports),
        Subcommands::Reproduce(args) => reproduce::run(args),
        Subcommands::Check(args) => check::run(&args),
        Subcommands::Plan(args) => plan::run(&args),
        Subcommands::Init(args) => init::run(&args),
        Subcommands::Data(args) => data::run(&args),
        Subcommands::Diff(args) => diff::run(&args),
        Subcommands::History(args) => history::run(&args),
        Subcommands::Export(args) => export::run(&args),
        Subcommands::Merge(args) => merge::run(&args),
        Subcommands::Submit(args) => submit::run(&args),
        Subcommands::Digest(args) => digest::run(&args),
        Subcommands::Verify(args) => verify::run(&args),
        Subcommands::Schema(args) => schema::run(&args),
        Subcommands::Completions(args) => completions::run(&args, &mut Cli::command()),
    }
}
