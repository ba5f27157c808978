//! Recovery: removes the leftovers of an interrupted run, and quarantines damaged results.
//!
//! *Invariant*: only files that were never complete, and rows of cells that a later pack holds, are
//! removed; damaged files are renamed. Whoever recovers an experiment holds its lock.

use super::Store;
use super::packs::Packs;
use super::paths::{DAMAGED, contents, failed_cell, file_name};
use exactfed_runner::files::{Error, error, remove_leftovers};
use exactfed_runner::panics::lock;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

impl Store {
    /// Removes files that were being written and results that were replaced, and quarantines files
    /// that are not as they were written. Returns the error of each of these and where it is now.
    ///
    /// # Errors
    /// If a file cannot be read, renamed or removed.
    pub fn recover(&self, experiment: &str) -> Result<Vec<(Error, PathBuf)>, Error> {
        self.refuse_links(experiment)?;
        let folder = self.folder(experiment);
        remove_leftovers(&folder);
        let packs = Packs::open(&folder)?;
        let mut damaged = packs.damaged.clone();
        let checked = packs.packs.iter().filter_map(|pack| Some((pack, pack.check().err()?)));
        damaged.extend(checked.map(|(pack, e)| (pack.path.clone(), e)));
        for path in contents(&folder)?.1 {
            if let Some(id) = failed_cell(&file_name(&path))
                && let Err(e) = self.failed(experiment, id)
            {
                damaged.push((path, e));
            }
        }
        let packs = if damaged.is_empty() { Some(packs) } else { None };
        let renamed = damaged.into_iter().map(|(path, e)| Ok((e, rename_damaged(&path)?)));
        let quarantined = renamed.collect::<Result<_, Error>>()?;
        self.forget_packs(experiment);
        if let Some(packs) = packs {
            let opened = Arc::new(Mutex::new(Some(Arc::new(packs))));
            lock(&self.packs).insert(experiment.to_owned(), opened);
        }
        self.remove_superseded(experiment)?;
        Ok(quarantined)
    }

    /// Removes the rows of cells that a later pack holds, so that a reader of all packs finds each cell
    /// once.
    pub(super) fn remove_superseded(&self, experiment: &str) -> Result<(), Error> {
        let packs = self.packs(experiment)?;
        for (k, pack) in packs.packs.iter().enumerate() {
            let current = packs.current(k);
            if current.len() == pack.cells.len() {
                continue;
            }
            if !current.is_empty() {
                pack.copy(&self.folder(experiment), &current)?;
            }
            fs::remove_file(&pack.path).map_err(|e| error(&pack.path, e))?;
            self.forget_packs(experiment);
        }
        Ok(())
    }
}

fn rename_damaged(place: &Path) -> Result<PathBuf, Error> {
    let name = file_name(place);
    let mut names = (1..).map(|i| place.with_file_name(format!("{name}{DAMAGED}{i}")));
    let free = names.find(|path| path.symlink_metadata().is_err());
    let free = free.unwrap_or_else(|| place.to_owned());
    fs::rename(place, &free).map_err(|e| error(place, e))?;
    Ok(free)
}
