//! `digest`: prints the id and digest of every cell.

use super::outcome::{Code, Failure, print};
use crate::store::{Results, Store, StoredCell};
use exactfed_runner::files::Error;
use exactfed_runner::plan::CellId;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
The numbers of each cell are read and checked. Damaged cells are reported on standard error and \
omitted; the exit code is then 4.

Example: exactfed digest results > before.txt")]
pub struct Args {
    /// Folder of the results
    #[arg(default_value = "results")]
    results: PathBuf,
}

/// The command `digest`: prints a line `id digest` for each stored cell, sorted, so that two results folders are
/// compared by comparing texts. A cell that occurs in several experiments has one line. Damaged cells set the code
/// [`Code::SomeFailed`].
pub fn run(args: &Args) -> Result<Code, Failure> {
    let store = Store::open_existing(&args.results)?;
    let mut lines = BTreeSet::new();
    let mut damaged = Vec::new();
    for (name, experiment) in store.listing()? {
        damaged.extend(experiment.err());
        let Ok(ids) = store.ids(&name).map_err(|e| damaged.push(e)) else { continue };
        // The numbers are read, so that a digest is that of the numbers that are there.
        let ids: Vec<&str> = ids.iter().map(CellId::as_str).collect();
        let order = store.reading_order(&name, &ids);
        let line = |place: usize| -> Result<Option<String>, Error> {
            let stored = store.read(&name, ids[place])?;
            Ok(stored.map(|StoredCell { record, .. }| format!("{} {}\n", record.id, record.digest)))
        };
        let found: Vec<_> = order.into_par_iter().map(line).collect();
        for one in found {
            match one {
                Ok(line) => lines.extend(line),
                Err(e) => damaged.push(e),
            }
        }
    }
    print(&lines.into_iter().collect::<String>())?;
    for e in &damaged {
        eprintln!("error: {e}");
    }
    Ok(if damaged.is_empty() { Code::Done } else { Code::SomeFailed })
}
