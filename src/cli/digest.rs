//! `digest`: a line a cell.

use super::{Code, Failure, print};
use crate::store::Store;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench digest results > before.txt")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let lines: BTreeSet<String> = Store::open_existing(&args.results)?
        .all_cells()?
        .into_iter()
        .map(|record| format!("{} {}\n", record.id, record.digest))
        .collect();
    print(&lines.into_iter().collect::<String>())?;
    Ok(Code::Done)
}
