//! What records must be so that they can be compared and averaged.

use super::columns::written;
use super::records::Records;
use super::settings::{Dataset, MissingValues, Split, TestRecords};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Column, sanitised};
use crate::problem::fault::{Fault, MOST_DIMENSIONS};
use crate::words::count;

impl Dataset {
    /// An error if there are too many features for d × d matrices.
    pub(super) fn check_dimension(&self, d: usize) -> Result<(), Fault> {
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        Ok(())
    }

    /// An error unless there are features and records, every record is complete and all numbers are finite: others could
    /// be neither compared nor averaged. A feature that `missing = "mean"` fills in may be missing.
    pub(super) fn check_records(&self, records: &Records) -> Result<(), Fault> {
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
        self.check_lengths(records, count)?;
        self.check_labels(records)?;
        let fills = self.missing == Some(MissingValues::Mean) && records.sparse.is_none();
        let wrong = records.find_value(|x| !(x.is_finite() || fills && x.is_nan()));
        let Some(((row, column), value)) = wrong else { return Ok(()) };
        let place = self.file.place(row, count);
        let message = match records.names.get(column) {
            Some(name) => format!("{place}, column `{}`: {value} is not finite", sanitised(name)),
            None => format!("{place}, feature {column} from 0: {value} is not a finite number"),
        };
        Err(self.fault(message))
    }

    /// An error unless every column has as many values as there are rows, one or more.
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

    /// An error if the square of a feature is not finite, as second derivatives of losses have to be.
    pub(super) fn check_squares(&self, records: &Records) -> Result<(), Fault> {
        let found = records.find_value(|x| !(x * x).is_finite());
        let Some(((row, column), value)) = found else { return Ok(()) };
        let in_column = match records.names.get(column) {
            Some(name) => format!(" in column `{}`", sanitised(name)),
            None => String::new(),
        };
        Err(self.fault(format!(
            "feature [row, column] = [{row}, {column}], counted from 0 among the records of the clients, is {value:e}{in_column}; its square is beyond double precision: give the feature another unit"
        )))
    }

    /// An error if a record has no label, no client where a column names them, or no mark where a
    /// column marks the test set; or if one of these is an infinite number.
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
                // Only the records of a table can be dropped by a key.
                return Err(self.fault(if records.names.is_empty() {
                    let place = self.file.place(row, column.len());
                    format!("{place}: the {what} is missing")
                } else {
                    self.lacks_label(row, what, name, column)
                }));
            }
            let infinite =
                column.numbers().and_then(|all| all.iter().position(|x| x.is_infinite()));
            if let Some(row) = infinite {
                let place = self.file.place(row, column.len());
                let value = column.text(row);
                return Err(self.fault(format!("{place}: the {what} is {value}, not finite")));
            }
        }
        Ok(())
    }

    /// That a record of a table lacks what no mean can stand for.
    fn lacks_label(&self, row: usize, what: &str, name: &str, column: &Column) -> String {
        let place = self.file.place(row, column.len());
        let mark = written(column, row);
        let name = sanitised(name);
        let remedy = match self.missing {
            Some(MissingValues::Mean) => {
                "`missing = \"mean\"` fills in features alone: fill this in, or remove the record, or write `missing = \"drop\"`"
            }
            _ => "fill it in, or remove the record, or write `missing = \"drop\"`",
        };
        format!(
            "{place}, column `{name}`: the {what} is missing{mark}; {remedy}{}",
            self.is_no_mark(&mark)
        )
    }
}

impl Records {
    /// The place and the value of the first feature like this.
    fn find_value(&self, wanted: impl Fn(&f64) -> bool) -> Option<((usize, usize), f64)> {
        let values = self.sparse.as_ref().map_or(&*self.features, SparseRows::values);
        let entry = values.iter().position(wanted)?;
        let place = match &self.sparse {
            Some(rows) => rows.place(entry),
            None => (entry / self.d, entry % self.d),
        };
        Some((place, values[entry]))
    }
}
