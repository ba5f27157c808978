//! Values of a described file that are missing, infinite or too large.

use super::features::FoundValues;
use super::{FileRecords, Remedy, first_names};
use exactfed_core::problem::arrays::DataFile;

impl FileRecords<'_> {
    /// The lines on values that are missing, infinite or have no square in double precision. `lacking` and `infinite`
    /// are the phrases of [`missing`](Self::missing) and [`infinite`](Self::infinite).
    pub(super) fn value_lines(
        &self,
        file: &DataFile,
        lacking: &[String],
        infinite: &[String],
    ) -> Vec<String> {
        let mut lines = Vec::new();
        // Where no record of a table is whole, its missing values are still there, and would be listed twice.
        let is_listed = self.table.remedy == Some(Remedy::Nothing);
        let further: &[String] = if is_listed { &[] } else { lacking };
        lines.push(match [&*self.table.missing, further].concat().as_slice() {
            [] => "missing values: none".into(),
            some => format!("missing values: {}", first_names(some)),
        });
        if !infinite.is_empty() {
            lines.push(format!("infinite values: {}", first_names(infinite)));
        }
        let overflows = self.named_values(file, |x| x.is_finite() && !(x * x).is_finite());
        if !overflows.is_empty() {
            lines.push(format!(
                "values whose squares are beyond double precision: {}; if they mark missing values, write them as NaN",
                first_names(&overflows)
            ));
        }
        lines
    }

    /// The features and the labels that are missing in some of these records: a phrase with how many for each, and
    /// where the first is. From the records of a table, missing values are gone already, filled in or left out as the
    /// manifest does it, unless every record lacks one. There is no manifest for records with such values.
    pub(super) fn missing(&self, file: &DataFile) -> Vec<String> {
        let mut missing = Vec::new();
        for (j, found) in self.features.find(f64::is_nan).into_iter().enumerate() {
            if let Some(FoundValues { count, row, .. }) = found {
                let feature = self.feature_in_line(j);
                missing.push(format!("{count} in {feature}, first in {}", self.place(file, row)));
            }
        }
        let in_labels = self.labels.missing();
        let number = in_labels.iter().filter(|is_missing| **is_missing).count();
        if let Some(first) = in_labels.iter().position(|is_missing| *is_missing) {
            missing.push(format!("{number} in the labels, first in {}", self.place(file, first)));
        }
        missing
    }

    /// The features and the labels that are infinite in some of these records: a phrase with how many for each, and
    /// where the first is. There is no manifest for such records.
    pub(super) fn infinite(&self, file: &DataFile) -> Vec<String> {
        let mut infinite = self.named_values(file, f64::is_infinite);
        let labels = self.labels.numbers().unwrap_or_default();
        let in_labels = labels.iter().filter(|x| x.is_infinite()).count();
        if let Some(first) = labels.iter().position(|x| x.is_infinite()) {
            let place = self.place(file, first);
            infinite.push(format!("{in_labels} in the labels, first {} in {place}", labels[first]));
        }
        infinite
    }

    /// The features with values that are `wanted`: a phrase with how many for each, and where the first is.
    fn named_values(&self, file: &DataFile, wanted: impl Fn(f64) -> bool) -> Vec<String> {
        let mut phrases = Vec::new();
        for (j, found) in self.features.find(wanted).into_iter().enumerate() {
            let Some(FoundValues { count, row, value }) = found else { continue };
            let feature = self.feature_in_line(j);
            let place = self.place(file, row);
            phrases.push(format!("{count} in {feature}, first {value:e} in {place}"));
        }
        phrases
    }

    /// Where in the file the record in this row is.
    pub(super) fn place(&self, file: &DataFile, row: usize) -> String {
        file.place(self.rows[row], self.file_records)
    }

    /// How a line of the description names a feature.
    fn feature_in_line(&self, feature: usize) -> String {
        let name = self.name(feature);
        if self.names.is_empty() { format!("feature {name} from 0") } else { name }
    }
}
