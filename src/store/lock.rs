//! One run at a time in an experiment's folder.
//!
//! *Invariant*: only the process that holds the lock writes below the folder. The system
//! releases the lock of a process that ends, however it ends.

use super::Store;
use exactfed_runner::files::{Error, error};
use std::fs::{File, TryLockError};
use std::time::Duration;

const FILE: &str = ".lock";
/// Time between two attempts to take a lock.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// The right to write below an experiment's folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

impl Store {
    /// Takes the lock of an experiment's folder, which is created if it does not exist;
    /// `None` if another process holds it.
    ///
    /// # Errors
    /// If the folder or the file cannot be created.
    pub fn try_lock(&self, experiment: &str) -> Result<Option<Lock>, Error> {
        let folder = self.make_folder(experiment)?;
        let path = folder.join(FILE);
        let file = File::options().create(true).write(true).truncate(false).open(&path);
        let file = file.map_err(|e| error(&path, e))?;
        match file.try_lock() {
            Ok(()) => {
                // Another process may have written since the packs were listed.
                self.forget_packs(experiment);
                Ok(Some(Lock { _file: Some(file) }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            // The file system has no locks: renaming alone keeps files complete.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Some(Lock { _file: None }))
            }
            Err(TryLockError::Error(e)) => Err(error(&path, e)),
        }
    }

    /// Takes the lock of the first of these experiments that no other process holds, and
    /// returns its place among them. If all are held, reports the first to `busy` and waits
    /// for any. Returns `None` as soon as `stop` is true, or if there are no experiments.
    ///
    /// # Errors
    /// If a folder or a file cannot be created.
    pub fn lock_first(
        &self,
        experiments: &[&str],
        stop: &dyn Fn() -> bool,
        busy: &dyn Fn(&str),
    ) -> Result<Option<(usize, Lock)>, Error> {
        let Some(first) = experiments.first() else { return Ok(None) };
        let mut reported = false;
        while !stop() {
            for (i, experiment) in experiments.iter().enumerate() {
                if let Some(lock) = self.try_lock(experiment)? {
                    return Ok(Some((i, lock)));
                }
            }
            if !std::mem::replace(&mut reported, true) {
                busy(first);
            }
            std::thread::sleep(BETWEEN_ATTEMPTS);
        }
        Ok(None)
    }
}
