//! Recovery: removes the leftovers of an interrupted run, and quarantines damaged results.
//!
//! *Invariant*: only folders that were never complete are removed; damaged ones are renamed.
//! Whoever recovers an experiment holds its lock.

use super::Store;
use super::packs::open_packs;
use super::paths::{DAMAGED, file_name, is_cell, subfolders};
use exactfed_runner::files::{Error, REPLACED, WRITING, error, remove_leftovers};
use std::fs;
use std::path::{Path, PathBuf};

impl Store {
    /// Removes folders that were being written, restores one that was being replaced, and
    /// quarantines packs that are not as they were written. Returns the error of each of these
    /// packs and the folder where it is now.
    ///
    /// # Errors
    /// If a folder cannot be read or moved.
    pub fn recover(&self, experiment: &str) -> Result<Vec<(Error, PathBuf)>, Error> {
        self.refuse_links(experiment)?;
        let folder = self.folder(experiment);
        for path in subfolders(&folder)? {
            let name = file_name(&path);
            if name.starts_with(WRITING) {
                fs::remove_dir_all(&path).map_err(|e| error(&path, e))?;
            } else if let Some(replaced) = name.strip_prefix(REPLACED) {
                // It is renamed back, or removed if the new one is there.
                let place = folder.join(replaced);
                let done = match place.symlink_metadata() {
                    Ok(_) => fs::remove_dir_all(&path),
                    Err(_) => fs::rename(&path, &place),
                };
                done.map_err(|e| error(&path, e))?;
            }
        }
        remove_leftovers(&folder);
        let mut quarantined = Vec::new();
        for (place, pack) in open_packs(&folder)? {
            if let Err(e) = pack.and_then(|pack| pack.check()) {
                quarantined.push((e, rename_damaged(&place)?));
            }
        }
        self.forget_packs(experiment);
        Ok(quarantined)
    }

    /// Quarantines the folder of a damaged cell and returns where it is now.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn quarantine(&self, experiment: &str, id: &str) -> Result<PathBuf, Error> {
        debug_assert!(is_cell(id));
        rename_damaged(&self.cell_folder(experiment, id))
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
