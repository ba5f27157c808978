//! What records must be so that they can be compared and averaged, checked after they are read.

use super::columns::mark_in_message;
use super::records::Records;
use super::settings::{Dataset, MissingValues, Split, TestRecords};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Column, Contents, sanitised};
use crate::problem::fault::{Fault, MOST_DIMENSIONS};
use crate::words::count;

/// The value of a feature of a record, and its place among the records.
struct PlacedValue {
    row: usize,
    column: usize,
    value: f64,
}

/// A value of a feature whose square is beyond double precision.
struct LargeValue {
    /// Its row among all records of the file, from 0.
    row: usize,
    /// The number of records of the file.
    rows: usize,
    /// How a message names the feature.
    feature: String,
    value: f64,
}

/// What can be done about a value that is infinite.
const REMEDY_OF_INFINITE: &str =
    "replace it by a number or, if it marks a missing value, by NaN, or remove the record";

/// Whether a number has no finite square, although it is finite itself.
fn has_no_square(x: &f64) -> bool {
    x.is_finite() && !(x * x).is_finite()
}

impl Dataset {
    /// An error if there are `d` features, too many for d × d matrices.
    pub(super) fn check_dimension(&self, d: usize) -> Result<(), Fault> {
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        Ok(())
    }

    /// An error unless there are features and records, every record is complete and all numbers are finite:
    /// other records could be neither compared nor averaged. `records` are all of the file, without those that
    /// `missing = "drop"` drops, before the test set is held out. A value that `missing = "mean"` fills in later may
    /// be NaN.
    pub(super) fn check_records(&self, records: &Records) -> Result<(), Fault> {
        self.check_shape(records)?;
        self.check_labels(records)?;
        let fills = self.missing == Some(MissingValues::Mean);
        let wrong = records.find_value(|x| !(x.is_finite() || fills && x.is_nan()));
        let Some(PlacedValue { row, column, value }) = wrong else { return Ok(()) };
        let place = self.place_of_record(records, row);
        let feature = match records.names.get(column) {
            Some(name) => format!("column `{}`", sanitised(name)),
            None => format!("feature {column} from 0"),
        };
        // Missing values of named columns are reported when the columns are read.
        let remedy = if value.is_nan() {
            "fill it in, or remove the record, or write `missing = \"mean\"` or `\"drop\"`"
        } else {
            REMEDY_OF_INFINITE
        };
        Err(self.fault(format!("{place}, {feature}: {value} is not a finite number; {remedy}")))
    }

    /// An error unless there are features and records, not too many features, and as many values of every column as
    /// rows of features. Values may be missing.
    pub(super) fn check_shape(&self, records: &Records) -> Result<(), Fault> {
        if records.d == 0 {
            return Err(self.fault("there is no feature"));
        }
        let count = match &records.sparse {
            Some(rows) => rows.len(),
            None => {
                self.check_dimension(records.d)?;
                records.features.len() / records.d
            }
        };
        self.check_lengths(records, count)
    }

    /// An error unless there are rows of features, `n` of them, and the labels, the column of the split and the
    /// column of the test set have as many values. Arrays of a file may differ in length; columns of a table do not.
    fn check_lengths(&self, records: &Records, n: usize) -> Result<(), Fault> {
        let columns = [
            ("labels", Some(&records.labels)),
            ("split's values", records.groups.as_ref()),
            ("marks of the test set", records.marks.as_ref()),
        ];
        for (name, column) in columns {
            if let Some(column) = column.filter(|column| column.len() != n) {
                let rows = count(n, "row");
                let have = column.len();
                return Err(self.fault(format!("the features have {rows}, the {name} {have}")));
            }
        }
        if n == 0 {
            return Err(self.fault("there are no records"));
        }
        Ok(())
    }

    /// An error if the square of a feature's value is not finite, since second derivatives of losses have such squares.
    /// `records` are those that clients hold, once values are filled in and features are standardised; the test set has
    /// no derivatives.
    pub(super) fn check_squares(&self, records: &Records) -> Result<(), Fault> {
        let found = records.find_value(|x| !(x * x).is_finite());
        let Some(PlacedValue { row, column, value }) = found else { return Ok(()) };
        let place = self.place_of_record(records, row);
        let feature = match records.names.get(column) {
            Some(name) => format!("column `{}`", sanitised(name)),
            None => format!("feature {column} from 0"),
        };
        Err(self.fault(format!(
            "{place}, {feature}: the square of {value:e} is beyond double precision; give the feature another unit or, if this marks a missing value, write NaN"
        )))
    }

    /// A sentence on the first value of a feature whose square is beyond double precision, in the order of columns or,
    /// in a file without columns, of records; `None` if there is no such value. Such a value is allowed where features
    /// are standardised, but is more likely to mark a missing one.
    pub(super) fn remark_on_large_value(&self, contents: &Contents) -> Option<String> {
        let LargeValue { row, rows, feature, value } = match contents {
            Contents::Table(columns) => self.large_value_of_table(columns)?,
            Contents::Arrays(arrays) => {
                let x = arrays.get("x")?;
                let [rows, d] = x.shape[..] else { return None };
                let numbers = x.numbers().ok()?;
                let entry = numbers.iter().position(has_no_square)?;
                let feature = format!("feature {} from 0", entry % d);
                LargeValue { row: entry / d, rows, feature, value: numbers[entry] }
            }
            Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
                let entry = features.values().iter().position(has_no_square)?;
                let (row, j) = features.place(entry);
                let feature = format!("feature {j} from 0");
                LargeValue { row, rows: features.len(), feature, value: features.values()[entry] }
            }
        };
        let path = sanitised(&self.file.path);
        let place = self.data_file().place(row, rows);
        Some(format!(
            "{path}: {place}, {feature}: the square of {value:e} is beyond double precision; if this marks a missing value, write NaN"
        ))
    }

    /// The first value of a feature of a table whose square is beyond double precision, column by column.
    fn large_value_of_table(&self, columns: &[(String, Column)]) -> Option<LargeValue> {
        let features: Vec<&String> = match self.features.as_slice() {
            [] => self.default_features(columns),
            listed => listed.iter().collect(),
        };
        for (name, column) in columns.iter().filter(|(name, _)| features.contains(&name)) {
            let read = column.with_marks_read();
            let numbers = read.numbers().unwrap_or_default();
            if let Some(row) = numbers.iter().position(has_no_square) {
                let feature = format!("column `{}`", sanitised(name));
                return Some(LargeValue { row, rows: column.len(), feature, value: numbers[row] });
            }
        }
        None
    }

    /// An error if a record has no label, no client where a column names the clients, or no mark where a column
    /// marks the test set; or if one of these is an infinite number. Records that `missing = "drop"` drops are gone
    /// already.
    fn check_labels(&self, records: &Records) -> Result<(), Fault> {
        let client = match &self.split {
            Split::Column(name) => name,
            _ => "",
        };
        let mark = match &self.test {
            Some(TestRecords::Column(name)) => name,
            _ => "",
        };
        let columns = [
            ("label", &*self.label, Some(&records.labels)),
            ("name of the client", client, records.groups.as_ref()),
            ("mark of the test set", mark, records.marks.as_ref()),
        ];
        for (what, name, column) in columns {
            let Some(column) = column else { continue };
            if let Some(row) = column.missing().into_iter().position(|is_missing| is_missing) {
                let place = self.place_of_record(records, row);
                // Files without names of columns have no column of this name.
                let in_column = if records.names.is_empty() {
                    place
                } else {
                    format!("{place}, column `{}`", sanitised(name))
                };
                return Err(self.missing_label_fault(&in_column, row, what, column));
            }
            let infinite =
                column.numbers().and_then(|all| all.iter().position(|x| x.is_infinite()));
            if let Some(row) = infinite {
                let place = self.place_of_record(records, row);
                let value = column.text(row);
                return Err(self.fault(format!(
                    "{place}: the {what} is {value}, not finite; {REMEDY_OF_INFINITE}"
                )));
            }
        }
        Ok(())
    }

    /// The fault that record number `row` of the file lacks its label, client or mark, which no mean can replace, with
    /// what to do. `place` says where in the file that is, and `what` which of the three it is.
    fn missing_label_fault(&self, place: &str, row: usize, what: &str, column: &Column) -> Fault {
        let mark = mark_in_message(column, row);
        let remedy = match self.missing {
            Some(MissingValues::Mean) => {
                "`missing = \"mean\"` fills in features alone: fill this in, or remove the record, or write `missing = \"drop\"`"
            }
            _ => "fill it in, or remove the record, or write `missing = \"drop\"`",
        };
        self.fault(format!(
            "{place}: the {what} is missing{mark}; {remedy}{}",
            self.mark_hint(&mark)
        ))
    }
}

impl Records {
    /// The first value of a feature that is `wanted`, record by record; of sparse records only the stored values
    /// are looked at. `None` if there is none.
    fn find_value(&self, wanted: impl Fn(&f64) -> bool) -> Option<PlacedValue> {
        let values = self.sparse.as_ref().map_or(&*self.features, SparseRows::values);
        let entry = values.iter().position(wanted)?;
        let (row, column) = match &self.sparse {
            Some(rows) => rows.place(entry),
            None => (entry / self.d, entry % self.d),
        };
        Some(PlacedValue { row, column, value: values[entry] })
    }
}
