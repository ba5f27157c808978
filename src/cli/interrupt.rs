//! Ctrl-C, and the signal by which a scheduler asks a process to end.
//!
//! *Invariant*: the first signal is a request to stop and the second ends the process
//! immediately. A request takes effect within [`PATIENCE`], whatever is being computed: where
//! nothing can be lost the process ends immediately, and a run that does not reach the end of
//! its round stores its complete cells and ends. After the handler is dropped, signals regain
//! their default effect.

use super::outcome::{Code, Failure};
use exactfed_runner::panics::beside;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time that work has to end by itself after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks whether a signal came.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Handles signals until it is dropped.
pub struct Interrupt {
    /// True once a signal came.
    pub stop: Arc<AtomicBool>,
    /// True once this value is dropped, so that signals have their default effect.
    dropped: Arc<AtomicBool>,
    /// True while nothing can be lost, so that the first signal ends the process.
    immediate: Arc<AtomicBool>,
    /// Whether the process is ended where work does not end by itself after a signal.
    exits: bool,
}

/// The exit code of an interrupted command.
const CODE: i32 = Code::Interrupted as i32;

impl Interrupt {
    /// Handles SIGINT and SIGTERM from now on.
    ///
    /// # Errors
    /// If the system does not allow to install the handlers.
    pub fn listen() -> Result<Self, Failure> {
        let [stop, dropped, immediate, heard]: [Arc<AtomicBool>; 4] = Default::default();
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order: the note that a signal came, for one that comes before
            // the others are there; the default effect once this value is dropped; an immediate
            // end while nothing can be lost, or at a second signal; the request.
            flag::register(signal, heard.clone())
                .and_then(|_| flag::register_conditional_default(signal, dropped.clone()))
                .and_then(|_| flag::register_conditional_shutdown(signal, CODE, immediate.clone()))
                .and_then(|_| flag::register_conditional_shutdown(signal, CODE, stop.clone()))
                .and_then(|_| flag::register(signal, stop.clone()))
                .map_err(|e| Failure::input(format!("error: signals: {e}")))?;
        }
        if heard.load(Ordering::SeqCst) {
            stop.store(true, Ordering::SeqCst);
        }
        Ok(Self { stop, dropped, immediate, exits: true })
    }

    /// Handles no signal: whoever sets `stop` requests the end of the work, and the process is never ended. For
    /// callers in whose process other work goes on, as in Python.
    pub fn by_request(stop: Arc<AtomicBool>) -> Self {
        Self { stop, dropped: Arc::default(), immediate: Arc::default(), exits: false }
    }

    /// Does work that writes nothing, and returns what it returns. A signal that came before or comes meanwhile ends
    /// the process immediately, with [`Code::Interrupted`]; a value of [`Self::by_request`] only does the work.
    pub fn immediately<T>(&self, work: impl FnOnce() -> T) -> T {
        self.immediate.store(true, Ordering::SeqCst);
        if self.is_requested() && self.exits {
            std::process::exit(CODE);
        }
        let done = work();
        self.immediate.store(false, Ordering::SeqCst);
        done
    }

    /// Does work that polls [`Interrupt::stop`], and returns what it returns. If the work has not ended [`PATIENCE`]
    /// after a signal, another thread calls `last`, which stores what is complete, while the work still goes on, and
    /// ends the process. A value of [`Self::by_request`] only does the work, and never calls `last`.
    pub fn in_time<T>(&self, last: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
        if !self.exits {
            return work();
        }
        let watch = |ended: Receiver<()>| {
            let mut since: Option<Instant> = None;
            while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if self.is_requested()
                    && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
                {
                    last();
                    std::process::exit(CODE);
                }
            }
        };
        beside(watch, work)
    }

    /// Whether a signal, or the caller of [`Self::by_request`], asked the work to stop.
    pub fn is_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}
