//! Columns of a table as features: categories, and values that are missing.

use super::{Dataset, MissingValues, Records, distinct_texts};
use crate::problem::Fault;
use crate::problem::arrays::{Column, is_mark, numbers_and_marks, sanitised};
use std::borrow::Cow;

/// Features that a column makes, by their names.
type NamedFeatures<'a> = Vec<(String, Cow<'a, [f64]>)>;

impl Dataset {
    /// The features that a column makes; a value that is missing is NaN.
    pub(super) fn features_of<'a>(
        &self,
        name: &str,
        column: &'a Column,
    ) -> Result<NamedFeatures<'a>, Fault> {
        if self.categorical.iter().any(|other| other == name) {
            return self.indicators(name, column);
        }
        let values = match column {
            Column::Numbers(values) => Cow::Borrowed(values.as_slice()),
            Column::Text(texts) => {
                let numbers = self.missing.and_then(|_| numbers_and_marks(texts));
                Cow::Owned(numbers.ok_or_else(|| self.not_numeric(name, texts))?)
            }
        };
        Ok(vec![(name.to_owned(), values)])
    }

    /// A feature for each category but the first: 1 where it is that of the record, else 0.
    fn indicators<'a>(&self, name: &str, column: &Column) -> Result<NamedFeatures<'a>, Fault> {
        let mut categories = distinct_texts(column);
        categories.retain(|text| !self.is_missing(text));
        self.check_dimension(categories.len())?;
        let texts: Vec<String> = (0..column.len()).map(|row| column.text(row)).collect();
        let indicator = |category: &String| {
            let value = |text: &String| match self.is_missing(text) {
                true => f64::NAN,
                false => f64::from(u8::from(text == category)),
            };
            (format!("{name} = {category}"), texts.iter().map(value).collect())
        };
        Ok(categories.iter().skip(1).map(indicator).collect())
    }

    /// Whether a value is missing: an empty text or NaN, and with the key `missing` any usual mark.
    fn is_missing(&self, text: &str) -> bool {
        ["", "NaN"].contains(&text) || self.missing.is_some() && is_mark(text)
    }

    /// The records, those left out that lack a value if the settings drop them.
    pub(super) fn dropped(&self, records: Records) -> Records {
        if self.missing != Some(MissingValues::Drop) {
            return records;
        }
        let columns = [Some(&records.labels), records.groups.as_ref(), records.marks.as_ref()];
        let is_whole = |row: &usize| {
            let of_row = &records.features[row * records.d..][..records.d];
            let mut texts = columns.iter().flatten().map(|column| column.text(*row));
            !of_row.iter().any(|x| x.is_nan()) && !texts.any(|text| self.is_missing(&text))
        };
        let rows: Vec<usize> = (0..records.labels.len()).filter(is_whole).collect();
        records.take(&rows)
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
            let known = all[0].iter().flat_map(|own| own.features.iter().skip(j).step_by(d));
            let known = known.filter(|x| !x.is_nan());
            let (sum, n) = known.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
            if n == 0.0 {
                let name = all[0].as_ref().and_then(|own| own.names.get(j));
                let name = name.map_or(j.to_string(), |name| sanitised(name));
                return Err(self.fault(format!("no record of the clients has a value of `{name}`")));
            }
            let places = all.iter_mut().flatten();
            let places = places.flat_map(|records| records.features.iter_mut().skip(j).step_by(d));
            places.filter(|x| x.is_nan()).for_each(|x| *x = sum / n);
        }
        Ok(())
    }
}
