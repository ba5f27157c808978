//! The options of a run.

use crate::cli::{memory, shard};
use crate::store::Status;
use std::path::PathBuf;

/// Options of `run`, which `reproduce` has too.
#[derive(Clone, clap::Args, Default)]
pub struct RunOptions {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Number of threads; by default as many as the machine has
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Run only the cells listed in this file, one id per line (- for standard input)
    #[arg(long, value_name = "FILE")]
    pub only: Option<PathBuf>,
    /// Run shard I of N of the cells; shards are balanced by their operations
    #[arg(long, value_name = "I/N", value_parser = shard::parse)]
    pub shard: Option<(u64, u64)>,
    /// Also run cells that are done
    #[arg(long)]
    pub force: bool,
    /// Also run cells that failed before
    #[arg(long)]
    pub rerun_failed: bool,
    /// Do not ask for confirmation before large runs
    #[arg(long)]
    pub yes: bool,
    /// Memory that runs may use, such as 64G; by default the available memory
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_size)]
    pub memory: Option<f64>,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

impl RunOptions {
    /// Whether a cell in this state is to be run: one that failed before only with `--rerun-failed` or
    /// `--force`, and one that is done only with `--force`.
    pub fn wants(&self, status: &Status) -> bool {
        match status {
            Status::Missing | Status::Damaged(_) => true,
            Status::Failed(_) => self.rerun_failed || self.force,
            Status::Done => self.force,
        }
    }
}
