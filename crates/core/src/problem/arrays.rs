//! The contents of data files as plain values. Problems receive these and never open a
//! file, so they do no I/O.

pub use super::column::Column;
use super::fault::Fault;
use super::minimise::OptimumSearch;
use crate::kernel::SparseRows;
pub use crate::words::sanitised;
use crate::words::{count, nearest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// A file that a manifest names: its path, and the hash of its bytes once they are read.
/// The hash is serialised instead of the path, so a cell's id depends on the file's
/// contents and not on its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The path, relative to the manifest's folder.
    pub path: String,
    /// SHA-256 of the bytes, 64 hexadecimal digits.
    pub sha256: Option<String>,
    /// How much it holds, once its bytes are read.
    pub size: Option<FileSize>,
    /// How it is written, if it is a CSV file.
    pub dialect: CsvDialect,
}

/// The format of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// A text of values with a separator between them.
    Csv,
    /// LIBSVM's text of labels and sparse features.
    Libsvm,
    /// NumPy's archive of arrays.
    Npz,
    /// A table in the format of Apache Parquet.
    Parquet,
}

/// How a CSV file is written: the keys of a dataset that say so. The default is a header line, commas between
/// values, and points in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CsvDialect {
    /// The character between two values. By default it is a comma, or a tab in a file whose name ends in `.tsv`. A
    /// blank stands for any number of blanks and tabs.
    pub separator: Option<char>,
    /// The character before the decimals of a number; a point by default.
    pub decimal: Option<char>,
    /// The character that divides the digits of a number into groups of three; none by default.
    pub thousands: Option<char>,
    /// The character with which lines begin that are no records; none by default.
    pub comment: Option<char>,
    /// Whether the first line is a record, so that the columns are called c1, c2, ….
    pub is_without_header: bool,
}

impl CsvDialect {
    /// The keys that say what is not by default, as a manifest has them: `separator = ";"`.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        let characters = [
            ("separator", self.separator),
            ("decimal", self.decimal),
            ("thousands", self.thousands),
            ("comment", self.comment),
        ];
        let mut keys = Vec::new();
        for (key, character) in characters {
            // As TOML writes a string.
            keys.extend(character.map(|c| match c {
                '\t' => (key, "\"\\t\"".to_owned()),
                c => (key, format!("\"{c}\"")),
            }));
        }
        if self.is_without_header {
            keys.push(("header", "false".to_owned()));
        }
        keys
    }
}

impl DataFile {
    /// The file at a path, of which nothing is read yet, and which is written as is usual.
    pub fn at(path: &str) -> Self {
        let dialect = CsvDialect::default();
        Self { path: path.to_owned(), sha256: None, size: None, dialect }
    }

    /// The format that the ending of the name says or, where it says none, that of a CSV file if its separator is
    /// stated: so tables of other names, such as `.txt`, `.dat` or `.tab`, are read. `None` if neither says it.
    pub fn format(&self) -> Option<FileFormat> {
        let has_separator = self.dialect.separator.is_some();
        match extension(&self.path).as_str() {
            "csv" | "tsv" => Some(FileFormat::Csv),
            "npz" => Some(FileFormat::Npz),
            "parquet" => Some(FileFormat::Parquet),
            "libsvm" | "svm" => Some(FileFormat::Libsvm),
            _ if has_separator => Some(FileFormat::Csv),
            "txt" => Some(FileFormat::Libsvm),
            _ => None,
        }
    }

    /// Where a message says that record number `row` of the file is, counted from 0 among all its records, of which
    /// there are `records`: "line 7", as an editor counts lines from 1, if the file is a text that has as many lines as
    /// records (a CSV file one more, its header); else "row 5", counted from 0.
    pub fn place(&self, row: usize, records: usize) -> String {
        let has_header = self.format() == Some(FileFormat::Csv) && !self.dialect.is_without_header;
        let heads = usize::from(has_header);
        let has_line_each = self.size.is_some_and(|size| {
            let lines = size.lines as usize + usize::from(!size.ends_last_line);
            size.lines > 0 && lines == records + heads
        });
        if has_line_each { format!("line {}", row + heads + 1) } else { format!("row {row}") }
    }
}

/// The most columns that a message names.
const MOST_COLUMNS: usize = 40;

/// The message that a table has no column of this name. It lists the columns that there are, and
/// suggests one whose name is close. `file` is put after the name, such as " in data.csv", or is empty.
pub fn no_column(name: &str, file: &str, columns: &[(String, Column)]) -> String {
    let all: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let listed: Vec<String> = all.iter().take(MOST_COLUMNS).map(|name| sanitised(name)).collect();
    let more = if all.len() > MOST_COLUMNS { ", …" } else { "" };
    let hint = nearest(name, &all).map_or(String::new(), |hint| format!("; {}", sanitised(&hint)));
    format!(
        "there is no column `{}`{file}, only {}{more}{hint}",
        sanitised(name),
        listed.join(", ")
    )
}

/// How much a data file holds, counted in its bytes without reading its numbers: the operations of a run
/// are estimated from it before the file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// The number of line ends of a text; 0 if the file is no text.
    pub lines: u64,
    /// Whether the last line of a text has a line end, as the others have; false if the file is no text.
    pub ends_last_line: bool,
    /// About how many numbers all records hold together.
    pub numbers: u64,
}

/// The extension of a file's name in lower case, without its dot; empty if there is none. Of a compressed file it is
/// that of the file inside: "csv" of `a.csv.gz`.
pub fn extension(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let extension = Path::new(lower.strip_suffix(".gz").unwrap_or(&lower)).extension();
    extension.and_then(|extension| extension.to_str()).unwrap_or_default().to_owned()
}

/// Whether the name says that the file is compressed with gzip.
pub fn is_compressed(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".gz")
}

/// The separator of a `.csv` or `.tsv` file, if no key states another.
pub fn usual_separator(path: &str) -> char {
    if extension(path) == "tsv" { '\t' } else { ',' }
}

impl<'de> Deserialize<'de> for DataFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::at(&String::deserialize(deserializer)?))
    }
}

/// The text before the hash of a file's bytes where the hash stands for the file, as in the ids of cells.
pub const HASH_PREFIX: &str = "sha256:";

impl Serialize for DataFile {
    /// Writes the hash of the file's bytes, or its path if the bytes are not read yet.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.sha256 {
            Some(hash) => serializer.serialize_str(&format!("{HASH_PREFIX}{hash}")),
            None => serializer.serialize_str(&self.path),
        }
    }
}

impl JsonSchema for DataFile {
    fn schema_name() -> Cow<'static, str> {
        "DataFile".into()
    }
    /// In a manifest a file is a text, its path.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A path relative to the manifest's folder; the file's bytes enter the cell's id, its name does not."
        })
    }
}

/// An array of a data file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its shape; empty for a single entry.
    pub shape: Vec<usize>,
    /// Its entries, the last index fastest. Where they are not read ([`Column::Unread`]), only the length of the
    /// first axis is known.
    pub values: Column,
}

impl Array {
    /// The array of this shape with these numbers, the last index fastest.
    pub fn of_numbers(shape: Vec<usize>, numbers: Vec<f64>) -> Self {
        Self { shape, values: Column::Numbers(numbers) }
    }

    /// The entries as numbers, the last index fastest.
    ///
    /// # Errors
    /// What the array holds instead.
    pub fn numbers(&self) -> Result<&[f64], NotNumbers> {
        match &self.values {
            Column::Numbers(numbers) => Ok(numbers),
            Column::LongNumbers(texts) | Column::Text(texts) => {
                let first = texts.first().map_or(String::new(), |text| sanitised(text));
                Err(NotNumbers::Texts { first })
            }
            Column::Unread { kind, .. } => Err(NotNumbers::Unread { kind: kind.clone() }),
        }
    }

    /// The entries of an array with one axis as a column: of numbers or texts, with marks of missing values read as
    /// those of a table are.
    ///
    /// # Errors
    /// What the array holds instead of numbers or texts.
    pub fn column(&self) -> Result<Column, NotNumbers> {
        match &self.values {
            Column::Unread { kind, .. } => Err(NotNumbers::Unread { kind: kind.clone() }),
            values => Ok(values.with_marks_read().into_owned()),
        }
    }
}

/// What an array holds that should be numbers, or numbers or texts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotNumbers {
    /// Texts.
    #[error(
        "it holds texts, such as \"{first}\"; expected numbers: convert it, or save its columns one by one and name those of text under `categorical`"
    )]
    Texts {
        /// The first of them.
        first: String,
    },
    /// Values that can be no data, such as dates.
    #[error("it holds {kind}: make it an array of numbers or of texts before saving it")]
    Unread {
        /// What they are, in the words of the file's format.
        kind: String,
    },
}

/// The contents of a data file.
#[derive(Clone, Debug, PartialEq)]
pub enum Contents {
    /// Named arrays (`.npz`).
    Arrays(BTreeMap<String, Array>),
    /// Named columns of one length (CSV, Parquet, `.npz` of arrays with one axis).
    Table(Vec<(String, Column)>),
    /// A matrix of sparse rows, and further arrays by name (`.npz` of `scipy.sparse`).
    SparseArrays {
        /// The features, n × d.
        features: SparseRows,
        /// The arrays that are no part of the matrix.
        others: BTreeMap<String, Array>,
    },
    /// Labels and feature rows of one length (LIBSVM).
    Records {
        /// One number per row.
        labels: Vec<f64>,
        /// The features, n × d.
        features: SparseRows,
    },
}

/// Why the contents of a data file are not known.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The implementation of [`Files`] reads no files.
    #[error("{path} cannot be read here")]
    NotHere {
        /// The path that the manifest states.
        path: String,
    },
    /// The file is missing, or what it holds is not understood.
    #[error(transparent)]
    Unread(Box<dyn std::error::Error + Send + Sync>),
}

/// Reads data files, for problems that do no I/O themselves.
pub trait Files: Sync {
    /// The contents of a file. They are shared, so that an implementation may read a file once and keep its contents,
    /// however many instances are built from it.
    ///
    /// # Errors
    /// The reason why it cannot be read; also if its bytes do not have the hash that `file` states.
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError>;
    /// How θ* of the instance that is built from these files is found where it has no closed form. A problem asks
    /// for it only when all else is read, right before the search: the runner measures the time of the search from
    /// this call on.
    fn optimum_search(&self) -> OptimumSearch<'_> {
        OptimumSearch::New
    }
}

/// Refuses to open any file: for problems that name none.
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&self, file: &DataFile) -> Result<Arc<Contents>, FilesError> {
        Err(FilesError::NotHere { path: file.path.clone() })
    }
}

/// The arrays of an .npz file, accessed by name and shape.
pub struct NpzArrays<'a> {
    file: &'a str,
    arrays: &'a BTreeMap<String, Array>,
}

impl<'a> NpzArrays<'a> {
    /// The named arrays in the contents of a file.
    ///
    /// # Errors
    /// If the contents are no named arrays, as those of a table.
    pub fn new(file: &'a DataFile, contents: &'a Contents) -> Result<Self, Fault> {
        match contents {
            Contents::Arrays(arrays) => Ok(Self { file: &file.path, arrays }),
            _ => {
                let message = format!("{} does not hold named arrays (.npz)", file.path);
                Err(Fault::new("file", message))
            }
        }
    }

    /// The fault that something is wrong with the file, for its key `file`.
    pub fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new("file", format!("{}: {message}", self.file))
    }

    /// The entries of the array of this name, the last index fastest; all are finite, and there is at least one.
    /// `axes` are the names and the expected lengths of its axes, none for a single number; a length of 0 is not known
    /// yet, and becomes the length that this array has, so that later arrays with the same axis can be checked
    /// against it.
    ///
    /// # Errors
    /// If it is missing, has another shape or an axis of length 0, or holds texts or a number that is not finite.
    pub fn get(&self, name: &str, axes: &mut [(&str, &mut usize)]) -> Result<&'a [f64], Fault> {
        let Some(array) = self.arrays.get(name) else {
            let known: Vec<&str> = self.arrays.keys().map(String::as_str).collect();
            return Err(
                self.fault(format!("there is no array `{name}`, only {}", known.join(", ")))
            );
        };
        let names: Vec<&str> = axes.iter().map(|(axis, _)| *axis).collect();
        let fits = array.shape.len() == axes.len()
            && axes.iter().zip(&array.shape).all(|((_, size), have)| **size == 0 || *size == have)
            && array.shape.iter().all(|&size| size > 0);
        if !fits {
            let mut wanted = Vec::with_capacity(axes.len());
            for (axis, size) in axes.iter() {
                // A length of 0 is one that this array decides.
                wanted.push(match **size {
                    0 => (*axis).to_owned(),
                    size => format!("{axis} = {size}"),
                });
            }
            let empty = if array.shape.contains(&0) { ", no axis empty" } else { "" };
            return Err(self.fault(format!(
                "`{name}` has the shape {:?}; expected ({}){empty}",
                array.shape,
                wanted.join(", ")
            )));
        }
        for ((_, size), have) in axes.iter_mut().zip(&array.shape) {
            **size = *have;
        }
        let numbers = array.numbers().map_err(|e| self.fault(format!("`{name}`: {e}")))?;
        if let Some(entry) = numbers.iter().position(|x| !x.is_finite()) {
            let index = index_text(entry, &array.shape);
            return Err(self.fault(format!(
                "`{name}`[{index}] is {}; every number ({}) must be finite",
                numbers[entry],
                names.join(", ")
            )));
        }
        Ok(numbers)
    }
}

/// The number of features that any file of sparse rows may have. Every run has vectors of all features,
/// so that without limits a short file could cost any time and memory.
const ALWAYS_ALLOWED: usize = 1_000_000;
/// The number of features that a file may have for each number in its rows, if these are more than
/// [`ALWAYS_ALLOWED`].
const FOR_EACH_NUMBER: usize = 100;

/// Sparse rows have far more features than numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the rows hold {}, too few for {features} features; at most {ALWAYS_ALLOWED} features are allowed, or {FOR_EACH_NUMBER} for each number: leave out or renumber the features that are always 0",
    count(*.numbers, "number")
)]
pub struct TooManyFeatures {
    /// The number of features.
    pub features: usize,
    /// The numbers that all rows hold.
    pub numbers: usize,
}

/// Refuses sparse rows of `d` features in which only `numbers` numbers are stored, far fewer than d: each
/// run would need vectors of d numbers for a file of a few bytes. Readers of files call it before they make rows.
///
/// # Errors
/// [`TooManyFeatures`], whose message says how many are allowed.
pub fn check_features(d: usize, numbers: usize) -> Result<(), TooManyFeatures> {
    if d <= ALWAYS_ALLOWED.max(numbers.saturating_mul(FOR_EACH_NUMBER)) {
        return Ok(());
    }
    Err(TooManyFeatures { features: d, numbers })
}

/// The indices, one for each axis of an array of this shape, of its entry number `entry`, for a message:
/// "1, 0, 2". Entries and indices are counted from 0, the last index fastest.
pub fn index_text(mut entry: usize, shape: &[usize]) -> String {
    let mut parts = Vec::new();
    for &size in shape.iter().rev() {
        parts.push((entry % size).to_string());
        entry /= size;
    }
    parts.reverse();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where row 1 of three records is in a file with so many line ends.
    fn place(path: &str, lines: u64, ends_last_line: bool) -> String {
        let size = FileSize { lines, ends_last_line, numbers: 6 };
        DataFile { size: Some(size), ..DataFile::at(path) }.place(1, 3)
    }

    /// A line is named only if each record has one of its own, also where the last line lacks its end.
    #[test]
    fn a_line_is_named_if_each_record_has_one() {
        assert_eq!(place("r.csv", 4, true), "line 3");
        assert_eq!(place("r.csv", 3, false), "line 3");
        assert_eq!(place("r.svm", 3, true), "line 2");
        assert_eq!(place("r.svm", 2, false), "line 2");
        // A value has a line break, or a line is a comment.
        assert_eq!(place("r.csv", 5, true), "row 1");
        assert_eq!(place("r.csv", 4, false), "row 1");
        assert_eq!(place("r.svm", 3, false), "row 1");
        assert_eq!(place("r.parquet", 0, false), "row 1");
    }
}
