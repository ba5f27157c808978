//! Work in a thread of its own, while the calling thread checks for signals.
//!
//! *Invariant*: no signal handler is installed. After a KeyboardInterrupt, or an exception of a
//! callback, the work is asked to stop; if it does not within [`PATIENCE`], the calling thread
//! leaves it to its end, at which it releases its locks.
//!
//! *Invariant*: work ends also in a process that was forked from one that had worked before. A fork
//! has none of the threads of its parent, and what waits for them waits for ever; so work uses
//! rayon's global pool only in the process that loaded the module, and elsewhere a pool of its own.

use super::errors::{raise, raise_text};
use exactfed::cli::{Failure, STACK};
use exactfed_runner::panics::{Panicked, caught};
use pyo3::prelude::*;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Time between two checks for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time that work has to end after it was asked to: longer than results wait to be written.
const PATIENCE: Duration = Duration::from_secs(3);

/// The id of the process that loaded the module.
static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// Remembers that this process has loaded the module; a process that is forked from it has another id.
pub fn loaded() {
    let _ = LOADED_BY.set(process::id());
}

/// Why work has no result.
#[derive(Debug, Error)]
pub enum WorkError {
    /// The work ended with a panic.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// No threads can be started.
    #[error("error: threads cannot be started after a fork: {0}")]
    NoThreads(#[from] rayon::ThreadPoolBuildError),
    /// The thread ended without a result.
    #[error("the thread of the work ended")]
    Ended,
}

/// Starts rayon's global pool once.
static GLOBAL_POOL: Once = Once::new();

/// A pool whose threads have stacks on which code in Python can be called.
fn builder() -> rayon::ThreadPoolBuilder {
    rayon::ThreadPoolBuilder::new().stack_size(STACK)
}

/// Does work that uses rayon, in a pool whose threads exist in this process: the global one, or after a fork a new one.
///
/// # Errors
/// If the threads of a new pool cannot be started.
pub fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, WorkError> {
    if LOADED_BY.get() == Some(&process::id()) {
        // If something has started the global pool before, its threads have the stacks that they have.
        GLOBAL_POOL.call_once(|| drop(builder().build_global()));
        return Ok(work());
    }
    let pool = builder().build();
    Ok(pool?.install(work))
}

/// Does work that may be left alone at any time, because it writes nothing or only whole files, and returns what it
/// returns. `raise` makes the exception for its failure.
///
/// # Errors
/// That exception; or, at once, a KeyboardInterrupt, while the thread of the work goes on to its end.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    raise: fn(Python<'_>, Failure) -> PyErr,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    while_polling(py, Duration::ZERO, |_| Ok(()), || {}, work)?.map_err(|e| raise(py, e))
}

/// Does work that ends soon once `stop` is called, and returns what it returns. Meanwhile `poll`, such as a user's
/// function that shows the progress, is called every [`POLL_INTERVAL`].
///
/// # Errors
/// The exception for its failure; or a KeyboardInterrupt or an exception of `poll`, after which the work has
/// [`PATIENCE`] to end.
pub fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    poll: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    while_polling(py, PATIENCE, poll, stop, work)?.map_err(|e| raise(py, e))
}

/// Does work in a thread of its own and returns what it returns. Meanwhile this thread checks for signals and calls
/// `poll`; at the first exception of either it calls `stop`, waits for the work up to `patience`, and raises the
/// exception.
fn while_polling<T: Send + 'static>(
    py: Python<'_>,
    patience: Duration,
    poll: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().stack_size(STACK).spawn(move || {
        sender.send(caught(|| in_pool(work)).unwrap_or_else(|panic| Err(panic.into())))
    })?;
    let ended = py.detach(|| -> PyResult<Result<T, WorkError>> {
        // A receiver belongs to one thread at a time: it is moved to here.
        let receiver = receiver;
        let mut stopped: Option<(PyErr, Instant)> = None;
        loop {
            match (receiver.recv_timeout(POLL_INTERVAL), &stopped) {
                (Ok(_), Some(_)) => break,
                (Ok(ended), None) => return Ok(ended),
                (Err(RecvTimeoutError::Disconnected), _) => {
                    return Ok(Err(WorkError::Ended));
                }
                (Err(RecvTimeoutError::Timeout), Some((_, since))) => {
                    if since.elapsed() >= patience {
                        break;
                    }
                }
                (Err(RecvTimeoutError::Timeout), None) => {
                    let polled = Python::attach(|py| py.check_signals().and_then(|()| poll(py)));
                    if let Err(e) = polled {
                        stop();
                        stopped = Some((e, Instant::now()));
                    }
                }
            }
        }
        Err(stopped.map_or_else(|| pyo3::exceptions::PyKeyboardInterrupt::new_err(()), |(e, _)| e))
    })?;
    ended.map_err(|error| raise_text(py, error.to_string()))
}
