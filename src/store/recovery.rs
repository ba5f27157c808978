//! Recovery: removes the leftovers of an interrupted run, and quarantines damaged results.
//!
//! *Invariant*: only files that were never complete, and rows of cells that a later pack (of a higher generation, or
//! with the same rows) holds, are removed; damaged files are renamed. Whoever recovers an experiment holds its lock.

use super::folder::Store;
use super::packs::{DamagedFile, Packs};
use super::paths::{DAMAGED, contents, failed_cell, file_name};
use exactfed_runner::files::{Error, error, remove_leftovers};
use std::fs;
use std::path::{Path, PathBuf};

impl Store {
    /// Removes files that were being written and results that were replaced, and quarantines files
    /// that are not as they were written: from then on, cells that no other file has are missing, and a run computes
    /// them again. Returns, for each quarantined file, what is wrong with it and its new path. The caller holds the
    /// lock of the experiment.
    ///
    /// # Errors
    /// If a file cannot be read, renamed or removed, or the path of the experiment has a symbolic link in it.
    pub fn recover(&self, experiment: &str) -> Result<Vec<(Error, PathBuf)>, Error> {
        self.refuse_links(experiment)?;
        let folder = self.folder(experiment);
        remove_leftovers(&folder);
        let packs = Packs::open(&folder)?;
        let damaged = self.damaged_files(experiment, &packs)?;
        let is_sound = damaged.is_empty();
        let mut quarantined = Vec::new();
        for file in damaged {
            let new_path = rename_damaged(&file.path)?;
            quarantined.push((file.error, new_path));
        }
        self.forget_packs(experiment);
        if is_sound {
            // They were just checked: nobody needs to read and check them again.
            self.set_packs(experiment, packs);
        }
        self.remove_superseded(experiment)?;
        Ok(quarantined)
    }

    /// The files of an experiment that are not as they were written: packs, all bytes of which are checked, and records
    /// of failed cells.
    fn damaged_files(&self, experiment: &str, packs: &Packs) -> Result<Vec<DamagedFile>, Error> {
        let mut damaged = packs.damaged.clone();
        for pack in &packs.sound {
            if let Err(error) = pack.check() {
                damaged.push(DamagedFile { path: pack.path.clone(), error });
            }
        }
        for path in contents(&self.folder(experiment))?.files {
            if let Some(id) = failed_cell(&file_name(&path))
                && let Err(error) = self.failed(experiment, id)
            {
                damaged.push(DamagedFile { path, error });
            }
        }
        Ok(damaged)
    }

    /// Removes the rows of cells that a later pack holds, so that a reader of all packs finds each cell once. A pack
    /// with other cells too is replaced by one that has only those. The caller holds the lock of the experiment.
    pub(super) fn remove_superseded(&self, experiment: &str) -> Result<(), Error> {
        let packs = self.packs(experiment)?;
        for (number, pack) in packs.sound.iter().enumerate() {
            let current = packs.current_cells(number);
            if current.len() == pack.cells.len() {
                continue;
            }
            if !current.is_empty() {
                pack.copy_cells(&self.folder(experiment), &current)?;
            }
            fs::remove_file(&pack.path).map_err(|e| error(&pack.path, e))?;
            self.forget_packs(experiment);
        }
        Ok(())
    }
}

/// Quarantines a damaged file: renames it to `<name>.damaged-<n>` with the first number n from 1 that is free, and
/// returns its new path. No reader takes a file of such a name for results.
fn rename_damaged(path: &Path) -> Result<PathBuf, Error> {
    let name = file_name(path);
    let mut number = 1_u64;
    let new_path = loop {
        let candidate = path.with_file_name(format!("{name}{DAMAGED}{number}"));
        // Earlier quarantined files, and links that lead nowhere, are not replaced.
        if candidate.symlink_metadata().is_err() {
            break candidate;
        }
        number += 1;
    };
    fs::rename(path, &new_path).map_err(|e| error(path, e))?;
    Ok(new_path)
}
