//! From a file's contents to records, with every error at its key, column and row.

use super::columns::written;
use super::records::Records;
use super::settings::{Dataset, MissingValues, Split, Storage, TestRecords, is_label};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Array, Column, Contents, Files, no_column, sanitised};
use crate::problem::column::{Exceptions, is_mark};
use crate::problem::fault::{Fault, MOST_DIMENSIONS};
use crate::rng::{Purpose, Stream};
use crate::words::count;
use std::collections::BTreeMap;

/// The most features that a message names.
const MOST_NAMED: usize = 8;

impl Dataset {
    pub(super) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new("dataset.file", format!("{}: {message}", self.file.path))
    }

    /// The fault of a value of a feature that is missing.
    pub(super) fn lacks(&self, row: usize, name: &str, column: &Column) -> Fault {
        let place = self.file.place(row, column.len());
        let mark = written(column, row);
        let name = sanitised(name);
        self.fault(format!(
            "{place}, column `{name}`: the value is missing{mark}; fill it in, or remove the record, or write `missing = \"mean\"` or `\"drop\"`{}",
            self.is_no_mark(&mark)
        ))
    }

    /// What to do if a text that is a mark of a missing value was meant as a value.
    fn is_no_mark(&self, mark: &str) -> &'static str {
        if mark.is_empty() { "" } else { "; if it is a value, write it as another text" }
    }

    /// Reads the records that clients hold, and those of the test set: with features that are dense
    /// or, where the problem `takes_sparse` ones, as [`Dataset::storage`] says.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, or sparse features in the
    /// settings where they must be dense.
    pub(super) fn open(
        &self,
        files: &dyn Files,
        seed: u64,
        takes_sparse: bool,
    ) -> Result<(Records, Option<Records>), Fault> {
        let wants_sparse = self.storage == Some(Storage::Sparse);
        if wants_sparse && !takes_sparse {
            let message = "this problem has no sparse features; only `logistic-dataset` has them";
            return Err(Fault::new("dataset.storage", message));
        }
        let contents = files.open(&self.file).map_err(|e| Fault::new("dataset.file", e))?;
        let mut records = match &*contents {
            Contents::Table(columns) => self.read_table(columns)?,
            Contents::Arrays(arrays) => {
                let x = self.array(arrays, "x", 2)?;
                self.read_columns(arrays, (x.shape[1], x.data.clone()))?
            }
            Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
                let storage = self.storage.unwrap_or_else(|| self.default_storage(features));
                let (dense, sparse) = if takes_sparse && storage == Storage::Sparse {
                    (Vec::new(), Some(features.clone()))
                } else {
                    self.check_dense(features)?;
                    (features.to_dense(), None)
                };
                Records { features: dense, sparse, ..self.read_labels(&contents, features.dim())? }
            }
        };
        self.check_records(&records)?;
        if wants_sparse && records.sparse.is_none() {
            let dense = std::mem::take(&mut records.features);
            records.sparse = Some(SparseRows::from_dense(records.d, &dense));
        }
        self.prepared(records, seed)
    }

    /// The records that clients hold, and those of the test set, with features ready for use.
    pub(super) fn prepared(
        &self,
        records: Records,
        seed: u64,
    ) -> Result<(Records, Option<Records>), Fault> {
        let (mut records, mut test) = self.hold_out(records, seed)?;
        self.fill_in(&mut records, test.as_mut())?;
        if self.standardise {
            self.standardise(&mut records, test.as_mut())?;
        }
        self.check_squares(&records)?;
        if self.intercept {
            records.append_ones();
            test.iter_mut().for_each(Records::append_ones);
        }
        Ok((records, test))
    }

    /// The records that clients hold, and those of the test set.
    fn hold_out(&self, records: Records, seed: u64) -> Result<(Records, Option<Records>), Fault> {
        let n = records.count();
        let held_out: Vec<bool> = match (&self.test, &records.marks) {
            (Some(TestRecords::Fraction(fraction)), _) => {
                let count = ((fraction * n as f64 + 0.5) as usize).clamp(1, n);
                // A stream of its own, so that the partition is that of the same records alone.
                let mut rng = Stream::new(seed, Purpose::SharedInstance, 2, 0, 0);
                let mut marks = vec![false; n];
                rng.distinct(n, count).into_iter().for_each(|i| marks[i] = true);
                marks
            }
            (Some(TestRecords::Column(_)), Some(marks)) => {
                (0..n).map(|i| self.is_marked(marks, i)).collect::<Result<_, _>>()?
            }
            _ => return Ok((records, None)),
        };
        let rows = |wanted: bool| (0..n).filter(|&i| held_out[i] == wanted).collect::<Vec<_>>();
        let own = rows(false);
        let test = rows(true);
        if own.is_empty() || test.is_empty() {
            let own = own.len();
            let test = test.len();
            let message = format!("leaves {own} of {n} records to the clients and {test} to test");
            return Err(Fault::new("dataset.test", message));
        }
        Ok((records.take(&own), Some(records.take(&test))))
    }

    /// Whether the column of the test set marks a record.
    fn is_marked(&self, marks: &Column, row: usize) -> Result<bool, Fault> {
        match marks.text(row).to_ascii_lowercase().as_str() {
            "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            other => {
                let file = &self.file.path;
                let other = sanitised(other);
                let place = self.file.place(row, marks.len());
                let message = format!(
                    "{file}: {place} of the column of the test set is \"{other}\"; it must be 1 or 0, true or false"
                );
                Err(Fault::new("dataset.test", message))
            }
        }
    }

    /// Records without columns for the split and the test set.
    pub(super) fn records(
        &self,
        names: Vec<String>,
        x: (usize, Vec<f64>),
        labels: Column,
    ) -> Records {
        let ((d, features), file) = (x, self.file.path.clone());
        Records { d, names, features, sparse: None, labels, groups: None, marks: None, file }
    }

    /// The columns of the split and of the test set, each found by `find` from its key and name.
    pub(super) fn further_columns<C>(
        &self,
        find: impl Fn(&'static str, &str) -> Result<C, Fault>,
    ) -> Result<[Option<C>; 2], Fault> {
        let group = match &self.split {
            Split::Column(name) => Some(find("dataset.split", name)?),
            _ => None,
        };
        let marks = match &self.test {
            Some(TestRecords::Column(name)) => Some(find("dataset.test", name)?),
            _ => None,
        };
        Ok([group, marks])
    }

    fn array<'a>(
        &self,
        arrays: &'a BTreeMap<String, Array>,
        name: &str,
        axes: usize,
    ) -> Result<&'a Array, Fault> {
        match arrays.get(name) {
            Some(array) if array.shape.len() == axes => Ok(array),
            Some(array) => Err(self
                .fault(format!("`{name}` has the shape {:?}; expected {axes} axes", array.shape))),
            None => Err(self.fault(format!("there is no array `{name}`"))),
        }
    }

    /// The records of an .npz file with these features.
    pub(super) fn read_columns(
        &self,
        arrays: &BTreeMap<String, Array>,
        x: (usize, Vec<f64>),
    ) -> Result<Records, Fault> {
        self.refuse_column_names("an .npz file")?;
        let numbers = |name: &str| -> Result<Column, Fault> {
            Ok(Column::Numbers(self.array(arrays, name, 1)?.data.clone()))
        };
        let labels = numbers("y")?;
        let [groups, marks] = self.further_columns(|_, name| numbers(name))?;
        Ok(Records { groups, marks, ..self.records(Vec::new(), x, labels) })
    }

    pub(super) fn check_dimension(&self, d: usize) -> Result<(), Fault> {
        if d > MOST_DIMENSIONS {
            return Err(self.fault(format!(
                "there are {d} features; at most {MOST_DIMENSIONS} are allowed (d × d matrices are made)"
            )));
        }
        Ok(())
    }

    /// An error if there is no feature, or no record, or a number is not finite: it could be neither
    /// compared nor averaged.
    fn check_records(&self, records: &Records) -> Result<(), Fault> {
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
        let wrong = records.find(|x| !(x.is_finite() || fills && x.is_nan()));
        let Some(((row, column), value)) = wrong else { return Ok(()) };
        let place = self.file.place(row, count);
        let wrong = match records.names.get(column) {
            Some(name) => format!("{place}, column `{}`: {value} is not finite", sanitised(name)),
            None => format!("{place}, feature {column} from 0: {value} is not a finite number"),
        };
        Err(self.fault(wrong))
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
    fn check_squares(&self, records: &Records) -> Result<(), Fault> {
        let found = records.find(|x| !(x * x).is_finite());
        let Some(((row, column), value)) = found else { return Ok(()) };
        let name = records.names.get(column);
        let name = name.map_or(String::new(), |name| format!(" in column `{}`", sanitised(name)));
        Err(self.fault(format!(
            "feature [row, column] = [{row}, {column}], counted from 0 among the records of the clients, is {value:e}{name}; its square is beyond double precision: give the feature another unit"
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
            let place = |row| self.file.place(row, column.len());
            if let Some(row) = column.missing().into_iter().position(|is_missing| is_missing) {
                // Only the records of a table can be dropped by a key.
                return Err(self.fault(match records.names.is_empty() {
                    true => format!("{}: the {what} is missing", place(row)),
                    false => self.lacks_label(row, what, name, column),
                }));
            }
            let infinite =
                column.numbers().and_then(|all| all.iter().position(|x| x.is_infinite()));
            if let Some(row) = infinite {
                let value = column.text(row);
                return Err(
                    self.fault(format!("{}: the {what} is {value}, not finite", place(row)))
                );
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

    /// An error if `label` or `features` is set for a file that has no named columns.
    pub(super) fn refuse_column_names(&self, kind_of_file: &str) -> Result<(), Fault> {
        let key = match (is_label(&self.label), self.features.is_empty()) {
            (true, true) => return Ok(()),
            (false, _) => "dataset.label",
            (true, false) => "dataset.features",
        };
        Err(Fault::new(key, format!("names columns, but {kind_of_file} has none; leave it out")))
    }

    fn read_table(&self, columns: &[(String, Column)]) -> Result<Records, Fault> {
        let find = |key: &'static str, name: &str| {
            let found = columns.iter().find(|(have, _)| have == name).map(|(_, column)| column);
            found.ok_or_else(|| self.unknown_column(key, name, columns))
        };
        let labels = find("dataset.label", &self.label)?;
        let further =
            self.further_columns(|key, name: &str| Ok((name.to_owned(), find(key, name)?)))?;
        let names: Vec<&String> = match self.features.is_empty() {
            true => self.default_features(columns),
            false => self.features.iter().collect(),
        };
        self.check_names(&names)?;
        if let Some(other) = self.categorical.iter().find(|name| !names.contains(name)) {
            find("dataset.categorical", other)?;
            return Err(Fault::new(
                "dataset.categorical",
                format!("names `{other}`, which is no feature"),
            ));
        }
        let mut chosen = Vec::with_capacity(names.len());
        for name in &names {
            chosen.extend(self.features_of(name, find("dataset.features", name)?)?);
        }
        self.check_dimension(chosen.len())?;
        let features =
            (0..labels.len()).flat_map(|i| chosen.iter().map(move |(_, c)| c[i])).collect();
        // As they would be without the records that lack a value.
        let read = |column: &Column| column.with_marks_read().into_owned();
        let [groups, marks] = further.map(|further| further.map(|(_, column)| read(column)));
        let size = chosen.len();
        let names: Vec<String> = chosen.into_iter().map(|(name, _)| name).collect();
        let records = self.records(names, (size, features), read(labels));
        Ok(self.dropped(Records { groups, marks, ..records }))
    }

    fn unknown_column(&self, key: &'static str, name: &str, columns: &[(String, Column)]) -> Fault {
        if columns.is_empty() {
            return self.fault("there are no columns");
        }
        Fault::new(key, no_column(name, &format!(" in {}", self.file.path), columns))
    }

    /// An error if there are too many features, one is named twice, or one is the label.
    fn check_names(&self, names: &[&String]) -> Result<(), Fault> {
        self.check_dimension(names.len())?;
        let repeated = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        if let Some((_, name)) = repeated {
            return Err(Fault::new("dataset.features", format!("names `{name}` twice")));
        }
        if names.contains(&&self.label) {
            let message = format!("names `{}`, which is the label column", self.label);
            return Err(Fault::new("dataset.features", message));
        }
        Ok(())
    }

    /// The fault of a column that is no feature because it holds texts.
    pub(super) fn not_numeric(&self, name: &str, column: &Column) -> Fault {
        let (Column::Text(values), name) = (column, sanitised(name)) else {
            return self.fault(format!("column `{}` is not a feature", sanitised(name)));
        };
        let place = |row| self.file.place(row, values.len());
        if let Some(few) = Exceptions::among_numbers(values) {
            return self.fault(format!(
                "column `{name}` is not a feature: it holds {}; replace these, or list the `features` that are meant",
                few.sentence(values, place)
            ));
        }
        self.fault(match (values.iter().position(|value: &String| !is_mark(value) && value.parse::<f64>().is_err()), values.first()) {
            (Some(row), _) => format!(
                "column `{name}` is not a feature: {} is \"{}\", not a number; list the `features` that are meant, and this one under `categorical` if it holds categories",
                place(row),
                sanitised(&values[row])
            ),
            (None, Some(value)) => format!(
                "column `{name}` is not a feature: it holds numbers as text, such as \"{}\" in row 0; convert it to a column of numbers",
                sanitised(value)
            ),
            (None, None) => "there are no records".to_owned(),
        })
    }

    /// The fault of features that are the same in all records.
    fn constant(&self, features: &[usize], records: &Records) -> Fault {
        let name = |j: &usize| match records.names.get(*j) {
            Some(name) => format!("`{}`", sanitised(name)),
            None => j.to_string(),
        };
        let names: Vec<String> = features.iter().take(MOST_NAMED).map(name).collect();
        let more = if features.len() > MOST_NAMED { ", …" } else { "" };
        let names = names.join(", ");
        self.fault(format!(
            "features that are the same in all records of the clients cannot be standardised; leave them out: {names}{more}"
        ))
    }

    /// Shifts and scales features by the mean and variance of the records that clients hold.
    fn standardise(
        &self,
        records: &mut Records,
        mut test: Option<&mut Records>,
    ) -> Result<(), Fault> {
        let d = records.d;
        let n = (records.features.len() / records.d) as f64;
        let mut constant = Vec::new();
        for j in 0..d {
            let column = || records.features.iter().skip(j).step_by(d);
            let mean = column().fold(0.0, |sum, x| sum + x) / n;
            if !mean.is_finite() {
                // The check of squares reports it.
                continue;
            }
            let scale = deviation(column, mean, n);
            if scale.is_nan() || scale <= 1e-12 * mean.abs() {
                constant.push(j);
                continue;
            }
            let all = [Some(&mut *records), test.as_deref_mut()];
            for x in
                all.into_iter().flatten().flat_map(|r| r.features.iter_mut().skip(j).step_by(d))
            {
                *x = (*x - mean) / scale;
            }
        }
        if constant.is_empty() { Ok(()) } else { Err(self.constant(&constant, records)) }
    }
}

/// The standard deviation of n numbers around their mean.
fn deviation<'a, I>(numbers: impl Fn() -> I, mean: f64, n: f64) -> f64
where
    I: Iterator<Item = &'a f64>,
{
    let variance = |unit: f64| {
        let from_mean = numbers().map(|x| (x - mean) / unit);
        from_mean.fold(0.0, |sum, x| sum + x * x) / n
    };
    let plain = variance(1.0);
    if plain.is_normal() {
        return libm::sqrt(plain);
    }
    // Squares that are too small or too large for double precision.
    let unit = numbers().fold(0.0, |most: f64, x| most.max((x - mean).abs()));
    if unit == 0.0 { 0.0 } else { unit * libm::sqrt(variance(unit)) }
}

impl Records {
    /// The place and the value of the first feature like this.
    fn find(&self, wanted: impl Fn(&f64) -> bool) -> Option<((usize, usize), f64)> {
        let values = self.sparse.as_ref().map_or(&*self.features, SparseRows::values);
        let entry = values.iter().position(wanted)?;
        let place = match &self.sparse {
            Some(rows) => rows.place(entry),
            None => (entry / self.d, entry % self.d),
        };
        Some((place, values[entry]))
    }

    /// The records of these rows.
    pub(super) fn take(&self, rows: &[usize]) -> Self {
        let sparse = self.sparse.as_ref().map(|all| all.selected(rows.iter().map(|&i| (i, 1.0))));
        let features = match sparse {
            Some(_) => Vec::new(),
            None => rows.iter().flat_map(|&i| self.row(i).iter().copied()).collect(),
        };
        Self {
            d: self.d,
            names: self.names.clone(),
            features,
            sparse,
            labels: self.labels.take(rows),
            groups: self.groups.as_ref().map(|groups| groups.take(rows)),
            marks: None,
            file: self.file.clone(),
        }
    }

    /// Adds a feature that is always 1.
    fn append_ones(&mut self) {
        match &mut self.sparse {
            Some(rows) => *rows = rows.with_ones(),
            None => {
                let rows = self.features.chunks_exact(self.d);
                self.features = rows.flat_map(|row| row.iter().copied().chain([1.0])).collect();
            }
        }
        self.d += 1;
    }
}
