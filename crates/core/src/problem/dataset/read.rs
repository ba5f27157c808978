//! From a file's contents to records, with every error at its key, column and row.

use super::columns::written;
use super::records::Records;
use super::settings::{Dataset, Split, Storage, TestRecords, is_label};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Array, Column, Contents, Files, no_column, sanitised};
use crate::problem::column::{Exceptions, is_mark};
use crate::problem::fault::Fault;
use crate::rng::{Purpose, Stream};
use std::collections::BTreeMap;

impl Dataset {
    /// A fault of the file, whose message begins with its path.
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
    pub(super) fn is_no_mark(&self, mark: &str) -> &'static str {
        if mark.is_empty() { "" } else { "; if it is a value, write it as another text" }
    }

    /// Reads the records that clients hold, and the records of the test set: with features that are dense
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
        let contents =
            files.open(&self.file).map_err(|e| Fault::new("dataset.file", e.to_string()))?;
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
        self.prepare(records, seed)
    }

    /// Makes features ready for use: missing values are filled in, and features are standardised and get
    /// an intercept if the settings say so. Returns the records that clients hold, and the test set.
    pub(super) fn prepare(
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

    /// Splits records into those that clients hold and the test set, if there is one.
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
        let (test, own): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| held_out[i]);
        if own.is_empty() || test.is_empty() {
            let message = format!(
                "leaves {} of {n} records to the clients and {} to test",
                own.len(),
                test.len()
            );
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
        let (d, features) = x;
        let file = self.file.path.clone();
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

    /// The array of this name of an .npz file; an error if it is missing or has another number of
    /// axes.
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

    /// The array of this name, which has one axis, as a column of numbers.
    fn number_column(&self, arrays: &BTreeMap<String, Array>, name: &str) -> Result<Column, Fault> {
        Ok(Column::Numbers(self.array(arrays, name, 1)?.data.clone()))
    }

    /// The records of an .npz file with these features.
    pub(super) fn read_columns(
        &self,
        arrays: &BTreeMap<String, Array>,
        x: (usize, Vec<f64>),
    ) -> Result<Records, Fault> {
        self.refuse_column_names("an .npz file")?;
        let labels = self.number_column(arrays, "y")?;
        let [groups, marks] = self.further_columns(|_, name| self.number_column(arrays, name))?;
        Ok(Records { groups, marks, ..self.records(Vec::new(), x, labels) })
    }

    /// An error if `label` or `features` is set for a file that has no named columns.
    pub(super) fn refuse_column_names(&self, kind_of_file: &str) -> Result<(), Fault> {
        let key = if !is_label(&self.label) {
            "dataset.label"
        } else if !self.features.is_empty() {
            "dataset.features"
        } else {
            return Ok(());
        };
        Err(Fault::new(key, format!("names columns, but {kind_of_file} has none; leave it out")))
    }

    /// The records of a table, whose columns the settings name.
    fn read_table(&self, columns: &[(String, Column)]) -> Result<Records, Fault> {
        let labels = self.find_column("dataset.label", &self.label, columns)?;
        let further = self.further_columns(|key, name| self.find_column(key, name, columns))?;
        let names: Vec<&String> = if self.features.is_empty() {
            self.default_features(columns)
        } else {
            self.features.iter().collect()
        };
        self.check_names(&names)?;
        if let Some(other) = self.categorical.iter().find(|name| !names.contains(name)) {
            self.find_column("dataset.categorical", other, columns)?;
            return Err(Fault::new(
                "dataset.categorical",
                format!("names `{other}`, which is no feature"),
            ));
        }
        let mut chosen = Vec::with_capacity(names.len());
        for name in &names {
            let column = self.find_column("dataset.features", name, columns)?;
            chosen.extend(self.features_of(name, column)?);
        }
        self.check_dimension(chosen.len())?;
        let features =
            (0..labels.len()).flat_map(|i| chosen.iter().map(move |(_, c)| c[i])).collect();
        // As they would be without the records that lack a value.
        let labels = labels.with_marks_read().into_owned();
        let [groups, marks] =
            further.map(|column| column.map(|column| column.with_marks_read().into_owned()));
        let size = chosen.len();
        let feature_names: Vec<String> = chosen.into_iter().map(|(name, _)| name).collect();
        let records = self.records(feature_names, (size, features), labels);
        Ok(self.dropped(Records { groups, marks, ..records }))
    }

    /// The column of this name, which the setting `key` names.
    fn find_column<'a>(
        &self,
        key: &'static str,
        name: &str,
        columns: &'a [(String, Column)],
    ) -> Result<&'a Column, Fault> {
        let found = columns.iter().find(|(have, _)| have == name).map(|(_, column)| column);
        found.ok_or_else(|| self.unknown_column(key, name, columns))
    }

    /// The fault of a setting that names a column which the file lacks.
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
        if let Some(few) = Exceptions::among_numbers(values) {
            return self.fault(format!(
                "column `{name}` is not a feature: it holds {}; replace these, or list the `features` that are meant",
                few.describe(values, |row| self.file.place(row, values.len()))
            ));
        }
        let first_text =
            values.iter().position(|value| !is_mark(value) && value.parse::<f64>().is_err());
        if let Some(row) = first_text {
            return self.fault(format!(
                "column `{name}` is not a feature: {} is \"{}\", not a number; list the `features` that are meant, and this one under `categorical` if it holds categories",
                self.file.place(row, values.len()),
                sanitised(&values[row])
            ));
        }
        let Some(value) = values.first() else { return self.fault("there are no records") };
        self.fault(format!(
            "column `{name}` is not a feature: it holds numbers as text, such as \"{}\" in row 0; convert it to a column of numbers",
            sanitised(value)
        ))
    }
}

impl Records {
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
