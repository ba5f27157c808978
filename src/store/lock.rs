//! One run at a time in an experiment's folder.
//!
//! *Invariant*: only the process that holds the lock writes below the folder, except that reports add to `shown.toml`
//! under a lock of that file ([`Store::lock_shown`]). The system releases the lock of a process that ends, however it
//! ends.
//!
//! A round of an algorithm may itself start a run, as one in Python can. A run of the same
//! experiment would wait for a lock that is released only after the round; so each thread knows the
//! locks for whose holders it works, and such a call is an error.

use super::folder::Store;
use exactfed_runner::files::{Error, error, open_regular};
use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file in an experiment's folder that is locked by whoever has the lock of the experiment.
const FILE: &str = ".lock";
/// The name of the file that is locked while `shown.toml` is changed. `shown.toml` cannot be locked itself, since each
/// change replaces it by another file.
const SHOWN_LOCK: &str = "shown.lock";
/// Time between the first two attempts to take a lock. It doubles after each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest time between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The right to write below an experiment's folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    /// The system releases the lock when this is closed; `None` on a file system without locks.
    _file: Option<File>,
    /// The path without symbolic links, except on a file system without locks.
    path: PathBuf,
}

thread_local! {
    /// The paths of the locks whose holders wait for this thread.
    static WORKS_FOR: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// The paths of the locks whose holders wait for this thread: the lock of the experiment whose cells
/// it runs, and the locks of experiments from whose rounds this run was started.
pub fn locks_of_thread() -> Vec<PathBuf> {
    WORKS_FOR.with_borrow(Clone::clone)
}

/// Sets the locks whose holders wait for this thread from now on, in place of those that were set before. A run sets
/// them in its worker threads; Python sets them in the thread of a run that a round of another run has started.
pub fn work_for(locks: Vec<PathBuf>) {
    WORKS_FOR.set(locks);
}

impl Lock {
    /// The locks whose holders wait for the worker threads to which this thread gives cells of the experiment: this
    /// lock, and those whose holders wait for this thread. The worker threads set them ([`work_for`]).
    pub fn with_locks_of_thread(&self) -> Vec<PathBuf> {
        let mut locks = locks_of_thread();
        locks.push(self.path.clone());
        locks
    }
}

/// Refuses to wait for the lock at a path if its holder waits for this thread: neither would ever go on.
///
/// # Errors
/// If the holder waits for this thread, or there is no file at the path.
fn refuse_circular_wait(path: &Path) -> Result<(), Error> {
    let canonical = path.canonicalize().map_err(|e| error(path, e))?;
    if locks_of_thread().contains(&canonical) {
        return Err(error(
            path,
            "a round of this experiment's run calls for another run of the same experiment, which would wait for that round for ever; run it under another name or in another folder",
        ));
    }
    Ok(())
}

impl Store {
    /// Takes the lock of an experiment's folder, which is created if it does not exist, without waiting; `None` if
    /// another run holds it, in this process or in another. On a file system without locks there is always a lock,
    /// which keeps nobody out. The store forgets the packs of the experiment, since the holder before may have written
    /// some.
    ///
    /// # Errors
    /// If the folder or the file cannot be created, or the run that holds the lock waits for this
    /// thread.
    pub fn try_lock(&self, experiment: &str) -> Result<Option<Lock>, Error> {
        let folder = self.make_folder(experiment)?;
        let path = folder.join(FILE);
        let file = open_regular(&path, File::options().create(true).write(true).truncate(false))
            .map_err(|e| error(&path, e))?;
        match file.try_lock() {
            Ok(()) => {
                self.forget_packs(experiment);
                let path = path.canonicalize().map_err(|e| error(&path, e))?;
                Ok(Some(Lock { _file: Some(file), path }))
            }
            Err(TryLockError::WouldBlock) => {
                refuse_circular_wait(&path)?;
                Ok(None)
            }
            // The file system has no locks: renaming alone keeps files complete.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Some(Lock { _file: None, path }))
            }
            Err(TryLockError::Error(e)) => Err(error(&path, e)),
        }
    }

    /// Waits for the right to change `shown.toml` of an experiment, which lasts until the returned file is dropped.
    /// Whoever has it keeps it for a moment: it is never held while a run or a page is at work. `None` on a file system
    /// without locks.
    ///
    /// # Errors
    /// If the file that is locked cannot be created, as in a folder that is read-only.
    pub(super) fn lock_shown(&self, experiment: &str) -> Result<Option<File>, Error> {
        let path = self.make_folder(experiment)?.join(SHOWN_LOCK);
        let file = open_regular(&path, File::options().create(true).write(true).truncate(false))
            .map_err(|e| error(&path, e))?;
        match file.lock() {
            Ok(()) => Ok(Some(file)),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(e) => Err(error(&path, e)),
        }
    }

    /// Takes the lock of the first of these experiments that no other run holds, and returns it with the index of the
    /// experiment, so that two runs of the same experiments work on different ones. If all are held, the name of the
    /// first is reported to `busy`, once, and the first lock that becomes free is taken. `stop` is asked before each
    /// attempt, at least every [`LONGEST_PAUSE`]: returns `None` as soon as it is true, or if there are no experiments.
    ///
    /// # Errors
    /// As [`Self::try_lock`].
    pub fn lock_first(
        &self,
        experiments: &[&str],
        stop: &dyn Fn() -> bool,
        busy: &dyn Fn(&str),
    ) -> Result<Option<(usize, Lock)>, Error> {
        let Some(first) = experiments.first() else { return Ok(None) };
        let mut is_reported = false;
        let mut pause = FIRST_PAUSE;
        while !stop() {
            for (i, experiment) in experiments.iter().enumerate() {
                if let Some(lock) = self.try_lock(experiment)? {
                    return Ok(Some((i, lock)));
                }
            }
            if !is_reported {
                busy(first);
                is_reported = true;
            }
            std::thread::sleep(pause);
            pause = LONGEST_PAUSE.min(2 * pause);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock keeps others out until it is dropped. They wait, but a thread that works for the run
    /// which holds it would wait for itself.
    #[test]
    fn a_lock_is_refused_to_those_for_whom_its_holder_waits() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let other = Store::open(folder.path()).unwrap();
        store.create().unwrap();
        let lock = store.try_lock("a/b").unwrap().unwrap();
        for store in [&store, &other] {
            assert!(store.try_lock("a/b").unwrap().is_none());
        }
        let locks = lock.with_locks_of_thread();
        let own = locks_of_thread();
        work_for(locks.clone());
        assert_eq!(locks_of_thread(), locks);
        assert!(other.try_lock("a/c").unwrap().is_some());
        let said = store.try_lock("a/b").unwrap_err().to_string();
        assert!(said.contains("would wait for that round for ever"), "{said}");
        work_for(own);
        assert!(store.try_lock("a/b").unwrap().is_none(), "this thread does not work for it");
        drop(lock);
        work_for(locks);
        assert!(other.try_lock("a/b").unwrap().is_some(), "nobody holds it");
    }
}
