//! Ctrl-C, and the signal by which a scheduler asks a process to end.
//!
//! *Invariant*: the first is a request to stop and the second leaves at once. A request is
//! heeded within [`PATIENCE`], whatever is being computed then: where nothing can be lost the
//! process ends at once, and a run that does not come to the end of its round keeps what is
//! complete and ends. When nothing listens any more, a signal ends the process as it does any
//! other.

use super::{Code, Failure};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time that work has to end by itself once it is interrupted.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks whether a signal came.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Listens as long as it lives.
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    deaf: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

/// How an interrupted command ends.
const CODE: i32 = Code::Interrupted as i32;

impl Interrupt {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> Result<Self, Failure> {
        let [stop, deaf, at_once]: [Arc<AtomicBool>; 3] = Default::default();
        for signal in [SIGINT, SIGTERM] {
            // In the order in which they look at a signal: nobody listens; nothing can be
            // lost; a second one; a first one.
            flag::register_conditional_default(signal, deaf.clone())
                .and_then(|_| flag::register_conditional_shutdown(signal, CODE, at_once.clone()))
                .and_then(|_| flag::register_conditional_shutdown(signal, CODE, stop.clone()))
                .and_then(|_| flag::register(signal, stop.clone()))
                .map_err(|e| Failure::input(format!("error: signals: {e}")))?;
        }
        Ok(Self { stop, deaf, at_once })
    }

    /// Does work that writes nothing, and during which a signal ends the process at once.
    pub fn at_once<T>(&self, work: impl FnOnce() -> T) -> T {
        self.at_once.store(true, Ordering::SeqCst);
        if self.came() {
            std::process::exit(CODE);
        }
        let done = work();
        self.at_once.store(false, Ordering::SeqCst);
        done
    }

    /// Does work that looks at [`Interrupt::flag`] from time to time. If it has not ended
    /// [`PATIENCE`] after a signal, `last` is done beside it and the process ends.
    pub fn in_time<T>(&self, last: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
        let (done, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut since: Option<Instant> = None;
                while ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                    if self.came() && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                        last();
                        std::process::exit(CODE);
                    }
                }
            });
            // Dropped when the work has ended, also by a panic.
            let _done = done;
            work()
        })
    }

    /// Whether to stop.
    pub fn came(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What is true once it came.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.deaf.store(true, Ordering::Relaxed);
    }
}
