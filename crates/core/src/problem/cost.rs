//! The size of a problem and the operations of its parts, counted from its settings and the sizes of
//! its files, so that every machine counts the same.
//!
//! An operation is one instruction on the numbers of a register, of which each holds [`LANES`]
//! numbers. Counts say which of two cells is the costlier, and by how much: they balance shards and
//! measure progress. They say nothing about seconds, which the runner measures.

use super::dataset::{Dataset, TestRecords};
use super::size::InstanceSize;

/// The assumed number of clients where a data file determines it.
const CLIENTS: u64 = 10;
/// The assumed number of features of a file whose bytes do not show it.
const FEATURES: u64 = 8;
/// The assumed number of numbers in a file that is missing.
const NUMBERS: u64 = 10_000;
/// The assumed number of classes of a file of records.
pub const CLASSES: u64 = 10;
/// Numbers that one instruction handles.
const LANES: u64 = 4;
/// Operations of a random number, and of the call that uses it.
const DRAW: u64 = 10;
/// Operations of an exponential, or of a logarithm.
const EXPONENTIAL: u64 = 20;
/// Operations of a record besides those on its numbers: it is found, and its result is added.
const RECORD: u64 = 10;

/// The operations on a vector, such as a scalar product.
pub fn vector_operations(entries: u64) -> u64 {
    entries.div_ceil(LANES)
}

/// The size of a problem, and the operations of its parts.
pub struct ProblemCost {
    /// The number of clients.
    pub clients: u64,
    /// The dimension of θ.
    pub dimension: u64,
    /// The operations of an oracle call.
    pub call: u64,
    /// The operations of the mean field of all clients.
    pub field: u64,
    /// Passes over the records, if the problem has records.
    pub records: Option<RecordsCost>,
}

/// The operations of passes over records.
pub struct RecordsCost {
    /// The number of records that clients hold.
    pub held: u64,
    /// The number of records of the test set.
    pub test: u64,
    /// The operations of each record.
    pub one: RecordCost,
}

/// The operations of a record, in an oracle call and where it is measured.
pub struct RecordCost {
    call: u64,
    /// The operations of its loss.
    pub loss: u64,
    /// The operations of its class.
    pub class: u64,
    gradient: u64,
    /// The operations of its part of f(θ) − f(θ*).
    pub suboptimality: u64,
}

impl RecordCost {
    /// Counts those of a record of two classes with dense features: a scalar product gives the class,
    /// and a multiple of the features is the gradient.
    pub fn logistic(features: u64) -> Self {
        Self::of_two_classes(vector_operations(features))
    }

    /// Counts those of a record of two classes with so many features that are not 0. Each is loaded
    /// by itself.
    pub fn sparse_logistic(nonzeros: u64) -> Self {
        Self::of_two_classes(nonzeros)
    }

    fn of_two_classes(pass: u64) -> Self {
        let class = RECORD.saturating_add(pass);
        let gradient = class.saturating_add(pass).saturating_add(EXPONENTIAL);
        let loss = class.saturating_add(2 * EXPONENTIAL);
        Self { call: gradient.saturating_add(DRAW), loss, class, gradient, suboptimality: loss }
    }

    /// Counts those of a record whose label is a number.
    pub fn least_squares(features: u64) -> Self {
        let pass = vector_operations(features);
        let class = RECORD.saturating_add(pass);
        let gradient = class.saturating_add(pass);
        let call = gradient.saturating_add(DRAW);
        Self { call, loss: class, class, gradient, suboptimality: class }
    }

    /// Counts those of a record of several classes.
    pub fn softmax(classes: u64, features: u64) -> Self {
        let pass = classes.saturating_mul(vector_operations(features));
        let class = RECORD.saturating_add(pass);
        let exponentials = classes.saturating_mul(EXPONENTIAL) / LANES;
        let loss = class.saturating_add(exponentials).saturating_add(EXPONENTIAL);
        let gradient = loss.saturating_add(pass);
        let suboptimality = loss.saturating_add(exponentials);
        Self { call: gradient.saturating_add(DRAW), loss, class, gradient, suboptimality }
    }
}

/// The sizes of a problem on records.
pub struct Held {
    clients: u64,
    dimension: u64,
    held: u64,
    test: u64,
    batch: u64,
}

impl Held {
    /// Reads off those of a file, with so many numbers of θ for each feature; and its features, of
    /// sparse ones those that are not 0.
    pub fn of_file(dataset: &Dataset, batch: usize, classes: u64) -> (Self, u64) {
        let (lines, numbers) = dataset.file.size.map_or((0, NUMBERS), |s| (s.lines, s.numbers));
        let records = if lines == 0 { numbers / (FEATURES + 1) } else { lines };
        // A label stands beside the features.
        let columns = (numbers / records.max(1)).saturating_sub(1).max(1);
        let listed = dataset.features.len() as u64;
        let features = if listed == 0 { columns } else { listed } + u64::from(dataset.intercept);
        let test = match dataset.test {
            None => 0,
            Some(TestRecords::Fraction(fraction)) => (records as f64 * fraction) as u64,
            Some(TestRecords::Column(_)) => records / 5,
        };
        let clients = dataset.clients.map_or(CLIENTS, |clients| clients as u64);
        let dimension = features.saturating_mul(classes);
        let batch = batch as u64;
        (Self { clients, dimension, held: records - test, test, batch }, features)
    }

    /// The sizes of a problem whose records are drawn for each client.
    pub fn drawn(clients: usize, dimension: usize, records: usize, batch: usize) -> Self {
        let clients = clients as u64;
        let dimension = dimension as u64;
        let held = clients.saturating_mul(records as u64);
        Self { clients, dimension, held, test: 0, batch: batch as u64 }
    }

    /// The cost of the problem, with an oracle call on a batch or, if it is `exact`, on all records
    /// of a client.
    pub fn cost(self, exact: bool, one: RecordCost) -> ProblemCost {
        let Self { clients, dimension, held, test, batch } = self;
        let each = if exact { held / clients.max(1) } else { batch };
        ProblemCost {
            clients,
            dimension,
            call: one.call.saturating_mul(each),
            field: one.gradient.saturating_mul(held),
            records: Some(RecordsCost { held, test, one }),
        }
    }
}

impl ProblemCost {
    /// The cost of a problem without records, given the operations of an oracle call as a function
    /// of d, such as [`matrix_call`].
    pub fn without_records(extent: Option<&InstanceSize>, call: fn(u64) -> u64) -> Self {
        let size = |extent: &InstanceSize| (extent.clients as u64, extent.dimension as u64);
        let (clients, dimension) = extent.map_or((CLIENTS, FEATURES), size);
        let product = dimension.saturating_mul(vector_operations(dimension));
        let field = clients.saturating_mul(product.saturating_add(DRAW));
        Self { clients, dimension, call: call(dimension), field, records: None }
    }
}

/// The operations of an oracle call that multiplies with a d × d matrix and draws d numbers.
pub fn matrix_call(d: u64) -> u64 {
    let product = d.saturating_mul(vector_operations(d));
    DRAW.saturating_add(product).saturating_add(d.saturating_mul(DRAW))
}

/// The operations of an oracle call on a transition between two states, which have features each.
pub fn transition_call(d: u64) -> u64 {
    DRAW.saturating_add(vector_operations(d).saturating_mul(3))
}
