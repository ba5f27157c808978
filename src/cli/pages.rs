//! Pages that are written while cells are run, and those of the end.
//!
//! *Invariant*: after [`LivePages::write_final`] nothing is written any more, and the pages are
//! those that one report at the end would have written (`tests/suite/live.rs`).

use super::outcome::{Code, Failure};
use super::prepare::pool;
use super::report::{self, FORMATS, Printed, Subject, Unreported, Written};
use crate::report::Writer;
use crate::store::Store;
use exactfed_runner::panics::{beside, lock};
use exactfed_runner::plan::Plan;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

/// Number of changes of each experiment's results.
pub type Changes = BTreeMap<String, u64>;

/// Least time between the end of a report and the next, while cells are run.
const BETWEEN_REPORTS: Duration = Duration::from_secs(2);
/// How many times as long as a report the time to the next one is at least: reports take at most
/// a quarter of the time of one thread.
const REST: u32 = 3;
/// Time between two checks whether there is something to do.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run during which pages are written.
pub trait ChangingResults: Sync {
    /// How often the results of each experiment have changed in a way that its page should show.
    fn changes(&self) -> Changes;
    /// Pages were written, or could not be written for this reason.
    fn reported(&self, _error: Option<String>) {}
}

/// Writes reports.
pub struct LivePages<'p> {
    results: PathBuf,
    /// The experiments that have pages; if `None`, all that have results.
    plans: Option<&'p [Plan]>,
    writer: Writer,
    quiet: bool,
    /// What was written while cells are run; `None` once the final pages are written.
    live: Mutex<Option<LiveEntries>>,
    /// Done once it is printed where the first page is.
    announced: Once,
    /// What this message says of the time after the first page.
    sequel: &'static str,
}

/// Of each experiment, the number of changes that its page has, and its entry of the index.
type LiveEntries = BTreeMap<String, (Option<u64>, Result<Written, Unreported>)>;

impl<'p> LivePages<'p> {
    /// Pages of all experiments of these results in this folder, which is created, or of these
    /// plans. The latter depend on the manifests alone and not on what else the results contain, so
    /// that everybody who reproduces published pages gets the same.
    pub fn new(
        plans: Option<&'p [Plan]>,
        results: &Path,
        reports: &Path,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let mut writer = Writer::new(reports, &FORMATS)?;
        writer.of_manifests = plans.is_some();
        let results = results.to_owned();
        let live = Mutex::new(Some(LiveEntries::new()));
        let announced = Once::new();
        let sequel = "the others follow";
        Ok(Self { results, plans, writer, quiet, live, announced, sequel })
    }

    /// The same pages. Until the final ones are written, those of these experiments and those about
    /// all experiments show the progress and reload themselves.
    pub fn reloading(mut self, experiments: BTreeSet<String>) -> Result<Self, Failure> {
        self.writer.begin_live(experiments)?;
        self.sequel = "pages that are open reload themselves";
        Ok(self)
    }

    /// Writes the status that the pages of a run show, a JSON object.
    pub fn write_status(&self, status: Value) -> Result<(), Failure> {
        Ok(self.writer.write_status(status)?)
    }

    /// Does the work of a run, and writes pages meanwhile where results change, until it ends or
    /// `stop` is true.
    pub fn during<T>(
        &self,
        run: &impl ChangingResults,
        stop: &AtomicBool,
        work: impl FnOnce() -> T,
    ) -> T {
        beside(|ended| self.write_repeatedly(run, stop, ended), work)
    }

    fn write_repeatedly(&self, run: &impl ChangingResults, stop: &AtomicBool, ended: Receiver<()>) {
        // The other threads belong to the run.
        let Ok(pool) = pool(Some(1)) else { return };
        let ended = Mutex::new(ended);
        let is_over = || {
            let has_ended = lock(&ended).try_recv() == Err(TryRecvError::Disconnected);
            has_ended || stop.load(Ordering::Relaxed)
        };
        let (mut next, mut written) = (Instant::now(), None);
        while lock(&ended).recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let changes = run.changes();
            let is_begun = changes.values().any(|count| *count > 0);
            if !is_begun || Instant::now() < next || written.as_ref() == Some(&changes) || is_over()
            {
                continue;
            }
            let begin = Instant::now();
            let update = pool.install(|| self.update(&changes, &is_over));
            run.reported(update.err().map(|failure| failure.message));
            written = Some(changes);
            next = Instant::now() + BETWEEN_REPORTS.max(begin.elapsed() * REST);
        }
    }

    /// Writes the pages of experiments that changed since they were written, or that were never
    /// written, until `stop` is true, and the index.
    fn update(&self, changes: &Changes, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
        let mut live = lock(&self.live);
        let Some(entries) = &mut *live else { return Ok(()) };
        // A new store: an open one remembers the packs that it has seen.
        let store = Store::open_existing(&self.results)?;
        for subject in self.subjects(&store, Some(changes))? {
            if stop() {
                break;
            }
            let (name, count) = (subject.name().to_owned(), changes.get(subject.name()).copied());
            if entries.get(&name).is_some_and(|(written, _)| *written == count) {
                continue;
            }
            let printed = Printed::by_command(self.quiet);
            entries.insert(name, (count, subject.write(&store, &self.writer, printed)));
        }
        let written = entries.values().map(|(_, written)| written.clone());
        report::write_index(written, &self.writer)?;
        if !self.quiet && !entries.is_empty() {
            self.announced.call_once(|| {
                let (index, sequel) = (self.writer.index_file(), self.sequel);
                eprintln!("the first page is written: open {}; {sequel}", index.display());
            });
        }
        Ok(())
    }

    /// Writes the pages of experiments that changed, with all threads of the machine: what is run waits. A
    /// page that cannot be written is reported at the end.
    pub fn write_now(&self, changes: &Changes) {
        let Ok(pool) = pool(None) else { return };
        let _ = pool.install(|| self.update(changes, &|| false));
    }

    /// The experiments that have pages; while cells are run, those of plans of which results have
    /// changed, or those of a results folder, the ones of the run first.
    fn subjects(
        &self,
        store: &Store,
        changes: Option<&Changes>,
    ) -> Result<Vec<Subject<'p>>, Failure> {
        let is_of_run = |name: &str| changes.is_none_or(|changes| changes.contains_key(name));
        if let Some(plans) = self.plans {
            let plans = plans.iter().filter(|plan| is_of_run(&plan.experiment));
            return Ok(plans.map(Subject::Planned).collect());
        }
        let mut stored = report::stored(store)?;
        stored.sort_by_key(|subject| !is_of_run(subject.name()));
        Ok(stored)
    }

    /// Writes the pages of all experiments, as `report` does. They no longer show the progress.
    pub fn write_final(&self) -> Result<Code, Failure> {
        let entries = lock(&self.live).take().unwrap_or_default();
        self.writer.end_bars();
        let written = self.write_with_final(entries);
        // After an error too, since pages that are open wait for the end of the status.
        self.writer.end_live()?;
        written
    }

    /// Writes the pages of all experiments except for those that these entries show as final: the
    /// page of a plan that lacks no cell does not change any more.
    fn write_with_final(&self, entries: LiveEntries) -> Result<Code, Failure> {
        let is_final = |written: &Written| self.plans.is_some() && written.0.is_complete();
        let entries = entries
            .into_iter()
            .filter_map(|(name, (_, written))| Some((name, written.ok().filter(is_final)?)));
        let store = Store::open_existing(&self.results)?;
        let subjects = self.subjects(&store, None)?;
        report::write_all(subjects, entries.collect(), &store, &self.writer, self.quiet)
    }
}
