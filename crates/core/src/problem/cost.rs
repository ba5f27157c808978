//! How large a problem is and what its parts cost, as far as its settings, and the sizes of its
//! files, determine it. In nanoseconds, fitted to measured times.

use super::dataset::{Dataset, TestRecords};
use super::size::InstanceSize;

/// N of a problem whose data file determines it.
const CLIENTS: u64 = 10;
/// Features of a file whose bytes do not show them.
const FEATURES: u64 = 8;
/// Numbers of a file that is not there.
const NUMBERS: u64 = 10_000;
/// Classes of a file of records.
pub const CLASSES: u64 = 10;
/// What a client's mean field costs in addition to its d² entries.
const FIELD: u64 = 20;

/// What the parts of a problem cost.
pub struct ProblemCost {
    /// N, the number of clients.
    pub clients: u64,
    /// d, the dimension of θ.
    pub dimension: u64,
    /// What an oracle call costs.
    pub call: u64,
    /// What the mean fields of all clients cost together.
    pub field: u64,
    /// Passes over the records, if it has any.
    pub records: Option<RecordsCost>,
}

/// What passes over records cost.
pub struct RecordsCost {
    /// The number of records that clients hold.
    pub held: u64,
    /// The number of records of the test set.
    pub test: u64,
    /// What one record costs.
    pub one: RecordCost,
}

/// What a record costs, in an oracle call and where it is measured.
pub struct RecordCost {
    call: u64,
    /// What the loss of a record costs.
    pub loss: u64,
    /// What predicting the class of a record costs.
    pub class: u64,
    gradient: u64,
    /// What a record's part of f(θ) − f(θ*) costs.
    pub suboptimality: u64,
}

impl RecordCost {
    /// The cost of a record of logistic regression with `features` features that are not 0, if an
    /// oracle call on it costs `call`.
    pub fn logistic(call: u64, features: u64) -> Self {
        let [loss, class, gradient] = [60, 10, 20].map(|fixed: u64| fixed.saturating_add(features));
        Self { call, loss, class, gradient, suboptimality: loss }
    }

    /// The cost of a record of least squares, which needs no exponential; `features` are not 0.
    pub fn least_squares(features: u64) -> Self {
        let one = 10_u64.saturating_add(features);
        let call = 20_u64.saturating_add(features.saturating_mul(3) / 2);
        Self { call, loss: one, class: one, gradient: one, suboptimality: one }
    }

    /// The cost of a record of softmax regression.
    pub fn softmax(classes: u64, features: u64) -> Self {
        let entries = classes.saturating_mul(features);
        let class = entries / 16;
        let loss = classes.saturating_mul(8).saturating_add(class);
        let call = loss.saturating_add(30).saturating_add(entries / 12);
        let gradient = loss.saturating_add(entries / 64);
        Self { call, loss, class, gradient, suboptimality: loss.saturating_mul(3) / 2 }
    }
}

/// What an oracle call on a dense record of two classes costs.
pub fn dense_call(features: u64) -> u64 {
    27_u64.saturating_add(features.saturating_mul(3) / 2)
}

/// What an oracle call on a sparse record costs.
pub fn sparse_call(nonzeros: u64) -> u64 {
    30_u64.saturating_add(nonzeros.saturating_mul(3))
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
    /// Estimates the sizes of a problem on a file, and the features of a record: of a sparse one the
    /// features that are not 0. θ has `classes` numbers for each feature.
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

    /// The sizes of a problem that draws `records` records for each client.
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
    /// The cost of a problem without records, given the nanoseconds of an oracle call as a function of
    /// d, such as [`matrix_call`].
    pub fn without_records(extent: Option<&InstanceSize>, call: fn(u64) -> u64) -> Self {
        let clients = extent.map_or(CLIENTS, |extent| extent.clients as u64);
        let dimension = extent.map_or(FEATURES, |extent| extent.dimension as u64);
        let entries = dimension.saturating_mul(dimension);
        let field = clients.saturating_mul(entries.saturating_add(FIELD));
        Self { clients, dimension, call: call(dimension), field, records: None }
    }
}

/// What an oracle call costs that multiplies with a d × d matrix.
pub fn matrix_call(d: u64) -> u64 {
    38_u64.saturating_add(d.saturating_mul(d).saturating_mul(3))
}
