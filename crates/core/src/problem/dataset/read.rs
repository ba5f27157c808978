//! From a file's contents to records, with every error at its key, column and row.

use super::columns::mark_in_message;
use super::records::{CategoryColumn, Records};
use super::settings::{Dataset, Split, Storage, TestRecords, is_default_label};
use crate::kernel::SparseRows;
use crate::problem::arrays::{Array, Column, Contents, FileFormat, Files, no_column, sanitised};
use crate::problem::column::{Exceptions, is_mark};
use crate::problem::fault::Fault;
use std::collections::BTreeMap;

/// The forms of features that a problem takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureForms {
    /// Dense features alone: sparse ones of a file are made dense.
    Dense,
    /// Dense or sparse features, as [`Dataset::storage`] says.
    DenseOrSparse,
}

impl Dataset {
    /// The fault that something is wrong with the file, for the key `dataset.file`; its message begins with the
    /// path of the file.
    pub(super) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new("dataset.file", format!("{}: {message}", self.file.path))
    }

    /// Where a message says that record i of `records` is in the file, from which some records may be dropped already:
    /// "line 7", counted from 1, or "row 5", counted from 0.
    pub(super) fn place_of_record(&self, records: &Records, i: usize) -> String {
        self.data_file().place(records.file_row(i), records.file_records)
    }

    /// The fault that the value of a feature is missing in a row and the settings do not say what to do then; its
    /// message says what can be done. `column` is the whole column of the file, so that `row` is the file's, from 0.
    pub(super) fn missing_feature_fault(&self, row: usize, name: &str, column: &Column) -> Fault {
        let place = self.data_file().place(row, column.len());
        let mark = mark_in_message(column, row);
        let name = sanitised(name);
        self.fault(format!(
            "{place}, column `{name}`: the value is missing{mark}; fill it in, or remove the record, or write `missing = \"mean\"` or `\"drop\"`{}",
            self.mark_hint(&mark)
        ))
    }

    /// The end of a message about a missing value: what to do if `mark`, the text by which the file marks it, was
    /// meant as a value. Nothing if there is no such text.
    pub(super) fn mark_hint(&self, mark: &str) -> &'static str {
        if mark.is_empty() { "" } else { "; if it is a value, write it as another text" }
    }

    /// Reads all records of the file but those that the settings drop because a value is missing, and checks them.
    /// Their features are as the file has them: those of a file of dense features are dense, also if they shall be
    /// stored sparse, which [`prepare_features`](Self::prepare_features) does once no value is missing any more.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, or sparse features in the
    /// settings where they must be dense.
    pub(super) fn read_file(
        &self,
        files: &dyn Files,
        takes: FeatureForms,
    ) -> Result<Records, Fault> {
        let takes_sparse = takes == FeatureForms::DenseOrSparse;
        if self.storage == Some(Storage::Sparse) && !takes_sparse {
            let message = "this problem has no sparse features; only `logistic-dataset` has them";
            return Err(Fault::new("dataset.storage", message));
        }
        let contents =
            files.open(&self.data_file()).map_err(|e| Fault::new("dataset.file", e.to_string()))?;
        let all = match &*contents {
            Contents::Table(columns) => self.read_table(columns)?,
            Contents::Arrays(arrays) => {
                let x = self.array_of_axes(arrays, "x", 2)?;
                let numbers = x.numbers().map_err(|e| self.fault(format!("`x`: {e}")))?;
                self.read_arrays(arrays, x.shape[1], numbers.to_vec())?
            }
            Contents::Records { features, .. } | Contents::SparseArrays { features, .. } => {
                let storage = self.storage.unwrap_or_else(|| self.default_storage(features));
                let (dense, sparse) = if takes_sparse && storage == Storage::Sparse {
                    (Vec::new(), Some(features.clone()))
                } else {
                    self.check_dense(features)?;
                    (features.to_dense(), None)
                };
                Records {
                    features: dense,
                    sparse,
                    ..self.read_without_features(&contents, features.dim())?
                }
            }
        };
        let records = self.without_incomplete(all)?;
        self.check_records(&records)?;
        Ok(records)
    }

    /// Holds out the test set, the records that are `held_out`, and makes features ready for use: missing values are filled in, and features are
    /// standardised, get an intercept and are stored sparse, as far as the settings say so. Returns the records that
    /// clients hold, and the test set, `None` without one.
    pub(super) fn prepare_features(
        &self,
        records: Records,
        held_out: Option<&[bool]>,
    ) -> Result<(Records, Option<Records>), Fault> {
        let (mut records, mut test) = self.hold_out(records, held_out)?;
        self.fill_in_means(&mut records, test.as_mut())?;
        if self.standardise {
            self.standardise(&mut records, test.as_mut())?;
        }
        self.check_squares(&records)?;
        if self.intercept {
            records.append_ones();
            test.iter_mut().for_each(Records::append_ones);
        }
        // A mean that is filled in is seldom 0, so that the numbers other than 0 are known only here.
        if self.storage == Some(Storage::Sparse) {
            records.store_sparse();
            test.iter_mut().for_each(Records::store_sparse);
        }
        Ok((records, test))
    }

    /// Splits records into those that clients hold and the test set, the records that are `held_out`; `None` if the
    /// settings ask for none. Both parts keep the order of the file.
    ///
    /// # Errors
    /// If one of the two parts would be empty.
    pub(super) fn hold_out(
        &self,
        records: Records,
        held_out: Option<&[bool]>,
    ) -> Result<(Records, Option<Records>), Fault> {
        let Some(held_out) = held_out else { return Ok((records, None)) };
        let n = records.count();
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

    /// Whether the column of the test set marks the record in a row as one of the test set.
    ///
    /// # Errors
    /// A value that is none of 1, 0, true and false, in any case. The message is right where `marks` is the whole
    /// column of the file; where records are dropped, the marks are asked before that.
    pub(super) fn is_marked(&self, marks: &Column, row: usize) -> Result<bool, Fault> {
        match marks.text(row).to_ascii_lowercase().as_str() {
            "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            other => {
                let file = &self.file.path;
                let other = sanitised(other);
                let place = self.data_file().place(row, marks.len());
                let message = format!(
                    "{file}: {place} of the column of the test set is \"{other}\"; it must be 1 or 0, true or false"
                );
                Err(Fault::new("dataset.test", message))
            }
        }
    }

    /// All records of the file, none of which is dropped yet, with these features, rows of `d` numbers, and labels, but
    /// without a column that names their clients or marks the test set: the caller adds these.
    pub(super) fn bare_records(
        &self,
        names: Vec<String>,
        d: usize,
        features: Vec<f64>,
        labels: Column,
    ) -> Records {
        Records {
            d,
            names,
            features,
            sparse: None,
            categories: Vec::new(),
            file_records: labels.len(),
            labels,
            groups: None,
            marks: None,
            file: self.file.path.clone(),
            file_rows: None,
        }
    }

    /// The column that names the client of each record and the column that marks the test set, as far as the
    /// settings name them. `find` looks a column up by the name, and is given the key of the setting for its error.
    pub(super) fn split_and_test_columns<C>(
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

    /// The array of this name of an .npz file; an error if it is missing, or does not have this number of axes.
    fn array_of_axes<'a>(
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

    /// The array of this name, which has one axis, as a column of numbers or texts.
    fn column_of_array(
        &self,
        arrays: &BTreeMap<String, Array>,
        name: &str,
    ) -> Result<Column, Fault> {
        let array = self.array_of_axes(arrays, name, 1)?;
        array.column().map_err(|e| self.fault(format!("`{}`: {e}", sanitised(name))))
    }

    /// The records of an .npz file, with these features, rows of `d` numbers, and the labels (array `y`) and further
    /// columns from its arrays, which have one axis each. `features` are empty where the caller stores them sparse.
    ///
    /// # Errors
    /// An array that is missing, has another number of axes or holds dates or objects, or settings that name columns,
    /// which such a file has not.
    pub(super) fn read_arrays(
        &self,
        arrays: &BTreeMap<String, Array>,
        d: usize,
        features: Vec<f64>,
    ) -> Result<Records, Fault> {
        self.refuse_column_names("an .npz file")?;
        let labels = self.column_of_array(arrays, "y")?;
        let [groups, marks] =
            self.split_and_test_columns(|_, name| self.column_of_array(arrays, name))?;
        Ok(Records { groups, marks, ..self.bare_records(Vec::new(), d, features, labels) })
    }

    /// An error if `label`, `features` or `categorical` differs from its default, for a file that has no named columns;
    /// the fault is at the first such key. `kind_of_file` names the file in the message, as "an .npz file" does. A key
    /// that is written with its default value passes, since it cannot be told from one that is left out.
    pub(super) fn refuse_column_names(&self, kind_of_file: &str) -> Result<(), Fault> {
        let key = if !is_default_label(&self.label) {
            "dataset.label"
        } else if !self.features.is_empty() {
            "dataset.features"
        } else if !self.categorical.is_empty() {
            "dataset.categorical"
        } else {
            return Ok(());
        };
        Err(Fault::new(key, format!("names columns, but {kind_of_file} has none; leave it out")))
    }

    /// The records of a table, whose columns the settings name. A value that is missing is NaN.
    fn read_table(&self, columns: &[(String, Column)]) -> Result<Records, Fault> {
        let labels = self.find_column("dataset.label", &self.label, columns)?;
        let further =
            self.split_and_test_columns(|key, name| self.find_column(key, name, columns))?;
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
        let mut categories = Vec::new();
        for name in &names {
            let column = self.find_column("dataset.features", name, columns)?;
            let begin = chosen.len();
            chosen.extend(self.features_of_column(name, column)?);
            if self.categorical.contains(name) {
                categories.push(CategoryColumn {
                    name: (*name).clone(),
                    indicators: begin..chosen.len(),
                    numbers: self.numbers_in_message(column),
                });
            }
        }
        self.check_dimension(chosen.len())?;
        let features =
            (0..labels.len()).flat_map(|i| chosen.iter().map(move |(_, c)| c[i])).collect();
        // Marks of missing values do not make texts of numbers: the records that have them may be dropped.
        let labels = labels.with_marks_read().into_owned();
        let [groups, marks] =
            further.map(|column| column.map(|column| column.with_marks_read().into_owned()));
        let d = chosen.len();
        let feature_names: Vec<String> = chosen.into_iter().map(|(name, _)| name).collect();
        let bare = self.bare_records(feature_names, d, features, labels);
        Ok(Records { groups, marks, categories, ..bare })
    }

    /// The column of this name, which the setting `key` names; an error for this key if there is none.
    fn find_column<'a>(
        &self,
        key: &'static str,
        name: &str,
        columns: &'a [(String, Column)],
    ) -> Result<&'a Column, Fault> {
        let found = columns.iter().find(|(have, _)| have == name).map(|(_, column)| column);
        let column = found.ok_or_else(|| self.unknown_column(key, name, columns))?;
        match column {
            Column::Unread { kind, .. } => Err(self.unread_column(key, name, kind)),
            _ => Ok(column),
        }
    }

    /// The fault of a setting that names a column of values that can be no data, or of the features that all columns
    /// are by default, which `key` is then too.
    fn unread_column(&self, key: &'static str, name: &str, kind: &str) -> Fault {
        let name = sanitised(name);
        if key == "dataset.features" && self.features.is_empty() {
            return self.fault(format!(
                "column `{name}` is not a feature: it is of type {kind}; list the `features` that are meant, or convert it to numbers or text"
            ));
        }
        let path = &self.file.path;
        Fault::new(
            key,
            format!(
                "{path}: column `{name}` is of type {kind}; expected numbers or text: convert it"
            ),
        )
    }

    /// The fault of a setting that names a column which the file lacks; of the file itself if it has no columns at all.
    fn unknown_column(&self, key: &'static str, name: &str, columns: &[(String, Column)]) -> Fault {
        if columns.is_empty() {
            return self.fault("there are no columns");
        }
        Fault::new(key, no_column(name, &format!(" in {}", self.file.path), columns))
    }

    /// An error if the features of these names are too many, one is named twice, or one is the label. The columns of
    /// the split and of the test set may be named, and are then features too.
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

    /// The fault that a column, which would be a feature, holds texts. Its message says which: a few exceptions among
    /// numbers, words from the first row that has one on, or numbers that the file has as text.
    pub(super) fn not_numeric(&self, name: &str, column: &Column) -> Fault {
        let (Column::Text(values), name) = (column, sanitised(name)) else {
            return self.fault(format!("column `{}` is not a feature", sanitised(name)));
        };
        if let Some(few) = Exceptions::among_numbers(values) {
            return self.fault(format!(
                "column `{name}` is not a feature: it holds {}; replace these, or list the `features` that are meant",
                few.describe(values, |row| self.data_file().place(row, values.len()))
            ));
        }
        let first_text =
            values.iter().position(|value| !is_mark(value) && value.parse::<f64>().is_err());
        if let Some(row) = first_text {
            let place = self.data_file().place(row, values.len());
            let value = sanitised(&values[row]);
            if self.data_file().format() == Some(FileFormat::Csv)
                && has_comma_among_digits(&values[row])
            {
                return self.fault(format!(
                    "column `{name}` is not a feature: {place} is \"{value}\", not a number; state `decimal = \",\"` if the comma begins the decimals, or `thousands = \",\"` if it divides groups of digits"
                ));
            }
            return self.fault(format!(
                "column `{name}` is not a feature: {place} is \"{value}\", not a number; list the `features` that are meant, and this one under `categorical` if it holds categories"
            ));
        }
        let Some(value) = values.first() else { return self.fault("there are no records") };
        self.fault(format!(
            "column `{name}` is not a feature: it holds numbers as text, such as \"{}\" in row 0; convert it to a column of numbers",
            sanitised(value)
        ))
    }
}

/// Whether a text would be a number without its commas, as "0,5" and "1,250.5".
fn has_comma_among_digits(text: &str) -> bool {
    text.contains(',') && text.replace(',', "").parse::<f64>().is_ok()
}

impl Records {
    /// The records in these rows, in this order.
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
            categories: self.categories.clone(),
            labels: self.labels.take(rows),
            groups: self.groups.as_ref().map(|groups| groups.take(rows)),
            marks: self.marks.as_ref().map(|marks| marks.take(rows)),
            file: self.file.clone(),
            file_records: self.file_records,
            file_rows: Some(rows.iter().map(|&i| self.file_row(i)).collect()),
        }
    }

    /// Adds a feature at the end that is always 1, the intercept; then d is one more. `names` gets no name for it.
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

    /// Stores features sparse that are stored dense; others are left as they are.
    fn store_sparse(&mut self) {
        if self.sparse.is_none() {
            let dense = std::mem::take(&mut self.features);
            self.sparse = Some(SparseRows::from_dense(self.d, &dense));
        }
    }
}
