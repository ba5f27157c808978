//! How long runs take on this machine, measured by running their first rounds.
//!
//! *Invariant*: what is run here is dropped. No result depends on a measured time.

use super::Silent;
use super::prepare::Prepared;
use crate::panics::caught;
use crate::plan::{Cell, Identity};
use crate::trace::{Outcome, Trace};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// The least time of a measurement, in seconds: a clock and the caches disturb shorter ones.
const SHORTEST: f64 = 1e-3;
/// How often a measurement is repeated. The shortest time counts, since other programs make times
/// longer and never shorter.
const REPEATS: usize = 3;
/// The seconds of a measurement above which it is not repeated: a long one is disturbed less, and would take time.
const LONG: f64 = 20e-3;

/// The times of a task, which is one run or several that go together, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct TaskTime {
    /// The number of runs of the task.
    pub runs: u64,
    /// The time before the first round, and of recording rounds 0 and T.
    pub start: f64,
    /// The time of a round.
    pub round: f64,
    /// The time of what is measured at each other recorded round.
    pub row: f64,
}

impl TaskTime {
    /// The seconds of this number of runs of `rounds` rounds, of which a number are recorded, on one thread.
    pub fn of_runs(&self, runs: u64, rounds: u64, recorded: u64) -> f64 {
        let rows = recorded.saturating_sub(2) as f64;
        let task = self.start + self.round * rounds as f64 + self.row * rows;
        task * runs as f64 / self.runs as f64
    }
}

/// Measures the time of work on this thread.
struct Stopwatch {
    begin: Instant,
    /// The processor time of the thread, where the system reports it.
    on_processor: Option<f64>,
}

impl Stopwatch {
    /// Starts a stopwatch of the thread that calls this.
    fn start() -> Self {
        Self { on_processor: seconds_on_processor(), begin: Instant::now() }
    }

    /// The seconds since the start, or of these the seconds on a processor, where the system reports them: in a long
    /// time other programs interrupt the thread. A short time is by the clock. It is not interrupted in each of
    /// several repeats, and reading the processor time would be a large part of it.
    fn seconds(&self) -> f64 {
        let by_clock = self.begin.elapsed().as_secs_f64();
        if by_clock < SHORTEST {
            return by_clock;
        }
        let on_processor =
            seconds_on_processor().zip(self.on_processor).map(|(now, then)| now - then);
        // A system that updates the processor time seldom reports that none has passed.
        on_processor.filter(|seconds| *seconds > 0.0).map_or(by_clock, |time| time.min(by_clock))
    }
}

/// The seconds that this thread has been on a processor, as Linux reports them: the first number of the file, in
/// nanoseconds. `None` on other systems.
fn seconds_on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}

/// What was measured of a cell by running its first rounds.
pub struct MeasuredTask {
    /// The times of one of its tasks.
    pub time: TaskTime,
    /// A trace of the first rounds of its first run, each of which is recorded: how long results take to be encoded is
    /// measured on it.
    pub trace: Trace,
}

/// Which rounds a measurement records.
#[derive(Clone, Copy)]
enum Recorded {
    /// Rounds 0 and T.
    FirstAndLast,
    /// All rounds from 0 to T.
    All,
}

impl Prepared<'_> {
    /// Measures how long the first task of the cell takes, in the threads of the pool in which it is called. The times
    /// of one round and of more rounds give the time of a round and the time of the start; what it takes longer to
    /// record all rounds gives the time of a recorded round. The number of rounds is doubled until they take long
    /// enough to be measured, or a run diverges. `None` if a run fails or diverges in its first round, or no run is
    /// missing.
    pub fn measure(&self) -> Option<MeasuredTask> {
        let runs = self.tasks().into_iter().next()?;
        let number_of_runs = runs.end - runs.start;
        let most = self.cell.identity.rounds;
        let (one_round, trace) = self.time_of_rounds(&runs, 1, Recorded::All)?;
        let mut rounds = 1;
        let mut all_rounds = one_round;
        // The time of one round contains the time of the start, so that two rounds are the least.
        while (all_rounds < SHORTEST || rounds == 1) && rounds < most {
            let more = (2 * rounds).min(most);
            let Some((time, _)) = self.time_of_rounds(&runs, more, Recorded::FirstAndLast) else {
                break;
            };
            rounds = more;
            all_rounds = time;
        }
        if rounds == 1 {
            // There is no second round, or the run diverges in it.
            let time = TaskTime { runs: number_of_runs, start: 0.0, round: one_round, row: 0.0 };
            return Some(MeasuredTask { time, trace });
        }
        let round = ((all_rounds - one_round) / (rounds - 1) as f64).max(0.0);
        let start = (one_round - round).max(0.0);
        let mut recorded = 2;
        loop {
            let (time, trace) = self.time_of_rounds(&runs, recorded, Recorded::All)?;
            let rows = time - start - round * recorded as f64;
            if rows < SHORTEST && recorded < rounds {
                recorded = (2 * recorded).min(rounds);
                continue;
            }
            let row = (rows / (recorded - 1) as f64).max(0.0);
            let time = TaskTime { runs: number_of_runs, start, round, row };
            return Some(MeasuredTask { time, trace });
        }
    }

    /// The seconds that these runs take if the budget is `rounds` rounds, the shortest of several repeats, and the
    /// trace of the first run; `None` if one of them fails or diverges.
    fn time_of_rounds(
        &self,
        runs: &Range<u64>,
        rounds: u64,
        recorded: Recorded,
    ) -> Option<(f64, Trace)> {
        // Burn-ins and schedules are fractions of the budget: with a smaller one, they are the same
        // fraction of what is measured. All rounds are measured, also those after the target of the budget.
        let identity = Identity { rounds, until: None, ..self.cell.identity.clone() };
        let cell = Cell { identity, ..self.cell.clone() };
        let recorded: Arc<[u64]> = match recorded {
            Recorded::FirstAndLast => Arc::new([0, rounds]),
            Recorded::All => (0..=rounds).collect(),
        };
        let scenarios = self.scenarios.clone();
        let prefix = Prepared { cell: &cell, scenarios, recorded, first_run: self.first_run };
        let mut shortest = f64::INFINITY;
        let mut first_trace = Trace::default();
        for _ in 0..REPEATS {
            let watch = Stopwatch::start();
            let traces = caught(|| prefix.attempt(runs.clone(), &Silent)).ok()?.ok()?;
            shortest = shortest.min(watch.seconds());
            if traces.iter().any(|trace| trace.outcome == Outcome::Diverged) {
                return None;
            }
            first_trace = traces.into_iter().next()?;
            if shortest > LONG {
                break;
            }
        }
        Some((shortest, first_trace))
    }
}
