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
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time that work has to end by itself after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks whether a signal came.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The requests to stop that concern the work of this thread.
    static REQUESTS: RefCell<StopRequests> = const { RefCell::new(StopRequests(Vec::new())) };
}

/// The flags by which callers ask for the end of the work of a thread: of the run whose cells it computes, and of the
/// runs from whose rounds that run was started. Code that rounds call looks at them, such as the clock that ends rounds
/// in Python: the engine asks for them only between rounds.
#[derive(Clone, Debug, Default)]
pub struct StopRequests(Vec<Arc<AtomicBool>>);

impl StopRequests {
    /// The flags that concern the work of this thread; none in a thread that works for no run, or for a command, which
    /// ends rounds with its process.
    pub fn of_thread() -> Self {
        REQUESTS.with_borrow(Clone::clone)
    }

    /// Whether one of these flags is set.
    pub fn is_any_set(&self) -> bool {
        self.0.iter().any(|stop| stop.load(Ordering::Relaxed))
    }
}

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
    /// The requests that concern the thread in which this was made: a round that it computes may have started the work.
    outer: StopRequests,
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
        Ok(Self { stop, dropped, immediate, exits: true, outer: StopRequests::default() })
    }

    /// Handles no signal: whoever sets `stop` requests the end of the work, and the process is never ended. For
    /// callers in whose process other work goes on, as in Python.
    pub fn by_request(stop: Arc<AtomicBool>) -> Self {
        let outer = StopRequests::of_thread();
        Self { stop, dropped: Arc::default(), immediate: Arc::default(), exits: false, outer }
    }

    /// Notes that this thread works for the run that this interrupts, from now on and for no other run. Each thread of
    /// the run's pool calls it, so that the rounds of the run alone are ended by a request.
    pub fn cover_thread(&self) {
        let mut requests = StopRequests::default();
        if !self.exits {
            requests = self.outer.clone();
            requests.0.push(self.stop.clone());
        }
        REQUESTS.set(requests);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a new thread that works for this run sees, before the request and after it.
    fn seen_before_and_after(interrupt: &Interrupt, request: &AtomicBool) -> [bool; 2] {
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                interrupt.cover_thread();
                let requests = StopRequests::of_thread();
                let before = requests.is_any_set();
                request.store(true, Ordering::Relaxed);
                [before, requests.is_any_set()]
            });
            seen.join().unwrap()
        })
    }

    /// A thread sees the requests to the run that it works for, and not those to another run of the process.
    #[test]
    fn a_request_concerns_the_threads_of_its_run_alone() {
        let [one, other]: [Arc<AtomicBool>; 2] = Default::default();
        let run = Interrupt::by_request(one.clone());
        assert_eq!(seen_before_and_after(&run, &other), [false, false]);
        assert_eq!(seen_before_and_after(&run, &one), [false, true]);
        assert!(!StopRequests::of_thread().is_any_set(), "this thread works for no run");
    }

    /// A run that a round starts is asked to stop with the run of the round, and not the other way round.
    #[test]
    fn a_run_that_a_round_starts_hears_of_its_outer_run() {
        let [outer, inner]: [Arc<AtomicBool>; 2] = Default::default();
        let of_outer = Interrupt::by_request(outer.clone());
        let of_inner = std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                of_outer.cover_thread();
                Interrupt::by_request(inner.clone())
            });
            started.join().unwrap()
        });
        assert_eq!(seen_before_and_after(&of_outer, &inner), [false, false]);
        inner.store(false, Ordering::Relaxed);
        assert_eq!(seen_before_and_after(&of_inner, &outer), [false, true]);
    }
}
