//! The pages of a run that is going on, and those of its end.
//!
//! *Invariant*: after [`LivePages::write_final`] nothing is written any more.

use crate::cli::report::{self, FORMATS, Unreported};
use crate::cli::{Code, Failure};
use crate::report::{IndexEntry, Writer};
use crate::store::Store;
use exactfed_runner::panics::lock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Number of changes of each experiment's results.
pub type Changes = BTreeMap<String, u64>;

/// Writes reports, and reads what was written.
pub struct LivePages {
    results: PathBuf,
    writer: Writer,
    quiet: bool,
    live: Mutex<Live>,
}

/// What was written while cells are run.
#[derive(Default)]
struct Live {
    /// Of each experiment, the number of changes that its page has, and its entry of the index.
    entries: BTreeMap<String, (Option<u64>, Result<IndexEntry, Unreported>)>,
    ended: bool,
}

impl LivePages {
    /// Pages of these results in this folder, which is created.
    pub fn new(results: &Path, reports: &Path, quiet: bool) -> Result<Self, Failure> {
        let writer = Writer::new(reports, &FORMATS)?;
        Ok(Self { results: results.to_owned(), writer, quiet, live: Mutex::default() })
    }

    /// Writes the pages of experiments that changed since they were written, or that were never
    /// written, and the index; those of this run first. Ends early if `stop` is true.
    pub fn update(&self, changes: &Changes, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
        let mut live = lock(&self.live);
        // A new store: an open one remembers the packs that it has seen.
        let store = Store::open_existing(&self.results)?;
        let mut listing = store.listing()?;
        listing.sort_by_key(|(name, _)| !changes.contains_key(name));
        for experiment in listing {
            if live.ended || stop() {
                return Ok(());
            }
            let (name, count) = (experiment.0.clone(), changes.get(&experiment.0).copied());
            if live.entries.get(&name).is_some_and(|(written, _)| *written == count) {
                continue;
            }
            let plan = report::listed(experiment);
            let tell = |text: &str| eprintln!("{text}");
            let entry = plan.and_then(|plan| report::write_one(&plan, &store, &self.writer, &tell));
            live.entries.insert(name, (count, entry.map(|(entry, _)| entry)));
        }
        let (mut entries, mut failed) = (Vec::new(), Vec::new());
        for (_, entry) in live.entries.values().cloned() {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(reason) => failed.push(reason),
            }
        }
        Ok(self.writer.index(entries, &failed)?)
    }

    /// Writes the pages of all experiments, as `report` does.
    pub fn write_final(&self) -> Result<Code, Failure> {
        lock(&self.live).ended = true;
        report::write_stored(&Store::open_existing(&self.results)?, &self.writer, self.quiet)
    }

    /// What is in a file that a report wrote.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.writer.read(name)
    }
}
