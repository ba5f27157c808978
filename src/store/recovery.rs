//! What an interrupted run, or a disk, left behind: put right before a run goes on.
//!
//! *Invariant*: nothing is removed but what was never whole; what is damaged is moved
//! aside. Whoever mends holds the experiment's lock.

use super::{Store, is_cell, pack};
use driftbench_runner::files::{Error, REPLACED, WRITING, error, remove_leftovers};
use std::fs;
use std::path::{Path, PathBuf};

impl Store {
    /// Puts an experiment's folder right: folders that were being written go, one that
    /// was being replaced comes back, packs that are not as they were written are moved
    /// aside. What was damaged is told, and where it went.
    ///
    /// # Errors
    /// If a folder cannot be read or moved.
    pub fn recover(&self, experiment: &str) -> Result<Vec<(Error, PathBuf)>, Error> {
        self.see_inside(experiment)?;
        let folder = self.folder(experiment);
        let entries = fs::read_dir(&folder).map_err(|e| error(&folder, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| error(&folder, e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if name.starts_with(WRITING) {
                fs::remove_dir_all(&path).map_err(|e| error(&path, e))?;
            } else if let Some(of) = name.strip_prefix(REPLACED) {
                put_back(&path, &folder.join(of))?;
            }
        }
        remove_leftovers(&folder);
        let mut damaged = Vec::new();
        for place in pack::folders(&folder)? {
            if let Err(e) = pack::Pack::open(&place).and_then(|pack| pack.check()) {
                damaged.push((e, move_aside(&place)?));
            }
        }
        self.forget(experiment);
        Ok(damaged)
    }

    /// Moves a damaged cell out of the way and says where it went.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn quarantine(&self, experiment: &str, id: &str) -> Result<PathBuf, Error> {
        debug_assert!(is_cell(id));
        move_aside(&self.cell_folder(experiment, id))
    }
}

/// A folder that was to be replaced: back in its place if the new one is not there.
fn put_back(old: &Path, place: &Path) -> Result<(), Error> {
    let done = match place.symlink_metadata() {
        Ok(_) => fs::remove_dir_all(old),
        Err(_) => fs::rename(old, place),
    };
    done.map_err(|e| error(old, e))
}

/// What stands between the name of a damaged folder and its number.
const DAMAGED: &str = ".damaged-";

/// Whether a folder's name is one that a damaged cell or pack was moved to.
pub(super) fn is_quarantined(name: &str) -> bool {
    name.split_once(DAMAGED).is_some_and(|(of, _)| is_cell(of) || pack::is_pack(of))
}

fn move_aside(place: &Path) -> Result<PathBuf, Error> {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = (1..).map(|i| place.with_file_name(format!("{name}{DAMAGED}{i}")));
    let taken = |p: &PathBuf| p.symlink_metadata().is_ok();
    let aside = free.into_iter().find(|p| !taken(p)).unwrap_or_else(|| place.to_owned());
    fs::rename(place, &aside).map_err(|e| error(place, e))?;
    Ok(aside)
}
