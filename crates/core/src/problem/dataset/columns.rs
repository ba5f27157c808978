//! Columns of a table as features: categories, values that are missing, and columns that name
//! records.

use super::records::Records;
use super::settings::{Dataset, MissingValues, Split, TestRecords};
use crate::problem::arrays::{Contents, Files, sanitised};
use crate::problem::column::{Column, is_mark, numbers_and_marks, row_indices};
use crate::problem::fault::Fault;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Features that a column makes, by their names.
type NamedFeatures<'a> = Vec<(String, Cow<'a, [f64]>)>;

/// The text of a mark of a missing value, for a message about its place; nothing where the field
/// is empty or a number that is NaN.
pub(super) fn written(column: &Column, row: usize) -> String {
    match column {
        Column::Text(texts) if !texts[row].is_empty() => {
            format!(" (\"{}\")", sanitised(&texts[row]))
        }
        _ => String::new(),
    }
}

impl Dataset {
    /// The names of the features where the settings name none: all columns but those that have
    /// another use, or number the rows.
    pub(super) fn default_features<'a>(&self, columns: &'a [(String, Column)]) -> Vec<&'a String> {
        let indices = row_indices(columns, |name| self.may_be_index(name));
        let numbered = columns.iter().map(|(name, _)| name).enumerate();
        let features =
            numbered.filter(|(i, name)| !self.has_other_use(name) && !indices.contains(i));
        features.map(|(_, name)| name).collect()
    }

    /// Whether this is the column of the label, the split or the test set.
    fn has_other_use(&self, name: &str) -> bool {
        let is_split = matches!(&self.split, Split::Column(column) if column == name);
        let is_test = matches!(&self.test, Some(TestRecords::Column(column)) if column == name);
        name == self.label || is_split || is_test
    }

    /// Whether the settings leave it open if this column is a feature.
    fn may_be_index(&self, name: &str) -> bool {
        !self.has_other_use(name) && !self.categorical.iter().any(|other| other == name)
    }

    /// What a user should know of the columns that are features, or are not, without being named:
    /// sentences. Nothing is said of a file that cannot be read, which is reported when the problem
    /// is built.
    pub fn remarks(&self, files: &dyn Files) -> Vec<String> {
        if !self.features.is_empty() {
            return Vec::new();
        }
        let Ok(contents) = files.open(&self.file) else { return Vec::new() };
        let Contents::Table(columns) = &*contents else { return Vec::new() };
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

    /// The features that a column makes; a value that is missing is NaN.
    pub(super) fn features_of<'a>(
        &self,
        name: &str,
        column: &'a Column,
    ) -> Result<NamedFeatures<'a>, Fault> {
        if self.categorical.iter().any(|other| other == name) {
            return self.indicators(name, column);
        }
        let Some(values) = self.numbers_of(column) else {
            return Err(self.not_numeric(name, column));
        };
        self.refuse_missing(name, column)?;
        Ok(vec![(name.to_owned(), values)])
    }

    /// The numbers of a column, NaN where a value is missing; `None` of texts. Numbers that a file
    /// holds as text are read beside marks of missing values, or where the settings expect these.
    fn numbers_of<'a>(&self, column: &'a Column) -> Option<Cow<'a, [f64]>> {
        let Column::Text(texts) = column else { return column.numbers() };
        if self.missing.is_none() && !texts.iter().any(|text| is_mark(text)) {
            return None;
        }
        let read = numbers_and_marks(texts)?;
        Some(Cow::Owned(read.numbers()?.into_owned()))
    }

    /// An error if a value of a feature is missing and the settings do not say what to do then.
    fn refuse_missing(&self, name: &str, column: &Column) -> Result<(), Fault> {
        let first = column.missing().into_iter().position(|is_missing| is_missing);
        match first.filter(|_| self.missing.is_none()) {
            None => Ok(()),
            Some(row) => Err(self.lacks(row, name, column)),
        }
    }

    /// A feature for each category but the first: 1 for the records of the category, else 0.
    fn indicators<'a>(&self, name: &str, column: &Column) -> Result<NamedFeatures<'a>, Fault> {
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

    /// The records, those left out that lack a value if the settings drop them.
    pub(super) fn dropped(&self, records: Records) -> Records {
        if self.missing != Some(MissingValues::Drop) {
            return records;
        }
        let columns = [Some(&records.labels), records.groups.as_ref(), records.marks.as_ref()];
        let missing: Vec<Vec<bool>> = columns.into_iter().flatten().map(Column::missing).collect();
        let mut whole = Vec::new();
        for row in 0..records.labels.len() {
            let features = &records.features[row * records.d..][..records.d];
            let lacks_feature = features.iter().any(|x| x.is_nan());
            if !lacks_feature && !missing.iter().any(|column| column[row]) {
                whole.push(row);
            }
        }
        records.take(&whole)
    }

    /// Puts the mean of a feature over the records of the clients where a value is missing.
    pub(super) fn fill_in(
        &self,
        own: &mut Records,
        test: Option<&mut Records>,
    ) -> Result<(), Fault> {
        if self.missing != Some(MissingValues::Mean) || own.sparse.is_some() {
            return Ok(());
        }
        let d = own.d;
        let mut all = [Some(own), test];
        for j in 0..d {
            let values = all[0].iter().flat_map(|own| own.features.iter().skip(j).step_by(d));
            let known = values.filter(|x| !x.is_nan());
            let (sum, n) = known.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
            if n == 0.0 {
                let own_name = all[0].as_ref().and_then(|own| own.names.get(j));
                let name = own_name.map_or(j.to_string(), |name| sanitised(name));
                return Err(self.fault(format!("no record of the clients has a value of `{name}`")));
            }
            for records in all.iter_mut().flatten() {
                let values = records.features.iter_mut().skip(j).step_by(d);
                values.filter(|x| x.is_nan()).for_each(|x| *x = sum / n);
            }
        }
        Ok(())
    }
}

/// A column in a message; one without a name by its place.
fn named_column(columns: &[(String, Column)], place: usize) -> String {
    match (columns[place].0.as_str(), place) {
        ("", 0) => "the first column, which has no name,".to_owned(),
        ("", place) => format!("column {}, which has no name,", place + 1),
        (name, _) => format!("column `{}`", sanitised(name)),
    }
}
