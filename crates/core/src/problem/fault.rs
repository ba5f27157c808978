//! What may be wrong with settings, and the limits that they are checked against.

use crate::rng::MAX_CLIENTS;
use std::borrow::Cow;
use thiserror::Error;

/// An error in settings: the key, and what is wrong with its value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Fault {
    /// The key within the settings' table, dotted if it is in a table below; empty if the table as a whole is meant.
    pub key: Cow<'static, str>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Fault {
    /// A fault of `key`.
    pub fn new(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// The largest d of problems that make d × d matrices.
pub const MOST_DIMENSIONS: usize = 5_000;
/// The most features of sparse records, for which no d × d matrix is made.
pub const MOST_SPARSE_FEATURES: usize = 100_000_000;
/// The most memory of an instance.
const MOST_GIGABYTES: usize = 16;

/// Collects the faults of settings, so that all of them are reported at once.
#[derive(Default)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Adds a fault of `key` with this message, which is formed only then, unless the condition `holds`.
    pub fn require(&mut self, holds: bool, key: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Fault::new(key, message()));
        }
    }

    /// Adds a fault of `key` unless `value` is a finite number above 0.
    pub fn positive(&mut self, key: &'static str, value: f64) {
        self.require(value.is_finite() && value > 0.0, key, || {
            format!("must be a finite number above 0, not {value}")
        });
    }

    /// Adds a fault of `key` unless `value` is a finite number, 0 or more.
    pub fn non_negative(&mut self, key: &'static str, value: f64) {
        self.require(value.is_finite() && value >= 0.0, key, || {
            format!("must be a finite number, 0 or more, not {value}")
        });
    }

    /// Adds a fault of `key` if `value` is 0.
    pub fn at_least_one(&mut self, key: &'static str, value: u64) {
        self.require(value > 0, key, || "must be 1 or more, not 0".into());
    }

    /// Adds a fault of `key` if `value` cannot be a dimension d: if it is 0, or too large for the d × d
    /// matrices of facts.
    pub fn dimension(&mut self, key: &'static str, value: usize) {
        self.at_least_one(key, value as u64);
        self.require(value <= MOST_DIMENSIONS, key, || {
            format!("must be at most {MOST_DIMENSIONS} (d × d matrices are made), not {value}")
        });
    }

    /// Adds a fault of `key` if `count` parts of `bytes` bytes each, such as the matrices of clients, are more
    /// memory than an instance may take.
    pub fn memory(&mut self, key: &'static str, count: usize, bytes: usize) {
        let total = count as u128 * bytes as u128;
        let gigabytes = total as f64 / 1e9;
        self.require(total <= MOST_GIGABYTES as u128 * 1_000_000_000, key, || {
            format!(
                "makes an instance of about {gigabytes:.1} GB; at most {MOST_GIGABYTES} are allowed"
            )
        });
    }

    /// Adds a fault of the key `clients` unless it is 1 or more, and at most the number of random streams,
    /// of which each client needs one.
    pub fn clients(&mut self, clients: usize) {
        self.at_least_one("clients", clients as u64);
        let most = MAX_CLIENTS;
        self.require(clients as u64 <= most, "clients", || {
            format!("must be at most {most} (a stream each), not {clients}")
        });
    }
}
