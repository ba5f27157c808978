//! Work on runs, which progress counts: in operations, since measuring may take longer than the
//! steps.

use super::cost::RunCost;
use super::prepare::Prepared;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

/// An amount of work on runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunWork {
    /// Client steps.
    pub steps: u64,
    /// The operations of these steps and of what is measured.
    pub operations: u64,
}

impl RunWork {
    /// The work on a number of runs, of which each is this work.
    pub fn times(self, count: u64) -> Self {
        self.with(Self { steps: count, operations: count }, u64::saturating_mul)
    }

    /// Applies an operation to the steps of both amounts of work, and to the operations of both.
    fn with(self, other: Self, operation: fn(u64, u64) -> u64) -> Self {
        let steps = operation(self.steps, other.steps);
        Self { steps, operations: operation(self.operations, other.operations) }
    }
}

impl Add for RunWork {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }
}

/// No number of the difference is below 0.
impl Sub for RunWork {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl Sum for RunWork {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// Counts work from several threads.
#[derive(Debug, Default)]
pub struct RunWorkCount {
    steps: AtomicU64,
    operations: AtomicU64,
}

impl RunWorkCount {
    /// Adds an amount of work to the count, from any thread.
    pub fn add(&self, work: RunWork) {
        self.steps.fetch_add(work.steps, Ordering::Relaxed);
        self.operations.fetch_add(work.operations, Ordering::Relaxed);
    }

    /// All work that was added so far.
    pub fn get(&self) -> RunWork {
        RunWork {
            steps: self.steps.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
        }
    }
}

/// How much work a round and a recorded round of a run are.
#[derive(Clone, Copy, Debug)]
pub struct WorkRate {
    /// The client steps of a round.
    steps: u64,
    /// The operations of a round and of a recorded round.
    cost: RunCost,
}

impl WorkRate {
    /// The work on this number of rounds, of which this number of rows are recorded.
    #[inline]
    pub fn work(self, rounds: u64, rows: u64) -> RunWork {
        let steps = self.steps.saturating_mul(rounds);
        RunWork { steps, operations: self.cost.of_rounds(rounds, rows) }
    }
}

impl Prepared<'_> {
    /// The work on all runs that are missing.
    pub fn work(&self) -> RunWork {
        self.work_per_run().times(self.missing_runs())
    }

    /// The work on one run from its start to its budget; a run that diverges takes less.
    pub fn work_per_run(&self) -> RunWork {
        self.work_rate().work(self.cell.identity.rounds, self.recorded.len() as u64)
    }

    /// How much work a round and a recorded round of the cell's runs are.
    pub fn work_rate(&self) -> WorkRate {
        let identity = &self.cell.identity;
        WorkRate { steps: identity.steps_per_round(self.clients()), cost: RunCost::new(identity) }
    }
}
