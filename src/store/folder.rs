//! A results folder: its root, the folders of its experiments, and their packs, which are opened
//! once.
//!
//! *Invariant*: whatever is read or written below the root is reached without following a symbolic
//! link.

use super::marker::{ResultsMarker, SCHEMA, is_occupied, why_refused};
use super::pack::Pack;
use super::packs::{Packs, RecentRows};
use super::paths::MARKER;
use exactfed_runner::files::{
    Error, check_writable, create_below, error, refuse_links, remove_leftovers,
};
use exactfed_runner::panics::lock;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The packs of an experiment; `None` until the first thread that needs them has opened them, while others wait.
type OpenedPacks = Arc<Mutex<Option<Arc<Packs>>>>;

/// A results folder.
pub struct Store {
    /// The path of the folder.
    pub root: PathBuf,
    /// The packs of each experiment, as they were when they were first needed.
    packs: Mutex<HashMap<String, OpenedPacks>>,
    /// The rows of the packs that were read last.
    pub(super) recent_rows: RecentRows,
}

impl Store {
    /// Opens the results folder that exists at `root`, or will be created there by [`Self::create`]. Nothing is
    /// written.
    ///
    /// # Errors
    /// If the marker states another schema than [`SCHEMA`] or cannot be read, or if there is no marker and the folder
    /// holds other files.
    pub fn open(root: &Path) -> Result<Self, Error> {
        // It is listed before the marker is read: whatever another run creates in the folder, it
        // creates after the marker.
        let occupied = is_occupied(root);
        match ResultsMarker::read(root)? {
            Some(ResultsMarker { schema, version }) if schema != SCHEMA => {
                return Err(error(
                    root,
                    format!(
                        "these results have schema {schema}, written by exactfed {version}; this one has schema {SCHEMA}: run the experiments again into another folder (--out), or remove this one"
                    ),
                ));
            }
            None if occupied => return Err(why_refused(root)),
            _ => {}
        }
        Ok(Self {
            root: root.to_owned(),
            packs: Mutex::default(),
            recent_rows: RecentRows::default(),
        })
    }

    /// The schema, which is the version of the files, of a results folder of any version, which [`Self::open`] might
    /// refuse: commands find out by it whether a folder holds results. `None` if it is no results folder, or its marker
    /// cannot be read.
    pub fn schema(root: &Path) -> Option<u32> {
        let marker = ResultsMarker::read(root).ok()??;
        Some(marker.schema)
    }

    /// Opens the results folder at `root`, which must exist, for commands that need results.
    ///
    /// # Errors
    /// If it does not exist, has another schema than [`SCHEMA`], or is not a results folder.
    pub fn open_existing(root: &Path) -> Result<Self, Error> {
        let store = Self::open(root)?;
        if !root.join(MARKER).is_file() {
            return Err(error(root, "there are no results here: run an experiment first"));
        }
        Ok(store)
    }

    /// Creates the folder and its marker, if they do not exist, removes temporary files that killed processes have left
    /// in it, and checks that it can be written.
    ///
    /// # Errors
    /// If it cannot be created or written.
    pub fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.root).map_err(|e| error(&self.root, e))?;
        if ResultsMarker::read(&self.root)?.is_none() {
            ResultsMarker::write(&self.root)?;
        }
        remove_leftovers(&self.root);
        check_writable(&self.root)
    }

    /// Takes back what [`Self::create`] has created, if nothing else is in the folder: removes the marker, and then
    /// those of `new_folders` that are empty. These are the folders that did not exist before, from this one to the
    /// outermost.
    pub fn remove_unused(&self, new_folders: &[PathBuf]) {
        if is_occupied(&self.root) {
            return;
        }
        let _ = fs::remove_file(self.root.join(MARKER));
        for folder in new_folders {
            let _ = fs::remove_dir(folder);
        }
        // Another process that has seen the marker may have stored results meanwhile, which need it.
        if is_occupied(&self.root) {
            let _ = ResultsMarker::write(&self.root);
        }
    }

    /// The number of cells with results in an experiment's folder that are not among these ids, which are those of the
    /// plan: a run says that reports leave the others out. Cells in packs with a damaged index are not counted; 0 if
    /// the folder cannot be read.
    pub fn count_others(&self, experiment: &str, known: &HashSet<&str>) -> usize {
        let packs = self.packs(experiment).unwrap_or_default();
        packs.ids().filter(|id| !known.contains(id.as_str())).count()
    }

    /// The path of an experiment's folder.
    pub(super) fn folder(&self, experiment: &str) -> PathBuf {
        self.root.join(experiment)
    }

    /// Creates an experiment's folder, if it does not exist, and returns its path.
    ///
    /// # Errors
    /// If it cannot be created, or a part of the path below the root is a symbolic link.
    pub(super) fn make_folder(&self, experiment: &str) -> Result<PathBuf, Error> {
        let folder = self.folder(experiment);
        create_below(&self.root, &folder)?;
        Ok(folder)
    }

    /// Refuses an experiment whose path has a symbolic link in it: results are neither read nor
    /// written outside of their folder.
    pub(super) fn refuse_links(&self, experiment: &str) -> Result<(), Error> {
        refuse_links(&self.root, &self.folder(experiment))
    }

    /// The packs of an experiment as they were when they were first needed, or first needed after they were forgotten;
    /// none if the experiment has no folder. Packs that other processes have written since then are not among them.
    pub(super) fn packs(&self, experiment: &str) -> Result<Arc<Packs>, Error> {
        // Only this experiment is locked while its packs are opened: others can be read meanwhile.
        let place = lock(&self.packs).entry(experiment.to_owned()).or_default().clone();
        let mut opened = lock(&place);
        if let Some(packs) = &*opened {
            return Ok(packs.clone());
        }
        self.refuse_links(experiment)?;
        let packs = Arc::new(Packs::open(&self.folder(experiment))?);
        Ok(opened.insert(packs).clone())
    }

    /// Replaces the packs of an experiment that the store remembers by packs that were just read from its folder.
    pub(super) fn set_packs(&self, experiment: &str, packs: Packs) {
        let opened = Arc::new(Mutex::new(Some(Arc::new(packs))));
        lock(&self.packs).insert(experiment.to_owned(), opened);
    }

    /// Adds the pack in a file that was just written to the packs of the experiment, if they are open; else the next
    /// reader finds it in the folder. No open pack that holds one of its cells may have a higher generation.
    ///
    /// # Errors
    /// If the file cannot be read back. It stays, and is found when the packs are opened anew.
    pub(super) fn add_pack(&self, experiment: &str, file: &Path) -> Result<(), Error> {
        let opened = lock(&self.packs).get(experiment).cloned();
        if let Some(opened) = opened
            && let Some(packs) = &mut *lock(&opened)
        {
            Arc::make_mut(packs).push(Pack::open(file)?);
        }
        Ok(())
    }

    /// Forgets the packs of an experiment, so that the next reader opens them again: they have changed, or another
    /// process may have changed them.
    pub(super) fn forget_packs(&self, experiment: &str) {
        lock(&self.packs).remove(experiment);
    }
}
