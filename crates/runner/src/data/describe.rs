//! What a data file holds, and a manifest to start from.
//!
//! *Invariant*: the manifest runs as it is printed, for records that the problem takes.

mod arrays;
mod clients;
mod error;
mod features;
mod starter;
mod table;
mod values;

use super::{DataError, TableReader};
use arrays::{RecordPlaces, TestArray, records_of_arrays, take_records};
pub use clients::ClientWish;
use clients::{RecordClients, clients_of_arrays};
pub use error::{DescribeError, RecordsError, StarterError};
use exactfed_core::linalg::Matrix;
use exactfed_core::problem::arrays::{Array, Column, Contents, CsvDialect, DataFile, sanitised};
use exactfed_core::problem::column::{Exceptions, LongNumber};
use exactfed_core::words::count;
use features::{FeatureMoments, FeatureRows};
use starter::Starter;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use table::holds_clients;

/// The most features of a Gram matrix whose condition number is computed.
const MOST_FEATURES: usize = 500;
/// The most products of numbers that computing a Gram matrix may take.
const MOST_PRODUCTS: f64 = 4e9;
/// The most distinct labels that count as classes.
const MOST_CLASSES: usize = 20;
/// The fewest records for each class on average, if labels that are whole numbers are taken for classes.
const FEWEST_OF_CLASS: usize = 5;
/// The most names or values that a line lists.
const MOST_NAMED: usize = 12;
/// The names by which a column is taken to be that of the labels, where the user names none, in the order of
/// preference.
const LABELS: [&str; 7] = ["label", "target", "class", "outcome", "response", "y", "diagnosis"];
/// What a user says of a file that is described.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// The column of the labels, which only a table has; by default one with a usual name, or the last.
    pub label: Option<&'a str>,
    /// What the clients are; by default the values of a column whose name says so, or parts of the shuffled records.
    pub clients: Option<ClientWish<'a>>,
    /// Whether the manifest compares several algorithms, each with the settings that are best for it.
    pub tune: bool,
    /// Whether the first line of a CSV file is a record.
    pub is_without_header: bool,
}

/// What a data file holds, in words for a user who wants to run algorithms on it.
pub struct Description {
    /// The lines that describe the file.
    pub lines: Vec<String>,
    /// A manifest to start from, or why there is none.
    pub manifest: Result<String, StarterError>,
}

/// The records of a file, divided into features, labels and others.
struct FileRecords<'a> {
    /// The names of the features; empty where the file names none.
    names: Vec<String>,
    features: FeatureRows<'a>,
    labels: Cow<'a, Column>,
    /// The name of the label column; empty where the file has none.
    label: String,
    clients: RecordClients,
    /// The rows of the file, from 0, that have these records.
    rows: Vec<usize>,
    /// The number of records of the file, of which some may be left out.
    file_records: usize,
    /// How many records are a test set that the array [`TEST`] marks, and are none of these; 0 without such an array.
    test_records: usize,
    /// What else a table has.
    table: TableNotes,
}

/// What a table has beside features, labels and clients.
#[derive(Default)]
struct TableNotes {
    /// Where values are missing, a phrase for each column, and one on how many records are left if records are left
    /// out.
    missing: Vec<String>,
    /// What the manifest does with them.
    remedy: Option<Remedy>,
    /// The columns that are left out and why, and what else should be known of columns: lines.
    lines: Vec<String>,
    /// Whether the manifest lists the features, so that a user sees which columns they are.
    lists_features: bool,
    /// The features that the manifest lists as categories: pairs of words, such as yes and no.
    categorical: Vec<String>,
}

/// What the manifest to start from does with values that are missing.
#[derive(Clone, Copy, PartialEq)]
enum Remedy {
    /// It puts the mean of the feature in their place.
    Mean,
    /// It leaves out records that lack a value.
    Drop,
    /// There is no manifest, because every record lacks a value.
    Nothing,
}

/// Describes a file with these contents. The manifest compares two algorithms with one step size or, if the user
/// wishes for tuning, several, each with the settings that are best for it. If only features lack values, the
/// manifest fills them in; if a label or a client is missing somewhere, it leaves out all records that lack any value.
///
/// # Errors
/// If it holds no records, or has no column that the user names. Records without a manifest are no error:
/// [`Description::manifest`] says why there is none.
pub fn describe(
    file: &DataFile,
    contents: &Contents,
    wishes: &Wishes<'_>,
) -> Result<Description, RecordsError> {
    let wanted = wishes.clients;
    let train;
    let records = match contents {
        Contents::Table(columns) => table::records(file, columns, wishes)?,
        _ if wishes.label.is_some() => return Err(RecordsError::NoNamedColumns("--label")),
        Contents::Records { labels, features } => {
            let none = BTreeMap::new();
            let clients = clients_of_arrays(&none, labels.len(), wanted)?;
            let features = FeatureRows::Sparse(Cow::Borrowed(features));
            let places = RecordPlaces { file, test: None };
            records_of_arrays(features, Column::Numbers(labels.clone()), clients, &none, places)?
        }
        Contents::SparseArrays { features, others } => {
            let Some(y) = others.get("y").filter(|y| y.shape.len() == 1) else {
                return Err(RecordsError::NoLabels { arrays: shapes(others) });
            };
            let features = FeatureRows::Sparse(Cow::Borrowed(features));
            let labels = y.column().map_err(|error| RecordsError::array("y", error))?;
            let clients = clients_of_arrays(others, labels.len(), wanted)?;
            records_of_arrays(features, labels, clients, others, RecordPlaces { file, test: None })?
        }
        Contents::Arrays(arrays) => match TestArray::of(arrays) {
            // What the manifest says of features must hold for the records that clients get.
            Some(test) => {
                train = take_records(arrays, &test.others);
                let places = RecordPlaces { file, test: Some(&test) };
                test.before(dense_records(&train, wanted, places)?)
            }
            None => dense_records(arrays, wanted, RecordPlaces { file, test: None })?,
        },
    };
    records.description(file, wishes.tune)
}

/// The records whose features are the array `x` and whose labels are the array `y`, with clients as the user wishes;
/// `places` says where they are in the file.
///
/// # Errors
/// If one of these is missing, or is no such array.
fn dense_records<'a>(
    arrays: &'a BTreeMap<String, Array>,
    wanted: Option<ClientWish<'_>>,
    places: RecordPlaces<'_>,
) -> Result<FileRecords<'a>, RecordsError> {
    let axes = ["x", "y"].map(|name| arrays.get(name).map(|array| array.shape.len()));
    let [Some(2), Some(1)] = axes else {
        return Err(RecordsError::OtherArrays { arrays: shapes(arrays) });
    };
    let x = &arrays["x"];
    let y = &arrays["y"];
    let numbers = x.numbers().map_err(|error| RecordsError::array("x", error))?;
    let size = (x.shape[0], x.shape[1]);
    let features = FeatureRows::Dense { size, numbers: Cow::Borrowed(numbers) };
    let labels = y.column().map_err(|error| RecordsError::array("y", error))?;
    let clients = clients_of_arrays(arrays, labels.len(), wanted)?;
    records_of_arrays(features, labels, clients, arrays, places)
}

/// The names and shapes of the first arrays, for a message.
fn shapes(arrays: &BTreeMap<String, Array>) -> String {
    let all: Vec<String> = arrays
        .iter()
        .take(MOST_NAMED)
        .map(|(name, array)| format!("{} {:?}", sanitised(name), array.shape))
        .collect();
    all.join(", ")
}

/// The names of the first columns of a file, in one line, and the name of the column that is taken to be the labels
/// where none is given: `init` shows both where it asks for the labels. `None` if the file has no named columns.
/// `tables` reads Parquet.
///
/// # Errors
/// If it cannot be read.
pub fn columns(
    path: &str,
    tables: Option<TableReader>,
) -> Result<Option<(String, String)>, DescribeError> {
    let bytes = super::bytes_of(Path::new(path))?;
    let (_, contents) = seen(path, bytes, CsvDialect::default(), tables)?;
    let Contents::Table(columns) = contents else {
        return Ok(None);
    };
    let names: Vec<String> = columns.iter().map(|(name, _)| sanitised(name)).collect();
    Ok(label_place(&columns).map(|place| (first_names(&names), names[place].clone())))
}

/// Describes the file at a path, as [`describe`] does; `tables` reads Parquet.
///
/// # Errors
/// If it cannot be read, holds no records, or has no such column.
pub fn describe_file(
    path: &str,
    wishes: &Wishes<'_>,
    tables: Option<TableReader>,
) -> Result<Description, DescribeError> {
    let bytes = super::bytes_of(Path::new(path))?;
    let stated =
        CsvDialect { is_without_header: wishes.is_without_header, ..CsvDialect::default() };
    let (file, contents) = seen(path, bytes, stated, tables)?;
    describe(&file, &contents, wishes)
        .map_err(|error| DescribeError::Records { path: path.to_owned(), error })
}

/// A file with how it is written, which is found from its bytes, and its contents. `stated` is what the user says of
/// it.
fn seen(
    path: &str,
    bytes: Vec<u8>,
    stated: CsvDialect,
    tables: Option<TableReader>,
) -> Result<(DataFile, Contents), DataError> {
    let size = Some(super::size(path, &bytes));
    // What cannot be unpacked is reported when the file is read.
    let dialect = super::text_of(path, &bytes).map_or_else(
        |_| CsvDialect::default(),
        |text| super::detected_dialect(path, &text, stated),
    );
    let file = DataFile { path: path.to_owned(), sha256: None, size, dialect };
    let contents = super::read(&file, bytes, tables)
        .map_err(|error| DataError::Content { path: path.to_owned(), error })?;
    Ok((file, contents))
}

/// The distinct values in their order, each with how often it occurs. The keys sort as the numbers do, also NaN and
/// signed zeros.
fn distinct(values: &[f64]) -> BTreeMap<u64, (f64, usize)> {
    let mut all = BTreeMap::new();
    for value in values {
        // As whole numbers, these bits have the order of the numbers.
        let bits = value.to_bits();
        let key = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        all.entry(key).or_insert((*value, 0)).1 += 1;
    }
    all
}

/// The distinct values of a column that are not missing, as text, each with how often it occurs, in the order of the
/// values.
fn value_counts(column: &Column) -> Vec<(String, usize)> {
    let known: Vec<usize> = known_rows(&[column]);
    match column.take(&known) {
        Column::Numbers(values) => {
            distinct(&values).into_values().map(|(value, n)| (value.to_string(), n)).collect()
        }
        Column::LongNumbers(values) => {
            let mut all: Vec<(&String, usize)> = text_counts(&values).into_iter().collect();
            all.sort_by(|one, two| LongNumber(one.0).total_cmp(&LongNumber(two.0)));
            all.into_iter().map(|(value, n)| (value.clone(), n)).collect()
        }
        Column::Text(values) => {
            text_counts(&values).into_iter().map(|(value, n)| (sanitised(value), n)).collect()
        }
        Column::Unread { .. } => Vec::new(),
    }
}

/// How often each text occurs, in the order of the texts.
fn text_counts(values: &[String]) -> BTreeMap<&String, usize> {
    let mut all: BTreeMap<&String, usize> = BTreeMap::new();
    values.iter().for_each(|value| *all.entry(value).or_default() += 1);
    all
}

/// The rows in which all of these columns, one or more, have a value.
fn known_rows(columns: &[&Column]) -> Vec<usize> {
    let missing: Vec<Vec<bool>> = columns.iter().map(|column| column.missing()).collect();
    (0..columns[0].len()).filter(|row| !missing.iter().any(|column| column[*row])).collect()
}

/// The place of the column that is taken to be the labels: one with a usual name, or else the last that is read, and that
/// holds no clients as its name says if there is such a one; `None` without columns that are read.
fn label_place(columns: &[(String, Column)]) -> Option<usize> {
    let usual = LABELS
        .iter()
        .find_map(|wanted| columns.iter().position(|(name, _)| name.eq_ignore_ascii_case(wanted)));
    usual
        .or_else(|| {
            columns
                .iter()
                .rposition(|(name, column)| column.is_read() && !holds_clients(name, column))
        })
        .or_else(|| columns.iter().rposition(|(_, column)| column.is_read()))
}

impl FileRecords<'_> {
    /// The description of the file at a path with these records. With `tune` the manifest compares tuned algorithms.
    ///
    /// # Errors
    /// If there are no records or no features, or another number of labels than of records.
    fn description(&self, file: &DataFile, tune: bool) -> Result<Description, RecordsError> {
        let (n, d) = self.features.size();
        if n == 0 || d == 0 || self.labels.len() != n {
            let labels = self.labels.len();
            return Err(RecordsError::Incomplete { n, d, labels });
        }
        let moments = self.features.moments();
        let constant = constant_features(&moments);
        let mut lines = vec![format!("{} of {}", count(n, "record"), count(d, "feature"))];
        let keys = file.dialect.keys();
        if !keys.is_empty() {
            lines.push(format!("written with {}", super::stated(&keys)));
        }
        let each = self.features.nonzeros() as f64 / n as f64;
        let share = 100.0 * each / d as f64;
        let digits = if share < 1.0 { 3 } else { 1 };
        lines.push(format!("non-zeros: {share:.digits$} %, {each:.1} in a record"));
        let lacking = self.missing(file);
        let infinite = self.infinite(file);
        lines.extend(self.value_lines(file, &lacking, &infinite));
        if !constant.is_empty() {
            let names: Vec<String> = constant.iter().map(|j| self.name(*j)).collect();
            lines.push(format!("constant features: {}", first_names(&names)));
        }
        let classes = value_counts(&self.labels);
        lines.push(self.label_line(&classes));
        lines.extend_from_slice(&self.table.lines);
        if let RecordClients::Column { name, values, .. } = &self.clients {
            let name = sanitised(name);
            lines.push(format!("clients: column `{name}` has {values} different values"));
        }
        if self.table.remedy == Some(Remedy::Nothing) {
            return Ok(Description { lines, manifest: Err(StarterError::NoWholeRecord) });
        }
        if !lacking.is_empty() {
            return Ok(Description { lines, manifest: Err(StarterError::MissingValues) });
        }
        if !infinite.is_empty() {
            return Ok(Description { lines, manifest: Err(StarterError::InfiniteValues) });
        }
        lines.push(self.condition_line(&moments, &constant));
        let starter = Starter::new(self, file, &classes, &moments, &constant);
        lines.extend(starter.iter().map(Starter::test_line));
        Ok(Description { lines, manifest: starter.map(|starter| starter.text(tune)) })
    }

    /// How a feature is named: by its column, or by its number from 0.
    fn name(&self, feature: usize) -> String {
        let name = self.names.get(feature);
        name.map_or(feature.to_string(), |name| format!("`{}`", sanitised(name)))
    }

    /// The line of the description that says what the labels are: classes with their numbers of records, a range of
    /// numbers, or texts. `classes` are the different labels, each with how often it occurs.
    fn label_line(&self, classes: &[(String, usize)]) -> String {
        let name = match self.label.as_str() {
            "" => String::new(),
            name => format!(" (column `{}`)", sanitised(name)),
        };
        if classes.is_empty() {
            return format!("labels{name}: no record has one");
        }
        if is_classes(&self.labels, classes) {
            let all: Vec<String> =
                classes.iter().map(|(value, n)| format!("{value} ({n})")).collect();
            let classes = if all.len() == 1 { "class" } else { "classes" };
            return format!("labels{name}: {} {classes}: {}", all.len(), first_names(&all));
        }
        match self.labels.numbers() {
            Some(values) => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("labels{name}: numbers from {low} to {high}")
            }
            None => format!("labels{name}: {} different texts", classes.len()),
        }
    }

    /// The line with the condition number of the Gram matrix of the features that vary, shifted and scaled to mean 0
    /// and variance 1. It tells how slowly algorithms converge on the records. The line says that the number is not
    /// computed where that would take too long, and where no feature varies. `moments` are of all features, and
    /// `constant` has the numbers of those that do not vary, increasing.
    fn condition_line(&self, moments: &[FeatureMoments], constant: &[usize]) -> String {
        let what = "condition number of the standardised Gram matrix";
        let (n, all) = self.features.size();
        let kept = varying_features(all, constant);
        let d = kept.len();
        if d == 0 {
            return format!("{what}: none, since no feature varies");
        }
        if d > MOST_FEATURES || n as f64 * (d * d) as f64 > MOST_PRODUCTS {
            return format!(
                "{what}: not computed above {MOST_FEATURES} features or {MOST_PRODUCTS:.0e} products"
            );
        }
        if kept.iter().any(|j| !moments[*j].deviation.is_finite()) {
            return format!(
                "{what}: not computed, since sums of values are beyond double precision"
            );
        }
        let mut gram = Matrix::zeros(d, d);
        self.features.each_standard(&kept, moments, |row| gram.add_outer(1.0 / n as f64, row, row));
        match gram.symmetric_extremes() {
            Some((most, least)) if least > 1e-12 * most => format!("{what}: {:.3e}", most / least),
            _ => format!("{what}: infinite, the features are linearly dependent"),
        }
    }
}

/// The numbers of the features that do not vary, increasing, from the moments of all features. The criterion is that by
/// which a dataset cannot be standardised. A feature with missing values or values beyond double precision, whose
/// deviation is not finite, is not among them.
fn constant_features(moments: &[FeatureMoments]) -> Vec<usize> {
    let varies = moments.iter().map(|FeatureMoments { mean, deviation }| {
        !deviation.is_finite() || *deviation > 1e-12 * mean.abs()
    });
    varies.enumerate().filter(|(_, varies)| !varies).map(|(j, _)| j).collect()
}

/// The numbers of the features, of which there are `all`, that are not among `constant`, whose numbers increase.
fn varying_features(all: usize, constant: &[usize]) -> Vec<usize> {
    (0..all).filter(|j| constant.binary_search(j).is_err()).collect()
}

/// Whether labels are taken for the names of classes, and not for numbers to fit: they are two different labels of any
/// kind, or at most [`MOST_CLASSES`] different texts or whole numbers, of the latter each with [`FEWEST_OF_CLASS`]
/// records on average: counts and points in a small file are no classes. `classes` has the different labels, each with
/// the number of its records; missing ones are none of them.
fn is_classes(labels: &Column, classes: &[(String, usize)]) -> bool {
    let records: usize = classes.iter().map(|(_, records)| *records).sum();
    let may_be_classes = match labels {
        Column::Text(texts) => !are_numbers_with_decimals_and_texts(texts),
        _ => labels.numbers().is_none_or(|values| {
            values.iter().all(|x| x.is_nan() || x.fract() == 0.0)
                && records >= FEWEST_OF_CLASS * classes.len()
        }),
    };
    classes.len() == 2 || classes.len() <= MOST_CLASSES && may_be_classes
}

/// Whether most of some texts are numbers, at least one of them with decimals: then they are no names of classes, but
/// numbers of which a few could not be written as such, as "<0.006".
fn are_numbers_with_decimals_and_texts(texts: &[String]) -> bool {
    let has_decimals =
        |text: &String| text.parse::<f64>().is_ok_and(|x| !x.is_nan() && x.fract() != 0.0);
    Exceptions::among_numbers(texts).is_some() && texts.iter().any(has_decimals)
}

/// The first [`MOST_NAMED`] of some texts in one line, and how many there are if there are more.
fn first_names(all: &[String]) -> String {
    let shown = all[..all.len().min(MOST_NAMED)].join(", ");
    if all.len() > MOST_NAMED { format!("{shown}, … ({} in all)", all.len()) } else { shown }
}
