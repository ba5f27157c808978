//! The command line: one file per command, and what the commands share.

mod check;
mod code;
mod completions;
mod confirm;
mod data;
mod decide;
mod diff;
mod digest;
mod export;
mod init;
mod interrupt;
mod memory;
mod merge;
mod names;
mod pages;
mod plan;
mod progress;
mod report;
mod reproduce;
mod reuse;
mod run;
mod schema;
pub mod shard;
mod submit;
mod time;
mod verify;
mod watch;

pub use check::check;
pub use decide::decide;
pub use diff::{Compared, classes, compare_sides};
pub use interrupt::Interrupt;
pub use memory::{fits_instances, parse_size};
pub use report::{FORMATS, Printed, Reported, figure_inches, report_results};
pub use run::{Follower, How, Workload, execute_until};
pub use verify::{Findings, Rerun, verify_results};

use crate::report as report_pages;
use crate::store::{Store, StoredExperiment, read_table};
use clap::{Parser, Subcommand};
use code::{load_named, load_python, require_code};
use exactfed_core::registry::Registry;
use exactfed_runner::files;
use exactfed_runner::manifest::Source;
use exactfed_runner::manifest::document::{Diagnostic, Rejected, parse};
use exactfed_runner::plan::{Cell, Plan, place_of};
use exactfed_runner::registered::{register, registered};
use exactfed_runner::runner::{BadCell, Prepared, Scenario, prepare_frontiers, prepare_knowing};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;

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
    /// Write reports from results: HTML, Markdown, tables for LaTeX, figures as PDF and PNG
    Report(report::Args),
    /// Run the missing cells of experiments, and show the reports in a browser meanwhile
    Watch(watch::Args),
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

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Done.
    Done = 0,
    /// A claim is refuted, or a diff found a regression.
    Refuted = 1,
    /// Bad input; nothing was written.
    BadInput = 2,
    /// Nothing to compare.
    NotComparable = 3,
    /// Some cells failed; the others are stored.
    SomeFailed = 4,
    /// Interrupted; finished cells are stored.
    Interrupted = 130,
}

impl Code {
    /// The code of a command of two parts: that of the later part, unless it is [`Self::Done`].
    fn and(self, other: Self) -> Self {
        if other == Self::Done { self } else { other }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The message, ready to be printed.
    pub message: String,
    /// The exit code.
    pub code: Code,
    /// What is wrong with the manifest, if that is why.
    pub rejected: Option<Box<Rejected>>,
}

impl Failure {
    /// Bad input.
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: Code::BadInput, rejected: None }
    }
}

impl From<Rejected> for Failure {
    fn from(rejected: Rejected) -> Self {
        let failure = Self::input(&rejected);
        Self { rejected: Some(Box::new(rejected)), ..failure }
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Self {
        Self::input(format!("error: {error}"))
    }
}

/// The program: the command line of this process, with algorithms and problems of its own beside
/// the built-in ones.
pub fn main_with(registry: Registry) -> ExitCode {
    register(|registered| *registered = registry);
    main(std::env::args_os()).into()
}

/// The command that runs this program again, where that is not the executable of the process.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the command, with its first arguments, by which another process can run this program: for
/// a process that is an interpreter. Only the first call has an effect.
pub fn set_program(command: Vec<OsString>) {
    let _ = PROGRAM.set(command);
}

/// Runs the command line, of which the first argument is the name of the program: the exit code.
///
/// Errors are printed.
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

/// Runs a command.
///
/// # Errors
/// A [`Failure`] with the message and the exit code.
pub fn dispatch(cli: Cli) -> Result<Code, Failure> {
    match cli.command {
        Subcommands::Run(args) if args.until_decided => decide::run(&args),
        Subcommands::Run(args) => run::run(&args),
        Subcommands::Report(args) => report::run(&args),
        Subcommands::Watch(args) => watch::run(&args),
        Subcommands::Reproduce(args) => reproduce::run(args),
        Subcommands::Check(args) => check::run(&args),
        Subcommands::Plan(args) => plan::run(&args),
        Subcommands::Init(args) => init::run(&args),
        Subcommands::Data(args) => data::run(&args),
        Subcommands::Diff(args) => diff::run(&args),
        Subcommands::Export(args) => export::run(&args),
        Subcommands::Merge(args) => merge::run(&args),
        Subcommands::Submit(args) => submit::run(&args),
        Subcommands::Digest(args) => digest::run(&args),
        Subcommands::Verify(args) => verify::run(&args),
        Subcommands::Schema(args) => schema::run(&args),
        Subcommands::Completions(args) => completions::run(&args),
    }
}

/// The manifests that a command is given.
#[derive(clap::Args, Clone)]
struct Manifests {
    /// Manifest files
    #[arg(required = true, value_name = "MANIFEST")]
    files: Vec<PathBuf>,
    /// Override a setting, such as seed=7 or problem.garnet.clients=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Number of replicates of each cell, instead of the manifest's
    #[arg(long, value_name = "R")]
    replicates: Option<u64>,
    /// Python code to load first, which defines algorithms: a file, or an installed module (may
    /// be repeated)
    #[arg(long, value_name = "CODE")]
    python: Vec<PathBuf>,
}

impl Manifests {
    /// Reads all manifests, or reports all errors in any of them.
    fn plans(&self) -> Result<Vec<Plan>, Failure> {
        load_named(&self.python)?;
        let mut plans: BTreeMap<String, Plan> = BTreeMap::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut wrong = Vec::new();
        for file in &self.files {
            match self.plan(file) {
                Ok(plan) => {
                    let (name, file) = (&plan.experiment, &plan.source.name);
                    match names.insert(names::folded(name), file.clone()) {
                        Some(other) if plans.contains_key(name) => {
                            wrong.push(Failure::input(format!(
                                "error: {other} and {file} are both the experiment \"{name}\"\n"
                            )))
                        }
                        Some(other) => wrong.push(Failure::input(format!(
                            "error: the names of {other} and {file} differ only in upper and lower case, which not every file system distinguishes\n"
                        ))),
                        None => {}
                    }
                    plans.insert(plan.experiment.clone(), plan);
                }
                Err(failure) => wrong.push(failure),
            }
        }
        if wrong.is_empty() {
            Ok(plans.into_values().collect())
        } else {
            let messages: Vec<String> = wrong.into_iter().map(|failure| failure.message).collect();
            Err(Failure::input(messages.join("\n")))
        }
    }

    fn all_overrides(&self) -> Vec<String> {
        let replicates = self.replicates.map(|r| format!("replicates={r}"));
        self.overrides.iter().cloned().chain(replicates).collect()
    }

    fn plan(&self, file: &Path) -> Result<Plan, Failure> {
        let (experiment, source) = manifest_source(file, self.all_overrides())?;
        planned(experiment, source)
    }
}

/// The plan of a manifest, whose texts on its results are checked too.
///
/// # Errors
/// Everything that is wrong with the manifest.
pub fn planned(experiment: String, source: Source) -> Result<Plan, Failure> {
    load_python(&source)?;
    let plan = Plan::new(experiment, Source { registry: registered(), ..source })?;
    report_pages::check_texts(&plan).map_err(|(key, message)| {
        let found = [(key.to_owned(), format!("`{key}`: {message}"))];
        rejected(&plan, found.into_iter())
    })?;
    Ok(plan)
}

/// The experiment that a file describes: a manifest, or an `experiment.toml` of results, which
/// holds a manifest as it was run; with these overrides in addition.
///
/// # Errors
/// If the file cannot be read, or its path names no experiment.
pub fn manifest_source(file: &Path, overrides: Vec<String>) -> Result<(String, Source), Failure> {
    let name = file.display().to_string();
    let text = files::read_text(file, MOST_MANIFEST)
        .map_err(|e| Failure::input(format!("error: {name} cannot be read: {}\n", e.message)))?;
    let kept = match file.file_name().is_some_and(|name| name == StoredExperiment::FILE) {
        true => StoredExperiment::parse(&text)
            .map_err(|e| Failure::input(format!("error: {name}: {e}\n")))?,
        false => None,
    };
    let Some(kept) = kept else {
        let experiment = names::from_manifest(file).map_err(Failure::input)?;
        return Ok((experiment, Source { name, ..text_source(text, overrides) }));
    };
    names::check(&kept.name, file).map_err(Failure::input)?;
    let mut source = kept.source();
    // The results folder is above as many folders as the name has parts, and the file.
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let root = path.ancestors().nth(kept.name.split('/').count() + 1).unwrap_or(&path);
    source.copies = Some(Store::copies(root));
    source.overrides.extend(overrides);
    Ok((kept.name, source))
}

/// A manifest that is in no file, for an experiment of this name. Data files are looked for in
/// the working directory.
///
/// # Errors
/// If no experiment can have this name.
pub fn unfiled_source(
    experiment: &str,
    text: String,
    overrides: Vec<String>,
) -> Result<Source, Failure> {
    let last = experiment.rsplit('/').next().unwrap_or_default();
    let name = format!("{last}.toml");
    names::check(experiment, Path::new(&name)).map_err(Failure::input)?;
    Ok(Source { name, unfiled: true, ..text_source(text, overrides) })
}

fn text_source(text: String, overrides: Vec<String>) -> Source {
    Source { text, overrides, tables: Some(read_table), ..Source::default() }
}

/// Writes to standard output. A reader that has closed the pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("error: standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// The message that another run holds the lock of an experiment.
fn waiting(experiment: &str) -> String {
    format!("{experiment}: another run is at work on it: waiting until it ends")
}

/// The most bytes of a manifest.
const MOST_MANIFEST: u64 = 16 << 20;
/// The most threads of a command.
const MOST_THREADS: usize = 1024;

/// Builds the instances of these cells, or reports every error at its place in the manifest, also
/// those of its frontiers.
fn prepared<'a>(plan: &'a Plan, cells: &[&'a Cell]) -> Result<Vec<Prepared<'a>>, Failure> {
    let prepared = prepare_frontiers(plan)
        .and_then(|_| prepare_knowing(&plan.folder(), &Store::known_optima(plan), cells));
    prepared.map_err(|bad| {
        let found = bad.into_iter().map(|BadCell { path, message }| {
            let named = |part: &&str| part.parse::<usize>().is_err();
            let key = path.rsplit('.').find(named).unwrap_or_default();
            let text = format!("`{key}`: {message}");
            (path, text)
        });
        rejected(plan, found).into()
    })
}

/// What a run of a cell runs on.
///
/// # Errors
/// If its instance cannot be built.
pub fn scenario(plan: &Plan, cell: &Cell, run: u64) -> Result<Arc<Scenario>, Failure> {
    let prepared = prepared(plan, &[cell])?;
    Ok(prepared[0].scenarios[cell.identity.instance_of(run) as usize].clone())
}

/// The errors of a plan's manifest, each with the path of its key.
fn rejected(plan: &Plan, found: impl Iterator<Item = (String, String)>) -> Rejected {
    let root = parse(&plan.source).ok();
    let diagnostics = found.map(|(path, message)| {
        let place = root.as_ref().and_then(|root| place_of(root, &path, &BTreeMap::new()));
        Diagnostic::new(place, &path, message)
    });
    Rejected::new(&plan.source, diagnostics.collect())
}

/// A pool of so many threads; by default as many as the machine has.
fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, Failure> {
    let there = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let threads = threads.unwrap_or_else(there);
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(Failure::input(format!(
            "error: --threads must be from 1 to {MOST_THREADS}, not {threads}"
        )));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| Failure::input(format!("error: {threads} threads cannot be started: {e}")))
}
