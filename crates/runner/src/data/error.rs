//! Why a data file is not read.

use super::{MOST_KEPT, MOST_LINE, stated};
use crate::files;
use exactfed_core::kernel::SparseRowsError;
use exactfed_core::problem::arrays::TooManyFeatures;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the contents of a data file are not known.
#[derive(Debug, Error)]
pub enum DataError {
    /// The file is missing, or may not be read.
    #[error("{} cannot be read: {}", path.display(), files::io_message(error))]
    Unread {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Neither on the disk nor in memory there is a file of the path.
    #[error("{error}; in memory there is {}", names.join(", "))]
    NotInMemory {
        /// Why it cannot be read from the disk.
        error: Box<Self>,
        /// The paths of the files in memory.
        names: Vec<String>,
    },
    /// The file has another hash than it had when the cells were planned.
    #[error("{path} has changed since the cells were planned")]
    Changed {
        /// The path that the manifest states.
        path: String,
    },
    /// Neither the file nor the copy that results keep of it has the wanted hash.
    #[error(
        "{error}; and these results have no sound copy of it, {} (files above {} MiB are not copied)",
        copy.display(),
        MOST_KEPT >> 20
    )]
    NoSoundCopy {
        /// What is wrong with the file.
        error: Box<Self>,
        /// Where the copy would be.
        copy: PathBuf,
    },
    /// The bytes are not understood.
    #[error("{path}: {error}")]
    Content {
        /// The path that the manifest states.
        path: String,
        /// What is wrong with the bytes.
        error: ContentError,
    },
}

/// What is wrong with the bytes of a data file.
#[derive(Debug, Error)]
pub enum ContentError {
    /// The name does not say what the file holds.
    #[error(
        "the name must end in .npz, .csv, .tsv, .parquet, .libsvm, .svm or .txt; .gz may follow if it is a text"
    )]
    UnknownExtension,
    /// The file is packed by a program whose format is not read.
    #[error("it is packed with {program}: unpack it, or pack it with gzip (.csv.gz)")]
    Packed {
        /// The program, or the name of the format.
        program: &'static str,
    },
    /// A text whose name does not say what it holds is none of both that it may be.
    #[error(
        "its lines are neither records of LIBSVM nor, with any usual separator, equally many values: save it as CSV"
    )]
    NoTable,
    /// The file has no bytes or, if it is a text, only blanks and line ends.
    #[error("the file is empty")]
    Empty,
    /// The file is a Parquet table, and the caller provides no reader of them.
    #[error("this program reads no Parquet")]
    NoParquet,
    /// A line of a text is too long for any table.
    #[error("line {line} has {bytes} bytes; at most {MOST_LINE} are allowed")]
    LongLine {
        /// The number of the line, from 1.
        line: usize,
        /// Its length.
        bytes: usize,
    },
    /// A line of a text is no record.
    #[error("line {line}: {message}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// An array of an archive is not understood.
    #[error("`{name}`: {error}")]
    Array {
        /// The name of the array.
        name: String,
        /// What is wrong with it.
        error: Box<Self>,
    },
    /// The shape of a sparse matrix announces too many features.
    #[error("`shape`: {0}")]
    Shape(TooManyFeatures),
    /// The arrays of a sparse matrix contradict each other.
    #[error(transparent)]
    Rows(#[from] SparseRowsError),
    /// scipy wrote a sparse matrix whose indices are not sorted.
    #[error("{0}; scipy's sum_duplicates() sorts the indices of each row and adds equal ones up")]
    UnsortedScipyRows(SparseRowsError),
    /// The header of a CSV file seems to be a record.
    #[error("line {line} holds {held} and no names; add a header line, or write `header = false`")]
    NoHeader {
        /// The number of the line, from 1.
        line: u64,
        /// What the line holds: "numbers" or "values".
        held: &'static str,
    },
    /// A CSV file seems to be written in another way than the keys of the dataset say.
    #[error("it seems to be written in another way: state {}", stated(keys))]
    OtherDialect {
        /// The keys of that way with their values.
        keys: Vec<(&'static str, String)>,
    },
    /// The file is not one of its format, or holds what no dataset can have.
    #[error("{0}")]
    Invalid(String),
}
