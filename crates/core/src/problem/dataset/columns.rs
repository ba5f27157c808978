//! Columns of a table as features: categories, values that are missing, and columns that name
//! records.

use super::records::Records;
use super::settings::{Dataset, MissingValues, Split, TestRecords};
use crate::problem::arrays::{Contents, Files, sanitised};
use crate::problem::column::{Column, Exceptions, is_mark, numbers_and_marks, row_indices};
use crate::problem::fault::Fault;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The features that a column makes, one or one for each category, each with its name and its values.
type NamedFeatures<'a> = Vec<(String, Cow<'a, [f64]>)>;

/// The text by which a file marks the missing value in a row, as it is put into a message: ` ("NA")`. It is empty
/// if the field is empty, or a number that is NaN.
pub(super) fn mark_in_message(column: &Column, row: usize) -> String {
    match column {
        Column::Text(texts) if !texts[row].is_empty() => {
            format!(" (\"{}\")", sanitised(&texts[row]))
        }
        _ => String::new(),
    }
}

impl Dataset {
    /// The names of the features where the settings name none: all columns in their order, but those that have
    /// another use, and those that number or name the rows ([`row_indices`]).
    pub(super) fn default_features<'a>(&self, columns: &'a [(String, Column)]) -> Vec<&'a String> {
        let indices = row_indices(columns, |name| self.may_be_index(name));
        let numbered = columns.iter().map(|(name, _)| name).enumerate();
        let features =
            numbered.filter(|(i, name)| !self.has_other_use(name) && !indices.contains(i));
        features.map(|(_, name)| name).collect()
    }

    /// Whether this is the column of the label, the split or the test set, and so no feature by default.
    fn has_other_use(&self, name: &str) -> bool {
        let is_split = matches!(&self.split, Split::Column(column) if column == name);
        let is_test = matches!(&self.test, Some(TestRecords::Column(column)) if column == name);
        name == self.label || is_split || is_test
    }

    /// Whether the settings say nothing of this column, so that it is no feature if it numbers or names the rows.
    fn may_be_index(&self, name: &str) -> bool {
        !self.has_other_use(name) && !self.categorical.iter().any(|other| other == name)
    }

    /// Sentences that a run and a page show: if the settings name no features and the file is a table, which columns
    /// were left out because they number the rows, and which of the features may be numbers of records; and a value of
    /// a feature that is too large to be squared. Nothing is said of a file that cannot be read, which is reported when
    /// the problem is built.
    pub fn remarks(&self, files: &dyn Files) -> Vec<String> {
        let Ok(contents) = files.open(&self.data_file()) else { return Vec::new() };
        let mut all = match &*contents {
            Contents::Table(columns) if self.features.is_empty() => {
                self.remarks_on_indices(columns)
            }
            _ => Vec::new(),
        };
        all.extend(self.remark_on_large_value(&contents));
        all
    }

    /// Sentences on the columns of a table that number or name its rows, and on those that may do so.
    fn remarks_on_indices(&self, columns: &[(String, Column)]) -> Vec<String> {
        let indices = row_indices(columns, |name| self.may_be_index(name));
        let path = sanitised(&self.file.path);
        let mut all: Vec<String> = Vec::new();
        for i in &indices {
            all.push(format!(
                "{path}: {} numbers or names the rows, and is no feature; `features` can name it",
                named_column(columns, *i)
            ));
        }
        for (i, (name, column)) in columns.iter().enumerate() {
            if self.may_be_index(name) && !indices.contains(&i) && column.may_number_records() {
                all.push(format!(
                    "{path}: all values of {} are different whole numbers: if they number the records, it should be no feature; list the `features` that are meant",
                    named_column(columns, i)
                ));
            }
        }
        all
    }

    /// The features that a column makes: an indicator for each category but the first if the settings call it
    /// categorical, else its numbers. A value that is missing is NaN.
    ///
    /// # Errors
    /// A column of texts that is not categorical, or a missing value if the settings do not say what to do then.
    pub(super) fn features_of_column<'a>(
        &self,
        name: &str,
        column: &'a Column,
    ) -> Result<NamedFeatures<'a>, Fault> {
        if self.categorical.iter().any(|other| other == name) {
            return self.category_indicators(name, column);
        }
        let Some(values) = self.numbers_of_column(column) else {
            return Err(self.not_numeric(name, column));
        };
        self.refuse_missing(name, column)?;
        Ok(vec![(name.to_owned(), values)])
    }

    /// The numbers of a column, NaN where a value is missing; `None` if it holds texts. Numbers that a file holds as
    /// text count as texts, unless the column has marks of missing values, or the settings expect such marks: then
    /// it may be text because of them.
    fn numbers_of_column<'a>(&self, column: &'a Column) -> Option<Cow<'a, [f64]>> {
        let Column::Text(texts) = column else { return column.numbers() };
        if self.missing.is_none() && !texts.iter().any(|text| is_mark(text)) {
            return None;
        }
        let read = numbers_and_marks(texts)?;
        Some(Cow::Owned(read.numbers()?.into_owned()))
    }

    /// What a column holds if that is numbers, or numbers but for some marks of missing values, for a message; else
    /// `None`.
    pub(super) fn numbers_in_message(&self, column: &Column) -> Option<String> {
        match column {
            Column::Numbers(_) | Column::LongNumbers(_) => Some("numbers".to_owned()),
            Column::Text(texts) => {
                let marks = Exceptions::marks_among_numbers(texts)?;
                Some(marks.describe(texts, |row| self.data_file().place(row, texts.len())))
            }
            Column::Unread { .. } => None,
        }
    }

    /// An error if a value of a feature is missing, and the settings do not say what to do then.
    fn refuse_missing(&self, name: &str, column: &Column) -> Result<(), Fault> {
        let first = column.missing().into_iter().position(|is_missing| is_missing);
        match first.filter(|_| self.missing.is_none()) {
            None => Ok(()),
            Some(row) => Err(self.missing_feature_fault(row, name, column)),
        }
    }

    /// A feature for each category of a column but the first in sorted order: 1 for the records of the category, else
    /// 0, and NaN where the value is missing. The first one would make the features sum to 1 in every record.
    fn category_indicators<'a>(
        &self,
        name: &str,
        column: &Column,
    ) -> Result<NamedFeatures<'a>, Fault> {
        self.refuse_missing(name, column)?;
        let missing = column.missing();
        let texts: Vec<String> = (0..column.len()).map(|row| column.text(row)).collect();
        let known = texts.iter().zip(&missing).filter(|(_, is_missing)| !**is_missing);
        let categories: BTreeSet<&String> = known.map(|(text, _)| text).collect();
        self.check_dimension(categories.len())?;
        let mut features = Vec::new();
        for category in categories.iter().skip(1) {
            let values = texts.iter().zip(&missing).map(|(text, is_missing)| {
                if *is_missing { f64::NAN } else { f64::from(u8::from(text == *category)) }
            });
            features.push((format!("{name} = {category}"), values.collect()));
        }
        Ok(features)
    }

    /// The records without those that lack a feature, their label, their client or their mark of the test set, if
    /// the settings drop such records; else all. `records` are all of the file.
    ///
    /// # Errors
    /// Arrays of a file that differ in length, as [`check_shape`](Self::check_shape) says, where records are dropped. A
    /// mark of the test set that is neither yes nor no, also in a record that is dropped because it lacks another
    /// value.
    pub(super) fn without_incomplete(&self, records: Records) -> Result<Records, Fault> {
        if self.missing != Some(MissingValues::Drop) {
            return Ok(records);
        }
        self.check_shape(&records)?;
        if let Some(marks) = &records.marks {
            let is_missing = marks.missing();
            for row in (0..marks.len()).filter(|row| !is_missing[*row]) {
                self.is_marked(marks, row)?;
            }
        }
        let columns = [Some(&records.labels), records.groups.as_ref(), records.marks.as_ref()];
        let missing: Vec<Vec<bool>> = columns.into_iter().flatten().map(Column::missing).collect();
        let mut lacks_feature = vec![false; records.count()];
        records.for_each_feature(|row, _, x| lacks_feature[row] |= x.is_nan());
        let mut whole = Vec::new();
        for row in 0..records.count() {
            if !lacks_feature[row] && !missing.iter().any(|column| column[row]) {
                whole.push(row);
            }
        }
        Ok(records.take(&whole))
    }

    /// Puts the mean of a feature where its value is missing, if the settings say so. The mean is over the records `own`
    /// that clients hold, also where it is put into a record of the test set.
    ///
    /// # Errors
    /// A feature that has no value in any record of the clients.
    pub(super) fn fill_in_means(
        &self,
        own: &mut Records,
        test: Option<&mut Records>,
    ) -> Result<(), Fault> {
        if self.missing != Some(MissingValues::Mean) {
            return Ok(());
        }
        // For each feature the sum of its known values and the number of records that lack it. Sums are in the order of
        // records, to which numbers that are not stored add 0: they have the same bits with dense and sparse storage.
        let mut sums = vec![0.0; own.d];
        let mut missing = vec![0_usize; own.d];
        own.for_each_feature(|_, j, x| {
            if x.is_nan() {
                missing[j] += 1;
            } else {
                sums[j] += x;
            }
        });
        if let Some(j) = missing.iter().position(|lacking| *lacking == own.count()) {
            let name = own.names.get(j).map_or(j.to_string(), |name| sanitised(name));
            return Err(self.fault(format!("no record of the clients has a value of `{name}`")));
        }
        let known = missing.iter().map(|lacking| (own.count() - lacking) as f64);
        let means: Vec<f64> = sums.iter().zip(known).map(|(sum, known)| sum / known).collect();
        own.fill_features(&means);
        if let Some(test) = test {
            test.fill_features(&means);
        }
        Ok(())
    }
}

impl Records {
    /// Calls a function with the row, the feature's number from 0 and the value of each feature, record by record; of
    /// sparse records only with the stored values.
    pub(super) fn for_each_feature(&self, mut f: impl FnMut(usize, usize, f64)) {
        match &self.sparse {
            Some(rows) => {
                for (row, features) in rows.iter().enumerate() {
                    features.iter().for_each(|(j, x)| f(row, j, x));
                }
            }
            None => {
                for (place, x) in self.features.iter().enumerate() {
                    f(place / self.d, place % self.d, *x);
                }
            }
        }
    }

    /// Puts `means[j]` where the value of feature j is missing.
    fn fill_features(&mut self, means: &[f64]) {
        match &mut self.sparse {
            Some(rows) => rows.map_stored(|j, x| if x.is_nan() { means[j] } else { x }),
            None => {
                let all = self.features.iter_mut().zip(means.iter().cycle());
                all.filter(|(x, _)| x.is_nan()).for_each(|(x, mean)| *x = *mean);
            }
        }
    }
}

/// How a message names the column at this place, from 0: by its name or, if it has none, by its place.
fn named_column(columns: &[(String, Column)], place: usize) -> String {
    match (columns[place].0.as_str(), place) {
        ("", 0) => "the first column, which has no name,".to_owned(),
        ("", place) => format!("column {}, which has no name,", place + 1),
        (name, _) => format!("column `{}`", sanitised(name)),
    }
}
