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
    let store = Store::open_existing(&args.results)?;
    let mut lines = BTreeSet::new();
    for (experiment, id) in store.all_cells()? {
        if let Some(cell) = store.summary(&experiment, &id)? {
            lines.insert(format!("{} {}\n", cell.id, cell.digest));
        }
    }
    print(&lines.into_iter().collect::<String>())?;
    Ok(Code::Done)
}
