//! Ends rounds of algorithms in Python that do not end by themselves.
//!
//! A thread counts seconds. A round that has spent more of them in Python than its algorithm
//! allows gets an exception in its thread; the time of local steps does not count.

use exactfed::cli::StopRequests;
use exactfed_runner::panics::lock;
use pyo3::exceptions::PyTimeoutError;
use pyo3::{PyTypeInfo, Python, ffi};
use std::ffi::c_ulong;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

unsafe extern "C" {
    /// Part of the stable interface, as `threading.get_ident`.
    fn PyThread_get_thread_ident() -> c_ulong;
}

/// The seconds since the thread that counts them was started; it may lag behind the clock.
static SECONDS: AtomicU64 = AtomicU64::new(1);
/// The clocks of all runs of this process; clocks of runs that have ended are dropped when another run begins.
static CLOCKS: Mutex<Vec<Weak<RoundClock>>> = Mutex::new(Vec::new());
/// The id of the process in which the counting thread was started: after a fork the child has no such thread.
static WATCHED_BY: AtomicU32 = AtomicU32::new(0);

/// What is known of the present round of a run.
#[derive(Default)]
struct RoundState {
    /// The thread that runs Python code of the round; 0 between rounds and during local steps.
    thread: c_ulong,
    /// The value of [`SECONDS`] when that code began, plus the seconds of local steps since.
    since: u64,
    /// Whether an exception was sent to the thread.
    sent: bool,
}

/// The time that a run has spent in Python since its last yield.
pub struct RoundClock {
    /// The most seconds of a round in Python.
    patience: u64,
    /// Whether the run, or a run from whose rounds it was started, is asked to stop, so that a round has a second left.
    requests: StopRequests,
    state: Mutex<RoundState>,
    /// Why a round was ended, once one was.
    ended: OnceLock<String>,
}

impl RoundClock {
    /// The clock of a run whose rounds may take `patience` seconds in Python. It is made in a thread of the
    /// run's pool, which knows the requests to stop; made in another thread it hears of none. The first clock of a
    /// process starts the thread that counts.
    pub fn new(patience: u64) -> Arc<Self> {
        let requests = StopRequests::of_thread();
        let state = Mutex::default();
        let clock = Arc::new(Self { patience, requests, state, ended: OnceLock::new() });
        let mut clocks = lock(&CLOCKS);
        clocks.retain(|clock| clock.strong_count() > 0);
        clocks.push(Arc::downgrade(&clock));
        let process = std::process::id();
        if WATCHED_BY.swap(process, Ordering::Relaxed) != process {
            std::thread::spawn(watch);
        }
        clock
    }

    /// Calls the code of a round, with the interpreter attached, and returns what it returns; its time counts. If it
    /// takes too long, it gets an exception.
    pub fn during<T>(&self, code: impl FnOnce() -> T) -> T {
        // SAFETY: a function without conditions.
        let thread = unsafe { PyThread_get_thread_ident() };
        let since = SECONDS.load(Ordering::Relaxed);
        *lock(&self.state) = RoundState { thread, since, sent: false };
        let done = code();
        let mut state = lock(&self.state);
        state.thread = 0;
        if std::mem::take(&mut state.sent) {
            // An exception that came too late must not reach other code of the thread.
            // SAFETY: the interpreter is attached; without an exception a pending one is cleared.
            unsafe { ffi::PyThreadState_SetAsyncExc(thread.cast_signed(), std::ptr::null_mut()) };
        }
        done
    }

    /// Calls Rust from the code of a round, such as local steps, and returns what it returns; its time does not count.
    pub fn outside<T>(&self, call: impl FnOnce() -> T) -> T {
        // It is 0 where no round is under way, as for clients that a user steps through: then nothing is counted.
        let thread = std::mem::take(&mut lock(&self.state).thread);
        let before = SECONDS.load(Ordering::Relaxed);
        let done = call();
        if thread != 0 {
            let mut state = lock(&self.state);
            state.thread = thread;
            state.since += SECONDS.load(Ordering::Relaxed) - before;
        }
        done
    }

    /// Why this clock ended a round before it yielded; `None` if it has not.
    pub fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Sends an exception to the thread of the run's round if it is overdue at the second `now`; after an interruption
    /// of its run a round is overdue after one second.
    fn check(&self, now: u64) {
        let interrupted = self.requests.is_any_set();
        let patience = if interrupted { 1 } else { self.patience };
        let is_overdue = |state: &RoundState| state.thread != 0 && now > state.since + patience;
        if !is_overdue(&lock(&self.state)) {
            return;
        }
        // The interpreter first: a round holds it when it locks its state.
        Python::attach(|py| {
            let mut state = lock(&self.state);
            if is_overdue(&state) {
                state.sent = true;
                let why = if interrupted {
                    "it was ended, since the run was interrupted".to_owned()
                } else {
                    format!(
                        "it was ended, since it yielded no estimate within {patience} s in Python, the `patience` of its decorator; a larger one gives a round more time"
                    )
                };
                self.ended.get_or_init(|| why);
                let exception = PyTimeoutError::type_object(py);
                // SAFETY: the interpreter is attached, and the thread exists while its round does.
                unsafe {
                    ffi::PyThreadState_SetAsyncExc(state.thread.cast_signed(), exception.as_ptr())
                };
            }
        });
    }
}

/// Counts seconds for ever, and checks at each which rounds are overdue.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = SECONDS.fetch_add(1, Ordering::Relaxed) + 1;
        let clocks: Vec<Arc<RoundClock>> = lock(&CLOCKS).iter().filter_map(Weak::upgrade).collect();
        clocks.iter().for_each(|clock| clock.check(now));
    }
}
