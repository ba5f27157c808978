//! The size of a problem and the operations of its parts, counted from its settings and the sizes of
//! its files, so that every machine counts the same.
//!
//! An operation is one instruction on the numbers of a register, of which each holds [`LANES`]
//! numbers. Counts say which of two cells is the costlier, and by how much: they balance shards and
//! measure progress. They say nothing about seconds, which the runner measures.

use super::dataset::{Dataset, Split, TestRecords};
use super::size::InstanceSize;

/// The number of clients that is assumed where only the contents of a data file say it.
const CLIENTS: u64 = 10;
/// The number of features that is assumed where only the contents of a data file say it.
const FEATURES: u64 = 8;
/// How many numbers a data file that is missing is assumed to hold.
const NUMBERS: u64 = 10_000;
/// The number of classes that is assumed of the records of a data file.
pub const CLASSES: u64 = 10;
/// The numbers that one instruction handles.
const LANES: u64 = 4;
/// The operations of a random number, and of the call that uses it.
const DRAW: u64 = 10;
/// The operations of an exponential, or of a logarithm.
const EXPONENTIAL: u64 = 20;
/// The operations of a record in addition to those on its numbers: it is found, and its result is added.
const RECORD: u64 = 10;

/// The operations of one pass over a vector with this number of entries, such as a scalar product.
pub fn vector_operations(entries: u64) -> u64 {
    entries.div_ceil(LANES)
}

/// The size of a problem, and the operations of its parts, from which the runner counts the operations of a
/// cell.
pub struct ProblemCost {
    /// The number of clients.
    pub clients: u64,
    /// The dimension of θ.
    pub dimension: u64,
    /// The operations of an oracle call, of all records of its batch or, of the exact oracle, of all records of a
    /// client.
    pub call: u64,
    /// The operations of the mean field of all clients.
    pub field: u64,
    /// The operations of measuring the records; `None` if the problem has none.
    pub records: Option<RecordsCost>,
}

/// The operations of passes over all records, as metrics need them.
pub struct RecordsCost {
    /// The number of records that clients hold.
    pub held: u64,
    /// The number of records of the test set.
    pub test: u64,
    /// The operations of a single record.
    pub one: RecordCost,
}

/// The operations of a single record, in an oracle call and where it is measured.
pub struct RecordCost {
    /// The operations of drawing it and computing its gradient, in an oracle call.
    call: u64,
    /// The operations of its loss.
    pub loss: u64,
    /// The operations of predicting its class.
    pub class: u64,
    /// The operations of its gradient, in a mean field.
    gradient: u64,
    /// The operations of its part of f(θ) − f(θ*).
    pub suboptimality: u64,
}

impl RecordCost {
    /// The operations of a record of two classes with dense features: a scalar product gives the class,
    /// and a multiple of the features is the gradient.
    pub fn logistic(features: u64) -> Self {
        Self::of_two_classes(vector_operations(features))
    }

    /// The operations of a record of two classes of which `nonzeros` features are not 0. Each of them is
    /// loaded by itself, so that an instruction handles one.
    pub fn sparse_logistic(nonzeros: u64) -> Self {
        Self::of_two_classes(nonzeros)
    }

    /// The operations of a record of two classes, given the operations of one pass over its features. Its
    /// class takes one pass, its gradient another one and an exponential, and its loss an exponential and a
    /// logarithm.
    fn of_two_classes(pass: u64) -> Self {
        let class = RECORD.saturating_add(pass);
        let gradient = class.saturating_add(pass).saturating_add(EXPONENTIAL);
        let loss = class.saturating_add(2 * EXPONENTIAL);
        Self { call: gradient.saturating_add(DRAW), loss, class, gradient, suboptimality: loss }
    }

    /// The operations of a record whose label is a number: one pass over its features gives its residual,
    /// and with it its loss, and another one its gradient. It has no exponential.
    pub fn least_squares(features: u64) -> Self {
        let pass = vector_operations(features);
        let class = RECORD.saturating_add(pass);
        let gradient = class.saturating_add(pass);
        let call = gradient.saturating_add(DRAW);
        Self { call, loss: class, class, gradient, suboptimality: class }
    }

    /// The operations of a record of several classes. A pass computes or adds a multiple of the features
    /// for each class; one instruction computes the exponentials of several classes.
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

/// About how many records a file holds: as many as it has lines or, if it is no text, as many as its numbers make with
/// an assumed number of features.
fn estimate_records(dataset: &Dataset) -> u64 {
    let (lines, numbers) = lines_and_numbers(dataset);
    if lines == 0 { numbers / (FEATURES + 1) } else { lines }
}

/// About how many features the records of a file get, with the intercept, as far as its size and the
/// settings show it; of sparse records, how many are not 0.
pub fn estimate_features(dataset: &Dataset) -> u64 {
    let (_, numbers) = lines_and_numbers(dataset);
    let records = estimate_records(dataset);
    // Each record has a label in addition to its features.
    let columns = (numbers / records.max(1)).saturating_sub(1).max(1);
    let listed = dataset.features.len() as u64;
    let features = if listed == 0 { columns } else { listed };
    features + u64::from(dataset.intercept)
}

/// The lines of a file, 0 if it is no text, and the numbers that it holds; assumed if it is missing, which does not
/// hinder an estimate: that it is missing is reported when it is read.
fn lines_and_numbers(dataset: &Dataset) -> (u64, u64) {
    dataset.file.size.map_or((0, NUMBERS), |size| (size.lines, size.numbers))
}

/// The sizes of a problem on records.
pub struct RecordCounts {
    clients: u64,
    /// d, the dimension of θ.
    dimension: u64,
    /// The number of records that all clients hold together.
    held: u64,
    /// The number of records that a client holds, on average.
    of_client: u64,
    /// The number of records of the test set.
    test: u64,
    batch: u64,
}

impl RecordCounts {
    /// Estimates the sizes of a problem on the records of a file. θ has `classes` numbers for each
    /// feature (1 but for softmax regression), and an oracle call draws `batch` records.
    pub fn of_file(dataset: &Dataset, batch: usize, classes: u64) -> Self {
        let records = estimate_records(dataset);
        let test = match dataset.test {
            None => 0,
            Some(TestRecords::Fraction(fraction)) => (records as f64 * fraction) as u64,
            // The usual fraction is assumed, since only the column says how many it marks.
            Some(TestRecords::Column(_)) => records / 5,
        };
        let clients = dataset.clients.map_or(CLIENTS, |clients| clients as u64);
        let dimension = estimate_features(dataset).saturating_mul(classes);
        let batch = batch as u64;
        let held = records - test;
        let of_client = if dataset.split == Split::All { held } else { held / clients.max(1) };
        Self { clients, dimension, held, of_client, test, batch }
    }

    /// The sizes of a problem whose records are drawn, `records` of them for each client. An oracle call
    /// draws `batch` of them.
    pub fn drawn(clients: usize, dimension: usize, records: usize, batch: usize) -> Self {
        let clients = clients as u64;
        let dimension = dimension as u64;
        let held = clients.saturating_mul(records as u64);
        let of_client = held / clients.max(1);
        Self { clients, dimension, held, of_client, test: 0, batch: batch as u64 }
    }

    /// The cost of the problem whose records cost `one` each. An oracle call reads a batch of records or, if
    /// the oracle is `exact`, all records of a client.
    pub fn cost(self, exact: bool, one: RecordCost) -> ProblemCost {
        let Self { clients, dimension, held, of_client, test, batch } = self;
        let records_of_call = if exact { of_client } else { batch };
        ProblemCost {
            clients,
            dimension,
            call: one.call.saturating_mul(records_of_call),
            field: one.gradient.saturating_mul(held),
            records: Some(RecordsCost { held, test, one }),
        }
    }
}

impl ProblemCost {
    /// The cost of a problem without records, given the operations of an oracle call as a function
    /// of d, such as [`matrix_call`]. N and d are assumed if `extent` is `None`, as where a file says them. The mean
    /// field of each client is assumed to be a product with a d × d matrix; the exact oracle counts as the one with
    /// noise.
    pub fn without_records(extent: Option<&InstanceSize>, call: fn(u64) -> u64) -> Self {
        let clients = extent.map_or(CLIENTS, |extent| extent.clients as u64);
        let dimension = extent.map_or(FEATURES, |extent| extent.dimension as u64);
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

/// The operations of an oracle call of TD(0) on a drawn transition: three passes over the d features of its
/// two states.
pub fn transition_call(d: u64) -> u64 {
    DRAW.saturating_add(vector_operations(d).saturating_mul(3))
}
