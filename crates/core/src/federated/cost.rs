//! The units in which an algorithm's cost is counted.

use std::iter::Sum;
use std::ops::Add;

/// What the rounds of a run so far have cost, in the units by which algorithms are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of times that clients and server communicated.
    pub communications: u64,
    /// Local steps of the client that took the most in each round.
    pub local_steps: u64,
    /// Oracle evaluations of all clients; a batch of B counts as B.
    pub oracle_calls: u64,
    /// Oracle evaluations of the client that made the most in each round; a batch of B counts as B. They follow one
    /// another, and so decide on the time that a round takes.
    pub sequential_calls: u64,
    /// Vectors of d numbers sent, up and down, by all clients.
    pub vectors_sent: u64,
    /// Bytes of these vectors, 8 d each.
    pub bytes_sent: u64,
}

impl Cost {
    /// Counts `vectors` vectors of d numbers that were sent, and their bytes.
    pub fn send(&mut self, vectors: u64, d: usize) {
        self.vectors_sent += vectors;
        self.bytes_sent += vectors * 8 * d as u64;
    }

    /// The cost of `rounds` rounds that each cost this. A unit that would exceed 64 bits is the largest
    /// number of 64 bits.
    pub fn times(self, rounds: u64) -> Self {
        self.combine(self, |unit, _| unit.saturating_mul(rounds))
    }

    /// The cost of which each unit is `unit(own, others)`, a function of this unit of this cost and of another cost.
    fn combine(self, other: Self, unit: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            communications: unit(self.communications, other.communications),
            local_steps: unit(self.local_steps, other.local_steps),
            oracle_calls: unit(self.oracle_calls, other.oracle_calls),
            sequential_calls: unit(self.sequential_calls, other.sequential_calls),
            vectors_sent: unit(self.vectors_sent, other.vectors_sent),
            bytes_sent: unit(self.bytes_sent, other.bytes_sent),
        }
    }
}

/// The cost of two runs, each of which pays for its own rounds.
impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, u64::add)
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::add)
    }
}
