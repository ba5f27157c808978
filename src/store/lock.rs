//! One run at a time in an experiment's folder.
//!
//! *Invariant*: only the process that holds the lock writes below the folder. The system
//! releases the lock of a process that ends, however it ends.
//!
//! A round of an algorithm may itself call for a run, as one in Python can. A run of the same
//! experiment would wait for a lock that is released only after the round; so each thread knows the
//! locks for which it works, and such a call is an error.

use super::Store;
use exactfed_runner::files::{Error, error, open_regular};
use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE: &str = ".lock";
/// Time between the first two attempts to take a lock, and the most; it doubles from one to the next.
const BETWEEN_ATTEMPTS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(200)];

/// The right to write below an experiment's folder, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
    /// Without symbolic links.
    path: PathBuf,
}

thread_local! {
    static WORKS_FOR: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// The locks that are held while this thread works: those of the experiments whose cells it runs,
/// and of those in whose rounds that run was called.
pub fn locks_of_thread() -> Vec<PathBuf> {
    WORKS_FOR.with_borrow(Clone::clone)
}

/// From now on, this thread works for these locks.
pub fn work_for(locks: Vec<PathBuf>) {
    WORKS_FOR.set(locks);
}

impl Lock {
    /// The locks for which the threads work to which this thread hands the cells of the experiment.
    pub fn with_locks_of_thread(&self) -> Vec<PathBuf> {
        let mut locks = locks_of_thread();
        locks.push(self.path.clone());
        locks
    }
}

/// An error if this thread works for the run that holds the lock.
fn check_other_run(path: &Path) -> Result<(), Error> {
    let whole = path.canonicalize().map_err(|e| error(path, e))?;
    if !locks_of_thread().contains(&whole) {
        return Ok(());
    }
    Err(error(
        path,
        "a round of this experiment's run calls for another run of the same experiment, which would wait for that round for ever; run it under another name or in another folder",
    ))
}

impl Store {
    /// Takes the lock of an experiment's folder, which is created if it does not exist;
    /// `None` if another process holds it.
    ///
    /// # Errors
    /// If the folder or the file cannot be created, or the run that holds the lock waits for this
    /// thread.
    pub fn try_lock(&self, experiment: &str) -> Result<Option<Lock>, Error> {
        let folder = self.make_folder(experiment)?;
        let path = folder.join(FILE);
        let file = open_regular(&path, File::options().create(true).write(true).truncate(false));
        let file = file.map_err(|e| error(&path, e))?;
        match file.try_lock() {
            Ok(()) => {
                // Another process may have written since the packs were listed.
                self.forget_packs(experiment);
                let path = path.canonicalize().map_err(|e| error(&path, e))?;
                Ok(Some(Lock { _file: Some(file), path }))
            }
            Err(TryLockError::WouldBlock) => check_other_run(&path).map(|()| None),
            // The file system has no locks: renaming alone keeps files complete.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Some(Lock { _file: None, path }))
            }
            Err(TryLockError::Error(e)) => Err(error(&path, e)),
        }
    }

    /// Takes the lock of the first of these experiments that no other process holds, and
    /// returns its place among them. If all are held, reports the first to `busy` and waits
    /// for any. Returns `None` as soon as `stop` is true, or if there are no experiments.
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
        let (mut reported, [mut pause, most]) = (false, BETWEEN_ATTEMPTS);
        while !stop() {
            for (i, experiment) in experiments.iter().enumerate() {
                if let Some(lock) = self.try_lock(experiment)? {
                    return Ok(Some((i, lock)));
                }
            }
            if !std::mem::replace(&mut reported, true) {
                busy(first);
            }
            std::thread::sleep(pause);
            pause = most.min(2 * pause);
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
        let [store, other] = [(); 2].map(|()| Store::open(folder.path()).unwrap());
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
