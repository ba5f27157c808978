//! One run at a time on an experiment's folder.
//!
//! *Invariant*: whoever holds the lock is the only one that writes below the folder.
//! The system drops the lock of a process that ends, however it ends.

use super::Store;
use driftbench_runner::files::{Error, error};
use std::fs::{File, TryLockError};

const FILE: &str = ".lock";

/// The right to write below an experiment's folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

impl Store {
    /// Takes the lock of an experiment's folder, which is made if it is not there;
    /// `None` if another run holds it.
    ///
    /// # Errors
    /// If the folder or the file cannot be made.
    pub fn try_lock(&self, experiment: &str) -> Result<Option<Lock>, Error> {
        let folder = self.make_folder(experiment)?;
        let path = folder.join(FILE);
        let file = File::options().create(true).write(true).truncate(false).open(&path);
        let file = file.map_err(|e| error(&path, e))?;
        match file.try_lock() {
            Ok(()) => {
                // What was read before the lock was had may have changed.
                self.forget(experiment);
                Ok(Some(Lock { _file: Some(file) }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            // A file system without locks: renaming alone keeps files whole.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Some(Lock { _file: None }))
            }
            Err(TryLockError::Error(e)) => Err(error(&path, e)),
        }
    }
}
