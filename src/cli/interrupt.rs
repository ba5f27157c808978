//! Ctrl-C, and the signal by which a scheduler asks a process to end.
//!
//! *Invariant*: the first is a request to stop, the second leaves at once; when nothing
//! listens any more, one ends the process as it does any other.

use super::{Code, Failure};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Listens as long as it lives.
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    deaf: Arc<AtomicBool>,
}

impl Interrupt {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> Result<Self, Failure> {
        let (stop, deaf): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        for signal in [SIGINT, SIGTERM] {
            // In the order in which they look at a signal: nobody listens; a second one;
            // a first one.
            flag::register_conditional_default(signal, deaf.clone())
                .and_then(|_| {
                    let code = i32::from(Code::Interrupted as u8);
                    flag::register_conditional_shutdown(signal, code, stop.clone())
                })
                .and_then(|_| flag::register(signal, stop.clone()))
                .map_err(|e| Failure::input(format!("error: signals: {e}")))?;
        }
        Ok(Self { stop, deaf })
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
