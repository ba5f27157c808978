//! Catches panics: a panic in a cell fails that cell, and one in a library that reads a file
//! makes that file unreadable. The message is returned, and not printed over a progress bar.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use thiserror::Error;

thread_local! {
    /// The message and position of the last panic of this thread inside [`caught`].
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Whether this thread is inside [`caught`].
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Work ended with a panic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Panicked {
    /// What the panic said, and where it was.
    pub message: String,
}

/// What `f` returns, or the message and position of its panic, which is not printed. A panic outside of such a call is
/// handled as usual: the first call sets a hook for the whole process, which passes on to the earlier hook what
/// happens there. Calls may be inside each other. Values that `f` changes may be inconsistent after its panic.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                return before(info);
            }
            let said = info.payload_as_str().unwrap_or("panicked");
            let place =
                info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
            HEARD.set(Some(format!("{said}{place}")));
        }));
    });
    let outer = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    INSIDE.set(outer);
    result.map_err(|payload| {
        // A panic on another thread, for which this one waited, was heard there, and left its message in the payload
        // alone.
        let text = payload.downcast_ref::<String>().cloned();
        let brought =
            text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let message = HEARD.take().or(brought);
        Panicked { message: message.unwrap_or_else(|| "panicked".into()) }
    })
}

/// Locks a mutex even if a panic poisoned it: for values that are consistent between statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work on this thread while `other` runs on another one, such as a thread that writes pages or watches for a
/// signal. The channel of `other` never carries a message: it is disconnected when the work ends or panics, and `other`
/// has to return then, since this function returns, or panics, only when both have ended.
pub fn beside<T>(other: impl FnOnce(Receiver<()>) + Send, work: impl FnOnce() -> T) -> T {
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || other(ended));
        // Dropped when the work ends, also by a panic, which ends the other thread.
        let _done = done;
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_within_another_s_reach_ends_neither() {
        let outer: Result<(), Panicked> = caught(|| {
            let inner: Result<(), Panicked> = caught(|| panic!("first"));
            assert!(inner.is_err_and(|said| {
                said.message.starts_with("first (crates/runner/src/panics.rs:")
            }));
            panic!("second");
        });
        assert!(
            outer.is_err_and(|said| said
                .message
                .starts_with("second (crates/runner/src/panics.rs:"))
        );
        // As a thread pool hands on what was said on another of its threads.
        let elsewhere: Result<(), Panicked> =
            caught(|| std::panic::resume_unwind(Box::new("third")));
        assert_eq!(elsewhere, Err(Panicked { message: "third".into() }));
        assert_eq!(caught(|| 3), Ok(3));
        assert!(!INSIDE.get());
    }
}
