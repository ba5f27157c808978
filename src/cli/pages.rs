//! Pages that are written while cells are run, and the final pages.
//!
//! *Invariant*: after [`LivePages::write_final`] nothing is written any more, and the pages are
//! those that one report at the end would have written (`tests/suite/live.rs`).

use super::outcome::{Code, Failure};
use super::prepare::pool;
use super::report::{self, FORMATS, Printed, Subject, Unreported, Written};
use crate::report::{PublishedElsewhere, Writer};
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

/// How often the results of each experiment have changed, by its name.
pub type Changes = BTreeMap<String, u64>;

/// Least time between the end of a report and the next, while cells are run.
const BETWEEN_REPORTS: Duration = Duration::from_secs(2);
/// How many times as long as a report the time to the next one is at least: reports take at most
/// a quarter of the time of one thread.
const REST: u32 = 3;
/// Time between two checks whether there is something to do.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run during which pages are written, as far as those who write them need to know it.
pub trait ChangingResults: Sync {
    /// How often the results of each experiment have changed in a way that its page should show.
    fn changes(&self) -> Changes;
    /// Is called after each attempt to write pages, with the reason if they could not be written.
    fn reported(&self, _error: Option<String>) {}
}

/// Writes the reports of a results folder, while cells are run and in the end.
pub struct LivePages<'p> {
    /// The results folder.
    results: PathBuf,
    /// The experiments that have pages; if `None`, all that have results.
    plans: Option<&'p [Plan]>,
    writer: Writer,
    quiet: bool,
    /// What was written while cells are run; `None` once the final pages are begun.
    live: Mutex<Option<LiveEntries>>,
    /// Makes the message that says where the first page is come once.
    announced: Once,
    /// The end of this message, on what happens after the first page.
    sequel: &'static str,
}

/// By experiment, the number of changes of its results that its page shows (`None` for an experiment that is not
/// run), and its entry of the index or why it has no page.
type LiveEntries = BTreeMap<String, (Option<u64>, Result<Written, Unreported>)>;

impl<'p> LivePages<'p> {
    /// The pages, in the folder `reports`, which is created, of these plans or, without plans, of all experiments in
    /// the folder `results`. The pages of plans depend on the manifests alone and not on what else the results
    /// contain, so that everybody who reproduces published pages gets the same. With `quiet`, warnings alone are
    /// printed.
    ///
    /// # Errors
    /// If the folder of the pages cannot be created.
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

    /// Lets the pages about all experiments name the published experiments in another folder.
    pub fn naming(mut self, elsewhere: Option<PublishedElsewhere>) -> Self {
        self.writer.elsewhere = elsewhere;
        self
    }

    /// The same pages; until the final pages are written, the pages of these experiments and the pages about all
    /// experiments show the progress of the run and reload themselves.
    ///
    /// # Errors
    /// If nothing can be written into the folder of the pages.
    pub fn reloading(mut self, experiments: BTreeSet<String>) -> Result<Self, Failure> {
        self.writer.begin_live(experiments)?;
        self.sequel = "pages that are open reload themselves";
        Ok(self)
    }

    /// Writes the status of a run, a JSON object, into the file from which open pages read it; nothing unless the pages
    /// are [reloading](Self::reloading), and nothing after the final pages.
    pub fn write_status(&self, status: Value) -> Result<(), Failure> {
        Ok(self.writer.write_status(&status)?)
    }

    /// Does `work`, which runs cells, on this thread, and returns what it returns. Meanwhile another thread writes the
    /// pages of experiments whose results change, until the work ends or `stop` is true.
    pub fn during<T>(
        &self,
        run: &impl ChangingResults,
        stop: &AtomicBool,
        work: impl FnOnce() -> T,
    ) -> T {
        beside(|ended| self.write_repeatedly(run, stop, ended), work)
    }

    /// Writes the pages of experiments whose results have changed, as long as `ended` is connected and `stop` is not
    /// true, with a pause after each time ([`BETWEEN_REPORTS`], [`REST`]). Nothing is written before the first
    /// change.
    fn write_repeatedly(&self, run: &impl ChangingResults, stop: &AtomicBool, ended: Receiver<()>) {
        // The other threads belong to the run.
        let Ok(pool) = pool(Some(1)) else { return };
        let ended = Mutex::new(ended);
        let is_over = || {
            let has_ended = lock(&ended).try_recv() == Err(TryRecvError::Disconnected);
            has_ended || stop.load(Ordering::Relaxed)
        };
        let mut next = Instant::now();
        let mut written = None;
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

    /// Writes the pages of experiments whose results have changed since their pages were written, or whose pages were
    /// never written, until `stop` is true, and then the index of these pages. Does nothing once the final pages are
    /// begun, and keeps these waiting until it has ended. That a page cannot be written is no error: the index says so.
    fn update(&self, changes: &Changes, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
        let mut live = lock(&self.live);
        let Some(entries) = &mut *live else { return Ok(()) };
        // A new store: an open one remembers the packs that it has seen.
        let store = Store::open_existing(&self.results)?;
        for subject in self.subjects(&store, Some(changes))? {
            if stop() {
                break;
            }
            let name = subject.name().to_owned();
            let count = changes.get(subject.name()).copied();
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
                let index = self.writer.index_file();
                let sequel = self.sequel;
                eprintln!("the first page is written: open {}; {sequel}", index.display());
            });
        }
        Ok(())
    }

    /// Writes the pages of experiments whose results have changed at once, with all threads of the machine, while the
    /// run, which calls this, waits. A page that cannot be written is reported with the final pages.
    pub fn write_now(&self, changes: &Changes) {
        let Ok(pool) = pool(None) else { return };
        let _ = pool.install(|| self.update(changes, &|| false));
    }

    /// The experiments whose pages are to be written: the plans, or all experiments in `store`. `changes` counts the
    /// changes of results in the run so far; it is `None` for the final pages. While cells are run, plans without a
    /// change are left out, and among stored experiments the experiments of the run come first.
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

    /// Writes the final pages of all experiments, as `report` does, which no longer show the progress, and returns the
    /// exit code of `report`: a refuted claim or an experiment that cannot be reported is no error. From now on nothing
    /// else is written.
    ///
    /// # Errors
    /// If results cannot be listed, or the index cannot be written.
    pub fn write_final(&self) -> Result<Code, Failure> {
        let entries = lock(&self.live).take().unwrap_or_default();
        self.writer.end_bars();
        let written = self.write_with_final(entries);
        // After an error too, since pages that are open wait for the end of the status.
        self.writer.end_live()?;
        written
    }

    /// Writes the pages of all experiments except for those whose page, by these entries, is final already: the page of
    /// a plan that lacks no cell does not change any more.
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
