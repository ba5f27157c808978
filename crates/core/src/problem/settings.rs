//! Settings that describe a problem, what may be wrong with them, and what they say of an instance
//! before it is built.

use super::arrays::{DataFile, Files};
use super::cost::{self, ProblemCost};
use super::dataset::Dataset;
use super::{OracleForm, Problem, RecordMetrics, Visitor};
use std::borrow::Cow;

/// An error in settings: the key, and what is wrong with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Key within the settings' table.
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

/// The largest d.
pub const MOST_DIMENSIONS: usize = 5_000;
/// The most features of sparse records, of which no d × d matrix is made.
pub const MOST_SPARSE_FEATURES: usize = 100_000_000;
/// The most memory of an instance.
const MOST_GIGABYTES: usize = 16;

/// Collects faults.
#[derive(Default)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Adds a fault of `key` unless `holds`.
    pub fn require(&mut self, holds: bool, key: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Fault::new(key, message()));
        }
    }

    /// `value` must be a finite number above 0.
    pub fn positive(&mut self, key: &'static str, value: f64) {
        let message = || format!("must be a finite number above 0, not {value}");
        self.require(value.is_finite() && value > 0.0, key, message);
    }

    /// `value` must be a finite number, 0 or more.
    pub fn non_negative(&mut self, key: &'static str, value: f64) {
        let message = || format!("must be a finite number, 0 or more, not {value}");
        self.require(value.is_finite() && value >= 0.0, key, message);
    }

    /// `value` must be 1 or more.
    pub fn at_least_one(&mut self, key: &'static str, value: u64) {
        self.require(value > 0, key, || "must be 1 or more, not 0".into());
    }

    /// `value` is a dimension: 1 or more, and small enough for d × d matrices.
    pub fn dimension(&mut self, key: &'static str, value: usize) {
        self.at_least_one(key, value as u64);
        let message =
            || format!("must be at most {MOST_DIMENSIONS} (d × d matrices are made), not {value}");
        self.require(value <= MOST_DIMENSIONS, key, message);
    }

    /// `count` parts of `bytes` bytes each must fit in memory.
    pub fn memory(&mut self, key: &'static str, count: usize, bytes: usize) {
        let total = count as u128 * bytes as u128;
        let gigabytes = total as f64 / 1e9;
        let message = || {
            format!(
                "makes an instance of about {gigabytes:.1} GB; at most {MOST_GIGABYTES} are allowed"
            )
        };
        self.require(total <= MOST_GIGABYTES as u128 * 1_000_000_000, key, message);
    }

    /// `clients` must be 1 or more, and at most the number of streams.
    pub fn clients(&mut self, clients: usize) {
        self.at_least_one("clients", clients as u64);
        let most = crate::rng::MAX_CLIENTS;
        let message = || format!("must be at most {most} (a stream each), not {clients}");
        self.require(clients as u64 <= most, "clients", message);
    }
}

/// The size of an instance, known before it is built.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceSize {
    /// N.
    pub clients: usize,
    /// d.
    pub dimension: usize,
    /// The parts that take memory.
    pub parts: Vec<MemoryPart>,
}

impl InstanceSize {
    /// N clients with a d × d matrix and some vectors each.
    pub fn of_matrices(clients: usize, dimension: usize) -> Self {
        let (n, d) = (clients as f64, dimension as f64);
        // Twice, since exact limits need the matrices of all clients.
        let bytes = n * (8.0 * (2.0 * d * d + 4.0 * d) + 150.0);
        let what = format!("{clients} clients' matrices of {dimension} × {dimension}");
        Self { clients, dimension, parts: vec![MemoryPart::new("clients", bytes, what)] }
    }
}

/// A part of an instance that takes memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPart {
    /// The setting that decides its size: a key, or a path.
    pub key: String,
    /// Its approximate size in bytes.
    pub bytes: f64,
    /// A description in the plural.
    pub what: String,
}

impl MemoryPart {
    /// A part whose size is decided by `key`.
    pub fn new(key: &str, bytes: f64, what: impl Into<String>) -> Self {
        Self { key: key.to_owned(), bytes, what: what.into() }
    }
}

/// What settings say of the records whose loss is minimised.
pub struct OnRecords<'a> {
    /// The file that holds them; `None` if they are generated.
    pub dataset: Option<&'a Dataset>,
    /// Whether they are of classes. Then the field is not affine.
    pub classes: bool,
    /// B, the records of an oracle call.
    pub batch: usize,
}

/// Settings that describe a problem.
pub trait Settings {
    /// The type of the instances.
    type Instance: Problem + 'static
    where
        Self: Sized;
    /// Everything that is wrong with the settings themselves.
    fn check(&self) -> Vec<Fault>;
    /// What the settings say of records, if a loss of records is minimised.
    fn on_records(&self) -> Option<OnRecords<'_>> {
        None
    }
    /// Whether the instance depends on the seed; one that is read from a file does not.
    fn uses_seed(&self) -> bool {
        self.on_records().and_then(|of| of.dataset).is_none_or(Dataset::uses_seed)
    }
    /// Whether every F_c is affine in θ.
    fn linear(&self) -> bool {
        self.on_records().is_none_or(|of| !of.classes)
    }
    /// Which metrics of records the instance has.
    fn record_metrics(&self) -> RecordMetrics {
        let metrics = |of: OnRecords<'_>| RecordMetrics {
            loss: true,
            accuracy: of.classes,
            test: of.dataset.is_some_and(|dataset| dataset.test.is_some()),
        };
        self.on_records().map(metrics).unwrap_or_default()
    }
    /// The oracle evaluations of one oracle call with noise.
    fn batch(&self) -> u64 {
        self.on_records().map_or(1, |of| of.batch as u64)
    }
    /// The size of the instance; `None` if it depends on a file.
    fn extent(&self) -> Option<InstanceSize> {
        None
    }
    /// The number of clients, as far as the settings and the files say.
    fn clients(&self, files: &dyn Files) -> Option<usize> {
        match self.on_records().and_then(|of| of.dataset) {
            Some(dataset) => dataset.clients_in(files),
            None => self.extent().map(|extent| extent.clients),
        }
    }
    /// What the parts of the problem cost, with the exact oracle or with its own.
    fn cost(&self, _exact: bool) -> ProblemCost {
        ProblemCost::without_records(self.extent().as_ref(), cost::matrix_call)
    }
    /// The files that the settings name.
    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        Vec::new()
    }
    /// Builds the instance from these settings, the seed and the contents of the files.
    ///
    /// # Errors
    /// A [`Fault`] if the instance has no unique solution, or a file
    /// does not hold what it should.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Self::Instance, Fault>
    where
        Self: Sized;
    /// Builds the instance and calls the visitor with this form of it. Where the contents of a
    /// file decide how an instance is stored, its type may be another than `Instance`.
    ///
    /// # Errors
    /// As for [`Settings::build`].
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault>
    where
        Self: Sized,
    {
        form.visit(self.build(seed, files)?, visitor)
    }
}
