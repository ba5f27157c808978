//! Why a data file is not described, or there is no manifest to start from.

use super::MOST_CLASSES;
use super::starter::MOST_DENSE_BYTES;
use crate::data::{ContentError, DataError};
use exactfed_core::problem::MOST_DIMENSIONS;
use exactfed_core::problem::arrays::{NotNumbers, sanitised};
use thiserror::Error;

/// Why a data file cannot be described.
#[derive(Debug, Error)]
pub enum DescribeError {
    /// The file cannot be read.
    #[error(transparent)]
    Data(DataError),
    /// The header of a CSV file seems to be a record. There is no manifest yet that could say so.
    #[error(
        "{path}: line {line} holds {held} and no names; add a header line, or state `--no-header`"
    )]
    NoHeader {
        /// The file.
        path: String,
        /// The number of the line, from 1.
        line: u64,
        /// What the line holds: "numbers" or "values".
        held: &'static str,
    },
    /// What the file holds are no records.
    #[error("{path}: {error}")]
    Records {
        /// The file.
        path: String,
        /// What is wrong with the contents.
        error: RecordsError,
    },
}

impl From<DataError> for DescribeError {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Content { path, error: ContentError::NoHeader { line, held } } => {
                Self::NoHeader { path, line, held }
            }
            other => Self::Data(other),
        }
    }
}

/// Why the contents of a file are no records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// The option of this name names a column, and only tables have columns.
    #[error("{0} names a column, but the file has none")]
    NoNamedColumns(&'static str),
    /// The column that the option names holds values that are not read.
    #[error("column `{name}` is of type {kind}; {option} takes a column of numbers or text")]
    UnreadColumn {
        /// The option.
        option: &'static str,
        /// The name of the column.
        name: String,
        /// The type of its values, in the words of the file's format.
        kind: String,
    },
    /// One column is to be the labels and the clients.
    #[error("--clients names the column of the labels")]
    ClientsAreLabels,
    /// The array that --clients names has no value for each record, or is missing.
    #[error("--clients names no array of one value for each record; there are: {arrays}")]
    NoClientArray {
        /// The names and shapes of the arrays.
        arrays: String,
    },
    /// The table has no column of the name that was given.
    #[error("{0}")]
    UnknownColumn(String),
    /// The table is empty.
    #[error("there are no columns")]
    NoColumns,
    /// There are sparse features without labels.
    #[error("beside sparse rows, records need the array y (n,); there are: {arrays}")]
    NoLabels {
        /// The names and shapes of the arrays.
        arrays: String,
    },
    /// The arrays have other names or shapes than those of records.
    #[error(
        "records are the arrays x (n, d) and y (n,), or x_train and y_train with or without x_test and y_test, not {arrays}: save them by these names and shapes"
    )]
    OtherArrays {
        /// The names and shapes of the arrays.
        arrays: String,
    },
    /// An array holds other values than it should.
    #[error("`{name}`: {error}")]
    Array {
        /// The name of the array.
        name: String,
        /// What it holds.
        error: NotNumbers,
    },
    /// The table has a header alone.
    #[error("there is no record after the header")]
    NothingAfterHeader,
    /// The table has columns without values.
    #[error("there are no records")]
    NoRecords,
    /// No column of a table is a feature.
    #[error("no column but {used} is a feature{left_out}")]
    NoFeatures {
        /// The column of the labels and, if there is one, that of the clients.
        used: String,
        /// Which columns are left out and why, and what to do, after a colon; empty if there are none.
        left_out: String,
    },
    /// Features or labels are missing.
    #[error(
        "there are {n} records of {d} features and {labels} labels; both and one label each are needed"
    )]
    Incomplete {
        /// The number of records.
        n: usize,
        /// The number of features.
        d: usize,
        /// The number of labels.
        labels: usize,
    },
}

impl RecordsError {
    /// The array of this name holds other values than it should.
    pub(super) fn array(name: &str, error: NotNumbers) -> Self {
        Self::Array { name: sanitised(name), error }
    }
}

/// Why there is no manifest to start from.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StarterError {
    /// Values of arrays are missing.
    #[error("values are missing: fill them in, or remove their records")]
    MissingValues,
    /// Numbers are infinite.
    #[error(
        "values are infinite: replace them by numbers or, if they mark missing values, by NaN, or remove their records"
    )]
    InfiniteValues,
    /// Every record of a table lacks a value.
    #[error(
        "no record has a value in every column, so that `missing = \"drop\"` leaves none: fill values in, or leave columns out of the file"
    )]
    NoWholeRecord,
    /// There are more clients than records.
    #[error("--clients {clients} is more than the number of records, {records}")]
    TooManyClients {
        /// The number of clients that the user wishes.
        clients: usize,
        /// The number of records.
        records: usize,
    },
    /// All features are constant.
    #[error("no feature varies")]
    ConstantFeatures,
    /// Dense features would take too much memory.
    #[error(
        "`{kind}` stores these features dense, and there are {features} of {records} records; at most {MOST_DIMENSIONS} features are allowed, and {MOST_DENSE_BYTES} bytes"
    )]
    TooManyFeatures {
        /// The kind of the problem.
        kind: &'static str,
        /// The number of features.
        features: usize,
        /// The number of records.
        records: usize,
    },
    /// Features are so large that their sums are infinite, or the step size that they allow is 0.
    #[error(
        "some features are beyond double precision when they are squared or summed: scale them"
    )]
    LargeFeatures,
    /// There is one class.
    #[error(
        "all labels are the same, and nothing is learnt of them: choose others, in a table by `--label`"
    )]
    EqualLabels,
    /// Labels are many texts.
    #[error(
        "there are {0} different labels of text; at most {MOST_CLASSES} classes, or numbers, are needed: choose others, in a table by `--label`"
    )]
    TextLabels(usize),
    /// Labels are numbers but for a few texts.
    #[error(
        "the labels hold {held}: replace these by numbers or, if they mark missing values, by `NA`"
    )]
    TextsAmongLabels {
        /// What the labels hold, in words.
        held: String,
    },
}
